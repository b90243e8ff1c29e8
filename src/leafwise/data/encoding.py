"""Reading and writing data: files, frames and arrays become a `Table`, and a table becomes a file of labels.

This module selects the columns to read; `kinds` determines the kind and states of each, and `new_data` encodes new data
with known variables. Knows these, `columns` (how sources are opened), `description` and `writing`.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from leafwise.data.batches import PackedSource, files_of, is_path, read_batches
from leafwise.data.binning import number
from leafwise.data.case_weights import Floats, checked_weights, repeated_rows
from leafwise.data.columns import Column, Source, check_file, open_source
from leafwise.data.description import Description, ReadColumn
from leafwise.data.kinds import DATES, Bins, Choices, Understood, some, understand
from leafwise.data.new_data import INFER_OR_STATE, as_known, assembled, complete, each_known
from leafwise.data.table import Table, Variable, code_type
from leafwise.data.table_cache import TableCache
from leafwise.data.text_files import Format
from leafwise.data.writing import write_table
from leafwise.errors import AdvisedError, Part, check_type

__all__ = ["Reading", "describe", "read", "write"]

MISSING_CHOICES = ("error", "state", "drop", "unknown", "infer")
Names = str | Sequence[str]


class Reading(TypedDict, total=False):
    """The arguments of `read` that say how data are read, as `learn` and others pass them on."""

    header: bool
    delimiter: str | None
    decimal: str | None
    encoding: str | None
    na: Names
    columns: Names | None
    ignore: Names
    missing: str
    bins: Bins
    binning: str | None
    states: Names
    dates: str
    most_bytes: int | None
    cache: bool


class NewReading(Reading, total=False):
    """The same for new data, whose variables are known."""

    unseen: str


def read(
    source: object,
    *,
    header: bool = True,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    na: Names = (),
    columns: Names | None = None,
    ignore: Names = (),
    missing: str = "error",
    bins: Bins = "auto",
    binning: str | None = None,
    states: Names = (),
    dates: str = "error",
    target: str | None = None,
    variables: Sequence[Variable] | None = None,
    unseen: str = "error",
    most_bytes: int | None = None,
    cache: bool = False,
) -> Table:
    """Read cases from a file, several files, a frame or an array.

    `source`: a path (.csv, .tsv, .txt, each plain or .gz; .parquet; "-" for standard input), a folder, a pattern such
    as "data/*.csv", or a list of these with the same columns, which are read in batches; a frame with the Arrow
    PyCapsule stream (pandas, polars, Arrow), a 2-D NumPy array, or a Table, which is returned unchanged.
    `header`: False if a file has no header; columns are then called x1, x2, ..., as in arrays.
    `delimiter`: the character between cells; detected if None.
    `decimal`: "." or ","; detected if None. The other one may separate thousands.
    `encoding`: such as "utf-16" or "cp1252"; detected if None.
    `na`: words for missing cells, besides those of text files: empty cells and the unquoted words ? NA N/A NaN nan null
    NULL (quoted, they are labels); -999 matches this number, however it is written. In frames and arrays, nulls, NaN,
    None and empty texts are missing.
    `columns`: only these columns, by name or by patterns such as "x*".
    `ignore`: all but these columns, by name or pattern.
    `missing`: the treatment of missing cells: "error", "state" (an additional last state, "(missing)"), or "drop" (omit
    rows with missing cells). With `variables`, "unknown" adds such a state where cells are missing and the variable has
    none, and `log_probabilities` sums over it. "infer" is "state" here; `learn` infers the cells if it gets it.
    `bins`: "auto" bins numeric columns with too many values to be states: more than 20, or fewer than four cases per
    value (up to five integers always are states). 8 cuts every numeric column with more than eight values into eight
    bins; {"age": 8} this one, the others as by "auto"; None bins no column.
    `binning`: "bayes" finds the most probable cut points with respect to the target or, without one, to the three
    columns that depend most on the numbers; "quantile" makes bins of equal frequency, "uniform" bins of equal width. By
    default it is "bayes" if the number of bins is "auto", else "quantile".
    `states`: columns whose values are states whatever they look like, by name or pattern. Otherwise identifiers and
    free text, columns in which nearly every row has its own value, are refused.
    `dates`: "error" refuses dates, "bins" bins them as numbers of days.
    `target`: the variable to learn, with respect to which numbers are binned.
    `variables`: encodes new data with exactly these states and cut points; columns are matched by name, or by position
    if the source has no names.
    `unseen`: with `variables`, the treatment of labels that they do not have: "error", or "missing".
    `most_bytes`: the largest size to which a compressed file may expand; if None, 64 MiB plus 200 times its size.
    `cache`: keep the packed table beside the first file, and load it from there as long as the files do not change.

    States are the observed labels, numbers in numeric order, others sorted by name; ordered categoricals keep their
    order. Blanks around labels and names are stripped. Integral floats are labelled as integers, Booleans as true or
    false, however they are spelled.

    >>> import numpy as np
    >>> table = read(np.array([[1, 20.5], [10, 31.0], [2, 45.0]]), bins={"x2": 2})
    >>> [variable.labels for variable in table.variables]
    [('1', '2', '10'), ('< 31', '>= 31')]
    >>> table.codes.tolist()
    [[0, 2, 1], [0, 1, 1]]
    """
    how = Format(header, delimiter, decimal, encoding, _words(na), most_bytes)
    options = Options(how, columns, ignore, missing, bins, binning, states, dates, target, variables, unseen, cache)
    return _read(source, options)[0]


def read_and_describe(
    source: object,
    *,
    target: str | None = None,
    variables: Sequence[Variable] | None = None,
    **reading: Unpack[Reading],
) -> "tuple[Table, Description | None]":
    """The table that `read` returns, and its description; None for a Table, or if variables are given."""
    return _read(source, options_of(reading, target, variables))


def read_weighted(
    source: object,
    weights: Any,
    *,
    target: str | None = None,
    variables: Sequence[Variable] | None = None,
    **reading: Unpack[Reading],
) -> tuple[Table, Description | None, Floats | None]:
    """Like `read_and_describe`, with case weights: numbers, or the name of a column, which then is not a variable.

    Integer weights repeat their rows before columns are interpreted, and None is returned instead. Other weights are
    returned for the remaining cases.
    """
    options = options_of(reading, target, variables)
    _refuse_cache(options, ("weights",))
    if isinstance(source, Table):
        return _weighted_table(source, weights, options)
    opened = open_source(source, options.how)
    if isinstance(weights, str):
        (name,) = _matching(weights, opened.names, "weights")[:1]
        weights = _numbers_of(opened.column(opened.names.index(name)))
        options = replace(options, ignore=[*_listed(options.ignore), name])
    found = checked_weights(weights, opened.n_rows)
    rows, opened = repeated_rows(found, len(opened.names)), chosen(opened, options)
    if rows is not None:
        return (*_read_opened(opened.of_rows(rows), options), None)
    rows = np.flatnonzero((found > 0) & _will_stay(opened, options))
    if not len(rows):  # reading the others tells why
        rows = np.flatnonzero(found)
    table, understood = _read_opened(opened.of_rows(rows), options)
    return table, understood, checked_weights(found[rows], table.n_cases)


def read_beside(
    source: object,
    wanted: Mapping[str, str],
    *,
    variables: Sequence[Variable] | None = None,
    **reading: Unpack[NewReading],
) -> tuple[Table, Description | None, dict[str, Column]]:
    """Like `read_and_describe`, with columns that are not variables: `wanted` maps their purposes to their names."""
    options = options_of(reading, None, variables)
    _refuse_cache(options, "series")
    if isinstance(source, Table):
        places = {what: source.index(name) for what, name in wanted.items()}
        beside = {what: _column_of(source, place) for what, place in places.items()}
        return _reread(_without(source, *places.values()), options), None, beside
    opened = open_source(source, options.how)
    names = {what: _matching(name, opened.names, what)[0] for what, name in wanted.items()}
    beside = {what: opened.column(opened.names.index(name)) for what, name in names.items()}
    options = replace(options, ignore=[*_listed(options.ignore), *names.values()])
    return (*_read_opened(chosen(opened, options), options), beside)


def _refuse_cache(options: "Options", beside: Part) -> None:
    if options.cache:
        raise AdvisedError(("cache",), " and ", beside, " were both given, which do not go together yet: leave one out")


def describe(source: object, *, target: str | None = None, **reading: Unpack[Reading]) -> Description:
    """Describe how each column is interpreted, before learning; the arguments are those of `read`.

    Columns that `read` refuses, and missing cells, are described like all others, with advice.

    >>> import numpy as np
    >>> print(describe(np.array([[0, 0.5], [1, 1.5], [0, 2.5], [1, 3.5]])))
    the array: 4 rows, 2 columns
    <BLANKLINE>
    column  kind    values  missing  read as
    x1      states       2        0  0, 1
    x2      bins         4        0  2 bins: < 2.5, >= 2.5
    """
    if isinstance(source, Table):
        raise TypeError("a Table is encoded already, and its variables say how: describe the data it was read from")
    options = options_of(reading, target)
    if options.cache:
        raise AdvisedError(("cache",), " keeps a table that is read, and describe reads none: leave it out")
    opened = _opened(source, options)
    understood = _understood(_columns(opened, options), options)
    return _description(opened, understood, options)


@dataclass(frozen=True)
class Options:
    """The arguments of `read`, checked."""

    how: Format = field(default_factory=Format)
    columns: Names | None = None
    ignore: Names = ()
    missing: str = "error"
    bins: Bins = "auto"
    binning: str | None = None
    states: Names = ()
    dates: str = "error"
    target: str | None = None
    variables: Sequence[Variable] | None = None
    unseen: str = "error"
    cache: bool = False

    def __post_init__(self) -> None:
        if self.missing not in MISSING_CHOICES:
            raise ValueError(
                f"missing={self.missing!r} is not known: use 'error', 'state', 'drop', 'infer' or 'unknown'"
            )
        if self.missing == "unknown" and self.variables is None:
            raise AdvisedError(
                ("missing", "unknown"),
                " needs the variables of a network: pass variables, or ",
                ("missing", "state"),
            )
        if self.unseen not in ("error", "missing"):
            raise ValueError(f"unseen={self.unseen!r} is not known: use 'error' or 'missing'")
        if self.unseen != "error" and self.variables is None:
            raise ValueError("unseen='missing' needs the variables of a network: pass variables, or leave it out")
        if self.variables is not None and self.bins not in ("auto", None):
            raise ValueError("bins and variables were both given: variables bring their own cuts, so leave bins out")
        if self.cache and self.variables is not None:
            raise AdvisedError(
                ("cache",), " keeps a table with states of its own, and variables were given: leave one out"
            )
        Choices(self.bins, self.binning, dates=self.dates)  # checks them before anything is read

    def choices(self, names: Sequence[str]) -> Choices:
        """The choices for columns with these names."""
        kept = frozenset(_matching(self.states, names, "states"))
        return Choices(self.bins, self.binning, kept, self.dates, self.target)


def options_of(reading: Reading, target: str | None, variables: Sequence[Variable] | None = None) -> Options:
    """The arguments of `read` as checked options."""
    given: dict[str, Any] = {**reading}
    na = _words(given.pop("na", ()))
    of_text = {name: given.pop(name) for name in ("header", "delimiter", "decimal", "encoding") if name in given}
    how = Format(**of_text, na=na, most_bytes=given.pop("most_bytes", None))
    return Options(how, target=target, variables=variables, **given)


def _read(source: object, options: Options) -> tuple[Table, Description | None]:
    if isinstance(source, Table):
        return _reread(source, options), None
    if not options.cache:
        return _read_opened(_opened(source, options), options)
    files = files_of(source) if is_path(source) else [Path("-")]
    if Path("-") in files:
        raise AdvisedError(("cache",), " keeps what is read of files, and these are none: leave it out")
    for file in files:
        check_file(file)
    said = {**vars(options), "how": {**vars(options.how), "na": sorted(options.how.na)}}
    kept = TableCache(files, repr(said))
    found = kept.load()
    if found is not None:
        return found
    with kept.writing() as write_down:
        table, described = _read_opened(_opened(source, options), options)
        assert described is not None  # since no variables were given
        write_down(table, described)
    return table, described


def _opened(source: object, options: Options) -> Source:
    """Open the selected columns of a source; files are read in batches."""
    if is_path(source):
        return read_batches(source, options.how, lambda whole: chosen(whole, options))
    return chosen(open_source(source, options.how), options)


def _read_opened(opened: Source, options: Options) -> tuple[Table, Description | None]:
    if options.variables is not None:
        return as_known(opened, options.variables, options.missing, options.unseen), None
    columns = _columns(opened, options)
    understood = _understood(columns, options)
    refuse(understood)
    if options.missing == "error":
        complete(columns, columns, "error", INFER_OR_STATE)
    variables = tuple(one.variable for one in understood if one.variable is not None)
    states = [one.states for one in understood if one.states is not None]
    is_packed = isinstance(opened, PackedSource) and opened.n_rows == len(columns[0].codes)  # no row was dropped
    room = opened.block if isinstance(opened, PackedSource) and is_packed else None
    return assembled(variables, columns, states, room), _description(opened, understood, options)


def _weighted_table(table: Table, weights: Any, options: Options) -> tuple[Table, None, Floats | None]:
    if isinstance(weights, str):
        place = table.index(weights)
        weights, table = _numbers_of(_column_of(table, place)), _without(table, place)
    found = checked_weights(weights, table.n_cases)
    rows = repeated_rows(found, table.n_variables)
    kept = np.flatnonzero(found) if rows is None else rows
    table = _reread(Table(table.variables, np.ascontiguousarray(table.codes[:, kept])), options)
    return table, None, found[kept] if rows is None else None


def _column_of(table: Table, place: int) -> Column:
    """Convert a variable of a table back to a column."""
    variable = table.variables[place]
    labels, codes = variable.labels[: variable.n_states - variable.missing], table.codes[place].astype(np.int64)
    codes[codes == len(labels)] = -1
    return Column(variable.name, codes, labels, numbers=_numbers(labels))


def _without(table: Table, *places: int) -> Table:
    """The table without the variables at these places."""
    others = [other for other in range(table.n_variables) if other not in places]
    if not others:
        raise ValueError(f"of the {table.n_variables} variables of the table none is left: name fewer of them")
    variables = tuple(table.variables[other] for other in others)
    return Table(variables, table.codes[others].astype(code_type(variables)))


def _numbers(labels: Sequence[str]) -> Floats | None:
    found = [number(label) for label in labels]
    return None if None in found else np.array(found, np.float64)


def _numbers_of(column: Column) -> Floats:
    """The weights in a column."""
    missing = np.flatnonzero(column.codes < 0)
    if len(missing):
        raise ValueError(f"row {missing[0] + 1:,} has no weight in column {column.name!r}: write 0 to leave it out")
    if column.numbers is None:
        strange = next((label for label in column.labels if number(label) is None), column.labels[0])
        raise ValueError(f"column {column.name!r} holds {strange!r}, which is no weight: give numbers from 0 on")
    found: Floats = column.numbers[column.codes]
    return found


def _will_stay(opened: Source, options: Options) -> NDArray[np.bool_]:
    """A mask of the rows that remain with missing='drop', else of all."""
    kept = np.ones(opened.n_rows, np.bool_)
    if options.missing == "drop":
        has_state = {variable.name for variable in options.variables or () if variable.missing}
        for place, name in enumerate(opened.names):
            if name not in has_state:
                kept &= opened.column(place).codes >= 0
    return kept


def write(data: object, path: str | os.PathLike[str]) -> None:
    """Write the labels of a table, or of what `read` accepts, to .csv, .tsv or .txt, plain or .gz, or to .parquet.

    Binned columns are written as intervals, missing cells as empty ones. Text is quoted only if it would not be read
    back otherwise. The file is replaced atomically.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "cases.csv"
    ...     write(np.array([["no"], ["yes"]]), path)
    ...     path.read_text()
    'x1\\nno\\nyes\\n'
    """
    check_type(path, (str, os.PathLike), "where to write", "a path: use for example 'cases.csv'")
    table = data if isinstance(data, Table) else read(data, missing="state", bins=None, states="*")
    write_table(table, path)


def read_each(source: object, several: Sequence[Sequence[Variable]], **reading: Unpack[NewReading]) -> list[Table]:
    """Read the same cases, once, in the states of each of several lists of variables; all tables have the same rows."""
    options = options_of(reading, None, several[0])
    if isinstance(source, Table):
        return [_reread(source, replace(options, variables=variables)) for variables in several]
    return each_known(_opened(source, options), several, options.missing, options.unseen)


def read_new(
    source: object,
    variables: Sequence[Variable],
    *,
    optional: Collection[str] = (),
    unseen: str = "error",
    **reading: Unpack[Reading],
) -> Table:
    """Read new data in the states of known variables, as by `read`; optional variables may lack a column."""
    options = replace(options_of(reading, None, variables), unseen=unseen)
    if isinstance(source, Table):
        return _reread(source, options, optional)
    opened = _opened(source, options)
    return as_known(opened, variables, options.missing, unseen, optional)


def _reread(table: Table, options: Options, optional: Collection[str] = ()) -> Table:
    drops = options.missing == "drop" and any(variable.missing for variable in table.variables)
    kept = {name: getattr(options, name) for name in ("missing", "bins", "target", "variables", "unseen")}
    if options.bins not in ("auto", None) or drops or options != Options(**kept):
        raise ValueError("a Table is encoded already: give bins, missing and the like when the data are read")
    if options.variables is None or tuple(options.variables) == table.variables:
        return table
    return as_known(table, options.variables, options.missing, options.unseen, optional)


# Which columns


def _listed(names: Names) -> list[str]:
    check_type(names, (str, Sequence), "what names columns or words", "a text or several: use for example ['id', 'x*']")
    return [names] if isinstance(names, str) else list(names)


def _words(na: Names) -> frozenset[str]:
    words = _listed(na)
    for word in words:
        check_type(word, str, "a word for missing cells", "a text: use for example '-999'")
    return frozenset(words)


def _matching(wanted: Names, names: Sequence[str], argument: str) -> list[str]:
    """Expand names and patterns to the names that they match; a ValueError if one matches none."""
    found: dict[str, None] = {}
    known = set(names)
    for one in _listed(wanted):
        matches = [one] if one in known else [name for name in names if fnmatchcase(name, str(one))]
        if not matches:
            raise ValueError(f"{argument} names {one!r}, but the columns are {some(names, 5)}: correct the names")
        found |= dict.fromkeys(matches)
    return list(found)


def chosen(opened: Source, options: Options) -> Source:
    """Select the columns of a source."""
    kept = set(opened.names) if options.columns is None else set(_matching(options.columns, opened.names, "columns"))
    kept -= set(_matching(options.ignore, opened.names, "ignore"))
    if not kept:
        raise ValueError(f"of the {len(opened.names)} columns of {opened.title} none is left: ignore fewer")
    if len(kept) == len(opened.names):
        return opened
    return opened.only([place for place, name in enumerate(opened.names) if name in kept])


def _columns(opened: Source, options: Options) -> list[Column]:
    columns = [opened.column(index) for index in range(len(opened.names))]
    return complete(columns, columns, "drop", INFER_OR_STATE) if options.missing == "drop" else columns


def _understood(columns: Sequence[Column], options: Options) -> list[Understood]:
    return understand(columns, options.choices([column.name for column in columns]))


def refuse(understood: Sequence[Understood]) -> None:
    """Raise an error unless every column became a variable."""
    refused = [one for one in understood if one.variable is None]
    if not refused:
        return
    several = len(refused) > 1
    what = [f"{one.column.name!r} ({_what(one)})" for one in refused[:8]]
    more = f" and {len(refused) - 8} more" if len(refused) > 8 else ""
    names = [one.column.name for one in refused]
    parts: list[Any] = [
        f"column{'s' * several} {', '.join(what)}{more} cannot be states as {'they are' if several else 'it is'}: "
        f"leave {'them' if several else 'it'} out with ",
        ("ignore", names),
        ", or take every value as a state with ",
        ("states", names),
    ]
    if any(one.kind == DATES for one in refused):
        parts += [", or cut dates such as 2024-01-31 into bins with ", ("dates", "bins")]
    words = list(dict.fromkeys(word for one in refused for word in one.words))
    if words:
        parts += [", or where a word among numbers means a missing cell pass ", ("na", words)]
    raise AdvisedError(*parts)


def _what(one: Understood) -> str:
    kind = f"numbers but for {some(one.words, 3)}" if one.words else one.kind
    return f"{kind}: {one.n_values:,} value{'s' * (one.n_values > 1)} in {int(one.counts[:-1].sum()):,} cells"


def _description(opened: Source, understood: Sequence[Understood], options: Options) -> Description:
    columns = [
        ReadColumn(one.column.name, one.kind, one.n_values, one.n_missing, _told(one, options), one.copy_of, one.words)
        for one in understood
    ]
    n_rows = len(understood[0].column.codes)
    return Description(opened.title, opened.told, n_rows, tuple(columns), options.missing == "error")


def _told(one: Understood, options: Options) -> Variable | None:
    """The variable to describe: without its missing state, if missing cells are to be inferred."""
    variable = one.variable
    if options.missing != "infer" or variable is None or not variable.missing or variable.n_states == 1:
        return variable
    return replace(variable, labels=variable.labels[:-1], missing=False)
