"""Peak memory of `leafwise learn`, in its own process, on every data set.

It must stay below 4 × the encoded data (one byte per cell) + 1 GB. What the system reports for a child process is at
least what its parent held when it started it, so this module imports little.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import data
from benchmarks.report import Report, check, main

LEAFWISE = [sys.executable, "-c", "from leafwise.cli import main; main()"]
_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes per unit of getrusage
MB = 1e6


def peak_of(command: list[str]) -> tuple[int, str]:
    """Run a command; return its peak memory in bytes and its output."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        check(process.returncode == 0, f"{' '.join(command)} ended with {process.returncode}")
        output.seek(0)
        return usage.ru_maxrss * _UNIT, output.read()


def learn(name: str) -> tuple[int, dict[str, Any]]:
    """The peak memory of learning a data set, and the command's JSON output."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["-o", str(Path(folder) / "model.json"), "--json", "--structure-prior", "kappa:0.1"]
        peak, printed = peak_of([*LEAFWISE, "learn", str(data.path(name)), *options, *data.options(name)])
    return peak, json.loads(printed)


def measure() -> Iterator[Report]:
    """One row per data set."""
    rows, too_much = [], []
    learn("promoters")  # compile
    for name in (*data.TABLES, *data.BINARY):
        peak, found = learn(name)
        encoded = found["cases"] * found["variables"]
        bound = 4 * encoded + 1e9
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT
        check(peak > own, f"{name}: {peak / MB:.0f} MB may be what this process holds ({own / MB:.0f} MB)")
        if peak >= bound:
            too_much.append(f"{name} takes {peak / MB:.0f} MB, over {bound / MB:.0f} MB")
        row = [name, f"{found['cases']:,} × {found['variables']:,}", f"{found['seconds']:.2f}", f"{found['leaves']:,}"]
        rows.append([*row, f"{encoded / MB:.1f}", f"{peak / MB:.0f}", f"{bound / MB:.0f}"])
    heads = ["data", "size", "search s", "leaves", "encoded MB", "peak MB", "bound MB"]
    schedule = found["schedule"]
    yield Report(f"Peak resident memory of `leafwise learn` (CBM, {schedule}, kappa:0.1)", heads, rows)
    check(not too_much, "; ".join(too_much))


if __name__ == "__main__":
    main(measure, __doc__)
