"""Regions in compiled code against regions as sets of boxes."""

import numpy as np
import pytest
from hypothesis import given
from strategies import generators

from leafwise.kernels.compiling.jit import jit
from leafwise.kernels.leaf_search import regions as kernels
from leafwise.regions import Region
from leafwise.search.initial_graphs import read_region


@jit
def cut(words, at, n_boxes, variable, mask, n_states, to, out):
    out[0], out[1] = kernels.cut_region(words, at, n_boxes, variable, mask, n_states, to)


@jit
def join(words, one, n_one, two, n_two, n_states, to, out, scratch):
    out[0], out[1] = kernels.join_regions(words, one, n_one, two, n_two, n_states, to, scratch)


@jit
def find_shares(words, at, n_boxes, n_states, out, scratch):
    n = kernels.find_shares(words, at, n_boxes, n_states, scratch)
    for variable in range(n_states.shape[0]):
        for place in range(scratch.places[variable], scratch.places[variable + 1]):
            out[place] = scratch.shares[place] if scratch.is_tested[variable] else -1.0
    kernels.forget_tested(n, scratch)
    return kernels.share_of(words, at, n_boxes, n_states)


def mask_of(states, r):
    return np.array([sum(1 << s % 64 for s in states if s // 64 == k) for k in range(-(-r // 64))], np.uint64)


def check(words, at, n_boxes, region, n_states):
    shares = np.zeros(n_states.sum())
    share = find_shares(words, at, n_boxes, n_states, shares, kernels.make_region_scratch(n_states))
    assert share == pytest.approx(region.share(n_states), abs=1e-12)
    tested = region.tested()
    places = np.cumsum([0, *n_states])
    for variable, expected in zip(tested, region.shares(tested, n_states), strict=True):
        found = shares[places[variable] : places[variable + 1]]
        if found[0] == -1:  # all of its states are in, so it is free
            found = np.full(len(found), share / len(found))
        assert found == pytest.approx(expected, abs=1e-13)
        assert ((found > 0) == (expected > 0)).all()
    assert read_region(words, at, n_boxes, n_states).share(n_states) == pytest.approx(share)


@given(generators())
def test_cutting_and_joining(random):
    n_states = random.choice([2, 3, 4, 7, 70], int(random.integers(1, 5)))
    words, used, out = np.zeros(200_000, np.uint64), 1, np.zeros(2, np.int64)
    leaves = [(0, 1, Region.everything())]
    for _ in range(int(random.integers(1, 20))):
        at, n, region = leaves.pop(int(random.integers(len(leaves))))
        if leaves and random.random() < 0.4:
            other, m, more = leaves.pop(int(random.integers(len(leaves))))
            join(words, at, n, other, m, n_states, used, out, kernels.make_region_scratch(n_states))
            leaves.append((used, int(out[0]), region.join(more)))
            used = int(out[1])
        else:
            variable = int(random.integers(len(n_states)))
            r = int(n_states[variable])
            state = int(random.integers(r))
            for states in ({state}, set(range(r)) - {state}):
                part = region.cut(variable, sum(1 << s for s in states), r)
                cut(words, at, n, variable, mask_of(states, r), n_states, used, out)
                assert (out[0] == 0) == (not part.boxes)
                if part.boxes:
                    leaves.append((used, int(out[0]), part))
                    used = int(out[1])
        for leaf in leaves:
            check(words, *leaf, n_states)
