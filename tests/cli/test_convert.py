"""leafwise convert: from one file format to another."""

import gzip
import io
import json

import pytest

from leafwise.formats import bif
from leafwise.formats import json as own


def test_there_and_back(leafwise, model, tmp_path):
    first, second = tmp_path / "garden.bif", tmp_path / "again.json"
    done = leafwise("convert", model, first)
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith("4 variables and ")
    assert done.stdout.count("\n") == 1
    found = leafwise("convert", first, second, "--json").object
    assert (found["from"], found["to"], found["variables"], found["output"]) == ("BIF", "JSON", 4, str(second))
    assert own.load(second) == bif.load(first)
    assert own.load(second).variables == own.load(model).variables


def test_a_table_too_large_is_refused_and_allowed_on_demand(leafwise, model, tmp_path):
    target = tmp_path / "garden.bif"
    complaint = leafwise("convert", model, target, "--most-cells", 2).complaint
    assert "cells, more than the limit of 2" in complaint
    assert not target.exists()
    assert leafwise("convert", model, target, "--most-cells", 100).code == 0


@pytest.mark.parametrize("text", ["network x {\n  oops", "{}", ""])
def test_bad_input_is_one_line_and_nothing_is_written(leafwise, text, tmp_path):
    source, target = tmp_path / "bad.bif", tmp_path / "out.json"
    source.write_text(text)
    complaint = leafwise("convert", source, target).complaint
    assert "bad.bif: line " in complaint
    assert "column" in complaint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.bif"]


def test_what_is_refused_at_once(leafwise, model, tmp_path):
    assert "no format of networks" in leafwise("convert", model, tmp_path / "x.csv").complaint
    assert "it is also read from" in leafwise("convert", model, model).complaint
    assert "standard output is not supported here: name a file" in leafwise("convert", model, "-").complaint
    assert "does not exist" in leafwise("convert", model, tmp_path / "no" / "x.bif").complaint
    assert "does not exist" in leafwise("convert", tmp_path / "none.bif", tmp_path / "x.json").complaint
    assert "most-cells" in leafwise("convert", model, tmp_path / "x.bif", "--most-cells", 0).complaint


def test_from_standard_input(leafwise, model, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(model.read_bytes())))
    assert leafwise("convert", "-", tmp_path / "garden.bif").code == 0
    assert leafwise("convert", model, tmp_path / "same.bif").code == 0
    assert (tmp_path / "garden.bif").read_bytes() == (tmp_path / "same.bif").read_bytes()


def test_an_old_file_stays_when_the_new_one_fails(leafwise, model, tmp_path):
    target = tmp_path / "x.bif"
    target.write_text("old")
    assert leafwise("convert", model, target, "--most-cells", 1).code == 2
    assert target.read_text() == "old"
    assert leafwise("convert", model, target).code == 0
    assert json.loads(model.read_text())["variables"][0]["name"] in target.read_text()


# 32 tables of 2 ** 15 numbers, each written in a line
NAMES = [f"x{k}" for k in range(46)]
BIF = "\n".join(
    [
        "network x { }",
        *(f"variable {name} {{ type discrete [2] {{ a, b }}; }}" for name in NAMES),
        *(f"probability ( {name} ) {{ table 0.5, 0.5; }}" for name in NAMES[:14]),
        *(f"probability ( {name} | {', '.join(NAMES[:14])} ) {{ default 0.5, 0.5; }}" for name in NAMES[14:]),
    ]
)


def test_the_command_line_raises_the_limits(leafwise, tmp_path):
    source, target = tmp_path / "many.bif", tmp_path / "many.uai"
    source.write_text(BIF)
    assert "with larger --most-cells" in leafwise("convert", source, target).complaint
    assert not target.exists()
    assert "more than 1,030,000, the limit" in leafwise("convert", source, target, "--most-cells", 1_030_000).complaint
    packed = tmp_path / "many.bif.gz"
    packed.write_bytes(gzip.compress(source.read_bytes()))
    assert "raise --most-bytes" in leafwise("convert", packed, target, "--most-bytes", 100).complaint
    assert leafwise("convert", packed, target, "--most-bytes", 10**20, "--most-cells", 10**20).code == 0
