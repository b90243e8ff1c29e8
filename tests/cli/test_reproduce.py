"""leafwise reproduce: what it prints, and the files it takes."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import leafwise
from leafwise.cli import run
from leafwise.cli.reproduce import PARTS, WHAT
from leafwise.examples import alarm
from leafwise.experiments.alarm_tables import findings
from leafwise.experiments.published import COLUMNS
from leafwise.experiments.recovery import distance
from leafwise.experiments.section6 import SLICES, drawn, drawn_series, from_series, is_found
from leafwise.experiments.sequences import read_sequences

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="whole experiments need compiled loops"
)

LINES = ["+,S10,\t\tacgta", "+,S11,acgtt", "-,S12, ccgta", "-,S13,ccgtt", "+,S14,acgaa", "-,S15,ccgaa"]


@pytest.fixture
def uci(tmp_path):
    path = tmp_path / "promoters.data"
    path.write_text("\n".join(LINES * 3) + "\n")
    return path


@pytest.fixture
def tidy(tmp_path):
    path = tmp_path / "promoters.csv"
    rows = [[line[0], *line.split(",")[2].strip()] for line in LINES * 3]
    path.write_text("\n".join(",".join(row) for row in [["class", *"abcde"], *rows]) + "\n")
    return path


def test_both_layouts_hold_the_same_cases(uci, tidy):
    one, other = read_sequences(uci), read_sequences(tidy)
    assert [v.labels for v in one.variables] == [v.labels for v in other.variables]
    assert (one.codes == other.codes).all()


def test_sequences_of_different_lengths_are_refused(tmp_path):
    path = tmp_path / "bad.data"
    path.write_text("+,a,acgt\n-,b,acg\n")
    with pytest.raises(ValueError, match="differ in length"):
        read_sequences(path)


@pytest.mark.parametrize("layout", ["uci", "tidy"])
def test_table_1_from_a_file(layout, request, capsys):
    assert run(["reproduce", "table1", "--data", str(request.getfixturevalue(layout)), "--rounds", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["table1"]
    assert found["columns"] == ["C", "B", "CB", "CM", "BM", "CBM"]
    assert set(found["leafwise"]) == set(found["paper"]) == {"uniform", *(f"bdeu:{k}" for k in (10, 20, 30, 40, 50))}
    for rows in found["leafwise"].values():
        assert rows["best-first"][0] == 0
        best, restarts, splits = (np.array(rows[name]) for name in ("best-first", "restarts", "splits-first"))
        assert (restarts >= np.maximum(best, splits) - 1e-9).all()


def test_alarm_tables_agree_with_each_other(capsys):
    assert run(["reproduce", "table6", "--seeds", "1", "--json"]) == 0
    joint = json.loads(capsys.readouterr().out)["table6"]["leafwise"]
    for table, row in (("table3", "S"), ("table5", "C")):
        assert run(["reproduce", table, "--seeds", "1", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)[table]["leafwise"] == joint[row]
    assert run(["reproduce", "table4", "--seeds", "1", "--markdown"]) == 0
    assert capsys.readouterr().out.startswith("**Table 4")


def test_tables_are_written_into_a_page(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("Before.\n\n<!-- begin table3 -->\nold\n<!-- end table3 -->\n\nAfter.\n")
    assert run(["reproduce", "table3", "--seeds", "1", "--write", str(page)]) == 0
    assert capsys.readouterr().out == ""
    assert run(["reproduce", "table3", "--seeds", "1", "--markdown"]) == 0
    table = capsys.readouterr().out
    expected = f"Before.\n\n<!-- begin table3 -->\n\n{table}\n<!-- end table3 -->\n\nAfter.\n"
    assert page.read_text() == expected
    assert run(["reproduce", "table3", "--seeds", "1", "--write", str(page)]) == 0
    assert page.read_text() == expected


def test_the_page_has_a_place_for_every_table():
    text = Path(__file__).resolve().parents[2].joinpath("docs", "paper.md").read_text(encoding="utf-8")
    for name in (*WHAT, *PARTS["section6"]):
        table = text.partition(f"<!-- begin {name} -->\n\n**")[2].partition(f"\n\n<!-- end {name} -->")[0]
        assert "\n| " in table, name


def test_findings_count_what_holds():
    scores = np.zeros((2, 3, len(COLUMNS)))
    scores[:, :, [COLUMNS.index(o) for o in ("CM", "BM", "CBM")]] = 5.0
    scores[0, 0, 0] = -1.0
    held = [(finding.held, finding.n) for finding in findings(scores)]
    assert held == [(18, 18), (9, 12), (0, 4), (0, 6), (0, 2)]


def test_a_network_is_at_no_distance_from_itself():
    assert distance(alarm(), alarm()) == 0


def test_drawn_networks_hold_the_papers_example():
    assert all(is_found(drawn(seed)) for seed in range(1, 4))
    assert drawn(1) == drawn(1) != drawn(2)
    assert not is_found(leafwise.learn(leafwise.sample(drawn(1), 500, seed=1), search=leafwise.LeafSearch("CBM")))


def test_series_are_more_probable_where_parameters_are_tied_over_time():
    network = drawn_series().unroll(SLICES)
    table, new = leafwise.sample(network, 100, seed=1), leafwise.sample(network, 500, seed=2)
    found = [leafwise.log_probabilities(learned, new).mean() for _, learned in from_series(drawn_series(), table)]
    assert max(found[1:]) < found[0] < leafwise.log_probabilities(network, new).mean()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table1"], "promoters.csv"),
        (["table9"], "table9"),
        (["table2", "--data", "nowhere.csv"], "nowhere.csv"),
        (["all"], "promoters.csv: name its folder with --data-dir"),
        (["all", "--data-dir", "."], "promoters.csv in '.': put the file there"),
        (["all", "--data", "page.md"], "with --data-dir"),
        (["section6", "--data", "page.md"], "with --data-dir"),
        (["table3", "--data", "page.md"], "table3 takes none: leave it out"),
        (["section6"], "--data-dir"),
        (["section6", "--sets", "asia"], "asia"),
        (["section6", "--sets", "car", "--data-dir", "."], "car.csv"),
        (["table3", "--json", "--markdown"], "give one of them"),
        (["table3", "--write", "page.md", "--markdown"], "give one of them"),
        (["table3", "--write", "page.md"], "begin table3"),
    ],
)
def test_what_is_refused(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tmp_path.joinpath("page.md").write_text("no marks\n")
    assert run(["reproduce", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1
