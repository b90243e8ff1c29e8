"""Greedy search over the leaves of all nodes at once (Figure 5), step by step.

The search is for a single target with given parents, for all nodes of a given DAG, or for all nodes with any parents
that keep the network acyclic; these cases differ only in the targets and in the parents that are allowed.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, count, groupby, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leafwise import dag
from leafwise.constraints import NO_LIMIT
from leafwise.counters.counter import Counter
from leafwise.decision_graph import DecisionGraph
from leafwise.kernels.counting.arrays import Layout
from leafwise.kernels.leaf_search import replay, state
from leafwise.kernels.leaf_search.own_values import MOST_STATES
from leafwise.kernels.scoring.dirichlet import TIE
from leafwise.learned_nodes import LearnedGraphs, LearnedNodes, network_of
from leafwise.network import Network, Node
from leafwise.operators import Operator
from leafwise.prior_network import PriorNetwork
from leafwise.priors import Bdeu
from leafwise.search.leaves import Leaves
from leafwise.search.own_form import own_tests
from leafwise.search.problem import Problem, Step
from leafwise.search.replayed_graphs import (
    Deletion,
    ReplayedGraphs,
    operator,
    single_leaves,
    start_of,
    with_single_leaves,
)
from leafwise.search.run import MOMENT, Run, check_numbers
from leafwise.search.saved_state import SavedState
from leafwise.search.score_tables import ScoreTables
from leafwise.structure_priors import LOG_SHARED, Choices, n_sets
from leafwise.workers import Workers

if TYPE_CHECKING:
    from leafwise.search.sharing import SharingRun

AUTO = "auto"
SCHEDULES = ("best-first", "splits-first")
_CHUNK = 4096  # most steps between two calls of `progress`
_WITNESSES = 256  # assignments that are tried to show that a variable matters
_WITNESSING_NS = 80.0  # for each node, roughly
_MERGES_AHEAD = 8  # that a node prepares while it waits for remote counts


@dataclass(frozen=True)
class LeafSearch:
    """Settings of the search: operators, schedule and limits.

    `best-first` always takes the operator with the largest gain; `splits-first` merges only when no split gains, and
    tries partial splits, by which graphs test their own variable, only when nothing else gains. For a single target,
    "auto" searches again without complete splits, and keeps the more probable graph.

    >>> LeafSearch(operators="BM", schedule="best-first").seconds is None
    True
    """

    operators: str = AUTO  # C: complete splits, B: by one state, I: below a state, in order, M: merges, O: partial;
    # R: relabelled merges, T: ties of leaves of different variables, both at the end. "auto": CBIM
    schedule: str = "splits-first"
    delete_parents: bool = False  # after each merge, delete parents that no longer matter
    max_steps: int | None = None
    seconds: float | None = None
    threads: int | None = None  # None: all cores; the network does not depend on it

    def __post_init__(self) -> None:
        letters = set(self.letters)
        if len(letters) != len(self.letters) or not letters <= set("CBIMORT") or not letters & set("CBI"):
            raise ValueError(
                f"operators are {self.operators!r}: give some of the letters C, B, I, M, O, R and T, each once, with "
                f"C, B or I among them, or 'auto'"
            )
        if self.schedule not in SCHEDULES:
            raise ValueError(f"the schedule is {self.schedule!r}: give one of {', '.join(SCHEDULES)}")
        check_numbers(self, max_steps=0, seconds=0, threads=1)

    def begin(
        self, problem: Problem, counter: Counter, workers: Workers, state: Mapping[str, Any] | None = None
    ) -> "LeafSearchRun | SharingRun":
        """Begin a search with these settings, or resume one from its state."""
        if not self.shares:
            return LeafSearchRun(problem, counter, self, workers, state)
        from leafwise.search.sharing import SharingRun

        if state is None:
            return SharingRun(LeafSearchRun(problem, counter, self, workers), problem)
        return SharingRun(LeafSearchRun(problem, counter, self, workers, state["before"]), problem, state["shared"])

    @property
    def letters(self) -> str:
        """The letters of the operators."""
        return "CBIM" if self.operators == AUTO else self.operators

    @property
    def shares(self) -> bool:
        """Whether leaves may be made to share distributions at the end."""
        return bool(set(self.letters) & set("RT"))


class LeafSearchRun(Run):
    """A search in progress. Iterate over its steps, or call `run`; after any step, `network` is the current network.

    `stopped` says why there are no more steps: "no operator gains", "max_steps", "seconds", "closed"; "" while there
    may be more.
    """

    def __init__(
        self,
        problem: Problem,
        counter: Counter,
        settings: LeafSearch,
        workers: Workers,
        before: Mapping[str, Any] | None = None,
        sets: NDArray[np.int64] | None = None,  # of the initial leaves, in a local counter
    ) -> None:
        taken = SavedState() if before is None else SavedState.of(before)
        super().__init__(problem, counter, taken.seconds)
        self.settings, self._workers = settings, workers
        self._scratches: list[Any] = []  # of threads, for this layout
        given = problem.prior, problem.structure_prior, problem.variables, problem.n_states
        self._score_tables = ScoreTables.of(*given, counter, "O" in settings.letters)
        with self._clock:
            self._begin(taken, sets)

    def _begin(self, taken: SavedState, sets: NDArray[np.int64] | None) -> None:
        """Set up the search from a saved state, which may be empty."""
        problem, counter, settings, workers = self._problem, self._counter, self.settings, self._workers
        if counter.local is not None:
            counter.local.prepare()
        layout = self._layout
        self._n_states = layout.n_states
        limits, start = problem.parents, problem.start
        if taken.graphs:
            limits, start = limits._replace(is_parent=taken.is_parent(len(self._n_states))), taken.graphs
        most_states, is_weighed = int(self._n_states.max()), isinstance(problem.prior, PriorNetwork)
        merges, splits_first = "M" in settings.letters, settings.schedule == "splits-first"
        rules = state.Rules(
            merges,
            splits_first,
            limits.most_parents,
            limits.most_leaves,
            limits.most_leaves < NO_LIMIT,
            most_states + 2,  # if a leaf is parted, two pieces may stay whole
            not settings.delete_parents and limits.most_parents == limits.most_leaves == NO_LIMIT,
            settings.delete_parents,
            is_weighed,
            counter.local is None,
            _MERGES_AHEAD if counter.local is None and merges and splits_first and not is_weighed else 0,
            isinstance(problem.prior, Bdeu | PriorNetwork) or ("C" in settings.letters and most_states > 2),
        )
        leaves = Leaves(
            counter,
            workers,
            self._score_tables,
            settings.letters,
            "O" in settings.letters and (taken.parts or settings.schedule == "best-first"),
            rules,
            limits,
            problem.n_candidates,
            layout,
            np.array(problem.targets),
            self._scratches,
        )
        others = _others(problem.targets, start)
        leaves.add_initial(start, others, taken.regions, taken.pieces, sets)
        self._taken, self._leaves, self._graphs = taken, leaves, start_of(start, others)  # at once
        self._other: Leaves | None = None  # the second search for some graphs, while it is in progress
        self._deleted: list[Deletion] = []
        self._deletion: tuple[Any, ...] | None = None  # arguments of `Leaves.delete_parents`, until that is complete
        self._n_examined = 0  # number of steps after which parents to delete were last looked for
        self._sums = {"gain": taken.gain, "log_prior": taken.log_prior}  # over all steps before, and
        self._n_summed = {"gain": 0, "log_prior": 0}  # ... this many of `_leaves`
        self._refund = taken.refund  # of the structure prior, for the tests of deleted parents

    @cached_property
    def _layout(self) -> Layout:
        return self._problem.layout()

    def __iter__(self) -> Iterator[Step[Operator]]:
        return self

    def __next__(self) -> Step[Operator]:
        leaves, before = self._leaves, self._leaves.n_steps
        while self._leaves.n_steps == before and not self.stopped:
            self._advance(1)
            if self._leaves is not leaves:  # graphs and steps were replaced
                leaves, before = self._leaves, self._leaves.n_steps
            if self._leaves.n_steps == before:
                self.watch(self)
        if self._leaves.n_steps == before:
            raise StopIteration
        return Step(self._operator(before), self.log_score, self.n_leaves, self.n_arcs)

    def run(self, progress: Callable[["LeafSearchRun"], None] | None = None) -> None:
        """Take all remaining steps; `progress` is called about twenty times a second."""
        while not self.stopped:
            self._advance(_CHUNK)
            if progress is not None:
                progress(self)

    def close(self) -> None:
        """Release the search's memory on the counter, so that others can use it; no more steps can be taken."""
        self.stopped = self.stopped or "closed"
        if self._other is not None:
            self._other.release()
        self._leaves.close()

    @property
    def n_steps(self) -> int:
        return self._taken.n_steps + self._leaves.n_steps

    @property
    def n_merges(self) -> int:
        return self._taken.n_merges + self._leaves.n_merges

    @property
    def n_splits(self) -> int:
        return self.n_steps - self.n_merges

    @property
    def n_leaves(self) -> int:
        return int(self._leaves.nodes["n_committed_leaves"].sum())

    @property
    def n_arcs(self) -> int:
        return int(self._leaves.nodes["n_parents"][self._leaves.targets].sum())

    @property
    def n_parameters(self) -> int:
        if "O" in self.settings.letters:
            return int((self._leaves.records["n_outcomes"][self._replay(self._leaves.n_steps).leaves] - 1).sum())
        return int((self._leaves.nodes["n_committed_leaves"] * (self._n_states - 1)).sum())

    @property
    def n_deleted(self) -> int:
        """The number of parents that were deleted."""
        return self._taken.n_deleted + len(self._deleted)

    @property
    def log_score(self) -> float:
        """The score of the graphs with all their tests: that of the initial graphs, plus all gains.

        The score of `network` differs if irrelevant tests are omitted and the structure prior charges for tests.
        """
        return self._log_likelihood_before() + self._log_prior_before + self._sum("gain") + self._refund

    @property
    def log_marginal_likelihood(self) -> float:
        return self._log_likelihood_before() + self._sum("gain") - self._sum("log_prior")

    def _log_likelihood_before(self) -> float:
        """The log marginal likelihood before the first of all steps, including those before the search was resumed."""
        self._score()
        return self._taken.log_likelihood if self._taken.graphs else self._log_likelihood_of_first

    @cached_property
    def _log_likelihood_of_first(self) -> float:
        return self._leaves.log_likelihood

    @cached_property
    def _log_prior_before(self) -> float:
        problem, single = self._problem, DecisionGraph.single()
        others, prior = _others(problem.targets, problem.start), problem.structure_prior
        size = int(problem.n_candidates.max()) + 1
        pairs = size * self._n_states[others] + problem.n_candidates[others]
        alike = zip(*(part.tolist() for part in np.unique(pairs, return_counts=True)), strict=True)
        alone = [repeat(prior.log_prior(single, pair // size, problem.variables, pair % size), n) for pair, n in alike]
        started = [problem.log_prior(target, graph) for target, graph in problem.start.items()]
        return math.fsum(chain(started, *alone))

    def _sum(self, what: str) -> float:
        """The sum of "gain" or "log_prior" over all steps so far, in order, computed incrementally."""
        gains = self._leaves.gained(what, self._n_summed[what], self._leaves.n_steps)
        total = float(np.append(self._sums[what], gains).cumsum()[-1])
        n_summed = self._n_summed[what] + len(gains)
        self._sums[what], self._n_summed[what] = total, n_summed  # at once: an interrupt must not count gains twice
        return total

    @property
    def network(self) -> Network:
        """The current network; its graphs omit irrelevant tests, which does not change the distribution."""
        replayed, graphs = self._reduced(isinstance(self._problem.structure_prior, Choices))
        leaves, arcs = replayed.leaves, self._arcs(graphs)
        told = self._told(graphs, leaves, len(arcs), self._log_prior_left_out(replayed, graphs))
        variables, about = self._problem.variables, self._problem.about(told)
        if (graphs.tests == replay.OWN).any():
            return Network.with_nodes_later(variables, self._nodes(graphs, leaves), **about)
        return network_of(variables, self._learned_nodes(graphs, leaves, arcs), **about)

    @property
    def nodes(self) -> tuple[Node | None, ...]:
        """The nodes of `network`, in less time than it takes to make the network."""
        replayed, graphs = self._reduced()
        return self._nodes(graphs, replayed.leaves)()

    def node(self, target: int) -> Node:
        """The current node of a target."""
        node = self.nodes[target]
        assert node is not None
        return node

    def node_log_scores(self) -> dict[int, float]:
        """The log score of each node, without irrelevant tests."""
        replayed, graphs = self._reduced()
        return self._whole_scores(graphs.made(), replayed.leaves, self._problem.targets, self._leaves.records)[0]

    def _log_priors(
        self,
        graphs: Mapping[int, DecisionGraph],
        leaves: NDArray[np.int64],
        targets: Sequence[int],
        records: NDArray[np.void],
    ) -> dict[int, float]:
        """The log priors of these targets' graphs, with charges for parted leaves; `leaves`: records of all leaves."""
        problem = self._problem
        found = {target: problem.log_prior(target, graphs[target]) for target in targets}
        if "O" in self.settings.letters:
            costs, leaves = problem.structure_prior.costs, leaves[self._are_of(targets, leaves, records)]
            own = records["target"][leaves]
            too_many = np.bincount(own, self._n_states[own] - records["n_outcomes"][leaves], len(self._n_states))
            found = {target: value - costs.log_kappa * float(too_many[target]) for target, value in found.items()}
            switches = records[["target", "partition", "states"]][leaves[records["part"][leaves] != 0]]
            paid: dict[tuple[int, int], float] = {}
            for target, _, states in set(switches.tolist()) if costs.tests else ():
                if (target, states) not in paid:
                    reached = [state for state in range(states.bit_length()) if states >> state & 1]
                    paid[target, states] = LOG_SHARED + math.log(n_sets(problem.variables[target], reached))
                found[target] -= paid[target, states]
        return found

    def _are_of(
        self, targets: Iterable[int], leaves: NDArray[np.int64], records: NDArray[np.void]
    ) -> NDArray[np.bool_]:
        """Which of these leaves belong to one of the targets."""
        is_one = np.zeros(len(self._n_states), np.bool_)
        is_one[list(targets)] = True
        found: NDArray[np.bool_] = is_one[records["target"][leaves]]
        return found

    def _begin_to_part(self) -> None:
        """Allow partial splits, when nothing else gains any more.

        Before that, unless there are initial graphs or parents are deleted, the graphs of targets with three states or
        more are relearned over the parents found, with partial splits from the first step; nodes keep the better graph.
        """
        problem, before, parents = self._problem, self._leaves, self._leaves.is_parent
        targets = [t for t in problem.targets if 2 < self._n_states[t] <= MOST_STATES and parents[t].any()]
        if not targets or problem.start or self.settings.delete_parents:
            before.begin_to_part()
            return
        self._score()  # the initial leaves: this search is suspended while the other runs
        self._other = before.again(np.array(targets), problem.parents._replace(allowed=parents))

    def _end_other(self, other: Leaves) -> None:
        """End the second search, and continue from the better graphs; if interrupted, it will be repeated."""
        try:
            other.score_initial()
            self._take_better(other)
        finally:
            self._other = None
            other.release()

    def _take_better(self, other: Leaves) -> None:
        """Continue, with partial splits, from the better graph of each node."""
        before, anew, mine = self._leaves, other.targets, self._replay(self._leaves.n_steps)
        its = other.draw(single_leaves(anew, other.roots), other.n_steps, [], False)
        graphs, its_graphs = ({t: found.graphs.graph(t) for t in anew.tolist()} for found in (mine, its))
        targets = [t for t in graphs if graphs[t] != its_graphs[t]]
        (scores, priors), (its_scores, its_priors) = (
            self._whole_scores(own, found.leaves, targets, other.records)
            for own, found in ((graphs, mine), (its_graphs, its))
        )
        chosen = {t: its_graphs[t] for t in targets if its_scores[t] > scores[t] + TIE}
        if not chosen:
            before.begin_to_part()
            return
        gain, log_prior = (
            math.fsum(new[t] - old[t] for t in chosen) for new, old in ((its_scores, scores), (its_priors, priors))
        )
        come, gone = (found.leaves[self._are_of(chosen, found.leaves, other.records)] for found in (its, mine))
        leaves = before.with_nodes_of(other, come, chosen)
        n = leaves.n_steps
        taken = replace(self._taken, n_steps=self.n_steps - n, n_merges=self.n_merges - leaves.n_merges)
        are_chosen = [t in chosen for t in graphs]
        graphs_before = with_single_leaves(self._graphs, anew[are_chosen], other.roots[are_chosen])
        sums = {"gain": self._sum("gain") + gain, "log_prior": self._sum("log_prior") + log_prior}
        summed = dict.fromkeys(sums, n)
        self._taken, self._leaves, self._graphs, self._sums, self._n_summed = taken, leaves, graphs_before, sums, summed
        other.given = come  # no call in between: an interrupt must not leave their cases with both, or with neither
        leaves.drop(gone)

    def _whole_scores(
        self,
        graphs: Mapping[int, DecisionGraph],
        leaves: NDArray[np.int64],
        targets: Sequence[int],
        records: NDArray[np.void],
    ) -> tuple[dict[int, float], dict[int, float]]:
        """The log scores of these targets' graphs with all their tests, and their log priors."""
        log_priors = self._log_priors(graphs, leaves, targets, records)
        likelihoods = np.bincount(records["target"][leaves], records["log_likelihood"][leaves], len(self._n_states))
        return {t: float(likelihoods[t]) + log_priors[t] for t in log_priors}, log_priors

    def state(self) -> dict[str, Any]:
        """The state from which the search can be resumed, as plain values."""
        if self.settings.delete_parents:
            self._delete_parents()
        replayed = self._replay(self._leaves.n_steps)
        graphs = replayed.graphs
        parts = graphs.begin, graphs.tests, graphs.first, graphs.children
        return {
            "graphs": [part.tolist() for part in parts],
            "regions": self._leaves.region_words(replayed.leaves),
            "pieces": self._leaves.pieces(replayed.leaves),
            "parts": self._leaves.parts,
            "arcs": np.argwhere(self._leaves.is_parent)[:, ::-1].tolist(),
            "n_steps": self.n_steps,
            "n_merges": self.n_merges,
            "n_deleted": self.n_deleted,
            "log_likelihood": self._log_likelihood_before(),
            "gain": self._sum("gain"),
            "log_prior": self._sum("log_prior"),
            "refund": self._refund,
            "seconds": self.seconds,
        }

    @property
    def round_trips(self) -> tuple[int, int]:
        """The numbers of batches and of histograms that were requested; zero if the rows are local."""
        return self._leaves.n_round_trips, self._leaves.n_requests

    def summary(self) -> dict[str, Any]:
        """What was learned and how, as plain values; without times, so that it is reproducible."""
        return dict(self.network.learned)

    def _told(
        self, graphs: LearnedGraphs, leaves: NDArray[np.int64], n_arcs: int, log_prior_left_out: float
    ) -> dict[str, Any]:
        how = {"operators": self.settings.letters, "schedule": self.settings.schedule, **self._problem.counted}
        n_steps, n_merges = self.n_steps, self.n_merges
        taken = {"splits": n_steps - n_merges, "merges": n_merges, "steps": n_steps, "deleted_parents": self.n_deleted}
        n_switches = int(np.count_nonzero(self._leaves.records["part"][leaves]))  # each a test of its own variable,
        kids = graphs.first[:-1][graphs.tests == replay.OWN]  # ... with a leaf below if its part is one state
        n_single = int(np.count_nonzero(graphs.children[kids + 1] == graphs.children[kids + 2]))
        n_tests = int(np.count_nonzero(graphs.tests >= 0)) + n_switches
        found = {
            "log_score": self.log_score + log_prior_left_out,
            "log_marginal_likelihood": self.log_marginal_likelihood,
            "leaves": len(leaves) - n_switches + n_single,
            "parameters": self.n_parameters,
            "arcs": n_arcs,
        }
        return self._summary(how, n_tests, n_steps, taken, found)

    def _reduced(self, charges: bool = False) -> tuple[ReplayedGraphs, LearnedGraphs]:
        """All current graphs as replayed, and without irrelevant tests; their leaves are the same."""
        replayed = self._replay(self._leaves.n_steps, reduces=True, charges=charges)
        return replayed, self._without_irrelevant(replayed.graphs)

    def _nodes(self, graphs: LearnedGraphs, leaves: NDArray[np.int64]) -> Callable[[], tuple[Node | None, ...]]:
        """A function that makes all nodes; some graphs may test their own variable."""
        parted = np.unique(graphs.owners[graphs.tests == replay.OWN]).tolist()
        if not parted:
            return self._learned_nodes(graphs, leaves, self._arcs(graphs)).made
        made, n, owners = graphs.made(), len(self._n_states), graphs.owners_of_leaves
        all_parents = dag.parents_at(self._arcs(graphs), n)
        plain = LearnedGraphs.of({t: graph for t, graph in made.items() if t not in parted}, n)
        others = self._learned_nodes(plain, leaves[~np.isin(owners, parted)], self._arcs(plain))
        parts = [self._with_pieces(made[target], target, leaves[owners == target]) for target in parted]

        def make() -> tuple[Node | None, ...]:
            nodes = list(others.made())
            for target, part in zip(parted, parts, strict=True):
                nodes[target] = Node.with_own_tests(own_tests(*part), all_parents[target])
            return tuple(nodes)

        return make

    def _with_pieces(self, graph: DecisionGraph, target: int, leaves: NDArray[np.int64]) -> tuple[Any, ...]:
        """The arguments of `own_tests` for a graph with parted leaves."""
        r, own = int(self._n_states[target]), self._leaves.records[leaves]
        about = [(states or (1 << r) - 1, part) for states, part in own[["states", "part"]].tolist()]
        held = self._leaves.counts(leaves), self._exponents(leaves, r)
        return graph, target, dict(zip(graph.leaves, about, strict=True)), *held

    def _learned_nodes(self, graphs: LearnedGraphs, leaves: NDArray[np.int64], arcs: NDArray[np.int64]) -> LearnedNodes:
        n_states = self._n_states[graphs.owners_of_leaves]
        groups = {r: leaves[n_states == r] for r in set(n_states.tolist())}
        numbers = {r: (self._leaves.counts(own), self._exponents(own, r)) for r, own in groups.items()}
        return LearnedNodes(self._n_states, graphs, arcs, self._leaves.n_ancestors, numbers)

    def _arcs(self, graphs: LearnedGraphs) -> NDArray[np.int64]:
        """The places (`dag.arc_places`) of all arcs from tested variables, and of fixed ones."""
        fixed = self._problem.parents.fixed
        if not fixed.view(np.bool_).any():
            return graphs.tested
        own = np.zeros_like(fixed)
        own[list(self._problem.targets)] = fixed[list(self._problem.targets)]
        arcs: NDArray[np.int64] = np.union1d(graphs.tested, dag.arc_places(own))
        return arcs

    def _without_irrelevant(self, graphs: LearnedGraphs) -> LearnedGraphs:
        """The graphs without tests of irrelevant variables: those whose state never affects the leaf."""
        if self._leaves.n_merges == 0 and not (self._problem.start or self._taken.graphs):
            return graphs  # trees: each test sends cases to at least two leaves
        doubtful, arrays = list[tuple[int, int]](), (graphs.tests, graphs.first, graphs.children)
        n_children = np.append(self._n_states, [replay.N_PIECES, 0])  # of OWN, and of a leaf

        def find(begin: int, end: int) -> None:
            own = graphs.begin[begin : end + 1]
            found = np.empty((own[-1] - own[0], 2), np.int64)
            n = replay.find_doubtful(own, *arrays, n_children, _WITNESSES, found)
            doubtful.extend((begin + target, test) for target, test in found[:n].tolist())

        self._workers.run(find, _WITNESSING_NS * np.diff(graphs.begin))
        n_states, n_variables, changed = self._n_states.tolist(), len(self._n_states), {}
        for target, group in groupby(sorted(doubtful), itemgetter(0)):
            graph, n_values = _with_pieces_as_variables(graphs.graph(target), n_states)
            tests = {test for _, test in group}
            unclear = [v for v in graph.tested if (v if v < n_variables else replay.OWN) in tests]
            gone = [variable for variable in unclear if not graph.matters(variable, n_values)]
            for variable in gone:
                graph = graph.without(variable, n_values)
            if gone:
                graph = graph.simplified()
                own = tuple(replay.OWN if test >= n_variables else test for test in graph.tests)
                changed[target] = DecisionGraph(own, graph.children)
        return LearnedGraphs.of({**graphs.made(), **changed}, n_variables) if changed else graphs

    def _log_prior_left_out(self, replayed: ReplayedGraphs, graphs: LearnedGraphs) -> float:
        """The gain in the log structure prior from omitting irrelevant tests."""
        prior, log_prior, whole = self._problem.structure_prior, self._problem.log_prior, replayed.graphs
        if not isinstance(prior, Choices):  # others charge for leaves, none of which is omitted
            return 0.0
        before, now = ([*rows, self._problem.n_candidates] for rows in zip(*replayed.charged, strict=True))
        changed = np.flatnonzero(now[0] < before[0])
        rows = [zip(*(of_each[changed].tolist() for of_each in counted), strict=True) for counted in (before, now)]
        gained = [prior.cost(*one) - prior.cost(*other) for one, other in zip(*rows, strict=True)]
        if graphs is not whole:
            n_tests = np.bincount(graphs.owners[graphs.tests >= 0], minlength=len(self._n_states))
            fewer = np.flatnonzero(n_tests < now[0]).tolist()
            gained += [log_prior(t, graphs.graph(t)) - log_prior(t, whole.graph(t)) for t in fewer]
        return math.fsum(gained)

    def _exponents(self, leaves: NDArray[np.int64], r: int) -> NDArray[np.float64]:
        """The exponents of leaves, of targets with r states."""
        prior, records = self._problem.prior, self._leaves.records
        if isinstance(prior, Bdeu):
            return records["exponent"][leaves].repeat(r).reshape(-1, r)
        if not isinstance(prior, PriorNetwork):
            return np.full((len(leaves), r), prior.exponent(r))
        pairs = zip(records["target"][leaves].tolist(), leaves.tolist(), strict=True)
        return np.stack([prior.leaf_exponents(t, self._leaves.region(at), self._n_states) for t, at in pairs])

    def _leaves_of(self, target: int, n_steps: int) -> list[int]:
        """The records of a node's leaves after `n_steps` steps."""
        leaves = self._replay(n_steps).leaves
        own: list[int] = leaves[self._leaves.records["target"][leaves] == target].tolist()
        return own

    def _score(self) -> None:
        """Score the initial leaves, if they are not scored yet."""
        with self._clock:
            self._leaves.score_initial()

    def _replay(
        self, n_steps: int, reduces: bool = False, charges: bool = False, deleted: list[Deletion] | None = None
    ) -> ReplayedGraphs:
        self._score()
        gone = [deletion for deletion in (self._deleted if deleted is None else deleted) if deletion[0] <= n_steps]
        log_ways = self._score_tables.per_variable[2] if charges else None
        return self._leaves.draw(self._graphs, n_steps, gone, reduces, log_ways)

    def _advance(self, n: int) -> None:
        """Take up to n more steps, within about `MOMENT` seconds; set `stopped` if there are no more."""
        with self._clock:
            if self.settings.delete_parents:
                self._delete_parents()
            before, most = self.n_steps, self.settings.max_steps
            is_over, other = self._is_over(self.settings.seconds, "max_steps", before, most), self._other
            if other is not None:
                if is_over:  # the second search counts only if complete: a resumed search repeats it
                    self._other = None
                    other.release()
                elif other.advance(other.n_steps + _CHUNK, MOMENT) == state.FINISHED:
                    self._end_other(other)
                return
            if is_over:
                return
            goal = before + n if most is None else min(before + n, most)
            status = self._leaves.advance(goal - self._taken.n_steps, MOMENT)
            if status == state.FINISHED and "O" in self.settings.letters and not self._leaves.parts:
                self._begin_to_part()
            elif status == state.FINISHED:
                self.stopped = "no operator gains"
            elif status == state.MERGED:
                self._delete_parents()

    def _delete_parents(self) -> None:
        """If the last step is a merge, delete the parents on which its node no longer depends; only once per step.

        If this is interrupted, call it again: what was found is noted first, at once, and then carried out.
        """
        n_steps = self._leaves.n_steps
        if self._n_examined != n_steps:
            self._deleted, self._refund, self._deletion, self._n_examined = (
                *self._irrelevant_parents(n_steps),
                n_steps,
            )
        if self._deletion is not None:
            self._leaves.delete_parents(*self._deletion)
            self._deletion = None

    def _irrelevant_parents(self, n_steps: int) -> tuple[list[Deletion], float, tuple[Any, ...] | None]:
        """All deletions and refunds after the last step, and how `Leaves` is to delete the parents that are irrelevant.

        Parents are kept if the graph would be less probable without them: a leaf that becomes shared is charged for,
        and the next split would bring them back.
        """
        step = self._leaves.steps(n_steps - 1, n_steps)[0]
        target, nothing = int(step["target"]), (self._deleted, self._refund, None)
        if step["other"] < 0:
            return nothing
        parents = np.flatnonzero(self._leaves.is_parent[target] > self._problem.parents.kept[target]).tolist()
        graph = self._replay(n_steps).graphs.graph(target)
        as_variables, n_values = _with_pieces_as_variables(graph, self._n_states.tolist())
        gone = sorted(set(parents).difference(as_variables.relevant_parents(n_values)))
        if not gone:
            return nothing
        deleted = [*self._deleted, *((n_steps, target, variable) for variable in gone)]
        replayed = self._replay(n_steps, deleted=deleted)
        left = replayed.graphs.graph(target)
        refund = self._problem.log_prior(target, left) - self._problem.log_prior(target, graph)
        if refund < -TIE:
            return nothing
        return deleted, self._refund + refund, (target, gone, left, replayed.records(target))

    def _operator(self, number: int) -> Operator:
        """A step as an operator, in terms of the graph before it."""
        step = self._leaves.steps(number, number + 1)[0]
        return operator(step, self._leaves_of(int(step["target"]), number), self._leaves.groups(number))


def _others(targets: Sequence[int], start: Mapping[int, DecisionGraph]) -> NDArray[np.int64]:
    """The targets that begin with a single leaf."""
    return np.array([target for target in targets if target not in start] if start else targets, np.int64)


def _with_pieces_as_variables(graph: DecisionGraph, n_states: list[int]) -> tuple[DecisionGraph, list[int]]:
    """The graph with each OWN node as a test of an additional variable, the piece; and the numbers of states of all."""
    names = count(len(n_states))
    tests = tuple(next(names) if test == replay.OWN else test for test in graph.tests)
    return DecisionGraph(tests, graph.children), [*n_states, *[replay.N_PIECES] * graph.tests.count(replay.OWN)]
