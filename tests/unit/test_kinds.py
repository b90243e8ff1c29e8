"""What columns are understood as, and cut points held against all ways to cut."""

from itertools import combinations
from math import comb, inf, lgamma, log
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import leafwise
from leafwise.data.discretization import Numbers, States, best_bins, cuts_towards, few_states, related
from leafwise.data.encoding import describe, read, read_and_describe
from leafwise.report.shown_graph import arc_states

N = 200
RANDOM = np.random.default_rng(1)


def people() -> pd.DataFrame:
    sex = RANDOM.choice(["f", "m"], N)
    age = RANDOM.uniform(18, 90, N)
    return pd.DataFrame(
        {
            "id": [f"C{i:04}" for i in range(N)],
            "row": np.arange(N),
            "account_id": RANDOM.permutation(10**6)[:N],
            "note": [f"called the office {i} times and left" for i in range(N)],
            "zip": [f"0{RANDOM.integers(1000, 1900)}" for _ in range(N)],
            "seen": pd.date_range("2024-01-01", periods=N).strftime("%Y-%m-%d"),
            "sex": sex,
            "male": np.where(sex == "m", 1, 0),
            "age": age,
            "pay": RANDOM.permutation(10**6)[:N],
            "children": RANDOM.integers(0, 6, N),
            "dose": RANDOM.choice([0.1, 0.5, 2.0], N),
            "country": "Norway",
            "ill": np.where((age > 52) ^ (RANDOM.random(N) < 0.05), "yes", "no"),
        }
    )


KINDS = {
    "id": "identifier", "row": "identifier", "account_id": "identifier", "note": "free text", "zip": "identifier",
    "seen": "dates", "sex": "states", "male": "states", "age": "bins", "pay": "bins", "children": "states",
    "dose": "states", "country": "constant", "ill": "states",
}  # fmt: skip
FIT = [name for name, kind in KINDS.items() if kind in ("states", "bins", "constant")]


@pytest.mark.parametrize("kind", ["csv", "pandas", "polars", "parquet"])
def test_kinds_of_columns_whatever_they_come_from(tmp_path: Path, kind: str) -> None:
    frame = people()
    source: object = frame
    if kind == "csv":
        frame.to_csv(source := tmp_path / "a.csv", index=False)
    elif kind == "parquet":
        frame.to_parquet(source := tmp_path / "a.parquet")
    elif kind == "polars":
        source = pl.from_pandas(frame)
    found = describe(source)
    assert {column.name: column.kind for column in found.columns} == KINDS
    assert [column.name for column in found.refused] == ["id", "row", "account_id", "note", "zip", "seen"]
    assert next(column for column in found.columns if column.name == "male").copy_of == "sex"
    with pytest.raises(
        ValueError, match=r"columns 'id' \(identifier: 200 values in 200 cells\), 'row' .* cannot be states"
    ):
        read(source)
    table = read(source, ignore=[column.name for column in found.refused])
    assert list(table.names) == FIT
    assert [variable.ordered for variable in table.variables] == [
        name in ("age", "pay", "children", "dose") for name in FIT
    ]


def test_what_is_said_overrules_kinds() -> None:
    frame = people()
    columns, bins = (
        ["id", "row", "account_id", "seen", "children", "sex"],
        {"row": 4, "account_id": "auto", "children": 2},
    )
    table = read(frame, columns=columns, states=["id", "seen"], bins=bins)
    assert [variable.n_states for variable in table.variables] == [200, 4, 4, 200, 2, 2]
    as_states = read(frame.astype({"id": "category"}), columns=["id", "age"], bins=None)
    assert [variable.n_states for variable in as_states.variables] == [200, 200]


def test_small_tables() -> None:
    assert [column.kind for column in describe(pd.DataFrame({"a": [1], "b": ["x"]})).columns] == ["constant"] * 2
    few = pd.DataFrame({"x": [0.1, 0.2, 0.3, 0.4], "n": [1, 2, 3, 4], "s": list("abcd")})
    assert [column.kind for column in describe(few).columns] == ["bins", "states", "states"]
    assert read(few).variables[0].cuts == (0.3,)
    gone = pd.DataFrame({"x": [None, None], "y": ["a", "b"]})
    assert [(column.kind, column.n_missing) for column in describe(gone).columns] == [("constant", 2), ("states", 0)]


@pytest.mark.parametrize(
    ("cells", "kind", "n_states"),
    [
        (["1", "1.0", "1"] * 4, "constant", 1),
        (["1", "1.00", "1e0"] * 4, "states", 3),
        ([str(2**53), str(2**53 + 1)] * 4, "states", 2),  # one number as doubles
        ([str(2**53), str(2**53 + 2)] * 4, "states", 2),
        ([str(2**60 + k) for k in range(100)], "identifier", None),
        ([str(2**60 + k) for k in range(300)], "bins", 2),
    ],
)
def test_numbers_written_in_several_ways_or_too_large_for_doubles(
    cells: list[str], kind: str, n_states: int | None
) -> None:
    (column,) = describe(pd.DataFrame({"x": cells})).columns
    assert column.kind == kind
    assert (column.variable and column.variable.n_states) == n_states


def test_a_few_words_among_numbers_are_told(tmp_path: Path) -> None:
    ages = [str(18 + i % 40) for i in range(N - 2)] + ["unknown", "unknown"]
    beds = ["1", "2", "3", "more"] * (N // 4)
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["age,beds", *map(",".join, zip(ages, beds, strict=True))]))
    found = describe(path)
    assert [column.words for column in found.columns] == [("unknown",), ()]
    assert "age (unknown); if these mean missing, pass na=['unknown']" in str(found)
    assert "pass --na unknown" in found.text(in_options=True)
    assert [column["words"] for column in found.as_dict()["columns"]] == [["unknown"], []]
    read(path, missing="state", cache=True)
    assert read_and_describe(path, missing="state", cache=True)[1] == describe(path, missing="state")
    assert not describe(path, states="age").columns[0].words
    pay = np.append(RANDOM.normal(size=N - 1), np.inf)
    with pytest.raises(ValueError, match=r"'pay' \(numbers but for 'inf': 200 values in 200 cells\).*na=\['inf'\]"):
        read(pd.DataFrame({"pay": pay}))


def test_floats_with_as_many_values_as_rows_are_never_states() -> None:
    for n in (3, 10, 50, 1000):
        table = read(RANDOM.normal(size=(n, 2)))
        assert all(variable.cuts and 2 <= variable.n_states <= 16 for variable in table.variables)


def test_booleans_are_one_thing(tmp_path: Path) -> None:
    frame = pd.DataFrame({"active": [True, False] * 20, "good": [True, False] * 20})
    frame.to_csv(tmp_path / "python.csv", index=False)
    (tmp_path / "sheet.csv").write_text(
        (tmp_path / "python.csv").read_text().upper().replace("ACTIVE,GOOD", "active,good")
    )
    tables = [read(source) for source in (frame, tmp_path / "python.csv", tmp_path / "sheet.csv", frame.to_numpy())]
    assert {variable.labels for table in tables for variable in table.variables} == {("false", "true")}
    for network in (leafwise.learn(tables[0]), leafwise.learn(frame.astype(int)), leafwise.learn(tables[1])):
        for truth in (True, np.True_, "true", "TRUE", "True"):
            shares = list(network.query("good", given={"active": truth})["good"].values())
            assert shares[1] > 0.9
        assert (read(tmp_path / "sheet.csv", variables=network.variables).codes == tables[0].codes).all()


def test_dates_are_cut_like_numbers_of_days(tmp_path: Path) -> None:
    frame = people()[["seen", "ill"]]
    frame["ill"] = np.where(frame["seen"] < "2024-03-01", "yes", "no")
    table = read(frame, dates="bins")
    assert table.variables[0].labels == ("< 2024-02-29", ">= 2024-02-29")  # 64 parts have about three days each
    network = leafwise.learn(table)
    assert network.query("ill", given={"seen": "2024-02-10"})["ill"]["yes"] > 0.9
    assert network.query("ill", given={"seen": "1.4.2024"})["ill"]["yes"] < 0.1
    new = pd.DataFrame({"seen": ["2023-01-01", "2024/12/31", "2024-03-01 12:30"], "ill": ["no"] * 3})
    assert read(new, variables=network.variables).codes[0].tolist() == [0, 1, 1]
    with pytest.raises(ValueError, match=r"1 cell other than dates such as 2024-01-31 \('5'\)"):
        read(pd.DataFrame({"seen": ["5"], "ill": ["no"]}), variables=network.variables)
    typed = frame.assign(seen=pd.to_datetime(frame["seen"]))
    assert read(typed, dates="bins").variables[0].cuts == table.variables[0].cuts
    with pytest.raises(ValueError, match=r"'seen' \(dates: .*dates='bins'"):
        read(pd.DataFrame({"seen": ["1/2/2024", "3/4/2024"]}), dates="bins")  # nobody can tell which is the month
    named = read(frame, dates="bins", bins={"seen": 3}, binning="quantile")
    assert named.variables == read(frame, dates="bins", bins=3, binning="quantile").variables
    assert named.variables[0].n_states == 3
    with pytest.raises(ValueError, match=r"'seen' \(dates: .*dates='bins'"):
        read(frame, bins={"seen": 3})


@pytest.mark.parametrize("clock", ["9:30", "09:30", "9:30:00", "09:30:00", "9:30:00.25", "9:30:00Z", "9:30:00+01:00"])
def test_dates_may_have_a_time(clock: str) -> None:
    frame = pd.DataFrame({"seen": [f"2024-01-{k}T{clock}" for k in range(10, 30)], "ill": ["no"] * 10 + ["yes"] * 10})
    variables = read(frame, dates="bins").variables
    assert variables[0].labels[0] == "< 2024-01-20T09:30:00"
    new = pd.DataFrame({"seen": [f"19.1.2024 {clock}", f"20.1.2024 {clock}"], "ill": ["no"] * 2})
    assert read(new, variables=variables).codes[0].tolist() == [0, 1]


def test_arcs_are_labelled_by_dates_and_by_all_digits_of_cuts() -> None:
    frame = people()[["seen", "ill"]]
    frame["ill"] = np.where(abs(np.arange(N) - 100) < 40, "yes", "no")
    network = leafwise.learn(read(frame, dates="bins", bins=4, binning="uniform"), target="ill")
    cuts = [label.removeprefix("< ") for label in network.variables[0].labels[:1]]
    assert f"seen < {cuts[0]}" in network["ill"].text()
    near = leafwise.Variable("x", ("< 0.1381941", "0.1381941 to 0.1381942", ">= 0.1381942"), (0.1381941, 0.1381942))
    assert [arc_states(near, frozenset(states)) for states in ({0}, {0, 1}, {1, 2})] == [
        "< 0.1381941",
        "< 0.1381942",
        ">= 0.1381941",
    ]


@pytest.mark.parametrize("size", [1e9, 1e15, 1e18, 1e300])
def test_numbers_beyond_all_dates(size: float) -> None:
    numbers = RANDOM.normal(size=N) * size
    frame = pd.DataFrame({"when": numbers, "late": np.where(numbers > 0, "yes", "no")})
    network = leafwise.learn(frame)
    assert network.query("late", given={"when": 2 * size})["late"]["yes"] > 0.9
    assert (network.predict(frame, "late").labels == frame["late"]).mean() > 0.9


def test_dates_within_a_second_are_told_apart() -> None:
    seen = [f"2024-01-31T12:00:00.{k:03d}" for k in range(100, 180, 2)]
    frame = pd.DataFrame({"seen": seen, "ill": ["no"] * 25 + ["yes"] * 15})
    table = read(frame, dates="bins", target="ill")
    assert table.variables[0].labels == ("< 2024-01-31T12:00:00", ">= 2024-01-31T12:00:00")
    assert table.codes[0].tolist() == table.codes[1].tolist()
    for binning in ("uniform", "quantile"):
        found = read(frame, dates="bins", bins=4, binning=binning)
        assert np.bincount(found.codes[0]).tolist() == [10] * 4
        assert found.variables[0].labels[1][-4:] in (".139", ".140")
        assert (read(frame, variables=found.variables).codes == found.codes).all()
    with pytest.raises(ValueError, match=r"'seen' \(dates: 40 values in 40 cells"):
        read(pd.DataFrame({"seen": [f"2024-01-31T12:00:00.0000000{k}" for k in range(40)]}), dates="bins")


def test_long_labels_and_those_of_many_lines_are_described_in_one() -> None:
    long = "very " * 20 + "much"
    frame = pd.DataFrame({"two\nlines": ["a\nb", "c", "c"] * 9, "long": [long, "no", long] * 9, "yes": [long] * 27})
    assert str(describe(frame)).splitlines()[3:6] == [
        r"two\nlines  states         2        0  a\nb, c",
        "long        states         2        0  no, ...",
        f"yes         constant       1        0  {long[:60]}...",
    ]


def test_what_is_read_is_described_as_it_is_read() -> None:
    frame = people()[FIT]
    table, found = read_and_describe(frame, target="ill")
    assert found is not None
    assert tuple(column.variable for column in found.columns) == table.variables
    assert found.as_dict()["columns"][2]["cuts"] == list(table.variables[2].cuts)
    assert "<table>" in found._repr_html_()
    assert "copies: leave out with ignore=['male']" in str(found)
    assert found.summary(in_options=True).endswith("copies: leave out with --ignore male")


# Cut points


def cost(tables: list[np.ndarray], cuts: tuple[int, ...]) -> float:
    """Minus the log posterior of a way to cut, from the formula."""
    m = len(tables[0])
    total = log(comb(m - 1, len(cuts)))
    for counts in tables:
        n_states = counts.shape[1]
        for low, high in zip((0, *cuts), (*cuts, m), strict=True):
            inside = counts[low:high].sum(axis=0)
            total += lgamma(inside.sum() + n_states) - lgamma(n_states) - sum(lgamma(n + 1) for n in inside)
    return total


@given(st.integers(0, 10**9), st.integers(1, 8), st.integers(1, 3), st.sampled_from([None, 1, 2, 3]))
def test_law_the_best_of_all_ways_to_cut(seed: int, m: int, n_tables: int, most: int | None) -> None:
    random = np.random.default_rng(seed)
    tables = []
    for _ in range(n_tables):
        shares = random.dirichlet(np.ones(random.integers(1, 4)) * 0.4, size=3)[np.sort(random.integers(0, 3, m))]
        tables.append(np.stack([random.multinomial(random.integers(0, 12), share) for share in shares]))
    ways = [cuts for k in range(min(m, most or m)) for cuts in combinations(range(1, m), k)]
    best = min((cost(tables, cuts) for cuts in ways), default=inf)
    found = best_bins(tables, most)
    assert tuple(found) in ways
    assert cost(tables, tuple(found)) == pytest.approx(best, abs=1e-9)


def numbers(values: np.ndarray) -> Numbers:
    return Numbers(*np.unique(values, return_inverse=True))


def test_cuts_are_where_what_is_learned_changes() -> None:
    values = RANDOM.uniform(0, 10, 5000)
    towards = States((np.digitize(values, [2.5, 7.0]) == 1).astype(np.int64), 2)
    cuts = np.array(cuts_towards(numbers(values), [towards]))  # a change inside of a part may leave it a bin of its own
    assert 2 <= len(cuts) <= 4
    assert (abs(cuts[:, None] - [2.5, 7.0]).min(axis=1) < 10 / 64 + 0.05).all()
    noise = States(RANDOM.integers(0, 2, 5000), 2)
    assert np.allclose(cuts_towards(numbers(values), [noise]), np.quantile(values, [0.25, 0.5, 0.75]), atol=0.02)
    assert cuts_towards(numbers(np.ones(9)), [noise]) == ()


def test_missing_numbers_do_not_move_the_cuts() -> None:
    values = RANDOM.normal(size=400)
    towards = (values > 0.5).astype(np.int64)
    whole = numbers(values)
    gaps = Numbers(whole.values, np.concatenate([whole.places, np.full(100, -1)]))
    longer = States(np.concatenate([towards, np.ones(100, np.int64)]), 2)
    assert cuts_towards(gaps, [longer]) == cuts_towards(whole, [States(towards, 2)])


def test_columns_that_tell_of_each_other_are_found() -> None:
    one = RANDOM.integers(0, 4, 3000)
    columns = [
        States(one, 4),
        States((one + RANDOM.integers(0, 2, 3000)) % 4, 4),
        States(RANDOM.integers(0, 3, 3000), 3),
    ]
    columns += [States((one > 1).astype(np.int64), 2), States(np.arange(3000), 3000)]
    found = related(columns, [0, 2])
    assert [sorted(rows) for rows in found] == [[1, 3], []]
    assert few_states(np.arange(100), 100).n == 64


def test_bins_follow_what_is_learned(tmp_path: Path) -> None:
    frame = people()[["age", "pay", "sex", "ill"]]
    age = read(frame, target="ill").variables[0]
    assert len(age.cuts) == 1
    assert age.cuts[0] == pytest.approx(52, abs=3)
    network = leafwise.learn(frame, target="ill")
    assert network.variables[0] == age
    assert leafwise.learn(frame, target="ill", bins={"age": 5}).variables[0].n_states == 5
    assert read(frame, binning="quantile").variables[0].n_states == 6  # about the cube root of 200
    assert read(frame, bins=3, binning="bayes", target="ill").variables[0].cuts == age.cuts
    price = read(frame, target="age").variables[0]
    assert price.n_states == 6  # a target of numbers has equal parts


def test_the_same_cuts_every_time_whatever_the_order_of_columns() -> None:
    frame = people()[FIT]
    cuts = {variable.name: variable.cuts for variable in read(frame).variables}
    assert {variable.name: variable.cuts for variable in read(frame).variables} == cuts
    assert {variable.name: variable.cuts for variable in read(frame[FIT[::-1]], target="ill").variables} == {
        variable.name: variable.cuts for variable in read(frame, target="ill").variables
    }
