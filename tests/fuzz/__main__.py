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
from fuzz.worker import MOST_BYTES, Board, work

MOST_SECONDS = 10.0  # of work for one input
MOST_WAITING = 600.0  # more than that, when the machine is busy
WARM_UP = 600.0  # to compile before the first


class Run:
    """Children one after the other, and what came of all inputs."""

    def __init__(self, seed: int, kinds: list[str]) -> None:
        self.seed, self.kinds, self.board = seed, kinds, Board(kinds)
        self.failures: list[tuple[str, int, str]] = []

    def go(self, seconds: float, begin: int, rounds: int) -> None:
        """Until the time is over, or so many rounds are done."""
        end, number = time.monotonic() + seconds, begin
        while number < begin + rounds and time.monotonic() < end:
            number = self._child(number, begin + rounds, end) + 1

    def _child(self, number: int, last: int, end: float) -> int:
        """Look after one child; the round in which it ended."""
        here, there = multiprocessing.Pipe(duplex=False)
        given = (there, self.board, self.seed, number, self.kinds, last - number)
        child = multiprocessing.get_context("spawn").Process(target=work, args=given, daemon=True)
        self.board.at[:] = 0, number * 1000, 0
        child.start()
        there.close()
        most, room = WARM_UP, math.inf
        at, began = tuple(self.board.at), time.monotonic()
        while time.monotonic() < end:
            if here.poll(0.2):
                try:
                    what = here.recv()
                except EOFError:
                    child.join(5)
                    if child.exitcode != 0:
                        self._fail(*self._at(), f"the process ended with {child.exitcode}")
                        if most == WARM_UP:
                            sys.exit("nothing can be checked: the warm-up fails")
                    break
                if what == "ready":
                    most, room = MOST_SECONDS, _memory(child.pid) + MOST_BYTES
                else:
                    self._fail(*what)
            if at != tuple(self.board.at):
                at, began = tuple(self.board.at), time.monotonic()
            worked, waited = _worked(child.pid) - at[2], time.monotonic() - began
            if worked > most or waited > most + MOST_WAITING or _memory(child.pid) > room:
                what = f"{worked:.0f} of {waited:.0f} s and {_memory(child.pid) / 2**20:,.0f} MiB"
                self._fail(*self._at(), f"it takes {what}: too long or too much")
                break
        child.kill()
        child.join()
        return self._at()[1] // 1000

    def _at(self) -> tuple[str, int]:
        """The input that is being checked."""
        kind, place, _ = self.board.at
        return self.kinds[int(kind)], int(place)

    def _fail(self, kind: str, place: int, text: str) -> None:
        """Note it, once: both processes look at the memory."""
        if (kind, place) in [failure[:2] for failure in self.failures]:
            return
        self.failures.append((kind, place, text))
        print(f"--replay '{kind}:{self.seed}:{place}'\n{text.rstrip()}\n", flush=True)

    def summary(self) -> str:
        """A table of what came of all inputs."""
        lines = [f"{'kind':12}{'inputs':>10}{'accepted':>10}{'refused':>10}{'failed':>8}{'ms each':>9}"]
        total: Counter[str] = Counter()
        for (kind, row), worked in zip(self.outcomes().items(), self.board.seconds, strict=True):
            lines.append(f"{kind:12}{_numbers(row)}{1000 * worked / max(row['inputs'], 1):9.2f}")
            total.update(row)
        lines.append(f"{'all':12}" + _numbers(total))
        seconds, kind, place = self.board.slowest
        slowest = f"{self.kinds[int(kind)]}:{self.seed}:{int(place)}"
        return "\n".join([*lines, f"the slowest input took {seconds:.2f} s: {slowest}"])

    def outcomes(self) -> dict[str, Counter[str]]:
        """How many inputs of each kind there were, and what came of them."""
        rows = {}
        for k, kind in enumerate(self.kinds):
            accepted, refused = self.board.outcomes[2 * k : 2 * k + 2]
            failed = sum(one == kind for one, _, _ in self.failures)
            all_of_it = accepted + refused + failed
            rows[kind] = Counter(inputs=all_of_it, accepted=accepted, refused=refused, failed=failed)
        return rows


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
        found = {"seed": seed, "outcomes": run.outcomes(), "failures": run.failures}
        Path(given.json).write_text(json.dumps(found), encoding="utf-8")
    sys.exit(1 if run.failures else 0)


if __name__ == "__main__":
    main()
