"""Series in time: how they are put in order, windows over them, and the network that holds at every step."""

import json
import re

import numpy as np
import pytest
from strategies import make_table

import leafwise
from leafwise.constraints import Constraints
from leafwise.data.series import read_series, windows
from leafwise.data.table import Table
from leafwise.dynamic_network import DynamicNetwork
from leafwise.network import Network


def simulated(n_series, length, seed):
    """Series of a hidden-free chain: x remembers two steps, y tells whether x has just changed. As rows by label."""
    random, rows = np.random.default_rng(seed), []
    for number in range(n_series):
        x = [0, int(random.integers(2))]
        for step in range(length):
            follows = x[-1] if random.random() < (0.9 if x[-1] == x[-2] else 0.3) else 1 - x[-1]
            y = (follows != x[-1]) ^ (random.random() < 0.1)
            rows.append([f"s{number}", step, follows, int(y)])
            x = [x[-1], follows]
    return np.array(rows, dtype=object)


LEARNED = {"lags": 2, "by": "x1", "time": "x2"}


@pytest.fixture(scope="module")
def dynamic():
    return leafwise.learn(simulated(40, 15, seed=1), **LEARNED)


def test_rows_are_put_in_order_of_series_and_time():
    rows = simulated(5, 6, seed=2)
    shuffled = rows[np.random.default_rng(3).permutation(len(rows))]
    series, _ = read_series(shuffled, by="x1", time="x2")
    expected, _ = read_series(rows, by="x1", ignore="x2")
    names = [series.names.index(name) for name in expected.names]
    own = [series.table.codes[:, series.ends[k] : series.ends[k + 1]] for k in names]
    assert np.array_equal(np.concatenate(own, axis=1), expected.table.codes)


def test_windows_are_rows_with_what_was_before():
    series, _ = read_series(make_table([3, 2], [[0, 1, 2, 0, 1, 2], [0, 0, 1, 1, 0, 1]]))
    table = windows(series, 2)
    assert table.names == ("a[t-2]", "b[t-2]", "a[t-1]", "b[t-1]", "a", "b")
    assert table.codes.tolist() == [[0, 1, 2, 0], [0, 0, 1, 1], [1, 2, 0, 1], [0, 1, 1, 0], [2, 0, 1, 2], [1, 1, 0, 1]]


@pytest.mark.parametrize(
    "times",
    [
        [3, 4, 5, 6],
        [2000, 2005, 2010, 2015],
        [2**60 + k for k in range(4)],  # alike as doubles
        [1_700_000_000_000_000_000 + 1_000_000 * k for k in range(4)],
        ["2024-01-30", "2024-01-31", "2024-02-01", "2024-02-02"],
        ["2024-01-15", "2024-02-15", "2024-03-15", "2024-04-15"],
        ["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30"],
        ["2024-01-01T00:00", "2024-01-01T06:00", "2024-01-01T12:00", "2024-01-01T18:00"],
        ["2024-01-01 00:00:00.0", "2024-01-01 00:00:00.1", "2024-01-01 00:00:00.2", "2024-01-01 00:00:00.3"],
        ["2024-01-01T00:00:59.999998", "2024-01-01T00:00:59.999999", "2024-01-01T00:01", "2024-01-01T00:01:00.000001"],
        ["2200-01-01T00:00:03", "2200-01-01T00:00:04", "2200-01-01T00:00:05", "2200-01-01T00:00:06"],
        ["1700-01-01T00:14", "1700-01-01T00:21", "1700-01-01T00:28", "1700-01-01T00:35"],
    ],
)
def test_times_that_go_on_step_by_step(times):
    rows = np.array([[time, k % 2] for k, time in enumerate(times)], dtype=object)[[2, 0, 3, 1]]
    series, _ = read_series(rows, time="x1")
    assert series.table.codes.tolist() == [[0, 1, 0, 1]]


@pytest.mark.parametrize(
    ("rows", "options", "problem"),
    [
        ([["p", 1, 0], ["p", 2, 1], ["p", 4, 0]], {}, "series 'p' goes from '2' to '4', where others go as from '1'"),
        ([["p", 1, 0], ["p", 1, 1], ["p", 2, 0]], {}, "series 'p' has two rows at '1'"),
        ([["p", 1, 0], ["p", 2, 1], ["q", 1, 0]], {}, "series 'q' has 1 row, and lags=1 needs at least 2"),
        ([["p", 1, 0], ["p", None, 1], ["p", 2, 0]], {}, "row 2 has no value in column 'x2'"),
        ([[None, 1, 0], ["p", 2, 1]], {}, "row 1 has no value in column 'x1'"),
        ([["p", 0.5, 0], ["p", 1.5, 1]], {}, "column 'x2' holds '0.5' as a time"),
        ([["p", 1e300, 0], ["p", 2e300, 1]], {}, "column 'x2' holds '1e+300' as a time"),
        ([["p", "soon", 0], ["p", "later", 1]], {}, "column 'x2' holds 'soon' as a time"),
        ([["p", "2024-01-01", 0], ["p", "2024-01-02", 1], ["p", "2024-01-04", 1]], {}, "to '2024-01-04'"),
        ([["p", 1, 0], ["p", 2, 1]], {"missing": "drop"}, "missing='drop' was given for series"),
        ([["p", 1, None], ["p", 2, 1]], {}, "missing cells in column 'x3' (1): pass missing='state'"),
        ([["p", 1, 0], ["p", 2, 1]], {"target": "x3"}, "target and lags=1 were both given"),
        ([["p", 1, 0], ["p", 2, 1]], {"networks": 3}, "networks and lags=1 were both given"),
        ([["p", 1, 0], ["p", 2, 1]], {"lags": 0}, "lags is 0"),
        ([["p", 1, 0], ["p", 2, 1]], {"lags": 1.5}, "lags is 1.5"),
        ([["p", 1, 0], ["p", 2, 1]], {"by": "who"}, "by names 'who', but the columns are"),
        ([["p", 1, 0], ["p", 2, 1]], {"lags": None}, "by and a run without lags were both given"),
    ],
)  # fmt: skip
def test_series_that_cannot_be_learned_from(rows, options, problem):
    with pytest.raises(ValueError, match=re.escape(problem)):
        leafwise.learn(np.array(rows, dtype=object), **{"lags": 1, "by": "x1", "time": "x2", **options})


def test_a_column_may_not_have_the_name_of_a_lagged_one():
    frame = leafwise.read(np.array([[0, 1], [1, 0], [1, 1]])).to_pandas().set_axis(["x", "x[t-1]"], axis=1)
    with pytest.raises(ValueError, match="two columns would be called"):
        leafwise.learn(frame, lags=1)


def test_numbers_of_numpy_are_whole_numbers(dynamic, tmp_path):
    same = leafwise.learn(simulated(40, 15, seed=1), **{**LEARNED, "lags": np.int64(2)})
    same.save(tmp_path / "model.json")
    assert DynamicNetwork.load(tmp_path / "model.json") == same == dynamic
    assert same.unroll(np.int64(4)) == dynamic.unroll(4)


def test_what_two_steps_before_matters_is_found(dynamic):
    assert {"x3[t-1]", "x3[t-2]"} <= set(dynamic["x3"].parents)
    assert dynamic.names == ("x3", "x4")


def test_bins_are_those_of_the_column_in_all_slices():
    random = np.random.default_rng(1)
    table = windows(read_series(random.normal(size=(200, 1)).cumsum(axis=0))[0], 3)
    assert len({variable.cuts for variable in table.variables}) == 1
    assert len(table.variables[0].cuts) > 1


def test_unrolled_it_says_what_the_windows_say(dynamic):
    """log p of a series is that of its first slices, and then of every slice given those before."""
    rows = simulated(7, 9, seed=5)
    series, _ = read_series(rows, by="x1", time="x2", variables=dynamic.variables)
    table, window = windows(series, 2), dynamic.window
    past = Network(window.variables[:4], window.nodes[:4])
    lagged = Table(window.variables[:4], table.codes[:4])
    before = past.log_probabilities(lagged).reshape(7, 7)
    given_before = window.log_probabilities(table).reshape(7, 7) - before
    expected = before[:, 0] + given_before.sum(axis=1)
    assert np.allclose(dynamic.log_probabilities(rows, by="x1", time="x2"), expected)
    network = dynamic.unroll(9)
    assert network.n_parameters == window.n_parameters == dynamic.unroll(100).n_parameters
    assert network.names[:3] == ("x3[0]", "x4[0]", "x3[1]")
    assert network.names[-1] == "x4[8]"


def test_series_of_different_lengths(dynamic):
    rows = simulated(3, 6, seed=6)
    shorter = np.concatenate([rows[:6], rows[6:10], rows[12:13]])
    logs = dynamic.log_probabilities(shorter, by="x1", time="x2")
    assert logs[0] == dynamic.log_probabilities(rows, by="x1", time="x2")[0]
    assert logs[2] == dynamic.unroll(1).log_probabilities(np.array([rows[12, 2:]], dtype=object))[0]


def test_missing_cells_of_series_are_summed_out(dynamic):
    rows = simulated(3, 6, seed=6)
    gaps = rows.copy()
    gaps[4, 2], gaps[9, 3] = None, "neither"
    whole = [np.where(np.equal(gaps, None), state, gaps) for state in (0, 1)]
    options = {"by": "x1", "time": "x2", "unseen": "missing"}
    logs = np.logaddexp(*(dynamic.log_probabilities(one, **options) for one in whole))
    found = dynamic.log_probabilities(gaps, **options)
    assert found[0] == pytest.approx(logs[0])
    assert found[1] > dynamic.log_probabilities(rows, by="x1", time="x2")[1]
    for missing in ("error", "drop", "infer"):
        with pytest.raises(ValueError, match="pass missing='unknown'"):
            dynamic.log_probabilities(gaps, by="x1", time="x2", missing=missing)


def test_the_tied_network_beats_one_with_parameters_for_every_slice(dynamic):
    """Each slice with its own parameters: the same series as cases with a column for each variable and time."""
    length = 15
    rows, new = simulated(40, length, seed=1), simulated(200, length, seed=9)
    wide = [part[:, 2:].reshape(-1, 2 * length).astype(int) for part in (rows, new)]
    tiers = [[f"x{2 * k + 1}", f"x{2 * k + 2}"] for k in range(length)]
    untied = leafwise.learn(wide[0], constraints=Constraints(tiers=tiers))
    tied = dynamic.log_probabilities(new, by="x1", time="x2").mean()
    assert tied > untied.log_probabilities(wide[1]).mean() + 0.2


def test_what_is_shared_in_a_window_is_shared_when_unrolled():
    search = leafwise.LeafSearch("CBIMRT")
    dynamic = leafwise.learn(simulated(40, 15, seed=1), **LEARNED, search=search, structure_prior="uniform")
    assert dynamic.window.ties
    for slices in (1, 2, 3, 6):
        assert dynamic.unroll(slices).n_parameters <= dynamic.window.n_parameters
    assert dynamic.unroll(6).n_parameters == dynamic.window.n_parameters


def parted(n_series=200, length=10):
    """Whether y is the first state depends on x a step before, which of the others it is on z a step before."""
    random = np.random.default_rng(1)
    x, z, u, v = random.random((4, n_series, length))
    x, z = (x < 0.5).astype(int), (z < 0.5).astype(int)
    before_x, before_z = (np.roll(values, 1, axis=1) for values in (x, z))
    y = np.where(u < 0.2 + 0.5 * before_x, 0, 1 + (v < 0.2 + 0.6 * before_z))
    return np.stack([x, z, y], axis=2).reshape(-1, 3), np.repeat(np.arange(n_series), length)


@pytest.mark.parametrize(
    "times",
    [
        # put back: three o'clock becomes two o'clock again
        ["2024-10-27 01:00+02:00", "2024-10-27 02:00+02:00", "2024-10-27 02:00+01:00", "2024-10-27 03:00+01:00"],
        ["2024-03-31T00:00Z", "2024-03-31T03:00+0200", "2024-03-31T04:00+0200", "2024-03-30T22:00-0500"],
        # the same hours of every day are even steps, although a day of them has 23 hours
        ["2024-03-30 08:00+01:00", "2024-03-31 08:00+02:00", "2024-04-01 08:00+02:00", "2024-04-02 08:00+02:00"],
        ["2024-03-30 18:00+01:00", "2024-03-31 06:00+02:00", "2024-03-31 18:00+02:00", "2024-04-01 06:00+02:00"],
    ],
)
def test_clocks_that_are_put_forward_or_back(times):
    order = np.array([2, 0, 3, 1])
    rows = np.array([[time, str(number)] for number, time in enumerate(times)], dtype=object)[order]
    series, _ = read_series(rows, time="x1")
    assert series.table.variables[0].labels == ("0", "1", "2", "3")
    assert series.table.codes.tolist() == [[0, 1, 2, 3]]


def test_own_value_tests_are_the_same_at_all_times(tmp_path):
    rows, series = parted()
    rows = np.column_stack([series, rows])
    for letters in ("CBIMO", "CBIMOR"):
        dynamic = leafwise.learn(rows, by="x1", lags=1, search=leafwise.LeafSearch(letters))
        assert dynamic.window.nodes[5].own is not None
        network = dynamic.unroll(6)
        assert network.n_parameters == dynamic.window.n_parameters
        assert sum(network.parameters_by_node()[9:]) == 0
        cases = network.sample(50, seed=1)
        score = leafwise.log_score(network, cases, prior="uniform", structure_prior="kappa:0.5")
        assert score.total - sum(own.log_marginal_likelihood for own in score.values()) == pytest.approx(
            network.n_parameters * np.log(0.5)
        )
        network.save(tmp_path / "network.json")
        again = Network.load(tmp_path / "network.json")
        assert leafwise.log_score(again, cases).total == leafwise.log_score(network, cases).total


def test_saved_and_loaded_it_is_the_same(dynamic, tmp_path):
    path = tmp_path / "model.json"
    dynamic.save(path)
    assert DynamicNetwork.load(path) == dynamic
    assert json.loads(path.read_text())["lags"] == 2
    with pytest.raises(ValueError, match="holds a dynamic network"):
        Network.load(path)
    with pytest.raises(ValueError, match="a dynamic network is saved as"):
        dynamic.save(tmp_path / "model.bif")
    dynamic.unroll(2).save(path)
    with pytest.raises(ValueError, match="no dynamic network"):
        DynamicNetwork.load(path)


def test_only_a_network_of_a_window_will_do(dynamic):
    for network, lags, problem in (
        (dynamic.window, 4, "equally many"),
        (dynamic.window, 1, "not 'x"),
        (dynamic.unroll(3), 2, "not 'x3"),
    ):
        with pytest.raises(ValueError, match=problem):
            DynamicNetwork(network, lags)


def test_constraints_hold_in_every_slice():
    rows = simulated(20, 10, seed=1)
    rules = Constraints(forbidden=[("x3[t-2]", "x3")], tiers=[["x4"], ["x3"]], required=[("x4[t-1]", "x4")])
    dynamic = leafwise.learn(rows, **LEARNED, constraints=rules)
    arcs = set(dynamic.window.named_arcs)
    assert ("x3[t-2]", "x3") not in arcs
    assert {("x4[t-1]", "x4"), ("x4[t-2]", "x4[t-1]")} <= arcs
    assert not any(arc in arcs for arc in (("x3", "x4"), ("x3[t-1]", "x4[t-1]")))
    with pytest.raises(ValueError, match="no variable is called 'x9'"):
        leafwise.learn(rows, **LEARNED, constraints=Constraints(forbidden=[("x9", "x3")]))


def test_what_is_said_of_parents_is_said_of_every_slice():
    rules = Constraints(allowed_parents={"y": ["y[t-1]", "x"]}, dag=[("x[t-1]", "y")]).over_slices(["x", "y"], 2)
    assert rules.allowed_parents == {"y": ["y[t-1]", "x"], "y[t-1]": ["y[t-2]", "x[t-1]"], "y[t-2]": ["x[t-2]"]}
    assert rules.dag == [("x[t-1]", "y"), ("x[t-2]", "y[t-1]")]
