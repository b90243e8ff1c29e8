"""Time series: rows in order of time, and windows over them as cases. Knows tables and how they are read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from leafwise.data.binning import number
from leafwise.data.columns import Column
from leafwise.data.dates import MICROSECONDS, ahead, moment
from leafwise.data.description import Description
from leafwise.data.encoding import NewReading, read_beside
from leafwise.data.new_data import SUM_OVER, MissingCells
from leafwise.data.table import Table, Variable, brief, first_repeated
from leafwise.errors import Advice, AdvisedError

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Series:
    """Rows of a table, series after series, each in order of time."""

    table: Table
    ends: Integers  # series s has the rows from ends[s] to ends[s + 1]
    names: Sequence[str]  # of the series, for messages

    @property
    def lengths(self) -> Integers:
        """The number of rows of each series."""
        return np.diff(self.ends)


def read_series(
    source: object,
    *,
    by: str | None = None,
    time: str | None = None,
    variables: Sequence[Variable] | None = None,
    **reading: Unpack[NewReading],
) -> tuple[Series, Description | None]:
    """`read_and_describe` for series; `by` and `time` name columns, which are then no variables.

    Rows with the same label of `by` are one series; without it, all rows are. `time` contains whole numbers or dates
    in equal steps; without it, rows are in order.

    >>> series, _ = read_series(np.array([[0, 2, 1], [1, 7, 0], [0, 1, 1], [1, 8, 1]]), by="x1", time="x2")
    >>> series.table.codes.tolist(), series.ends.tolist(), series.names
    ([[1, 1, 0, 1]], [0, 2, 4], ["series '0'", "series '1'"])
    """
    if reading.get("missing") in ("drop", "infer"):
        raise AdvisedError(
            ("missing", reading["missing"]),
            " was given for series, whose rows must all be there and say what they are: pass ",
            ("missing", "state" if variables is None else "unknown"),
            ", or fill the cells in",
        )
    wanted = {what: name for what, name in (("by", by), ("time", time)) if name is not None}
    try:
        table, understood, beside = read_beside(source, wanted, variables=variables, **reading)
    except MissingCells as error:
        state = Advice(("missing", "state"), " to make missing a state of its own")
        advice = SUM_OVER if variables is not None else state
        more = ", or fill them in: no row of a series may be left out"
        raise AdvisedError(error.advice.parts[0], advice, more) from None
    own, names = np.zeros(table.n_cases, np.int64), ["the series"]
    if "by" in beside:
        found, first, own = np.unique(_whole(beside["by"]), return_index=True, return_inverse=True)
        own = np.argsort(np.argsort(first))[own]  # in order of appearance
        names = [f"series {brief(beside['by'].labels[code])}" for code in found[np.argsort(first)].tolist()]
    times = _times(beside["time"], own) if "time" in beside else np.arange(table.n_cases)
    order = np.lexsort((times, own))
    own, times = own[order], times[order]
    if "time" in beside:
        _check_steps(own, times, names, [beside["time"].labels[code] for code in beside["time"].codes[order]])
    ends = np.append(np.unique(own, return_index=True)[1], table.n_cases)
    ordered = Table(table.variables, np.ascontiguousarray(table.codes[:, order]))
    return Series(ordered, ends, names), understood


def lagged(name: str, lag: int) -> str:
    """The name of a variable at a lag.

    >>> lagged("x", 0), lagged("x", 2)
    ('x', 'x[t-2]')
    """
    return f"{name}[t-{lag}]" if lag else name


def windows(series: Series, lags: int) -> Table:
    """Each row with the `lags` rows before it as one case: the oldest slice first, the row itself last.

    >>> series, _ = read_series(np.array([[0], [1], [1], [0]]))
    >>> windows(series, 1)
    Table(3 cases, 2 variables: x1[t-1], x1)
    >>> windows(series, 1).codes.tolist()
    [[0, 1, 1], [1, 1, 0]]
    """
    if isinstance(lags, bool) or not isinstance(lags, int | np.integer) or lags < 1:
        raise ValueError(f"lags is {lags!r}, and says how many slices before matter: give a whole number from 1 on")
    short = np.flatnonzero(series.lengths <= lags)
    if len(short):
        n = int(series.lengths[short[0]])
        raise AdvisedError(
            f"{series.names[short[0]]} has {n} row{'s' * (n > 1)}, and ",
            ("lags", lags),
            f" needs at least {lags + 1}: leave it out, or use fewer lags",
        )
    names = [lagged(variable.name, lag) for lag in range(lags, -1, -1) for variable in series.table.variables]
    if len(set(names)) < len(names):
        raise ValueError(
            f"two columns would be called {brief(first_repeated(names))}, one of them a lagged one: rename it"
        )
    last = np.concatenate([np.arange(begin + lags, end) for begin, end in pairwise(series.ends.tolist())])
    codes = np.concatenate([series.table.codes[:, last - lag] for lag in range(lags, -1, -1)]).copy("C")
    variables = series.table.variables * (lags + 1)
    return Table(tuple(replace(v, name=name) for v, name in zip(variables, names, strict=True)), codes)


def wide(series: Series, length: int) -> tuple[Integers, Table]:
    """The indices of the series of this length, and each as one case of variables x[0], x[1], ...

    >>> series, _ = read_series(np.array([[0, 5], [0, 6], [1, 6], [1, 5]]), by="x1")
    >>> wide(series, 2)[1].codes.tolist()
    [[0, 1], [1, 0]]
    """
    chosen = np.flatnonzero(series.lengths == length)
    rows = series.ends[chosen]
    codes = np.concatenate([series.table.codes[:, rows + step] for step in range(length)]).copy("C")
    variables = tuple(
        replace(variable, name=f"{variable.name}[{step}]")
        for step in range(length)
        for variable in series.table.variables
    )
    return chosen, Table(variables, codes)


def _whole(column: Column) -> Integers:
    """The codes of a column; an error if cells are missing."""
    missing = np.flatnonzero(column.codes < 0)
    if len(missing):
        raise ValueError(
            f"row {missing[0] + 1:,} has no value in column {brief(column.name)}, which orders rows: fill it in"
        )
    return column.codes.astype(np.int64)


def _times(column: Column, own: Integers) -> Integers:
    """The time of each row as a whole number; dates are in months or microseconds. `own`: the series of each row."""
    codes = _whole(column)
    if column.numbers is not None:
        return _numbered(column, column.numbers)[codes]
    found = [moment(label) for label in column.labels]
    if None in found:
        raise _no_time(column.name, column.labels[0])
    moments = np.array(found, "datetime64[us]")
    months, whole = _months(moments), moments.astype(np.int64)
    on_the_clock = (whole if months is None else months)[codes]
    zones = [ahead(label) for label in column.labels]
    if None in zones or len(set(zones)) == 1 or len(np.unique(whole % MICROSECONDS)) == 1:
        return on_the_clock
    passed = (whole - np.array(zones, np.int64))[codes]  # as when clocks are put forward or back during a series
    return on_the_clock if not _is_even(own, passed) and _is_even(own, on_the_clock) else passed


def _is_even(own: Integers, times: Integers) -> bool:
    """Whether all steps in time are equal."""
    order = np.lexsort((times, own))
    steps = np.diff(times[order])[np.diff(own[order]) == 0]
    return not len(steps) or bool(steps[0] > 0 and (steps == steps[0]).all())


def _numbered(column: Column, numbers: NDArray[np.float64]) -> Integers:
    """The whole number of each label, exactly, where doubles do not tell large ones apart."""
    strange = np.flatnonzero((numbers % 1 != 0) | (np.abs(numbers) >= 2.0**63))
    if len(strange):
        raise _no_time(column.name, column.labels[strange[0]])
    if (np.abs(numbers) < 2.0**53).all():
        return numbers.astype(np.int64)
    return np.array([int(number(label) or 0) for label in column.labels], np.int64)


def _no_time(name: str, label: str) -> ValueError:
    return ValueError(
        f"column {brief(name)} holds {brief(label)} as a time, and times are whole numbers, or dates such as "
        f"2024-01-31: number the steps"
    )


def _months(moments: NDArray[np.datetime64]) -> Integers | None:
    """Dates as numbers of months, if all are the same day of several months, or the last day; else None."""
    dates = moments.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    last = (months + 1).astype("datetime64[D]") - 1
    alike = len(set((dates - months.astype("datetime64[D]")).tolist())) == 1 or bool((dates == last).all())
    whole: Integers = months.astype(np.int64)
    return whole if alike and (dates == moments).all() and len(np.unique(whole)) > 1 else None


def _check_steps(own: Integers, times: Integers, names: Sequence[str], labels: Sequence[str]) -> None:
    """Raise an error unless all steps in time are equal to the most common one of all series."""
    follows = np.flatnonzero(own[1:] == own[:-1])
    steps = times[follows + 1] - times[follows]
    if not len(steps):
        return
    twice = follows[steps == 0]
    if len(twice):
        raise ValueError(
            f"{names[own[twice[0]]]} has two rows at {brief(labels[twice[0]])}: leave one out, or name the column that "
            f"tells series apart"
        )
    found, counts = np.unique(steps, return_counts=True)
    uneven = follows[steps != found[counts.argmax()]]
    if len(uneven):
        at = int(uneven[0])
        usual = int(follows[int((steps == found[counts.argmax()]).argmax())])
        raise ValueError(
            f"{names[own[at]]} goes from {brief(labels[at])} to {brief(labels[at + 1])}, where others go as from "
            f"{brief(labels[usual])} to {brief(labels[usual + 1])}: add what is missing, or begin a series of its own "
            f"there"
        )
