"""The leaves of all nodes under search: their cases, histograms and prices, and the log of the steps that led here.

Compiled code searches (`kernels/frontier`), with all threads, until it needs something that it has not: room, or what
the prior has to say of new leaves, which depends on where they are. Python gives it that, and it goes on.
"""

import math
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise import dag
from leafwise.constraints import ParentRules
from leafwise.counters.counter import EVERYTHING, Counter
from leafwise.decision_graph import DecisionGraph
from leafwise.kernels import ancestry, children, drawing, frontier, gains, nodes
from leafwise.kernels.arrays import Layout, grown
from leafwise.priors import ParameterPrior, Uniform
from leafwise.regions import Region, flags_of, set_of
from leafwise.search.growth import Deletion, Drawing, usual_groups
from leafwise.search.histograms import Histograms
from leafwise.search.planting import sets_of_leaves
from leafwise.workers import Workers

Integers = NDArray[np.int64]

_AHEAD = 0.7  # nodes run ahead as long as their steps gain this share of the next step's gain
_ROOM = 8192  # leaves to begin with; memory is not touched before it is used
_TABLE_COST, _EXPONENT_COST = 8.0, 150.0  # nanoseconds to price one state of a candidate


class Leaves:
    """All leaves that are, those made ahead, and the log."""

    def __init__(
        self,
        counter: Counter,
        workers: Workers,
        prior: ParameterPrior,
        operators: str,
        rules: nodes.Rules,
        parents: ParentRules,
        layout: Layout,
        targets: Integers,
        log_kappa: float,
    ) -> None:
        self.rules, self.targets = rules, targets
        self._counter, self._workers, self._prior, self._parents = counter, workers, prior, parents
        n_states = layout.n_states
        n = len(n_states)
        self._layout = layout
        self.records = np.empty(max(4 * n, _ROOM), gains.LEAF)
        self.nodes = np.zeros(n, nodes.NODE)
        for field in ("head", "tail", "split_leaf", "merge_leaf", "merged", "first_pending", "last_pending"):
            self.nodes[field] = -1
        self.nodes["n_states"] = n_states
        self.nodes["room"] = rules.most_children
        self.histograms = Histograms(self._layout, self.nodes)
        self._allowed = parents.allowed.copy()
        self._log_factorial = _log_factorials(counter.n_cases + int(n_states.max()))
        self._kinds = (log_kappa, "C" in operators, "B" in operators)
        self.is_parent = parents.is_parent.copy()
        self._above = np.zeros((n, -(-n // 64)), np.uint64)
        self._below = np.zeros_like(self._above)
        self._spare_bits = np.zeros((2, self._above.shape[1]), np.uint64)
        self._next_gains, self._next_tests = np.zeros((2, n)), np.full(n, -1)
        self._most_gains, self._is_doubted = np.zeros((2, -(-n // nodes.BLOCK))), np.zeros(n, np.uint8)
        self._log = np.zeros(0, nodes.STEP)
        self._committed = np.zeros(0, np.int64)
        self.regions: dict[int, Region] = {}
        self._groups = np.zeros(0, np.int64)  # complete splits of leaves where some state cannot occur
        self._exponents = np.zeros(0)
        self._n_groups = self._n_exponents = 0
        self._dropped = np.empty(len(self.records), np.int64)
        self._made = np.empty((3, len(self.records)), np.int64)
        self._n_forgotten = 0
        self._totals = np.zeros(nodes.N_MERGED + 1, np.int64)
        self._wanted = np.zeros(children.FIRST_WANTED_SET + int(n_states.max()), np.int64)
        self._queue, self._least = np.zeros(n, np.int64), np.zeros(2)
        self._crew, self._owners = np.zeros(frontier.CREW, np.int64), np.zeros(n, np.int64)
        self._priced = True  # since the nodes last looked for their best leaves

    @property
    def n_steps(self) -> int:
        return int(self._totals[nodes.N_COMMITTED])

    @property
    def n_merges(self) -> int:
        return int((self._log["other"][self._committed[: self.n_steps]] >= 0).sum())

    @property
    def n_ancestors(self) -> Integers:
        """How many ancestors each variable has."""
        n: Integers = np.bitwise_count(self._above).sum(axis=1, dtype=np.int64)
        return n

    @property
    def log_likelihood(self) -> float:
        """Of all leaves, before the first step."""
        return math.fsum(self.records["log_likelihood"][: self._n_planted])

    def steps(self, begin: int, end: int) -> NDArray[np.void]:
        """The committed steps from one to another."""
        return self._log.take(self._committed[begin:end])  # in a twentieth of the time that [...] takes

    def gained(self, begin: int, end: int) -> NDArray[np.float64]:
        """What the committed steps from one to another gained."""
        return self._log["gain"][self._committed[begin:end]]

    def draw(self, start: drawing.Start, n_steps: int, deletions: list[Deletion]) -> Drawing:
        """The graphs after so many steps, some parents having been deleted on the way."""
        leaves = self.records[: self._totals[nodes.N_LEAVES]]
        return Drawing.of(start, self.steps(0, n_steps), deletions, leaves, self._groups, self._layout.n_states)

    def groups(self, leaf: int, variable: int) -> tuple[int, ...] | None:
        """To which child each state goes that a leaf's split tests; None: as usual."""
        at = int(self.records[leaf]["groups"])
        return tuple(self._groups[at : at + self._layout.n_states[variable]].tolist()) if at >= 0 else None

    def plant(self, graphs: Mapping[int, DecisionGraph], others: Integers) -> None:
        """Begin with these graphs, and targets with a leaf alone; all leaves are the first records, in that order."""
        pieces = [
            (target, *piece)
            for target, graph in graphs.items()
            for piece in sets_of_leaves(target, graph, self._counter, self._layout, self.rules.weighs)
        ]
        targets = np.append(np.array([target for target, _, _ in pieces], np.int64), others)
        self._wanted[: children.FIRST_WANTED_SET] = (
            len(targets),
            self.histograms.pool.sizes[self.nodes["size_class"][targets]].sum(),
            self.nodes["n_states"][targets].sum(),
        )
        self._make_room()
        cases = np.append(np.array([cases for _, cases, _ in pieces], np.int64), np.full(len(others), EVERYTHING))
        children.plant(targets, cases, self._frontier())
        if self._parents.is_parent.any():
            ancestry.add_arcs(np.argwhere(self._parents.is_parent)[:, ::-1], self._frontier())
        self._n_planted, self._is_priced = len(targets), False
        if self.rules.weighs:
            regions = [region for _, _, region in pieces]
            self.regions = dict(enumerate(regions + [Region.everything()] * len(others)))
        n_leaves = self.nodes["n_committed_leaves"] = self.nodes["n_leaves"]
        self.nodes["room"] = np.clip(self.rules.most_leaves - n_leaves + 1, 0, self.rules.most_children)

    def advance(self, n_steps: int, seconds: float) -> int:
        """Take steps until there are so many in all, or for so long. FULL, FINISHED or MERGED."""
        until = time.perf_counter() + seconds
        if n_steps > len(self._committed):
            self._committed = grown(self._committed, n_steps)
        while True:
            self._weigh()
            self._make_room()
            status = self._run(n_steps)
            if status != nodes.HUNGRY:
                return status
            if time.perf_counter() > until:
                return nodes.FULL

    def price_planted(self) -> None:
        """Price the leaves that it began with, as the first step would; before that nobody may ask about leaves."""
        if self.n_steps == 0 and not self._is_priced:
            self.advance(0, math.inf)
            self._is_priced = True

    def counts(self, records: Integers) -> Integers:
        """The target's counts in each of these leaves, of targets with the same number of states."""
        r = int(self.nodes[self.records[records[0]]["target"]]["n_states"])
        counts: Integers = self.histograms.counts[self.records["counts"][records][:, None] + np.arange(r)]
        return counts

    def close(self) -> None:
        """Release all sets of cases; no steps can be taken after this. What was found can still be asked for."""
        self.price_planted()
        cases = self.records["cases"][: self._totals[nodes.N_LEAVES]]
        self._counter.release(cases[cases > 0])
        cases[:] = 0

    def delete_parents(self, target: int, variables: list[int]) -> None:
        """Take arcs away: what they ruled out may come back. If this is interrupted, do it again."""
        is_parent, allowed = self.is_parent.copy(), self._parents.allowed.copy()
        is_parent[target, variables] = 0
        n_parents = is_parent.sum(axis=1, dtype=np.int64)
        above = dag.ancestor_matrix(dag.parent_lists(is_parent))
        full = n_parents >= self.rules.most_parents
        allowed[full] &= is_parent[full]
        was_allowed = self._allowed & ~_matrix(self._below)
        self._priced = True
        for child in np.flatnonzero((allowed & ~above.T > was_allowed).any(axis=1)).tolist():
            if self.nodes[child]["head"] >= 0:
                frontier.start_afresh(child, self._frontier())
        self._allowed[:], self._above[:], self._below[:] = allowed, _packed(above), _packed(above.T)
        self.nodes["n_parents"] = n_parents
        self.is_parent[:] = is_parent  # last: before that, who looks finds the arcs still there

    def _run(self, n_steps: int) -> int:
        """Let all threads search until the one that leads must look up."""
        self._crew = crew = np.zeros(frontier.CREW, np.int64)  # a new one: nobody who is late may join the next run
        self._owners = np.zeros(len(self.nodes), np.int64)
        crew[nodes.NEXT] = frontier.CLOSED
        priced, state = self._priced, self._frontier()

        def search(leads: bool) -> int:
            return frontier.advance(leads, n_steps, _AHEAD, priced, state)

        try:
            is_long = self.n_steps == 0 or n_steps > self.n_steps + 1
            status = self._workers.together(search) if is_long else search(True)
        finally:  # whatever happens, an interrupt even: let the others go
            crew[nodes.OVER] = 1
        self._priced = False
        return status

    def _pricing(self) -> gains.Pricing:
        return gains.Pricing(
            self._layout,
            self._allowed,
            self._below,
            self.nodes,
            self.histograms.counts,
            self._log_factorial,
            *self._kinds,
        )

    def _frontier(self) -> nodes.Frontier:
        return nodes.Frontier(
            self.records,
            self.nodes,
            self.targets,
            self.histograms.pool,
            self._counter.cases,
            self._pricing(),
            self._exponents,
            self._groups,
            self._above,
            self._spare_bits,
            self.is_parent,
            self._log,
            self._committed,
            self._dropped,
            self._made,
            self._totals,
            self._wanted,
            self._next_gains,
            self._most_gains,
            self._next_tests,
            self._is_doubted,
            self._owners,
            self._queue,
            self._least,
            self._crew,
            self.rules,
        )

    def _make_room(self) -> None:
        """Make room where it was found to be short."""
        n_leaves, n_cells, n_counts = self._wanted[: children.FIRST_WANTED_SET].tolist()
        if self._totals[nodes.N_LEAVES] + n_leaves > len(self.records):
            records = grown(self.records, int(self._totals[nodes.N_LEAVES]) + n_leaves, np.empty)
            self._dropped = grown(self._dropped, len(records), np.empty)
            self._made = np.empty((3, len(records)), np.int64)
            self.records = records  # last: an interrupt must not leave more records than the others have room for
        if self._totals[nodes.N_STEPS] + frontier.SPARE_STEPS > len(self._log):
            self._log = grown(self._log, len(self._log) + 8 * frontier.SPARE_STEPS, np.empty)
        self.histograms.make_room(n_cells, n_counts)
        self._counter.make_room(self._wanted[children.FIRST_WANTED_SET :][:n_leaves])
        self._wanted[:] = 0

    def _weigh(self) -> None:
        """Price what was made and waits for weights; forget what was dropped."""
        if not self.rules.weighs:
            return
        totals = self._totals
        stale, split, merged = (self._made[row, : totals[nodes.N_STALE + row]] for row in range(3))
        new = [stale, *(self._cut_region(at) for at in split.tolist())]
        for target in merged.tolist():
            node = self.nodes[target]
            one, two, both = (int(node[field]) for field in ("merged_first", "merged_second", "merged"))
            self.regions[both] = self.regions[one].join(self.regions[two])
        batch = np.concatenate([*new, self.nodes["merged"][merged]])
        if len(batch):
            self._price(batch)
        totals[nodes.N_STALE : nodes.N_MERGED + 1] = 0  # only now: an interrupt must not leave leaves without prices
        self._free_spent(batch)
        for at in self._dropped[self._n_forgotten : totals[nodes.N_DROPPED]].tolist():
            self.regions.pop(at, None)
        self._n_forgotten = int(totals[nodes.N_DROPPED])

    def _free_spent(self, batch: Integers) -> None:
        """Where there are plenty of histograms, give back those that may not be needed again."""
        if self.histograms.are_plenty:
            frontier.free_spent(batch, self._frontier())

    def _cut_region(self, at: int) -> Integers:
        """Where the children of a leaf's split are; their records."""
        leaf = self.records[at]
        variable, first, n = int(leaf["variable"]), int(leaf["first_child"]), int(leaf["n_children"])
        r = int(self._layout.n_states[variable])
        group = np.array(self.groups(at, variable) or usual_groups(r, int(leaf["state"])))
        for child in range(n):
            self.regions[first + child] = self.regions[at].cut(variable, set_of(group == child), r)
        return np.arange(first, first + n)

    def _price(self, batch: Integers) -> None:
        """Find the best split of each leaf."""
        weights, at = self._weights(batch)
        is_uniform = isinstance(self._prior, Uniform)
        kernel = gains.price_all_by_table if is_uniform else gains.price_all_by_exponents
        cells, pricing, records, layout = self.histograms.cells, self._pricing(), self.records, self._layout
        targets = records["target"][batch]
        n_cells = layout.n_rows[layout.of_target[targets]] * layout.n_states[targets]
        self._workers.run(
            lambda begin, end: kernel(batch, begin, end, records, cells, weights, at, pricing),
            (_TABLE_COST if is_uniform else _EXPONENT_COST) * n_cells,
        )
        self._priced = True
        self._note_groups(batch)

    def _note_groups(self, batch: Integers) -> None:
        """Which child each state goes to, for complete splits where some state cannot occur: these go with the last."""
        own = self.records[batch]
        is_odd = (own["gain"] > 0) & (own["state"] == gains.COMPLETE)
        is_odd &= own["n_children"] < self._layout.n_states[own["variable"]]
        self.records["groups"][batch] = -1
        for at in batch[is_odd].tolist():
            variable = int(self.records[at]["variable"])
            r = int(self._layout.n_states[variable])
            flags = flags_of(self.regions[at].possible(variable, r), r).astype(np.int64)
            group = np.where(flags, np.cumsum(flags) - 1, flags.sum() - 1)
            end = self._n_groups + r
            if end > len(self._groups):
                self._groups = grown(self._groups, end)
            self._groups[self._n_groups : end] = group
            self.records[at]["groups"], self._n_groups = self._n_groups, end

    def _weights(self, batch: Integers) -> tuple[NDArray[Any], Integers]:
        """What the prior has to say of each leaf in the batch, one behind the other, and where each begins."""
        regions = [self.regions[at] for at in batch.tolist()]
        targets = self.records["target"][batch].tolist()
        if isinstance(self._prior, Uniform):
            rows: list[NDArray[Any]] = [
                self._flags(target, region) for target, region in zip(targets, regions, strict=True)
            ]
        else:
            rows = [
                self._prior.exponents(target, region, self._layout)
                for target, region in zip(targets, regions, strict=True)
            ]
            self._keep_exponents(batch, targets, rows)
        return np.concatenate(rows), np.cumsum([0, *map(len, rows)])

    def _flags(self, target: int, region: Region) -> NDArray[np.uint8]:
        """Which states of the target's candidates can occur in the region."""
        layout = self._layout
        flags = np.ones(layout.n_rows[layout.of_target[target]], np.uint8)
        tested = region.tested()
        for variable, rows in zip(tested, layout.rows(target, tested), strict=True):
            r = int(layout.n_states[variable])
            flags[rows] = flags_of(region.possible(variable, r), r)
        return flags

    def _keep_exponents(self, batch: Integers, targets: list[int], rows: list[NDArray[np.float64]]) -> None:
        """The leaves' own exponents, for merges."""
        n_states = self._layout.n_states
        own = [row[len(row) - n_states[target] :] for target, row in zip(targets, rows, strict=True)]
        sizes = np.array([len(part) for part in own])
        self.records["exponents"][batch] = self._n_exponents + np.cumsum(sizes) - sizes
        end = self._n_exponents + int(sizes.sum())
        if end > len(self._exponents):
            self._exponents = grown(self._exponents, end)
        self._exponents[self._n_exponents : end] = np.concatenate(own)
        self._n_exponents = end


@lru_cache(1)
def _log_factorials(n: int) -> NDArray[np.float64]:
    """A table that the next search will want, too."""
    return gains.log_factorials(n)


def _packed(matrix: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Each row as bits of words."""
    packed = np.packbits(matrix, axis=1, bitorder="little")
    rows = np.zeros((len(matrix), -(-matrix.shape[1] // 64) * 8), np.uint8)
    rows[:, : packed.shape[1]] = packed
    return rows.view(np.uint64)


def _matrix(rows: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Undo `_packed` for a square matrix."""
    return np.unpackbits(rows.view(np.uint8), axis=1, count=len(rows), bitorder="little").view(np.bool_)
