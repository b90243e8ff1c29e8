"""Equivalence classes of DAGs, against all DAGs with the same skeleton and the same v-structures."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from leafwise import dag


def features(parents):
    """Skeleton and v-structures: what an equivalence class has in common."""
    linked = {frozenset((p, c)) for c, row in enumerate(parents) for p in row}
    meets = {(frozenset(pair), c) for c, row in enumerate(parents) for pair in itertools.combinations(row, 2)}
    return linked, {(pair, c) for pair, c in meets if pair not in linked}


def members(parents):
    """All DAGs that are equivalent to this one."""
    skeleton, shape = sorted(map(sorted, features(parents)[0])), features(parents)
    for turns in itertools.product((False, True), repeat=len(skeleton)):
        rows = [[] for _ in parents]
        for (a, b), turn in zip(skeleton, turns, strict=True):
            rows[a if turn else b].append(b if turn else a)
        if not dag.find_cycle(rows) and features(rows) == shape:
            yield rows


@given(st.integers(0, 10**6))
def test_an_arc_has_a_direction_exactly_where_all_members_agree(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 6))
    order = random.permutation(n).tolist()
    parents = [[p for p in order[: order.index(child)] if random.random() < 0.5] for child in range(n)]
    expected = np.zeros((n, n), bool)
    for rows in members(parents):
        for child, row in enumerate(rows):
            expected[row, child] = True
    assert (dag.equivalence_class(parents) == expected).all()


def test_distance_counts_pairs():
    chain, fork, collider = [[], [0], [1]], [[1], [], [1]], [[], [0, 2], []]
    assert dag.structural_hamming_distance(chain, fork) == 0
    assert dag.structural_hamming_distance(chain, collider) == 2
    assert dag.structural_hamming_distance(chain, [[], [], []]) == 2
