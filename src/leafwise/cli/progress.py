"""Watching a search from the command line: progress on a terminal, and stopping it without losing what it found."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from leafwise.report.signs import printable

if TYPE_CHECKING:
    from rich.progress import Progress

    from leafwise.ensembles import MixtureUnderWay
    from leafwise.search.under_way import UnderWay

SECONDS_BETWEEN_UPDATES = 0.1
SECONDS_OF_ONE_CTRL_C = 1.0  # pressed twice within this, it was meant once


class Stop(Exception):
    """Raised between two steps of a search to end it there."""


def follow(search: "UnderWay | MixtureUnderWay", *, quiet: bool) -> bool:
    """Run a search to its end or to the first Ctrl-C, with progress on a terminal; say whether it was interrupted.

    The first Ctrl-C only asks: the step under way is finished, so that the network is valid. The second ends it all.
    """
    with asked_to_stop() as asked, _display(quiet=quiet) as display:

        def progress(search: Any) -> None:
            display(search)
            if asked.is_set():
                raise Stop

        with suppress(Stop):
            search.run(progress)
    return asked.is_set()


def narrate(search: "UnderWay | MixtureUnderWay", names: tuple[str, ...]) -> bool:
    """The same with a line on standard error for every step."""
    with asked_to_stop() as asked:
        for step in search:
            told = search.describe() if hasattr(search, "describe") else _line(search.n_steps, step, names)
            click.echo(printable(told), err=True)
            if asked.is_set():
                break
    return asked.is_set()


@contextmanager
def telling(*, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Says on a terminal what is being done, and for how long. What is printed meanwhile would be lost: print after."""
    if quiet or not sys.stderr.isatty():
        yield lambda _text: None
        return
    from rich.markup import escape

    with _bar() as bar:
        task = bar.add_task("beginning")
        yield lambda text: bar.update(task, description=escape(printable(text)))


def _bar() -> "Progress":
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


@contextmanager
def not_interrupted() -> Iterator[None]:
    """While results are saved, Ctrl-C is not heard."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def asked_to_stop() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets; the second, a while later, ends it all."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():  # signals only ever reach the main thread
        yield asked
        return

    first = 0.0

    def ask(_number: int, _frame: FrameType | None) -> None:
        nonlocal first
        if asked.is_set() and time.monotonic() > first + SECONDS_OF_ONE_CTRL_C:
            raise KeyboardInterrupt
        first = first if asked.is_set() else time.monotonic()
        asked.set()

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _display(*, quiet: bool) -> Iterator[Callable[[Any], None]]:
    """Shows the state of a search at most ten times a second, however often it is called."""
    if quiet or not sys.stderr.isatty():
        yield lambda _search: None
        return
    with _bar() as bar:
        task = bar.add_task("searching")
        due = 0.0

        def display(search: Any) -> None:
            nonlocal due
            now = time.monotonic()
            if now >= due:
                due = now + SECONDS_BETWEEN_UPDATES
                bar.update(task, description=_state(search))

        yield display


def _state(search: Any) -> str:
    if hasattr(search, "describe"):  # many networks
        return str(search.describe())
    sizes = f"{search.n_steps:,} steps  {search.n_leaves:,} leaves  {search.n_arcs:,} arcs"
    return f"{sizes}  log score {search.log_score:,.2f}"


def _line(number: int, step: Any, names: tuple[str, ...]) -> str:
    if not hasattr(step, "operator"):  # a round of restarts
        where = "all variables" if step.target is None else names[step.target]
        return f"{number:>6}  {where}  gain {step.gain:.4f}  log score {step.log_score:.4f}"
    operator = step.operator
    where = (
        names[operator.target] if hasattr(operator, "target") else f"{names[operator.parent]} → {names[operator.child]}"
    )
    kind = type(operator).__name__
    return f"{number:>6}  {kind:<13}  {where}  gain {operator.gain:.4f}  log score {step.log_score:.4f}"
