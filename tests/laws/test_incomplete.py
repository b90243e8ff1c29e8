"""Learning from holes: ordinary where there are none, EM that never falls, and counts that are the oracle's."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from network_strategies import networks
from oracle_inference import joint_table
from random_networks import random_network

import leafwise
from leafwise import GraphArcSearch, LeafSearch, LeafSearchRestarts, TableArcSearch
from leafwise.constraints import Constraints
from leafwise.counters.cpu import CpuCounter
from leafwise.data.table import Table, Variable
from leafwise.examples import alarm
from leafwise.formats.json import dumps
from leafwise.inference import completion
from leafwise.inference.completion import Completions
from leafwise.inference.holes import Holes
from leafwise.inference.likelihood import log_probabilities
from leafwise.learner import _count_candidates, _prior_for
from leafwise.network import Network, Node
from leafwise.search.hidden import first_network, hidden_variables
from leafwise.search.incomplete import expectation_maximization
from leafwise.search.problem import Problem
from leafwise.structure_priors import structure_prior
from leafwise.workers import Workers


def with_holes(table, share, seed=5):
    """The table with a state for cells that are removed at random."""
    holes = np.random.default_rng(seed).random(table.codes.shape) < share
    variables = tuple(variable.with_missing for variable in table.variables)
    return Table(variables, np.where(holes, table.n_states[:, None], table.codes).astype(table.codes.dtype))


def some_cases(n_cases=300, seed=3):
    network = random_network(seed, (2, 3, 2, 4, 2, 3))
    return network.sample(n_cases, seed=seed)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prior": "bdeu:2", "structure_prior": "kappa:0.1"},
        {"prior": "uniform", "search": LeafSearch("CB", "best-first")},
        {"search": LeafSearchRestarts(rounds=1)},
        {"search": GraphArcSearch(), "prior": "symmetric:4"},
        {"target": "x2"},
        {"search": TableArcSearch()},
    ],
)
def test_without_holes_it_is_ordinary_learning(options):
    table = some_cases()
    options = {**options, **({"target": table.names[1]} if "target" in options else {})}
    assert dumps(leafwise.learn(table, missing="infer", **options)) == dumps(leafwise.learn(table, **options))
    unused = Table(tuple(variable.with_missing for variable in table.variables), table.codes)
    assert dumps(leafwise.learn(unused, missing="infer", **options)) == dumps(leafwise.learn(table, **options))


@pytest.mark.parametrize("prior", ["auto", "uniform", "bdeu:3", "symmetric:0.5", "network"])
def test_completions_that_are_alike_count_as_the_case_itself(prior, tmp_path):
    table = some_cases()
    if prior == "network":
        random_network(7, (2, 3, 2, 4, 2, 3)).save(tmp_path / "prior.json")
        prior = f"network:{tmp_path / 'prior.json'}:10"
    parameters, table = _prior_for(prior, table)
    rules, workers = Constraints().resolve(table), Workers(1)
    for text, search in (("choices", LeafSearch()), ("kappa:0.1", LeafSearch("BM", "best-first"))):
        problem = Problem(
            table.variables, tuple(range(6)), parameters, structure_prior(text), rules, _count_candidates(rules), {}
        )
        once = search.begin(problem, CpuCounter(table, workers), workers)
        tiled = Table(table.variables, np.ascontiguousarray(np.tile(table.codes, 4)))
        shares = search.begin(problem, CpuCounter(tiled, workers, 0.25), workers)
        once.run()
        shares.run()
        assert shares.log_score == pytest.approx(once.log_score, abs=1e-6)
        for one, other in zip(once.network.nodes, shares.network.nodes, strict=True):
            assert one.graph == other.graph
            np.testing.assert_allclose(one.counts, other.counts, atol=1e-9)
            np.testing.assert_allclose(one.probabilities, other.probabilities, atol=1e-12)


@pytest.mark.parametrize("prior", ["auto", "bdeu:3", "network"])
@pytest.mark.parametrize(
    "search",
    [
        LeafSearch(),
        LeafSearch("CBIMO", "best-first"),
        LeafSearch("CBIMO"),
        LeafSearch("BMR"),
        LeafSearchRestarts(rounds=3),
        GraphArcSearch(),
    ],
)
def test_a_graph_is_that_of_the_cases_that_show_its_variable(search, prior, tmp_path):
    if prior == "network":
        if set(getattr(search, "operators", "")) & set("OR"):
            pytest.skip("a prior network goes without these")
        random_network(7, (2, 3, 2, 4, 2, 3)).save(tmp_path / "prior.json")
        prior = f"network:{tmp_path / 'prior.json'}:10"
    parameters, table = _prior_for(prior, some_cases(400))
    shown = np.random.default_rng(2).random(table.codes.shape) < np.array([1.0, 0.9, 0.6, 0.3, 0.02, 0.0])[:, None]
    workers = Workers(1)
    for target in range(6):
        rules = Constraints(allowed_parents={name: () for name in table.names if name != table.names[target]})
        parents = rules.resolve(table)
        about = parameters, structure_prior("choices"), parents, _count_candidates(parents), {}
        problem = Problem(table.variables, (target,), *about)
        rows = shown[target] if shown[target].any() else np.ones(table.n_cases, np.bool_)  # never shown: as it is drawn
        of_rows = Table(table.variables, np.ascontiguousarray(table.codes[:, rows]))
        found = search.begin(problem, CpuCounter(table, workers, shown=shown), workers)
        alone = search.begin(problem, CpuCounter(of_rows, workers), workers)
        found.run()
        alone.run()
        assert found.log_score == pytest.approx(alone.log_score, abs=1e-9)
        again = search.begin(problem, CpuCounter(table, workers, shown=shown), workers, found.state())
        for node in (found.network.nodes[target], again.network.nodes[target]):
            assert node == alone.network.nodes[target]


def test_holes_of_a_target_alone_are_rows_left_out():
    table = some_cases()
    codes = table.codes.copy()
    codes[1, ::4] = table.n_states[1]
    shown = Table((table.variables[0], table.variables[1].with_missing, *table.variables[2:]), codes)
    rest = Table(table.variables, np.ascontiguousarray(codes[:, codes[1] < table.n_states[1]]))
    inferred = leafwise.learn(shown, target=table.names[1], missing="infer").nodes[1]
    assert inferred.graph == leafwise.learn(rest, target=table.names[1]).nodes[1].graph


@st.composite
def incomplete(draw):
    """A learned network, and cases with holes, some without."""
    network = draw(networks(complete=True))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    nodes = [
        Node.learned(
            node.parents,
            node.graph,
            random.integers(0, 9, node.probabilities.shape),
            np.full(node.probabilities.shape, draw(st.sampled_from([1e-9, 0.5, 2.0]))),
        )
        for node in network.nodes
    ]
    nodes = [Node.learned(node.parents, node.graph, node.counts + 1, node.exponents) for node in nodes]
    n_states = np.array([variable.n_states for variable in network.variables])
    codes = np.stack([random.integers(0, n, 12) for n in n_states]).astype(np.uint8)
    holes = random.random(codes.shape) < 0.5
    holes[:, :3] = False
    return Network(network.variables, tuple(nodes)), np.where(holes, n_states[:, None], codes).astype(np.uint8)


@pytest.mark.interpreted
@settings(max_examples=60)
@given(incomplete())
def test_em_never_falls_and_its_counts_are_the_oracles(question):
    network, codes = question
    table = joint_table(network)
    counts, log_probability = Completions(network.variables, codes, seed=1).expected_counts(network)
    expected = [np.zeros(node.probabilities.shape) for node in network.nodes]
    total = 0.0
    for case in codes.T:
        shown = [slice(None) if code >= n else slice(code, code + 1) for code, n in zip(case, table.shape, strict=True)]
        mask = np.zeros(table.shape)
        mask[tuple(shown)] = 1.0
        here = table * mask
        total += math.log(here.sum())
        for states in np.argwhere(here > 0):
            for variable, node in enumerate(network.nodes):
                expected[variable][node.graph.leaf_of(states), states[variable]] += here[tuple(states)] / here.sum()
    for found, right in zip(counts, expected, strict=True):
        np.testing.assert_allclose(found, right, atol=1e-9)
    assert log_probability == pytest.approx(total, abs=1e-8)

    rounds = list(expectation_maximization(network, Completions(network.variables, codes, seed=1), 6))
    risen = np.diff([fitted.log_posterior for fitted in rounds])
    assert (risen > -1e-8).all()
    if max(node.exponents.max() for node in network.nodes) < 1e-6:  # next to no prior: the likelihood itself
        assert (np.diff([fitted.log_likelihood for fitted in rounds]) > -1e-5).all()


def test_the_score_without_holes_is_the_ordinary_one():
    table = some_cases()
    network = leafwise.learn(table, prior="symmetric:2")
    (fitted,) = expectation_maximization(network, Completions(table.variables, table.codes, seed=1), 1)
    assert fitted.log_marginal_likelihood == pytest.approx(network.learned["log_marginal_likelihood"], abs=1e-6)
    for node, again in zip(network.nodes, fitted.network.nodes, strict=True):
        np.testing.assert_array_equal(node.probabilities, again.probabilities)


def test_gibbs_sampling_has_the_distribution():
    network = random_network(5, (2, 3, 2, 3))
    table = joint_table(network)
    codes = np.repeat(np.array([[9], [1], [9], [9]], np.uint8), 4000, axis=1)
    holes = Holes(network)
    drawn, shares = holes.redraw(codes, np.where(codes == 9, 0, codes).astype(np.uint8), 1, 30)
    here = table[:, 1] / table[:, 1].sum()
    found = np.zeros(here.shape)
    np.add.at(found, tuple(drawn[[0, 2, 3]]), 1 / 4000)
    assert (abs(found - here) < 5 * np.sqrt(here / 4000) + 1e-3).all()
    exact = holes.marginals(codes[:, :1]).shares
    np.testing.assert_allclose(shares.reshape(4000, -1).mean(axis=0), exact, atol=0.03)


@pytest.mark.interpreted
def test_a_cell_is_drawn_given_all_others():
    network = random_network(5, (2, 3, 2, 3))
    table = joint_table(network)
    codes = np.array([[9], [1], [0], [2]], np.uint8)
    drawn, shares = Holes(network).redraw(codes, np.array([[0], [1], [0], [2]], np.uint8), 1, 1)
    np.testing.assert_allclose(shares, table[:, 1, 0, 2] / table[:, 1, 0, 2].sum(), atol=1e-12)
    assert drawn[0, 0] in (0, 1)


@pytest.mark.interpreted
def test_a_mixture_finds_two_kinds_of_cases():
    random = np.random.default_rng(1)
    kind = random.random(40) < 0.5
    codes = np.stack([kind ^ (random.random(40) < 0.05) for _ in range(5)]).astype(np.uint8)
    codes = np.concatenate([codes, np.full((1, 40), 2, np.uint8)])
    codes[0, :5] = 2  # holes
    variables = (*(Variable(f"x{k}", ("no", "yes")) for k in range(5)), *hidden_variables([2], []))
    network = first_network(variables, codes, seed=1)
    assert network.arcs == tuple((5, k) for k in range(5))
    apart = [abs(network.nodes[k].probabilities[0, 0] - network.nodes[k].probabilities[1, 0]) for k in range(5)]
    assert min(apart) > 0.7


def test_large_cases_are_drawn_and_counted(monkeypatch):
    monkeypatch.setattr(completion, "_ROOM", 2)
    table = with_holes(some_cases(), 0.3)
    network = leafwise.learn(some_cases())
    completions = Completions(network.variables, table.codes, seed=1)
    drawn = completions.draw(network, 3)
    n_states = np.array([variable.n_states for variable in network.variables])[:, None]
    assert (drawn < n_states).all()
    shown = np.tile(table.codes, 3) < n_states
    np.testing.assert_array_equal(drawn[shown], np.tile(table.codes, 3)[shown])
    counts, log_probability = completions.expected_counts(network)
    assert math.isnan(log_probability)
    assert [own.sum() for own in counts] == pytest.approx([300.0] * 6)
    found = leafwise.learn(table, missing="infer")  # there is no score, and yet an end
    assert found.learned["stopped"] == "no round gains"
    assert math.isfinite(found.learned["log_score"])


@pytest.mark.parametrize(
    "search",
    [LeafSearch(), LeafSearchRestarts(LeafSearch("BM"), rounds=1), GraphArcSearch(LeafSearch("C"), max_steps=3)],
)
def test_any_number_of_threads_and_the_same_seed_give_the_same(search):
    from dataclasses import replace

    table = with_holes(some_cases(200), 0.2)

    def found(threads, seed):
        greedy = replace(search.greedy, threads=threads) if hasattr(search, "greedy") else None
        settings = replace(search, threads=threads) if greedy is None else replace(search, greedy=greedy)
        return dumps(leafwise.learn(table, missing="infer", search=settings, seed=seed, completions=2))

    assert found(1, 1) == found(3, 1)
    assert found(1, 1) != found(1, 2)


def test_holes_cost_little():
    """On cases that were held back: far better than most common values, and not far from complete data."""
    table, held_back = alarm().sample(1000, seed=1), alarm().sample(2000, seed=2)
    cut = with_holes(table, 0.3)
    holes = cut.codes != table.codes
    common = [np.bincount(row[~lacks]).argmax() for row, lacks in zip(table.codes, holes, strict=True)]
    filled = np.where(holes, np.array(common)[:, None], table.codes).astype(table.codes.dtype)
    complete, ours, usual = (
        log_probabilities(network, held_back).mean()
        for network in (
            leafwise.learn(table),
            leafwise.learn(cut, missing="infer"),
            leafwise.learn(Table(table.variables, filled)),
        )
    )
    assert ours > usual + 0.75 * (complete - usual)
