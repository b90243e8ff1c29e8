"""Greedy search over the leaves of all nodes at once (Figure 5), step by step.

One engine serves three searches: a single target with given parents, all nodes of a given DAG, and all nodes with any
parents that keep the network acyclic. They differ only in the targets and in which parents are allowed.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise import dag
from leafwise.constraints import NO_LIMIT, ParentRules
from leafwise.counters.counter import Counter
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.drawn_nodes import DrawnGraphs, DrawnNodes, network_of
from leafwise.kernels.counting.arrays import Layout
from leafwise.kernels.leaf_search import replay, state
from leafwise.network import Network, Node
from leafwise.operators import Operator
from leafwise.prior_network import PriorNetwork
from leafwise.priors import Bdeu, ParameterPrior
from leafwise.search.growth import Deletion, Drawing, operator, start_of
from leafwise.search.histograms import make_layout
from leafwise.search.leaves import Leaves
from leafwise.search.limits import check_numbers
from leafwise.search.taken import Taken
from leafwise.structure_priors import StructurePrior
from leafwise.table import Variable, count_states
from leafwise.workers import Workers

SCHEDULES = ("best-first", "splits-first")
_CHUNK = 4096  # steps, and
_MOST_CELLS = 2**30  # 4 GiB of counts
_MOMENT = 0.05  # seconds, between two looks at the clock
_WITNESSES = 64  # assignments drawn, to see which variables matter


@dataclass(frozen=True)
class LeafSearch:
    """How to search: with which operators, in which order, and how far.

    `best-first` always takes the operator that gains most; `splits-first` merges only when no split gains.

    >>> LeafSearch(operators="BM", schedule="best-first").seconds is None
    True
    """

    operators: str = "CBIM"  # C: complete splits, B: by one state, I: below a state, in order, M: merges
    schedule: str = "splits-first"
    delete_parents: bool = False  # after each merge, delete parents that no longer matter
    max_steps: int | None = None
    seconds: float | None = None
    threads: int | None = None  # None: all cores; the network does not depend on it

    def __post_init__(self) -> None:
        letters = set(self.operators)
        if len(letters) != len(self.operators) or not letters <= set("CBIM") or not letters & set("CBI"):
            raise ValueError(
                f"operators are {self.operators!r}: give some of the letters C, B, I and M, each once, and not M alone"
            )
        if self.schedule not in SCHEDULES:
            raise ValueError(f"the schedule is {self.schedule!r}: give one of {', '.join(SCHEDULES)}")
        check_numbers(self, max_steps=0, seconds=0, threads=1)

    def begin(
        self, problem: "Problem", counter: Counter, workers: Workers, state: Mapping[str, Any] | None = None
    ) -> "LeafSearchRun":
        """The search with these settings; where another one was, if its state is given."""
        return LeafSearchRun(problem, counter, self, workers, state)


@dataclass(frozen=True, slots=True)
class Step:
    """One operator, and the network's size and score after it."""

    operator: Operator
    log_score: float
    n_leaves: int
    n_arcs: int


@dataclass(frozen=True)
class Problem:
    """What is searched: variables, targets, priors, constraints, and where to begin."""

    variables: tuple[Variable, ...]
    targets: tuple[int, ...]
    prior: ParameterPrior
    structure_prior: StructurePrior
    parents: ParentRules
    n_candidates: NDArray[np.int64]  # for each variable: those that its graph may test, cycles apart
    start: Mapping[int, DecisionGraph]  # targets not named begin as a single leaf

    @property
    def counted(self) -> dict[str, list[int]]:
        """How many candidates each variable has, where these are not all others: what its structure prior counted."""
        n_candidates: list[int] = self.n_candidates.tolist()
        return {} if set(n_candidates) <= {len(self.variables) - 1} else {"candidates": n_candidates}

    def log_prior(self, target: int, graph: DecisionGraph) -> float:
        """Of a target's graph."""
        n_states, n_candidates = self.variables[target].n_states, int(self.n_candidates[target])
        return self.structure_prior.log_prior(graph, n_states, self.variables, n_candidates)

    def layout(self) -> Layout:
        """The layout of all histograms. Raises a ValueError when the first ones alone would not fit."""
        n_states = count_states(self.variables)
        targets = np.array(self.targets)
        layout = make_layout(self.parents.allowed | self.parents.is_parent, n_states, targets)
        n_cells = int((layout.n_rows[layout.of_target[targets]] * n_states[targets]).sum())
        if n_cells > _MOST_CELLS:
            largest = sorted(self.variables, key=lambda variable: -variable.n_states)[:2]
            which = " and ".join(f"{variable.name!r} ({variable.n_states} states)" for variable in largest)
            raise ValueError(
                f"counting all pairs of variables takes {n_cells} cells, more than the limit of {_MOST_CELLS}: "
                f"bin or drop those with the most states, such as {which}, or allow fewer parents"
            )
        return layout


class LeafSearchRun:
    """A search under way. Iterate for its steps, or `run` it; `network` is the network so far, after any step.

    `stopped` says why there are no more steps: "no operator gains", "max_steps", "seconds"; "" while there may be.
    """

    def __init__(
        self,
        problem: Problem,
        counter: Counter,
        settings: LeafSearch,
        workers: Workers,
        state_before: Mapping[str, Any] | None = None,
    ) -> None:
        began = time.perf_counter()
        self._taken = taken = Taken() if state_before is None else Taken.of(state_before)
        if counter.local is not None:
            counter.local.prepare()
        layout = problem.layout()
        self.settings, self._problem, self._counter = settings, problem, counter
        self._n_states = layout.n_states
        limits, start = problem.parents, problem.start
        if state_before is not None:
            limits, start = limits._replace(is_parent=taken.is_parent(len(self._n_states))), taken.graphs
        most_states = int(self._n_states.max())
        rules = state.Rules(
            "M" in settings.operators,
            settings.schedule == "splits-first",
            limits.most_parents,
            limits.most_leaves,
            limits.most_leaves < NO_LIMIT,
            most_states,
            not settings.delete_parents and limits.most_parents == limits.most_leaves == NO_LIMIT,
            settings.delete_parents,
            isinstance(problem.prior, PriorNetwork),
            counter.local is None,
            isinstance(problem.prior, Bdeu | PriorNetwork) or ("C" in settings.operators and most_states > 2),
        )
        self._leaves = Leaves(
            counter,
            workers,
            problem.prior,
            problem.structure_prior,
            settings.operators,
            rules,
            limits,
            problem.n_candidates,
            problem.variables,
            layout,
            np.array(problem.targets),
        )
        others = np.array([target for target in problem.targets if target not in start], np.int64)
        self._leaves.plant(start, others, taken.regions)
        self._graphs = start_of(start, others)
        self._deleted: list[Deletion] = []
        self._n_examined = 0  # steps after which parents were deleted, or need not be
        self.stopped = ""
        self._sums = {"gain": taken.gain, "log_prior": taken.log_prior}  # of the steps so far, and
        self._n_summed = {"gain": 0, "log_prior": 0}  # ... how many of its own these were
        self._refund = taken.refund  # for tests that went with the parents that were deleted
        self.seconds = taken.seconds + time.perf_counter() - began

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        before = self._leaves.n_steps
        while self._leaves.n_steps == before and not self.stopped:
            self._advance(1)
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
        """Give back the counter's memory when others will use the counter; no steps can be taken after this."""
        self.stopped = self.stopped or "closed"
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
        return int(self._leaves.nodes["n_parents"][list(self._problem.targets)].sum())

    @property
    def n_parameters(self) -> int:
        return int((self._leaves.nodes["n_committed_leaves"] * (self._n_states - 1)).sum())

    @property
    def n_deleted(self) -> int:
        """How many parents were deleted."""
        return self._taken.n_deleted + len(self._deleted)

    @property
    def log_score(self) -> float:
        """The score at the start and all gains since: of the graphs with all their tests.

        Where some do not matter, and tests cost something, the network is left with a higher one.
        """
        return self._log_likelihood_before() + self._log_prior_before + self._sum("gain") + self._refund

    @property
    def log_marginal_likelihood(self) -> float:
        return self._log_likelihood_before() + self._sum("gain") - self._sum("log_prior")

    def _log_likelihood_before(self) -> float:
        """Before the first of all steps."""
        self._price()
        return self._taken.log_likelihood if self._taken.graphs else self._leaves.log_likelihood

    @cached_property
    def _log_prior_before(self) -> float:
        problem, single = self._problem, DecisionGraph.single()
        others = [target for target in problem.targets if target not in problem.start]
        pairs = list(zip(self._n_states[others].tolist(), problem.n_candidates[others].tolist(), strict=True))
        prior = problem.structure_prior
        known = {(r, n): prior.log_prior(single, r, problem.variables, n) for r, n in set(pairs)}
        started = [problem.log_prior(target, graph) for target, graph in problem.start.items()]
        return math.fsum([*started, *map(known.__getitem__, pairs)])

    def _sum(self, what: str) -> float:
        """What all steps so far gained: added up in order, whenever it is asked for."""
        gains = self._leaves.gained(what, self._n_summed[what], self._leaves.n_steps)
        self._sums[what] = float(np.append(self._sums[what], gains).cumsum()[-1])
        self._n_summed[what] += len(gains)
        return self._sums[what]

    @property
    def network(self) -> Network:
        """The network as it is now: what does not matter is left out of its graphs, which say the same without it."""
        nodes = self._nodes()
        return network_of(
            self._problem.variables,
            nodes,
            prior=str(self._problem.prior),
            structure_prior=str(self._problem.structure_prior),
            learned=self._summary(nodes.graphs),
        )

    def node(self, target: int) -> Node:
        """One node as it is now."""
        node = self._nodes().made()[target]
        assert node is not None
        return node

    def node_log_scores(self) -> dict[int, float]:
        """What each node, without what does not matter in it, adds to the log score."""
        drawing, records = self._draw(self._leaves.n_steps, reduces=True), self._leaves.records
        graphs, own = self._without_irrelevant(drawing.graphs), records["target"][drawing.leaves]
        likelihoods = np.bincount(own, records["log_likelihood"][drawing.leaves], len(self._n_states)).tolist()
        return {t: likelihoods[t] + self._problem.log_prior(t, graphs.graph(t)) for t in self._problem.targets}

    def state(self) -> dict[str, Any]:
        """What it takes to go on from here, in plain values."""
        if self.settings.delete_parents:
            self._delete_parents()
        drawing, parents = self._draw(self._leaves.n_steps), self._leaves.is_parent
        graphs = drawing.graphs
        return {
            "graphs": [part.tolist() for part in (graphs.begin, graphs.tests, graphs.first, graphs.children)],
            "regions": [self._leaves.region_words(record) for record in drawing.leaves.tolist()],
            "arcs": np.argwhere(parents)[:, ::-1].tolist(),
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
        """How often counts were asked for in batches, and how many histograms; none where the rows are here."""
        return self._leaves.n_round_trips, self._leaves.n_requests

    def summary(self) -> dict[str, Any]:
        """What was learned and how, in plain values. No times: the same data and options give the same."""
        return dict(self.network.learned)

    def _summary(self, graphs: DrawnGraphs) -> dict[str, Any]:
        variables, targets = self._problem.variables, self._problem.targets
        target = variables[targets[0]].name if len(targets) < len(variables) else None
        return {
            "cases": round(self._counter.n_cases * self._counter.unit),
            "variables": len(variables),
            "target": target,
            "operators": self.settings.operators,
            "schedule": self.settings.schedule,
            **self._problem.counted,
            "log_score": self.log_score + self._log_prior_left_out(graphs),
            "log_marginal_likelihood": self.log_marginal_likelihood,
            "leaves": self.n_leaves,
            "parameters": self.n_parameters,
            "arcs": len(self._arcs(graphs)),
            "tests": int(np.count_nonzero(graphs.tests != LEAF)),
            "splits": self.n_splits,
            "merges": self.n_merges,
            "steps": self.n_steps,
            "deleted_parents": self.n_deleted,
            "stopped": self.stopped,
        }

    def _nodes(self) -> DrawnNodes:
        """All nodes as they are now, without what does not matter."""
        drawing = self._draw(self._leaves.n_steps, reduces=True)
        graphs, leaves = self._without_irrelevant(drawing.graphs), drawing.leaves
        n_states = self._n_states[graphs.owners_of_leaves]
        groups = {r: leaves[n_states == r] for r in set(n_states.tolist())}
        numbers = {r: (self._leaves.counts(own), self._exponents(own, r)) for r, own in groups.items()}
        return DrawnNodes(self._n_states, graphs, self._arcs(graphs), self._leaves.n_ancestors, numbers)

    def _arcs(self, graphs: DrawnGraphs) -> NDArray[np.int64]:
        """The places of arcs from all that is tested, and of those that must be there."""
        fixed = self._problem.parents.fixed
        if not fixed.any():
            return graphs.tested
        own = np.zeros_like(fixed)
        own[list(self._problem.targets)] = fixed[list(self._problem.targets)]
        arcs: NDArray[np.int64] = np.union1d(graphs.tested, dag.arc_places(own))
        return arcs

    def _without_irrelevant(self, graphs: DrawnGraphs) -> DrawnGraphs:
        """The graphs without tests of variables of which no change changes the leaf."""
        if self.n_merges == 0 and not self._problem.start:
            return graphs  # trees: each test sends cases to two leaves or more
        doubtful = np.empty((len(graphs.tests), 2), np.int64)
        arrays = graphs.begin, graphs.tests, graphs.first, graphs.children
        n = replay.find_doubtful(*arrays, self._n_states, _WITNESSES, doubtful)
        n_states, changed = self._n_states.tolist(), {}
        for target in dict.fromkeys(doubtful[:n, 0].tolist()):
            graph = graphs.graph(target)
            for variable in set(graph.tested).difference(graph.relevant_parents(n_states)):
                graph = graph.without(variable, n_states)
            changed[target] = graph.simplified()
        return DrawnGraphs.of({**graphs.made(), **changed}, len(n_states)) if changed else graphs

    def _log_prior_left_out(self, graphs: DrawnGraphs) -> float:
        """What the structure prior gains by leaving out of the graphs what does not matter."""
        if not self._problem.structure_prior.costs.tests:
            return 0.0
        whole, n = self._draw(self._leaves.n_steps).graphs, len(self._n_states)
        n_tests = [np.bincount(g.owners[g.tests != LEAF], minlength=n) for g in (graphs, whole)]
        changed = np.flatnonzero(n_tests[0] < n_tests[1]).tolist()
        log_prior = self._problem.log_prior
        return math.fsum(log_prior(t, graphs.graph(t)) - log_prior(t, whole.graph(t)) for t in changed)

    def _exponents(self, leaves: NDArray[np.int64], r: int) -> NDArray[np.float64]:
        """Of leaves of targets with r states."""
        prior, records = self._problem.prior, self._leaves.records
        if isinstance(prior, Bdeu):
            return records["exponent"][leaves].repeat(r).reshape(-1, r)
        if not isinstance(prior, PriorNetwork):
            return np.full((len(leaves), r), prior.exponent(r))
        pairs = zip(records["target"][leaves].tolist(), leaves.tolist(), strict=True)
        return np.stack([prior.leaf_exponents(t, self._leaves.region(at), self._n_states) for t, at in pairs])

    def _leaves_of(self, target: int, n_steps: int) -> list[int]:
        """The records of a node's leaves after so many steps."""
        leaves = self._draw(n_steps).leaves
        own: list[int] = leaves[self._leaves.records["target"][leaves] == target].tolist()
        return own

    def _price(self) -> None:
        """See to it that the leaves it began with are priced."""
        began = time.perf_counter()
        self._leaves.price_planted()
        self.seconds += time.perf_counter() - began

    def _draw(self, n_steps: int, reduces: bool = False) -> Drawing:
        self._price()
        gone = [deletion for deletion in self._deleted if deletion[0] <= n_steps]
        return self._leaves.draw(self._graphs, n_steps, gone, reduces)

    def _advance(self, n: int) -> None:
        """Take up to n more steps, for a moment; perhaps none, and then `stopped` may say why there are no more."""
        began, before = time.perf_counter(), self.n_steps
        if self.settings.delete_parents:
            self._delete_parents()
        most = self.settings.max_steps
        goal = before + n if most is None else min(before + n, most)
        if self.settings.seconds is not None and self.seconds >= self.settings.seconds:
            self.stopped = "seconds"
        elif goal <= before:
            self.stopped = "max_steps"
        else:
            status = self._leaves.advance(goal - self._taken.n_steps, _MOMENT)
            if status == state.FINISHED:
                self.stopped = "no operator gains"
            elif status == state.MERGED:
                self._delete_parents()
        self.seconds += time.perf_counter() - began

    def _delete_parents(self) -> None:
        """If the last step is a merge, delete the parents that its node no longer depends on; once, come what may."""
        n_steps = self._leaves.n_steps
        if self._n_examined == n_steps:
            return
        step = self._leaves.steps(n_steps - 1, n_steps)[0]
        target = int(step["target"])
        if step["other"] >= 0:
            parents = np.flatnonzero(self._leaves.is_parent[target] > self._problem.parents.kept[target]).tolist()
            graph = self._draw(n_steps).graphs.graph(target)
            gone = sorted(set(parents).difference(graph.relevant_parents(self._n_states.tolist())))
            if gone:
                deleted = [(n_steps, target, variable) for variable in gone]
                self._deleted = [*self._deleted, *(deletion for deletion in deleted if deletion not in self._deleted)]
                drawing = self._draw(n_steps)
                left = drawing.graphs.graph(target)
                self._leaves.delete_parents(target, gone, left, drawing.records(target))
                self._refund += self._problem.log_prior(target, left) - self._problem.log_prior(target, graph)
        self._n_examined = n_steps

    def _operator(self, number: int) -> Operator:
        """A step as a value, in terms of the graph before it."""
        step = self._leaves.steps(number, number + 1)[0]
        return operator(step, self._leaves_of(int(step["target"]), number), self._leaves.groups(number))
