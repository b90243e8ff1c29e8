"""How long the command takes to start: at once, the first time ever (kernels not compiled), and any later time.

Kernels are kept beside the package, or in the user's cache folder where the package cannot be written to. To see the
latter whoever runs this (nothing is read-only for root), a copy of the package gets a *file* called __pycache__ in each
folder, so that no folder of that name can be made.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import leafwise
from benchmarks import data
from benchmarks.report import Report, best_of, check, main

REPEATS = 5
PROGRAM = "from leafwise.cli import main; main()"
BOUNDS = {"version": 0.3, "first": 20.0, "later": 1.5}


def promoters(folder: Path) -> tuple[Path, str]:
    """The promoters table, or where it is not there a drawn one of its size; and which of both it is."""
    try:
        return data.path("promoters"), "promoters"
    except data.NoData:
        return data.write_like_promoters(folder / "drawn.csv"), "drawn, of the size of promoters"


def run(arguments: list[str], changes: Mapping[str, str]) -> None:
    """Run `leafwise` in a process of its own, in an environment with these changes."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, env=environment | dict(changes), capture_output=True, text=True)
    check(done.returncode == 0, f"leafwise {' '.join(arguments)} failed: {done.stderr.strip()}")


def copy_unwritable(folder: Path) -> Path:
    """A copy of the package in which no __pycache__ folder can be made."""
    package = folder / "leafwise"
    shutil.copytree(Path(leafwise.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for place in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (place / "__pycache__").write_text("")
    return package


def kept(folder: Path) -> int:
    """How many compiled kernels lie somewhere under a folder."""
    return sum(1 for _ in folder.rglob("*.nbc"))


def first_and_later(arguments: list[str], changes: Mapping[str, str]) -> tuple[float, float]:
    """Seconds of the first run, and of the fastest of those after it."""
    first, _ = best_of(1, lambda: run(arguments, changes))
    later, _ = best_of(REPEATS, lambda: run(arguments, changes))
    return first, later


def measure() -> Iterator[Report]:
    """Start-up, first and later runs, here and with a package that cannot be written to."""
    version, _ = best_of(REPEATS, lambda: run(["--version"], {}))
    rows = [_row("leafwise --version", version, "version")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table, which = promoters(folder)
        for what, target in (("one target", ["--target", "class"]), ("all variables", [])):
            arguments = ["learn", str(table), *target, "-o", str(folder / "model.json"), "--json"]
            cache = folder / f"cache {what}"
            first, later = first_and_later(arguments, {"NUMBA_CACHE_DIR": str(cache)})
            check(kept(cache) > 0, "no kernels were kept")
            rows.append(_row(f"learn, {what}: first run ever", first, "first"))
            rows.append(_row(f"learn, {what}: later run", later, "later"))
        package, home = copy_unwritable(folder), folder / "home"
        home.mkdir()
        changes = {"PYTHONPATH": str(folder), "HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache")}
        first, later = first_and_later(arguments, changes)
        here, there = kept(package), kept(home)
        check(here == 0 and there > 0, f"{here} kernels were kept in the package, {there} in the user's cache folder")
        rows.append(_row("learn, package not writable: first run ever", first, "first"))
        rows.append(_row("learn, package not writable: later run", later, "later"))
    remark = f"Where the package is not writable, {there} compiled kernels were kept in the user's cache folder."
    title = f"Processes from start to end (data: {which}; best of {REPEATS}, first runs once)"
    yield Report(title, ["command", "seconds", "bound"], rows, [remark])


def _row(what: str, seconds: float, bound: str) -> list[str]:
    return [what, f"{seconds:.2f}", f"{BOUNDS[bound]:.1f}"]


if __name__ == "__main__":
    main(measure, __doc__)
