"""Kills: searches with checkpoints are killed at random moments, resume, and must end with the same network.

Every search is first run to its end by one process. Then it is run by processes that get SIGKILL at a random moment, up
to twice the time of that run, each resuming from the checkpoint of the previous one, until one finishes; all of this is
repeated up to the requested number of kills. Networks are compared as files, byte by byte.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.report import Report, check
from leafwise import GraphArcSearch, LeafSearch, LeafSearchRestarts, RecoverySearch, Table, TableArcSearch, learn, read
from leafwise.cli.saving import dumped

ONE = LeafSearch(threads=1)  # a process with threads cannot be forked
SEARCHES: dict[str, tuple[dict[str, Any], int]] = {  # the arguments of learn, and the number of cases
    "greedy": ({"search": ONE}, 1_000_000),
    "greedy, best-first, BDeu": (
        {"search": LeafSearch("CBM", "best-first", delete_parents=True, threads=1), "prior": "bdeu:10"},
        1_000_000,
    ),
    "partial splits": ({"search": LeafSearch("CBIMO", threads=1)}, 1_000_000),
    "partial splits, relabelled and tied leaves": ({"search": LeafSearch("CBIMORT", threads=1)}, 200_000),
    "complete tables": ({"search": TableArcSearch(threads=1), "prior": "bdeu:1"}, 1_000_000),
    "recovery of arcs": ({"search": RecoverySearch(ONE)}, 200_000),
    "edges": ({"search": GraphArcSearch(ONE)}, 100),
    "restarts": ({"search": LeafSearchRestarts(ONE, rounds=30, keep=3)}, 500),
    "series": ({"search": ONE, "lags": 2}, 200_000),
    "missing cells inferred": ({"search": ONE, "missing": "infer"}, 200),
    "missing cells inferred, partial splits": ({"search": LeafSearch("CBIMO", threads=1), "missing": "infer"}, 200),
    "hidden causes": ({"search": ONE, "hidden": "auto"}, 100),
    "12 networks": ({"search": ONE, "networks": 12}, 100),
    "12 networks of one target": ({"search": ONE, "networks": 12, "target": "HRBP"}, 1_000),
    "3 networks with hidden causes": ({"search": ONE, "networks": 3, "hidden": 2, "completions": 2}, 100),
}
EVERY = 0.02


def cases_for(kind: str) -> Table:
    """Cases of ALARM; every twentieth cell is missing if missing cells are inferred."""
    options, n_cases = SEARCHES[kind]
    table = data.alarm_sample(n_cases)
    if "missing" not in options:
        return table
    labels = [np.array(variable.labels, object) for variable in table.variables]
    cells = np.array([own[row] for own, row in zip(labels, table.codes, strict=True)]).T
    cells[np.random.default_rng(1).random(cells.shape) < 0.05] = None
    return read(cells, missing="infer")


def life(table: Table, kind: str, checkpoint: Path, seconds: float | None) -> bool:
    """Run a process that resumes the search and is killed after some seconds; return whether it finished before."""
    process = os.fork()
    if process == 0:
        try:
            network = learn(table, **SEARCHES[kind][0], checkpoint=checkpoint, every=EVERY)
            checkpoint.with_suffix(".json").write_text(dumped(network), encoding="utf-8")
            os._exit(0)
        finally:
            os._exit(1)  # without cleaning up what the parent has started
    if seconds is not None:
        time.sleep(seconds)
        os.kill(process, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    check(code in (0, -signal.SIGKILL), f"{kind}: a process ended with {code}")
    return code == 0


def row(kind: str, n_kills: int, random: Random) -> list[str]:
    """One search with `n_kills` kills."""
    table = cases_for(kind)
    whole = dumped(learn(table, **SEARCHES[kind][0]))
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        life(table, kind, Path(folder) / "run.checkpoint", None)
        seconds = time.perf_counter() - began
    killed = ended = 0
    while killed < n_kills:
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = Path(folder) / "run.checkpoint"
            while not life(table, kind, checkpoint, random.uniform(0.0, 2 * seconds)):
                killed += 1
            ended += 1
            check(checkpoint.with_suffix(".json").read_text(encoding="utf-8") == whole, f"{kind}: another network")
            check(not list(Path(folder).glob(".*.part")), f"{kind}: what was half-written stays")
    return [kind, f"{table.n_cases:,}", f"{seconds:.2f}", str(killed), str(ended), "the same, byte by byte"]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", action="store_true", help="print tables as Markdown")
    parser.add_argument("--kills", type=int, default=25, help="of each search")
    parser.add_argument("--searches", default=";".join(SEARCHES), help="some of them, with ; between")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    given = parser.parse_args()
    random = Random(given.seed)
    rows: list[list[str]] = []
    for kind in given.searches.split(";"):
        rows.append(row(kind, given.kills, random))
        print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
    heads = ["search", "cases of ALARM", "seconds, if left alone", "kills", "runs to the end", "networks"]
    report = Report("Searches that were killed at random moments, and went on", heads, rows)
    print(report.markdown() if given.markdown else report.text())


if __name__ == "__main__":
    main()
