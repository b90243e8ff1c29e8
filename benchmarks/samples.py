"""The time of a search by function, from the samples of Linux `perf`; a part of profile_search.

A search is one call of compiled code, which Python's profilers cannot look into; `perf` can, once it knows the address
of each compiled function. Numba provides these for functions that it compiled in this process, not for those from its
cache: so `take` starts a process with its own, empty cache.

Inlined code counts as part of the function around it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks import data
from benchmarks.report import SKIPPED, check
from leafwise.data.table import Table
from leafwise.kernels.compiling.internals import dispatcher_of
from leafwise.kernels.counting import bits, packing, sets
from leafwise.kernels.leaf_search import acyclic, replay, schedule, splits, weights
from leafwise.kernels.scoring import rises
from leafwise.learner import start_search
from leafwise.search.leaf_search import LeafSearch

SECONDS = 4  # of sampling per data set
A_SECOND = 2000  # samples per second
CALLED: tuple[Any, ...] = (  # called by Python during a search
    *(schedule.advance, schedule.add_initial_leaves, schedule.free_spent, acyclic.add_arcs, replay.replay),
    *(replay.find_doubtful, weights.log_likelihoods, rises.fill, sets.place_sets, bits.count_sets),
    *(packing.pack_columns, packing.pack_rows),
    *(bits.count_set, splits.score_splits),  # called by these
)


class NoSamples(Exception):
    """perf is missing or not permitted; the message says which."""


def take(names: tuple[str, ...]) -> dict[str, dict[str, int]]:
    """For each data set, samples by function: module.function for kernels, else the name of a library."""
    if shutil.which("perf") is None:
        raise NoSamples("`perf` is not on the PATH")
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        command = [sys.executable, "-m", "benchmarks.samples", *names]
        done = subprocess.run(command, env=environment, cwd=Path(__file__).parents[1], capture_output=True, text=True)
    if done.returncode == SKIPPED:
        raise NoSamples(done.stderr.strip())
    check(done.returncode == 0, done.stderr)
    found: dict[str, dict[str, int]] = json.loads(done.stdout)
    return found


def learn(cases: Table, prior: str = "auto", threads: int = 1) -> float:
    """Run the search and build its network; return its log score."""
    under_way = start_search(cases, search=LeafSearch(threads=threads), structure_prior=prior)
    under_way.run()
    _ = under_way.network
    return under_way.log_score


def short_name(symbol: str) -> str:
    """`bits.count_set` for numba's ...8leafwise7kernels4bits9count_set...; functions of numba itself are `numba.`.

    For modules in subpackages, too, the last name and that of the function: `splits.score_splits`.
    """
    parts: list[str] = []
    rest = symbol.partition("8leafwise7kernels")[2]
    while length := re.match(r"\d+", rest):
        begin, end = length.end(), length.end() + int(length[0])
        parts.append(rest[begin:end])
        rest = rest[end:]
    return ".".join(parts[-2:]) if parts else f"numba.{symbol}"


def tell_perf() -> Path:
    """Write the addresses of all compiled functions to the file where perf looks for them."""
    at: dict[int, str] = {}
    for kernel in CALLED:
        for compiled in dispatcher_of(kernel).overloads.values():
            library = compiled.library
            names = [function.name for function in library._final_module.functions if not function.is_declaration]
            at.update({library.get_pointer_to_function(name): short_name(name) for name in names})
    begins = sorted(begin for begin in at if begin)  # 0: inlined everywhere
    sizes = [min(end - begin, 2**17) for begin, end in zip(begins, [*begins[1:], begins[-1] + 2**17], strict=True)]
    place = Path(f"/tmp/perf-{os.getpid()}.map")
    place.write_text("".join(f"{begin:x} {size:x} {at[begin]}\n" for begin, size in zip(begins, sizes, strict=True)))
    return place


def take_one(name: str, file: str) -> Counter[str]:
    """Let perf take samples while learning from a data set repeatedly."""
    cases, cores = data.table(name), os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # with a single core, no other process compiles
    learn(cases)
    os.sched_setaffinity(0, cores)
    told = tell_perf()
    how = ["-e", "cpu-clock", "-F", str(A_SECOND), "-p", str(os.getpid()), "-o", file]
    with subprocess.Popen(["perf", "record", *how, "--", "sleep", str(SECONDS)], stderr=subprocess.PIPE) as perf:
        while perf.poll() is None:
            learn(cases)
        complaint = perf.stderr.read().decode() if perf.stderr else ""
    if perf.returncode:
        print(f"`perf` may not look: {' '.join(complaint.split())}", file=sys.stderr)
        sys.exit(SKIPPED)
    try:
        return read(file)
    finally:
        told.unlink()


def read(file: str) -> Counter[str]:
    """Samples by kernel, or by library."""
    how = ["-i", file, "--no-children", "--stdio", "-F", "sample,dso,sym", "-t", ";"]
    report = subprocess.run(["perf", "report", *how], check=True, capture_output=True, text=True).stdout
    found: Counter[str] = Counter()
    for line in report.splitlines():
        if line.strip() and not line.startswith("#"):
            n, library, symbol = (part.strip() for part in line.split(";")[:3])
            found[symbol.split()[-1] if library.startswith("[JIT]") else library] += int(n)
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps({name: take_one(name, f"{folder}/samples") for name in sys.argv[1:]}))
