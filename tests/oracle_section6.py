"""The oracle for Section 6: graphs that test their own variable, relabelled merges, and ties across nodes.

Written from docs/mathematics.md. A node is a list of *distributions*. Each has a region, the parent assignments that
reach it; the states S of the target that it is about; and blocks of S: the states one by one at a leaf, the parts at a
switch. So p(k | j) is the product over the distributions whose region has j and whose S has k, of the share of the
block that has k. Every distribution adds Equation 5 over its blocks, a block's exponent being the sum of its states'.
"""

import itertools
import math
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace

import oracle
from oracle import TIE, Structure, log_likelihood, n_arcs_to_leaves

MOST_PERMUTED = 5  # states: with more, the sorted pairing stands for all permutations


@dataclass(frozen=True)
class Leaf:
    """A distribution over the states, or over the parts of a partition that has this number among the node's tests."""

    region: frozenset[tuple[int, ...]]
    states: tuple[int, ...]
    parts: tuple[frozenset[int], ...] = ()
    partition: int | None = None

    @property
    def blocks(self):
        return self.parts or tuple(frozenset({state}) for state in self.states)

    def merges_with(self, other):
        return self.states == other.states and self.partition == other.partition


@dataclass(frozen=True)
class Partition:
    """In a structure, in place of the variable that is tested: its own value parts the states, in one of so many ways.

    In the search form it leads to the graphs of the switch, of A's distribution and of the rest's.
    """

    n_sets: int


@dataclass(frozen=True)
class Move(oracle.Move):
    """For a partial split also the set A and which piece is split: "switch", "part" or "rest"."""

    part: frozenset[int] | None = None
    piece: str | None = None


class Node(oracle.Node):
    """One target: the cases by assignment, and the distributions."""

    def __init__(self, *given):
        super().__init__(*given)
        root = Leaf(self.everything, tuple(range(self.r)))
        self.leaves, self.structure = [root], Structure((), root)
        self.known = {}  # the term of each distribution that was ever seen

    def counts(self, leaf):
        """How many of the cases in the region are in each state of S."""
        totals = dict.fromkeys(leaf.states, 0)
        for assignment, here in self.cases.items():
            if assignment in leaf.region:
                for state in leaf.states:
                    totals[state] += here[state]
        return list(totals.values())

    def exponents(self, leaf):
        """One for each state of S: what they are without own-value tests, with the number of all states."""
        kind, given = self.alpha
        if kind == "network":  # the joint table, worth so many cases
            return [
                math.fsum(given[(*a[: self.target], state, *a[self.target + 1 :])] for a in leaf.region)
                for state in leaf.states
            ]
        everywhere = super().exponents(leaf.region)
        return [everywhere[state] for state in leaf.states]

    def in_blocks(self, leaf, values):
        """Values for each state of S, summed over each block."""
        by_state = dict(zip(leaf.states, values, strict=True))
        return [math.fsum(by_state[state] for state in sorted(block)) for block in leaf.blocks]

    def term(self, leaf):
        if leaf not in self.known:
            counts, exponents = self.in_blocks(leaf, self.counts(leaf)), self.in_blocks(leaf, self.exponents(leaf))
            self.known[leaf] = log_likelihood(counts, exponents)
        return self.known[leaf]

    def log_marginal_likelihood(self):
        return math.fsum(self.term(leaf) for leaf in self.leaves)

    @property
    def n_parameters(self):
        return sum(len(leaf.blocks) - 1 for leaf in self.leaves)

    def log_prior(self):
        if self.log_kappa is not None:
            return self.n_parameters * self.log_kappa
        nodes = self.structure.reachable()
        variables = [test for test, _ in nodes if not isinstance(test, Partition)]
        partitions = [test for test, _ in nodes if isinstance(test, Partition)]
        p, n = len(set(variables)), max(self.n_candidates, len(set(variables)))
        n_shared = n_arcs_to_leaves(self.structure.root, nodes) - len(self.leaves)
        value = -math.log((p + 1) * (p + 2)) - math.log(math.comb(n, p)) - n_shared * math.log(4)
        value -= math.fsum(math.log(p) + math.log(self.n_ways(variable)) for variable in variables)
        return value - math.fsum(math.log(4) + math.log(partition.n_sets) for partition in partitions)

    def children(self, leaf, variable, groups):
        return [replace(leaf, region=region) for region in super().children(leaf.region, variable, groups)]

    def separates(self, leaf, variable, groups):
        """The precondition: at least two children get a case, of those with a state in S."""
        return sum(any(self.counts(child)) for child in self.children(leaf, variable, groups)) >= 2

    def sets(self, leaf):
        """Every A, in the order that breaks ties: one state; then, of states in order, all prefixes of S."""
        described = self.variables[self.target]
        singles = [frozenset({state}) for state in leaf.states]
        in_order = leaf.states if described.ordered else ()
        if described.missing and self.r - 1 in in_order:
            in_order = in_order[:-1]
        sizes = [size for size in range(2, len(leaf.states) - 1) if size <= len(in_order)]
        return singles + [frozenset(in_order[:size]) for size in sizes]

    def pieces(self, leaf, part):
        """What an own-value test makes of a leaf; a part of one state needs no distribution."""
        rest = frozenset(leaf.states) - part
        found = {"switch": Leaf(leaf.region, leaf.states, (part, rest), len(self.structure.tests))}
        if len(part) > 1:
            found["part"] = Leaf(leaf.region, tuple(sorted(part)))
        return {**found, "rest": Leaf(leaf.region, tuple(sorted(rest)))}

    def splits(self, k, variable, operators):
        """The splits of a leaf on a variable in the order of ties: of the whole, then of its pieces, set by set."""
        leaf, pieces = self.leaves[k], []
        if "O" in operators and not leaf.parts and len(leaf.states) >= 3:
            pieces = [
                (part, name, piece) for part in self.sets(leaf) for name, piece in self.pieces(leaf, part).items()
            ]
        for split in ([(None, None, leaf)], pieces):
            for kind, groups in self.groupings(leaf.region, variable, operators):
                for part, name, piece in split:
                    if self.separates(piece, variable, groups):
                        yield Move(kind, self.target, k, 0.0, variable, groups, part=part, piece=name)

    def merges(self):
        for one, two in itertools.combinations(range(len(self.leaves)), 2):
            if self.leaves[one].merges_with(self.leaves[two]):
                yield Move("merge", self.target, one, 0.0, other=two)

    def after(self, move):
        """The node after a move: leaves that go go, and the new ones come last."""
        other, gone = copy(self), {move.leaf, move.other}
        left = [leaf for k, leaf in enumerate(self.leaves) if k not in gone]
        leaf = self.leaves[move.leaf]
        if move.kind == "merge":
            second = self.leaves[move.other]
            merged = replace(leaf, region=leaf.region | second.region)
            other.leaves = [*left, merged]
            other.structure = self.structure.replaced({leaf: merged, second: merged})
            return other
        pieces, structure = {None: leaf}, self.structure
        if move.part is not None:
            pieces = self.pieces(leaf, move.part)
            structure = structure.split(leaf, Partition(len(self.sets(leaf))), pieces.values())
        new = []
        for name, piece in pieces.items():
            if name != move.piece:
                new.append(piece)
                continue
            children = self.children(piece, move.variable, move.groups)
            states = range(self.n_states[move.variable])
            pairs = list(zip(move.groups, children, strict=True))
            where = [next(child for group, child in pairs if s in group) for s in states]
            structure = structure.split(piece, move.variable, where)
            new += children
        other.leaves, other.structure = left + new, structure
        return other

    def relevant_parents(self):
        """The variables of which some change, all others being as they are, changes a distribution."""
        where = {a: frozenset(k for k, leaf in enumerate(self.leaves) if a in leaf.region) for a in self.everything}
        return {
            variable
            for variable, r in enumerate(self.n_states)
            for assignment, leaves in where.items()
            for state in range(r if variable != self.target else 0)
            if where[(*assignment[:variable], state, *assignment[variable + 1 :])] != leaves
        }


@dataclass(frozen=True)
class Group:
    """Leaves that share one distribution: (target, leaf, its states by slot) of each, and what they have together."""

    members: tuple[tuple[int, int, tuple[int, ...]], ...]
    counts: tuple[float, ...]
    exponents: tuple[float, ...]

    @property
    def target(self):
        return self.members[0][0]

    @property
    def states(self):
        """By slot, of the first leaf, which stands for all."""
        return self.members[0][2]

    @property
    def term(self):
        return log_likelihood(self.counts, self.exponents)

    def joined(self, other, order, adds):
        """With another group whose slots come in this order; some exponents add, others stay those of one leaf."""

        def ordered(values):
            return tuple(values[place] for place in order)

        members = tuple((target, leaf, ordered(states)) for target, leaf, states in other.members)
        counts = tuple(a + b for a, b in zip(self.counts, ordered(other.counts), strict=True))
        pairs = zip(self.exponents, ordered(other.exponents), strict=True)
        exponents = tuple(a + b for a, b in pairs) if adds else self.exponents
        return Group(self.members + members, counts, exponents)


@dataclass(frozen=True)
class Sharing:
    """Two groups become one: kind "R" or "T", their places among the groups, and the order of the second's slots."""

    kind: str
    one: int
    other: int
    order: tuple[int, ...]
    gain: float
    joined: Group


def sorted_order(one: Group, other: Group) -> tuple[int, ...]:
    """The slots of the other group in the order that pairs what both have in sorted order."""
    first, second = ([c + e for c, e in zip(g.counts, g.exponents, strict=True)] for g in (one, other))
    places = [sorted(range(len(values)), key=values.__getitem__) for values in (first, second)]
    pairs = dict(zip(*places, strict=True))
    return tuple(pairs[slot] for slot in range(len(first)))


class Search(oracle.Search):
    """Greedy search with O among the splits, from the beginning or at the end; R and T when nothing else gains."""

    def __init__(self, table, *, alpha=("uniform", None), log_kappa=0.0, **given):
        super().__init__(table, alpha=("uniform", None), log_kappa=log_kappa, **given)
        self.variables, self.adds, self.log_kappa = table.variables, alpha[0] in ("bdeu", "network"), log_kappa
        self.nodes = {t: Node(table, t, alpha, log_kappa, self.n_candidates(t)) for t in self.targets}
        self.groups: list[Group] | None = None  # once R or T has begun
        self.rows = {}  # (target, leaf): the place of the leaf's distribution in the network's node, where it differs
        self.paid = 0.0  # for what is shared
        self.parts = self.schedule == "best-first"  # else leaves are parted once nothing else gains

    @property
    def log_score(self):
        """Of all distributions, those that are shared once, and of the structure."""
        if self.groups is None:
            return super().log_score
        switches = [node.term(leaf) for node in self.nodes.values() for leaf in node.leaves if leaf.parts]
        return self.log_prior + math.fsum([*switches, *(group.term for group in self.groups)])

    @property
    def log_prior(self):
        return math.fsum(node.log_prior() for node in self.nodes.values()) + self.paid

    @property
    def n_parameters(self):
        saved = sum((len(group.members) - 1) * (len(group.states) - 1) for group in self.groups or ())
        return sum(node.n_parameters for node in self.nodes.values()) - saved

    def splits(self) -> Iterator[Move]:
        """All splits in the order that breaks ties: target, leaf, variable, and at each the node's own order."""
        for target, node in self.nodes.items():
            before = node.log_score()
            tested = {test for test, _ in node.structure.reachable()} if node.log_kappa is None else set()
            order = sorted(range(self.n_variables), key=lambda variable, tested=tested: variable not in tested)
            for k, variable in itertools.product(range(len(node.leaves)), order):
                if self.may_test(target, variable):
                    for move in node.splits(
                        k, variable, self.operators if self.parts else self.operators.replace("O", "")
                    ):
                        after = node.after(move)
                        if self._fits(after.leaves):
                            yield replace(move, gain=after.log_score() - before)

    def merges(self):
        for node in self.nodes.values():
            before = node.log_score()
            for move in node.merges():
                yield replace(move, gain=node.after(move).log_score() - before)

    def best(self):
        best = super().best() if self.groups is None else None
        if best is None and self.groups is None and "O" in self.operators and not self.parts:
            self.parts = True
            best = super().best()
        if best is None and {"R", "T"} & set(self.operators):
            best = oracle._first_best(self.sharings(), None)
        return best

    def take(self, move):
        if not isinstance(move, Sharing):
            super().take(move)
            return
        self.paid += self.price(self.every_group()[move.one], self.every_group()[move.other], move.joined)
        rest = [group for k, group in enumerate(self.every_group()) if k not in (move.one, move.other)]
        self.groups = sorted([*rest, move.joined], key=self.place)

    def every_group(self):
        """Each leaf for itself at first; switches are not shared, nor is what holds no parameter."""
        if self.groups is not None:
            return self.groups
        alone = [
            Group(((target, k, leaf.states),), tuple(node.counts(leaf)), tuple(node.exponents(leaf)))
            for target, node in self.nodes.items()
            for k, leaf in enumerate(node.leaves)
            if not leaf.parts and len(leaf.states) >= 2
        ]
        return sorted(alone, key=self.place)

    def place(self, group):
        """Groups are in the order of their first leaves in the network."""
        target, leaf, _ = group.members[0]
        return target, self.rows.get((target, leaf), leaf)

    def labels(self, group):
        return tuple(self.variables[group.target].labels[state] for state in group.states)

    def log_prior_of_group(self, group):
        """What the structure prior says of leaves that share a distribution."""
        (first, _, states), later = group.members[0], group.members[1:]
        size = len(states)
        if self.log_kappa is not None:
            return -len(later) * (size - 1) * self.log_kappa
        all_leaves = [
            (target, leaf.states)
            for target, node in self.nodes.items()
            for leaf in node.leaves
            if not leaf.parts and len(leaf.states) >= 2
        ]
        n_within = sum(target == first and len(own) == size for target, own in all_leaves)
        labels = {self.variables[first].labels[state] for state in states}
        n_across = sum({self.variables[t].labels[state] for state in own} == labels for t, own in all_leaves)
        value = 0.0
        for target, _, own in later:
            if target != first:
                value -= math.log(4) + math.log(n_across - 1)
            else:
                value -= math.log(4) + math.log(n_within - 1)
                if own != states:  # one of the pairings of states, but for that of each state with itself
                    value -= math.log(math.factorial(size) - (set(own) == set(states)))
        return value

    def price(self, one, other, joined):
        """What the structure prior takes for sharing, as a number to add; what it gives back is above zero."""
        both = self.log_prior_of_group(one) + self.log_prior_of_group(other)
        return self.log_prior_of_group(joined) - both

    def orders(self, one, other):
        """The permutations that R may take, in the order that breaks ties: the same states, sorted, all others."""
        if set(one.states) == set(other.states) and self.is_symmetric(one, other):
            yield tuple(other.states.index(state) for state in one.states)
        yield sorted_order(one, other)
        if len(one.states) <= MOST_PERMUTED and self.is_symmetric(one, other):
            yield from itertools.permutations(range(len(one.states)))

    def is_symmetric(self, one, other):
        return all(max(group.exponents) - min(group.exponents) < 1e-12 for group in (one, other))

    def sharings(self) -> Iterator[Sharing]:
        """Every relabelled merge, and every tie, of two groups; of permutations the best."""
        groups = self.every_group()
        for kind in "RT":
            for one, other in itertools.combinations(range(len(groups)), 2):
                if kind in self.operators:
                    first, second = groups[one], groups[other]
                    found = [
                        Sharing(kind, one, other, order, self.gain(first, second, order), joined)
                        for order in self.orders_of(kind, first, second)
                        for joined in (first.joined(second, order, self.adds),)
                    ]
                    if found:
                        yield best_of(found)

    def orders_of(self, kind, one, other):
        if kind == "R" and one.target == other.target and len(one.states) == len(other.states):
            yield from self.orders(one, other)
        if kind == "T" and one.target != other.target and set(self.labels(one)) == set(self.labels(other)):
            yield tuple(self.labels(other).index(label) for label in self.labels(one))

    def gain(self, one, other, order):
        joined = one.joined(other, order, self.adds)
        return joined.term - one.term - other.term + self.price(one, other, joined)

    def probabilities(self, target, assignment):
        """p(k | j) for each state k: posterior means along the way of (j, k)."""
        node, found = self.nodes[target], [1.0] * self.variables[target].n_states
        shared = {(t, leaf): (group, states) for group in self.every_group() for t, leaf, states in group.members}
        for number, leaf in enumerate(node.leaves):
            if assignment not in leaf.region:
                continue
            counts, exponents = node.counts(leaf), node.exponents(leaf)
            if (target, number) in shared:
                group, states = shared[target, number]
                counts, exponents = ([v[states.index(s)] for s in leaf.states] for v in (group.counts, group.exponents))
            weights = node.in_blocks(leaf, [c + e for c, e in zip(counts, exponents, strict=True)])
            for block, weight in zip(leaf.blocks, weights, strict=True):
                for state in block:
                    found[state] *= weight / math.fsum(weights)
        return found


def best_of(sharings: list[Sharing]) -> Sharing:
    best = sharings[0]
    for sharing in sharings:
        if sharing.gain > best.gain + TIE:
            best = sharing
    return best
