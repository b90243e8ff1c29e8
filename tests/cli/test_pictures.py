"""leafwise show as a picture or a page, and leafwise explore."""

import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from xml.etree import ElementTree

import pytest

import leafwise as package
from leafwise.report.svg import _has_fonts

COMMAND = [sys.executable, "-c", "from leafwise.cli import main; main()"]


@pytest.mark.parametrize("node", [(), ("--node", "wet grass")])
def test_show_saves_pictures(leafwise, model, tmp_path, node):
    for end in ("svg", "dot"):
        output = tmp_path / f"picture.{end}"
        assert leafwise("show", model, *node, "-o", output, "--json").object == {"output": str(output)}
        assert "wet grass" in output.read_text(encoding="utf-8")
    ElementTree.parse(tmp_path / "picture.svg")
    pytest.importorskip("resvg_py", reason="PNG needs the extra plot")
    if not _has_fonts():
        pytest.skip("no font that resvg knows is installed")
    assert "saved" in leafwise("show", model, *node, "-o", tmp_path / "picture.png").stdout
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_show_saves_a_page(leafwise, model, tmp_path):
    output = tmp_path / "page.html"
    assert str(output) in leafwise("show", model, "--html", output).stdout
    text = output.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert '"name":"wet grass"' in text


def test_show_refuses_what_it_cannot_save(leafwise, model, tmp_path):
    assert ".svg, .png or .dot" in leafwise("show", model, "-o", tmp_path / "picture.gif").complaint
    assert "also read" in leafwise("show", model, "--html", model).complaint
    assert "cannot write '-'" in leafwise("show", model, "--html", "-").complaint
    assert "does not exist" in leafwise("show", model, "-o", tmp_path / "no" / "picture.svg").complaint
    assert "--node" in leafwise("show", model, "--node", "rain", "--html", tmp_path / "page.html").complaint
    assert "'wet grass'" in leafwise("show", model, "--node", "wetgrass", "-o", tmp_path / "picture.svg").complaint
    both = leafwise("show", model, "-o", tmp_path / "page.svg", "--html", tmp_path / "page.svg")
    assert "different names" in both.complaint
    assert list(tmp_path.glob("p*")) == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_explore_serves_until_it_is_interrupted(model):
    pytest.importorskip("waitress", reason="the server needs the extra explore")
    with subprocess.Popen(
        [*COMMAND, "explore", str(model)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        address = re.search(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", process.stdout.readline())
        assert address
        with urllib.request.urlopen(address[0], timeout=60) as page:
            assert "wet grass" in page.read().decode()
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(address[0][:-5], timeout=60)
        assert refused.value.code == 403
        refused.value.close()
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, errors) == (130, "")


def test_explore_refuses(leafwise, tmp_path):
    assert "nowhere.json" in leafwise("explore", "nowhere.json").complaint


def test_show_folds_a_large_graph_unless_asked_for_all_of_it(leafwise, tmp_path):
    alarm = tmp_path / "alarm.json"
    package.examples.alarm().save(alarm)
    cases, model = tmp_path / "cases.csv", tmp_path / "model.json"
    leafwise("sample", alarm, "-n", 20_000, "-o", cases)
    leafwise("learn", cases, "--target", "HR", "-o", model, "--quiet")
    folded, whole = (leafwise("show", model, "--node", "HR", *more).stdout for more in ((), ("--whole",)))
    assert "With --whole" in folded
    assert folded.count("\n") < 66 < whole.count("\n")
    counted = leafwise("show", model, "--node", "HR", "--cases", cases).stdout
    assert re.search(r"▸ [\d,]+ cases, \d+ tests?, ", counted)
    sizes = {}
    for more in ((), ("--whole",), ("--cases", cases)):
        leafwise("show", model, "--node", "HR", "-o", tmp_path / "hr.svg", *more)
        root = ElementTree.parse(tmp_path / "hr.svg").getroot()
        sizes[more] = sorted(float(root.get(key)) for key in ("width", "height"))
    assert sizes[()][0] < 1250 > sizes["--cases", cases][0]
    assert sizes[()][1] < 1750 > sizes["--cases", cases][1] < sizes[("--whole",)][1]


def test_cases_with_new_labels_are_refused_without_advice_that_show_does_not_take(leafwise, model, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("cloudy,rain,sprinkler,wet grass\nyes,,no,no\nno,heavy,yes,yes\n")
    complaint = leafwise("show", model, "--node", "wet grass", "--cases", rows).complaint
    assert "unseen labels ('heavy')" in complaint
    assert "--unseen" not in complaint
    rows.write_text("cloudy,rain,sprinkler,wet grass\nyes,,no,no\nno,yes,yes,yes\n,no,no,no\n")
    assert "cases" in leafwise("show", model, "--node", "wet grass", "--cases", rows).stdout


@pytest.mark.parametrize("option", [("--whole",), ("--cases", "cases.csv")])
def test_folding_is_about_one_graph(leafwise, model, tmp_path, option, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cases.csv").write_text("a\n1\n")
    assert "--node" in leafwise("show", model, *option).complaint
    for other in (("--json",), ("-o", "graph.dot")):
        assert "leave it out" in leafwise("show", model, "--node", "wet grass", *option, *other).complaint
    if "--cases" in option:
        assert "cloudy" in leafwise("show", model, "--node", "wet grass", *option).complaint
        assert "also read" in leafwise("show", model, "--node", "wet grass", *option, "-o", "cases.csv").complaint
