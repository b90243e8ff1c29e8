"""Complete tables during a search: memory and threads for the kernels that count and score them.

A complete table is a decision graph whose leaves are all split alike. So the histograms of a node's configurations give
the gains of all arcs into it at once, and adding one cuts every configuration; the histogram of the largest part
follows by subtraction. Results for a node with given parents are cached, since searches return to them often.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leafwise.counters.counter import Codes
from leafwise.kernels.arc_search import node_cache, table_nodes
from leafwise.kernels.counting.arrays import Layout
from leafwise.kernels.scoring import dirichlet
from leafwise.prior_network import PriorNetwork
from leafwise.priors import Bdeu, ParameterPrior
from leafwise.search.histograms import make_layout
from leafwise.workers import Workers

Integers = NDArray[np.int64]

_MOST_KEPT = 2**26  # cached cells of histograms and case numbers: 256 MB
_MOST_PLANE_STATES = 32  # beyond that, the planes of a column would be much larger than its codes
_NEAR = 2**20  # bytes: a table of this size fits into a CPU cache, whatever its order
_LEAST_FOR_THREADS = 400_000  # nanoseconds of counting
_WORDS = 32  # the length of bit masks is a multiple of this many words, which compiled code counts at once
_BUCKETS = 4096
_MOST_SHARED = 256  # states, if all variables share a layout: see make_layout
_MOST_REMEMBERED = 8  # records in the cache of `_complete_records`
_SPARE = 1  # factor of the initial spare memory: pages that are not used cost nothing


class TableNodes:
    """Nodes with any parents, and the gains of adding and of deleting each arc."""

    def __init__(
        self,
        codes: Codes,
        prior: ParameterPrior,
        costs: tuple[float, float],  # log kappa, and the charge for an arc
        candidates: NDArray[np.uint8],  # candidates[child, parent]: whether the arc may ever exist
        n_states: Integers,
        targets: Integers,
        most_parents: int,
        workers: Workers,
    ) -> None:
        n, n_cases = len(n_states), codes.shape[1]
        self._workers, self._n_states = workers, n_states
        self.is_score_equivalent = isinstance(prior, Bdeu)  # equivalent DAGs have the same score
        is_complete = np.count_nonzero(candidates) == n * (n - 1)
        sizes = n_states.tolist()
        is_shared = is_complete and max(sizes) <= _MOST_SHARED
        if is_shared:
            records = _complete_records(tuple(sizes), tuple(targets.tolist()), prior, _MOST_KEPT)
        else:
            records = _records(make_layout(candidates, n_states, targets), targets, prior, _MOST_KEPT)
        n_words = -(-n_cases // 64 // _WORDS) * _WORDS
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
            constants,
            records.variables,
            records.arities,
            records.candidates,
            codes,
            in_order.reshape(-1),
            np.empty((records.n_planes, n_words), np.uint64),
            dirichlet.series(),
        )
        roots = np.array([n, 0, 1, 1, n, records.n_root_cells, 1, 0])  # nodes without parents
        self.room = roots + np.array([8 * n, 32 * n, 8 * n, 4096, 4096, 2**18, 512, 4 * n_cases]) * _SPARE
        self.memory = _new_memory(n, n_words, self.room)
        self._add_roots(targets)

    def serve(self) -> None:
        """Provide what a kernel returned for: memory, or threads that count for the pending entry."""
        memory, entry = self.memory, int(self.memory.progress[0]["pending"])
        if entry < 0:
            self._grow()
        else:
            n = shares = int(memory.partitions["n"][memory.cache.entries["partition"][entry]])
            if memory.progress[0]["by_tables"]:  # each share begins with a pass over all cases
                n = len(self._n_states)
                shares = min(n, self._workers.n_threads)
            self._workers.run(
                lambda begin, end: table_nodes.count_pending(begin * n // shares, end * n // shares, memory, self.data),
                np.full(shares, float(_LEAST_FOR_THREADS)),
            )
            memory.progress[0]["to_count"] = 0

    def copy_of(self, targets: Integers, entries: Integers) -> "Copy":
        """A copy of the counts in these entries, one for each target; the cache may evict them in later steps."""
        memory = self.memory
        numbers = table_nodes.copy_tables(
            entries,
            memory.cache.entries,
            memory.partitions,
            memory.configurations,
            memory.cells,
            self.data.variables,
        )
        return Copy(targets, self._n_states, numbers)

    @property
    def exponents(self) -> "Exponents":
        """The exponents of all variables."""
        return Exponents(self.data.variables["exponent"], self.is_score_equivalent)

    def _add_roots(self, targets: Integers) -> None:
        """Add the nodes without parents; they are counted here if that is worth threads."""
        table_nodes.add_roots(targets, self.memory, self.data)
        if self._workers.n_threads == 1:
            return
        costs = self.data.variables["n_cells"][targets] * (self.data.words.shape[1] * 0.1)
        if self.data.constants["counts_pairs_once"][0]:
            costs *= np.arange(len(costs), 0, -1) / len(costs)
        if costs.sum() > _LEAST_FOR_THREADS:
            self._workers.run(lambda begin, end: table_nodes.count_pending(begin, end, self.memory, self.data), costs)
            self.memory.progress[0]["to_count"] = 0

    def _grow(self) -> None:
        """Grow arrays that are too small to at least twice their size; pages are not touched before they are used."""
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
        self.memory.capacity[:] = capacity  # last: after an interrupt, there must not be less than this says


class Exponents(NamedTuple):
    """Exponents of the cells of tables."""

    of_one_row: NDArray[np.float64]  # by variable, in a table of one row
    are_divided: bool  # whether they are divided by the number of rows

    def of(self, n_rows: Integers) -> NDArray[np.float64]:
        """By variable, the exponent of each cell in a table of so many rows."""
        return self.of_one_row / (n_rows if self.are_divided else 1)


class Copy(NamedTuple):
    """A copy of the counts of some entries, as written by compiled code; `configurations` converts it on demand."""

    targets: Integers  # of the entries
    n_states: Integers  # of all variables
    numbers: Integers  # number of entries without cases; by entry, configurations; by entry, parents; all of these

    @property
    def n_missing(self) -> int:
        """The number of entries without cases."""
        return int(self.numbers[0])

    @property
    def missing(self) -> Integers:
        """The targets of entries without cases."""
        missing: Integers = self.targets[self.numbers[1 : 1 + len(self.targets)] == 0]
        return missing

    def configurations(self) -> "Configurations":
        """The configurations of all other entries."""
        n = len(self.targets)
        sizes, n_parents = self.numbers[1 : 1 + 2 * n].reshape(2, n)
        parts = np.split(self.numbers[1 + 2 * n :], np.cumsum([n_parents.sum(), sizes.sum()]))
        held = sizes > 0
        return Configurations(self.targets[held], self.n_states, sizes[held], n_parents[held], *parts)


class Configurations(NamedTuple):
    """The observed configurations of nodes' parents, and the counts of the node's states in each."""

    targets: Integers
    n_states: Integers  # of all variables
    sizes: Integers  # by node: number of configurations
    n_parents: Integers
    parents: Integers  # node after node; a node's first parent is the last digit of its codes
    codes: Integers  # of the configurations, node after node
    counts: Integers  # of all configurations, flat

    @property
    def widths(self) -> Integers:
        """The number of states of each node."""
        widths: Integers = self.n_states[self.targets]
        return widths

    def tables(self, parents: Sequence[Sequence[int]]) -> Iterator[tuple[int, Integers]]:
        """Each target, and its counts in all configurations of its parents (by variable), the last varying fastest."""
        begin, first, digit, n_states = 0, 0, 0, self.n_states.tolist()
        for target, n, p in zip(self.targets.tolist(), self.sizes.tolist(), self.n_parents.tolist(), strict=True):
            codes, digits, place = self.codes[begin : begin + n], {}, np.zeros(n, np.int64)
            for parent in self.parents[digit : digit + p].tolist():
                codes, digits[parent] = np.divmod(codes, n_states[parent])
            for parent in parents[target]:
                place = place * n_states[parent] + digits[parent]
            r = n_states[target]
            table = np.zeros((math.prod(n_states[parent] for parent in parents[target]), r), np.int64)
            table[place] = self.counts[first : first + n * r].reshape(n, r)
            yield target, table
            begin, first, digit = begin + n, first + n * r, digit + p


class _Records(NamedTuple):
    """What follows from the variables and the prior alone."""

    variables: NDArray[np.void]
    candidates: NDArray[np.void]
    arities: Integers  # the distinct numbers of states
    n_planes: int
    n_root_cells: int  # of all targets without parents


def _records(layout: Layout, targets: Integers, prior: ParameterPrior, most_kept: int) -> _Records:
    """The records for a layout of histograms, of which up to `most_kept` cells are cached."""
    n_states, which = layout.n_states, layout.of_target
    arities = np.bincount(n_states).nonzero()[0]
    variables = np.empty(len(n_states), node_cache.VARIABLE)
    candidates = np.empty(len(layout.bases), node_cache.CANDIDATE)
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
    variables["most_kept"] = most_kept // len(targets) // np.maximum(n_cells, 1)
    candidates["variable"], candidates["base"] = layout.variables, layout.bases
    n_root_cells = int((n_cells + n_states)[targets].sum())
    return _Records(variables, candidates, arities, int(n_planes.sum()), n_root_cells)


@lru_cache(_MOST_REMEMBERED)
def _complete_records(
    n_states: tuple[int, ...], targets: tuple[int, ...], prior: ParameterPrior, most_kept: int
) -> _Records:
    """The records if every variable may be the parent of every other; cached, as small tables take hardly longer."""
    return _records(_complete_layout(np.array(n_states)), np.array(targets), prior, most_kept)


def _complete_layout(n_states: Integers) -> Layout:
    """The layout of histograms if every variable may be the parent of every other."""
    n, ends = len(n_states), n_states.cumsum()
    return Layout(np.zeros(n, np.int64), np.array([0, n]), np.arange(n), ends - n_states, ends[-1:], n_states)


def _new_memory(n: int, n_words: int, room: Integers) -> node_cache.Memory:
    """Allocate memory of these capacities, all of it free; pages are not touched before they are used."""
    n_entries, n_parents, n_partitions, n_configurations, n_where, n_cells, n_masks, n_listed = room.tolist()
    return node_cache.Memory(
        node_cache.Cache(np.empty(n_entries, node_cache.ENTRY), np.empty((n_entries, 2, n))),
        np.empty(min(64 * n, _BUCKETS), np.int64),
        np.empty(n_parents, np.int64),
        np.empty(n_partitions, node_cache.PARTITION),
        np.empty(n_configurations, node_cache.CONFIGURATION),
        np.empty(n_where, np.int64),
        np.empty(n_cells, np.int32),
        np.empty((n_masks, n_words), np.uint64),
        np.empty(n_listed, np.int32),
        np.zeros(len(room), np.int64),
        room.copy(),
        np.zeros(1, node_cache.PROGRESS),
    )
