"""The start-up time of the command: at once, the first time ever (kernels not compiled), and later.

Kernels are cached beside the package, or in the user's cache folder if the package is not writable. To test the latter
for any user (nothing is read-only for root), a copy of the package gets a *file* named __pycache__ in each folder, so
that no folder of that name can be created.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import leafwise
from benchmarks import data
from benchmarks.report import Report, check, main

REPEATS = 5
PROGRAM = "from leafwise.cli import main; main()"
BOUNDS = {"version": 0.3, "first": 10.0, "later": 0.8}


def promoters(folder: Path) -> tuple[Path, str]:
    """The promoters table, or if it is missing a synthetic one of its size; and which of both it is."""
    try:
        return data.path("promoters"), "promoters"
    except data.NoData:
        return data.write_like_promoters(folder / "drawn.csv"), "drawn, of the size of promoters"


@dataclass(frozen=True, order=True)
class Took:
    """Seconds of wall time, and of processor time, which does not depend on other load."""

    clock: float
    processor: float


def run(arguments: list[str], changes: Mapping[str, str]) -> Took:
    """Run `leafwise` in its own process, in an environment with these changes."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, env=environment | dict(changes), capture_output=True, text=True)
    clock, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    check(done.returncode == 0, f"leafwise {' '.join(arguments)} failed: {done.stderr.strip()}")
    return Took(clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def copy_unwritable(folder: Path) -> Path:
    """A copy of the package in which no __pycache__ folder can be created."""
    package = folder / "leafwise"
    shutil.copytree(Path(leafwise.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for place in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (place / "__pycache__").write_text("")
    return package


def kept(folder: Path) -> int:
    """The number of compiled kernels below a folder."""
    return sum(1 for _ in folder.rglob("*.nbc"))


def best(arguments: list[str], changes: Mapping[str, str]) -> Took:
    """The fastest of several runs."""
    return min(run(arguments, changes) for _ in range(REPEATS))


def measure() -> Iterator[Report]:
    """Start-up, first and later runs, with the package here and with an unwritable one."""
    rows = [_row("leafwise --version", best(["--version"], {}), "version")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table, which = promoters(folder)
        for what, target in (("one target", ["--target", "class"]), ("all variables", [])):
            arguments = ["learn", str(table), *target, "-o", str(folder / "model.json"), "--json"]
            cache = folder / f"cache {what}"
            changes = {"NUMBA_CACHE_DIR": str(cache)}
            rows.append(_row(f"learn, {what}: first run ever", run(arguments, changes), "first"))
            check(kept(cache) > 0, "no kernels were kept")
            rows.append(_row(f"learn, {what}: later run", best(arguments, changes), "later"))
        package, home = copy_unwritable(folder), folder / "home"
        home.mkdir()
        changes = {"PYTHONPATH": str(folder), "HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache")}
        rows.append(_row("learn, package not writable: first run ever", run(arguments, changes), "first"))
        here, there = kept(package), kept(home)
        check(here == 0 and there > 0, f"{here} kernels were kept in the package, {there} in the user's cache folder")
        rows.append(_row("learn, package not writable: later run", best(arguments, changes), "later"))
    remark = f"Where the package is not writable, {there} compiled kernels were kept in the user's cache folder."
    title = f"Processes from start to end (data: {which}; best of {REPEATS}, first runs once)"
    yield Report(title, ["command", "seconds", "bound", "of the processors"], rows, [remark])


def _row(what: str, took: Took, bound: str) -> list[str]:
    return [what, f"{took.clock:.2f}", f"{BOUNDS[bound]:.1f}", f"{took.processor:.2f}"]


if __name__ == "__main__":
    main(measure, __doc__)
