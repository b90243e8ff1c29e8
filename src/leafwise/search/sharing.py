"""The last steps of a search over leaves: relabelled merges (R) and ties across nodes (T), the best pair first.

They begin when no other operator gains, and shared leaves are not split any more. They need no data, since counts add.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leafwise.data.table import Variable
from leafwise.kernels.leaf_search import sharing
from leafwise.kernels.scoring.dirichlet import TIE
from leafwise.network import Network, Node, TiedLeaf
from leafwise.operators import RelabelledMerge, Tie
from leafwise.own_tests import OwnTests
from leafwise.prior_network import PriorNetwork
from leafwise.priors import Bdeu
from leafwise.search.leaf_search import LeafSearchRun
from leafwise.search.problem import Problem, Step
from leafwise.search.run import silence
from leafwise.structure_priors import Costs, Partners, log_pairings, log_prior_of_tie
from leafwise.tied_leaves import leaves_to_share

NOTHING_GAINS = "no operator gains"
NO_LIMIT = 2**62
Floats = NDArray[np.float64]

_CHUNK = 256  # leaves, or steps, between two checks of the clock


class Block(NamedTuple):
    """Leaves of one variable over the same states, which are in the order of their labels."""

    variable: int
    rows: list[int]
    states: tuple[int, ...]
    labels: int  # number of the set of labels
    counts: NDArray[Any]
    exponents: NDArray[np.float64]


class Labels:
    """The sets of labels that leaves are over; each has a number, and the order of the first variable with it."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self._variables = variables
        self._known: dict[frozenset[str], tuple[int, tuple[str, ...]]] = {}

    def ordered(self, variable: int, states: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        """The number of the set of the states' labels, and the states in the order of that set."""
        labels = {self._variables[variable].labels[state]: state for state in states}
        number, order = self._known.setdefault(frozenset(labels), (len(self._known), tuple(labels)))
        return number, tuple(labels[label] for label in order)

    @property
    def n(self) -> int:
        """The number of sets."""
        return len(self._known)

    def partners(self, blocks: Sequence[Block]) -> Partners:
        """The numbers of leaves among which the partner of a leaf is chosen."""
        return Partners([(block.variable, block.states, len(block.rows)) for block in blocks], self._variables)


def _blocks(network: Network, labels: Labels) -> Iterator[Block]:
    """The leaves of a network that may be shared: those over at least two states, except switches."""
    for variable, node in enumerate(network.nodes):
        holder = None if node is None else node.own or node
        if node is None or holder is None or holder.counts is None or holder.exponents is None:
            continue
        own, everything = node.own, tuple(range(node.n_states))
        if own is None:
            places = [(list(range(len(holder.counts))), everything)] if node.n_states > 1 else []
        else:
            rows = [row for row, parts in enumerate(own.parts) if len(parts) > 1 and not own.is_switch(row)]
            places = [([row], own.states[own.places[row]]) for row in rows]
        for rows, states in places:
            number, order = labels.ordered(variable, states)
            at = np.ix_(rows, list(order))
            yield Block(variable, rows, order, number, holder.counts[at], holder.exponents[at])


class SameSize:
    """All leaves over the same number of states, and the steps that join them: other leaves do not affect these."""

    def __init__(self, blocks: Sequence[Block], labels: Labels, operators: str, costs: Costs, adds: bool) -> None:
        self.owners = [(block.variable, row) for block in blocks for row in block.rows]
        self.states = [block.states for block in blocks for _ in block.rows]
        self.counts = np.concatenate([block.counts for block in blocks]).astype(np.float64)
        self.exponents = np.concatenate([block.exponents for block in blocks])
        sizes = [len(block.rows) for block in blocks]
        (n, size), nobody = self.counts.shape, sharing.NOBODY
        self._groups = sharing.Groups(
            self.counts.copy(),
            self.exponents.copy(),
            np.full(n, size),
            np.repeat([block.variable for block in blocks], sizes),
            np.repeat([block.labels for block in blocks], sizes),
            np.tile(np.arange(size), (n, 1)),
            np.full(n, nobody),
            np.arange(n),
            np.arange(n),
            np.zeros(n, np.int64),
            np.zeros(n),
            np.zeros(n, np.int64),
            np.full(n, nobody),
            np.full(n, nobody),
            np.full(n, -np.inf),
            np.array([n, 0, 0]),
            np.zeros((n, 2 + size), np.int64),
            np.zeros(n),
        )
        self._costs = _costs(blocks, labels, costs, operators, adds)
        self._trees = _trees(self._groups)
        self._n_looked_for = -1  # leaves whose partner was looked for; -1: no trees yet
        self._is_over = False
        self.n_taken = 0

    def is_ready(self) -> bool:
        """Whether the next step is known, or known not to exist."""
        return self._is_over or self.n_taken < self._n_known

    def next(self) -> tuple[float, bool, tuple[int, int], tuple[int, int]] | None:
        """The next step: its gain, whether it is a tie, and the first leaves of both groups; None if none is known."""
        if self.n_taken == self._n_known:
            return None
        a, b = self._groups.log[self.n_taken, :2].tolist()
        one, other = self.owners[a], self.owners[b]
        return float(self._groups.log_gains[self.n_taken]), one[0] != other[0], one, other

    @property
    def _n_known(self) -> int:
        return int(self._groups.totals[sharing.N_STEPS])

    def look_ahead(self) -> None:
        """Work for a short time to find more steps."""
        groups, trees, costs = self._groups, self._trees, self._costs
        if self._n_looked_for < 0:
            sharing.build_trees(groups, trees, costs)
            self._n_looked_for = 0
        elif self._n_looked_for < len(self.owners):
            end = min(self._n_looked_for + _CHUNK, len(self.owners))
            sharing.look_for_all(self._n_looked_for, end, groups, trees, costs)
            self._n_looked_for = end
        else:
            self._is_over = not sharing.share(self._n_known + _CHUNK, groups, trees, costs)

    def operator(self, step: int) -> RelabelledMerge | Tie:
        """A step as an operator on the first leaves of both groups."""
        (a, b, *slots), gain = self._groups.log[step].tolist(), float(self._groups.log_gains[step])
        (target, leaf), (other_target, other) = self.owners[a], self.owners[b]
        if target != other_target:
            return Tie(target, leaf, other_target, other, gain)
        one, two = self.states[a], self.states[b]
        pairs = tuple(sorted((one[slot], state) for slot, state in zip(slots, two, strict=True)))
        return RelabelledMerge(target, leaf, other, pairs, gain)

    def shared(self) -> Iterator[tuple[tuple[TiedLeaf, ...], Floats, Floats]]:
        """The groups of two or more leaves, with pooled counts and exponents; states match those of the first leaf."""
        n, size = self.counts.shape
        first, slots = np.arange(n), np.tile(np.arange(size), (n, 1))
        for a, b, *own in self._groups.log[: self.n_taken][::-1].tolist():  # the group of a is known by then
            first[b], slots[b] = first[a], slots[a][own]
        members: dict[int, list[int]] = {}
        for leaf in np.flatnonzero(np.bincount(first, minlength=n)[first] > 1).tolist():
            members.setdefault(int(first[leaf]), []).append(leaf)
        for leader, leaves in members.items():
            order = np.argsort(self.states[leader])
            counts, exponents = np.zeros(size), np.zeros(size)
            group = []
            for leaf in leaves:
                counts[slots[leaf]] += self.counts[leaf]
                exponents[slots[leaf]] += self.exponents[leaf] if self._costs.adds or leaf == leader else 0.0
                states = np.empty(size, np.int64)
                states[slots[leaf]] = self.states[leaf]
                group.append(TiedLeaf(*self.owners[leaf], tuple(states[order].tolist())))
            yield tuple(group), counts[order], exponents[order]


class Sharing:
    """Groups of leaves that share a distribution, and the steps that join groups, the best one first."""

    def __init__(self, network: Network, operators: str, costs: Costs, adds: bool) -> None:
        labels = Labels(network.variables)
        blocks = list(_blocks(network, labels))
        sizes = sorted({len(block.states) for block in blocks})
        self._parts = [
            SameSize([block for block in blocks if len(block.states) == size], labels, operators, costs, adds)
            for size in sizes
        ]
        self._taken: list[tuple[SameSize, int, float]] = []  # and the gain of all steps so far
        self.finished = False

    def advance(self, most: int) -> None:
        """Work for a short time, up to `most` steps in all."""
        for part in self._parts:
            if not part.is_ready():
                part.look_ahead()
                return
        while self.n_steps < most and all(part.is_ready() for part in self._parts):
            best = None
            for part in self._parts:
                found = part.next()
                if found is not None and (best is None or _is_better(found, best[0])):
                    best = found, part
            if best is None:
                self.finished = True
                return
            (gain, *_), part = best
            self._taken.append((part, part.n_taken, self.gain + gain))
            part.n_taken += 1

    @property
    def n_steps(self) -> int:
        return len(self._taken)

    @property
    def gain(self) -> float:
        """The gain of all steps."""
        return self._taken[-1][2] if self._taken else 0.0

    @property
    def n_saved(self) -> int:
        """The number of parameters that all steps save."""
        return sum(part.n_taken * (part.counts.shape[1] - 1) for part in self._parts)

    def operator(self, step: int) -> RelabelledMerge | Tie:
        """A step as an operator."""
        part, own, _ = self._taken[step]
        return part.operator(own)

    def operators(self) -> Iterator[RelabelledMerge | Tie]:
        """All steps as operators."""
        return (part.operator(own) for part, own, _ in self._taken)

    def shared_in(self, network: Network) -> Network:
        """The network with shared leaves, whose counts and exponents are pooled."""
        groups = sorted((group for part in self._parts for group in part.shared()), key=lambda group: group[0][0])
        changed: dict[int, list[tuple[TiedLeaf, Floats, Floats]]] = {}
        for tied, counts, exponents in groups:
            for leaf in tied:
                changed.setdefault(leaf.variable, []).append((leaf, counts, exponents))
        nodes = list(network.nodes)
        for variable, rows in changed.items():
            nodes[variable] = _pooled(nodes[variable], variable, rows)
        return replace(network, nodes=tuple(nodes), ties=tuple(tied for tied, *_ in groups))


def _is_better(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether a step comes before another: by gain, or if tied, relabelled merges first, then older leaves."""
    return one[0] > other[0] + TIE or (one[0] > other[0] - TIE and one[1:] < other[1:])


def _pooled(node: Node | None, variable: int, rows: Sequence[tuple[TiedLeaf, Any, Any]]) -> Node:
    """The node with the pooled counts and exponents of its shared leaves."""
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


def _costs(blocks: Sequence[Block], labels: Labels, costs: Costs, operators: str, adds: bool) -> sharing.SharingCosts:
    size, charges, partners = len(blocks[0].states), costs.shared > 0, labels.partners(blocks)
    within, across = np.zeros(max(block.variable for block in blocks) + 1), np.zeros(labels.n)
    for block in blocks if charges else ():
        within[block.variable] = partners.log_within(block.variable, size)
        across[block.labels] = partners.log_across(block.variable, block.states)
    return sharing.SharingCosts(
        -(size - 1) * costs.log_kappa,
        float(costs.shared),
        within,
        log_pairings(size, True) if charges else 0.0,
        log_pairings(size, False) if charges else 0.0,
        across,
        "R" in operators,
        "T" in operators,
        adds,
    )


def _trees(groups: sharing.Groups) -> sharing.Trees:
    """Allocate the trees of all groups."""
    n, n_slots = groups.counts.shape
    by_variable = np.unique(groups.variables, return_inverse=True)[1].astype(np.int64)
    n_classes = max(int(by_variable.max()), int(groups.labels.max())) + 1
    n_nodes = 2 * (n // 2 + 2 * n_classes + 2)
    return sharing.Trees(
        np.zeros((2, n), np.int64),
        np.zeros((2, n), np.int64),
        np.ones((2, n, n_slots)),
        np.zeros((n, n_slots), np.int64),
        np.zeros(n),
        np.zeros(n),
        np.zeros((2, n), np.uint8),
        np.stack([by_variable, groups.labels]),
        np.full((2, n_classes), sharing.NOBODY),
        np.zeros(n_nodes, np.int64),
        np.zeros(n_nodes, np.int64),
        np.zeros(n_nodes, np.int64),
        np.zeros((n_nodes, n_slots)),
        np.zeros((n_nodes, n_slots)),
        np.zeros(n_nodes),
        np.zeros(n_nodes),
        np.zeros((n_nodes, n_slots)),
        np.zeros((n_nodes, n_slots)),
        np.zeros(n_nodes),
        np.zeros((n_nodes, n_slots)),
        np.zeros(n_nodes),
        np.zeros(n_nodes),
        np.zeros(n_nodes),
    )


class SharingRun:
    """A search over leaves in progress whose last steps are relabelled merges and ties."""

    def __init__(self, before: LeafSearchRun, problem: Problem, n_shared: int = 0) -> None:
        self.settings, self._before, self._problem = before.settings, before, problem
        self._sharing: Sharing | None = None
        self._network: Network | None = None  # before anything was shared
        self._n_due = n_shared  # shared steps that a resumed search has taken before
        self._seconds, self._stopped = 0.0, ""
        self.watch: Callable[[Any], None] = silence

    def __iter__(self) -> Iterator[Step[Any]]:
        return self

    def __next__(self) -> Step[Any]:
        if not self._is_over():
            self._before.watch = self.watch
            for step in self._before:
                return step
        number = self.n_shared
        while self.n_shared == number and not self.stopped:
            self._advance(number + 1)
            if self.n_shared == number:
                self.watch(self)
        if self._sharing is None or self.n_shared == number:
            raise StopIteration
        return Step(self._sharing.operator(number), self.log_score, self.n_leaves, self.n_arcs)

    def run(self, progress: Callable[[Any], None] | None = None) -> None:
        """Take all remaining steps; `progress` is called periodically."""
        self._before.run(progress)
        while not self.stopped:
            self._advance(NO_LIMIT)
            if progress is not None:
                progress(self)

    def close(self) -> None:
        """Release the search's memory on the counter; of the remaining steps, only sharing is possible after this."""
        self._before.close()

    def _is_over(self) -> bool:
        """Whether all other steps are taken, so that sharing begins."""
        return self._before.stopped == NOTHING_GAINS

    @property
    def stopped(self) -> str:
        """Why there are no more steps; "" while there may be more."""
        return self._stopped if self._is_over() else self._before.stopped

    def _advance(self, most: int) -> None:
        """Work on sharing for a short time, up to `most` shared steps in all; set `stopped` if there are no more."""
        if not self._is_over():
            return
        began, limits = time.perf_counter(), self.settings
        if self._sharing is None:
            self._network = self._before.network
            adds = isinstance(self._problem.prior, Bdeu | PriorNetwork)
            costs = self._problem.structure_prior.costs
            self._sharing = Sharing(self._network, self.settings.letters, costs, adds)
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
        """The number of relabelled merges and ties."""
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
        """The current network, with shared leaves."""
        shared = self._taken_up()
        if shared is None or self._network is None:
            return self._before.network
        network = shared.shared_in(self._network)
        learned, log_prior = dict(network.learned), self._log_prior_of_ties(network)
        log_score = learned["log_score"] + shared.gain
        operators = list(shared.operators())
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
        """The sharing so far, after repeating the steps of a resumed search."""
        while self._is_over() and not self.stopped and (self._sharing is None or self._sharing.n_steps < self._n_due):
            self._advance(self._n_due)
        return self._sharing

    def _log_prior_of_ties(self, network: Network) -> float:
        costs = self._problem.structure_prior.costs
        groups = [[(tied.variable, tied.states) for tied in group] for group in network.ties]
        partners = Partners(leaves_to_share(network), network.variables)
        return math.fsum(log_prior_of_tie(costs, group, partners) for group in groups)

    def summary(self) -> dict[str, Any]:
        """What was learned and how, as plain values; without times, so that it is reproducible."""
        return dict(self.network.learned)

    def state(self) -> dict[str, Any]:
        """The state from which the search can be resumed, as plain values."""
        return {"before": self._before.state(), "shared": self.n_shared}
