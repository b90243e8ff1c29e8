"""The process that checks inputs one after the other, and tells of each before and after."""

import resource
import traceback
from multiprocessing.connection import Connection
from pathlib import Path

from fuzz import answers, commands
from fuzz.kinds import KINDS, one

LAST_RESORT = 2**33  # bytes more than when all is compiled; the parent looks at what is really used


def work(pipe: Connection, seed: int, begin: int, kinds: list[str], wanted: int) -> None:
    """Check inputs from round `begin` on, and tell of each: what it is before, what came of it after."""
    if {"questions", "learning", "rounds", "commands", "requests"} & set(kinds):
        answers.warm_up()
        commands.warm_up()
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + LAST_RESORT,) * 2)
    pipe.send(("ready",))
    for number in range(begin, begin + wanted):
        for kind in kinds:
            for turn in range(KINDS[kind][1]):
                place = number * 1000 + turn
                pipe.send(("begin", kind, place))
                try:
                    outcome, text = one(kind, seed, place), ""
                except BaseException as error:  # noqa: BLE001 - whatever it is, it is what is looked for
                    outcome, text = f"failed: {type(error).__name__}", traceback.format_exc()
                pipe.send(("end", kind, outcome, text))
