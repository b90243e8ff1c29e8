"""Section 6: own-value tests, relabelled merges, ties. The oracle against the mathematics, the library against it."""

import itertools
import math
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import oracle
import oracle_section6
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_inference import joint_table
from oracle_section6 import Group, Leaf, Move, Sharing
from strategies import PRIORS, SCHEDULES, examples, free, generators, make_table, random_rules, random_setup
from strategies import random_table as any_table

import leafwise
from leafwise.data.table import Table
from leafwise.operators import BinarySplit, CompleteSplit, Merge, OrderedSplit, PartialSplit
from leafwise.search.leaf_search import LeafSearchRun


def knows(letter):
    try:
        leafwise.LeafSearch(operators="C" + letter)
    except ValueError:
        return False
    return True


shares = pytest.mark.skipif(not knows("R"), reason="the library does not know R and T yet")
LETTERS = ("CO", "BO", "CBO", "CBMO", "CBIMO", "IMO", "CBMOR", "CBMORT", "CBMR", "CBMT", "BIMORT")


def partial_column(table, target, random):
    """Cases of a variable of three or more states: each of one or two others changes one piece of its distribution.

    Pieces are parted by a prefix of the states, or of the states in some order; or the states change places.
    """
    r, n = table.variables[target].n_states, table.n_cases
    others = [v for v in range(table.n_variables) if v != target]
    states = random.permutation(r) if random.random() < 0.5 else np.arange(r)
    rows = np.tile(random.dirichlet(np.ones(r)), (n, 1))
    for parent in random.permutation(others)[:2]:
        cut, piece = int(random.integers(1, r)), random.choice(["switch", "part", "rest", "places"])
        for state in range(table.variables[parent].n_states):
            here = table.codes[parent] == state
            ways = {"part": slice(None, cut), "rest": slice(cut, None)}
            if piece == "places":
                rows[here] = rows[here][:, random.permutation(r)]
            elif piece == "switch":
                share = rows[here, :cut].sum(axis=1, keepdims=True)
                new = random.random()
                rows[here, :cut] *= new / share
                rows[here, cut:] *= (1 - new) / (1 - share)
            else:
                size = rows[here, ways[piece]].shape[1]
                total = rows[here, ways[piece]].sum(axis=1, keepdims=True)
                rows[here, ways[piece]] = total * random.dirichlet(np.full(size, 0.5))
    return states[np.minimum((random.random(n)[:, None] > rows.cumsum(axis=1)).sum(axis=1), r - 1)]


def random_table(random, **limits):
    """A table in which some variables have such structure, and many an order."""
    table = any_table(random, **limits)
    codes = table.codes.copy()
    for target, variable in enumerate(table.variables):
        if variable.n_states > 2 and table.n_variables > 1 and random.random() < 0.6:
            codes[target] = partial_column(Table(table.variables, codes), target, random)
    variables = (replace(v, ordered=v.ordered or random.random() < 0.3) for v in table.variables)
    return Table(tuple(variables), codes)


def problems(make_rules=random_rules, letters=LETTERS, **limits):
    """A table, a way to search it with some of the letters, and a target among its variables."""

    def make(random):
        table = random_table(random, **limits)
        setup = replace(random_setup(random, table, make_rules), operators=str(random.choice(letters)))
        return table, setup, int(random.integers(table.n_variables))

    return generators().map(make)


SMALL = {"max_variables": 4, "max_cases": 600, "max_states": 6, "max_assignments": 100}


def node_of(table, target, alpha=("uniform", None), log_kappa=0.0):
    return oracle_section6.Node(table, target, alpha, log_kappa, table.n_variables - 1)


def prior_network(table):
    """What is learned from some of the cases."""
    return leafwise.learn(Table(table.variables, np.ascontiguousarray(table.codes[:, ::3])), prior="uniform")


@examples(60)
@given(problems(letters=("CBIMO",), **SMALL))
def test_an_own_value_test_alone_leaves_the_score_as_it_was(problem):
    table, setup, target = problem
    for alpha in (PRIORS[setup.prior], ("network", 7 * joint_table(prior_network(table)))):
        node = node_of(table, target, alpha)
        (leaf,) = node.leaves
        for part in node.sets(leaf) if len(leaf.states) > 2 else ():
            pieces = node.pieces(leaf, part)
            assert math.fsum(map(node.term, pieces.values())) == pytest.approx(node.term(leaf), rel=1e-12)


@examples(60)
@given(problems(letters=("CBIMO",), **SMALL))
def test_to_split_the_switch_is_to_test_the_parent_above_and_share_the_parts_below(problem):
    table, setup, target = problem
    search = oracle_section6.Search(table, targets=[target], operators="CBIO", schedule="best-first")
    node = search.nodes[target] = node_of(table, target, PRIORS[setup.prior])
    for move in search.splits():
        if move.piece == "switch":
            below = node.after(move)
            above = node.after(replace(move, part=None, piece=None))
            shared = [piece for name, piece in node.pieces(node.leaves[0], move.part).items() if name != "switch"]
            parted = [above.pieces(leaf, move.part)["switch"] for leaf in above.leaves]
            score = math.fsum(map(above.term, parted)) + math.fsum(map(above.term, shared))
            assert below.log_marginal_likelihood() == pytest.approx(score, abs=1e-9)


@examples(40)
@given(problems(**SMALL))
def test_the_oracle_adds_up(problem):
    """Probabilities sum to one for every parent state; what the steps gain is the difference of the scores."""
    table, setup, _ = problem
    slow = oracle_section6.Search(table, **setup.for_oracle())
    before = slow.log_score
    moves = slow.run(8)
    assert slow.log_score - before == pytest.approx(math.fsum(move.gain for move in moves), abs=1e-8)
    for target, node in slow.nodes.items():
        for assignment in node.everything:
            assert math.fsum(slow.probabilities(target, assignment)) == pytest.approx(1, abs=1e-12)
        reached = [
            sum(sum(node.counts(leaf)) for leaf in node.leaves if (leaf.partition is None) == plain)
            for plain in (True, False)
        ]
        assert reached[0] <= table.n_cases <= sum(reached)


@examples(40)
@given(problems(letters=("CBIM", "BM", "CB"), **SMALL))
def test_without_its_letters_it_is_the_oracle_of_the_paper(problem):
    table, setup, _ = problem
    one, other = oracle.Search(table, **setup.for_oracle()), oracle_section6.Search(table, **setup.for_oracle())
    for expected, found in itertools.zip_longest(one.run(8), other.run(8)):
        assert as_values(found) == as_values(expected)
        assert found.gain == pytest.approx(expected.gain, abs=1e-9)
    assert other.log_score == pytest.approx(one.log_score, abs=1e-9)


def as_values(move):
    part, piece = (move.part, move.piece) if isinstance(move, Move) else (None, None)
    kind = "partial" if part is not None else move.kind
    return kind, move.target, move.leaf, move.variable, move.groups, move.other, part, piece


def leaf_counts(n_leaves=2):
    return st.integers(2, 5).flatmap(
        lambda r: st.tuples(*[st.lists(st.integers(0, 12), min_size=r, max_size=r) for _ in range(n_leaves)])
    )


@examples(200)
@given(leaf_counts(), st.sampled_from([0.05, 0.5, 1.0, 3.0]), st.sampled_from([0.05, 1.0, 2.5]), st.booleans())
def test_pairing_counts_in_sorted_order_is_the_best_of_all_permutations(counts, exponent, second, adds):
    one, other = (
        Group(((0, k, tuple(range(len(own)))),), tuple(own), (size,) * len(own))
        for k, (own, size) in enumerate(zip(counts, (exponent, second), strict=True))
    )
    terms = [one.joined(other, order, adds).term for order in itertools.permutations(range(len(one.counts)))]
    chosen = one.joined(other, oracle_section6.sorted_order(one, other), adds)
    assert chosen.term == pytest.approx(max(terms), abs=1e-9)


def the_papers_example(counts=((30, 10), (12, 28))):
    """x and y of two states; p(y=1 | x=0) = p(y=0 | x=1)."""
    cells = [(x, y) for x in range(2) for y in range(2) for _ in range(counts[x][y])]
    return make_table([2, 2], list(zip(*cells, strict=True)))


def test_the_papers_example_by_hand():
    rules = oracle.Rules(dag=frozenset({(0, 1)}))
    search = oracle_section6.Search(
        the_papers_example(), targets=[1], operators="CBMOR", schedule="splits-first", rules=rules
    )
    split, shared = search.run(5)
    assert (split.kind, split.variable) == ("complete", 0)
    assert isinstance(shared, Sharing)
    assert shared.order == (1, 0)
    beta = math.lgamma
    before = beta(2) - beta(42) + beta(31) + beta(11) + beta(2) - beta(42) + beta(13) + beta(29)
    after = beta(2) - beta(82) + beta(30 + 28 + 1) + beta(10 + 12 + 1)
    assert shared.gain == pytest.approx(after - before, abs=1e-12)
    assert search.probabilities(1, (0, 0)) == pytest.approx([59 / 82, 23 / 82], abs=1e-15)
    assert search.probabilities(1, (1, 0)) == pytest.approx([23 / 82, 59 / 82], abs=1e-15)
    assert search.n_parameters == 1


def test_a_partial_split_by_hand():
    """Three states; which of the first two depends on the parent, whether it is the third does not."""
    columns = [[0] * 20 + [1] * 20, [0] * 12 + [1] * 3 + [2] * 5 + [0] * 2 + [1] * 12 + [2] * 6]
    table = make_table([2, 3], columns)
    kappa = math.log(0.1)
    search = oracle_section6.Search(table, targets=[1], operators="CO", schedule="best-first", log_kappa=kappa)
    (move,) = search.run(3)
    assert (move.part, move.piece, move.variable) == (frozenset({2}), "rest", 0)
    beta = math.lgamma
    whole = beta(3) - beta(43) + beta(15) + beta(16) + beta(12)
    switch = beta(3) - beta(43) + beta(2 + 29) - beta(2) + beta(1 + 11)
    rest = beta(2) - beta(17) + beta(13) + beta(4) + beta(2) - beta(16) + beta(3) + beta(13)
    assert move.gain == pytest.approx(switch + rest - whole + (3 - 2) * kappa, abs=1e-9)
    # one variable and not none, 1/2 · 1/3 for 1/2; one of one candidate, in one way; one of three sets, and 1/4
    node = node_of(table, 1, log_kappa=None)
    assert node.after(move).log_prior() - node.log_prior() == pytest.approx(-math.log(3) - math.log(3) - math.log(4))
    assert [leaf.states for leaf in search.nodes[1].leaves] == [(0, 1, 2), (0, 1), (0, 1)]
    assert search.probabilities(1, (0, 0)) == pytest.approx([31 / 43 * 13 / 17, 31 / 43 * 4 / 17, 12 / 43])
    assert search.n_parameters == 3


def test_prefixes_leave_two_states_and_what_is_missing_to_the_rest():
    table = make_table([6, 2], [[0, 1, 2, 3, 4, 5], [0, 1] * 3], ordered={0}, missing={0})
    node = node_of(table, 0)
    sets = [sorted(part) for part in node.sets(node.leaves[0])]
    assert sets == [[0], [1], [2], [3], [4], [5], [0, 1], [0, 1, 2], [0, 1, 2, 3]]
    assert [sorted(part) for part in node.sets(Leaf(node.everything, (1, 3, 4, 5)))][4:] == [[1, 3]]
    assert len(node.sets(Leaf(node.everything, (1, 3, 5)))) == 3


def test_ties_of_leaves_with_the_same_labels():
    """Two variables of three labels that are distributed alike, and one that is not."""
    alike = [0] * 40 + [1] * 20 + [2] * 10
    table = make_table([3, 3, 3], [alike, alike[35:] + alike[:35], alike[::-1][:30] + [2] * 40])
    for log_kappa, price in ((0.0, 0.0), (None, -math.log(4) - math.log(2)), (math.log(0.5), 2 * math.log(2))):
        rules = oracle.Rules(dag=frozenset())
        search = oracle_section6.Search(
            table, operators="CBMT", schedule="splits-first", log_kappa=log_kappa, rules=rules
        )
        (tie,) = search.run(5)
        assert (tie.kind, [target for target, *_ in tie.joined.members]) == ("T", [0, 1])
        one = oracle.log_likelihood([40, 20, 10], [1, 1, 1])
        assert tie.gain == pytest.approx(oracle.log_likelihood([80, 40, 20], [1, 1, 1]) - 2 * one + price)
        assert search.n_parameters == 4


def as_move(operator):
    """The library's operator in the oracle's words; None for what shares a distribution."""
    match operator:
        case CompleteSplit(target, leaf, variable, groups, gain):
            return Move("complete", target, leaf, gain, variable, groups)
        case BinarySplit(target, leaf, variable, state, n_states, gain):
            groups = (frozenset({state}), frozenset(range(n_states)) - {state})
            return Move("binary", target, leaf, gain, variable, groups)
        case OrderedSplit(target, leaf, variable, groups, gain):
            return Move("ordered", target, leaf, gain, variable, groups)
        case Merge(target, leaf, other, gain):
            return Move("merge", target, min(leaf, other), gain, other=max(leaf, other))
        case PartialSplit(target, leaf, variable, part, piece, groups, gain):
            return Move("partial", target, leaf, gain, variable, groups, part=part, piece=piece)
    return None


def check_step(slow, operator):
    """The gain is score after less score before; nothing gains more; and of equals it is the first."""
    expected, found = slow.best(), as_move(operator)
    assert expected is not None, f"went on with {operator}"
    if found is None:
        assert isinstance(expected, Sharing), f"{operator} before {expected}"
        assert operator.gain == pytest.approx(expected.gain, abs=1e-7)
    else:
        node = slow.nodes[found.target]
        assert found.gain == pytest.approx(node.after(found).log_score() - node.log_score(), abs=1e-7), found
        assert found.gain == pytest.approx(expected.gain, abs=1e-7), f"{found} before {expected}"
        assert as_values(found) == as_values(expected)
    slow.take(expected)


def rows_in(network, slow):
    """By target and leaf, in the oracle's numbers: the row of the leaf in a node that tests its own variable."""
    found = {}
    for target, node in slow.nodes.items():
        own = network.nodes[target].own
        for k, leaf in enumerate(node.leaves if own is not None else ()):
            if not leaf.parts:
                case = list(next(iter(leaf.region)))
                case[target] = leaf.states[0]
                found[target, k] = own.leaf_rows[own.graph.leaf_of(case)]
    return found


def check_against_oracle(table, setup, target=None, max_steps=None, prior=None):
    """Step by step; then every probability, the parameters and the score of the network."""
    targets, name = (None, None) if target is None else ([target], table.names[target])
    its, ours = setup.for_oracle(), setup.for_library(max_steps=max_steps)
    if prior is not None:
        its["alpha"], ours["prior"] = ("network", 7 * joint_table(prior)), leafwise.PriorNetwork(prior, 7)
    slow = oracle_section6.Search(table, targets=targets, **its)
    fast = leafwise.start_search(table, target=name, **ours)
    with patch.object(LeafSearchRun, "_begin_to_part", lambda run: run._leaves.begin_to_part()):  # no second look
        for step in fast:
            if as_move(step.operator) is None and slow.groups is None:
                slow.rows = rows_in(fast.network, slow)
            check_step(slow, step.operator)
            assert step.log_score == pytest.approx(slow.log_score, abs=1e-6)
    assert max_steps is not None or slow.best() is None, f"stopped before {slow.best()}"
    network = fast.network
    assert fast.log_score == pytest.approx(slow.log_score, abs=1e-6)
    assert network.n_parameters == slow.n_parameters
    for node in slow.nodes.values():
        found = network.nodes[node.target]
        fixed = {parent for parent, child in slow.rules.arcs_at_start() if child == node.target}
        assert set(found.parents) == node.relevant_parents() | fixed
        for assignment in node.everything:
            row = found.probabilities[found.graph.leaf_of(assignment)]
            assert row.tolist() == pytest.approx(slow.probabilities(node.target, assignment), abs=1e-9)


OWN = tuple(letters for letters in LETTERS if not set(letters) & set("RT"))


@pytest.mark.interpreted
@examples(100)
@given(problems(letters=OWN, **SMALL))
def test_partial_splits_of_one_target(problem):
    check_against_oracle(*problem)


@pytest.mark.interpreted
@examples(60)
@given(problems(letters=OWN, **SMALL))
def test_partial_splits_of_all_nodes_at_once(problem):
    check_against_oracle(*problem[:2], max_steps=12)


@examples(60)
@given(problems(letters=("CBMO", "CBIMO", "BO"), **SMALL))
def test_another_look_never_lowers_the_score(problem):
    table, setup, _ = problem
    ours = {**setup.for_library(), "search": leafwise.LeafSearch(operators=setup.operators, threads=1)}
    network = leafwise.learn(table, **ours)
    without = replace(ours["search"], operators=setup.operators.replace("O", ""))
    plain = leafwise.learn(table, **{**ours, "search": without})
    found = leafwise.log_score(network, table).total
    assert network.learned["log_score"] == pytest.approx(found, abs=1e-6)
    assert found >= plain.learned["log_score"] - 1e-6


@examples(30)
@given(problems(letters=OWN, make_rules=free, **SMALL))
def test_partial_splits_with_a_prior_network(problem):
    check_against_oracle(*problem, prior=prior_network(problem[0]))


@shares
@examples(60)
@given(problems(letters=("CBMR", "CBMOR", "CBR"), make_rules=free, **SMALL))
def test_relabelled_merges(problem):
    check_against_oracle(*problem)


def alike(random):
    """A table whose variables are distributed alike, by label, or up to the names of the states."""
    n_states = [int(r) for r in random.choice([2, 3, 3, 4], int(random.integers(2, 6)))]
    n_cases, weights = int(random.choice([30, 200, 1000])), random.dirichlet(np.full(4, 2))
    columns = []
    for r in n_states:
        shares = weights[:r] / weights[:r].sum()
        column = random.choice(r, size=n_cases, p=random.permutation(shares) if random.random() < 0.4 else shares)
        if columns and random.random() < 0.6:
            names = np.array([random.permutation(r) for _ in range(4)])
            column = names[columns[int(random.integers(len(columns)))], column]
        columns.append(column)
    table = make_table(n_states, columns)
    letters = str(random.choice(["CBMT", "CBMRT", "CBRT", "CR", "CBMOR", "CBMORT"]))
    return table, replace(random_setup(random, table, free), operators=letters)


@shares
@examples(120)
@given(generators().map(alike))
def test_leaves_that_are_alike(problem):
    check_against_oracle(*problem)


@shares
@examples(60)
@given(problems(letters=("CBMT", "CBMORT", "CBIMOT", "BRT"), make_rules=free, **SMALL))
def test_ties_across_nodes(problem):
    check_against_oracle(*problem[:2])


@shares
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_papers_example_is_found(schedule):
    for structure_prior in ("uniform", "auto"):
        network = leafwise.learn(
            the_papers_example(((300, 100), (100, 300))),
            search=leafwise.LeafSearch(operators="CBMOR", schedule=schedule),
            prior="uniform",
            structure_prior=structure_prior,
        )
        child = network.nodes[next(k for k, node in enumerate(network.nodes) if node.parents)]
        rows = child.probabilities.tolist()
        assert rows[0] == pytest.approx(rows[1][::-1])
        assert network.n_parameters == 2
