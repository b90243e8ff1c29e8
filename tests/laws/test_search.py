"""Laws of every search, whatever it finds."""

import itertools
import math
from dataclasses import replace

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    by_name,
    examples,
    free,
    generators,
    make_table,
    problems,
    random_setup,
    random_start,
    random_table,
)

import leafwise
from leafwise import learn, log_score, start_search, workers
from leafwise.counters import cpu
from leafwise.data.table import Table, Variable
from leafwise.decision_graph import DecisionGraph
from leafwise.examples import alarm
from leafwise.network import Network
from leafwise.search.leaf_search import SCHEDULES, LeafSearch

LIMITS = {"max_cases": 120, "max_assignments": 200}


def total(network, table):
    return sum(score.log_score for score in log_score(network, table).values())


@pytest.mark.interpreted
@examples(40)
@given(problems(**LIMITS))
def test_a_gain_is_the_score_after_less_the_score_before(problem):
    table, setup, _ = problem
    search = start_search(table, **setup.for_library())
    before = total(search.network, table)
    for step in itertools.islice(search, 12):
        after = total(search.network, table)
        assert step.operator.gain == pytest.approx(after - before, abs=1e-6)
        assert step.log_score == pytest.approx(after, abs=1e-6)
        assert step.operator.gain > 0
        before = after


@pytest.mark.interpreted
@examples(40)
@given(problems(**LIMITS))
def test_steps_tell_the_size_of_the_network(problem):
    table, setup, _ = problem
    search = start_search(table, **setup.for_library())
    kinds = []
    for step in itertools.islice(search, 20):
        kinds.append(type(step.operator).__name__)
        assert (step.n_leaves, step.n_arcs) == (search.network.n_leaves, len(search.network.arcs))
        assert (search.n_steps, search.n_merges) == (len(kinds), kinds.count("Merge"))
        assert search.n_splits + search.n_merges == search.n_steps
        assert search.n_parameters == search.network.n_parameters


@pytest.mark.interpreted
@examples(60)
@given(problems(**LIMITS))
def test_scores_counts_and_means_of_what_was_learned(problem):
    table, setup, _ = problem
    search = start_search(table, **setup.for_library())
    search.run()
    network = search.network
    scores = log_score(network, table).values()
    log_score_of_network = sum(score.log_score for score in scores)
    assert log_score_of_network == pytest.approx(network.learned["log_score"], abs=1e-6)
    if setup.structure_prior != "choices":  # which charges for tests that the network is left without
        assert log_score_of_network == pytest.approx(search.log_score, abs=1e-6)
    assert sum(s.log_marginal_likelihood for s in scores) == pytest.approx(search.log_marginal_likelihood, abs=1e-6)
    for target, node in enumerate(network.nodes):
        states = np.bincount(table.codes[target], minlength=node.n_states)
        assert node.counts.sum(axis=0).tolist() == states.tolist()
        assert node.counts.sum() == table.n_cases
        assert node.probabilities.sum(axis=1) == pytest.approx(1)
        leaves = [node.graph.leaf_of(case) for case in table.codes.T.tolist()]
        assert node.counts.sum(axis=1).tolist() == np.bincount(leaves, minlength=node.graph.n_leaves).tolist()


@examples(60)
@given(problems(**LIMITS))
def test_networks_are_acyclic_and_within_their_constraints(problem):
    table, setup, _ = problem
    rules = setup.rules
    for step in (0, 1, 3, None):
        network = learn(table, **setup.for_library(max_steps=step))
        arcs = set(network.arcs)
        assert not any(oracle.leads_to(child, parent, arcs) for parent, child in arcs)
        assert rules.required <= arcs
        assert all(rules.permit(parent, child) for parent, child in arcs)
        for node in network.nodes:
            assert rules.max_parents is None or len(node.parents) <= rules.max_parents
            assert rules.max_leaves is None or node.graph.n_leaves <= rules.max_leaves


@examples(60)
@given(problems(**LIMITS))
def test_every_assignment_reaches_one_leaf_and_every_leaf_is_reached(problem):
    table, setup, _ = problem
    n_states = [variable.n_states for variable in table.variables]
    assignments = list(itertools.product(*map(range, n_states)))
    for node in learn(table, **setup.for_library()).nodes:
        node.graph.validate(n_states)
        reached = [node.graph.leaf_of(assignment) for assignment in assignments]
        assert set(reached) == set(range(node.graph.n_leaves))
        boxes = [(leaf, path) for leaf in range(node.graph.n_leaves) for path in node.graph.paths(leaf)]
        for assignment, leaf in zip(assignments, reached, strict=True):
            ways = [k for k, path in boxes if all(assignment[v] in states for v, states in path.items())]
            assert ways == [leaf]


def same_found(one, other):
    """The same graphs with the same counts and exponents, whatever was recorded about the way there."""
    return all(
        (a is None and b is None)
        or (
            (a.parents, a.graph) == (b.parents, b.graph)
            and np.array_equal(a.counts, b.counts)
            and np.allclose(a.exponents, b.exponents, rtol=1e-12)
        )
        for a, b in zip(one.nodes, other.nodes, strict=True)
    )


@examples(40)
@given(problems(max_variables=5, max_cases=200, max_assignments=2000))
def test_any_number_of_threads_learns_the_same_network(problem):
    table, setup, _ = problem
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "_WORTH_A_THREAD", 1e-9)  # else threads are for large tables only
        networks = [learn(table, **setup.for_library(threads=threads)) for threads in (1, 2, 3)]
    assert networks[0] == networks[1] == networks[2]


WIDE = {"max_variables": 12, "max_cases": 3000, "max_states": 4, "max_assignments": 10**9}


@examples(40)
@given(problems(**WIDE) | problems(make_rules=free, **WIDE))
def test_running_ahead_changes_nothing(problem):
    """However far nodes apply their operators ahead of time, the steps of the search are the same."""
    table, setup, _ = problem
    networks = []
    for share in (0.5, 1e-9, 1.0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cpu.CpuCounter, "lookahead", share)
            networks.append(learn(table, **setup.for_library(max_steps=400)))
    assert networks[0] == networks[1] == networks[2]


def large_table():
    random = np.random.default_rng(3)
    columns = [random.integers(3, size=20_000)]
    for k in range(1, 12):
        noise = random.integers(3, size=20_000)
        columns.append(np.where(random.random(20_000) < 0.6, noise, (columns[k - 1] + columns[k // 2]) % 3))
    variables = tuple(Variable(f"x{k}", ("0", "1", "2")) for k in range(12))
    return Table(variables, np.array(columns, dtype=np.uint8))


@pytest.mark.parametrize("prior", ["uniform", "bdeu:10"])
def test_threads_share_a_large_table(prior):
    setup = random_setup(np.random.default_rng(0), large_table(), free)
    options = {**setup.for_library(), "prior": prior, "structure_prior": "kappa:0.1"}
    networks = []
    for threads in (1, 2, 3):
        options["search"] = type(options["search"])("CBM", threads=threads)
        networks.append(learn(large_table(), **options))
    assert networks[0] == networks[1] == networks[2]
    assert networks[0].learned["steps"] > 30


@examples(40)
@given(problems(**LIMITS), st.integers(0, 12))
def test_stopping_early_gives_the_first_steps(problem, k):
    table, setup, _ = problem
    every = [step.operator for step in start_search(table, **setup.for_library())]
    search = start_search(table, **setup.for_library(max_steps=k))
    assert [step.operator for step in search] == every[:k]
    assert search.stopped == ("max_steps" if k <= len(every) and search.n_steps == k else "no operator gains")
    assert next(search, None) is None


@examples(40)
@given(problems(**LIMITS))
def test_step_by_step_is_the_same_as_in_one_go(problem):
    table, setup, _ = problem
    one, other = (start_search(table, **setup.for_library()) for _ in range(2))
    one.run()
    for _ in other:
        assert other.network.n_leaves == other.n_leaves  # looking at the network on the way changes nothing
    assert one.network == other.network


@examples(40)
@given(problems(**LIMITS))
def test_operators_replayed_give_the_graphs(problem):
    table, setup, _ = problem
    search = start_search(table, **setup.for_library())
    graphs = [DecisionGraph.single()] * table.n_variables
    for step in search:
        target = step.operator.target
        graphs[target] = step.operator.apply(graphs[target])
    for assignment in itertools.product(*(range(variable.n_states) for variable in table.variables)):
        found = [node.graph.leaf_of(assignment) for node in search.network.nodes]
        assert found == [graph.leaf_of(assignment) for graph in graphs]


@pytest.mark.interpreted
@examples(50)
@given(problems(**LIMITS), st.integers(0, 8))
def test_a_search_goes_on_from_where_it_was_stopped(problem, k):
    table, setup, target = problem
    for name in (None, table.names[target]):
        whole = learn(table, target=name, **setup.for_library())
        part = learn(table, target=name, **setup.for_library(max_steps=k))
        rest = learn(table, target=name, start=part, **setup.for_library())
        assert same_found(rest, whole)
        assert rest.learned["log_score"] == pytest.approx(whole.learned["log_score"], abs=1e-6)
        assert rest.learned["steps"] + part.learned["steps"] == whole.learned["steps"]


@examples(25)
@given(problem=problems(**LIMITS))
def test_saved_networks_load_back_identical(tmp_path_factory, problem):
    table, setup, target = problem
    path = tmp_path_factory.mktemp("networks") / "network.json"
    for name in (None, table.names[target]):
        network = learn(table, target=name, **setup.for_library())
        network.save(path)
        assert Network.load(path) == network


def relabelled(variable):
    """Other labels, in an order of their own; only that of missing cells must be what it is."""
    n = variable.n_states - variable.missing
    return (*(f"<{label}>" for label in variable.labels[:n][::-1]), *variable.labels[n:])


@examples(30)
@given(problems(**LIMITS))
def test_labels_and_names_do_not_matter(problem):
    table, setup, target = problem
    constraints = setup.constraints
    renamed = Table(tuple(replace(v, name=f"<{v.name}>", labels=relabelled(v)) for v in table.variables), table.codes)
    setup = replace(setup, constraints=by_name(setup.rules, renamed.names))
    one = learn(table, target=table.names[target], **{**setup.for_library(), "constraints": constraints})
    other = learn(renamed, target=renamed.names[target], **setup.for_library())
    assert one.nodes == other.nodes
    assert one.learned == {**other.learned, "target": one.learned["target"]}
    assert other.variables == renamed.variables


@examples(60)
@given(generators())
def test_deleting_parents_leaves_none_that_is_irrelevant(random):
    table = random_table(random, max_cases=80, max_states=4, max_assignments=100)
    setup = random_setup(random, table, free)
    search = start_search(table, start=random_start(random, table), **setup.for_library(delete_parents=True))
    n_states = [variable.n_states for variable in table.variables]
    score = search.log_score
    merged = set()
    for step in search:
        assert step.log_score > score
        score = step.log_score
        if type(step.operator).__name__ == "Merge":
            merged.add(step.operator.target)
    for target in merged:
        node = search.network.nodes[target]
        assert node.parents == node.graph.relevant_parents(n_states)
    assert total(search.network, table) == pytest.approx(search.network.learned["log_score"], abs=1e-6)
    if setup.structure_prior != "choices":  # by which graphs without tests that do not matter may be less probable
        assert search.network.learned["log_score"] >= score - 1e-6


@examples(30)
@given(problems(**LIMITS))
def test_deleting_parents_keeps_required_ones(problem):
    table, setup, _ = problem
    network = learn(table, **setup.for_library(delete_parents=True))
    n_states = [variable.n_states for variable in table.variables]
    for target, node in enumerate(network.nodes):
        required = {parent for parent, child in setup.rules.required if child == target}
        assert set(node.parents) == set(node.graph.relevant_parents(n_states)) | required


def test_a_parent_that_only_a_piece_tests_is_deleted_too():
    """Of x, the last two states follow the majority of three variables, and so does v, less often."""
    random = np.random.default_rng(50)
    others = random.integers(2, size=(3, 600))
    is_often = others.sum(axis=0) > 1
    v = is_often ^ (random.random(600) < 0.1)
    is_high, is_last = random.random(600) < 0.5, random.random(600) < np.where(is_often, 0.999, 0.001)
    x = np.where(is_high, 2 + is_last, random.random(600) < 0.5)
    table = make_table([4, 2, 2, 2, 2], [x, v, *others], ordered={0})
    settings = LeafSearch("BMO", "best-first", delete_parents=True)
    search = start_search(table, target="a", search=settings, prior="uniform")
    search.run()
    assert search.n_deleted == 1
    assert search.n_arcs == len(search.network.arcs) == 3
    assert search.log_score == pytest.approx(search.network.learned["log_score"], abs=1e-6)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_search_with_many_steps_rolled_back(schedule, monkeypatch):
    """Hundreds of leaves, arcs that rule each other out: running far ahead, hardly, with few histograms or none."""
    table = leafwise.sample(alarm(), 1500, seed=5)
    found = []
    much = 2**26
    for ahead, plenty, too_many in ((0.5, much, much), (0.05, much, much), (0.99, -1, much), (0.2, -1, -1)):
        monkeypatch.setattr(cpu.CpuCounter, "lookahead", ahead)
        monkeypatch.setattr("leafwise.search.histograms._PLENTY", plenty)
        monkeypatch.setattr("leafwise.search.histograms._TOO_MANY", too_many)
        found.append(learn(table, search=LeafSearch("CBM", schedule), structure_prior="uniform"))
    assert all(network == found[0] for network in found[1:])
    assert total(found[0], table) == pytest.approx(found[0].learned["log_score"], abs=1e-6)


@examples(60)
@given(generators())
def test_every_split_on_many_binary_variables_is_the_best_there_is(random):
    """Splits that cannot gain are passed over unpriced where there are many candidates; none that gains may be."""
    n, n_cases = 60, int(random.integers(10, 150))
    rates = random.choice([0.02, 0.1, 0.5, 0.9, 0.98], n)
    codes = (random.random((n, n_cases)) < rates[:, None]).astype(np.uint8)
    table = Table(tuple(Variable(f"x{k}", ("0", "1")) for k in range(n)), codes)
    log_kappa = float(random.uniform(-2, 0))
    settings = {"search": LeafSearch("B", max_steps=6), "structure_prior": f"kappa:{math.exp(log_kappa)}"}

    def score(cases):
        ones = int(codes[0, cases].sum())
        return math.lgamma(ones + 1) + math.lgamma(len(cases) - ones + 1) - math.lgamma(len(cases) + 2)

    leaves = [np.arange(n_cases)]
    for step in start_search(table, target="x0", **settings):
        best = 0.0
        for cases, variable in itertools.product(leaves, range(1, n)):
            one, other = (cases[codes[variable, cases] == state] for state in (0, 1))
            if len(one) and len(other):
                best = max(best, score(one) + score(other) - score(cases) + log_kappa)
        operator = step.operator
        assert operator.gain == pytest.approx(best, abs=1e-7)
        cases = leaves.pop(operator.leaf)
        is_state = codes[operator.variable, cases] == operator.state
        leaves += [cases[is_state], cases[~is_state]]
