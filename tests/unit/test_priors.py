"""Exponents against enumerated shares, and priors by name."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import generators, random_graph

from leafwise.priors import Bdeu, Uniform, log_kappa, parameter_prior, structure_prior_for
from leafwise.regions import Region, bits_of
from leafwise.search.histograms import make_layout


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


def blocks(exponents, target, layout):
    """The exponents of each candidate: variable -> (states, target's states); and the leaf's own."""
    which, r = layout.of_target[target], layout.n_states[target]
    rows = exponents.reshape(-1, r)
    assert len(rows) == layout.n_rows[which] + 1
    out = {}
    for entry in range(layout.start[which], layout.start[which + 1]):
        variable = int(layout.variables[entry])
        if variable != target:
            out[variable] = rows[layout.bases[entry] : layout.bases[entry] + layout.n_states[variable]]
    return out, rows[-1]


@given(generators(), st.sampled_from([0.5, 1.0, 10.0, 37.5]))
def test_bdeu_exponents_are_shares_of_the_parent_space(random, alpha):
    n_states, target, leaves, n = random_leaves(random)
    n_variables, r = len(n_states), n_states[target]
    layout = make_layout(1 - np.eye(n_variables, dtype=np.uint8), n_states, np.arange(n_variables))
    for region, assignments in leaves:
        expected = alpha * len(assignments) / n / r
        assert Bdeu(alpha).leaf_exponents(target, region, n_states) == pytest.approx([expected] * r)
        children, own = blocks(Bdeu(alpha).exponents(target, region, layout), target, layout)
        assert own == pytest.approx([expected] * r)
        assert set(children) == set(range(n_variables)) - {target}
        for variable, block in children.items():
            for state, row in enumerate(block):
                here = sum(assignment[variable] == state for assignment in assignments)
                assert row == pytest.approx([alpha * here / n / r] * r)


@given(generators())
def test_uniform_exponents_are_ones(random):
    n_states, target, leaves, _ = random_leaves(random)
    for region, _ in leaves:
        assert Uniform().leaf_exponents(target, region, n_states).tolist() == [1] * n_states[target]


@pytest.mark.parametrize("text", ["uniform", "bdeu:10", "bdeu:0.5", "bdeu:0.123456789", "bdeu:1234567"])
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
    with pytest.raises(ValueError, match=r"prior .* is not known: give 'uniform', 'bdeu:' and a sample size above 0"):
        parameter_prior(text)


def test_structure_priors_by_name():
    assert log_kappa("uniform") == log_kappa("kappa:1") == 0
    assert log_kappa("kappa:0.01") == pytest.approx(math.log(0.01))


def test_auto_is_one_by_the_number_of_variables():
    assert [structure_prior_for("auto", n) for n in (1, 8, 37)] == ["kappa:1", "kappa:0.125", "kappa:0.027027"]
    assert structure_prior_for("kappa:0.3", 8) == "kappa:0.3"


@pytest.mark.parametrize("text", ["", "kappa", "kappa:", "kappa:0", "kappa:-0.1", "kappa:1.5", "kappa:nan", "0.1"])
def test_unknown_structure_priors(text):
    with pytest.raises(ValueError, match=r"structure prior .* is not known: give 'auto', 'uniform', or 'kappa:' and"):
        log_kappa(text)


@pytest.mark.parametrize("size", ["1e308", "1.1e9", "1e-308"])
def test_sample_sizes_at_which_scores_lose_their_digits_are_refused(size):
    with pytest.raises(ValueError, match=r"scores are exact for 1e-100 to 1e\+09"):
        parameter_prior(f"bdeu:{size}")
    with pytest.raises(ValueError, match="scores are exact for"):
        parameter_prior(f"network:none.json:{size}")
    assert log_kappa("kappa:1e-300") == pytest.approx(-300 * np.log(10))
