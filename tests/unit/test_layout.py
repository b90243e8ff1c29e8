"""Layouts: boxes keep apart, arcs go down, and nothing is lost."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafwise.report.layout import layered, n_bends
from leafwise.report.map_layout import arranged, is_small


@st.composite
def drawings(draw):
    n = draw(st.integers(1, 12))
    sizes = draw(st.lists(st.tuples(st.integers(10, 90), st.integers(10, 60)), min_size=n, max_size=n))
    pairs = [(start, end) for start in range(n) for end in range(start + 1, n)]
    order = draw(st.permutations(range(n)))
    arcs = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=20)) if pairs else []
    return sizes, [(order[start], order[end]) for start, end in arcs]


def overlap(one, other):
    """How much two boxes (centre, size) overlap, in the direction in which they do least."""
    return min((one[1][k] + other[1][k]) / 2 - abs(one[0][k] - other[0][k]) for k in (0, 1))


@given(drawings())
def test_layered_boxes_keep_apart_and_arcs_go_down(drawing):
    sizes, arcs = drawing
    layout = layered(sizes, arcs, apart=20, below=44)
    boxes = list(zip(layout.centres, sizes, strict=True))
    assert all(overlap(one, other) < 1e-6 for one, other in itertools.combinations(boxes, 2))
    for (x, y), (width, height) in boxes:
        assert -1e-6 <= x - width / 2 <= x + width / 2 <= layout.width + 1e-6
        assert -1e-6 <= y - height / 2 <= y + height / 2 <= layout.height + 1e-6
    for (start, end), route in zip(arcs, layout.routes, strict=True):
        assert route[0] == (layout.centres[start][0], layout.centres[start][1] + sizes[start][1] / 2)
        assert route[-1] == (layout.centres[end][0], layout.centres[end][1] - sizes[end][1] / 2)
        assert all(one[1] <= other[1] for one, other in itertools.pairwise(route))


@given(drawings())
def test_parts_are_set_side_by_side(drawing):
    sizes, arcs = drawing
    layout = arranged(sizes, arcs)
    boxes = list(zip(layout.centres, sizes, strict=True))
    assert all(overlap(one, other) < 1e-6 for one, other in itertools.combinations(boxes, 2))
    assert all(0 < x < layout.width and 0 < y < layout.height for x, y in layout.centres)
    assert all(len(route) >= 2 for route in layout.routes)


def test_arcs_that_need_not_cross_do_not():
    layout = layered([(10, 10)] * 6, [(0, 5), (1, 4), (2, 3)])
    across = [layout.centres[box][0] for box in range(6)]
    assert np.argsort(across[:3]).tolist() == [5 - box for box in (np.argsort(across[3:]) + 3)]
    assert n_bends(4, [(0, 1), (1, 2), (2, 3), (0, 3)]) == 2


def test_a_long_arc_is_straight_where_there_is_room():
    arcs = [(k, k + 1) for k in range(8)] + [(0, 8)]
    route = layered([(40, 20)] * 9, arcs).routes[-1]
    assert len({round(x, 6) for x, _ in route[2:-2]}) == 1


@pytest.fixture(scope="module")
def large():
    random = np.random.default_rng(1)
    arcs = {(int(random.integers(max(0, k - 30), k)), k) for k in range(1, 900)}
    arcs |= {(one, one + step) for one, step in random.integers([0, 1], [850, 40], (600, 2)).tolist()}
    return [(60.0, 28.0)] * 905, sorted(arcs)  # five boxes have no arc


def test_large_networks_are_maps(large):
    sizes, arcs = large
    assert not is_small(len(sizes), arcs)
    began = time.perf_counter()
    layout = arranged(sizes, arcs)
    assert time.perf_counter() - began < 20
    boxes = list(zip(layout.centres, sizes, strict=True))
    touching = sum(overlap(one, other) > 3 for one, other in itertools.combinations(boxes, 2))
    assert touching < 20
    assert set(layout.routes) == {()}
    length = np.array([np.subtract(layout.centres[start], layout.centres[end]) for start, end in arcs])
    pairs = np.random.default_rng(2).integers(0, 900, (2, 2000))
    other = np.array([np.subtract(layout.centres[one], layout.centres[two]) for one, two in pairs.T])
    assert np.median(np.hypot(*length.T)) < np.median(np.hypot(*other.T)) / 2  # what is linked is close
    assert arranged(sizes, arcs) == layout


def test_nothing_to_draw():
    assert arranged([], []).centres == ()
    assert layered([], []).width == 0
