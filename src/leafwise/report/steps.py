"""The steps of a search as a picture: score by step, with a colour for each kind of operator."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, cycle
from math import floor, log10
from typing import Any, Protocol

from leafwise.data.table import many
from leafwise.errors import check_type
from leafwise.report.svg import Picture, element, number, width_of, words

_WIDTH, _HEIGHT, _LEFT, _BELOW = 720.0, 300.0, 84.0, 48.0
_COLOURS = ("#2f7bbf", "#e08a1e", "#b5367a", "#3a9a5c", "#7a5cc0", "#6b7683")
_USUAL = ("complete split", "binary split", "merge")


class Step(Protocol):
    """The properties of a step of a search."""

    @property
    def operator(self) -> Any: ...
    @property
    def log_score(self) -> float: ...


def plot_steps(steps: Iterable[Step]) -> Picture:
    """The log score after each step of a search, with complete splits, binary splits and merges distinguished.

    `steps`: a search such as `leafwise.start_search(...)`, which has taken all its steps afterwards. If a single target
    is searched twice, the picture shows the steps of both, and the score restarts with the second.

    >>> import leafwise
    >>> from leafwise.examples import alarm
    >>> search = leafwise.start_search(leafwise.sample(alarm(), 200, seed=1), target="HISTORY")
    >>> ">1 complete split<" in plot_steps(search).svg
    True
    """
    check_type(steps, Iterable, "what to plot", "a search or its steps: use plot_steps(leafwise.start_search(...))")
    taken = [(_kind(step.operator), step.log_score) for step in steps]
    scores = [score for _, score in taken]
    marks = _round_numbers(min(scores, default=0.0), max(scores, default=1.0))
    up = _HEIGHT / (marks[-1] - marks[0])
    across = (_WIDTH - _LEFT) / max(len(taken), 1)
    points = [(_LEFT + across * (k + 1), (marks[-1] - score) * up) for k, score in enumerate(scores)]
    parts = [*_axes(marks, up), *_steps_axis(len(taken)), _line(points)]
    places: dict[str, dict[tuple[int, int], None]] = {kind: {} for kind in _USUAL}
    for (kind, _), (x, y) in zip(taken, points, strict=True):
        places.setdefault(kind, {})[round(x), round(y)] = None  # at most one dot per pixel, for any number of steps
    counts = Counter(kind for kind, _ in taken)
    colours = {kind: colour for kind, colour in zip(places, cycle(_COLOURS)) if counts[kind]}
    for kind, colour in colours.items():
        path = "".join(f"M{x},{y}h0" for x, y in places[kind])
        parts.append(element("path", d=path, fill="none", stroke=colour, stroke_width=5, stroke_linecap="round"))
    parts += _legend([(many(counts[kind], kind), colour) for kind, colour in colours.items()])
    body = element("g", *parts, transform="translate(0 26)")
    return Picture.of([body], _WIDTH, _HEIGHT + _BELOW + 42, f"The log score after each of {many(len(taken), 'step')}")


def _kind(operator: Any) -> str:
    """CompleteSplit → complete split."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(operator).__name__).lower()


def _round_numbers(low: float, high: float) -> list[float]:
    """About five marks for an axis, the first and last just outside of its range.

    >>> _round_numbers(-1234.5, -1010.0)
    [-1250.0, -1200.0, -1150.0, -1100.0, -1050.0, -1000.0]
    """
    span = (high - low) or max(abs(high), 1.0)
    unit = 10.0 ** floor(log10(span / 5))
    unit *= next(factor for factor in (1, 2, 5, 10) if span / (unit * factor) <= 6)
    first, last = floor(low / unit), -floor(-high / unit)
    return [k * unit for k in range(first, max(last, first + 1) + 1)]


def _axes(marks: Sequence[float], up: float) -> list[str]:
    parts = []
    for mark in marks:
        y = (marks[-1] - mark) * up
        parts.append(element("path", kind="faint", d=f"M{number(_LEFT)},{number(y)}H{number(_WIDTH)}"))
        parts.append(words(f"{mark:,.6g}", _LEFT - 8, y + 4, kind="quiet", anchor="end"))
    return [*parts, words("log score", 0, -18, kind="quiet")]


def _steps_axis(n_steps: int) -> list[str]:
    parts = [words("step", _WIDTH, _HEIGHT + 36, kind="quiet", anchor="end")]
    across = (_WIDTH - _LEFT) / max(n_steps, 1)
    for mark in _round_numbers(0, max(n_steps, 1)):
        if mark == round(mark) and mark <= n_steps:
            parts.append(words(f"{mark:,.0f}", _LEFT + across * mark, _HEIGHT + 18, kind="quiet", anchor="middle"))
    return parts


def _line(points: Sequence[tuple[float, float]]) -> str:
    """The curve, with at most one point per quarter of a pixel."""
    kept = {round(4 * x): (x, y) for x, y in points}.values()
    return element("path", kind="arc", d="M" + "L".join(f"{number(x)},{number(y)}" for x, y in kept)) if points else ""


def _legend(entries: Sequence[tuple[str, str]]) -> list[str]:
    lefts = accumulate((width_of(text) + 34 for text, _ in entries), initial=_LEFT)
    parts, y = [], _HEIGHT + _BELOW + 14
    for left, (text, colour) in zip(lefts, entries, strict=False):
        parts += [element("circle", cx=left + 5, cy=y - 4, r=4, fill=colour), words(text, left + 16, y)]
    return parts
