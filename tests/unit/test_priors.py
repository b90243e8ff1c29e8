"""Exponents against enumerated shares, and priors by name."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import generators, random_graph

import leafwise
from leafwise.examples import alarm
from leafwise.priors import Bdeu, Symmetric, Uniform, parameter_prior
from leafwise.regions import Region, bits_of


def region_of(graph, leaf):
    return Region(tuple({v: bits_of(states) for v, states in path.items()} for path in graph.paths(leaf)))


def random_leaves(random):
    """Numbers of states, a target, and the leaves of a graph with merges, each with the assignments that reach it."""
    n_states = random.integers(2, 5, size=int(random.integers(2, 5)))
    target = int(random.integers(len(n_states)))
    others = [v for v in range(len(n_states)) if v != target]
    graph = random_graph(random, target, n_states.tolist(), others, 8)
    ranges = [range(1 if v == target else r) for v, r in enumerate(n_states.tolist())]
    reached = [[] for _ in range(graph.n_leaves)]
    for assignment in itertools.product(*ranges):
        reached[graph.leaf_of(assignment)].append(assignment)
    return n_states, target, [(region_of(graph, k), own) for k, own in enumerate(reached)], math.prod(map(len, ranges))


@given(generators(), st.sampled_from([0.5, 1.0, 10.0, 37.5]))
def test_bdeu_exponents_are_shares_of_the_parent_space(random, alpha):
    n_states, target, leaves, n = random_leaves(random)
    r = n_states[target]
    for region, assignments in leaves:
        expected = alpha * len(assignments) / n / r
        assert Bdeu(alpha).leaf_exponents(target, region, n_states) == pytest.approx([expected] * r)


@given(generators())
def test_uniform_and_symmetric_exponents_are_the_same_everywhere(random):
    n_states, target, leaves, _ = random_leaves(random)
    r = n_states[target]
    for region, _ in leaves:
        assert Uniform().leaf_exponents(target, region, n_states).tolist() == [1] * r
        assert Symmetric(3.0).leaf_exponents(target, region, n_states).tolist() == [3 / r] * r


@pytest.mark.parametrize(
    "text", ["uniform", "symmetric:2", "symmetric:0.5", "bdeu:10", "bdeu:0.5", "bdeu:0.123456789", "bdeu:12345"]
)
def test_parameter_priors_by_name(text):
    assert str(parameter_prior(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bdeu",
        "bdeu:",
        "bdeu:0",
        "bdeu:-1",
        "bdeu:inf",
        "bdeu:nan",
        "bdeu:ten",
        "uniform:1",
        "BDeu:10",
        "network:",
        "network:a.bif",
        "network:a.bif:0",
    ],
)
def test_unknown_parameter_priors(text):
    with pytest.raises(
        ValueError, match=r"prior .* is not known: give 'auto', 'uniform', 'symmetric:' or 'bdeu:' and a number"
    ):
        parameter_prior(text)


@pytest.mark.parametrize("size", [0, -1, math.nan, math.inf, 1e9, 1e-300, 10**400])
def test_sample_sizes_of_objects_are_those_of_texts(size):
    for make in (Bdeu, Symmetric, partial(leafwise.PriorNetwork, alarm())):
        with pytest.raises(ValueError, match="the prior has an equivalent sample size of"):
            make(size)


def test_sample_sizes_are_numbers_of_any_kind():
    for number in (np.float32(0.1), np.float64(3.5), np.int64(4), 4):
        for prior in (Bdeu(number), Symmetric(number)):
            assert parameter_prior(str(prior)) == prior
    with pytest.raises(TypeError, match=r"the equivalent sample size is '10' \(str\)"):
        Bdeu("10")
    with pytest.raises(TypeError, match="PriorNetwork got an object of type str, and needs a Network"):
        leafwise.PriorNetwork("alarm.bif", 10)


def test_priors_are_objects_as_well_as_texts(tmp_path):
    table = leafwise.sample(alarm(), 200, seed=3)
    for text, prior in (
        ("bdeu:10", leafwise.Bdeu(10)),
        ("uniform", leafwise.Uniform()),
        ("symmetric:2", leafwise.Symmetric()),
    ):
        assert leafwise.learn(table, prior=prior) == leafwise.learn(table, prior=text)
    for text, prior in (("kappa:0.1", leafwise.Kappa(0.1)), ("auto", leafwise.Choices())):
        assert leafwise.learn(table, structure_prior=prior) == leafwise.learn(table, structure_prior=text)
    known = leafwise.learn(leafwise.sample(alarm(), 100, seed=4))
    known.save(tmp_path / "known.json")
    found = leafwise.learn(table, prior=leafwise.PriorNetwork(known, 10))
    assert found.nodes == leafwise.learn(table, prior=f"network:{tmp_path / 'known.json'}:10").nodes
    assert found.prior == "network:given:10"
    assert leafwise.log_score(found, table).total == pytest.approx(found.learned["log_score"])
    with pytest.raises(TypeError, match="the prior is 5"):
        leafwise.learn(table, prior=5)
