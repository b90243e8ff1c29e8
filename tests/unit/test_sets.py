"""Sets of cases in compiled code: the rows of masks, in lists that lie side by side."""

import numpy as np
import pytest

from leafwise.counters.cpu import CpuCounter
from leafwise.data.table import Table, Variable
from leafwise.kernels.compiling.jit import jit
from leafwise.kernels.counting import sets

SHARES = (0.0, 0.002, 0.02, 0.1, 0.5, 1.0)


@jit
def list_bits(mask, out, at):
    sets.list_bits(mask, out, np.int64(at))


@pytest.mark.interpreted
@pytest.mark.parametrize("share", SHARES)
def test_the_rows_of_a_mask_are_listed_and_nothing_else_is_written(share):
    for seed in range(10):
        bits = np.random.default_rng(seed).random(64 * 20) < share
        rows = np.flatnonzero(bits)
        out = np.full(len(rows) + 10, -7, np.int32)
        list_bits(np.packbits(bits, bitorder="little").view(np.uint64), out, 5)
        assert (out[5 : 5 + len(rows)] == rows).all()
        assert (out[:5] == -7).all()
        assert (out[5 + len(rows) :] == -7).all()


@pytest.mark.interpreted
@pytest.mark.parametrize("n_states", [2, 3])
def test_a_list_is_cut_beside_one_that_is_there(n_states):
    labels = tuple(map(str, range(n_states)))
    rare = (0.02 / (n_states - 1),) * (n_states - 1)
    groups = np.tile(np.minimum(np.arange(n_states), 1), 2)
    for seed in range(10):
        codes = np.random.default_rng(seed).choice(n_states, (2, 6_400), p=(1 - sum(rare), *rare)).astype(np.uint8)
        cases = CpuCounter(Table((Variable("a", labels), Variable("b", labels)), codes)).cases
        requests = np.zeros(2, sets.CUT)
        requests["variable"], requests["n_states"], requests["n_children"] = (0, 1), n_states, 2
        requests["group"], requests["first_child"] = (0, n_states), (1, 3)
        sizes = np.array([n for column in codes for n in ((column == 0).sum(), (column > 0).sum())])
        assert sets.place_sets(sizes, cases) == 1
        for which in (1, 0):  # the second list first
            sets.cut_sets(requests, groups, which, which + 1, cases)
        for which in (0, 1):
            child = cases.sets[2 + 2 * which]
            assert not child["is_mask"]
            listed = cases.lists[child["offset"] : child["offset"] + child["size"]]
            assert (listed == np.flatnonzero(codes[which])).all()
