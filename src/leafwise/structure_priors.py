"""Structure priors: the prior probabilities of decision graphs (docs/structure-prior.md).

They factor over nodes, depend on the graphs alone, not on how these were found, and are given up to a constant, which
is the same for all graphs over the same variables. Knows decision graphs and variables.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Real
from typing import NamedTuple, Protocol

from leafwise.data.table import Variable
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.errors import check_type
from leafwise.own_tests import OwnTests

LOG_SHARED = math.log(4)  # for each arc to a leaf beyond the first
_SMALLEST_KAPPA = 1e-100  # far below it, everything else would be negligible


class Costs(NamedTuple):
    """The charges of a structure prior for the steps of a search over leaves."""

    log_kappa: float = 0.0  # for each parameter
    shared: float = 0.0  # for each arc to a leaf beyond the first
    tests: bool = False  # whether each test is charged for its choice among possible tests
    parents: bool = False  # whether tested variables are charged for their choice among the candidates


class StructurePrior(Protocol):
    """A prior distribution over structures."""

    @property
    def costs(self) -> Costs: ...

    def log_prior(self, graph: DecisionGraph, n_states: int, variables: Sequence[Variable], n_candidates: int) -> float:
        """The log prior of the graph of a target with `n_states` states, which may test `n_candidates` variables."""

    def own_log_prior(self, own: OwnTests, variables: Sequence[Variable], n_candidates: int) -> float:
        """The log prior of a graph that also tests its own variable."""


@dataclass(frozen=True, slots=True)
class Kappa:
    """Equation 6: a factor of kappa for each free parameter; 1 is the uniform prior.

    >>> str(Kappa(0.1)), str(Kappa())
    ('kappa:0.1', 'uniform')
    """

    kappa: float = 1.0

    def __post_init__(self) -> None:
        check_type(self.kappa, Real, "kappa", "a factor for each parameter: use for example 0.1")
        if not 0 < self.kappa <= 1 or float(self.kappa) < _SMALLEST_KAPPA:
            raise ValueError(
                f"kappa is {self.kappa}, and it is a factor for each parameter: give one from {_SMALLEST_KAPPA} to 1"
            )
        object.__setattr__(self, "kappa", float(self.kappa))

    def __str__(self) -> str:
        return "uniform" if self.kappa == 1 else f"kappa:{self.kappa!r}"

    @property
    def costs(self) -> Costs:
        return Costs(log_kappa=math.log(self.kappa))

    def log_prior(self, graph: DecisionGraph, n_states: int, variables: Sequence[Variable], n_candidates: int) -> float:
        return graph.n_leaves * (n_states - 1) * math.log(self.kappa)

    def own_log_prior(self, own: OwnTests, variables: Sequence[Variable], n_candidates: int) -> float:
        return own.n_parameters * math.log(self.kappa)


@dataclass(frozen=True, slots=True)
class Choices:
    """Every choice made in a graph is charged by the number of alternatives; parameters are not charged.

    >>> coins = [Variable(name, ("heads", "tails")) for name in "abcd"]
    >>> one_test = DecisionGraph.complete([0], [2])
    >>> prior = Choices()
    >>> math.exp(prior.log_prior(DecisionGraph.single(), 2, coins, 3))  # no parents
    0.5
    >>> round(math.exp(prior.log_prior(one_test, 2, coins, 3)) * 18, 9)  # one parent: 1/6, one of three
    1.0
    """

    def __str__(self) -> str:
        return "choices"

    @property
    def costs(self) -> Costs:
        return Costs(shared=LOG_SHARED, tests=True, parents=True)

    def log_prior(self, graph: DecisionGraph, n_states: int, variables: Sequence[Variable], n_candidates: int) -> float:
        ends = chain([0], *map(set, graph.children))  # of all arcs, one of which leads to the root
        n_shared = sum(graph.tests[node] == LEAF for node in ends) - graph.n_leaves
        tests = [test for test in graph.tests if test >= 0]
        return -self.cost(*_counted(tests, variables), n_shared, n_candidates)

    def own_log_prior(self, own: OwnTests, variables: Sequence[Variable], n_candidates: int) -> float:
        """Each partition is charged for its choice; that its own-value tests have the same children is not."""
        found = own.partitions()
        tests = [test for test in own.graph.tests if test not in (LEAF, own.target)]
        cost = self.cost(*_counted(tests, variables), own.n_shared, n_candidates)
        sets = [math.log(n_sets(variables[own.target], [s for part in parts for s in part])) for parts in found]
        return -(cost + len(found) * LOG_SHARED + math.fsum(sets))

    def cost(self, n_tests: int, n_tested: int, all_ways: float, n_shared: int, n_candidates: int) -> float:
        """The cost, given the numbers of tests, tested variables and sharing arcs, and the log of all ways to split."""
        p, n = n_tested, max(n_candidates, n_tested)
        parents = math.log((p + 1) * (p + 2)) + math.log(math.comb(n, p))
        return parents + n_tests * math.log(max(p, 1)) + all_ways + n_shared * LOG_SHARED


def _counted(tests: Sequence[int], variables: Sequence[Variable]) -> tuple[int, int, float]:
    """The numbers of tests and of tested variables, and the log of the number of ways in which tests can split."""
    ways = {test: log_ways(variables[test]) for test in set(tests)}
    return len(tests), len(ways), math.fsum(map(ways.__getitem__, tests))


@dataclass(frozen=True, slots=True)
class Arcs:
    """Every arc is charged for the choice of its parent among all other variables; the graph of a node is not charged.

    The prior is the same for all networks of a Markov equivalence class.

    >>> coins = [Variable(str(k), ("heads", "tails")) for k in range(11)]
    >>> pair = DecisionGraph.complete([0, 1], [2, 2])
    >>> round(math.exp(-Arcs().log_prior(pair, 2, coins, 10)))
    100
    """

    def __str__(self) -> str:
        return "arcs"

    @property
    def costs(self) -> Costs:
        raise ValueError("the structure prior 'arcs' is for complete tables: use 'choices' with decision graphs.")

    def log_prior(self, graph: DecisionGraph, n_states: int, variables: Sequence[Variable], n_candidates: int) -> float:
        return -len(graph.tested) * self.arc_cost(len(variables))

    def own_log_prior(self, own: OwnTests, variables: Sequence[Variable], n_candidates: int) -> float:
        return -len(own.parents) * self.arc_cost(len(variables))

    def arc_cost(self, n_variables: int) -> float:
        """The cost of an arc."""
        return math.log(max(n_variables - 1, 1))


class Partners:
    """The numbers of leaves among which the partner of a leaf that shares a distribution is chosen.

    >>> coins = [Variable(name, ("heads", "tails")) for name in "abc"]
    >>> partners = Partners([(0, (0, 1), 4), (1, (0, 1), 2)], coins)  # four leaves of a, two of b
    >>> round(math.exp(partners.log_within(0, 2))), round(math.exp(partners.log_across(0, (0, 1))))
    (3, 5)
    """

    def __init__(self, leaves: Iterable[tuple[int, tuple[int, ...], int]], variables: Sequence[Variable]) -> None:
        """`leaves`: variables, states, and the number of the variable's leaves over these."""
        self._variables = variables
        self._within: Counter[tuple[int, int]] = Counter()
        self._across: Counter[frozenset[str]] = Counter()
        for variable, states, n in leaves:
            self._within[variable, len(states)] += n
            self._across[self._labels(variable, states)] += n

    def log_within(self, variable: int, size: int) -> float:
        """The log of the number of the variable's other leaves over `size` states."""
        return math.log(max(self._within[variable, size] - 1, 1))

    def log_across(self, variable: int, states: tuple[int, ...]) -> float:
        """The log of the number of all other leaves over states with the same labels."""
        return math.log(max(self._across[self._labels(variable, states)] - 1, 1))

    def _labels(self, variable: int, states: tuple[int, ...]) -> frozenset[str]:
        return frozenset(self._variables[variable].labels[state] for state in states)


def log_prior_of_tie(costs: Costs, group: Sequence[tuple[int, tuple[int, ...]]], partners: Partners) -> float:
    """The log prior of leaves that share a distribution, each given by its variable and its states in order.

    Parameters count once. With `choices`, every leaf but the first is charged for being shared, and for the choice of
    the first: among its variable's other leaves, and then also for how their states are paired; or, if they are of
    different variables, among all other leaves with these labels.

    >>> coins = [Variable(name, ("heads", "tails")) for name in "abc"]
    >>> partners = Partners([(0, (0, 1), 3), (1, (0, 1), 2)], coins)
    >>> crosswise, across = [(0, (0, 1)), (0, (1, 0))], [(0, (0, 1)), (1, (0, 1))]
    >>> [round(math.exp(-log_prior_of_tie(Choices().costs, group, partners))) for group in (crosswise, across)]
    [8, 16]
    >>> round(math.exp(log_prior_of_tie(Kappa(0.1).costs, across, partners)))  # one parameter less
    10
    """
    (first, states), size = group[0], len(group[0][1])
    gained = -(len(group) - 1) * (size - 1) * costs.log_kappa
    if not costs.shared:
        return gained
    within = [others for variable, others in group[1:] if variable == first]
    n_tied = len(group) - 1 - len(within)
    paid = (len(group) - 1) * costs.shared + n_tied * partners.log_across(first, states)
    pairings = [log_pairings(size, set(others) == set(states)) for others in within if others != states]
    return gained - paid - len(within) * partners.log_within(first, size) - math.fsum(pairings)


def log_pairings(size: int, same: bool) -> float:
    """The log of the number of ways to pair `size` states with as many others, or with the `same` in another order.

    >>> [round(math.exp(log_pairings(size, same))) for size in (2, 3) for same in (False, True)]
    [2, 1, 6, 5]
    """
    return math.log(math.factorial(size) - same) if size < 20 else math.lgamma(size + 1)  # where one is negligible


def log_ways(variable: Variable) -> float:
    """The log of the number of ways to split on a variable in one step: completely, by one state, below a state.

    >>> two, three = Variable("a", ("x", "y")), Variable("b", ("x", "y", "z"))
    >>> [round(math.exp(log_ways(v))) for v in (two, three, Variable("c", ("1", "2", "3", "4"), ordered=True))]
    [1, 4, 6]
    """
    r = variable.n_states
    if r <= 2:
        return 0.0
    if not variable.ordered or r == 3:
        return math.log(r + 1)
    return math.log(3 * r - 5 if variable.missing else 2 * r - 2)


def n_sets(variable: Variable, states: Sequence[int]) -> int:
    """The number of sets that an own-value test can separate from these states: one state, or the first ones in order.

    >>> size = Variable("size", ("S", "M", "L", "XL", "XXL"), ordered=True)
    >>> n_sets(size, [0, 1, 2, 3, 4]), n_sets(Variable("x", ("a", "b", "c", "d")), [0, 1, 2, 3])
    (7, 4)
    """
    in_order = sum(state < n_ordered(variable) for state in states)
    return len(states) + max(0, min(in_order, len(states) - 2) - 1)


def n_ordered(variable: Variable) -> int:
    """The number of the variable's first states that have a meaningful order.

    >>> n_ordered(Variable("age", ("< 30", ">= 30", "(missing)"), cuts=(30.0,), missing=True))
    2
    """
    return variable.n_states - variable.missing if variable.ordered else 0


def structure_prior(text: str | StructurePrior) -> StructurePrior:
    """The structure prior of this name; a prior is returned as it is.

    >>> str(structure_prior("kappa:0.1")), str(structure_prior("choices"))
    ('kappa:0.1', 'choices')
    """
    if not isinstance(text, str):
        return text
    kind, _, number = text.partition(":")
    if text == "uniform":
        return Kappa()
    if text == "choices":
        return Choices()
    if text == "arcs":
        return Arcs()
    if kind == "kappa":
        try:
            return Kappa(float(number))
        except ValueError:
            pass
    raise ValueError(
        f"structure prior {text!r} is not known: give 'auto', 'choices', 'arcs' (with complete tables), 'uniform', or "
        f"'kappa:' and a number from {_SMALLEST_KAPPA} to 1, such as 'kappa:0.1'"
    )
