"""Lists and runs the benchmarks, each in its own process, and writes their tables into a page.

    python -m benchmarks                              run all
    python -m benchmarks joint_search scaling         run these
    python -m benchmarks --list                       list them
    python -m benchmarks --write docs/benchmarks.md   run all (or those named) and put their tables between the markers
    python -m benchmarks libra limits --write docs/performance.md   some belong to another page, and run only by name
    python -m benchmarks structure_prior --write docs/how-to/kappa.md

A benchmark that is skipped, or whose answer is wrong, leaves the page unchanged.
"""

import argparse
import ast
import os
import platform
import re
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

from benchmarks.report import SKIPPED

HERE = Path(__file__).resolve().parent
NAMES = (
    *("joint_search", "scaling", "memory", "start_up", "schedules", "delete_parents", "crossing"),
    *("peers", "inference", "prepared", "holes", "approximate", "learned_queries", "orders", "sampling", "bins"),
    "classifiers",
)
# Their tables are on other pages (performance, reliability, how-to/kappa and many); some take minutes and gigabytes.
ONLY_WHEN_NAMED = (
    *(
        "confidence",
        "few_cases",
        "forests",
        "forests_elsewhere",
        "forests_missing",
        "many",
        "many_hidden",
        "many_states",
        "coverage",
        "gpu",
        "kills",
        "libra",
        "limits",
        "lost_to_holes",
        "profile_search",
        "large",
    ),
    *("cluster", "proper_prior", "reading", "recovered_arcs", "sets_of_holes", "sharing", "stragglers"),
    *("structure_prior", "threads", "widest"),
)


def purpose(name: str) -> str:
    """The first line of a benchmark's docstring."""
    text = ast.get_docstring(ast.parse((HERE / f"{name}.py").read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]


def machine() -> str:
    """The machine and the versions used for the measurements, on one line."""
    processor = platform.processor() or platform.machine()
    place = Path("/proc/cpuinfo")
    if place.is_file():
        found = re.search(r"model name\s*:\s*(.*)", place.read_text(encoding="utf-8"))
        processor = found.group(1).strip() if found else processor
    parts = [f"{processor}, {os.cpu_count()} cores", f"Python {platform.python_version()}"]
    return ", ".join(parts + [f"{package} {version(package)}" for package in ("leafwise", "numpy", "numba")])


def run(name: str, markdown: bool) -> tuple[int, str]:
    """Run one benchmark; return its exit code and, with `markdown`, its output."""
    command = [sys.executable, "-m", f"benchmarks.{name}", *(["--markdown"] if markdown else [])]
    done = subprocess.run(command, cwd=HERE.parent, stdout=subprocess.PIPE if markdown else None, text=True)
    return done.returncode, done.stdout or ""


def pasted(page: str, name: str, text: str) -> str:
    """The page with new text between the markers of a name."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"the page has no markers {begin} and {end}: add them where the tables belong")
    return f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES + ONLY_WHEN_NAMED))
    parser.add_argument("--list", action="store_true", help="list the benchmarks and run none")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables into this Markdown page")
    given = parser.parse_args()
    for name in given.names:
        if name not in NAMES + ONLY_WHEN_NAMED:
            parser.error(f"there is no benchmark {name!r}: give some of {', '.join(NAMES + ONLY_WHEN_NAMED)}")
    if given.list:
        print("\n".join(f"{name:16}{purpose(name)}" for name in NAMES))
        print("only when named:")
        print("\n".join(f"{name:16}{purpose(name)}" for name in ONLY_WHEN_NAMED))
        return
    sys.exit(run_all(given.names or list(NAMES), given.write))


def run_all(names: list[str], page: Path | None) -> int:
    """Run benchmarks one after the other; return 1 if an answer was wrong."""
    failed = 0
    if page is not None and "<!-- begin machine -->" in page.read_text(encoding="utf-8"):  # the page contains times
        page.write_text(pasted(page.read_text(encoding="utf-8"), "machine", machine()), encoding="utf-8")
    for name in names:
        print(f"== {name}: {purpose(name)}", flush=True)
        began = time.perf_counter()
        code, text = run(name, page is not None)
        seconds = time.perf_counter() - began
        if page is not None and code == 0:
            page.write_text(pasted(page.read_text(encoding="utf-8"), name, text), encoding="utf-8")
        failed |= code not in (0, SKIPPED)
        ending = {0: "done", SKIPPED: "skipped"}.get(code, "FAILED")
        print(f"== {name}: {ending} after {seconds:.0f} s\n", flush=True)
    return failed


if __name__ == "__main__":
    main()
