"""Data in, data out: files, frames and arrays become a `Table`, and a table becomes a file of labels.

Here states are decided: their natural order, missing cells, bins, and how new data meets known variables.
Knows `table`, `columns` (how sources are opened), `binning` and `writing`.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from leafwise.binning import BINNINGS, cut_points, interval_labels, number, number_label, plain_label
from leafwise.columns import Column, Source, open_source
from leafwise.table import MISSING, MOST_STATES, Table, Variable, code_type
from leafwise.writing import write

__all__ = ["read", "write"]

MISSING_CHOICES = ("error", "state", "drop", "unknown")


def read(
    source: object,
    *,
    header: bool = True,
    missing: str = "error",
    bins: int | Mapping[str, int] | None = None,
    binning: str = "quantile",
    variables: Sequence[Variable] | None = None,
) -> Table:
    """Read cases from a file, a frame or an array.

    `source` is a path (.csv, .tsv, .txt, each plain or .gz; .parquet), a frame with the Arrow PyCapsule stream
    (pandas, polars, Arrow), a 2-D NumPy array, or a Table, which is returned as it is. Without a `header`, and in
    arrays, columns are called x1, x2, ...

    States are the labels observed, numbers in numeric order, others by name; an ordered categorical keeps its order.
    Blanks around labels and names are dropped. A whole float is labelled as an integer, a boolean true or false.

    Missing are, in text files, empty cells and the bare words ? NA N/A NaN nan null NULL (quoted, they are labels);
    elsewhere nulls, NaN, None and empty texts. `missing` says what then: "error", "state" (a last state of its own,
    "(missing)"), or "drop" (leave out rows with a missing cell). With `variables`, "unknown" adds such a state where
    cells are missing and the variable has none, for `log_probabilities` to sum over what the cell may hold.

    `bins=k` cuts every numeric column with more than k distinct values into k bins; `bins={"age": 8}` only these
    columns. `binning` is "quantile" or "uniform". Heavy ties give fewer bins.

    `variables` encodes new data with exactly these states and cuts, columns being matched by name, or by position
    where the source has no names.

    >>> table = read(np.array([[1, 20.5], [10, 31.0], [2, 45.0]]), bins={"x2": 2})
    >>> [variable.labels for variable in table.variables]
    [('1', '2', '10'), ('< 31', '>= 31')]
    >>> table.codes.tolist()
    [[0, 2, 1], [0, 1, 1]]
    """
    _check_options(missing, bins, binning, variables)
    if isinstance(source, Table):
        return _reread(source, missing, bins, variables)
    opened = open_source(source, header=header)
    if variables is not None:
        return _met(_matched(opened, variables), tuple(variables), missing)
    columns = [opened.column(index) for index in range(len(opened.names))]
    if missing != "state":
        columns = _complete(columns, columns, missing, "missing='state' to make missing a state of its own")
    return _learned(columns, bins, binning)


def _check_options(
    missing: str, bins: int | Mapping[str, int] | None, binning: str, variables: Sequence[Variable] | None
) -> None:
    if missing not in MISSING_CHOICES:
        raise ValueError(f"missing={missing!r} is not known: use 'error', 'state', 'drop' or 'unknown'")
    if missing == "unknown" and variables is None:
        raise ValueError("missing='unknown' needs the variables of a network: pass variables, or missing='state'")
    if binning not in BINNINGS:
        raise ValueError(f"binning={binning!r} is not known: use 'quantile' or 'uniform'")
    if bins is None:
        return
    if variables is not None:
        raise ValueError("bins and variables were both given: variables bring their own cuts, so leave bins out")
    for n_bins in bins.values() if isinstance(bins, Mapping) else (bins,):
        if isinstance(n_bins, bool) or not isinstance(n_bins, int | np.integer):
            raise TypeError(f"bins={bins!r} is not a count of bins: use a whole number, or a mapping {{'name': 8}}")
        if n_bins < 2:
            raise ValueError(f"bins={bins!r} asks for fewer than 2 bins: use at least 2")


# Missing cells


def _complete(columns: list[Column], checked: Sequence[Column], missing: str, advice: str) -> list[Column]:
    """The columns where no checked one has a missing cell: an error, or the rows without any."""
    counts = {column.name: int(np.count_nonzero(column.codes < 0)) for column in checked}
    counts = {name: count for name, count in counts.items() if count}
    if not counts:
        return columns
    if missing == "error":
        raise ValueError(
            f"missing cells in {_counted(counts)}: pass {advice}, or missing='drop' to leave these rows out"
        )
    kept = np.ones(len(columns[0].codes), dtype=np.bool_)
    for column in checked:
        kept &= column.codes >= 0
    if not kept.any():
        raise ValueError(
            f"every row has a missing cell, in {_counted(counts)}, so missing='drop' leaves none: "
            "pass missing='state', or leave out such columns"
        )
    return [Column(column.name, column.codes[kept], column.labels, column.ordered) for column in columns]


def _counted(counts: Mapping[str, int]) -> str:
    named = ", ".join(f"{name!r} ({count})" for name, count in list(counts.items())[:5])
    more = len(counts) - 5
    rest = f" and {more} more column{'s' * (more > 1)}" if more > 0 else ""
    return f"column{'s' * (len(counts) > 1)} {named}{rest}"


# States from the data


def _learned(columns: list[Column], bins: int | Mapping[str, int] | None, binning: str) -> Table:
    if isinstance(bins, Mapping):
        unknown = [name for name in bins if name not in {column.name for column in columns}]
        if unknown:
            known = _some([column.name for column in columns], 5)
            raise ValueError(f"bins name {_some(unknown, 3)}, but the columns are {known}: correct the names")
    pairs = [_states(column, bins, binning) for column in columns]
    return _assembled(tuple(variable for variable, _ in pairs), columns, [states for _, states in pairs])


def _states(column: Column, bins: int | Mapping[str, int] | None, binning: str) -> tuple[Variable, NDArray[np.int64]]:
    """The variable of a column, and the state of each of its labels (the last entry: of a missing cell)."""
    counts = _counts(column)
    seen = np.flatnonzero(counts[:-1])
    texts = [column.labels[i] for i in seen]
    numbers = [number(text) for text in texts]
    values = np.array(numbers, dtype=np.float64) if texts and None not in numbers else None
    n_bins = _n_bins(column.name, values, texts, bins)
    cuts = _cuts(values, counts[seen], n_bins, binning) if n_bins is not None and values is not None else ()
    if cuts and values is not None:
        labels, found = interval_labels(cuts), np.searchsorted(cuts, values, side="right")
    else:
        labels, found = _natural(texts, numeric=values is not None, ordered=column.ordered)
    has_missing = bool(counts[-1])
    _check_labels(column.name, labels, has_missing, numeric=values is not None)
    states = np.full(len(counts), len(labels), dtype=np.int64)
    states[seen] = found
    ordered = column.ordered or (values is not None and len(labels) > 2)
    return Variable(column.name, labels + (MISSING,) * has_missing, cuts, has_missing, ordered), states


def _counts(column: Column) -> NDArray[np.int64]:
    """How often each label occurs, and last how many cells are missing."""
    return np.roll(np.bincount(column.codes + 1, minlength=len(column.labels) + 1), -1).astype(np.int64)


def _n_bins(
    name: str, values: NDArray[np.float64] | None, texts: list[str], bins: int | Mapping[str, int] | None
) -> int | None:
    if not isinstance(bins, Mapping):
        return bins if bins is not None and values is not None and len(np.unique(values)) > bins else None
    if name in bins and values is None:
        words = [text for text in texts if number(text) is None]
        raise ValueError(f"column {name!r} is not numeric (it has {_some(words, 3) or 'no cell'}): take it out of bins")
    return bins.get(name)


def _cuts(values: NDArray[np.float64], counts: NDArray[np.int64], n_bins: int, binning: str) -> tuple[float, ...]:
    distinct, inverse = np.unique(values, return_inverse=True)
    totals = np.bincount(inverse, weights=counts).astype(np.int64)
    return cut_points(distinct, totals, n_bins, binning)


def _natural(texts: list[str], *, numeric: bool, ordered: bool) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Labels in natural order, and the state of each text."""
    spelled = [plain_label(text) for text in texts] if numeric else texts
    labels = list(dict.fromkeys(spelled))
    if not ordered:
        labels.sort()
        if numeric:
            labels.sort(key=lambda label: number(label) or 0)
    position = {label: state for state, label in enumerate(labels)}
    return tuple(labels), np.array([position[text] for text in spelled], dtype=np.int64)


def _check_labels(name: str, labels: tuple[str, ...], has_missing: bool, *, numeric: bool) -> None:
    if len(labels) + has_missing > MOST_STATES:
        advice = f"bin it with bins={{{name!r}: 8}}, or drop it" if numeric else "group its labels, or drop it"
        raise ValueError(
            f"column {name!r} has {len(labels)} distinct values, more than the limit of {MOST_STATES}: {advice}"
        )
    if has_missing and MISSING in labels:
        raise ValueError(
            f"column {name!r} has missing cells and the label {MISSING!r}, which stands for them: rename it"
        )


def _some(texts: Sequence[str], most: int) -> str:
    rest = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(repr(text if len(text) <= 40 else text[:37] + "...") for text in texts[:most]) + rest


def _assembled(
    variables: tuple[Variable, ...], columns: Sequence[Column], states: Sequence[NDArray[np.int64]]
) -> Table:
    kind = code_type(variables)
    codes = np.empty((len(variables), len(columns[0].codes)), dtype=kind)
    for row, column, found in zip(codes, columns, states, strict=True):
        row[:] = found.astype(kind)[column.codes]  # code -1, a missing cell, finds the last entry
    return Table(variables, codes)


# New data and known variables


def _matched(opened: Source, variables: Sequence[Variable]) -> list[Column]:
    """One column a variable, by name where the source has names, else by position."""
    if not variables:
        raise ValueError("variables is empty, where at least one is needed: leave it out to take them from the data")
    if opened.named:
        places = {name: index for index, name in enumerate(opened.names)}
        absent = [variable.name for variable in variables if variable.name not in places]
        if absent:
            raise ValueError(
                f"{opened.title} lacks column{'s' * (len(absent) > 1)} {_some(absent, 5)}, which the variables need "
                f"(it has {_some(opened.names, 5)}): add them, or pass header=False if it has no header"
            )
        return [opened.column(places[variable.name]) for variable in variables]
    if len(opened.names) != len(variables):
        raise ValueError(
            f"{opened.title} has {len(opened.names)} columns without names, where {len(variables)} variables are "
            "known: give one column a variable, in their order"
        )
    columns = [opened.column(index) for index in range(len(variables))]
    return [
        Column(variable.name, column.codes, column.labels, column.ordered)
        for variable, column in zip(variables, columns, strict=True)
    ]


def _met(columns: list[Column], variables: tuple[Variable, ...], missing: str) -> Table:
    checked = [column for column, variable in zip(columns, variables, strict=True) if not variable.missing]
    if missing == "state":
        lacking = {column.name: n for column in checked if (n := int(np.count_nonzero(column.codes < 0)))}
        if lacking:
            raise ValueError(
                f"missing cells in {_counted(lacking)}, whose variables have no missing state, so missing='state' "
                "cannot be met: pass missing='drop', or learn from data with missing cells"
            )
    if missing == "unknown":
        pairs = zip(variables, columns, strict=True)
        variables = tuple(variable.with_missing if (column.codes < 0).any() else variable for variable, column in pairs)
        checked = []
    columns = _complete(columns, checked, missing, "missing='unknown' to sum over them when a network is evaluated")
    states = [_known_states(column, variable) for column, variable in zip(columns, variables, strict=True)]
    return _assembled(variables, columns, states)


def _known_states(column: Column, variable: Variable) -> NDArray[np.int64]:
    counts = _counts(column)
    states = np.full(len(counts), variable.n_states - 1, dtype=np.int64)
    position = {label: state for state, label in enumerate(variable.labels)}
    unseen: list[int] = []
    for i in np.flatnonzero(counts[:-1]).tolist():
        state = known_state(column.labels[i], variable, position)
        if state is None:
            unseen.append(i)
        else:
            states[i] = state
    if unseen:
        labels = [column.labels[i] for i in unseen]
        raise ValueError(_unseen(variable, labels, int(counts[unseen].sum())))
    return states


def known_state(label: str, variable: Variable, position: Mapping[str, int]) -> int | None:
    """The state of a label, spelled as known, or as a number that is binned or spelled otherwise (1.0 for 1)."""
    if label in position:
        return position[label]
    value = number(label)
    if value is None:
        return None
    if variable.cuts:
        return int(np.searchsorted(variable.cuts, float(value), side="right"))
    return position.get(number_label(float(value)))


def _unseen(variable: Variable, labels: list[str], n_cells: int) -> str:
    cells = f"{n_cells} cell{'s' * (n_cells > 1)}"
    if variable.cuts:
        return (
            f"column {variable.name!r} is binned and has {cells} that are not numbers ({_some(labels, 3)}): "
            "give numbers, or leave these cells empty"
        )
    return (
        f"column {variable.name!r} has {cells} with unseen labels ({_some(labels, 3)}); its states are "
        f"{_some(variable.labels, 5)}: correct the data, or learn again with such cases"
    )


def _reread(
    table: Table, missing: str, bins: int | Mapping[str, int] | None, variables: Sequence[Variable] | None
) -> Table:
    if bins is not None or (missing == "drop" and any(variable.missing for variable in table.variables)):
        raise ValueError("a Table is encoded already: give bins and missing='drop' when the data are read")
    if variables is None or tuple(variables) == table.variables:
        return table
    columns = []
    for variable in variables:
        row = table.codes[table.index(variable.name)].astype(np.int32)
        known = table.variables[table.index(variable.name)]
        if known.missing:
            row[row == known.n_states - 1] = -1
        columns.append(Column(variable.name, row, known.labels[: known.n_states - known.missing]))
    return _met(columns, tuple(variables), missing)
