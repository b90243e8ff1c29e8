"""The host of the compiled search over leaves: memory for leaves, their cases and histograms, and the log of steps.

Compiled code searches (`kernels/leaf_search`), with all threads, until it needs something from Python: memory, the
exponents of new leaves under a prior network, or, if the rows are remote, their counts. Python provides it, for many
leaves at a time, and the search continues.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise import dag
from leafwise.constraints import ParentRules
from leafwise.counters.counter import EVERYTHING, Counter
from leafwise.decision_graph import DecisionGraph
from leafwise.kernels.compiling.jit import ready
from leafwise.kernels.compiling.references import Packed, another
from leafwise.kernels.counting import bits
from leafwise.kernels.counting.arrays import Layout, count_up, grown
from leafwise.kernels.counting.sets import Cases, no_cases
from leafwise.kernels.leaf_search import acyclic, expand, replay, schedule, splits, state, weights
from leafwise.prior_network import PriorNetwork
from leafwise.priors import Bdeu
from leafwise.regions import Region
from leafwise.search.histograms import Histograms, make_layout
from leafwise.search.initial_graphs import InitialLeaves, initial_names, initial_sets, read_region, tests_above
from leafwise.search.replayed_graphs import Deletion, ReplayedGraphs
from leafwise.search.score_tables import ScoreTables
from leafwise.workers import Workers

Integers = NDArray[np.int64]

_LEAVES, _LEAVES_A_NODE = 8192, 16  # initial records, at least and per node; pages are not touched before they are used
_STEPS = 4096  # initial entries of the list of committed steps
_FEW_THREADS = 4  # pay off for any search of as many nodes;
_MORE_THREADS, _LONG = 8, 3 * 10**7  # ... these, if rows are local, and cases times ordered pairs of variables so many;
_NODES_A_THREAD = 24  # ... more if there are so many nodes for each, since they also wait for each other,
_CELLS_A_THREAD = 1_500_000  # ... or so many cells of the table, which they count jointly
_SERVED_A_THREAD = 2  # remote rows: nodes whose leaves have just been counted, and which run on
_WEIGHING_NS = 150.0  # to score one state of a candidate under a prior network,
_SCORING_NS = 4.0  # ... and under other priors
_FEW_CASES = 50_000  # up to which a thread's scratch memory is copied
_LOOKING_NS = 200.0  # to examine a leaf
_PIECE = ("states", "part", "partition", "n_outcomes")  # fields of leaves that are about some states only
_WORTH_HALVING = 64  # leaves to count

_ready = set[Any]()  # kinds of searches for which all functions are compiled


class Leaves:
    """All leaves of a search, including those made ahead, and its log."""

    def __init__(
        self,
        counter: Counter,
        workers: Workers,
        tables: ScoreTables,
        operators: str,
        parts: bool,
        rules: state.Rules,
        parents: ParentRules,
        n_candidates: Integers,
        layout: Layout,
        targets: Integers,
        scratches: list[Any],
    ) -> None:
        self.rules, self._scratches, self._operators = rules, scratches, operators
        self._counter, self._workers, self._prior = counter, workers, tables.prior
        self._local, self._session = counter.local, counter.session()
        self._score_tables, self._costs, n = tables, tables.costs, len(layout.n_states)
        self.records = np.empty(max(_LEAVES_A_NODE * n, _LEAVES), state.LEAF)
        self._first, self.given = 0, np.zeros(0, np.int64)  # of its records; those whose cases another search owns
        self._splits = np.empty(state.N_SLOTS * len(self.records), state.SPLIT)
        self._spare_bits = np.zeros((2, -(-n // 64)), np.uint64)
        self._log = np.zeros(0, state.STEP)
        self._regions = np.empty((16 if rules.tracks_regions else 4) * _LEAVES, np.uint64)
        self._regions[0] = 0  # a box of all assignments
        self._arcs = np.empty(4 * _LEAVES, np.int64)
        self._exponents = np.zeros(0)
        self._n_exponents = 0
        self._dropped = np.empty(len(self.records), np.int64)
        self._waiting = np.empty((3, state.N_SLOTS * len(self.records)), np.int64)
        self._joined = np.empty((len(self.records), 3), np.int64)
        self._n_released = self.n_round_trips = self.n_requests = 0
        self._later: Callable[[], NDArray[np.int32]] | None = None  # counts that another thread requests
        self._names = initial_names()
        self._no_cases = no_cases(np.zeros((n, 0), np.uint8)) if self._local is None else self._local.no_cases
        self._totals = np.zeros(state.N_TOTALS, np.int64)
        self._totals[state.N_WORDS] = 1
        self._wanted = np.zeros(state.FIRST_WANTED_SET + rules.most_children, np.int64)
        self._queue, self._least = np.zeros(n, np.int64), np.zeros(2)
        self._shared, self._owners = np.zeros(state.N_SHARED, np.int64), np.zeros(n, np.int64)
        self._packed: Any = None  # the state as last passed to compiled code
        self._pattern: Any = None  # scratch memory to be copied, for this layout
        self._start(targets, parents, parts, n_candidates)
        self._layout, self.histograms = layout, Histograms(layout, self.nodes, counter.n_cases)

    def _start(self, targets: Integers, parents: ParentRules, parts: bool, n_candidates: Integers) -> None:
        """Reset the nodes: the targets have no leaves yet, and may test these variables; the layout comes later."""
        n, n_words = len(n_candidates), self._spare_bits.shape[1]
        self.targets, self._parents, self.parts = targets, parents, parts
        self.nodes = np.zeros(n, state.NODE)
        for field in ("head", "tail", "split_leaf", "merge_leaf", "merged", "first_pending", "last_pending"):
            self.nodes[field] = -1
        self.nodes["n_states"], self.nodes["n_candidates"] = self._score_tables.n_states, n_candidates
        self.nodes["max_children"] = self.rules.most_children
        self._allowed, self.is_parent = parents.allowed.copy(), parents.is_parent.copy()
        self._above, self._below, self._tested = np.zeros((3, n, n_words), np.uint64)
        self._next_gains, self._next_tests = np.zeros((2, n)), np.full(n, -1)
        self._most_gains, self._may_be_invalid = np.zeros((2, -(-n // state.BLOCK))), np.zeros(n, np.uint8)
        self._committed = np.zeros(_STEPS, np.int64)
        self._scored = True  # whether the host scored leaves since the last compiled call
        self._n_served = len(targets)  # nodes whose leaves were last counted or weighed by the host

    @property
    def n_steps(self) -> int:
        return int(self._totals[state.N_COMMITTED])

    @property
    def n_merges(self) -> int:
        return int((self._log["other"][self._committed[: self.n_steps]] >= 0).sum())

    @property
    def n_ancestors(self) -> Integers:
        """The number of ancestors of each variable."""
        n: Integers = np.bitwise_count(self._above).sum(axis=1, dtype=np.int64)
        return n

    @property
    def log_likelihood(self) -> float:
        """The log marginal likelihood of all leaves before the first step."""
        return math.fsum(self.records["log_likelihood"][: self._n_initial].tolist())

    def steps(self, begin: int, end: int) -> NDArray[np.void]:
        """The committed steps from `begin` to `end`, exclusive."""
        return self._log.take(self._committed[begin:end])  # twenty times as fast as [...]

    def gained(self, what: str, begin: int, end: int) -> NDArray[np.float64]:
        """The gains of the committed steps from `begin` to `end`, or only the structure prior's share ("log_prior")."""
        gained: NDArray[np.float64] = self._log[what][self._committed[begin:end]]
        return gained

    def draw(
        self,
        start: replay.Start,
        n_steps: int,
        deletions: list[Deletion],
        reduces: bool,
        log_ways: NDArray[np.float64] | None = None,
    ) -> ReplayedGraphs:
        """Replay the graphs after `n_steps` steps, with these deletions of parents."""
        given = self.n_records, self._regions, self._layout.n_states, reduces, log_ways
        return ReplayedGraphs.of(start, self.steps(0, n_steps), deletions, *given)

    def groups(self, number: int) -> tuple[int, ...]:
        """The child to which a committed split sends each state of its variable; none for a merge."""
        step = self.steps(number, number + 1)
        if step["other"][0] >= 0:
            return ()
        groups = np.empty(self._layout.n_states[step["variable"][0]], np.int64)
        replay.send_states(step, self._regions, groups)
        return tuple(groups.tolist())

    def region(self, record: int) -> Region:
        """The region of a leaf."""
        leaf = self.records[record]
        return read_region(self._regions, int(leaf["region"]), int(leaf["n_boxes"]), self._layout.n_states)

    def region_words(self, records: Integers) -> list[list[int]]:
        """The regions of several leaves as they are stored: the number of boxes, then their words."""
        words = self._regions[: self._totals[state.N_WORDS]].tolist()
        places = (self.records[field][records].tolist() for field in ("region", "n_boxes", "n_words"))
        return [[n_boxes, *words[begin : begin + n]] for begin, n_boxes, n in zip(*places, strict=True)]

    def pieces(self, records: Integers) -> list[list[int]]:
        """The leaves among these that are about some states only: index, states, and a switch's part and partition.

        Partitions get negative numbers, which differ from those of all leaves to come.
        """
        own = list(zip(*(self.records[field][records].tolist() for field in _PIECE[:3]), strict=True))
        numbers = {partition: -1 - k for k, partition in enumerate(dict.fromkeys([-1, *(leaf[2] for leaf in own)]))}
        return [[place, leaf[0], leaf[1], numbers[leaf[2]]] for place, leaf in enumerate(own) if leaf[0]]

    def add_initial(
        self,
        graphs: Mapping[int, DecisionGraph],
        others: Integers,
        regions: Sequence[Sequence[int]] = (),
        pieces: Sequence[Sequence[int]] = (),
        sets: Integers | None = None,
    ) -> None:
        """Add the leaves of these graphs, then those of targets with a single leaf, as records in this order.

        What is known of the leaves of the graphs: `regions` as from `region_words`, `pieces` as from the method of that
        name, and `sets`, their cases in a local counter.
        """
        initial = InitialLeaves.of(graphs, others, self._layout.n_states, self.rules.tracks_regions, regions)
        sets = self._initial_sets(graphs, others) if sets is None else np.append(sets, np.full(len(others), EVERYTHING))
        targets = initial.targets
        self._wanted[: state.WANTED_SETS] = (
            len(targets),
            self.histograms.pool.sizes[self.nodes["size_class"][targets]].sum(),
            self.nodes["n_states"][targets].sum(),
            len(initial.words),
            len(initial.arcs),
        )
        self._make_room()
        self._regions[1 : 1 + len(initial.words)] = initial.words
        self._arcs[: len(initial.arcs)] = initial.arcs
        self._totals[state.N_WORDS] += len(initial.words)
        self._totals[state.N_ARCS] += len(initial.arcs)
        for target, graph in graphs.items():
            self._note_tests(target, graph)
        self._make_ready()
        now = self._state(self._no_cases)  # the cases may still be being laid out
        schedule.add_initial_leaves(targets, sets, initial.places, now)
        if self._parents.is_parent.view(np.bool_).any():
            acyclic.add_arcs(np.argwhere(self._parents.is_parent)[:, ::-1], now)
        for record, states, part, partition in pieces:
            n_outcomes = 2 if part else states.bit_count()
            for field, value in zip(_PIECE, (states, part, partition, n_outcomes), strict=True):
                self.records[field][record] = value
        self._n_initial, self._is_scored = len(targets), False
        self._set_limits()

    def _initial_sets(self, graphs: Mapping[int, DecisionGraph], others: Integers) -> Integers:
        """The sets of cases of the leaves of these graphs, then of targets with a single leaf."""
        if not graphs and self._local is not None and self._local.shown is None:
            return np.full(len(others), EVERYTHING)
        roots = self._roots([*graphs, *others.tolist()])
        names = initial_sets(graphs, self._session, self._layout.n_states, self._names, roots[: len(graphs)])
        all_names = np.array(names + roots[len(graphs) :], np.int64)
        return all_names if self._local is None else self._local.take(self._session, all_names)

    def _roots(self, targets: list[int]) -> list[int]:
        """The names of the sets of cases at the roots of these targets' graphs."""
        roots = [EVERYTHING] * len(targets)
        if self._local is not None and self._local.shown is not None:
            rows = {place: np.flatnonzero(self._local.shown[target]) for place, target in enumerate(targets)}
            some = {place: own for place, own in rows.items() if 0 < len(own) < self._counter.n_cases}
            for place, name in zip(some, self._local.name_sets(self._session, list(some.values())), strict=True):
                roots[place] = name
        return roots

    def advance(self, n_steps: int, seconds: float) -> int:
        """Take steps until there are `n_steps` in all, or for `seconds`; return AT_STEP_LIMIT, FINISHED or MERGED."""
        until = time.perf_counter() + seconds
        if n_steps > len(self._committed):
            self._committed = grown(self._committed, n_steps)
        while True:
            self._serve()
            self._make_room()
            status = self._run(n_steps)
            if status != state.NEEDS_HOST:
                return status
            if time.perf_counter() > until:
                return state.AT_STEP_LIMIT

    def begin_to_part(self) -> None:
        """Allow leaves to be parted from now on, and mark all leaves as unscored."""
        schedule.start_afresh(self.targets, self._state())
        self.parts = self._scored = True  # last: after an interrupt, this is called again

    def score_initial(self) -> None:
        """Score the initial leaves, as the first step would; until then, leaves must not be accessed."""
        if self.n_steps == 0 and not self._is_scored:
            self.advance(0, math.inf)
            self._is_scored = True

    def counts(self, records: Integers) -> NDArray[Any]:
        """The target's counts in each of these leaves, in cases; all targets have the same number of states."""
        r = int(self.nodes[self.records[records[0]]["target"]]["n_states"])
        counts = self.histograms.counts[self.records["counts"][records][:, None] + np.arange(r)]
        return counts if self._counter.unit == 1.0 else counts * self._counter.unit

    def again(self, targets: Integers, parents: ParentRules) -> "Leaves":
        """Begin another search for some targets, under rules that allow fewer variables, with partial splits.

        It continues in this one's memory, after everything that is there, which stays as it is.
        """
        self._join_sets()  # pending requests belong to this session
        self._release_dropped()
        new, n_candidates = copy(self), self.nodes["n_candidates"]
        new._session, new._totals, new._first = self._counter.session(), self._totals.copy(), self.n_records
        new._totals[state.N_COMMITTED], new._n_released = 0, int(self._totals[state.N_DROPPED])
        new._scratches, new._pattern = [], None  # for a smaller layout
        new._start(targets, parents, True, n_candidates)
        new._layout = make_layout(parents.allowed | parents.is_parent, self._layout.n_states, targets)
        new.histograms = self.histograms.with_layout(new._layout, new.nodes)
        new.add_initial({}, targets)
        return new

    @property
    def n_records(self) -> int:
        """The number of leaves that were ever made."""
        return int(self._totals[state.N_LEAVES])

    @property
    def roots(self) -> Integers:
        """The records of the initial leaves, if each target began with a single leaf."""
        return np.arange(self._first, self._first + len(self.targets))

    def with_nodes_of(self, other: "Leaves", leaves: Integers, graphs: Mapping[int, DecisionGraph]) -> "Leaves":
        """This search with some graphs of another one, begun by `again`, and the steps that led to them.

        `leaves`: the records of their leaves, whose cases the other must give up. Leaves may be parted from now on.
        """
        new, chosen = copy(other), np.zeros(len(self.nodes), np.bool_)
        chosen[list(graphs)] = True
        new.targets, new._parents, new._session, new._first = self.targets, self._parents, self._session, self._first
        new._scratches, new._pattern = self._scratches, self._pattern
        new._n_initial, new._is_scored, new._totals = self._n_initial, True, other._totals.copy()
        new._n_released = int(new._totals[state.N_DROPPED])
        new._totals[state.N_JOINED :] = 0  # no requests are pending: its session ends
        new.nodes, new._tested, new.is_parent = self.nodes.copy(), self._tested.copy(), self.is_parent.copy()
        for mine, its in ((new.nodes, other.nodes), (new._tested, other._tested), (new.is_parent, other.is_parent)):
            mine[chosen] = its[chosen]
        whose, ours, theirs = new._log["target"], self._committed[: self.n_steps], other._committed[: other.n_steps]
        steps = np.append(ours[~chosen[whose[ours]]], theirs[chosen[whose[theirs]]])
        new._committed, new._totals[state.N_COMMITTED] = grown(steps, len(steps) + _STEPS), len(steps)
        its_records = new.records[other._first : other.n_records]
        its_records["histogram"], its_records["is_counted"] = -1, 0  # their layout had fewer candidates
        if self._local is None:
            its_records["cases"] = EVERYTHING
            new.records["cases"][leaves] = self._initial_sets(graphs, np.zeros(0, np.int64))
        new._begin_anew(chosen, int(self.histograms.pool.used[0]))
        return new

    def _begin_anew(self, chosen: NDArray[np.bool_], n_cells: int) -> None:
        """Mark all leaves as unscored, and allow them to be parted; histograms beyond the first n_cells cells are lost.

        The leaves of chosen targets are uncounted, so that their layout can omit the target's descendants.
        """
        above, parents = dag.ancestor_matrix(dag.parent_lists(self.is_parent)), self._parents
        self._allowed = parents.allowed.copy()
        self.nodes["n_parents"] = self.is_parent.sum(axis=1, dtype=np.int64)
        full = self.nodes["n_parents"] >= self.rules.most_parents
        self._allowed[full] &= self.is_parent[full]
        self._above, self._below = _packed(above), _packed(above.T)
        needs = parents.allowed | parents.is_parent
        needs[chosen] &= ~above.T[chosen]
        self._layout = make_layout(needs, self._layout.n_states, self.targets)
        self.histograms = self.histograms.with_layout(self._layout, self.nodes, n_cells)
        self.begin_to_part()
        self._set_limits()  # now that no step is pending

    def _set_limits(self) -> None:
        """Update what depends on the numbers of leaves."""
        n_leaves = self.nodes["n_committed_leaves"] = self.nodes["n_leaves"]
        self.nodes["max_children"] = np.clip(self.rules.most_leaves - n_leaves + 1, 0, self.rules.most_children)

    def drop(self, leaves: Integers) -> None:
        """Release the memory of these leaves, which are no longer in a graph."""
        schedule.drop_leaves(leaves, self._state())

    def close(self) -> None:
        """Release all sets of cases; no more steps can be taken, but the graphs remain available."""
        self.score_initial()
        self.release()

    def release(self) -> None:
        """Release all sets of cases, without scoring the initial leaves first."""
        self._wait_for_counts()
        if self._local is not None:
            cases = self.records["cases"][self._first : self.n_records]
            is_held = cases > 0
            is_held[self.given - self._first] = False
            held, cases[is_held] = cases[is_held], 0
            self._local.release_numbers(held)
        self._session.close()

    def delete_parents(self, target: int, variables: list[int], graph: DecisionGraph, records: list[int]) -> None:
        """Delete parents and their tests; what they ruled out is allowed again. If this is interrupted, repeat it.

        `graph` is the target's graph without them, and `records` are the numbers of its nodes.
        """
        is_parent, allowed = self.is_parent.copy(), self._parents.allowed.copy()
        is_parent[target, variables] = 0
        n_parents = is_parent.sum(axis=1, dtype=np.int64)
        above = dag.ancestor_matrix(dag.parent_lists(is_parent))
        full = n_parents >= self.rules.most_parents
        allowed[full] &= is_parent[full]
        was_allowed = self._allowed & ~_matrix(self._below)
        self._scored = True
        changed = np.flatnonzero((allowed & ~above.T > was_allowed).any(axis=1))
        changed = np.append(changed[self.nodes["head"][changed] >= 0], target)  # another thread may have run it ahead
        schedule.start_afresh(changed, self._state())
        self._note_tests(target, graph)
        self._note_arcs(target, graph, records)
        schedule.start_afresh(np.array([target]), self._state())
        self._allowed[:], self._above[:], self._below[:] = allowed, _packed(above), _packed(above.T)
        self.nodes["n_parents"] = n_parents
        self.is_parent[:] = is_parent  # last: after an interrupt, the arcs must still be there

    def _note_tests(self, target: int, graph: DecisionGraph) -> None:
        """Set what the structure prior counts in a node's graph."""
        tests = [test for test in graph.tests if test >= 0]  # parted leaves are charged separately
        self.nodes[target]["n_tests"] = len(tests)
        if self._costs.tests or self._costs.parents:
            different = set(tests)
            words = sum(1 << test for test in different).to_bytes(8 * self._tested.shape[1], "little")
            self._tested[target] = np.frombuffer(words, np.uint64)
            self.nodes[target]["n_tested"] = len(different)

    def _note_arcs(self, target: int, graph: DecisionGraph, records: list[int]) -> None:
        """Set which tests lead to each leaf of a node's graph."""
        above = tests_above(graph, records)
        self._wanted[state.WANTED_ARCS] = sum(map(len, above))
        self._make_room()
        for node, tests in zip(graph.leaves, above, strict=True):
            leaf, at = self.records[records[node]], int(self._totals[state.N_ARCS])
            self._arcs[at : at + len(tests)] = tests
            leaf["tests"], leaf["n_tests"], leaf["test"] = at, len(tests), tests[0] if tests else -1
            self._totals[state.N_ARCS] += len(tests)
        self.nodes[target]["merges_known"] = 0

    @property
    def _most_threads(self) -> int:
        """The number of threads that pay off."""
        n, n_cells = len(self.targets), self._counter.n_cases * len(self.nodes)
        is_long = self._local is not None and n_cells * len(self.nodes) > _LONG
        few = _MORE_THREADS if is_long else _FEW_THREADS
        most = max(min(few, n), n // _NODES_A_THREAD)
        if self._local is None:
            return min(most, 1 + self._n_served // _SERVED_A_THREAD)
        return max(most, n_cells // _CELLS_A_THREAD)

    def _run(self, n_steps: int) -> int:
        """Search with all threads until the leader returns; return its status."""
        self._shared[state.NEXT] = state.CLOSED
        shared, scored, now = self._shared, self._scored, self._state()

        def search(leads: bool) -> int:
            with nullcontext(own) if leads else self._scratch() as scratch:
                return schedule.advance(leads, n_steps, self._counter.lookahead, scored, now, scratch)

        try:
            is_long = self.n_steps == 0 or n_steps > self.n_steps + 1
            with self._scratch(leads=True) as own:  # the leader's first: without it, the others can only wait
                status = self._workers.together(search, self._most_threads) if is_long else search(True)
        finally:  # also after an interrupt: let the other threads return
            shared[state.OVER] = 1
            self._shared = np.zeros(state.N_SHARED, np.int64)  # new: a late thread must not join the next run
            self._owners = np.zeros(len(self.nodes), np.int64)
        self._scored = False
        return status

    def _scoring(self) -> state.Scoring:
        costs, table = self._costs, self._score_tables.rises
        return state.Scoring(
            self._layout,
            self._allowed,
            self._below,
            self.histograms.counts,
            table.rises,
            table.cells,
            table.totals,
            table.multiples,
            *self._score_tables.per_variable,
            float(self._prior.equivalent_sample_size) if isinstance(self._prior, Bdeu) else 0.0,
            float(costs.log_kappa),
            float(costs.shared),
            costs.tests,
            costs.parents,
            "C" in self._operators,
            "B" in self._operators,
            "I" in self._operators,
            self.parts,
            bool((self._layout.n_states == 2).all()) and np.array_equal(self._layout.start, [0, len(self.nodes)]),
        )

    @property
    def _cases(self) -> Cases:
        return self._no_cases if self._local is None else self._local.cases

    @contextmanager
    def _scratch(self, leads: bool = False) -> Iterator[Any]:
        """The scratch memory of a thread, for compiled code; that of helper threads is copied from a pattern.

        If there are many cases, it is not copied, since much of it is never touched.
        """
        is_new = leads or self._counter.n_cases > _FEW_CASES
        try:
            scratch = self._scratches.pop()
        except IndexError:
            if is_new or self._pattern is None:
                scratch = Packed(expand.make_scratch(self._fields(self._cases), "O" in self._operators))
            if not is_new:
                self._pattern = self._pattern or scratch
                scratch = another(self._pattern)
        try:
            yield scratch
        finally:
            self._scratches.append(scratch)

    def _make_ready(self) -> None:
        """Compile the functions that a search calls, if they are not compiled yet."""
        kind = self._local is None, "O" in self._operators
        if _ready and (getattr(self._state(self._no_cases), "kind", None), *kind) in _ready:
            return
        fields = self._fields(self._no_cases)  # cases may be laid out meanwhile
        now, scratch = Packed(fields), expand.make_scratch(fields, "O" in self._operators)
        scoring = Packed(scratch.scoring)
        calls: list[tuple[Any, ...]] = [(splits.score_splits, 0, 0, 0, now, scoring)]
        if "O" in self._operators:
            calls.append((splits.score_parted, 0, 0, 0, 0, 0, now, scoring))
        if self._local is not None:
            calls.append(bits.call(self._layout, fields.cases))
        some = np.zeros((2, 0), np.int64)
        calls += [*replay.calls(), (schedule.add_initial_leaves, *some, some, now)]
        ready(*calls, (schedule.advance, True, 0, 0.0, True, now, Packed(scratch)))  # the slowest last
        _ready.add((getattr(now, "kind", None), *kind))

    def _state(self, cases: Cases | None = None) -> Any:
        """The state for compiled code, with these cases or its own; packed again if any of it has changed."""
        fields = self._fields(self._cases if cases is None else cases)
        if self._packed is None or not _is_same(fields, self._packed[0]):
            self._packed = fields, Packed(fields, self._packed and self._packed[1])
        return self._packed[1]

    def _fields(self, cases: Cases) -> state.State:
        return state.State(
            self.records,
            self._splits,
            self.nodes,
            self.targets,
            self.histograms.pool,
            cases,
            self._scoring(),
            self._exponents,
            self._regions,
            self._arcs,
            self._tested,
            self._above,
            self._spare_bits,
            self.is_parent,
            self._log,
            self._committed,
            self._dropped,
            self._waiting,
            self._joined,
            self._totals,
            self._wanted,
            self._next_gains,
            self._most_gains,
            self._next_tests,
            self._may_be_invalid,
            self._owners,
            self._queue,
            self._least,
            self._shared,
            self.rules,
        )

    def _make_room(self) -> None:
        """Make space where memory was found to be short."""
        totals = self._totals
        n_leaves, n_cells, n_counts, n_words, n_arcs, n_sets = self._wanted[: state.FIRST_WANTED_SET].tolist()
        if totals[state.N_LEAVES] + n_leaves > len(self.records):
            records = grown(self.records, int(totals[state.N_LEAVES]) + n_leaves, np.empty)
            self._dropped = grown(self._dropped, len(records), np.empty)
            self._waiting = np.empty((3, state.N_SLOTS * len(records)), np.int64)
            self._joined = grown(self._joined, len(records), np.empty)
            self._splits = grown(self._splits, state.N_SLOTS * len(records), np.empty)
            self.records = records  # last: after an interrupt, the other arrays must not be too small for the records
        if totals[state.N_STEPS] + state.SPARE_STEPS > len(self._log):
            self._log = grown(self._log, len(self._log) + 8 * state.SPARE_STEPS, np.empty)
        if totals[state.N_WORDS] + n_words > len(self._regions):
            self._regions = grown(self._regions, int(totals[state.N_WORDS]) + 2 * n_words, np.empty)
        if totals[state.N_ARCS] + n_arcs > len(self._arcs):
            self._arcs = grown(self._arcs, int(totals[state.N_ARCS]) + 2 * n_arcs + _LEAVES, np.empty)
        self.histograms.make_room(n_cells, n_counts)
        if self._local is not None:
            self._local.make_room(self._wanted[state.FIRST_WANTED_SET :][:n_sets])
        self._wanted[:] = 0

    def _serve(self) -> None:
        """Fill in and score the leaves that wait for counts or weights."""
        if not (self.rules.weighs or self.rules.remote):
            return
        self._wait_for_counts()
        totals = self._totals
        to_score, split, merged = (self._waiting[row, : totals[state.N_STALE + row]] for row in range(3))
        n_children = self._splits["n_children"][split]
        children = self._splits["first_child"][split].repeat(n_children) + count_up(n_children)
        batch = np.concatenate([to_score, self.nodes["merged"][merged], children]).astype(np.int64)
        targets, now = np.unique(self.records["target"][batch]), self._state()
        self._n_served = len(targets) or self._n_served  # none: memory was short
        if self.rules.remote:
            self._fill(batch, split, children, now)
        if isinstance(self._prior, PriorNetwork):
            if len(batch):
                self._weigh(batch, self._prior)
                self._scored = True
        else:
            costs = _LOOKING_NS * self.nodes["n_leaves"][targets]
            self._workers.run(lambda begin, end: schedule.refresh_nodes(targets, begin, end, now), costs)
        totals[state.N_STALE : state.N_MERGED + 1] = 0  # only now: an interrupt must not leave leaves without gains
        if self.histograms.are_plenty:
            schedule.free_spent(batch, now)

    def _fill(self, batch: Integers, split: Integers, children: Integers, now: Any) -> None:
        """Request joins, cuts and counts of sets of cases for these leaves, the last of which are children of splits.

        Unless exponents come from the host, the leaves are scored as well.
        """
        self._join_sets()
        records = self.records
        largest, whole = np.zeros(len(split), np.int64), np.zeros(0, np.int64)
        if len(split):
            variables, parents = self._splits["variable"][split], records["cases"][split // state.N_SLOTS]
            groups = np.empty(int(self._layout.n_states[variables].sum()), np.int64)
            kid = np.empty(len(children), np.int64)
            with self._scratch() as scratch:
                expand.plan_splits(split, groups, largest, kid, now, scratch)
            self._session.cut(parents, variables, groups, records["cases"][children[kid >= 0]])
            whole, n_children = children[kid < 0], self._splits["n_children"][split]
            if len(whole):  # pieces with all cases of the parted leaf
                owners = np.arange(len(split)).repeat(n_children)[kid < 0]
                nothing = np.zeros(int(self._layout.n_states[variables[owners]].sum()), np.int64)
                self._session.cut(parents[owners], variables[owners], nothing, records["cases"][whole])
        is_new = records["is_counted"][batch] == 0
        is_new[np.isin(batch, np.append(self._splits["first_child"][split] + largest, whole))] = False
        of_each = np.append(np.ones(len(batch) - len(children), np.int64), self._splits["n_children"][split])
        if len(batch):
            self._count_and_score(batch, np.append(0, np.cumsum(of_each)), np.flatnonzero(is_new), split, largest, now)
        self._release_dropped()

    def _join_sets(self) -> None:
        """Request the sets of merged leaves from a remote counter."""
        joined = self._joined[: self._totals[state.N_JOINED]]
        if len(joined):
            self._session.join(*joined.T.copy())
            self._totals[state.N_JOINED] = 0

    def _count_and_score(
        self, batch: Integers, begins: Integers, new: Integers, split: Integers, largest: Integers, now: Any
    ) -> None:
        """Request counts of the new leaves among these, and score all; groups are from one of `begins` to the next.

        If the counter overlaps, half of a large batch is counted while the other half is scored.
        """
        sizes, places, scores = self._sizes(batch), np.full(len(batch), -1), not self.rules.weighs
        cuts = [0, len(begins) - 1]
        if self._counter.overlaps and len(new) >= _WORTH_HALVING:
            middle = int(np.searchsorted(begins, new[len(new) // 2], "right")) - 1
            cuts = sorted({*cuts, middle})

        def counted(begin: int, end: int) -> NDArray[np.int32]:
            some = new[np.searchsorted(new, begins[begin]) : np.searchsorted(new, begins[end])]
            n_cells, leaves = sizes[some].astype(np.int64), batch[some]
            places[some] = np.cumsum(n_cells) - n_cells
            if not len(some):  # no request
                return np.zeros(0, np.int32)
            self.n_round_trips += 1
            self.n_requests += len(some)
            return self._session.count(self.records["cases"][leaves], self.records["target"][leaves], self._layout)

        self._later = cache(partial(counted, *cuts[:2]))
        for begin, end in pairwise(cuts):
            counts, first = self._later(), begins[begin]
            if end < cuts[-1]:
                self._later = self._workers.ahead(partial(counted, end, cuts[-1]))

            def fill_in(some: int, others: int, begin: int = begin, counts: NDArray[np.int32] = counts) -> None:
                given = batch, begins, split, largest, places, counts, begin + some, begin + others, scores, now
                with self._scratch() as scratch:
                    expand.fill_in(*given, scratch)

            costs = _SCORING_NS * np.add.reduceat(sizes[first : begins[end]], begins[begin:end] - first)
            self._workers.run(fill_in, costs)
        self._later = None

    def _wait_for_counts(self) -> None:
        """Wait for a request of another thread, which may be left by an interrupt: a session takes one at a time."""
        if self._later is not None:
            self._later()
            self._later = None

    def _release_dropped(self) -> None:
        """Release the sets of dropped leaves on a remote counter."""
        n_dropped = int(self._totals[state.N_DROPPED])
        if self._local is None and n_dropped > self._n_released:
            names = self.records["cases"][self._dropped[self._n_released : n_dropped]]
            self._session.release(names[names != EVERYTHING])
            self._n_released = n_dropped

    def _sizes(self, leaves: Integers) -> NDArray[np.float64]:
        """The numbers of cells of these leaves' histograms."""
        n_rows, targets = self._layout.n_rows, self.records["target"][leaves]
        sizes: NDArray[np.float64] = (n_rows[self._layout.of_target[targets]] + 1.0) * self._layout.n_states[targets]
        return sizes

    def _weigh(self, batch: Integers, prior: PriorNetwork) -> None:
        """Find the best splits of each leaf, with exponents from the prior network."""
        layout, targets = self._layout, self.records["target"][batch].tolist()
        regions = [self.region(record) for record in batch.tolist()]
        rows = [prior.exponents(target, region, layout) for target, region in zip(targets, regions, strict=True)]
        self._keep_exponents(batch, targets, rows)
        cells, starts, now = np.concatenate(rows), np.cumsum([0, *map(len, rows)]), self._state()

        def weigh(begin: int, end: int) -> None:
            with self._scratch() as scratch:
                weights.score_by_weights(batch, begin, end, cells, starts, now, scratch)

        self._workers.run(weigh, np.array([_WEIGHING_NS * len(row) for row in rows]))

    def _keep_exponents(self, batch: Integers, targets: list[int], rows: list[NDArray[np.float64]]) -> None:
        """Store the leaves' own exponents, for merges."""
        n_states = self._layout.n_states
        own = [row[len(row) - n_states[target] :] for target, row in zip(targets, rows, strict=True)]
        sizes = np.array([len(part) for part in own])
        self.records["exponents"][batch] = self._n_exponents + np.cumsum(sizes) - sizes
        end = self._n_exponents + int(sizes.sum())
        if end > len(self._exponents):
            self._exponents = grown(self._exponents, end)
        self._exponents[self._n_exponents : end] = np.concatenate(own)
        self._n_exponents = end


def _is_same(one: Any, other: Any) -> bool:
    """Whether two named tuples have identical arrays, and equal numbers."""
    for a, b in zip(one, other, strict=True):
        if a is not b and (not _is_same(a, b) if isinstance(a, tuple) else isinstance(a, np.ndarray) or a != b):
            return False
    return True


def _packed(matrix: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Pack each row into the bits of words."""
    packed = np.packbits(matrix, axis=1, bitorder="little")
    rows = np.zeros((len(matrix), -(-matrix.shape[1] // 64) * 8), np.uint8)
    rows[:, : packed.shape[1]] = packed
    return rows.view(np.uint64)


def _matrix(rows: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Undo `_packed` for a square matrix."""
    return np.unpackbits(rows.view(np.uint8), axis=1, count=len(rows), bitorder="little").view(np.bool_)
