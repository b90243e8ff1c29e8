"""Cases with missing cells: log probabilities, completions, marginals and expected counts.

A missing cell contains a number that is no state of its variable, as in tables with a state "(missing)" of their own.
Everything is exact, and independent of the number of threads. The few cases that are too large for the compiled
elimination use the general exact inference.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.data.table import many
from leafwise.errors import AdvisedError
from leafwise.inference.exact import DEFAULT_LIMITS, Exact, Limits, TooCostly, affordable
from leafwise.kernels.questions import elimination, holes, redrawing
from leafwise.kernels.questions.routes import flatten
from leafwise.network import Network
from leafwise.workers import Workers

Codes = NDArray[Any]  # uint8 or uint16
Floats = NDArray[np.float64]
_ROOM = 2**18  # the most numbers in memory for the elimination of one case
_STREAMS = 64  # shares of the cases with separate sums, so that any number of threads gives the same total
_NANOSECONDS = 200.0  # per missing cell, roughly


class ImpossibleCase(ValueError):
    """The observed cells of a case are impossible together; `case` is its index."""

    def __init__(self, case: int, model: str = "network") -> None:
        super().__init__(case, model)  # so that it can be pickled
        self.case, self.model = case, model

    def __str__(self) -> str:
        return (
            f"what row {self.case + 1} shows is impossible under this {self.model}, so nothing can be said of its "
            f"missing cells: leave the row out, or correct it."
        )


@dataclass(frozen=True, eq=False)
class Holes:
    """A network, prepared for cases with missing cells.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.sampling import sample
    >>> network = alarm()
    >>> codes = sample(network, 100, seed=1).codes.copy()
    >>> codes[3, :50] = 9
    >>> completed = Holes(network).draw(codes, seed=1)
    >>> bool((completed[3] < 9).all()), bool((completed[3, 50:] == codes[3, 50:]).all())
    (True, True)
    """

    network: Network
    limits: Limits = DEFAULT_LIMITS
    threads: int | None = None
    room: int = _ROOM

    @cached_property
    def _model(self) -> holes.Model:
        network = self.network
        nodes = [(v, node) for v, node in enumerate(network.nodes) if node is not None]
        flat = flatten(node.graph for _, node in nodes)
        sizes = np.repeat([node.n_states for _, node in nodes], [len(node.probabilities) for _, node in nodes])
        flat.first[flat.test < 0] = np.cumsum(sizes) - sizes
        root = np.full(len(network.variables), -1, np.int32)
        root[[v for v, _ in nodes]] = flat.root
        n_states = np.array([variable.n_states for variable in network.variables], np.int64)
        by_rank = _order([(v, *node.graph.tested) for v, node in nodes], n_states)
        return holes.Model(
            n_states=n_states,
            root=root,
            test=flat.test,
            first=flat.first,
            child=flat.child,
            probability=np.concatenate([np.zeros(0), *(node.probabilities.ravel() for _, node in nodes)]),
            rank=np.argsort(by_rank),
            by_rank=by_rank,
            order=np.array(network.order(), np.int64),
        )

    def _room(self) -> holes.Room:
        return holes.new_room(self._model, self.room)

    def log_probabilities(self, codes: Codes) -> Floats:
        """The log probability of the observed cells of each case; -inf if they are impossible."""
        missing = self._missing(codes)
        out = np.empty(codes.shape[1])

        def run(begin: int, end: int) -> None:
            holes.log_probabilities(self._model, self._room(), _piece(codes, slice(begin, end)), out[begin:end])

        self._run(run, missing)
        for case in np.flatnonzero(np.isnan(out)).tolist():
            try:
                out[case] = self._exact(codes[:, case], []).log_evidence()
            except TooCostly as refusal:
                raise TooCostly(
                    f"row {case + 1} lacks {many(int(missing[:, case].sum()), 'cell')}: ",
                    refusal.args[0],
                    ", learn a network of fewer parents",
                    ", or leave such rows out with ",
                    ("missing", "drop"),
                ) from None
        return out

    def draw(self, codes: Codes, seed: int, numbers: NDArray[np.int64] | None = None) -> Codes:
        """The cases, with missing cells drawn given the observed ones; a ValueError if these are impossible.

        `numbers`, from 0 on: cases with the same number share their random numbers, which do not depend on the other
        cases.
        """
        missing = self._missing(codes)
        codes = codes.copy()
        found = np.empty(codes.shape[1])
        n_missing = missing.sum(axis=0)
        first, n_uniform = np.cumsum(n_missing) - n_missing, int(n_missing.sum())
        if numbers is not None:
            first, n_uniform = numbers * len(codes), (int(numbers.max(initial=-1)) + 1) * len(codes)
        uniform = np.random.default_rng(seed).random(n_uniform)

        def run(begin: int, end: int) -> None:
            here = slice(begin, end)
            drawn = _piece(codes, here)
            holes.draw(self._model, self._room(), drawn, uniform, first[here], found[here])
            codes[:, here] = drawn

        self._run(run, missing)
        self._check_possible(found)
        for case in np.flatnonzero(np.isnan(found)).tolist():
            unknown = np.flatnonzero(missing[:, case]).tolist()
            question = self._exact(codes[:, case], [(variable,) for variable in unknown])
            number = case if numbers is None else int(numbers[case])
            codes[unknown, case] = question.draw(1, seed + number)[:, 0]
        return codes

    def redraw(self, shown: Codes, codes: Codes, seed: int, n_sweeps: int) -> tuple[Codes, Floats]:
        """Redraw the missing cells of completed cases by Gibbs sampling.

        Also returns the mean of the distributions from which each missing cell was drawn, laid out as those of
        `marginals`.
        """
        missing = self._missing(shown)
        codes, n_missing = codes.copy(), missing.sum(axis=0)
        first = np.cumsum(n_missing) - n_missing
        n_shares = missing.T @ self._model.n_states
        shares, first_share = np.zeros(int(n_shares.sum())), np.cumsum(n_shares) - n_shares
        random = np.random.default_rng(seed)
        for _ in range(n_sweeps):
            uniform = random.random(n_missing.sum())

            def run(begin: int, end: int, uniform: Floats = uniform) -> None:
                here = slice(begin, end)
                where = first[here], shares, first_share[here]
                drawn = _piece(codes, here)
                redrawing.redraw(self._model, self._blankets, _piece(shown, here), drawn, uniform, *where)
                codes[:, here] = drawn

            self._run(run, missing)
        return codes, shares / n_sweeps

    @cached_property
    def _blankets(self) -> redrawing.Blankets:
        tested = [(v, g) for g, node in enumerate(self.network.nodes) if node is not None for v in node.graph.tested]
        of = np.bincount([v for v, _ in tested], minlength=len(self._model.n_states))
        with np.errstate(divide="ignore"):
            log_probability = np.log(self._model.probability)
        graphs = np.array([g for _, g in sorted(tested)], np.int64)
        return redrawing.Blankets(np.concatenate([[0], np.cumsum(of)]), graphs, log_probability)

    def marginals(self, codes: Codes) -> "Marginals":
        """The distribution of each missing cell given the observed ones of its case; NaN if these are impossible."""
        missing = self._missing(codes)
        cases, variables = np.nonzero(missing.T)
        sizes = self._model.n_states[variables]
        first = np.concatenate([[0], np.cumsum(sizes)])
        shares = np.zeros(int(first[-1]))
        cells = np.concatenate([[0], np.cumsum(missing.sum(axis=0))])
        found = np.empty(codes.shape[1])

        def run(begin: int, end: int) -> None:
            holes.expect(
                self._model,
                self._room(),
                _piece(codes, slice(begin, end)),
                np.zeros(0),
                shares,
                first[cells[begin:end]],
                found[begin:end],
            )

        self._run(run, missing)
        for case in np.flatnonzero(~np.isfinite(found)).tolist():
            unknown = variables[cells[case] : cells[case + 1]].tolist()
            question = self._exact(codes[:, case], [(variable,) for variable in unknown])
            found[case] = question.log_evidence()
            rows = question.distributions()[1] if found[case] > -np.inf else [np.nan]
            shares[first[cells[case]] : first[cells[case + 1]]] = np.hstack([*rows])
        return Marginals(cases, variables, shares, first, found)

    def expected_counts(self, codes: Codes) -> tuple[list[Floats | None], Floats]:
        """Expected counts of each leaf of each node by state, and the log probabilities of the cases.

        A node's counts have the shape of its probabilities.
        """
        missing = self._missing(codes)
        n_cases = codes.shape[1]
        found = np.empty(n_cases)
        ends = np.arange(_STREAMS + 1) * n_cases // _STREAMS
        counts = np.zeros((_STREAMS, len(self._model.probability)))
        nothing = np.zeros(n_cases, np.int64)

        def run(first: int, last: int) -> None:
            for k in range(first, last):
                here = slice(ends[k], ends[k + 1])
                piece, no = _piece(codes, here), np.zeros(0)
                holes.expect(self._model, self._room(), piece, counts[k], no, nothing[here], found[here])

        self._run(run, missing, ends)
        self._check_possible(found)
        total = counts.sum(axis=0)
        for case in np.flatnonzero(np.isnan(found)).tolist():
            found[case] = self._count_exactly(codes[:, case], total)
        return self._by_node(total), found

    def are_small(self, codes: Codes) -> NDArray[np.bool_]:
        """Which cases the compiled elimination has room for."""
        missing = self._missing(codes)
        found = np.empty(codes.shape[1])
        nothing = np.zeros(codes.shape[1], np.int64)

        def run(begin: int, end: int) -> None:
            here, no = slice(begin, end), np.zeros(0)
            holes.expect(self._model, self._room(), _piece(codes, here), no, no, nothing[here], found[here])

        self._run(run, missing)
        return ~np.isnan(found)

    def _missing(self, codes: Codes) -> NDArray[np.bool_]:
        missing: NDArray[np.bool_] = codes >= self._model.n_states[:, None]
        unmodelled = self._model.root < 0
        if missing[unmodelled].any():
            name = self.network.names[np.flatnonzero(unmodelled & missing.any(axis=1))[0]]
            raise AdvisedError(
                f"{name!r} is missing in some case, and the network has no distribution of it to sum over: learn all "
                "variables, without a target",
                ", or leave such cases out with ",
                ("missing", "drop"),
            )
        return missing

    def _run(self, run: Any, missing: NDArray[np.bool_], ends: NDArray[np.int64] | None = None) -> None:
        costs = missing.sum(axis=0) * _NANOSECONDS + 20.0 * len(missing)
        if ends is not None:
            costs = np.diff(np.concatenate([[0.0], np.cumsum(costs)])[ends])
        Workers(self.threads).run(run, costs)

    def _exact(self, case: Codes, targets: list[tuple[int, ...]]) -> Exact:
        shown = np.flatnonzero(case < self._model.n_states).tolist()
        weights = {v: np.eye(int(self._model.n_states[v]))[case[v]] for v in shown}
        return affordable(self.network, weights, targets, self.limits)

    def _check_possible(self, log_probabilities: Floats) -> None:
        impossible = np.flatnonzero(np.isneginf(log_probabilities))
        if len(impossible):
            raise ImpossibleCase(int(impossible[0]))

    def _count_exactly(self, case: Codes, total: Floats) -> float:
        """Add the expected counts of one case, from the joint distributions of all families."""
        nodes = [(v, node) for v, node in enumerate(self.network.nodes) if node is not None]
        question = self._exact(case, [(v, *node.graph.tested) for v, node in nodes])
        log_evidence, joints = question.distributions()
        begin = 0
        for (v, node), joint in zip(nodes, joints, strict=True):
            states = [0] * len(self.network.variables)
            for cell in np.argwhere(joint > 0):
                for variable, state in zip((v, *node.graph.tested), cell.tolist(), strict=True):
                    states[variable] = state
                total[begin + node.graph.leaf_of(states) * node.n_states + cell[0]] += joint[tuple(cell)]
            begin += node.probabilities.size
        return log_evidence

    def _by_node(self, counts: Floats) -> list[Floats | None]:
        out: list[Floats | None] = []
        begin = 0
        for node in self.network.nodes:
            out.append(None if node is None else counts[begin : begin + node.probabilities.size])
            if node is not None:
                out[-1] = counts[begin : begin + node.probabilities.size].reshape(node.probabilities.shape)
                begin += node.probabilities.size
        return out


@dataclass(frozen=True, eq=False)
class Marginals:
    """The distributions of missing cells, one after the other, case by case."""

    cases: NDArray[np.int64]  # of each missing cell
    variables: NDArray[np.int64]
    shares: Floats  # the distribution of cell k: shares[first[k] : first[k + 1]]
    first: NDArray[np.int64]
    log_probabilities: Floats  # of the observed cells of each case

    def of(self, variable: int) -> Floats:
        """The distributions of a variable, with one row for each case in which it is missing."""
        cells = np.flatnonzero(self.variables == variable)
        n_states = int(self.first[cells[0] + 1] - self.first[cells[0]]) if len(cells) else 0
        rows: Floats = self.shares[self.first[cells][:, None] + np.arange(n_states)]
        return rows


def _piece(codes: Codes, here: slice) -> Codes:
    """Some of the cases as a contiguous array: other memory layouts would be compiled separately."""
    return np.ascontiguousarray(codes[:, here])


def _order(families: list[tuple[int, ...]], n_states: NDArray[np.int64]) -> NDArray[np.int64]:
    """An elimination order for the network without evidence; its restriction to the missing cells costs no more."""
    first = np.cumsum([0, *map(len, families)])
    member = np.array([v for family in families for v in family], np.int64)
    best, least = np.zeros(0, np.int64), np.inf
    for rule in (elimination.SMALLEST, elimination.FEWEST_JOINED):
        order = np.empty(len(n_states), np.int64)
        log_operations = elimination.eliminate(first, member, np.log(n_states), rule, np.ones(len(n_states)), order)
        if log_operations < least:
            best, least = order, log_operations
    return best
