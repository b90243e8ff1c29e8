"""The end of a search over leaves: relabelled merges (R) and ties across nodes (T), the best pair first.

They begin when no other operator gains, and what is shared is not split any more. They need no data: counts add.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels.leaf_search import sharing
from leafwise.network import Network, Node, TiedLeaf
from leafwise.operators import RelabelledMerge, Tie
from leafwise.own_tests import OwnTests
from leafwise.prior_network import PriorNetwork
from leafwise.priors import Bdeu
from leafwise.search.greedy import LeafSearchRun, Problem, Step
from leafwise.structure_priors import Costs, log_prior_of_tie, n_with_labels

NOTHING_GAINS = "no operator gains"
NO_LIMIT = 2**62
_CHUNK = 256  # leaves, or steps, between two looks at the clock
_LOOSE = 64  # groups in no tree before trees are made anew, and this part of all:
_LOOSE_SHARE = 64


class Leaves:
    """The leaves of a network that may be shared: of two states or more, and no switches."""

    def __init__(self, network: Network) -> None:
        self.variables, rows = network.variables, list(_rows_of(network))
        self.owners = [(variable, leaf) for variable, leaf, *_ in rows]
        known: dict[frozenset[str], tuple[int, tuple[str, ...]]] = {}  # of each set of labels: its number, and an order
        self.labels: list[int] = []
        self.states: list[tuple[int, ...]] = []  # in that order
        orders: dict[tuple[int, tuple[int, ...]], tuple[int, tuple[int, ...]]] = {}
        for variable, _, states, *_ in rows:
            if (variable, states) not in orders:
                labels = {network.variables[variable].labels[state]: state for state in states}
                number, order = known.setdefault(frozenset(labels), (len(known), tuple(labels)))
                orders[variable, states] = number, tuple(labels[label] for label in order)
            number, own = orders[variable, states]
            self.labels.append(number)
            self.states.append(own)
        self.label_sets = [set(labels) for labels in known]
        self.sizes = np.array([len(states) for states in self.states], np.int64)
        shape = (len(rows), int(self.sizes.max(initial=1)))
        self.counts, self.exponents = np.zeros(shape), np.zeros(shape)
        for place, (states, (*_, counts, exponents)) in enumerate(zip(self.states, rows, strict=True)):
            self.counts[place, : len(states)] = counts[list(states)]
            self.exponents[place, : len(states)] = exponents[list(states)]

    def __len__(self) -> int:
        return len(self.owners)


def _rows_of(network: Network) -> Iterator[tuple[int, int, tuple[int, ...], NDArray[Any], NDArray[np.float64]]]:
    """Variable, row, states, counts and exponents of each leaf."""
    for variable, node in enumerate(network.nodes):
        holder = None if node is None else node.own or node
        if node is None or holder is None or holder.counts is None or holder.exponents is None:
            continue
        everything = tuple(range(node.n_states))
        for row, (counts, exponents) in enumerate(zip(holder.counts, holder.exponents, strict=True)):
            states = everything if node.own is None else node.own.states[node.own.places[row]]
            if len(states) >= 2 and (node.own is None or not node.own.is_switch(row)):
                yield variable, row, states, counts, exponents


class Sharing:
    """Groups of leaves that share a distribution, and the steps to larger ones."""

    def __init__(self, network: Network, operators: str, costs: Costs, adds: bool) -> None:
        self.leaves = leaves = Leaves(network)
        n, n_slots = leaves.counts.shape
        numbers, nothing = np.arange(n), np.zeros(n, np.int64)
        owners = np.array([variable for variable, _ in leaves.owners], np.int64)
        self._groups = sharing.Groups(
            leaves.counts.copy(),
            leaves.exponents.copy(),
            leaves.sizes,
            owners,
            np.array(leaves.labels, np.int64),
            np.tile(np.arange(n_slots), (n, 1)),
            np.full(n, sharing.NOBODY),
            numbers.copy(),
            numbers.copy(),
            *(nothing.copy() for _ in range(3)),
            *(np.full(n, sharing.NOBODY) for _ in range(2)),
            np.full(n, -np.inf),
            np.array([n, 0, 0]),
            np.zeros((n, 2 + n_slots), np.int64),
            np.zeros(n),
        )
        self._prices = _prices(leaves, costs, operators, adds)
        self._trees = _trees(self._groups)
        self._n_looked_for = -1  # -1: there are no trees yet
        self.finished = n < 2

    def advance(self, most: int) -> None:
        """A moment of work, without going beyond so many steps in all."""
        groups, trees, prices = self._groups, self._trees, self._prices
        if self._n_looked_for < 0:
            sharing.plant(groups, trees, prices)
            self._n_looked_for = 0
        elif self._n_looked_for < len(self.leaves):
            end = min(self._n_looked_for + _CHUNK, len(self.leaves))
            sharing.look_for_all(self._n_looked_for, end, groups, trees, prices)
            self._n_looked_for = end
        else:
            self.finished = not sharing.share(min(most, self.n_steps + _CHUNK), groups, trees, prices)

    @property
    def n_steps(self) -> int:
        return int(self._groups.totals[sharing.N_STEPS])

    @property
    def gain(self) -> float:
        """Of all steps."""
        return math.fsum(self._groups.log_gains[: self.n_steps].tolist())

    @property
    def n_saved(self) -> int:
        """How many parameters are saved by all steps."""
        return int((self.leaves.sizes[self._groups.log[: self.n_steps, 0]] - 1).sum())

    def operator(self, step: int) -> RelabelledMerge | Tie:
        """A step as a value, by the first leaves of both groups."""
        (a, b, *slots), gain = self._groups.log[step].tolist(), float(self._groups.log_gains[step])
        (target, leaf), (other_target, other) = self.leaves.owners[a], self.leaves.owners[b]
        if target != other_target:
            return Tie(target, leaf, other_target, other, gain)
        one, two = self.leaves.states[a], self.leaves.states[b]
        pairs = tuple(sorted((one[slot], state) for slot, state in zip(slots, two, strict=False)))
        return RelabelledMerge(target, leaf, other, pairs, gain)

    def ties(self) -> tuple[tuple[TiedLeaf, ...], ...]:
        """The groups of two leaves or more, by their first ones; places are in the order of the first one's states."""
        leaves, found = self.leaves, []
        for first in np.flatnonzero(self._groups.next_member != sharing.NOBODY).tolist():
            if self._groups.numbers[first] == sharing.NOBODY:
                continue
            slots = np.argsort(leaves.states[first])
            members = []
            for leaf in sorted(self._members(first)):
                state_at = np.empty(len(slots), np.int64)
                state_at[self._groups.places[leaf, : len(slots)]] = leaves.states[leaf]
                members.append(TiedLeaf(*leaves.owners[leaf], tuple(state_at[slots].tolist())))
            found.append(tuple(members))
        return tuple(found)

    def _members(self, leaf: int) -> Iterator[int]:
        while leaf != sharing.NOBODY:
            yield leaf
            leaf = int(self._groups.next_member[leaf])

    def shared_in(self, network: Network) -> Network:
        """The network with what its leaves share, and their counts and exponents pooled."""
        ties = self.ties()
        first_of = {owner: place for place, owner in enumerate(self.leaves.owners)}
        changed: dict[int, list[tuple[TiedLeaf, NDArray[np.float64], NDArray[np.float64]]]] = {}
        for group in ties:
            first = first_of[group[0].variable, group[0].leaf]
            slots = np.argsort(self.leaves.states[first])
            counts, exponents = self._groups.counts[first, slots], self._groups.exponents[first, slots]
            for tied in group:
                changed.setdefault(tied.variable, []).append((tied, counts, exponents))
        nodes = list(network.nodes)
        for variable, rows in changed.items():
            nodes[variable] = _pooled(nodes[variable], variable, rows)
        return replace(network, nodes=tuple(nodes), ties=ties)


def _pooled(node: Node | None, variable: int, rows: Sequence[tuple[TiedLeaf, Any, Any]]) -> Node:
    """A node with what some of its leaves share."""
    assert node is not None
    holder = node.own or node
    assert holder.counts is not None
    assert holder.exponents is not None
    counts, exponents = holder.counts.copy(), holder.exponents.copy()
    for tied, own_counts, own_exponents in rows:
        counts[tied.leaf, list(tied.states)] = own_counts if counts.dtype.kind == "f" else np.rint(own_counts)
        exponents[tied.leaf, list(tied.states)] = own_exponents
    if node.own is None:
        return Node.learned(node.parents, node.graph, counts, exponents)
    return Node.with_own_tests(OwnTests.learned(node.own.graph, counts, exponents, variable), node.parents)


def _prices(leaves: Leaves, costs: Costs, operators: str, adds: bool) -> sharing.Prices:
    sizes = np.arange(leaves.counts.shape[1] + 1)
    charges = costs.shared > 0
    n_with = [n_with_labels(labels, leaves.variables) for labels in leaves.label_sets]
    return sharing.Prices(
        -np.maximum(sizes - 1, 0) * costs.log_kappa + 0.0,
        float(costs.shared),
        np.array([math.lgamma(size + 1) if charges else 0.0 for size in sizes.tolist()]),
        np.log(n_with) if charges else np.zeros(len(n_with)),
        "R" in operators,
        "T" in operators,
        adds,
    )


def _trees(groups: sharing.Groups) -> sharing.Trees:
    """Room for the trees of all groups."""
    n, n_slots = groups.counts.shape
    pairs = np.stack([groups.variables, groups.sizes], axis=1) if n else np.zeros((0, 2), np.int64)
    by_variable = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
    n_classes = max(int(by_variable.max(initial=0)), int(groups.labels.max(initial=0))) + 1
    n_nodes = 2 * (n // 2 + 2 * n_classes + 2)
    return sharing.Trees(
        np.zeros((2, n), np.int64),
        np.ones((2, n, n_slots)),
        np.zeros((n, n_slots), np.int64),
        np.zeros((2, n), np.uint8),
        np.zeros(_LOOSE + n // _LOOSE_SHARE, np.int64),
        np.stack([by_variable.astype(np.int64), groups.labels]),
        np.full((2, n_classes), sharing.NOBODY),
        *(np.zeros(n_nodes, np.int64) for _ in range(3)),
        np.zeros((n_nodes, n_slots)),
        np.zeros(n_nodes),
        np.zeros((n_nodes, n_slots)),
        *(np.zeros(n_nodes) for _ in range(3)),
    )


class SharingRun:
    """A search over leaves under way whose last steps are relabelled merges and ties: asked as any other."""

    def __init__(self, before: LeafSearchRun, problem: Problem, n_shared: int = 0) -> None:
        self.settings, self._before, self._problem = before.settings, before, problem
        self._sharing: Sharing | None = None
        self._network: Network | None = None  # before anything was shared
        self._n_due = n_shared  # steps that another one took, where it was
        self._seconds, self._stopped = 0.0, ""

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        if not self._is_over():
            for step in self._before:
                return step
        number = self.n_shared
        while self.n_shared == number and not self.stopped:
            self._advance(number + 1)
        if self._sharing is None or self.n_shared == number:
            raise StopIteration
        return Step(self._sharing.operator(number), self.log_score, self.n_leaves, self.n_arcs)

    def run(self, progress: Callable[[Any], None] | None = None) -> None:
        """Take all remaining steps; `progress` is called now and then."""
        self._before.run(progress)
        while not self.stopped:
            self._advance(NO_LIMIT)
            if progress is not None:
                progress(self)

    def _is_over(self) -> bool:
        """Whether all steps before are taken, and it is time to share."""
        return self._before.stopped == NOTHING_GAINS

    @property
    def stopped(self) -> str:
        """Why there are no more steps; "" while there may be."""
        return self._stopped if self._is_over() else self._before.stopped

    def _advance(self, most: int) -> None:
        """A moment of work, up to so many shared steps in all; `stopped` may then say why there are no more."""
        if not self._is_over():
            return
        began, limits = time.perf_counter(), self.settings
        if self._sharing is None:
            self._network = self._before.network
            adds = isinstance(self._problem.prior, Bdeu | PriorNetwork)
            costs = self._problem.structure_prior.costs
            self._sharing = Sharing(self._network, self.settings.operators, costs, adds)
        left = NO_LIMIT if limits.max_steps is None else max(limits.max_steps - self._before.n_steps, 0)
        is_due = self._sharing.n_steps < self._n_due
        if limits.seconds is not None and self.seconds >= limits.seconds and not is_due:
            self._stopped = "seconds"
        elif self._sharing.finished:
            self._stopped = NOTHING_GAINS
        elif self._sharing.n_steps >= left and not is_due:
            self._stopped = "max_steps"
        else:
            self._sharing.advance(self._n_due if is_due else min(most, left))
        self._seconds += time.perf_counter() - began

    @property
    def seconds(self) -> float:
        return self._before.seconds + self._seconds

    @property
    def n_shared(self) -> int:
        """How many steps were relabelled merges or ties."""
        return self._n_due if self._sharing is None else max(self._sharing.n_steps, self._n_due)

    @property
    def n_steps(self) -> int:
        return self._before.n_steps + self.n_shared

    @property
    def n_leaves(self) -> int:
        return self._before.n_leaves

    @property
    def n_arcs(self) -> int:
        return self._before.n_arcs

    @property
    def n_parameters(self) -> int:
        saved = 0 if self._sharing is None else self._sharing.n_saved
        return self._before.n_parameters - saved

    @property
    def log_score(self) -> float:
        return self._before.log_score + (0.0 if self._sharing is None else self._sharing.gain)

    @property
    def network(self) -> Network:
        """The network as it is now, with what its leaves share."""
        shared = self._taken_up()
        if shared is None or self._network is None:
            return self._before.network
        network = shared.shared_in(self._network)
        learned, log_prior = dict(network.learned), self._log_prior_of_ties(network)
        log_score = learned["log_score"] + shared.gain
        operators = [shared.operator(step) for step in range(shared.n_steps)]
        learned |= {
            "log_score": log_score,
            "log_marginal_likelihood": learned["log_marginal_likelihood"] + shared.gain - log_prior,
            "parameters": network.n_parameters,
            "relabelled_merges": sum(isinstance(operator, RelabelledMerge) for operator in operators),
            "ties": sum(isinstance(operator, Tie) for operator in operators),
            "steps": self.n_steps,
            "stopped": self.stopped,
        }
        return replace(network, learned=learned)

    def _taken_up(self) -> Sharing | None:
        """What is shared so far, where another search was before this one too."""
        while self._is_over() and not self.stopped and (self._sharing is None or self._sharing.n_steps < self._n_due):
            self._advance(self._n_due)
        return self._sharing

    def _log_prior_of_ties(self, network: Network) -> float:
        costs = self._problem.structure_prior.costs
        groups = [[(tied.variable, tied.states) for tied in group] for group in network.ties]
        return math.fsum(log_prior_of_tie(costs, group, network.variables) for group in groups)

    def summary(self) -> dict[str, Any]:
        """What was learned and how, in plain values. No times: the same data and options give the same."""
        return dict(self.network.learned)

    def state(self) -> dict[str, Any]:
        """What it takes to go on from here, in plain values."""
        return {"before": self._before.state(), "shared": self.n_shared}
