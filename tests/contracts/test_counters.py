"""The contract of counters, each of them held against a counter of dictionaries and Python sets."""

from collections import Counter as Tally
from itertools import count, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import dask_client, generators, has_gpu, make_table, on_a_cluster, shards

from leafwise import Variable, workers
from leafwise.counters import cpu
from leafwise.counters.cpu import CpuCounter
from leafwise.counters.gpu import GpuCounter
from leafwise.counters.sharded import ShardedCounter
from leafwise.data.table import Table
from leafwise.kernels.counting import bits, sets
from leafwise.search.histograms import make_layout
from leafwise.workers import Workers

SIZES = (1, 2, 5, 31, 63, 64, 65, 127, 128, 129, 640, 2000)


class Reference:
    """Sets of row numbers, cut, joined and counted row by row."""

    def __init__(self, table):
        self.rows = table.codes.T.tolist()
        self.sets = {0: set(range(len(self.rows)))}

    def cut(self, parent, variable, group, n_children):
        children = [set() for _ in range(n_children)]
        for row in self.sets[parent]:
            children[group[self.rows[row][variable]]].add(row)
        return children

    def histogram(self, cases, target, variable, n_states, r):
        tally = Tally((self.rows[row][variable], self.rows[row][target]) for row in self.sets[cases])
        return [[tally[state, k] for k in range(r)] for state in range(n_states)]


COUNTERS = {
    **({"gpu": lambda table, _random, _n_threads: GpuCounter(table)} if has_gpu() else {}),
    **({"dask": lambda table, random, _n_threads: on_a_cluster(table, random, 3)} if dask_client() else {}),
    "cpu": lambda table, _random, n_threads: CpuCounter(table, Workers(n_threads)),
    "two shards": lambda table, random, n_threads: shards(table, random, 2, n_threads),
    "seven shards": lambda table, random, n_threads: shards(table, random, 7, n_threads),
}


class Pair:
    """A counter and the reference, asked for the same things; names are the caller's."""

    def __init__(self, counter, table, random, n_threads=1):
        self.random, self.n_states = random, np.array([variable.n_states for variable in table.variables])
        self.counter, self.slow = COUNTERS[counter](table, random, n_threads), Reference(table)
        assert self.counter.n_cases == table.n_cases
        assert self.counter.variables == table.variables
        self.fast = self.counter.session()
        n = table.n_variables
        self.layout = make_layout(1 - np.eye(n, dtype=np.uint8), self.n_states, np.arange(n))
        self.n = n
        self.names = (name if name % 3 else -name for name in count(10))
        self.last = None  # what was counted last, and a copy

    def pick(self, most):
        known = list(self.slow.sets)
        return [known[k] for k in self.random.permutation(len(known))[: self.random.integers(1, most + 1)]]

    def cut(self, requests=None):
        if requests is None:
            parents = self.pick(4)
            variables = self.random.integers(self.n, size=len(parents)).tolist()
            groups = [self.random.integers(self.random.integers(2, 5), size=self.n_states[v]) for v in variables]
            requests = list(
                zip(parents, variables, (np.unique(g, return_inverse=True)[1] for g in groups), strict=True)
            )
        children = [[next(self.names) for _ in range(group.max() + 1)] for _, _, group in requests]
        arguments = (
            np.array([parent for parent, _, _ in requests]),
            np.array([variable for _, variable, _ in requests]),
            np.concatenate([group for _, _, group in requests]),
            np.concatenate(children),
        )
        self.fast.cut(*arguments)
        if self.random.random() < 0.1:
            self.fast.cut(*arguments)  # as after a fault
        for (parent, variable, group), names in zip(requests, children, strict=True):
            found = self.slow.cut(parent, variable, group.tolist(), len(names))
            self.slow.sets.update(zip(names, found, strict=True))
        return children

    def join(self):
        rows, taken = [], set()
        for one, two in zip(self.pick(8), self.pick(8), strict=False):
            if one != two and not {one, two} & taken and not self.slow.sets[one] & self.slow.sets[two]:
                rows.append((one, two, next(self.names)))
                taken |= {one, two}
        for one, two, union in rows:
            self.slow.sets[union] = self.slow.sets[one] | self.slow.sets[two]
            rest = [name for name in self.pick(3) if not self.slow.sets[name] & self.slow.sets[union]]
            if rest:  # the union of a union
                rows.append((union, rest[0], next(self.names)))
                self.slow.sets[rows[-1][2]] = self.slow.sets[union] | self.slow.sets[rest[0]]
                break
        if rows:
            self.fast.join(*np.array(rows).T.copy())

    def release(self, gone=None):
        gone = [name for name in self.pick(3) if name != 0] if gone is None else gone
        self.fast.release(np.array(gone, dtype=np.int64))
        self.fast.release(np.array([*gone, 5], dtype=np.int64))  # nobody has heard of these
        for name in gone:
            del self.slow.sets[name]

    def count(self):
        sets = self.pick(6)
        targets = self.random.integers(self.n, size=len(sets))
        room = (self.layout.n_rows[self.layout.of_target[targets]] + 1) * self.n_states[targets]
        counts = self.fast.count(np.array(sets), targets, self.layout)
        if self.last is not None:
            assert (self.last[0] == self.last[1]).all(), "a call wrote over what the one before it returned"
        self.last = counts, counts.copy()
        histograms = np.split(counts, np.cumsum(room)[:-1])
        for name, target, histogram in zip(sets, targets.tolist(), histograms, strict=True):
            self.check(name, target, histogram.reshape(-1, self.n_states[target]))

    def check(self, number, target, histogram):
        layout, r = self.layout, self.n_states[target]
        which = layout.of_target[target]
        for entry in range(layout.start[which], layout.start[which + 1]):
            variable = layout.variables[entry]
            if variable != target:
                n_states = self.n_states[variable]
                block = histogram[layout.bases[entry] : layout.bases[entry] + n_states]
                assert block.tolist() == self.slow.histogram(number, target, variable, n_states, r)
        totals = Tally(self.slow.rows[row][target] for row in self.slow.sets[number])
        assert histogram[-1].tolist() == [totals[k] for k in range(r)]


def random_codes(random, n_states, n_cases):
    """Skewed columns, so that cuts soon make small sets."""
    return [np.minimum(random.geometric(random.uniform(0.2, 0.9), n_cases) - 1, r - 1) for r in n_states]


@pytest.mark.parametrize("n_cases", [1, 64, 65, 640])
def test_sets_of_rows(n_cases):
    """Sets that are given row by row, few of them as lists and many as masks."""
    random = np.random.default_rng(n_cases)
    table = make_table([2, 3, 9], random_codes(random, [2, 3, 9], n_cases))
    pair = Pair("cpu", table, random)
    all_rows = [np.flatnonzero(random.random(n_cases) < share) for share in (0.01, 0.75, 1.0)]
    names = pair.counter.name_sets(pair.fast, all_rows)
    pair.slow.sets.update(zip(names, (set(rows.tolist()) for rows in all_rows), strict=True))
    for _ in range(5):
        pair.count()
        pair.cut()


def run(pair, n_requests):
    for _ in range(n_requests):
        request = pair.random.choice(["cut", "cut", "count", "count", "join", "release"])
        getattr(pair, str(request))()
    pair.count()


@pytest.mark.interpreted
@settings(max_examples=25)
@pytest.mark.parametrize("counter", COUNTERS)
@given(random=generators(), n_cases=st.sampled_from(SIZES))
def test_random_requests(counter, random, n_cases):
    n_states = random.choice([1, 2, 2, 3, 5, 8, 9, 20], int(random.integers(1, 6))).tolist()
    run(Pair(counter, make_table(n_states, random_codes(random, n_states, n_cases)), random), 12)


@pytest.mark.parametrize("n_cases", [64, 700, 6000])
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("counter", COUNTERS)
def test_many_requests_on_many_cases(counter, n_cases, n_threads, monkeypatch):
    monkeypatch.setattr(workers, "_WORTH_A_THREAD", 1e-9)  # else threads are for large tables only
    random = np.random.default_rng(n_cases)
    n_states = [2, 3, 8, 9, 2]
    run(Pair(counter, make_table(n_states, random_codes(random, n_states, n_cases)), random, n_threads), 60)


@pytest.mark.parametrize("n_cases", [65, 3000])
@pytest.mark.parametrize("counter", COUNTERS)
def test_more_than_256_states(counter, n_cases):
    random = np.random.default_rng(7)
    n_states = [300, 2, 9]
    table = make_table(n_states, [random.integers(r, size=n_cases) for r in n_states])
    assert table.codes.dtype == np.uint16
    run(Pair(counter, table, random), 30)


@pytest.mark.interpreted
def test_sets_around_the_size_at_which_lists_begin():
    """Sets of one case in 32, one more and one less, cut from a mask and from each other, and joined again."""
    n_cases = 32 * 20
    for size in (0, 1, 19, 20, 21):
        column = (np.arange(n_cases) < size).astype(int)
        other = np.arange(n_cases) % 2
        pair = Pair("cpu", make_table([2, 2], [column, other]), np.random.default_rng(0))
        ((first, second),) = pair.cut([(0, 0, np.array([1, 0]))])
        ((again, _),) = pair.cut([(first, 1, np.array([0, 1]))])
        union = next(pair.names)
        pair.fast.join(np.array([again]), np.array([second]), np.array([union]))
        pair.slow.sets[union] = pair.slow.sets[again] | pair.slow.sets[second]
        for _ in range(5):
            pair.count()


@pytest.mark.interpreted
def test_released_sets_make_room_and_do_not_disturb_others():
    random = np.random.default_rng(1)
    n_states = [2, 4, 3]
    pair = Pair("cpu", make_table(n_states, random_codes(random, n_states, 900)), random)
    for _ in range(40):
        for _ in range(3):
            pair.cut()
        pair.release([name for name in pair.slow.sets if name][:-6])
        pair.count()
    pair.fast.close()
    assert pair.counter.cases.marks[sets.N_FREE] == len(pair.counter.cases.masks) - 1  # all but that of everything


@pytest.mark.interpreted
def test_lists_move_to_a_larger_pool_when_theirs_is_full():
    random = np.random.default_rng(2)
    n_cases, r = 3000, 64
    columns = [random.integers(r, size=n_cases), random.integers(2, size=n_cases)]
    pair = Pair("cpu", make_table([r, 2], columns), random)
    for _ in range(4):
        pair.cut([(0, 0, np.arange(r))])
        for _ in range(5):
            pair.count()


def test_shards_must_be_alike():
    one, other = (CpuCounter(make_table([r], [[0, 1]])) for r in (2, 3))
    with pytest.raises(ValueError, match="different variables"):
        ShardedCounter([one, other])
    with pytest.raises(ValueError, match="no shards"):
        ShardedCounter([])


@pytest.mark.interpreted
@pytest.mark.parametrize(("few", "many"), [(0, 10**9), (10**9, 10**9), (0, 0)])
@pytest.mark.parametrize(
    ("n_states", "n_cases"), [([2] * 130, 1100), ([2, 3, 1, 9, 300] * 14, 513), ([300] * 220, 70), ([4], 1)]
)
def test_rows_have_the_bits_of_planes(n_states, n_cases, few, many, monkeypatch):
    monkeypatch.setattr(cpu, "_FEW_NS", few)
    monkeypatch.setattr(cpu, "_MANY", many)
    monkeypatch.setattr(workers, "_WORTH_A_THREAD", 1e-9)
    codes = np.array([np.random.default_rng(r + k).integers(r, size=n_cases) for k, r in enumerate(n_states)])
    variables = tuple(Variable(f"v{k}", tuple(map(str, range(r)))) for k, r in enumerate(n_states))
    data = CpuCounter(
        Table(variables, codes.astype(np.uint16 if max(n_states) > 256 else np.uint8)), Workers(2)
    ).cases.data
    has_planes = [r <= (32 if many else 8) for r in n_states]
    expected = [
        column == k for column, r, has in zip(codes, n_states, has_planes, strict=True) if has for k in range(1, r)
    ]
    assert (data.first >= 0).tolist() == has_planes
    for words in (data.words, data.rows[: n_cases * data.width].reshape(n_cases, data.width)):
        found = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
        found = found[:, :n_cases] if words is data.words else found[:, : len(expected)].T
        assert found.tolist() == np.array(expected).reshape(-1, n_cases).tolist()
    assert data.ones.tolist() == [int(ones.sum()) for ones in expected]
    assert not data.rows[n_cases * data.width :].any()


@pytest.mark.interpreted
@pytest.mark.parametrize("n_states", [[2] * 20, [3, 2, 40, 4], [12, 3, 5]])
@pytest.mark.parametrize("size", [0, 5, 90, 700, 2000])
def test_parts_add_up(n_states, size):
    """Large masks and lists are counted by planes and by rows; in parts, they must come to the same."""
    random = np.random.default_rng(size)
    columns = [random.integers(r, size=2000) for r in n_states]
    columns.append(np.isin(np.arange(2000), random.permutation(2000)[:size]).astype(int))
    counter = CpuCounter(make_table([*n_states, 2], columns), Workers(1))
    n = len(n_states) + 1
    number = counter.cut_sets(np.array([0]), np.array([n - 1]), np.array([2]), np.array([0, 1])) + 1
    layout, cases = make_layout(~np.eye(n, dtype=bool), counter.n_states, np.arange(n)), counter.cases
    for target in range(n):
        whole = counter.count_sets(np.array([number]), np.array([target]), layout)
        length = cases.masks.shape[1] if cases.sets[number]["is_mask"] else int(cases.sets[number]["size"])
        cuts = np.unique([0, length, *random.integers(0, length + 1, 3)])
        requests = [[number, target, k * len(whole), *part] for k, part in enumerate(pairwise(cuts.tolist()))]
        parts = np.zeros((len(requests), len(whole)), np.int32)
        scratch = bits.make_scratch(2000, counter.n_states, cases.data)
        bits.count_sets(
            np.array(requests, np.int64).reshape(-1, 5), 0, len(requests), parts.ravel(), layout, cases, scratch
        )
        assert parts.sum(axis=0).tolist() == whole.tolist()
