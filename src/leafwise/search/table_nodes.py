"""The complete tables of nodes under search: memory for the kernels that count and score them, and threads.

A complete table is a decision graph whose every leaf is split alike. So the histograms of a node's configurations give
the gains of all arcs into it at once, and adding one cuts every configuration, of whose parts the largest follows by
subtraction. What was found out about a node with certain parents is kept: searches come back to it again and again.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leafwise.counters.counter import Codes
from leafwise.kernels.arc_search import counts, node_cache, table_nodes
from leafwise.kernels.counting.arrays import Layout, count_up
from leafwise.kernels.scoring import dirichlet
from leafwise.prior_network import PriorNetwork
from leafwise.priors import Bdeu, ParameterPrior
from leafwise.search.histograms import make_layout
from leafwise.workers import Workers

Integers = NDArray[np.int64]

_MOST_KEPT = 2**26  # cells of histograms and numbers of cases: a quarter of a gigabyte
_MOST_PLANE_STATES = 32  # beyond that, the planes of a column would outweigh its codes by far
_NEAR = 2**20  # bytes: so small a table is in the cache, whatever its order
_LEAST_FOR_THREADS = 400_000  # nanoseconds of counting
_WORDS = 32  # bit masks are so many words long, or a multiple: that is what the compiler counts at once
_BUCKETS = 4096
_SPARE = 1  # room for some more nodes from the start: memory that is not used costs nothing


class TableNodes:
    """Nodes with any parents, and the gains of adding and of deleting any arc."""

    def __init__(
        self,
        codes: Codes,
        prior: ParameterPrior,
        costs: tuple[float, float],  # log kappa, and that of an arc
        candidates: NDArray[np.uint8],  # candidates[child, parent]: may the arc ever be there?
        n_states: Integers,
        targets: Integers,
        most_parents: int,
        workers: Workers,
    ) -> None:
        n, n_cases = len(n_states), codes.shape[1]
        self._workers, self._n_states = workers, n_states
        self.is_score_equivalent = isinstance(prior, Bdeu)  # equivalent DAGs have the same score
        is_complete = np.count_nonzero(candidates) == n * (n - 1)
        arities = np.bincount(n_states).nonzero()[0]
        is_shared = is_complete and arities[-1] <= 256  # see make_layout
        layout = _complete_layout(n_states) if is_shared else make_layout(candidates, n_states, targets)
        variables, candidate_list = _variables(prior, layout, arities, len(targets))
        n_words, planes = -(-n_cases // 64 // _WORDS) * _WORDS, variables["plane"]
        words = np.empty((int((n_states - 1)[planes >= 0].sum()), n_words), np.uint64)
        counts.pack(codes, variables, words)
        is_near = codes.nbytes <= _NEAR
        constants = np.zeros(1, node_cache.CONSTANTS)
        constants[0] = (
            len(targets),
            n_cases,
            most_parents,
            _MOST_KEPT,
            _LEAST_FOR_THREADS if workers.n_threads > 1 else 2**62,
            self.is_score_equivalent and most_parents > 1 and is_complete,
            is_shared and len(targets) == n,
            self.is_score_equivalent,
            *costs,
            *((1, n_cases) if is_near else (n, 1)),
        )
        in_order = codes if is_near else np.ascontiguousarray(codes.T)
        self.data = node_cache.TableData(
            constants, variables, arities, candidate_list, codes, in_order.reshape(-1), words, dirichlet.series()
        )
        n_cells = int((variables["n_cells"] + n_states)[targets].sum())
        roots = np.array([n, 0, 1, 1, n, n_cells, 1, 0])  # nodes without parents
        self.room = roots + np.array([8 * n, 32 * n, 8 * n, 4096, 4096, 2**18, 512, 4 * n_cases]) * _SPARE
        self.memory = _new_memory(n, n_words, self.room)
        self._add_roots(targets)

    def serve(self) -> None:
        """What kernels came back for: more room, or threads to count for the entry that is being made."""
        memory, entry = self.memory, int(self.memory.progress[0]["pending"])
        if entry < 0:
            self._grow()
        else:
            n = shares = int(memory.partitions["n"][memory.cache.entries["partition"][entry]])
            if memory.progress[0]["by_tables"]:  # each share begins with a look at all cases
                n = len(self._n_states)
                shares = min(n, self._workers.n_threads)
            self._workers.run(
                lambda begin, end: table_nodes.count_pending(begin * n // shares, end * n // shares, memory, self.data),
                np.full(shares, float(_LEAST_FOR_THREADS)),
            )
            memory.progress[0]["to_count"] = 0

    def hold_cases(self, entries: Integers) -> NDArray[np.bool_]:
        """Whether the configurations of each of these entries are known; negative ones are none."""
        known: NDArray[np.bool_] = (entries >= 0) & (self.memory.cache.entries["partition"][entries] >= 0)
        return known

    def configurations(self, entries: Integers) -> "Configurations":
        """Those of entries that hold cases."""
        memory, records = self.memory, self.memory.cache.entries[entries]
        partitions, widths = memory.partitions[records["partition"]], self._n_states[records["target"]]
        sizes, n_parents = partitions["n"], records["n_parents"]
        codes = memory.configurations["code"][partitions["first"].repeat(sizes) + count_up(sizes)]
        cells = memory.cells[records["counts"].repeat(sizes * widths) + count_up(sizes * widths)].astype(np.int64)
        parents: list[Integers] = []
        for _ in range(n_parents.max()):
            parents.append(partitions["variable"])
            partitions = memory.partitions[np.maximum(partitions["origin"], 0)]
        return Configurations(sizes, widths, codes, cells, n_parents, parents)

    @property
    def exponents(self) -> "Exponents":
        """Those of all variables."""
        return Exponents(self.data.variables["exponent"], self.is_score_equivalent)

    def _add_roots(self, targets: Integers) -> None:
        """Nodes without parents; they are counted here if that is worth threads."""
        table_nodes.add_roots(targets, self.memory, self.data)
        costs = self.data.variables["n_cells"][targets] * (self.data.words.shape[1] * 0.1)
        if self.data.constants["counts_pairs_once"][0]:
            costs *= np.arange(len(costs), 0, -1) / len(costs)
        if self._workers.n_threads > 1 and costs.sum() > _LEAST_FOR_THREADS:
            self._workers.run(lambda begin, end: table_nodes.count_pending(begin, end, self.memory, self.data), costs)
            self.memory.progress[0]["to_count"] = 0

    def _grow(self) -> None:
        """Make room where it is short; what grows at least doubles, and memory is not touched before it is used."""
        memory, room, used, capacity = self.memory, self.room, self.memory.used, self.memory.capacity.copy()
        is_short = (used + room > capacity).tolist()

        def more(array: Any, which: int) -> Any:
            if not is_short[which]:
                return array
            n = int(used[which])
            new = np.empty((max(n + int(room[which]), 2 * len(array)), *array.shape[1:]), array.dtype)
            new[:n], capacity[which] = array[:n], len(new)
            return new

        entries, gains = (more(array, node_cache.N_ENTRIES) for array in memory.cache)
        self.memory = memory._replace(
            cache=node_cache.Cache(entries, gains),
            parents=more(memory.parents, node_cache.N_PARENTS),
            partitions=more(memory.partitions, node_cache.N_PARTITIONS),
            configurations=more(memory.configurations, node_cache.N_CONFIGURATIONS),
            where=more(memory.where, node_cache.N_WHERE),
            cells=more(memory.cells, node_cache.N_CELLS),
            masks=more(memory.masks, node_cache.N_MASKS),
            lists=more(memory.lists, node_cache.N_LISTED),
        )
        self.memory.capacity[:] = capacity  # last: an interrupt must not leave less than this says


class Exponents(NamedTuple):
    """Of the cells of tables."""

    of_one_row: NDArray[np.float64]  # by variable, in a table of one row
    are_divided: bool  # among the rows

    def of(self, n_rows: Integers) -> NDArray[np.float64]:
        """Those of every cell in tables of so many rows."""
        return self.of_one_row / (n_rows if self.are_divided else 1)


class Configurations(NamedTuple):
    """The configurations of nodes' parents that have cases, and how many of these are in each state of the node."""

    sizes: Integers  # of each node: configurations
    widths: Integers  # ... and states
    codes: Integers  # of all, one node after the other
    counts: Integers  # of all, flat
    n_parents: Integers
    parents: list[Integers]  # the first of each node, which is the last digit of its codes; the second; ...

    def tables(self, parents: Sequence[Sequence[int]], n_states: Sequence[int]) -> Iterator[Integers]:
        """Each node's counts in all configurations of its parents, the last varying fastest."""
        begin, first = 0, 0
        for k, (n, r, own) in enumerate(zip(self.sizes.tolist(), self.widths.tolist(), parents, strict=True)):
            codes, digits, place = self.codes[begin : begin + n], {}, np.zeros(n, np.int64)
            for variables in self.parents[: self.n_parents[k]]:
                codes, digits[int(variables[k])] = np.divmod(codes, n_states[variables[k]])
            for parent in own:
                place = place * n_states[parent] + digits[parent]
            table = np.zeros((math.prod(n_states[parent] for parent in own), r), np.int64)
            table[place] = self.counts[first : first + n * r].reshape(n, r)
            yield table
            begin, first = begin + n, first + n * r


def _variables(
    prior: ParameterPrior, layout: Layout, arities: Integers, n_targets: int
) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """The records of variables, and of their candidates."""
    n_states, which = layout.n_states, layout.of_target
    variables = np.empty(len(n_states), node_cache.VARIABLE)
    candidate_list = np.empty(len(layout.bases), node_cache.CANDIDATE)
    has_planes = n_states <= _MOST_PLANE_STATES
    n_planes, n_cells = (n_states - 1) * has_planes, layout.n_rows[which] * n_states
    variables["n_states"], variables["arity"] = n_states, arities.searchsorted(n_states)
    variables["plane"] = np.where(has_planes, n_planes.cumsum() - n_planes, -1)
    if isinstance(prior, Bdeu):
        variables["exponent"] = prior.equivalent_sample_size / n_states
    elif not isinstance(prior, PriorNetwork):
        variables["exponent"] = [prior.exponent(r) for r in n_states.tolist()]
    variables["first"] = layout.start[which]
    variables["n"] = layout.start[which + 1] - variables["first"]
    variables["n_cells"] = n_cells
    variables["most_kept"] = _MOST_KEPT // n_targets // np.maximum(n_cells, 1)
    candidate_list["variable"], candidate_list["base"] = layout.variables, layout.bases
    return variables, candidate_list


def _complete_layout(n_states: Integers) -> Layout:
    """The layout of histograms if every variable may be the parent of every other."""
    n, ends = len(n_states), n_states.cumsum()
    return Layout(np.zeros(n, np.int64), np.array([0, n]), np.arange(n), ends - n_states, ends[-1:], n_states)


def _new_memory(n: int, n_words: int, room: Integers) -> node_cache.Memory:
    """Memory with so much room, all of it free; memory that is not used is not touched."""
    n_entries, n_parents, n_partitions, n_configurations, n_where, n_cells, n_masks, n_listed = room.tolist()
    return node_cache.Memory(
        node_cache.Cache(np.empty(n_entries, node_cache.ENTRY), np.empty((n_entries, 2, n))),
        np.full(min(64 * n, _BUCKETS), -1),
        np.empty(n_parents, np.int64),
        np.empty(n_partitions, node_cache.PARTITION),
        np.empty(n_configurations, node_cache.CONFIGURATION),
        np.empty(n_where, np.int64),
        np.empty(n_cells, np.int32),
        np.empty((n_masks, n_words), np.uint64),
        np.empty(n_listed, np.int32),
        np.zeros_like(room),
        room.copy(),
        np.zeros(1, node_cache.PROGRESS),
    )
