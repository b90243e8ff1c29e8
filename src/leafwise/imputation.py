"""Imputation of missing cells: draws, most probable states, or the probabilities of all states.

Knows networks, mixtures, the reading of new data, and inference for cases with missing cells.
"""

import warnings
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from leafwise.data.encoding import Reading, read_new
from leafwise.data.frames import Columns, Framed
from leafwise.data.table import Table, Variable, code_type, count_states, index_of, many
from leafwise.errors import AdvisedError, check_type
from leafwise.inference.exact import DEFAULT_LIMITS
from leafwise.inference.holes import Codes, Holes, ImpossibleCase
from leafwise.inference.sampling import Approximate
from leafwise.mixture import Mixture
from leafwise.network import Network, check_network

Floats = NDArray[np.float64]
DRAW, MOST_PROBABLE, MEAN_PROBABILITIES = HOW = ("draw", "most probable", "mean probabilities")
_SWEEPS = 100  # of Gibbs sampling, for cases that are too large for exact inference, after as many of burn-in


@dataclass(frozen=True, eq=False, repr=False)
class CellProbabilities(Framed):
    """The probability of each state of every variable in every case: 1 for observed states."""

    variables: tuple[Variable, ...]
    probabilities: tuple[Floats, ...]  # one array per variable, (cases, states)

    def of(self, name: str) -> Floats:
        """The probabilities of a variable's states, (cases, states)."""
        return self.probabilities[index_of(name, [variable.name for variable in self.variables])]

    def frame_columns(self) -> Columns:
        pairs = zip(self.variables, self.probabilities, strict=True)
        return {f"{v.name}={label}": shares[:, k] for v, shares in pairs for k, label in enumerate(v.labels)}

    def __len__(self) -> int:
        return len(self.probabilities[0])

    def __repr__(self) -> str:
        return f"CellProbabilities({many(len(self), 'case')}, {many(len(self.variables), 'variable')})"


def impute(
    network: Network | Mixture,
    data: object,
    how: str = DRAW,
    *,
    seed: int = 1,
    unseen: str = "error",
    **reading: Unpack[Reading],
) -> "Table | CellProbabilities":
    """Fill in the missing cells of a file, a frame, an array or a Table, given the observed cells of their rows.

    `how`: "draw" draws the missing cells of a row from their joint distribution; with several seeds, this is multiple
    imputation. "most probable" takes the most probable state of each cell. "mean probabilities" returns the marginal
    probabilities of all states instead, which are the expectations of the draws.
    `unseen`: how labels that the network does not know are treated: "error", or "missing".
    `reading`: other arguments of `read`, such as `na`.

    Results are exact, except for rows that are too large for exact inference; for these, Gibbs sampling is used, with
    an `Approximate` warning. Numbers are returned as bins of the network; columns that it does not know are left out.
    The groups of a mixture are weighted by the likelihood of a row's observed cells; if the row is too large for one
    of them, by the weights of the mixture.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.sampling import sample
    >>> frame = sample(alarm(), 3, seed=1).to_pandas()
    >>> frame.loc[0, "SHUNT"] = None
    >>> impute(alarm(), frame, "most probable").to_pandas()["SHUNT"].tolist()
    ['NORMAL', 'NORMAL', 'NORMAL']
    >>> impute(alarm(), frame, "mean probabilities").of("SHUNT").round(2).tolist()
    [[0.95, 0.05], [1.0, 0.0], [1.0, 0.0]]
    """
    if not isinstance(network, Mixture):
        check_network(network, "impute")
    if how not in HOW:
        raise ValueError(f"how={how!r} is not known: use 'draw', 'most probable' or 'mean probabilities'")
    check_type(seed, (int, np.integer), "the seed", "a whole number: give one such as 1.")
    if seed < 0:
        raise ValueError(f"impute got the seed {seed}, and the least is 0: use a seed of 0 or more.")
    given: Reading = {"missing": "unknown", **reading}
    codes = read_new(data, network.variables, unseen=unseen, **given).codes
    _refuse_what_is_not_known(network, codes)
    return _filled(network, codes, how, seed)


def _refuse_what_is_not_known(network: Network | Mixture, codes: Codes) -> None:
    nodes = (network.members[0] if isinstance(network, Mixture) else network).nodes
    for variable, node, row in zip(network.variables, nodes, codes, strict=True):
        if node is None and (row >= variable.n_states).any():
            raise ValueError(
                f"{variable.name!r} is missing in some row, and the network has no distribution of it to fill it in "
                f"by: learn one of all variables, without a target."
            )
        if variable.missing and (row == variable.n_states - 1).any():
            raise AdvisedError(
                f"the network has a state of its own for missing cells of {variable.name!r}, and so nothing to fill "
                "them with: learn one with ",
                ("missing", "infer"),
                ", or ",
                ("missing", "drop"),
            )


def _filled(network: Network | Mixture, codes: Codes, how: str, seed: int) -> "Table | CellProbabilities":
    n_states = np.array([variable.n_states for variable in network.variables])
    missing = codes >= n_states[:, None]
    shown = [k for k, variable in enumerate(network.variables) if not variable.hidden]
    variables = tuple(network.variables[k] for k in shown)
    if how == DRAW:
        completed = _drawn(network, codes, seed)
    else:
        found = _marginals(network, codes, seed)
        if how == MEAN_PROBABILITIES:
            chances = [np.eye(n)[np.minimum(row, n - 1)] for n, row in zip(n_states.tolist(), codes, strict=True)]
            for variable, rows in found.items():
                chances[variable][missing[variable]] = rows
            return CellProbabilities(variables, tuple(chances[k] for k in shown))
        completed = codes.copy()
        for variable, rows in found.items():
            completed[variable, missing[variable]] = rows.argmax(axis=1)
    kind = code_type(variables)
    return Table(variables, np.ascontiguousarray(completed[shown].astype(kind)))


@dataclass(frozen=True, eq=False)
class _Cases:
    """Cases with missing cells, encoded for one network."""

    holes: Holes
    codes: Codes
    small: NDArray[np.bool_]  # the cases small enough for exact inference; Gibbs sampling is used for the others

    @classmethod
    def of(cls, network: Network, codes: Codes) -> "_Cases":
        holes = Holes(network, DEFAULT_LIMITS)
        return cls(holes, codes, holes.are_small(codes))

    def take(self, cases: NDArray[np.int64]) -> "_Cases":
        """A selection of the cases."""
        return _Cases(self.holes, np.ascontiguousarray(self.codes[:, cases]), self.small[cases])

    @property
    def missing(self) -> NDArray[np.bool_]:
        """A mask of the missing cells."""
        missing: NDArray[np.bool_] = self.codes >= count_states(self.holes.network.variables)[:, None]
        return missing

    def draw(self, seed: int, numbers: NDArray[np.int64] | None = None) -> Codes:
        """Complete the cases by drawing their missing cells; `numbers` as in `Holes.draw`."""
        completed, large = self.codes.copy(), ~self.small
        small = np.flatnonzero(self.small & self.missing.any(axis=0))
        own = None if numbers is None else numbers[small]
        try:
            completed[:, small] = self.holes.draw(np.ascontiguousarray(self.codes[:, small]), seed, own)
        except ImpossibleCase as error:
            raise ImpossibleCase(int(small[error.case])) from None
        if large.any():
            completed[:, large] = _chain(self.holes, self.codes[:, large], seed)[0]
        return completed

    def marginals(self, seed: int) -> dict[int, Floats]:
        """The distributions of missing cells, by variable, one row per cell."""
        codes, variables, missing = self.codes, self.holes.network.variables, self.missing
        rows = {k: np.zeros((int(missing[k].sum()), v.n_states)) for k, v in enumerate(variables)}
        place = np.cumsum(missing, axis=1) - 1  # the index of each missing cell among those of its variable
        small, large = np.flatnonzero(self.small), np.flatnonzero(~self.small)
        exact = self.holes.marginals(np.ascontiguousarray(codes[:, small]))
        impossible = np.flatnonzero(np.isneginf(exact.log_probabilities) & missing[:, small].any(axis=0))
        if len(impossible):
            raise ImpossibleCase(int(small[impossible[0]]))
        for k in set(exact.variables.tolist()):
            rows[k][place[k, small][missing[k, small]]] = exact.of(k)
        if len(large):
            first = 0
            shares = _chain(self.holes, codes[:, large], seed)[1]
            for case in large.tolist():
                for k in np.flatnonzero(missing[:, case]).tolist():
                    rows[k][place[k, case]] = shares[first : first + rows[k].shape[1]]
                    first += rows[k].shape[1]
        return {k: found for k, found in rows.items() if len(found)}


def _tell_large(small: NDArray[np.bool_], n_cases: int, what: str) -> None:
    """Warn if some of the cases are too large for exact inference."""
    if not small.all():
        warnings.warn(
            f"{many(int((~small).sum()), 'row')} of {n_cases:,} are too large for an exact answer{what}, which is off "
            f"where missing cells nearly decide each other",
            Approximate,
            stacklevel=6,  # the caller of impute
        )


def _cases(network: Network, codes: Codes) -> _Cases:
    """All cases, with a warning if some are too large."""
    cases = _Cases.of(network, codes)
    _tell_large(cases.small, codes.shape[1], ", and were drawn by Gibbs sampling")
    return cases


def _components(mixture: Mixture, codes: Codes) -> list[tuple[_Cases, float]]:
    """The cases encoded for each group, with its weight; the hidden causes of the group are missing."""
    found = []
    for network, weight in mixture.components:
        if weight > 0:
            causes = [variable.n_states for variable in network.variables[len(codes) :]]
            nothing = np.array(causes, np.uint16).reshape(-1, 1).repeat(codes.shape[1], axis=1)
            found.append((_Cases.of(network, np.concatenate([codes.astype(np.uint16), nothing])), weight))
    return found


def _shares(parts: list[tuple[_Cases, float]], numbers: NDArray[np.int64]) -> tuple[Floats, NDArray[np.bool_]]:
    """The posterior weights of groups, (groups, cases), and which cases are small enough for all groups.

    In other cases, groups have their prior weights. `numbers` are those of the cases, for the error if one is
    impossible under all groups.
    """
    logs = np.zeros((len(parts), len(numbers)))
    for row, (cases, _) in zip(logs, parts, strict=True):
        row[cases.small] = cases.holes.log_probabilities(np.ascontiguousarray(cases.codes[:, cases.small]))
    known: NDArray[np.bool_] = np.all([cases.small for cases, _ in parts], axis=0)
    impossible = np.flatnonzero(known & np.isneginf(logs).all(axis=0))
    if len(impossible):
        raise ImpossibleCase(int(numbers[impossible[0]]), "mixture")
    logs = np.where(known | np.isneginf(logs), logs, 0.0) + np.log([[weight] for _, weight in parts])
    found: Floats = np.exp(logs - np.logaddexp.reduce(logs, axis=0))
    return found, known


def _shares_told(parts: list[tuple[_Cases, float]], numbers: NDArray[np.int64], n_cases: int) -> Floats:
    """The posterior weights of groups, with a warning if cases are too large for some group."""
    shares, known = _shares(parts, numbers)
    _tell_large(
        known,
        n_cases,
        " by some group of the mixture: there the groups have the weights of the mixture, whatever a row shows, and "
        "those that it is too large for draw by Gibbs sampling",
    )
    return shares


def _drawn(network: Network | Mixture, codes: Codes, seed: int) -> Codes:
    """Complete the cases by draws; under a mixture, each by a group that is drawn by its posterior weight."""
    if isinstance(network, Network):
        return _cases(network, codes).draw(seed)
    holed = _with_holes(network, codes)
    completed, parts = codes.copy(), _components(network, codes[:, holed])
    random = np.random.default_rng(seed)
    uniform, seeds = random.random(len(holed)), random.integers(2**31, size=len(parts)).tolist()
    shares = _shares_told(parts, holed, codes.shape[1])
    chosen = (shares.cumsum(axis=0) < uniform).sum(axis=0).clip(max=len(parts) - 1)
    for place, (cases, _) in enumerate(parts):
        rows = np.flatnonzero(chosen == place)
        if len(rows):
            completed[:, holed[rows]] = cases.take(rows).draw(seeds[place])[: len(codes)]
    return completed


def drawn_often(mixture: Mixture, codes: Codes, times: int, seed: int) -> tuple[Codes, int]:
    """Complete each case `times` times, consecutively; also count the cases too large for exact inference.

    The draws for a case are divided among groups in proportion to their posterior weights. They do not depend on other
    cases, except for those that are too large, which are drawn together by Gibbs sampling.
    """
    parts = _components(mixture, codes)
    shares, known = _shares(parts, np.arange(codes.shape[1]))
    up_to = shares.cumsum(axis=0)
    chosen = (up_to[:, :, None] < (np.arange(times) + 0.5) / times).sum(axis=0).clip(max=len(parts) - 1)
    completed = codes.repeat(times, axis=1)
    for place, (cases, _) in enumerate(parts):
        rows, numbers = map(np.ascontiguousarray, np.nonzero(chosen == place))
        if len(rows):
            completed[:, rows * times + numbers] = cases.take(rows).draw(seed, numbers)[: len(codes)]
    return completed, int((~known).sum())


def _marginals(network: Network | Mixture, codes: Codes, seed: int) -> dict[int, Floats]:
    """The distributions of missing cells, by variable, one row per cell; under a mixture, averaged over groups."""
    if isinstance(network, Network):
        return _cases(network, codes).marginals(seed)
    holed = _with_holes(network, codes)
    parts, total = _components(network, codes[:, holed]), dict[int, Floats]()
    missing = codes[:, holed] >= np.array([variable.n_states for variable in network.variables])[:, None]
    place = np.cumsum(missing, axis=1) - 1  # the index of each missing cell among those of its variable
    for share, (cases, _) in zip(_shares_told(parts, holed, codes.shape[1]), parts, strict=True):
        asked = np.flatnonzero(share > 0)  # the others are impossible under this group
        for k, rows in cases.take(asked).marginals(seed).items():
            if k < len(codes):
                here = asked[missing[k, asked]]
                total.setdefault(k, np.zeros((int(missing[k].sum()), rows.shape[1])))
                total[k][place[k, here]] += share[here, None] * rows
    return total


def _with_holes(mixture: Mixture, codes: Codes) -> NDArray[np.int64]:
    """The indices of the cases with missing cells."""
    n_states = np.array([variable.n_states for variable in mixture.variables])
    return np.flatnonzero((codes >= n_states[:, None]).any(axis=0))


def _chain(holes: Holes, codes: Codes, seed: int) -> tuple[Codes, Floats]:
    """The cases completed by Gibbs sampling, and the mean distributions of their missing cells."""
    shown = np.ascontiguousarray(codes)
    n_states = np.array([variable.n_states for variable in holes.network.variables])[:, None]
    begun = np.where(shown < n_states, shown, 0).astype(shown.dtype)
    return holes.redraw(shown, holes.redraw(shown, begun, seed, _SWEEPS)[0], seed + 1, _SWEEPS)
