"""A slow and obvious twin of the library, written from the paper: it shares no code with it, and nothing is kept.

A *leaf* is the set of parent assignments that reach it. An assignment is a tuple with a state for every variable; the
target's own place in it is 0. So splitting a leaf is sorting a set, merging two is their union, a leaf's share of the
parent space is a quotient of two set sizes, and a state is possible at a leaf if some assignment there has it.

Counts come from dictionaries over rows, scores from lgamma (Equations 5 and 6), gains from the whole node's score after
less its score before, and every step of the search computes all of them again.
"""

import itertools
import math
from collections import Counter
from copy import copy
from dataclasses import dataclass, field

from leafwise.data.table import Table

TIE = 1e-9


@dataclass(frozen=True)
class Rules:
    """Constraints by variables' numbers; arcs are (parent, child)."""

    order: tuple[int, ...] = ()
    tiers: tuple[tuple[int, ...], ...] = ()
    required: frozenset[tuple[int, int]] = frozenset()
    forbidden: frozenset[tuple[int, int]] = frozenset()
    allowed_parents: dict[int, frozenset[int]] = field(default_factory=dict)
    dag: frozenset[tuple[int, int]] | None = None
    max_parents: int | None = None
    max_leaves: int | None = None

    def arcs_at_start(self):
        return set(self.required) | set(self.dag or ())

    def permit(self, parent, child):
        """Whether the rules know nothing against the arc, whatever other arcs there are."""
        if self.order and self.order.index(parent) > self.order.index(child):
            return False
        if self.tiers and self._tier(parent) > self._tier(child):
            return False
        if child in self.allowed_parents and parent not in self.allowed_parents[child]:
            return False
        if self.dag is not None and (parent, child) not in self.arcs_at_start():
            return False
        return (parent, child) not in self.forbidden

    def _tier(self, variable):
        return next(k for k, tier in enumerate(self.tiers) if variable in tier)


@dataclass(frozen=True)
class Move:
    """An operator: for a split `variable` and the groups of states, for a merge the `other` leaf."""

    kind: str  # "complete", "binary", "ordered" or "merge"
    target: int
    leaf: int  # the place among the node's leaves, oldest first
    gain: float
    variable: int | None = None
    groups: tuple[frozenset[int], ...] = ()
    other: int | None = None


def leads_to(start, goal, arcs):
    """Whether a directed path leads from one variable to another, by walking."""
    seen, todo = set(), [start]
    while todo:
        here = todo.pop()
        if here == goal:
            return True
        if here not in seen:
            seen.add(here)
            todo.extend(child for parent, child in arcs if parent == here)
    return False


def log_likelihood(counts, exponents):
    """Equation 5 for one leaf."""
    value = math.lgamma(math.fsum(exponents)) - math.lgamma(sum(counts) + math.fsum(exponents))
    for count, exponent in zip(counts, exponents, strict=True):
        value += math.lgamma(count + exponent) - math.lgamma(exponent)
    return value


@dataclass(frozen=True)
class Structure:
    """What a graph is, apart from its leaves' sets: its tests, each with where every state of its variable leads.

    A place is a leaf, named by its set, or the number of a test. What a structure costs is written from
    docs/structure-prior.md.
    """

    tests: tuple[tuple[int, tuple], ...] = ()  # a variable, and a place for each state
    root: object = None

    def replaced(self, places):
        """The same with other places for some."""

        def new(place):
            return places.get(place, place)

        tests = tuple((variable, tuple(map(new, children))) for variable, children in self.tests)
        return Structure(tests, new(self.root))

    def split(self, leaf, variable, child_of_state):
        own = (variable, tuple(child_of_state))
        moved = self.replaced({leaf: len(self.tests)})
        return Structure((*moved.tests, own), moved.root)

    def reachable(self):
        seen, todo = set(), [self.root]
        while todo:
            place = todo.pop()
            if isinstance(place, int) and place not in seen:
                seen.add(place)
                todo.extend(self.tests[place][1])
        return [self.tests[k] for k in sorted(seen)]

    def without(self, variables):
        """State 0 speaks for all states of variables that do not matter."""
        structure = self
        for number in reversed(range(len(self.tests))):
            variable, children = structure.tests[number]
            if variable in variables:
                structure = structure.replaced({number: children[0]})
        return structure

    def log_choices(self, n_leaves, n_candidates, n_ways):
        """The structure prior "choices"."""
        tests = self.reachable()
        p = len({variable for variable, _ in tests})
        n_shared = n_arcs_to_leaves(self.root, tests) - n_leaves
        value = (
            -math.log(p + 1) - math.log(p + 2) - math.log(math.comb(max(n_candidates, p), p)) - n_shared * math.log(4)
        )
        for variable, _ in tests:
            value -= math.log(p) + math.log(n_ways(variable))
        return value


def n_arcs_to_leaves(root, tests):
    """How many arcs lead to leaves, the one to the root among them."""
    ends = [root, *(place for _, children in tests for place in set(children))]
    return sum(not isinstance(place, int) for place in ends)


class Node:
    """One target: the cases by assignment, and the leaves."""

    def __init__(self, table: Table, target: int, alpha: tuple, log_kappa: float | None, n_candidates: int) -> None:
        self.target, self.alpha, self.log_kappa, self.n_candidates = target, alpha, log_kappa, n_candidates
        self.variables = table.variables
        self.n_states = [variable.n_states for variable in table.variables]
        self.r = self.n_states[target]
        self.cases: dict[tuple[int, ...], Counter] = {}
        for row in table.codes.T.tolist():
            state, row[target] = row[target], 0
            self.cases.setdefault(tuple(row), Counter())[state] += 1
        ranges = [range(1 if v == target else n) for v, n in enumerate(self.n_states)]
        self.everything = frozenset(itertools.product(*ranges))
        self.leaves = [self.everything]
        self.structure = Structure((), self.everything)

    def counts(self, leaf):
        """How many of the leaf's cases are in each state of the target."""
        total = Counter()
        for assignment, here in self.cases.items():
            if assignment in leaf:
                total.update(here)
        return [total[state] for state in range(self.r)]

    def exponents(self, leaf):
        """All ones; so many cases in all; or an equivalent sample size times the leaf's share: evenly over states."""
        kind, size = self.alpha
        if kind == "uniform":
            return [1.0] * self.r
        if kind == "symmetric":
            return [size / self.r] * self.r
        return [size * len(leaf) / len(self.everything) / self.r] * self.r

    def n_ways(self, variable):
        """How many ways there are to split a variable in one step: the partitions of its states that splits make."""
        everything = frozenset(range(self.n_states[variable]))
        if len(everything) <= 2:
            return 1
        ways = {frozenset(frozenset({s}) for s in everything)}
        ways |= {frozenset({frozenset({s}), everything - {s}}) for s in everything}
        ways |= {frozenset(groups) for groups in self.ordered_groups(variable)}
        return len(ways)

    def ordered_groups(self, variable):
        """The states below some state, and the others; a last state for missing cells goes with either."""
        described, r = self.variables[variable], self.n_states[variable]
        m = r - described.missing if described.ordered else 0
        for t in range(1, m + 1 if m < r else m):
            yield frozenset(range(t)), frozenset(range(t, r))
        for t in range(1, m if m < r else 1):
            yield frozenset(range(t)) | {r - 1}, frozenset(range(t, r - 1))

    def log_marginal_likelihood(self):
        return math.fsum(log_likelihood(self.counts(leaf), self.exponents(leaf)) for leaf in self.leaves)

    def log_prior(self):
        if self.log_kappa is None:
            return self.structure.log_choices(len(self.leaves), self.n_candidates, self.n_ways)
        return len(self.leaves) * (self.r - 1) * self.log_kappa

    def log_score(self):
        return self.log_marginal_likelihood() + self.log_prior()

    def children(self, leaf, variable, groups):
        return [frozenset(a for a in leaf if a[variable] in group) for group in groups]

    def after(self, move):
        """The node after a move: leaves that go go, and the new ones come last."""
        other = copy(self)
        gone = {move.leaf, move.other}
        left = [leaf for k, leaf in enumerate(self.leaves) if k not in gone]
        leaf = self.leaves[move.leaf]
        if move.kind == "merge":
            second = self.leaves[move.other]
            other.leaves = [*left, leaf | second]
            other.structure = self.structure.replaced({leaf: leaf | second, second: leaf | second})
            return other
        new = self.children(leaf, move.variable, move.groups)
        other.leaves = left + new
        states = range(self.n_states[move.variable])
        where = [next(child for group, child in zip(move.groups, new, strict=True) if s in group) for s in states]
        other.structure = self.structure.split(leaf, move.variable, where)
        return other

    def separates(self, leaf, variable, groups):
        """The precondition: at least two children get a case."""
        children = self.children(leaf, variable, groups)
        return sum(any(assignment in child for assignment in self.cases) for child in children) >= 2

    def groupings(self, leaf, variable, operators):
        """The splits of a leaf on a variable in the order of ties: complete, then one state, then below a state."""
        r = self.n_states[variable]
        possible = sorted({assignment[variable] for assignment in leaf})
        if "C" in operators and len(possible) > 1:
            groups = [{state} for state in possible]
            groups[-1] |= set(range(r)) - set(possible)
            yield "complete", tuple(frozenset(group) for group in groups)
        if "B" in operators and r > 1:
            for state in range(r):
                yield "binary", (frozenset({state}), frozenset(range(r)) - {state})
        described = self.variables[variable]
        if "I" in operators and described.ordered and r - described.missing > 2:
            for groups in self.ordered_groups(variable):
                yield "ordered", groups

    def relevant_parents(self):
        """The variables of which some change, all others being as they are, changes the leaf."""
        where = {assignment: k for k, leaf in enumerate(self.leaves) for assignment in leaf}
        return {
            variable
            for variable, r in enumerate(self.n_states)
            for assignment, leaf in where.items()
            for state in range(r if variable != self.target else 0)
            if where[(*assignment[:variable], state, *assignment[variable + 1 :])] != leaf
        }


class Search:
    """Greedy search (Figure 5) over the nodes of some targets."""

    def __init__(
        self,
        table,
        *,
        targets=None,
        operators,
        schedule,
        alpha=("uniform", None),
        log_kappa=0.0,
        rules=None,
        delete_parents=False,
    ) -> None:
        self.operators, self.schedule, self.rules = operators, schedule, rules or Rules()
        self.delete_parents = delete_parents
        self.targets = list(range(table.n_variables)) if targets is None else list(targets)
        self.arcs = self.rules.arcs_at_start()
        self.n_variables = table.n_variables
        self.nodes = {t: Node(table, t, alpha, log_kappa, self.n_candidates(t)) for t in self.targets}

    def n_candidates(self, target):
        """How many variables the rules let a target test, whatever other arcs there are."""
        if self.rules.max_parents is not None and len(self.parents(target)) >= self.rules.max_parents:
            return len(self.parents(target))
        return sum(v != target and self.rules.permit(v, target) for v in range(self.n_variables))

    def begin_with(self, graphs):
        """Start from these decision graphs, one for each target named: walk every assignment to its leaf."""
        for target, graph in graphs.items():
            node = self.nodes[target]
            leaves = [set() for _ in range(graph.n_leaves)]
            for assignment in node.everything:
                leaves[graph.leaf_of(assignment)].add(assignment)
            node.leaves = [frozenset(leaf) for leaf in leaves]
            number = {n: k for k, n in enumerate(n for n, test in enumerate(graph.tests) if test >= 0)}
            number |= dict(zip(graph.leaves, node.leaves, strict=True))
            tests = [
                (test, tuple(number[c] for c in row))
                for test, row in zip(graph.tests, graph.children, strict=True)
                if row
            ]
            node.structure = Structure(tuple(tests), number[0])
            self.arcs |= {(variable, target) for variable in graph.tested}

    @property
    def log_score(self):
        return math.fsum(node.log_score() for node in self.nodes.values())

    def parents(self, target):
        return {parent for parent, child in self.arcs if child == target}

    def may_test(self, target, variable):
        if variable == target or not self.rules.permit(variable, target):
            return False
        if (variable, target) in self.arcs:
            return True
        most = self.rules.max_parents
        if most is not None and len(self.parents(target)) >= most:
            return False
        return not leads_to(target, variable, self.arcs)

    def splits(self):
        """All splits in the order that breaks ties: target, leaf, variable, complete before others, state.

        Where the structure prior looks at which variables are tested, these come first.
        """
        for target, node in self.nodes.items():
            before = node.log_score()
            tested = {variable for variable, _ in node.structure.reachable()} if node.log_kappa is None else set()
            order = sorted(range(self.n_variables), key=lambda variable, tested=tested: variable not in tested)
            for k, leaf in enumerate(node.leaves):
                for variable in order:
                    if not self.may_test(target, variable):
                        continue
                    for kind, groups in node.groupings(leaf, variable, self.operators):
                        move = Move(kind, target, k, 0.0, variable, groups)
                        if node.separates(leaf, variable, groups) and self._fits(node.after(move).leaves):
                            gain = node.after(move).log_score() - before
                            yield Move(kind, target, k, gain, variable, groups)

    def merges(self):
        """All merges in the order that breaks ties: target, first leaf, second leaf."""
        for target, node in self.nodes.items():
            before = node.log_score()
            for one, two in itertools.combinations(range(len(node.leaves)), 2):
                move = Move("merge", target, one, 0.0, other=two)
                yield Move("merge", target, one, node.after(move).log_score() - before, other=two)

    def best(self):
        """The move to take next, or None."""
        best = _first_best(self.splits(), None)
        if "M" in self.operators and (best is None or self.schedule == "best-first"):
            best = _first_best(self.merges(), best)
        return best

    def take(self, move):
        node = self.nodes[move.target] = self.nodes[move.target].after(move)
        if move.variable is not None:
            self.arcs.add((move.variable, move.target))
        elif self.delete_parents:
            gone = self.parents(move.target) - node.relevant_parents()
            gone -= {parent for parent, child in self.rules.required if child == move.target}
            before, whole = node.log_prior(), node.structure
            node.structure = whole.without(gone)
            if node.log_prior() < before - TIE:
                node.structure = whole
            else:
                self.arcs -= {(parent, move.target) for parent in gone}

    def run(self, max_steps):
        """The moves taken, at most so many."""
        moves = []
        while len(moves) < max_steps and (move := self.best()) is not None:
            self.take(move)
            moves.append(move)
        return moves

    def _fits(self, leaves):
        return self.rules.max_leaves is None or len(leaves) <= self.rules.max_leaves


def _first_best(moves, best):
    for move in moves:
        if move.gain > (0.0 if best is None else best.gain) + TIE:
            best = move
    return best
