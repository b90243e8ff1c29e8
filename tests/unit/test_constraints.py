"""Every rule about parents, and every way to ask for something impossible."""

import numpy as np
import pytest
from hypothesis import given
from strategies import by_name, generators, make_table, random_dag, random_rules

from leafwise.constraints import NO_LIMIT, Constraints

TABLE = make_table([2, 2, 2, 2], np.zeros((4, 1), int))


def arcs(matrix):
    """A matrix [child, parent] as arcs by name."""
    return {("abcd"[parent], "abcd"[child]) for child, parent in np.argwhere(matrix).tolist()}


def allowed(**constraints):
    return arcs(Constraints(**constraints).resolve(TABLE).allowed)


EVERY = {(p, c) for p in "abcd" for c in "abcd" if p != c}


def test_nothing_asked_for():
    rules = Constraints().resolve(TABLE)
    assert arcs(rules.allowed) == EVERY
    assert arcs(rules.is_parent) == arcs(rules.kept) == set()
    assert (rules.most_parents, rules.most_leaves) == (NO_LIMIT, NO_LIMIT)


def test_arcs_from_a_generator_hold_every_time():
    given_once = Constraints(required=(arc for arc in ["ab"]), forbidden=(arc for arc in ["cd"]))
    for rules in (given_once.resolve(TABLE), given_once.resolve(TABLE)):
        assert arcs(rules.kept) == {("a", "b")}
        assert arcs(rules.allowed) == EVERY - {("c", "d")}


def test_order():
    expected = {("c", "a"), ("c", "d"), ("c", "b"), ("a", "d"), ("a", "b"), ("d", "b")}
    assert allowed(order=["c", "a", "d", "b"]) == expected


def test_tiers():
    ruled_out = {(p, c) for p in "bd" for c in "ac"}
    assert allowed(tiers=[["a", "c"], ["b", "d"]]) == EVERY - ruled_out
    assert allowed(tiers=[[], ["a", "b", "c", "d"]]) == EVERY


def test_order_and_tiers_together():
    assert allowed(order=["a", "b", "c", "d"], tiers=[["b"], ["a", "c", "d"]]) == {
        ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")
    }  # fmt: skip


def test_forbidden():
    assert allowed(forbidden=[("a", "b"), ("d", "c")]) == EVERY - {("a", "b"), ("d", "c")}


def test_allowed_parents():
    assert allowed(allowed_parents={"b": ["a", "c"], "d": []}) == {
        (p, c) for p, c in EVERY if c in "ac" or (c == "b" and p in "ac")
    }


def test_a_variable_is_never_its_own_parent():
    assert allowed(allowed_parents={"b": ["a", "b"]}) == {(p, c) for p, c in EVERY if c != "b"} | {("a", "b")}


def test_required():
    rules = Constraints(required=[("a", "b"), ("b", "c")]).resolve(TABLE)
    assert arcs(rules.is_parent) == arcs(rules.kept) == {("a", "b"), ("b", "c")}
    assert {("a", "b"), ("b", "c")} <= arcs(rules.allowed)


def test_a_dag_gives_each_node_exactly_its_parents():
    rules = Constraints(dag=[("a", "b"), ("a", "c")]).resolve(TABLE)
    assert arcs(rules.allowed) == arcs(rules.is_parent) == {("a", "b"), ("a", "c")}
    assert arcs(rules.kept) == set()
    assert allowed(dag=[]) == set()


def test_a_dag_and_required_arcs():
    rules = Constraints(dag=[("a", "b")], required=[("b", "c")]).resolve(TABLE)
    assert arcs(rules.allowed) == arcs(rules.is_parent) == {("a", "b"), ("b", "c")}
    assert arcs(rules.kept) == {("b", "c")}


def test_limits():
    rules = Constraints(max_parents=2, max_leaves=5).resolve(TABLE)
    assert (rules.most_parents, rules.most_leaves) == (2, 5)
    assert arcs(rules.allowed) == EVERY
    assert allowed(max_parents=0) == set()
    assert allowed(max_parents=1, required=[("a", "b")]) == {(p, c) for p, c in EVERY if c != "b"} | {("a", "b")}


@given(generators())
def test_random_rules_mean_what_the_oracle_says(random):
    n = int(random.integers(1, 5))
    table = make_table([2] * n, np.zeros((n, 1), int))
    rules = (random_dag if random.random() < 0.3 else random_rules)(random, n)
    resolved = by_name(rules, table.names).resolve(table)
    start = rules.arcs_at_start()
    full = {c for c in range(n) if sum(child == c for _, child in start) == rules.max_parents}
    for child in range(n):
        for parent in range(n):
            arc = (parent, child)
            expected = parent != child and rules.permit(*arc) and (child not in full or arc in start)
            assert bool(resolved.allowed[child, parent]) == expected
            assert bool(resolved.is_parent[child, parent]) == (arc in start)


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({"order": ["a", "b"]}, r"order leaves out 2 variables \(c, d\): name every variable once"),
        ({"order": ["a", "b", "a", "c", "d"]}, "order names 'a' twice: name every variable once"),
        ({"tiers": [["a", "b"], ["c"]]}, r"tiers leaves out 1 variable \(d\): name every variable once"),
        ({"tiers": [["a", "b"], ["c", "a", "d"]]}, "tiers names 'a' twice"),
        ({"order": ["a", "b", "c", "e"]}, "no variable is called 'e'"),
        ({"tiers": [["a", "e"]]}, "no variable is called 'e'"),
        ({"required": [("a", "e")]}, "no variable is called 'e'"),
        ({"required": [("e", "a")]}, "no variable is called 'e'"),
        ({"forbidden": [("a", "e")]}, "no variable is called 'e'"),
        ({"allowed_parents": {"e": ["a"]}}, "no variable is called 'e'"),
        ({"allowed_parents": {"a": ["e"]}}, "no variable is called 'e'"),
        ({"dag": [("a", "e")]}, "no variable is called 'e'"),
        (
            {"required": [("a", "b")], "forbidden": [("a", "b")]},
            "the arc a -> b is asked for and ruled out at once: drop one of the two",
        ),
        ({"required": [("a", "b")], "order": ["b", "a", "c", "d"]}, "a -> b is asked for and ruled out"),
        ({"required": [("a", "b")], "tiers": [["b"], ["a", "c", "d"]]}, "a -> b is asked for and ruled out"),
        ({"required": [("a", "b")], "allowed_parents": {"b": ["c"]}}, "a -> b is asked for and ruled out"),
        ({"required": [("a", "a")]}, "a -> a is asked for and ruled out"),
        ({"dag": [("a", "b")], "forbidden": [("a", "b")]}, "a -> b is asked for and ruled out"),
        (
            {"required": [("a", "b"), ("b", "c"), ("c", "a")]},
            r"the arcs asked for close a cycle \(a -> b -> c -> a\): leave one of them out",
        ),
        ({"dag": [("a", "b"), ("b", "a")]}, r"close a cycle \(a -> b -> a\)"),
        ({"dag": [("a", "b")], "required": [("b", "a")]}, r"close a cycle \(a -> b -> a\)"),
        (
            {"required": [("a", "b"), ("c", "b")], "max_parents": 1},
            "'b' must have more parents than max_parents=1: raise it or drop arcs",
        ),
        ({"dag": [("a", "b")], "max_parents": 0}, "'b' must have more parents than max_parents=0"),
        ({"max_parents": -1}, "max_parents is -1, and must be at least 0: raise it, or leave it out for no limit"),
        ({"max_leaves": 0}, "max_leaves is 0, and must be at least 1: raise it, or leave it out for no limit"),
    ],
)
def test_impossible_constraints(constraints, message):
    with pytest.raises(ValueError, match=message):
        Constraints(**constraints).resolve(TABLE)


def tied(*groups):
    return Constraints(tied=groups).resolve(TABLE)


def test_tied_variables_have_the_parents_that_were_given():
    rules = tied([("b", ["a"]), ("d", ["c"])])
    assert arcs(rules.is_parent) == arcs(rules.kept) == {("a", "b"), ("c", "d")}
    assert {arc for arc in arcs(rules.allowed) if arc[1] in "bd"} == {("a", "b"), ("c", "d")}


@pytest.mark.parametrize(
    ("groups", "problem"),
    [
        ([[("a", [])]], "fewer than two variables"),
        ([[("a", []), ("b", ["c"])]], "gives 'a' 0 parents and 'b' 1"),
        ([[("a", ["b"]), ("b", ["a"])]], "close a cycle"),
        ([[("a", []), ("b", [])], [("b", []), ("c", [])]], "names 'b' twice"),
        ([[("a", ["a"]), ("b", ["c"])]], "twice for 'a'"),
        ([[("a", ["q"]), ("b", ["c"])]], "no variable is called 'q'"),
    ],
)
def test_what_cannot_be_tied(groups, problem):
    with pytest.raises(ValueError, match=problem):
        tied(*groups)


def test_tied_variables_have_the_same_states():
    table = make_table([2, 3, 2], np.zeros((3, 1), int))
    with pytest.raises(ValueError, match="matches 'a' with 'b', which have other states"):
        Constraints(tied=[[("a", []), ("b", [])]]).resolve(table)
    with pytest.raises(ValueError, match="asked for and ruled out"):
        Constraints(tied=[[("b", ["a"]), ("d", ["c"])]], forbidden=[("c", "d")]).resolve(TABLE)


def test_arcs_may_come_in_an_array():
    table = make_table([2, 2], [[0, 1, 1], [0, 1, 0]])
    arcs = np.array([[table.names[0], table.names[1]]])
    for rules in (Constraints(required=arcs), Constraints(dag=arcs)):
        assert rules.resolve(table).is_parent.tolist() == [[0, 0], [1, 0]]
