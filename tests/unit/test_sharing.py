"""Relabelled merges and ties, against every pair and every permutation."""

import math
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from strategies import generators

import leafwise
from leafwise.data.table import Variable
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.network import Network, Node
from leafwise.operators import RelabelledMerge, Tie
from leafwise.own_tests import OwnTests
from leafwise.search.sharing import Sharing
from leafwise.structure_priors import Choices, Kappa, Partners, log_prior_of_tie

pytestmark = pytest.mark.interpreted
PRIORS = (Choices(), Kappa(0.1), Kappa())


def term(counts, exponents):
    """Equation 5, for one distribution."""
    parts = [math.lgamma(c + e) - math.lgamma(e) for c, e in zip(counts, exponents, strict=True)]
    return math.fsum(parts) - math.lgamma(sum(counts) + sum(exponents)) + math.lgamma(sum(exponents))


class Slow:
    """Groups of leaves as (variable, leaf, states by place), and their counts and exponents; all pairs are tried."""

    def __init__(self, network, operators, prior, adds, permutes):
        self.variables, self.operators, self.costs, self.adds = network.variables, operators, prior.costs, adds
        self.permutes, self.groups = permutes, []
        for variable, node in enumerate(network.nodes):
            holder = node.own or node
            for row, (counts, exponents) in enumerate(zip(holder.counts, holder.exponents, strict=True)):
                states = tuple(range(node.n_states)) if node.own is None else node.own.states[node.own.places[row]]
                if len(states) > 1 and not (node.own and node.own.is_switch(row)):
                    members = [(variable, row, states)]
                    self.groups.append((members, [counts[s] for s in states], [exponents[s] for s in states]))
        leaves = [(variable, states, 1) for ((variable, _, states),), _, _ in self.groups]
        self.partners = Partners(leaves, network.variables)

    def labels(self, group):
        variable, _, states = group[0][0]
        return [self.variables[variable].labels[state] for state in states]

    def log_prior(self, members):
        return log_prior_of_tie(self.costs, [(v, states) for v, _, states in members], self.partners)

    def joined(self, one, other, order):
        def ordered(values):
            return [values[place] for place in order]

        members = one[0] + [(v, leaf, tuple(ordered(states))) for v, leaf, states in other[0]]
        exponents = [a + b for a, b in zip(one[2], ordered(other[2]), strict=True)] if self.adds else one[2]
        return members, [a + b for a, b in zip(one[1], ordered(other[1]), strict=True)], exponents

    def orders(self, one, other):
        size, same_variable = len(one[1]), one[0][0][0] == other[0][0][0]
        if not same_variable and "T" in self.operators and set(self.labels(one)) == set(self.labels(other)):
            yield [self.labels(other).index(label) for label in self.labels(one)]
        if same_variable and "R" in self.operators and size == len(other[1]):
            symmetric = len(set(one[2])) == len(set(other[2])) == 1
            if symmetric and set(one[0][0][2]) == set(other[0][0][2]):
                yield [other[0][0][2].index(state) for state in one[0][0][2]]
            if symmetric and self.permutes:
                yield from permutations(range(size))
            else:
                places = [np.argsort(np.add(g[1], g[2]), kind="stable").tolist() for g in (one, other)]
                pairs = dict(zip(*places, strict=True))
                yield [pairs[slot] for slot in range(size)]

    def step(self):
        """The gain of the best pair, which is then joined; None if none gains."""
        best = None
        for one, other in combinations(self.groups, 2):
            for order in self.orders(one, other):
                joined = self.joined(one, other, order)
                gain = term(*joined[1:]) - term(*one[1:]) - term(*other[1:])
                gain += self.log_prior(joined[0]) - self.log_prior(one[0]) - self.log_prior(other[0])
                if gain > (1e-9 if best is None else best[0] + 1e-9):
                    best = gain, one, other, joined
        if best is None:
            return None
        gain, one, other, joined = best
        rest = [group for group in self.groups if group is not one and group is not other]
        self.groups = sorted([*rest, joined], key=lambda group: group[0][0])
        return gain, one[0][0][:2], other[0][0][:2]


def network_of(random, n_variables, symmetric=True, own=False, most=40):
    """A network of leaves without arcs to speak of: each variable has a parent that splits it as often as it can."""
    variables, nodes = [], []
    for place in range(n_variables):
        r = int(random.integers(2, 4))
        labels = tuple(random.permutation(["no", "yes", "why"][:r]).tolist())
        variables.append(Variable(f"v{place}", labels))
        n_leaves = variables[place - 1].n_states if place else 1
        n_states = [variable.n_states for variable in variables]
        graph = DecisionGraph.complete([place - 1], n_states) if place else DecisionGraph.single()
        counts = random.integers(0, most, (n_leaves, r))
        exponents = np.full((n_leaves, r), 2 / r) if symmetric else random.uniform(0.2, 3, (n_leaves, r))
        if own and r == 3 and place:
            tests = (place - 1, *(place,) * n_leaves, *(LEAF,) * (n_leaves + 1))
            last = 1 + n_leaves
            kids = [(last, last + 1 + k, last + 1 + k) for k in range(n_leaves)]
            graph = DecisionGraph(tests, (tuple(range(1, last)), *kids, *((),) * (n_leaves + 1)))
            rows = np.concatenate([counts, [counts.sum(axis=0) * [1, 0, 0]], counts * [0, 1, 1]])
            reached = np.concatenate([np.ones_like(counts), [[1, 0, 0]], [[0, 1, 1]] * n_leaves])
            exponents = np.where(reached, np.concatenate([exponents, exponents[:1], exponents]), 0)
            nodes.append(Node.with_own_tests(OwnTests.learned(graph, rows, exponents, place)))
        else:
            nodes.append(Node.learned((place - 1,) if place else (), graph, counts, exponents))
    return Network(tuple(variables), tuple(nodes))


def finished(shared):
    while not shared.finished:
        shared.advance(10**6)
    return shared


def compare(network, operators, prior, adds, permutes=True):
    shared, slow = Sharing(network, operators, prior.costs, adds), Slow(network, operators, prior, adds, permutes)
    finished(shared)
    for step in range(shared.n_steps):
        operator, expected = shared.operator(step), slow.step()
        assert expected is not None
        assert operator.gain == pytest.approx(expected[0], abs=1e-7)
        second = operator.other_target if isinstance(operator, Tie) else operator.target
        assert ((operator.target, operator.leaf), (second, operator.other)) == expected[1:]
    assert slow.step() is None
    return shared, slow


@given(generators())
def test_every_step_is_the_best_of_all_pairs_and_permutations(random):
    network = network_of(random, int(random.integers(2, 6)), own=bool(random.integers(2)))
    operators, prior = ["R", "T", "RT"][random.integers(3)], PRIORS[random.integers(3)]
    shared, slow = compare(network, operators, prior, adds=bool(random.integers(2)))
    after = shared.shared_in(network)
    assert after.n_parameters == network.n_parameters - shared.n_saved
    found = {frozenset((v, leaf) for v, leaf, _ in members) for members, *_ in slow.groups if len(members) > 1}
    assert {frozenset((tied.variable, tied.leaf) for tied in group) for group in after.ties} == found
    log_prior = sum(slow.log_prior([tuple(tied) for tied in group]) for group in after.ties)
    assert shared.gain == pytest.approx(
        log_prior
        + sum(term(*group[1:]) for group in slow.groups)
        - sum(term(*group[1:]) for group in Slow(network, operators, prior, False, True).groups),
        abs=1e-6,
    )


@given(generators())
def test_exponents_that_are_not_symmetric_are_paired_by_count_and_exponent(random):
    network = network_of(random, 4, symmetric=False)
    compare(network, "RT", Choices(), adds=True, permutes=False)


def test_many_leaves_in_trees_are_found_as_in_all_pairs():
    """More than fit into a bucket, of three distributions, so that trees are made, left, and made anew."""
    random = np.random.default_rng(1)
    variables = tuple(Variable(f"v{k}", ("a", "b", "c")) for k in range(60))
    shares = random.dirichlet([1, 1, 1], 3)
    nodes = [
        Node.learned((), DecisionGraph.single(), np.array([random.multinomial(n, share)]), np.full((1, 3), 2 / 3))
        for n, share in zip(random.integers(5, 400, 60), shares[random.integers(3, size=60)], strict=True)
    ]
    compare(Network(variables, tuple(nodes)), "T", Choices(), adds=False)


def test_permutations_by_hand():
    """Three states: one of the permutations but the identity is chosen; with other states, one of them all."""
    die = [Variable("die", tuple(map(str, range(200))))]
    three, two = [Partners([(0, tuple(range(size)), 5)], die) for size in (3, 2)]

    def price(partners, *leaves):
        return math.exp(-log_prior_of_tie(Choices().costs, [(0, states) for states in leaves], partners))

    shared = 4 * (5 - 1)  # one of four other leaves
    assert price(three, (0, 1, 2), (0, 1, 2)) == pytest.approx(shared)
    assert price(three, (0, 1, 2), (1, 0, 2)) == pytest.approx(shared * (6 - 1))
    assert price(three, (0, 1, 2), (1, 0, 2), (0, 1, 2), (1, 2, 0)) == pytest.approx(shared**3 * 5**2)
    assert price(two, (0, 1), (1, 0)) == pytest.approx(shared)
    assert price(two, (0, 1), (2, 1)) == price(two, (0, 1), (1, 2)) == pytest.approx(shared * 2)
    many = log_prior_of_tie(Choices().costs, [(0, tuple(range(200))), (0, tuple(range(200))[::-1])], three)
    assert many == pytest.approx(-math.log(4) - math.lgamma(201))
    assert log_prior_of_tie(Kappa().costs, [(0, (0, 1, 2)), (0, (1, 0, 2))], three) == 0


def test_the_papers_example_is_found():
    """p(y=1 | x=0) = p(y=0 | x=1): one parameter for y where there were two."""
    random = np.random.default_rng(1)
    x = random.integers(2, size=400)
    cases = np.stack([x, np.where(random.random(400) < 0.8, x, 1 - x)], axis=1)
    plain = leafwise.learn(cases, target="x2")
    search = leafwise.start_search(cases, target="x2", search=leafwise.LeafSearch(operators="CBMR"))
    steps = list(search)
    assert isinstance(steps[-1].operator, RelabelledMerge)
    assert steps[-1].operator.states == ((0, 1), (1, 0))
    network = search.network
    assert (network.n_parameters, plain.n_parameters) == (1, 2)
    assert [tied.states for tied in network.ties[0]] == [(0, 1), (1, 0)]
    node = network.nodes[1]
    assert node.probabilities[0, 0] == node.probabilities[1, 1]
    assert node.counts.sum() == 800
    assert network.learned["relabelled_merges"] == 1
    assert network.learned["log_score"] == pytest.approx(steps[-1].log_score)
    assert network.learned["log_score"] > plain.learned["log_score"]


def leaves_alike(n_cases=8000):
    """Two variables with as much noise over different parents, so that their leaves are alike."""
    random = np.random.default_rng(2)
    first, second = random.integers(2, size=(2, n_cases))
    noise = np.arange(n_cases) % 7 == 0
    noisy = [parent ^ random.permutation(noise) for parent in (first, second)]
    return np.stack([first, noisy[0], second, noisy[1]], axis=1)


SHARING = leafwise.LeafSearch(operators="CBIMRT")


def test_leaves_of_different_variables_are_tied():
    cases = leaves_alike()
    network = leafwise.learn(cases, search=SHARING)
    assert network.learned["ties"] >= 1
    assert network.learned["parameters"] == network.n_parameters < leafwise.learn(cases).n_parameters
    shared = network.ties[0]
    rows = [network.nodes[tied.variable].probabilities[tied.leaf, list(tied.states)] for tied in shared]
    assert all(np.array_equal(row, rows[0]) for row in rows)
    for threads in (1, 2):
        assert leafwise.learn(cases, search=leafwise.LeafSearch("CBIMRT", threads=threads)) == network


def test_without_the_letters_nothing_changes():
    cases = leaves_alike()
    plain = leafwise.learn(cases)
    stopped = leafwise.learn(cases, search=leafwise.LeafSearch("CBIMRT", max_steps=plain.learned["steps"]))
    assert stopped.nodes == plain.nodes
    assert stopped.ties == plain.ties == ()


def test_limits_and_checkpoints(tmp_path):
    cases = leaves_alike()
    whole = leafwise.learn(cases, search=SHARING)
    n_steps = whole.learned["steps"]
    part = leafwise.LeafSearch("CBIMRT", max_steps=n_steps - 1)
    half = leafwise.learn(cases, search=part, checkpoint=tmp_path / "c.json")
    assert (half.learned["steps"], half.learned["stopped"]) == (n_steps - 1, "max_steps")
    assert half.n_parameters > whole.n_parameters
    assert leafwise.learn(cases, search=SHARING, checkpoint=tmp_path / "c.json") == whole
    assert leafwise.learn(cases, search=SHARING, checkpoint=tmp_path / "c.json") == whole


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"search": leafwise.LeafSearch("CBR"), "leaves": "average"}, "do not go together"),
    ],
)
def test_what_sharing_does_not_go_with(options, problem):
    with pytest.raises(ValueError, match=problem):
        leafwise.learn(leaves_alike(), **options)


def test_searches_in_which_graphs_change_again_do_not_share():
    for settings in (leafwise.LeafSearchRestarts, leafwise.GraphArcSearch):
        with pytest.raises(ValueError, match="goes without T"):
            settings(leafwise.LeafSearch("CBMT"))
    with pytest.raises(ValueError, match="with C, B or I"):
        leafwise.LeafSearch("MRT")


def test_all_letters_together():
    random = np.random.default_rng(3)
    x, z = random.integers(2, size=(2, 1500))
    share = np.where(x == 1, 0.7, 0.2)
    y = np.where(random.random(1500) < share, 2, np.where(random.random(1500) < 0.8, z, 1 - z))
    network = leafwise.learn(np.stack([x, z, y], axis=1), search=leafwise.LeafSearch("CBIMORT"))
    assert network.ties
    assert network.learned["parameters"] == network.n_parameters
    total = leafwise.log_score(network, np.stack([x, z, y], axis=1)).total
    assert network.learned["log_score"] == pytest.approx(total)
