"""leafwise learn --missing infer and --hidden, leafwise impute, and what they refuse."""

import json
import os
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from leafwise.cli import progress
from leafwise.learner import start_search

pytestmark = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="rounds need compiled loops")


@pytest.fixture
def gaps(data):
    lines = data.read_text().splitlines()
    cut = [
        ",".join("" if (row * 7 + k) % 11 == 0 else cell for k, cell in enumerate(line.split(",")))
        for row, line in enumerate(lines[1:])
    ]
    path = data.with_name("gaps.csv")
    path.write_text("\n".join([lines[0], *cut]) + "\n")
    return path


def test_learning_from_holes(leafwise, gaps, tmp_path):
    output = tmp_path / "model.json"
    found = leafwise("learn", gaps, "--missing", "infer", "-o", output, "--json").object
    assert found["cases"] == 400
    assert found["missing"] > 100
    assert found["stopped"] == "no round gains"
    assert json.loads(output.read_text())["learned"]["seed"] == 1
    again = leafwise(
        "learn", gaps, "--missing", "infer", "-o", tmp_path / "again.json", "--json", "--threads", 1
    ).object
    assert {**again, "seconds": 0, "output": ""} == {**found, "seconds": 0, "output": ""}
    assert (tmp_path / "again.json").read_text() == output.read_text()
    stacked = leafwise("learn", gaps, "--missing", "infer", "--leaves", "stacked", "-o", output, "--json").object
    assert stacked["stacked"]
    assert stacked["log_score"] == found["log_score"]
    lines = leafwise("learn", gaps, "--missing", "infer", "-o", output, "--verbose").stderr.splitlines()
    assert sum("all variables" in line for line in lines) == found["rounds"]
    assert leafwise("evaluate", output, gaps, "--json").object["cases"] == 400
    assert leafwise("predict", output, gaps, "--target", "rain").code == 0
    refused = leafwise("learn", gaps, "--missing", "infer", "--tables", "-o", output).complaint
    assert "takes no --missing infer" in refused


def test_a_hidden_cause(leafwise, data, tmp_path):
    output = tmp_path / "model.json"
    assert leafwise("learn", data, "--hidden", "2,3", "-o", output, "-q").code == 0
    shown = leafwise("show", output).stdout
    assert "hidden1, which nobody observed, stands for" in shown
    assert "hidden2, which nobody observed, stands for" in shown
    assert leafwise("evaluate", output, data, "--json").object["cases"] == 400
    assert "hidden causes" in leafwise("score", output, data).complaint
    page = tmp_path / "page.html"
    assert leafwise("show", output, "--html", page).code == 0
    assert leafwise("learn", data, "--hidden", "auto", "-o", output, "-q").code == 0


def test_filling_in(leafwise, gaps, tmp_path):
    output, full = tmp_path / "model.json", tmp_path / "full.csv"
    assert leafwise("learn", gaps, "--missing", "infer", "-o", output, "-q").code == 0
    assert leafwise("impute", output, gaps, "-o", full).stdout == f"400 rows saved in {full}\n"
    for old, new in zip(gaps.read_text().splitlines(), full.read_text().splitlines(), strict=True):
        for one, other in zip(old.split(","), new.split(","), strict=True):
            assert other
            assert one in ("", other)
    keyed = gaps.with_name("keyed.csv")
    keyed.write_text("".join(f"{line},k{row}\n" for row, line in enumerate(gaps.read_text().splitlines())))
    assert leafwise("impute", output, keyed).stdout == full.read_text()  # without the column that is not known
    chances = leafwise("impute", output, gaps, "--how", "mean-probabilities").stdout.splitlines()
    assert chances[0].startswith("cloudy=no,cloudy=yes,")
    assert leafwise("impute", output, gaps, "--how", "most-probable", "-o", full, "--json").object["rows"] == 400
    assert "name a file" in leafwise("impute", output, gaps, "--json").complaint
    assert leafwise("learn", gaps, "--missing", "infer", "--target", "rain", "-o", output, "-q").code == 0
    complaint = leafwise("impute", output, gaps).complaint
    assert "is missing in some row" in complaint
    assert "--missing" not in complaint  # which has no other choice here
    assert leafwise("evaluate", output, gaps).complaint.endswith("leave such cases out with --missing drop\n")
    complaint = leafwise("predict", output, gaps, "--target", "rain").complaint  # which answers for every row
    assert complaint.endswith("to sum over: learn all variables, without a target\n")
    assert "drop" not in leafwise("predict", output, gaps, "--target", "rain", "--missing", "error").complaint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--hidden", "1"], "'1' is no number of states"),
        (["--hidden", "4;4"], "is no number of states"),
        (["--hidden", "2,65535"], "give a number from 2 to 65534"),
        (["--missing", "infer", "--search", "restarts", "--keep", "2"], "--missing infer takes no --keep"),
        (["--hidden", "auto", "--networks", "3"], "say how many states there are, as with --hidden 4"),
        (["--hidden", "2", "--target", "rain"], "a target was given"),
        (["--completions", "0"], "--completions"),
        (["--missing", "infer", "--leaves", "average"], "--missing infer takes no --leaves average:"),
        (["--hidden", "2", "--leaves", "stacked"], "--leaves stacked takes no --hidden"),
        (
            ["--missing", "infer", "--leaves", "stacked", "--target", "rain"],
            "--missing infer, with --leaves stacked, takes no --target",
        ),
    ],
)
def test_what_is_refused(leafwise, data, tmp_path, options, message):
    assert message in leafwise("learn", data, "-o", tmp_path / "model.json", *options).complaint


def test_who_learns_in_known_states_gets_advice_that_learn_takes(leafwise, model, gaps, tmp_path):
    output, new = tmp_path / "other.json", gaps.with_name("new.csv")
    helps = "pass --missing infer to infer them from their rows, or --missing drop to leave these rows out\n"
    assert leafwise("learn", gaps, "--start", model, "-o", output).complaint.endswith(helps)
    prior = ("--prior", f"network:{model}:10", "-o", output, "--missing")
    assert leafwise("learn", gaps, *prior, "state").complaint.endswith(helps)
    assert leafwise("learn", gaps, *prior, "drop", "-q").code == 0
    new.write_text(gaps.read_text() + "no,heavy,no,no\n")
    complaint = leafwise("learn", new, *prior, "infer").complaint
    assert "unseen labels ('heavy')" in complaint
    assert complaint.endswith("or learn again with such cases\n")


def test_a_column_without_a_cell(leafwise, tmp_path):
    path = tmp_path / "empty.csv"
    path.write_text("a,b\nx,\ny,\nx,\n")
    complaint = leafwise("learn", path, "--missing", "infer", "-o", tmp_path / "model.json").complaint
    assert "'b' has no cell" in complaint
    assert "--ignore b" in complaint
    assert "--hidden 2" in complaint


@pytest.mark.parametrize("hidden", [None, "auto"])
def test_a_round_that_is_narrated_can_be_stopped(monkeypatch, hidden):
    monkeypatch.setattr(progress, "asked_to_stop", lambda: nullcontext(SimpleNamespace(signal=2)))
    rows = np.random.default_rng(1).integers(0, 2, (200, 4)).astype(float)
    rows[::7, 1] = np.nan
    search = start_search(rows, missing="infer", hidden=hidden)
    assert progress.narrate(search, ("x1", "x2", "x3", "x4")) == 2
    assert search.network.learned["rounds"] == 0
    assert [node.counts.sum() for node in search.network.nodes] == pytest.approx([200] * 4)
