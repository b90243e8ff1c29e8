"""The site builds without a warning, documents every public name, and loads nothing from other machines."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import leafwise
from leafwise.cli import cli, run

ROOT = Path(__file__).parents[2]
FOREIGN = re.compile(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"?(?:https?:)?//[^>]*>")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed: pip install 'leafwise[docs]'")
    folder = tmp_path_factory.mktemp("site")
    # not --quiet: it drops the warnings before --strict can count them
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_it_asks_nothing_of_other_machines(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    assert not [found for page in pages for found in FOREIGN.findall(page.read_text(encoding="utf-8"))]


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    text = (site / "reference.html").read_text(encoding="utf-8")
    assert [name for name in leafwise.__all__ if f'id="leafwise.{name}"' not in text] == []


def test_every_command_has_its_help(site: Path) -> None:
    text = (site / "command-line.html").read_text(encoding="utf-8")
    assert [name for name in cli.commands if f'id="leafwise-{name}"' not in text] == []
    assert "--structure-prior" in text


def test_pictures_are_those_of_the_demo(tmp_path: Path) -> None:
    model = str(tmp_path / "model.json")
    assert run(["learn", "--example", "alarm", "--quiet", "--output", model]) == 0
    for name, options in [("shunt", ["--node", "SHUNT"]), ("alarm", [])]:
        made = tmp_path / f"{name}.svg"
        assert run(["show", model, *options, "--output", str(made)]) == 0
        stored = ROOT / "docs" / "pictures" / made.name
        assert made.read_bytes() == stored.read_bytes(), f"{stored} is out of date: make pictures"


@pytest.mark.parametrize("name", ["alarm", "classification"])
def test_notebooks_show_what_is_stored(name: str) -> None:
    pytest.importorskip("nbclient", reason="nbclient is not installed: pip install nbclient ipykernel")
    script, notebook = ROOT / "docs" / "scripts" / "run_notebooks.py", ROOT / "docs" / "notebooks" / f"{name}.ipynb"
    command = [sys.executable, str(script), str(notebook), "--check"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
