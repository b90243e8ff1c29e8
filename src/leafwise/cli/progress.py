"""Progress of a search on a terminal, and signals that stop it without losing its result."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

from leafwise.cli.options import say
from leafwise.report.signs import printable

if TYPE_CHECKING:
    from rich.progress import Progress

    from leafwise.ensembles import MixtureRun
    from leafwise.search.run import SearchRun

SECONDS_BETWEEN_UPDATES = 0.1
SECONDS_OF_ONE_CTRL_C = 1.0  # further signals within this time are ignored


class Stop(Exception):
    """Raised between two steps of a search to end it there."""


@dataclass
class Asked:
    """The signal that asked to stop; 0: none yet."""

    signal: int = 0


def follow(search: "SearchRun | MixtureRun", *, quiet: bool) -> int:
    """Run a search until it ends or a signal asks to stop, with progress on a terminal; return the signal, or 0."""
    with asked_to_stop() as asked, _display(quiet=quiet) as display:

        def progress(search: Any) -> None:
            if asked.signal:
                raise Stop
            display(search)

        with suppress(Stop):
            search.run(progress)
    return asked.signal


def narrate(search: "SearchRun | MixtureRun", names: tuple[str, ...]) -> int:
    """The same as `follow`, with a line on standard error for every step."""
    watched: Any = search
    with asked_to_stop() as asked, suppress(Stop):

        def stop_if_asked(_search: Any) -> None:
            if asked.signal:
                raise Stop

        watched.watch = stop_if_asked  # steps may be long
        for step in search:
            with suppress(OSError):  # a closed terminal must not lose the result
                told = search.describe() if hasattr(search, "describe") else _line(search.n_steps, step, names)
                say(told)
            if asked.signal:
                if hasattr(search, "save"):  # a checkpoint
                    watched.save()
                break
    return asked.signal


@contextmanager
def telling(*, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show on a terminal what is being done, and for how long. Print other output afterwards, or it would be lost."""
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
    """Ignore signals that ask to stop, while results are saved."""
    with _heard(signal.SIG_IGN):
        yield


@contextmanager
def asked_to_stop() -> Iterator[Asked]:
    """Handle Ctrl-C, SIGTERM and SIGHUP.

    The first only asks to stop: the current step is completed, so that the network is valid. A later one interrupts it.
    """
    asked, first = Asked(), 0.0

    def ask(number: int, _frame: FrameType | None) -> None:
        nonlocal first
        if asked.signal and time.monotonic() > first + SECONDS_OF_ONE_CTRL_C:
            raise KeyboardInterrupt
        first = first if asked.signal else time.monotonic()
        asked.signal = asked.signal or number

    with _heard(ask):
        yield asked


@contextmanager
def _heard(by: Any) -> Iterator[None]:
    """Set the handler of the signals that ask to stop, except those that are ignored, as by nohup."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread can handle signals
        yield
        return
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    ignored = (signal.SIG_IGN, None)
    before = {number: signal.signal(number, by) for number in numbers if signal.getsignal(number) not in ignored}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _display(*, quiet: bool) -> Iterator[Callable[[Any], None]]:
    """Show the state of a search, at most ten times a second."""
    if quiet or not sys.stderr.isatty():
        yield lambda _search: None
        return
    bar, due = _bar(), 0.0
    task = bar.add_task("searching")

    def display(search: Any) -> None:
        nonlocal due
        now = time.monotonic()
        if now >= due:
            due = now + SECONDS_BETWEEN_UPDATES
            with suppress(OSError):  # a closed terminal must not lose the result
                bar.update(task, description=_state(search))

    bar.start()
    try:
        yield display
    finally:
        with suppress(OSError):
            bar.stop()


def _state(search: Any) -> str:
    if hasattr(search, "describe"):  # a mixture
        return str(search.describe())
    rounds = getattr(search, "n_rounds", None)
    done = f"{search.n_steps:,} steps" if rounds is None else f"{rounds:,} rounds"
    score = f"  log score {search.log_score:,.2f}" if search.log_score > float("-inf") else ""
    return f"{done}  {search.n_leaves:,} leaves  {search.n_arcs:,} arcs{score}"


def _line(number: int, step: Any, names: tuple[str, ...]) -> str:
    if not hasattr(step, "operator"):  # a round on completed cases
        where = "all variables" if step.target is None else names[step.target]
        return f"{number:>6}  {where}  gain {step.gain:.4f}  log score {step.log_score:.4f}"
    operator = step.operator
    where = (
        names[operator.target] if hasattr(operator, "target") else f"{names[operator.parent]} → {names[operator.child]}"
    )
    kind = type(operator).__name__
    return f"{number:>6}  {kind:<13}  {where}  gain {operator.gain:.4f}  log score {step.log_score:.4f}"
