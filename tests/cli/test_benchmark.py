"""leafwise benchmark density: what it prints, what it keeps, what it refuses."""

import json
import random

import pytest

from leafwise.experiments import density
from leafwise.experiments.published import DENSITY, DENSITY_SOURCES


def rows(n, seed):
    draw = random.Random(seed)
    cases = []
    for _ in range(n):
        a = int(draw.random() < 0.5)
        b = a if draw.random() < 0.9 else 1 - a
        cases.append(f"{a},{b},{int(draw.random() < 0.2)},0")
    return "\n".join(cases) + "\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two data sets, one of them in a folder debd; and few searches."""
    monkeypatch.setattr(density, "KAPPAS", (0.01, 0.1))
    (tmp_path / "debd").mkdir()
    for place, name in ((tmp_path, "nltcs"), (tmp_path / "debd", "dna")):
        for seed, part in enumerate(density.PARTS):
            (place / f"{name}.{part}.csv").write_text(rows(60, seed))
    return tmp_path


def test_one_object_with_ours_beside_the_published(leafwise, folder):
    result = leafwise("benchmark", "density", "--data-dir", folder, "--sets", "nltcs, dna", "--json")
    assert (result.code, result.stderr) == (0, "")
    found = result.object
    assert list(found["sets"]) == list(found["published"]) == ["nltcs", "dna"]
    assert found["published"]["dna"]["WinMine"] == DENSITY["dna"][0]
    assert set(found["sources"]) == set(DENSITY_SOURCES)
    outcome = found["sets"]["nltcs"]
    assert (outcome["cases"], outcome["variables"], outcome["searches"]) == (60, 4, 6)
    assert outcome["choice"]["arcs"] == 1
    assert -2.4 < outcome["choice"]["valid"] < -0.9
    assert -2.4 < outcome["test"] < -0.9


def test_tables_for_people(leafwise, folder):
    plain = leafwise("benchmark", "density", "--data-dir", folder, "--sets", "nltcs")
    marked = leafwise("benchmark", "density", "--data-dir", folder, "--sets", "nltcs", "--markdown")
    assert "WinMine" in plain.stdout
    assert "WinMine's test value, to its two decimals: 1 of 1." in plain.stdout
    assert marked.stdout.startswith("**")
    assert "| nltcs |" in marked.stdout


def test_finished_sets_are_not_run_again(leafwise, folder, tmp_path, monkeypatch):
    kept, ran = tmp_path / "kept.json", []
    run = density.best_on_valid

    def watched(train, valid, test, limits, tell):
        ran.append(limits.seconds)
        return run(train, valid, test, limits, tell)

    monkeypatch.setattr(density, "best_on_valid", watched)
    command = ["benchmark", "density", "--data-dir", folder, "--results", kept, "--json"]
    first = leafwise(*command, "--sets", "nltcs").object["sets"]
    both = leafwise(*command, "--sets", "dna,nltcs").object["sets"]
    assert len(ran) == 2
    assert both["nltcs"] == first["nltcs"]
    assert leafwise(*command, "--sets", "nltcs", "--seconds", 5).object["sets"]["nltcs"]["limit"] == 5
    assert ran == [None, None, 5]
    assert set(json.loads(kept.read_text())["sets"]) == {"nltcs", "dna"}


def test_an_interrupt_says_where_the_results_are(leafwise, folder, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(density, "best_on_valid", interrupted)
    found = leafwise("benchmark", "density", "--data-dir", folder, "--sets", "dna", "--results", tmp_path / "k.json")
    assert (found.code, found.stdout) == (130, "")
    assert "k.json" in found.stderr


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--sets", "nltcs,netflix"], "'netflix'"),
        (["--sets", ""], "data set"),
        (["--sets", "plants"], "plants.train.csv.gz"),
        ([], "msnbc.train.csv.gz"),
        (["--sets", "nltcs", "--seconds", "soon"], "--seconds"),
        (["--sets", "nltcs", "--json", "--markdown"], "one of them"),
        (["--sets", "nltcs", "--results", "nowhere/kept.json"], "nowhere"),
    ],
)
def test_bad_options_are_one_line(leafwise, folder, arguments, word):
    assert word in leafwise("benchmark", "density", "--data-dir", folder, *arguments).complaint


@pytest.mark.parametrize(
    "text", ["", "[]", '{"format": "x"}', '{"format": "leafwise-density", "version": 1, "sets": 3}']
)
def test_files_that_hold_no_results(leafwise, folder, tmp_path, text):
    kept = tmp_path / "kept.json"
    kept.write_text(text)
    command = ["benchmark", "density", "--data-dir", folder, "--sets", "nltcs", "--results", kept]
    assert "no file of results" in leafwise(*command).complaint
    assert kept.read_text() == text


def test_data_that_does_not_fit(leafwise, folder):
    command = ["benchmark", "density", "--data-dir", folder, "--sets", "nltcs"]
    (folder / "nltcs.valid.csv").write_text("0,1,2,0\n")
    assert "nltcs.valid.csv" in leafwise(*command).complaint
    (folder / "nltcs.valid.csv").write_text("0,1,0\n")
    assert "have 4, 3, 4 columns" in leafwise(*command).complaint
    (folder / "nltcs.valid.csv").write_text("")
    assert "empty" in leafwise(*command).complaint
    assert "--data-dir" in leafwise("benchmark", "density").complaint
