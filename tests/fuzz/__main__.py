"""Runs inputs in a child process, looks after its time and memory, and says what failed and how to see it again."""

import argparse
import json
import math
import multiprocessing
import os
import resource
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from fuzz.kinds import KINDS, one
from fuzz.worker import work

MOST_SECONDS = 10.0  # of work for one input
MOST_WAITING = 600.0  # more than that, when the machine is busy
MOST_BYTES = 2**30  # more than when all is compiled
WARM_UP = 600.0  # to compile before the first


class Run:
    """Children one after the other, and what came of all inputs."""

    def __init__(self, seed: int, kinds: list[str]) -> None:
        self.seed, self.kinds = seed, kinds
        self.outcomes: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
        self.failures: list[tuple[str, int, str]] = []
        self.slowest = (0.0, "", 0)

    def go(self, seconds: float, begin: int, rounds: int) -> None:
        """Until the time is over, or so many rounds are done."""
        end, number = time.monotonic() + seconds, begin
        while number < begin + rounds and time.monotonic() < end:
            number = self._child(number, begin + rounds, end) + 1

    def _child(self, number: int, last: int, end: float) -> int:
        """Look after one child; the round in which it ended."""
        here, there = multiprocessing.Pipe(duplex=False)
        context = multiprocessing.get_context("spawn")
        child = context.Process(target=work, args=(there, self.seed, number, self.kinds, last - number), daemon=True)
        child.start()
        there.close()
        kind, place, began, most = "warm-up", number * 1000, time.monotonic(), WARM_UP
        room, before = math.inf, 0.0
        while time.monotonic() < end:
            if not here.poll(0.2):
                worked, waited = _worked(child.pid) - before, time.monotonic() - began
                if worked > most or waited > most + MOST_WAITING or _memory(child.pid) > room:
                    what = f"{worked:.0f} of {waited:.0f} s and {_memory(child.pid) / 2**20:,.0f} MiB"
                    self._fail(kind, place, f"it takes {what}: too long or too much")
                    break
                continue
            try:
                what, *rest = here.recv()
            except EOFError:
                child.join(5)
                if child.exitcode != 0:
                    self._fail(kind, place, f"the process ended with {child.exitcode}")
                    if kind == "warm-up":
                        sys.exit("nothing can be checked: the warm-up fails")
                break
            if what == "ready":
                room = _memory(child.pid) + MOST_BYTES
            elif what == "begin":
                (kind, place), began, most = rest, time.monotonic(), MOST_SECONDS
                before = _worked(child.pid)
            else:
                self._note(*rest, _worked(child.pid) - before, place)
                if _memory(child.pid) > room:
                    self._fail(kind, place, f"it leaves {_memory(child.pid) / 2**20:,.0f} MiB in use")
                    break
        child.kill()
        child.join()
        return place // 1000

    def _note(self, kind: str, outcome: str, text: str, seconds: float, place: int) -> None:
        self.outcomes[kind][outcome] += 1
        self.slowest = max(self.slowest, (seconds, kind, place))
        if text:
            self._fail(kind, place, text)

    def _fail(self, kind: str, place: int, text: str) -> None:
        self.failures.append((kind, place, text))
        print(f"--replay '{kind}:{self.seed}:{place}'\n{text.rstrip()}\n", flush=True)

    def summary(self) -> str:
        """A table of what came of all inputs."""
        lines = [f"{'kind':12}{'inputs':>10}{'accepted':>10}{'refused':>10}{'failed':>8}"]
        total: Counter[str] = Counter()
        for kind, outcomes in self.outcomes.items():
            row = Counter(
                {"inputs": outcomes.total(), "accepted": outcomes["accepted"], "refused": outcomes["refused"]}
            )
            row["failed"] = sum(failed == kind for failed, _, _ in self.failures)
            lines.append(f"{kind:12}" + _numbers(row))
            total.update(row)
        lines.append(f"{'all':12}" + _numbers(total))
        seconds, kind, place = self.slowest
        return "\n".join([*lines, f"the slowest input took {seconds:.2f} s: {kind}:{self.seed}:{place}"])


def _memory(process: int | None) -> int:
    """The bytes that a process uses; 0 when it has ended."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def _worked(process: int | None) -> float:
    """The seconds that a process has worked, on all its threads; other programs may share the machine."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _numbers(row: Counter[str]) -> str:
    return f"{row['inputs']:>10,}{row['accepted']:>10,}{row['refused']:>10,}{row['failed']:>8,}"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="the same seed, the same inputs")
    parser.add_argument("--begin", type=int, default=0, help="the round to begin with")
    parser.add_argument("--rounds", type=int, default=10**9, help="how many rounds, at most")
    parser.add_argument("--kinds", default=",".join(KINDS), help="some of: %(default)s")
    parser.add_argument("--json", metavar="FILE", help="write the numbers into a file")
    parser.add_argument("--replay", metavar="KIND:SEED:NUMBER", help="one input, in this process")
    given = parser.parse_args()
    if given.replay:
        kind, seed, number = given.replay.rsplit(":", 2)
        print(one(kind, int(seed), int(number)))
        return
    seed = int(time.time()) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    run = Run(seed, given.kinds.split(","))
    began = time.monotonic()
    with suppress(KeyboardInterrupt):  # what was done until then is told
        run.go(given.seconds, given.begin, given.rounds)
    print(run.summary() + f"\n{time.monotonic() - began:.0f} s")
    if given.json:
        found = {"seed": seed, "outcomes": run.outcomes, "failures": run.failures}
        Path(given.json).write_text(json.dumps(found), encoding="utf-8")
    sys.exit(1 if run.failures else 0)


if __name__ == "__main__":
    main()
