"""The default for a single target: two greedy searches, and the more probable graph of both."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, generators, random_table, shards

import leafwise
from leafwise import LeafSearch, learn, log_score, start_search
from leafwise.data.table import Table, Variable
from leafwise.examples import alarm
from leafwise.search.single_target import SingleTargetSearchRun

LETTERS = ("CBIM", "BIM")
PRIORS = st.sampled_from(("auto", "uniform", "bdeu:10"))


def found(table, operators, **options):
    return learn(table, search=LeafSearch(operators, threads=1), **options)


@examples(40)
@given(generators(), PRIORS, st.sampled_from(("auto", "kappa:0.1")))
def test_it_is_the_more_probable_graph(random, prior, structure_prior):
    table = random_table(random)
    options = {"target": table.names[0], "prior": prior, "structure_prior": structure_prior}
    network = found(table, "auto", **options)
    both = [found(table, operators, **options) for operators in LETTERS]
    scores = [one.learned["log_score"] for one in both]
    assert network.learned["log_score"] == pytest.approx(max(scores), abs=1e-8)
    assert network in both
    assert log_score(network, table).total == pytest.approx(network.learned["log_score"], abs=1e-6)


@pytest.fixture(scope="module")
def cases():
    """Some for which the second search finds the better graph: four numbers cut into bins, whose sum decides."""
    random = np.random.default_rng(5)
    codes = random.integers(0, 8, (5, 1_000)).astype(np.uint8)
    codes[4] = (codes[:4].sum(axis=0) >= 14) ^ (random.random(1_000) < 0.1)
    bins = tuple(map(str, range(8)))
    numbers = tuple(Variable(name, bins, cuts=tuple(range(1, 8))) for name in "abcd")
    return Table((*numbers, Variable("y", ("no", "yes"))), codes)


def test_either_search_may_be_the_better_one(cases):
    assert learn(cases, target="y").learned["operators"] == "BIM"
    drawn = leafwise.sample(alarm(), 1_000, seed=1)
    assert learn(drawn, target="HRBP").learned["operators"] == "CBIM"


def test_who_names_operators_gets_these_alone(cases):
    for operators in LETTERS:
        search = start_search(cases, target="y", search=LeafSearch(operators))
        assert search.settings.operators == operators
        assert learn(cases, target="y", search=LeafSearch(operators)).learned["operators"] == operators


def test_of_two_states_one_search_says_all(cases):
    search = start_search(leafwise.sample(alarm(), 100, seed=1), target="SHUNT", prior="uniform")
    assert isinstance(search, SingleTargetSearchRun)
    binary = Table(tuple(Variable(name, ("no", "yes")) for name in "ab"), cases.codes[:2] % 2)
    assert not isinstance(start_search(binary, target="a", prior="uniform"), SingleTargetSearchRun)
    assert not isinstance(start_search(cases, prior="uniform"), SingleTargetSearchRun)


def test_steps_are_those_of_both(cases):
    search = start_search(cases, target="y")
    steps = [step.operator for step in search]
    each = [
        [step.operator for step in start_search(cases, target="y", search=LeafSearch(operators))]
        for operators in LETTERS
    ]
    assert steps == each[0] + each[1]
    assert (search.n_steps, search.stopped) == (len(steps), "no operator gains")
    assert search.summary() == search.network.learned


def test_in_the_end_sizes_and_score_are_those_of_the_network(cases):
    drawn = leafwise.sample(alarm(), 1_000, seed=1)
    for table, target in ((cases, "y"), (drawn, "HRBP")):
        search = start_search(table, target=target)
        search.run()
        learned = search.network.learned
        assert (search.n_leaves, search.n_arcs) == (learned["leaves"], learned["arcs"])
        assert search.log_score == learned["log_score"]


def test_limits(cases):
    search = start_search(cases, target="y", search=LeafSearch(max_steps=2))
    search.run()
    assert (search.n_steps, search.stopped, search.network.learned["steps"]) == (4, "max_steps", 2)
    search = start_search(cases, target="y", search=LeafSearch(seconds=0))
    search.run()
    assert (search.n_steps, search.stopped) == (0, "seconds")


def test_the_network_says_why_both_searches_ended(cases):
    drawn = leafwise.sample(alarm(), 1_000, seed=1)
    for target, table in (("y", cases), ("HRBP", drawn)):
        each = {operators: start_search(table, target=target, search=LeafSearch(operators)) for operators in LETTERS}
        n_steps = {operators: sum(1 for _ in search) for operators, search in each.items()}
        for most in range(1, max(n_steps.values()) + 2):
            search = start_search(table, target=target, search=LeafSearch(max_steps=most))
            search.run()
            is_limited = most <= max(n_steps.values())
            assert search.stopped == ("max_steps" if is_limited else "no operator gains")
            assert search.network.learned["stopped"] == search.stopped
    search = start_search(drawn, target="HRBP")
    for _ in itertools.islice(search, n_steps["CBIM"] + 1):
        assert search.network.learned["stopped"] == ""


def test_with_less_time_than_the_first_search_took_what_the_second_found_is_kept(cases, tmp_path):
    path, expected = tmp_path / "run.checkpoint", learn(cases, target="y")
    search = start_search(cases, target="y", checkpoint=path)
    search.run()
    resumed = start_search(cases, target="y", search=LeafSearch(seconds=0), checkpoint=path)
    resumed.run()
    assert (resumed.n_steps, resumed.stopped) == (search.n_steps, "seconds")
    assert resumed.network.learned == expected.learned | {"stopped": "seconds"}
    assert learn(cases, target="y", checkpoint=path) == expected


def test_with_more_steps_the_first_search_goes_on_under_whoever_watches_and_then_the_second(cases, tmp_path):
    path, expected = tmp_path / "run.checkpoint", learn(cases, target="y")
    for taken in range(4):
        start_search(cases, target="y", search=LeafSearch(max_steps=5), checkpoint=path).run()
        resumed = start_search(cases, target="y", checkpoint=path, every=0)
        assert resumed.n_steps == 5  # of the first search, and nobody had to wait for the rest
        steps = [step.operator for step in itertools.islice(resumed, taken)]
        assert steps == [step.operator for step in itertools.islice(start_search(cases, target="y"), 5, 5 + taken)]
        resumed.save()
        again = start_search(cases, target="y", checkpoint=path)
        again.run()
        assert again.network == expected
        assert again.n_steps == sum(1 for _ in start_search(cases, target="y"))
        path.unlink()


def test_the_network_is_there_at_any_time_and_a_checkpoint_goes_on(cases, tmp_path):
    expected, path = learn(cases, target="y"), tmp_path / "run.checkpoint"
    n_steps = sum(1 for _ in start_search(cases, target="y"))
    for n in (*range(0, n_steps, 4), n_steps):
        search = start_search(cases, target="y", checkpoint=path, every=0)
        for _ in itertools.islice(search, n):
            assert search.network.n_leaves > 0
        search.save()
        resumed = start_search(cases, target="y", checkpoint=path)
        assert resumed.n_steps == n
        resumed.run()
        assert resumed.network == expected
        assert json.loads(path.read_text())["stopped"] == "no operator gains"
        path.unlink()


def test_progress_and_an_end_by_whoever_watches(cases, monkeypatch):
    monkeypatch.setattr("leafwise.search.leaf_search.MOMENT", 0.0)
    search, seen = start_search(cases, target="y"), []
    search.run(lambda run: seen.append((run.n_steps, run.seconds)))
    assert seen == sorted(seen)
    assert seen[-1][0] == search.n_steps


@pytest.mark.parametrize("n", [1, 3])
def test_shards_learn_the_same(cases, n):
    counted = shards(cases, np.random.default_rng(n), n)
    assert learn(counted, target="y") == learn(cases, target="y")


def test_where_nothing_is_missing_inferring_changes_nothing(cases):
    assert learn(cases, target="y", missing="infer") == learn(cases, target="y")
