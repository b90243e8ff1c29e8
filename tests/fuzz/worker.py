"""The process that checks inputs one after the other, and what it shares with the one that looks after it."""

import resource
import time
import traceback
from ctypes import Array, c_double, c_long
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import RawArray
from pathlib import Path

from fuzz import answers, commands
from fuzz.kinds import KINDS, one

MOST_BYTES = 2**30  # more than when all is compiled
LAST_RESORT = 2**33  # the same of addresses


class Board:
    """Where a process is and what it has done, in memory that both see: messages take longer than most inputs."""

    def __init__(self, kinds: list[str]) -> None:
        self.at: Array[c_double] = RawArray(c_double, 3)  # the kind, the input, and the seconds worked before it
        self.outcomes: Array[c_long] = RawArray(c_long, 2 * len(kinds))  # accepted and refused, kind by kind
        self.seconds: Array[c_double] = RawArray(c_double, len(kinds))  # of work, kind by kind
        self.slowest: Array[c_double] = RawArray(c_double, 3)  # seconds of work, the kind and the input


def work(pipe: Connection, board: Board, seed: int, begin: int, kinds: list[str], wanted: int) -> None:
    """Check inputs from round `begin` on, and send what failed: the kind, the input, and why."""
    if {"questions", "learning", "rounds", "commands", "requests"} & set(kinds):
        answers.warm_up()
        commands.warm_up()
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + LAST_RESORT,) * 2)
    Path("/proc/self/clear_refs").write_text("5")  # the peak of memory is what is used now
    room = _peak() + MOST_BYTES
    board.at[2] = time.process_time()
    pipe.send("ready")
    for number in range(begin, begin + wanted):
        for k, kind in enumerate(kinds):
            for turn in range(KINDS[kind][1]):
                place = number * 1000 + turn
                before = time.process_time()
                board.at[:] = k, place, before
                outcome, failure = attempt(kind, seed, place, room)
                if failure:
                    pipe.send((kind, place, failure))
                else:
                    board.outcomes[2 * k + ("accepted", "refused").index(outcome)] += 1
                worked = time.process_time() - before
                board.seconds[k] += worked
                if worked > board.slowest[0]:
                    board.slowest[:] = worked, k, place
                if _peak() > room:  # it does not fall: the next process goes on
                    return


def attempt(kind: str, seed: int, place: int, room: int) -> tuple[str, str]:
    """What came of an input, or why it failed: one of both."""
    try:
        outcome, failure = one(kind, seed, place), ""
    except BaseException:  # noqa: BLE001 - whatever it is, it is what is looked for
        outcome, failure = "", traceback.format_exc()
    if (more := _peak() - room) > 0:
        outcome, failure = "", f"{failure}it took {(more + MOST_BYTES) / 2**20:,.0f} MiB"
    return outcome, failure


def _peak() -> int:
    """The most bytes that this process has used."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
