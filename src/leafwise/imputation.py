"""Filling in missing cells: drawn, the most probable state of each, or the probabilities of all its states.

Knows networks, mixtures, how new data are read, and cases with holes.
"""

import warnings
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from leafwise.encoding import Reading, read_new
from leafwise.errors import AdvisedError
from leafwise.frames import Columns, Framed
from leafwise.inference.exact import DEFAULT_LIMITS
from leafwise.inference.holes import Codes, Holes
from leafwise.inference.sampling import Approximate
from leafwise.mixture import Mixture
from leafwise.network import Network, check_network
from leafwise.table import Table, Variable, code_type, many

Floats = NDArray[np.float64]
DRAW, MOST_PROBABLE, MEAN_PROBABILITIES = HOW = ("draw", "most probable", "mean probabilities")
_SWEEPS = 100  # of Gibbs sampling, for cases that are too large for an exact answer; as many before these count


@dataclass(frozen=True, eq=False, repr=False)
class CellProbabilities(Framed):
    """For every case and variable the probability of each state: 1 for what the case shows."""

    variables: tuple[Variable, ...]
    probabilities: tuple[Floats, ...]  # of each variable: (cases, states)

    def of(self, name: str) -> Floats:
        """Those of a variable, (cases, states)."""
        return self.probabilities[[variable.name for variable in self.variables].index(name)]

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
    """Fill in the missing cells of a file, a frame, an array or a Table, given what their rows show.

    `how`: "draw" draws the cells of a row together, from their distribution: with several seeds this is multiple
    imputation. "most probable" takes the most probable state of each cell. "mean probabilities" gives the probability
    of each state instead, of which the draws would be the mean.
    `unseen`: what a label is that the network does not know: "error", or "missing".
    `reading`: other arguments of `read`, such as `na`.

    All is exact but for rows that are too large for that: these are drawn by Gibbs sampling, and an `Approximate`
    warning says so. Numbers come as the bins that the network knows. The groups of a mixture weigh what they say of
    what a row shows; where one cannot tell, they have the weights of the mixture.

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
    given: Reading = {"missing": "unknown", **reading}
    codes = read_new(data, network.variables, unseen=unseen, **given).codes
    _refuse_states(network, codes)
    return _filled(network, codes, how, seed)


def _refuse_states(network: Network | Mixture, codes: Codes) -> None:
    for variable, row in zip(network.variables, codes, strict=True):
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
        chances = [np.eye(n)[np.minimum(row, n - 1)] for n, row in zip(n_states.tolist(), codes, strict=True)]
        for variable, rows in _marginals(network, codes, seed).items():
            chances[variable][missing[variable]] = rows
        if how == MEAN_PROBABILITIES:
            return CellProbabilities(variables, tuple(chances[k] for k in shown))
        completed = np.stack([chance.argmax(axis=1) for chance in chances])
    kind = code_type(variables)
    return Table(variables, np.ascontiguousarray(completed[shown].astype(kind)))


def _large(holes: Holes, codes: Codes) -> NDArray[np.int64]:
    """The cases that are too large for an exact answer; it is said that there are some."""
    large = np.flatnonzero(~holes.are_small(codes))
    if len(large):
        warnings.warn(
            f"{many(len(large), 'row')} of {codes.shape[1]:,} are too large for an exact answer, and were drawn by "
            f"Gibbs sampling, which is off where missing cells nearly decide each other",
            Approximate,
            stacklevel=4,
        )
    return large


def _drawn(network: Network | Mixture, codes: Codes, seed: int, numbers: NDArray[np.int64] | None = None) -> Codes:
    """The cases with what they lack; `numbers` as in `Holes.draw`."""
    if isinstance(network, Mixture):
        return _drawn_by_mixture(network, codes, seed)
    holes = Holes(network, DEFAULT_LIMITS)
    large = _large(holes, codes)
    small = np.delete(np.arange(codes.shape[1]), large)
    completed = codes.copy()
    own = None if numbers is None else numbers[small]
    completed[:, small] = holes.draw(np.ascontiguousarray(codes[:, small]), seed, own)
    if len(large):
        completed[:, large] = _chain(holes, codes[:, large], seed)[0]
    return completed


def _marginals(network: Network | Mixture, codes: Codes, seed: int) -> dict[int, Floats]:
    """For each variable with missing cells their distributions, one row a cell."""
    if isinstance(network, Mixture):
        return _marginals_of_mixture(network, codes, seed)
    holes = Holes(network, DEFAULT_LIMITS)
    large = _large(holes, codes)
    missing = codes >= np.array([variable.n_states for variable in network.variables])[:, None]
    rows = {k: np.zeros((int(missing[k].sum()), v.n_states)) for k, v in enumerate(network.variables)}
    place = np.cumsum(missing, axis=1) - 1  # of each missing cell among those of its variable
    small = np.delete(np.arange(codes.shape[1]), large)
    exact = holes.marginals(np.ascontiguousarray(codes[:, small]))
    impossible = np.flatnonzero(np.isneginf(exact.log_probabilities))
    if len(impossible):
        raise ValueError(
            f"what row {small[impossible[0]] + 1} shows is impossible under this network, so nothing can be said of "
            f"its missing cells: leave the row out, or correct it."
        )
    for k in set(exact.variables.tolist()):
        rows[k][place[k, small][missing[k, small]]] = exact.of(k)
    if len(large):
        first = 0
        shares = _chain(holes, codes[:, large], seed)[1]
        for case in large.tolist():
            for k in np.flatnonzero(missing[:, case]).tolist():
                rows[k][place[k, case]] = shares[first : first + rows[k].shape[1]]
                first += rows[k].shape[1]
    return {k: found for k, found in rows.items() if len(found)}


def _components(mixture: Mixture, codes: Codes) -> list[tuple[Network, float, Codes]]:
    """Each group as a network, its weight, and the cases: the causes that the group has besides are missing."""
    found = []
    for network, weight in mixture.components:
        causes = [variable.n_states for variable in network.variables[len(codes) :]]
        nothing = np.array(causes, np.uint16).reshape(-1, 1).repeat(codes.shape[1], axis=1)
        found.append((network, weight, np.concatenate([codes.astype(np.uint16), nothing])))
    return [part for part in found if part[1] > 0]


def _shares(parts: list[tuple[Network, float, Codes]], numbers: NDArray[np.int64]) -> Floats:
    """The weight of each group given what a case shows, (groups, cases); its own where some group cannot tell.

    `numbers` are those of the cases, to name one that no group allows.
    """
    logs = np.zeros((len(parts), parts[0][2].shape[1]))
    known = np.ones(logs.shape[1], np.bool_)
    for place, (network, _, codes) in enumerate(parts):
        holes = Holes(network, DEFAULT_LIMITS)
        small = holes.are_small(codes)
        logs[place, small] = holes.log_probabilities(np.ascontiguousarray(codes[:, small]))
        known &= small
    impossible = np.flatnonzero(known & np.isneginf(logs).all(axis=0))
    if len(impossible):
        raise ValueError(
            f"what row {numbers[impossible[0]] + 1} shows is impossible under this mixture, so nothing can be said of "
            f"its missing cells: leave the row out, or correct it."
        )
    logs = np.where(known | np.isneginf(logs), logs, 0.0) + np.log([[weight] for _, weight, _ in parts])
    found: Floats = np.exp(logs - np.logaddexp.reduce(logs, axis=0))
    return found


def _drawn_by_mixture(mixture: Mixture, codes: Codes, seed: int) -> Codes:
    """Each case by a group that is drawn by its weight given what the case shows."""
    holed = _with_holes(mixture, codes)
    completed, parts = codes.copy(), _components(mixture, codes[:, holed])
    random = np.random.default_rng(seed)
    uniform, seeds = random.random(len(holed)), random.integers(2**31, size=len(parts)).tolist()
    chosen = (_shares(parts, holed).cumsum(axis=0) < uniform).sum(axis=0).clip(max=len(parts) - 1)
    for place, (network, _, own) in enumerate(parts):
        rows = np.flatnonzero(chosen == place)
        if len(rows):
            found = _drawn(network, np.ascontiguousarray(own[:, rows]), seeds[place])
            completed[:, holed[rows]] = found[: len(codes)]
    return completed


def drawn_often(mixture: Mixture, codes: Codes, times: int, seed: int) -> Codes:
    """Cases with holes, each so many times, one behind the other: what is drawn for one depends on no other case.

    Groups have their shares of the draws, by their weights given what a case shows.
    """
    parts = _components(mixture, codes)
    up_to = _shares(parts, np.arange(codes.shape[1])).cumsum(axis=0)
    chosen = (up_to[:, :, None] < (np.arange(times) + 0.5) / times).sum(axis=0).clip(max=len(parts) - 1)
    completed = codes.repeat(times, axis=1)
    for place, (network, _, own) in enumerate(parts):
        cases, numbers = map(np.ascontiguousarray, np.nonzero(chosen == place))
        if len(cases):
            found = _drawn(network, np.ascontiguousarray(own[:, cases]), seed, numbers)
            completed[:, cases * times + numbers] = found[: len(codes)]
    return completed


def _marginals_of_mixture(mixture: Mixture, codes: Codes, seed: int) -> dict[int, Floats]:
    """As `_marginals`: those of the groups, weighed."""
    holed = _with_holes(mixture, codes)
    parts, total = _components(mixture, codes[:, holed]), dict[int, Floats]()
    missing = codes[:, holed] >= np.array([variable.n_states for variable in mixture.variables])[:, None]
    place = np.cumsum(missing, axis=1) - 1  # of each missing cell among those of its variable
    for share, (network, _, own) in zip(_shares(parts, holed), parts, strict=True):
        asked = np.flatnonzero(share > 0)  # others are impossible under this group
        for k, rows in _marginals(network, np.ascontiguousarray(own[:, asked]), seed).items():
            if k < len(codes):
                here = asked[missing[k, asked]]
                total.setdefault(k, np.zeros((int(missing[k].sum()), rows.shape[1])))
                total[k][place[k, here]] += share[here, None] * rows
    return total


def _with_holes(mixture: Mixture, codes: Codes) -> NDArray[np.int64]:
    """The cases in which a cell is missing."""
    n_states = np.array([variable.n_states for variable in mixture.variables])
    return np.flatnonzero((codes >= n_states[:, None]).any(axis=0))


def _chain(holes: Holes, codes: Codes, seed: int) -> tuple[Codes, Floats]:
    """Cases as a Gibbs chain leaves them, and the mean distributions of their missing cells."""
    shown = np.ascontiguousarray(codes)
    n_states = np.array([variable.n_states for variable in holes.network.variables])[:, None]
    begun = np.where(shown < n_states, shown, 0).astype(shown.dtype)
    return holes.redraw(shown, holes.redraw(shown, begun, seed, _SWEEPS)[0], seed + 1, _SWEEPS)
