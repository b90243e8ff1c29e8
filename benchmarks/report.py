"""What all benchmarks share: tables as text or Markdown, checks of answers, timing, and the command line."""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from benchmarks.data import NoData
from leafwise.report.tables import Report

T = TypeVar("T")
WRONG, SKIPPED = 1, 3  # exit codes


class WrongAnswer(Exception):
    """A benchmark did not find what it must find."""


def check(holds: bool, what: str) -> None:
    """Stop with `what` unless it holds. Not an assert, as those vanish under python -O."""
    if not holds:
        raise WrongAnswer(what)


def best_of(n: int, action: Callable[[], T]) -> tuple[float, T]:
    """The least of n times, in seconds, and the result of the last call."""
    times = []
    for _ in range(n):
        began = time.perf_counter()
        result = action()
        times.append(time.perf_counter() - began)
    return min(times), result


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """The k with which times grow like sizes ** k: the slope of log time on log size."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def main(measure: Callable[[], Iterable[Report]], description: str | None) -> None:
    """The command line of one benchmark."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--markdown", action="store_true", help="print tables as Markdown")
    markdown = parser.parse_args().markdown
    try:
        for report in measure():
            print((report.markdown() if markdown else report.text()) + "\n", flush=True)
    except NoData as reason:
        print(f"skipped: {reason}", file=sys.stderr)
        sys.exit(SKIPPED)
    except WrongAnswer as answer:
        print(f"wrong answer: {answer}", file=sys.stderr)
        sys.exit(WRONG)
