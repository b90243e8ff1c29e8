"""Watching a search from the command line: progress on a terminal, and stopping it without losing what it found."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from leafwise.search.greedy import Search, Step

    Watcher = Callable[[Search, Step], None]  # told of every step; they may come a hundred thousand a second

SECONDS_BETWEEN_UPDATES = 0.1


def follow(search: "Search", watch: "Watcher | None") -> bool:
    """Run a search to its end, or to the first Ctrl-C; say whether it was interrupted.

    The first Ctrl-C only asks: the step under way is finished, so that the network is valid. The second ends it all.
    """
    with _asked_to_stop() as asked:
        for step in search:
            if watch is not None:
                watch(search, step)
            if asked.is_set():
                break
    return asked.is_set()


@contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():  # signals only ever reach the main thread
        yield asked
        return

    def ask(_number: int, _frame: FrameType | None) -> None:
        asked.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def watcher(names: tuple[str, ...], *, verbose: bool, quiet: bool) -> "Iterator[Watcher | None]":
    """Each step as a line, or a bar on a terminal, or nobody."""
    if verbose:
        yield lambda search, step: click.echo(_line(names, search, step), err=True)
    elif quiet or not sys.stderr.isatty():
        yield None
    else:
        with _bar() as bar:
            yield bar


def _line(names: tuple[str, ...], search: "Search", step: "Step") -> str:
    operator = step.operator
    return (
        f"{search.n_steps:>6}  {type(operator).__name__:<13}  {names[operator.target]}  "
        f"gain {operator.gain:.4f}  log score {step.log_score:.4f}"
    )


@contextmanager
def _bar() -> "Iterator[Watcher]":
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("counting")
        due = 0.0

        def show(search: "Search", step: "Step") -> None:
            nonlocal due
            now = time.monotonic()
            if now >= due:
                due = now + SECONDS_BETWEEN_UPDATES
                progress.update(task, description=_state(search, step))

        yield show


def _state(search: "Search", step: "Step") -> str:
    return f"{search.n_steps:,} steps  log score {step.log_score:,.2f}  {step.n_leaves:,} leaves  {step.n_arcs:,} arcs"
