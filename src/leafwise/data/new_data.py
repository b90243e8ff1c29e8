"""New data for known variables: every label is encoded as the state it had when the variables were learned.

Knows columns, tables, numbers and dates in labels, and the treatment of missing cells.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.data.batches import recode
from leafwise.data.binning import number
from leafwise.data.columns import Column, Source
from leafwise.data.dates import day
from leafwise.data.kinds import count_labels, some
from leafwise.data.table import Table, Variable, code_type
from leafwise.errors import Advice, AdvisedError, Argument

_CODE = re.compile(r"[+-]?0[0-9]")


def as_known(
    source: Source | Table,
    variables: Sequence[Variable],
    missing: str,
    unseen: str = "error",
    optional: Collection[str] = (),
) -> Table:
    """Encode the cases of a source, or of a table, in the states of these variables.

    Optional ones may be absent, or have labels that are not known, which are then missing.
    """
    return each_known(source, [variables], missing, unseen, optional)[0]


def each_known(
    source: Source | Table,
    several: Sequence[Sequence[Variable]],
    missing: str,
    unseen: str = "error",
    optional: Collection[str] = (),
) -> list[Table]:
    """The same for each of several lists of variables. Cases that are dropped are dropped from all tables."""
    may_lack = [{*optional, *(one.name for one in variables if one.hidden)} for variables in several]
    found = [_columns_of(source, *pair) for pair in zip(several, may_lack, strict=True)]
    if missing == "drop" and len(several) > 1:
        checked = [one for parts in zip(found, several, may_lack, strict=True) for one in _without_a_state(*parts)]
        kept = iter(complete([column for columns in found for column in columns], checked, missing, SUM_OVER))
        found = [[next(kept) for _ in columns] for columns in found]
    tables = []
    for columns, variables, lacks in zip(found, several, may_lack, strict=True):
        met = {variable.name: "missing" if variable.name in optional else unseen for variable in variables}
        tables.append(_met(columns, tuple(variables), missing, met, lacks))
    return tables


def _columns_of(source: Source | Table, variables: Sequence[Variable], may_lack: Collection[str]) -> list[Column]:
    """One column per variable."""
    if not variables:
        raise ValueError("variables is empty, where at least one is needed: leave it out to take them from the data")
    if isinstance(source, Table):
        return [_recoded(source, variable.name, variable.name in may_lack) for variable in variables]
    return _matched(source, variables, may_lack)


def _without_a_state(
    columns: Sequence[Column], variables: Sequence[Variable], optional: Collection[str]
) -> list[Column]:
    """The columns that have no state for missing cells."""
    has_state = {variable.name for variable in variables if variable.missing}.union(optional)
    return [column for column in columns if column.name not in has_state]


def _recoded(table: Table, name: str, optional: bool) -> Column:
    if optional and name not in table.names:
        return Column(name, np.full(table.n_cases, -1, np.int8), ())
    known = table.variables[table.index(name)]
    codes = table.codes[table.index(name)].astype(np.int32)
    if known.missing:
        codes[codes == known.n_states - 1] = -1
    return Column(name, codes, known.labels[: known.n_states - known.missing])


def _matched(opened: Source, variables: Sequence[Variable], optional: Collection[str]) -> list[Column]:
    """One column per variable, by name if the source has names, otherwise by position."""
    nothing = np.full(opened.n_rows, -1, np.int8)
    if opened.named:
        places = {name: index for index, name in enumerate(opened.names)}
        absent = [variable.name for variable in variables if variable.name not in {*places, *optional}]
        if absent:
            raise AdvisedError(
                f"{opened.title} lacks column{'s' * (len(absent) > 1)} {some(absent, 5)}, which the variables need "
                f"(it has {some(opened.names, 5)}): add them",
                Advice(", or if it has no header pass ", ("header", False)) if opened.told else "",
            )
        return [
            opened.column(places[variable.name]) if variable.name in places else Column(variable.name, nothing, ())
            for variable in variables
        ]
    shown = [variable for variable in variables if not variable.hidden]
    if len(opened.names) not in (len(shown), len(variables)):
        raise ValueError(
            f"{opened.title} has {len(opened.names)} columns without names, where {len(shown)} variables are "
            "known: give one column a variable, in their order"
        )
    there = shown if len(opened.names) == len(shown) else variables
    found = {variable.name: replace(opened.column(k), name=variable.name) for k, variable in enumerate(there)}
    return [found.get(variable.name) or Column(variable.name, nothing, ()) for variable in variables]


def _met(
    columns: list[Column],
    variables: tuple[Variable, ...],
    missing: str,
    unseen: Mapping[str, str],
    optional: Collection[str],
) -> Table:
    checked = _without_a_state(columns, variables, optional)
    if missing == "state":
        lacking = {column.name: column.n_missing for column in checked if column.n_missing}
        if lacking:
            raise AdvisedError(
                f"missing cells in {_counted(lacking)}, whose variables have no missing state, so ",
                ("missing", "state"),
                " cannot be met: pass ",
                ("missing", "drop"),
                ", or learn from data with missing cells",
            )
    if missing in ("unknown", "infer"):
        checked = []
    columns = complete(columns, checked, missing, SUM_OVER)
    sums = missing == "unknown"
    pairs = zip(columns, variables, strict=True)
    met = [_known_states(column, variable, unseen[variable.name], sums) for column, variable in pairs]
    return assembled(tuple(variable for variable, _ in met), columns, [states for _, states in met])


def _known_states(column: Column, variable: Variable, unseen: str, sums: bool) -> tuple[Variable, NDArray[np.int64]]:
    """The state of each label, and last of a missing cell; the variable is given such a state if a cell needs it.

    `sums`: whether missing cells are summed over, so that unseen labels can be treated as missing.
    """
    counts = count_labels(column)
    states = np.full(len(counts), -1, dtype=np.int64)
    seen = np.flatnonzero(counts[:-1])
    if variable.cuts and column.numbers is not None and not is_dated(variable):
        states[seen] = np.searchsorted(variable.cuts, column.numbers[seen], side="right")
    else:
        position = positions(variable)
        found = (known_state(column.labels[i], variable, position) for i in seen.tolist())
        states[seen] = [-1 if state is None else state for state in found]
    unknown = seen[states[seen] < 0]
    if len(unknown) and unseen == "error":
        told = _unseen(variable, [column.labels[i] for i in unknown], int(counts[unknown].sum()))
        advice = Advice(", or take them as missing with ", ("unseen", "missing")) if sums else ""
        raise AdvisedError(told, advice)
    if counts[-1] or len(unknown):
        variable = variable.with_missing
    states[states < 0] = variable.n_states - 1
    return variable, states


def positions(variable: Variable) -> dict[str, int]:
    """The state of each label, and of each number that a single label spells; "007" is a code, and spells none.

    >>> positions(Variable("pay", ("007", "1.50", "2.0", "2.00")))
    {'1.5': 1, '007': 0, '1.50': 1, '2.0': 2, '2.00': 3}
    """
    labels = {label: state for state, label in enumerate(variable.labels)}
    spelled = [(_as_number(label), state) for label, state in labels.items() if not _CODE.match(label)]
    often = Counter(text for text, _ in spelled)
    return {text: state for text, state in spelled if text is not None and often[text] == 1} | labels


def _as_number(label: str) -> str | None:
    """One spelling for all labels that spell the same number, exactly; None if a label spells none."""
    value = number(label)
    return None if value is None else str(int(value)) if value == int(value) else repr(value)


def known_state(label: str, variable: Variable, position: Mapping[str, int]) -> int | None:
    """The state of a label, in its known spelling or another: a number or date in its bin, 1.0 for 1, True for TRUE.

    >>> yes = Variable("active", ("FALSE", "TRUE"))
    >>> known_state("true", yes, positions(yes))
    1
    """
    if label in position:
        return position[label]
    if label.lower() in ("true", "false"):
        return _boolean_state(label.lower(), variable)
    if not variable.cuts:
        text = _as_number(label)
        return None if text is None else position.get(text)
    value = day(label) if is_dated(variable) else number(label)
    return None if value is None else int(np.searchsorted(variable.cuts, float(value), side="right"))


def _boolean_state(truth: str, variable: Variable) -> int | None:
    """The state whose label is a spelling of this truth value, such as true, True, TRUE, or 1."""
    spelled = [label.lower() for label in variable.labels]
    return next((spelled.index(text) for text in (truth, str(int(truth == "true"))) if text in spelled), None)


def is_dated(variable: Variable) -> bool:
    """Whether the cuts are days, which only the labels show."""
    return bool(variable.cuts) and day(variable.labels[0].removeprefix("< ")) is not None


def in_bins(variable: Variable) -> str:
    """The values of a binned variable, in words."""
    return "dates such as 2024-01-31" if is_dated(variable) else "numbers"


def _unseen(variable: Variable, labels: list[str], n_cells: int) -> str:
    cells = f"{n_cells} cell{'s' * (n_cells > 1)}"
    if variable.cuts:
        what = in_bins(variable)
        return (
            f"column {variable.name!r} is binned and has {cells} other than {what} ({some(labels, 3)}): "
            f"give {what}, or leave these cells empty"
        )
    return (
        f"column {variable.name!r} has {cells} with unseen labels ({some(labels, 3)}); its states are "
        f"{some(variable.labels, 5)}: correct the data, or learn again with such cases"
    )


# Missing cells


def is_missing(cell: Any) -> bool:
    """Whether a cell of a row is missing: None, NA, NaN or blank.

    >>> [is_missing(cell) for cell in (None, float("nan"), " ", "nan", 0)]
    [True, True, True, False, False]
    """
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return not cell.strip() if isinstance(cell, str) else bool(cell != cell)


INFER_OR_STATE = Advice(
    ("missing", "infer"),
    " to infer them from their rows, ",
    ("missing", "state"),
    " to make missing a state of its own",
)
SUM_OVER = Advice(("missing", "unknown"), " to sum over them when a network is evaluated")


class MissingCells(AdvisedError):
    """Cells are missing where none may be; the first part of the message says which."""


class NoWholeRow(AdvisedError):
    """No row is left once those with missing cells are dropped, as the first two parts of the message say."""


@contextmanager
def for_learning() -> Iterator[None]:
    """Read in known states in order to learn: the advice is to infer missing cells, which is not to sum over them."""
    try:
        yield
    except (MissingCells, NoWholeRow) as error:
        sums, infers = SUM_OVER.parts, (Argument("missing", "infer"), " to infer them from their rows")
        parts = [infers[sums.index(part)] if part in sums else part for part in error.advice.parts]
        raise type(error)(*parts) from None


@contextmanager
def without_inference() -> Iterator[None]:
    """Replace the advice to infer missing cells, for callers that cannot."""
    try:
        yield
    except MissingCells as error:
        state, drop = ("missing", "state"), ("missing", "drop")
        told = " to make missing a state of its own, or "
        raise AdvisedError(error.advice.parts[0], state, told, drop, " to leave these rows out") from None


@contextmanager
def without_sums(
    instead: str = "ask for log-likelihoods, which sum over them: leafwise evaluate, or log_probabilities",
) -> Iterator[None]:
    """Replace the advice to sum over missing cells, for callers that cannot."""
    try:
        yield
    except MissingCells as error:
        drop = Argument("missing", "drop", of="read")
        raise AdvisedError(error.advice.parts[0], drop, " to leave these rows out, or ", instead) from None
    except NoWholeRow as error:
        raise AdvisedError(*error.advice.parts[:2], f" leaves none: {instead}") from None


@contextmanager
def for_every_row() -> Iterator[None]:
    """Remove the advice to drop rows, which comes last, for callers that answer for every row."""
    try:
        yield
    except AdvisedError as error:
        parts, drop = error.advice.parts, Argument("missing", "drop")
        if drop not in parts:
            raise
        raise type(error)(*parts[: parts.index(drop) - 1]) from None


def complete(columns: list[Column], checked: Sequence[Column], missing: str, advice: Advice) -> list[Column]:
    """The columns, if no checked one has missing cells; otherwise an error, or the columns without such rows."""
    counts = {column.name: column.n_missing for column in checked}
    counts = {name: count for name, count in counts.items() if count}
    if not counts:
        return columns
    if missing == "error":
        raise MissingCells(
            f"missing cells in {_counted(counts)}: pass ",
            advice,
            ", or ",
            ("missing", "drop"),
            " to leave these rows out",
        )
    kept = np.ones(len(columns[0].codes), dtype=np.bool_)
    for column in checked:
        kept &= column.codes >= 0
    if not kept.any():
        helps = advice if advice is SUM_OVER else Advice(("missing", "state"), ", or leave out such columns")
        told = f"every row has a missing cell, in {_counted(counts)}, so "
        raise NoWholeRow(told, ("missing", "drop"), " leaves none: pass ", helps)
    return [column.of_rows(kept) for column in columns]


def _counted(counts: Mapping[str, int]) -> str:
    named = ", ".join(f"{some([name], 1)} ({count})" for name, count in list(counts.items())[:5])
    more = len(counts) - 5
    rest = f" and {more} more column{'s' * (more > 1)}" if more > 0 else ""
    return f"column{'s' * (len(counts) > 1)} {named}{rest}"


def assembled(
    variables: tuple[Variable, ...],
    columns: Sequence[Column],
    states: Sequence[NDArray[np.int64]],
    room: NDArray[np.uint8] | None = None,
) -> Table:
    """The table of variables, given the states of their columns' labels; in the array `room` if codes are bytes."""
    kind, n = code_type(variables), len(columns[0].codes)
    codes = np.empty((len(variables), n), kind) if room is None or kind != np.uint8 else room
    for row, column, found in zip(codes, columns, states, strict=True):
        if column.codes.base is not None and np.shares_memory(row, column.codes):
            of_byte = np.full(256, found[-1], np.uint8)  # code -1, a missing cell, is byte 255
            of_byte[: len(found) - 1] = found[:-1]
            if (found[:-1] != np.arange(len(found) - 1)).any() or column.n_missing:
                recode(row, of_byte)
        else:
            row[:] = found.astype(kind)[column.codes]  # code -1, a missing cell, indexes the last entry
    return Table(variables, codes)
