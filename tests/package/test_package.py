"""The wheel and the source archive: built, installed into an empty environment, and used there.

The environment has what `leafwise` itself needs and nothing else: linked from the one that runs the tests, or, with
LEAFWISE_INSTALL_ALL=1 (`make package`), fetched and installed by pip as for a user.
"""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="hatchling, which builds the package, is not installed")

ROOT = Path(__file__).parents[2]
WHOLE = os.environ.get("LEAFWISE_INSTALL_ALL") == "1"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CASES = "rain,wet\n" + "yes,yes\nno,no\n" * 20


def call(*command: object, **options: object) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    call(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    return folder


def wheel_of(folder: Path) -> Path:
    return next(folder.glob("*.whl"))


def needed(name: str, found: dict[str, Distribution]) -> dict[str, Distribution]:
    """What a package needs, and what that needs, without extras."""
    for requirement in distribution(name).requires or ():
        other = re.match(r"[\w.-]+", requirement)
        assert other is not None
        if ";" not in requirement and other[0].lower() not in found:
            found[other[0].lower()] = distribution(other[0])
            needed(other[0], found)
    return found


def link(package: Distribution, place: Path) -> None:
    tops = {file.parts[0] for file in package.files or () if file.parts[0] not in ("..", "__pycache__")}
    for top in tops:
        source = Path(str(package.locate_file(top)))
        if source.exists() and not (place / top).exists():
            (place / top).symlink_to(source)


@pytest.fixture(scope="module")
def python(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with nothing but the wheel and what it needs."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, with_pip=False, symlinks=True)
    interpreter = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", interpreter, "install", "--quiet"]
    if WHOLE:
        call(*pip, wheel_of(built))
        return interpreter
    call(*pip, "--no-deps", wheel_of(built))
    place = next((folder / "lib").glob("python*/site-packages"))
    for package in needed("leafwise", {}).values():
        link(package, place)
    return interpreter


def used(python: Path, folder: Path, *arguments: str) -> str:
    # Nothing need be compiled to see that everything is there; `make package` compiles.
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "0" if WHOLE else "1", "PYTHONPATH": ""}
    return call(python, "-W", "error", "-m", "leafwise", *arguments, cwd=folder, env=environment)


def test_it_is_used_in_an_empty_environment(python: Path, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text(CASES)
    assert used(python, tmp_path, "--version") == f"leafwise {PROJECT['version']}\n"
    used(python, tmp_path, "learn", "data.csv", "-o", "model.json", "--quiet")
    assert "wet" in used(python, tmp_path, "show", "model.json")
    assert "0.9" in used(python, tmp_path, "query", "model.json", "--target", "wet", "--given", "rain=yes")
    used(python, tmp_path, "predict", "model.json", "data.csv", "--target", "wet", "-o", "out.csv")
    used(python, tmp_path, "show", "model.json", "-o", "model.svg", "--html", "model.html")
    assert (tmp_path / "model.html").read_text().startswith("<!")
    code = "import leafwise as l; [getattr(l, name) for name in l.__all__]; print(l.__file__, l.__version__)"
    place, version = call(python, "-c", code, cwd=tmp_path).split()
    assert version == PROJECT["version"]
    assert Path(place).is_relative_to(python.parents[1])
    assert (python.parent / "leafwise").is_file()


def test_what_is_not_installed_is_said_in_a_line(python: Path, tmp_path: Path) -> None:
    if WHOLE:
        pytest.skip("said of the environment that is linked together")
    (tmp_path / "data.csv").write_text(CASES)
    used(python, tmp_path, "learn", "data.csv", "-o", "model.json", "--quiet")
    for arguments, extra in ((["explore", "model.json"], "explore"), (["show", "model.json", "-o", "a.png"], "plot")):
        command = [python, "-m", "leafwise", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 2
        assert f"pip install 'leafwise[{extra}]'" in done.stderr


def test_the_wheel_has_all_files_and_no_others(built: Path) -> None:
    with zipfile.ZipFile(wheel_of(built)) as wheel:
        inside = {name for name in wheel.namelist() if name.startswith("leafwise/")}
        metadata = next(wheel.read(name).decode() for name in wheel.namelist() if name.endswith("METADATA"))
    files = [file.relative_to(ROOT / "src") for file in (ROOT / "src").rglob("*") if file.is_file()]
    there = {str(file) for file in files if "__pycache__" not in file.parts}
    assert inside == there
    assert "License-File: LICENSE" in metadata


def test_the_source_archive_builds_the_same_wheel(built: Path, tmp_path: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    source = next(tmp_path.iterdir())
    assert {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "tests", "docs"} <= {
        path.name for path in source.iterdir()
    }
    call(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "again", cwd=source)
    with zipfile.ZipFile(wheel_of(built)) as one, zipfile.ZipFile(wheel_of(tmp_path / "again")) as other:
        assert {item.filename: item.CRC for item in one.infolist()} == {
            item.filename: item.CRC for item in other.infolist()
        }


def test_versions_agree() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert set(re.findall(r"^\s*version: (.+)$", citation, re.MULTILINE)) == {PROJECT["version"]}
    assert re.search(r"^## \[(Unreleased|\d)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
