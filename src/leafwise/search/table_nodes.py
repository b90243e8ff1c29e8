"""The complete tables of nodes under search: their cases are held by a counter, their counts and prices here.

A complete table is a decision graph whose every leaf is split alike. So the histograms of a node's configurations price
all arcs into it at once, and adding one cuts every configuration, of whose parts the largest follows by subtraction.
What was found out about a node with certain parents is kept: searches come back to them again and again.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leafwise.counters.counter import EVERYTHING, Counter
from leafwise.kernels import configurations, tables
from leafwise.kernels.arrays import Layout, grown
from leafwise.priors import ParameterPrior, Uniform
from leafwise.regions import Region
from leafwise.search.histograms import make_layout

Integers = NDArray[np.int64]
Parents = frozenset[int]

_MOST_KEPT = 2**26  # cells of histograms and numbers of cases: a quarter of a gigabyte
_AT_ONCE = 2**22  # cells of histograms that are counted, priced and forgotten
_NONE = np.empty((0, 0), np.int32)


@dataclass(frozen=True, slots=True)
class TableNode:
    """One node: its parents, in the order of the digits in its configurations' codes, and these."""

    parents: tuple[int, ...]
    configurations: NDArray[np.void]  # kernels.configurations.CONFIGURATION
    counts: Integers  # for each: the target's counts
    histograms: NDArray[np.int32]  # those that are kept, one row each


class TableNodes:
    """Nodes with any parents, and the gains of adding and of deleting any arc."""

    def __init__(
        self,
        counter: Counter,
        prior: ParameterPrior,
        log_kappa: float,
        candidates: NDArray[np.uint8],  # candidates[child, parent]: may the arc ever be there?
        n_states: Integers,
        targets: Integers,
        most_parents: int,
    ) -> None:
        self._counter, self._most_parents = counter, most_parents
        self.n_states, self._n_states, n = n_states, n_states.tolist(), len(n_states)
        layout = make_layout(candidates, n_states, targets)
        kind_states, kind = np.unique(n_states, return_inverse=True)
        whole = Region.everything()
        exponents = np.array([prior.leaf_exponents(target, whole, n_states)[0] for target in range(n)])
        self.is_fair = not isinstance(prior, Uniform)  # to networks that differ in directions that do not matter
        self._exchanges = self.is_fair and most_parents > 1 and int(candidates.sum()) == n * (n - 1)
        self._prices = tables.Prices(layout, kind, kind_states, exponents, self.is_fair, log_kappa)
        no_gains, no_numbers = np.empty((2 * n, n)), np.empty(2 * n)
        self.book = tables.Book(no_gains, no_gains.copy(), no_numbers, no_numbers.copy(), np.empty(2 * n, np.int64))
        self._rows: dict[tuple[int, Parents], int] = {}  # of the book
        self._nodes: dict[tuple[int, Parents], TableNode] = {}
        self._cases: dict[tuple[int, ...], Integers] = {}  # sets for the configurations of parents in this order
        self._n_kept = 0
        self._candidates = [layout.variables[layout.start[k] : layout.start[k + 1]] for k in layout.of_target.tolist()]
        bases = np.full((len(layout.start) - 1, n), -1)
        for which in range(len(layout.start) - 1):
            entries = slice(layout.start[which], layout.start[which + 1])
            bases[which, layout.variables[entries]] = layout.bases[entries]
        self._bases = bases[layout.of_target].tolist()
        n_cells = (layout.n_rows[layout.of_target] + 1) * n_states
        self._n_cells = n_cells.tolist()
        self._most_kept = (_MOST_KEPT // len(targets) // n_cells).tolist()  # histograms of a node
        self._layouts: dict[int, Layout] = {}  # of one variable each
        self._split_room = configurations.make_split(64, int(n_states.max()))
        self._plant(targets.tolist())

    def row(self, target: int, parents: Parents) -> int:
        """The row of the book for a node with these parents."""
        row = self._rows.get((target, parents))
        if row is None and self._exchanges and len(parents) == 1:
            row = self._exchange(target, *parents)
        if row is None:
            if self._n_kept > _MOST_KEPT:
                self._forget()
            self._node(target, parents)
            row = self._rows[target, parents]
        return row

    def _exchange(self, target: int, parent: int) -> int | None:
        """The same for one parent, without counting, if the row for the arc turned round is there."""
        turned = self._rows.get((parent, frozenset((target,))))
        if turned is None:
            return None
        row = self._new_row(target, frozenset((parent,)))
        alone, alone_parent = (self._rows[one, frozenset()] for one in (target, parent))
        tables.exchange(row, target, parent, turned, alone, alone_parent, self._prices, self.book)
        return row

    def _new_row(self, target: int, parents: Parents) -> int:
        """Where to write a row; where it is, if there is one."""
        row = self._rows.setdefault((target, parents), len(self._rows))
        if row == len(self.book.bounds):
            self.book = tables.Book(*(grown(array, row + 1) for array in self.book))
        return row

    def table(self, target: int, parents: Parents) -> tuple[tuple[int, ...], Integers]:
        """The parents, sorted, and the target's counts in all their configurations, the last parent varying fastest."""
        node = self._node(target, parents)
        order = sorted(node.parents)
        code, row = node.configurations["code"].copy(), np.zeros(len(node.counts), np.int64)
        digits = {}
        for parent in reversed(node.parents):
            code, digits[parent] = np.divmod(code, self.n_states[parent])
        for parent in order:
            row = row * self.n_states[parent] + digits[parent]
        counts = np.zeros((int(self.n_states[order].prod()), self._n_states[target]), np.int64)
        counts[row] = node.counts
        return tuple(order), counts

    def exponent(self, target: int, n_rows: int) -> float:
        """That of every cell in a node's table."""
        return float(self._prices.exponent[target]) / (n_rows if self.is_fair else 1)

    def _forget(self) -> None:
        """Give back all cases and histograms but those of nodes without parents; the book stays as it is."""
        gone = np.unique(np.concatenate([*self._cases.values()]))
        self._counter.release(gone[gone != EVERYTHING])
        self._cases = {}
        self._nodes = {key: node for key, node in self._nodes.items() if not node.parents}
        self._n_kept = 0

    def _node(self, target: int, parents: Parents) -> TableNode:
        """The node with these parents, from one with all but one of them."""
        node = self._nodes.get((target, parents))
        if node is None:
            for last in sorted(parents):
                if (target, parents - {last}) in self._nodes:
                    break
            node = self._extend(target, self._node(target, parents - {last}), last)
            self._nodes[target, parents] = node
            self._n_kept += node.histograms.size + 2 * self._counter.n_cases
        return node

    def _plant(self, targets: list[int]) -> None:
        """Count and price nodes without parents, many at a time."""
        everything = np.zeros(1, configurations.CONFIGURATION)
        everything["size"], everything["cases"] = self._counter.n_cases, EVERYTHING
        while targets:
            ends = np.cumsum([self._n_cells[target] for target in targets])
            n = max(1, int(np.searchsorted(ends, _AT_ONCE)))
            cells = np.empty(ends[n - 1], np.int32)
            where = np.append(0, ends[: n - 1])
            now, targets = targets[:n], targets[n:]
            self._counter.count(np.zeros(n, np.int64), np.array(now), where, cells, self._prices.layout)
            for k, target in enumerate(now):
                self._nodes[target, frozenset()] = self._root(target, cells[where[k] : ends[k]], everything)

    def _root(self, target: int, histogram: NDArray[np.int32], everything: NDArray[np.void]) -> TableNode:
        counts = histogram[len(histogram) - self._n_states[target] :].astype(np.int64).reshape(1, -1)
        node = TableNode((), everything, counts, histogram.reshape(1, -1))
        self._settle(target, node, np.zeros(int(self._counter.n_cases > 1), np.int64), self._no_sums(target, 0))
        return node

    def _no_sums(self, target: int, n_parents: int) -> NDArray[np.float64]:
        """For each candidate, nothing so far; no candidates where there are enough parents."""
        return np.zeros(len(self._candidates[target]) if n_parents < self._most_parents else 0)

    def _extend(self, target: int, old: TableNode, parent: int) -> TableNode:
        """Split every configuration by one more parent; count, and price."""
        parents, sums = (*old.parents, parent), self._no_sums(target, len(old.parents) + 1)
        r, n_classes, n_cells = self._n_states[parent], self._n_states[target], self._n_cells[target]
        split = self._room((len(old.configurations) + 1) * r)
        begin, others = self._where_counted(target, old, parent)
        most_kept = self._most_kept[target] if len(sums) else 0
        configurations.plan_split(
            old.configurations, old.histograms, begin, others, r, n_classes, n_cells, most_kept, split
        )
        totals = split.totals.tolist()
        n = totals[configurations.N_AFTER]
        new, kept = split.after[:n].copy(), np.empty((totals[configurations.N_KEPT], n_cells), np.int32)
        if parents not in self._cases:
            self._cases[parents] = self._cut(parent, r, split, new["cases"])
        new["cases"] = self._cases[parents]
        node = TableNode(parents, new, split.counts[:n, :n_classes].copy(), kept)
        if len(sums):
            self._count_split(target, old, node, split, sums)
        self._settle(target, node, split.priced[: totals[configurations.N_PRICED]], sums)
        return node

    def _room(self, n: int) -> configurations.Split:
        if n > len(self._split_room.after):
            self._split_room = configurations.make_split(2 * n, self._split_room.counts.shape[1])
        return self._split_room

    def _cut(self, parent: int, r: int, split: configurations.Split, cases: Integers) -> Integers:
        """Sets of cases for all new configurations, from those of the old."""
        n_cuts, n_parts = split.totals[configurations.N_CUTS], split.totals[configurations.N_PARTS]
        if n_cuts:
            sizes, groups = split.sizes[:n_parts], split.groups[: n_cuts * r]
            variables = _filled(n_cuts, parent)
            first = self._counter.cut(split.cuts[:n_cuts], variables, split.n_parts[:n_cuts], groups, sizes)
            cases[split.parts[:n_parts]] = np.arange(first, first + n_parts)
        return cases.copy()

    def _where_counted(self, target: int, node: TableNode, parent: int) -> tuple[int, NDArray[np.int32]]:
        """Where in its histograms a target is counted for each state of a parent; the same where there are none."""
        base = self._bases[target][parent] * self._n_states[target]
        if len(node.histograms) == len(node.configurations):
            return base, _NONE
        has_none = node.configurations["histogram"] < 0
        return base, self._count_others(target, node.configurations["cases"][has_none], parent)

    def _count_others(self, target: int, cases: Integers, parent: int) -> NDArray[np.int32]:
        n, r = len(cases), self._n_states[parent]
        if parent not in self._layouts:
            of_target, none = np.zeros(len(self.n_states), np.int64), np.zeros(1, np.int64)
            self._layouts[parent] = Layout(of_target, np.array([0, 1]), none + parent, none, none + r, self.n_states)
        cells = np.empty((n, (r + 1) * self._n_states[target]), np.int32)
        where = np.arange(0, cells.size, cells.shape[1])
        self._counter.count(cases, _filled(n, target), where, cells.reshape(-1), self._layouts[parent])
        return cells

    def _count_split(
        self, target: int, old: TableNode, node: TableNode, split: configurations.Split, sums: NDArray[np.float64]
    ) -> None:
        """The histograms of all new configurations, from the old ones where that is quicker; price what is not kept."""
        cases, kept, n_cells = node.configurations["cases"], node.histograms, self._n_cells[target]
        counted = split.counted[: split.totals[configurations.N_COUNTED]]
        if len(counted):
            self._count(target, cases[counted], split.where[: len(counted)], kept.reshape(-1))
        configurations.derive(old.configurations, old.histograms, split, node.configurations, kept)
        small = split.small[: split.totals[configurations.N_SMALL]]
        at_once = max(1, _AT_ONCE // n_cells)
        for begin in range(0, len(small), at_once):
            share = small[begin : begin + at_once]
            where = np.arange(0, len(share) * n_cells, n_cells)
            cells = np.empty(len(share) * n_cells, np.int32)
            self._count(target, cases[share], where, cells)
            configurations.subtract(share, where, cells, node.configurations, kept)
            n_rows = math.prod(self._n_states[parent] for parent in node.parents)
            priced = where[node.configurations["size"][share] > 1]
            tables.price_additions(target, n_rows, priced, cells, self._prices, sums)

    def _count(self, target: int, cases: Integers, where: Integers, cells: NDArray[np.int32]) -> None:
        self._counter.count(cases, _filled(len(cases), target), where, cells, self._prices.layout)

    def _settle(self, target: int, node: TableNode, where: Integers, sums: NDArray[np.float64]) -> None:
        """Write a row of the book, from histograms that are kept and from sums over others."""
        row = self._new_row(target, frozenset(node.parents))
        parents, cells = np.array(node.parents, np.int64), node.histograms.reshape(-1)
        tables.settle(
            target, row, parents, node.configurations, node.counts, where, cells, self._prices, self.book, sums
        )


def _filled(n: int, value: int) -> Integers:
    """np.full, quicker for few."""
    array = np.empty(n, np.int64)
    array.fill(value)
    return array
