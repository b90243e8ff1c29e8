"""The complete tables of all nodes under search: their cases are held by a counter, their counts and prices here.

A complete table is a decision graph whose every leaf is split alike. So the histograms of a node's configurations price
all arcs into it at once; adding one cuts every configuration, of whose parts the largest follows by subtraction; and
deleting one needs no cases, since configurations that differ in one parent only add up.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leafwise.counters.counter import EVERYTHING, Counter
from leafwise.kernels import tables
from leafwise.kernels.arrays import Layout
from leafwise.priors import ParameterPrior, Uniform
from leafwise.regions import Region
from leafwise.search.histograms import make_layout
from leafwise.workers import Workers

Integers = NDArray[np.int64]

_MOST_KEPT = 2**27  # cells of histograms of all nodes together: half a gigabyte
_AT_ONCE = 2**22  # cells of histograms that are counted, priced and forgotten
_PRICE_COST = 2.0  # nanoseconds for one cell


@dataclass(slots=True)
class TableNode:
    """One node: its parents, in the order of the digits in its configurations' codes, and these."""

    parents: tuple[int, ...]
    configurations: NDArray[np.void]  # kernels.tables.CONFIGURATION
    counts: Integers  # for each: the target's counts
    histograms: NDArray[np.int32]  # those that are kept, one row each


Memory = list[tuple[int, TableNode, int, int, float]]


class TableNodes:
    """All nodes, and the gains of adding and of deleting any arc."""

    def __init__(
        self,
        counter: Counter,
        workers: Workers,
        prior: ParameterPrior,
        log_kappa: float,
        candidates: NDArray[np.uint8],  # candidates[child, parent]: may the arc ever be there?
        n_states: Integers,
        targets: Integers,
        most_parents: int,
    ) -> None:
        self._counter, self._workers, self._most_parents = counter, workers, most_parents
        self.n_states, n = n_states, len(n_states)
        layout = make_layout(candidates, n_states, targets)
        kind_states, kind = np.unique(n_states, return_inverse=True)
        whole = [prior.leaf_exponents(target, Region.everything(), n_states)[0] for target in range(n)]
        self.prices = tables.Prices(
            layout,
            kind,
            kind_states,
            np.array(whole),
            not isinstance(prior, Uniform),
            log_kappa,
            np.full((n, n), -np.inf),
            np.full((n, n), -np.inf),
            np.full(n, -np.inf),
            np.zeros(n),
            np.ones(n, np.int64),
        )
        self.n_parents = np.zeros(n, np.int64)
        self._nodes: dict[int, TableNode] = {}
        self._candidates = [layout.variables[layout.start[k] : layout.start[k + 1]] for k in layout.of_target.tolist()]
        n_cells = (layout.n_rows[layout.of_target] + 1) * n_states
        self._n_cells = n_cells.tolist()
        self._most_kept = (_MOST_KEPT // len(targets) // n_cells).tolist()  # histograms of each node
        self._layouts: dict[int, Layout] = {}  # of one variable each

    def build(self, parents: dict[int, tuple[int, ...]]) -> None:
        """Begin anew, with these parents of these nodes."""
        for target in parents:
            self._nodes[target] = self._root(target)
        self._plant([target for target, own in parents.items() if not own])
        for target, own in parents.items():
            for parent in own[:-1]:
                self._split(target, parent, most_kept=0)
            if own:
                self.add(target, own[-1])

    def add(self, target: int, parent: int) -> None:
        """Add an arc."""
        is_full = bool(self.n_parents[target] + 1 >= self._most_parents)
        old = self._nodes[target].histograms
        before, split = self._split(target, parent, 0 if is_full else self._most_kept[target])
        sums = np.zeros(len(self._candidates[target]))
        if not is_full:
            self._count_split(target, before, split, old, sums)
        self._settle(target, sums, is_full)

    def delete(self, target: int, parent: int) -> None:
        """Delete an arc. The cases are cut again from the start: sets only join in pairs."""
        node = self._nodes.pop(target)
        own = node.configurations["cases"]
        self._counter.release(own[own != EVERYTHING])
        self.build({target: tuple(p for p in node.parents if p != parent)})

    def remember(self, targets: tuple[int, ...]) -> Memory:
        """These nodes as they are, to be shown again once the search is over: their cases may be gone by then."""
        prices = self.prices
        return [
            (t, replace(self._nodes[t]), int(self.n_parents[t]), int(prices.n_rows[t]), float(prices.log_likelihood[t]))
            for t in targets
        ]

    def recall(self, memory: Memory) -> None:
        """Show nodes as they were."""
        for target, node, n_parents, n_rows, log_likelihood in memory:
            self._nodes[target] = node
            self.n_parents[target], self.prices.n_rows[target] = n_parents, n_rows
            self.prices.log_likelihood[target] = log_likelihood

    def table(self, target: int) -> tuple[tuple[int, ...], Integers]:
        """The node's parents, sorted, and the counts of all their configurations, the last parent varying fastest."""
        node = self._nodes[target]
        order = sorted(node.parents)
        code, row = node.configurations["code"].copy(), np.zeros(len(node.counts), np.int64)
        digits = {}
        for parent in reversed(node.parents):
            code, digits[parent] = np.divmod(code, self.n_states[parent])
        for parent in order:
            row = row * self.n_states[parent] + digits[parent]
        counts = np.zeros((int(self.prices.n_rows[target]), int(self.n_states[target])), np.int64)
        counts[row] = node.counts
        return tuple(order), counts

    def exponent(self, target: int) -> float:
        """That of every cell in a node's table."""
        whole = float(self.prices.exponent[target])
        return whole / int(self.prices.n_rows[target]) if self.prices.divides else whole

    def _root(self, target: int) -> TableNode:
        """A node without parents, not counted yet."""
        whole = np.zeros(1, tables.CONFIGURATION)
        whole["size"], whole["cases"], whole["histogram"] = self._counter.n_cases, EVERYTHING, -1
        self.n_parents[target], self.prices.n_rows[target] = 0, 1
        no_counts = np.zeros((1, int(self.n_states[target])), np.int64)
        return TableNode((), whole, no_counts, np.empty((0, self._n_cells[target]), np.int32))

    def _plant(self, targets: list[int]) -> None:
        """Count and price nodes without parents, many at a time."""
        while targets:
            ends = np.cumsum([self._n_cells[target] for target in targets])
            n = max(1, int(np.searchsorted(ends, _AT_ONCE)))
            cells = np.empty(ends[n - 1], np.int32)
            where = np.append(0, ends[: n - 1])
            now, targets = targets[:n], targets[n:]
            self._counter.count(np.zeros(n, np.int64), np.array(now), where, cells, self.prices.layout)
            for k, target in enumerate(now):
                self._settle_root(target, cells[where[k] : ends[k]])

    def _settle_root(self, target: int, histogram: NDArray[np.int32]) -> None:
        node = self._nodes[target]
        node.counts[0] = histogram[len(histogram) - int(self.n_states[target]) :]
        node.histograms = histogram.reshape(1, -1)
        node.configurations["histogram"] = 0
        sums = np.zeros(len(self._candidates[target]))
        if self._counter.n_cases > 1:
            self._price(target, np.zeros(1, np.int64), histogram, sums)
        self._settle(target, sums, self._most_parents == 0)

    def _split(self, target: int, parent: int, most_kept: int) -> tuple[NDArray[np.void], tables.Split]:
        """Cut every configuration by one more parent: the configurations before, and what becomes of them."""
        node = self._nodes[target]
        before, r = node.configurations, int(self.n_states[parent])
        split = tables.make_split(len(before), r, int(self.n_states[target]), self._counter.n_cases)
        cross = self._cross(target, parent)
        tables.plan_split(before, cross, r, self._n_cells[target], most_kept, split)
        totals = split.totals.tolist()
        after, n_cuts = split.after[: totals[tables.N_AFTER]], totals[tables.N_CUTS]
        if n_cuts:
            cuts, sizes = split.cuts[:n_cuts], split.sizes[: totals[tables.N_PARTS]]
            variables = np.full(n_cuts, parent)
            first = self._counter.cut(cuts, variables, split.n_parts[:n_cuts], split.groups[: n_cuts * r], sizes)
            after["cases"][split.parts[: len(sizes)]] = np.arange(first, first + len(sizes))
            self._counter.release(cuts[cuts != EVERYTHING])
        node.parents += (parent,)
        node.configurations, node.counts = after, split.counts[: len(after)]
        node.histograms = np.empty((totals[tables.N_KEPT], self._n_cells[target]), np.int32)
        self.n_parents[target] += 1
        self.prices.n_rows[target] *= r
        return before, split

    def _cross(self, target: int, parent: int) -> NDArray[np.int32]:
        """The target's counts for each state of a parent in each configuration, from its histogram where it is kept."""
        node = self._nodes[target]
        which = node.configurations["histogram"]
        rows, n_classes = self.prices.layout.rows(target, [parent])[0], int(self.n_states[target])
        columns = slice(rows.start * n_classes, rows.stop * n_classes)
        if which.min() >= 0:
            return node.histograms[which, columns]
        cross = np.empty((len(which), columns.stop - columns.start), np.int32)
        is_kept = which >= 0
        cross[is_kept] = node.histograms[which[is_kept], columns]
        cross[~is_kept] = self._count_cross(target, node.configurations["cases"][~is_kept], parent)
        return cross

    def _count_cross(self, target: int, cases: Integers, parent: int) -> NDArray[np.int32]:
        """The same for some sets of cases, by counting."""
        n, r = len(cases), int(self.n_states[parent])
        if parent not in self._layouts:
            of_target, none = np.zeros(len(self.n_states), np.int64), np.zeros(1, np.int64)
            self._layouts[parent] = Layout(of_target, np.array([0, 1]), none + parent, none, none + r, self.n_states)
        cells = np.empty((n, (r + 1) * int(self.n_states[target])), np.int32)
        where = np.arange(0, cells.size, cells.shape[1])
        self._counter.count(cases, np.full(n, target), where, cells.reshape(-1), self._layouts[parent])
        return cells[:, : r * int(self.n_states[target])]

    def _count_split(
        self,
        target: int,
        before: NDArray[np.void],
        split: tables.Split,
        old: NDArray[np.int32],
        sums: NDArray[np.float64],
    ) -> None:
        """The histograms of all new configurations, from the old ones where that is quicker; price them."""
        node = self._nodes[target]
        kept, after = node.histograms, node.configurations
        totals = split.totals.tolist()
        copied, counted = split.copied[: totals[tables.N_COPIED]], split.counted[: totals[tables.N_COUNTED]]
        if len(copied):
            kept[after["histogram"][copied]] = old[before["histogram"][after["origin"][copied]]]
        if len(counted):
            where = after["histogram"][counted] * self._n_cells[target]
            self._count(target, counted, where, kept.reshape(-1))
        small = split.small[: totals[tables.N_SMALL]]
        at_once = max(1, _AT_ONCE // self._n_cells[target])
        for begin in range(0, len(small), at_once):
            share = small[begin : begin + at_once]
            where = np.arange(0, len(share) * self._n_cells[target], self._n_cells[target])
            cells = np.empty(len(share) * self._n_cells[target], np.int32)
            self._count(target, share, where, cells)
            self._price(target, where[after["size"][share] > 1], cells, sums)
        self._price(target, split.priced[: totals[tables.N_PRICED]], kept.reshape(-1), sums)

    def _count(self, target: int, which: Integers, where: Integers, cells: NDArray[np.int32]) -> None:
        """Count these configurations of a node, and subtract them from what their siblings copied."""
        node = self._nodes[target]
        of = node.configurations["cases"][which]
        self._counter.count(of, np.full(len(which), target), where, cells, self.prices.layout)
        tables.subtract(which, where, cells, node.configurations, node.histograms)

    def _price(self, target: int, where: Integers, cells: NDArray[np.int32], sums: NDArray[np.float64]) -> None:
        """Add what these histograms say to the log likelihoods after adding each candidate."""
        if len(where):
            cost = _PRICE_COST * len(where) * int(self.n_states[target])
            costs = (self.n_states[self._candidates[target]] * cost).astype(np.float64, copy=False)
            self._workers.run(
                lambda begin, end: tables.price_additions(begin, end, where, cells, target, self.prices, sums), costs
            )

    def _settle(self, target: int, sums: NDArray[np.float64], is_full: bool) -> None:
        node = self._nodes[target]
        parents = np.array(node.parents, np.int64)
        tables.settle(target, parents, node.configurations, node.counts, is_full, self.prices, sums)
