"""Variables and tables: names, states, and one row of integer codes per variable.

Knows NumPy and `frames`. Files and frames are made into tables by `encoding`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from itertools import pairwise
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from leafwise.data.frames import Categories, Columns, Framed, html_table

MISSING = "(missing)"
MOST_STATES = 65_535
_ROWS_SHOWN, _COLUMNS_SHOWN = 5, 20


@dataclass(frozen=True, slots=True, repr=False)
class Variable:
    """A name and states: one label per state, in natural order.

    A binned numeric column keeps its cut points: state s holds cuts[s - 1] <= value < cuts[s].
    With `missing`, the last state represents missing cells and is labelled "(missing)".
    `ordered` means that the order of the states, except the missing one, is meaningful: numbers, bins, ranks.
    `hidden` means that it is never observed: data have no column of it. Comparisons of variables ignore both.

    >>> Variable("age", ("< 30", ">= 30", "(missing)"), cuts=(30.0,), missing=True).n_states
    3
    """

    name: str
    labels: tuple[str, ...]
    cuts: tuple[float, ...] = ()
    missing: bool = False
    ordered: bool = field(default=False, compare=False)
    hidden: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if self.cuts:
            object.__setattr__(self, "ordered", True)
        problem = _variable_problem(self)
        if problem:
            raise ValueError(f"variable {brief(self.name)} {problem}")

    @property
    def n_states(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        order = " in order" if self.ordered else ""
        return f"Variable({self.name!r}, {many(self.n_states, 'state')}{order}: {shortened(self.labels)})"

    @property
    def with_missing(self) -> "Variable":
        """This variable, with a last state for missing cells added if it has none."""
        return self if self.missing else replace(self, labels=(*self.labels, MISSING), missing=True)


def _variable_problem(variable: Variable) -> str | None:
    labels, cuts = variable.labels, variable.cuts
    if not variable.name:
        return "has an empty name: give it one"
    broken = next((text for text in (variable.name, *labels) if not _is_utf_8(text)), None)
    if broken is not None:
        return f"has the text {brief(broken)}, part of which is no character, so that no file can hold it: rename it"
    if not 1 <= len(labels) <= MOST_STATES:
        return f"has {len(labels)} states, not 1 to {MOST_STATES}: merge or bin some"
    if len(set(labels)) < len(labels):
        twice = first_repeated(labels)
        return f"has two states labelled {brief(twice)}, where labels must differ: rename one"
    if variable.missing and labels[-1] != MISSING:
        return f"says its last state is missing, which must be labelled {MISSING!r}, not {brief(labels[-1])}: rename it"
    if cuts and len(cuts) + 1 + variable.missing != len(labels):
        return f"has {len(cuts)} cuts and {len(labels)} states, where k cuts make k + 1 states: correct one of them"
    if not all(isfinite(cut) for cut in cuts) or any(a >= b for a, b in pairwise(cuts)):
        return f"has cuts {cuts}, which must be finite and rise strictly: sort them and drop equal ones"
    return None


def _is_utf_8(text: str) -> bool:
    """Whether a text can be encoded: it has no lone surrogates, as names of files in other encodings do."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True, eq=False, repr=False)
class Table(Framed):
    """Encoded cases: `codes[i, case]` is the state of variable i.

    Codes are C-contiguous, uint8 if no variable has more than 256 states and uint16 otherwise. `to_pandas()`,
    `to_polars()` and `to_arrow()` return the labels.

    >>> rain = Variable("rain", ("no", "yes"))
    >>> table = Table((rain,), np.array([[0, 1, 1]], dtype=np.uint8))
    >>> table.n_cases, table.n_variables, table.index("rain")
    (3, 1, 0)
    >>> table
    Table(3 cases, 1 variable: rain)
    """

    variables: tuple[Variable, ...]
    codes: NDArray[np.uint8 | np.uint16]

    def __post_init__(self) -> None:
        problem = _table_problem(self)
        if problem:
            raise ValueError(problem)

    def copying(self, variables: list[int]) -> "Table":
        """The same cases with copies of these variables, under other names, after all others."""
        copies = [replace(self.variables[v], name=f"{k} {v}") for k, v in enumerate(variables)]
        return Table((*self.variables, *copies), np.concatenate([self.codes, self.codes[variables]]))

    @property
    def n_cases(self) -> int:
        return int(self.codes.shape[1])

    @property
    def n_variables(self) -> int:
        return len(self.variables)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(variable.name for variable in self.variables)

    @cached_property
    def n_states(self) -> NDArray[np.int64]:
        return count_states(self.variables)

    def index(self, name: str) -> int:
        """The index of the variable with this name."""
        return index_of(name, self.names)

    def frame_columns(self) -> Columns:
        """The labels of all variables; missing cells are null."""
        return {
            variable.name: Categories(
                row,
                variable.labels[: variable.n_states - variable.missing],
                variable.ordered,
                variable.n_states - 1 if variable.missing else None,
            )
            for variable, row in zip(self.variables, self.codes, strict=True)
        }

    def __len__(self) -> int:
        return self.n_cases

    def __repr__(self) -> str:
        cases, variables = many(self.n_cases, "case"), many(self.n_variables, "variable")
        return f"Table({cases}, {variables}: {shortened(self.names)})"

    def _repr_html_(self) -> str:
        columns = [[variable.labels[code] for code in row[:_ROWS_SHOWN]] for variable, row in self._shown()]
        more = [["…"] * len(columns)] if self.n_cases > _ROWS_SHOWN else []
        rows = [*zip(*columns, strict=True), *more]
        return html_table(repr(self), [variable.name for variable, _ in self._shown()], rows)

    def _shown(self) -> list[tuple[Variable, NDArray[np.uint8 | np.uint16]]]:
        return list(zip(self.variables, self.codes, strict=True))[:_COLUMNS_SHOWN]


def many(number: int, one: str, more: str | None = None) -> str:
    """A number and its noun, in the singular or plural.

    >>> many(1, "leaf", "leaves"), many(1200, "case")
    ('1 leaf', '1,200 cases')
    """
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def shortened(texts: Sequence[str], most: int = 8) -> str:
    """The first few texts, joined.

    >>> shortened(["a", "b", "c"], 2)
    'a, b, ...'
    """
    return ", ".join(texts[:most]) + ", ..." * (len(texts) > most)


def brief(text: object) -> str:
    """A name or label for a message, quoted and truncated.

    >>> brief("rain"), len(brief("r" * 5000))
    ("'rain'", 82)
    """
    shown = repr(text)
    return shown if len(shown) <= 82 else f"{shown[:80]}…{shown[0]}"


def count_states(variables: Sequence[Variable]) -> NDArray[np.int64]:
    """The number of states of each variable.

    >>> count_states([Variable("rain", ("no", "yes")), Variable("sky", ("blue", "grey", "black"))])
    array([2, 3])
    """
    return np.array([len(variable.labels) for variable in variables], np.int64)


def index_of(name: str, names: Sequence[str]) -> int:
    """The index of a name; the error for an unknown one suggests similar names.

    >>> index_of("rain", ("sun", "rain"))
    1
    """
    if name in names:
        return names.index(name)
    close = get_close_matches(str(name), names, n=3) or names[:5]
    more = ", ..." if len(close) < len(names) else ""
    known = ", ".join(map(brief, close)) + more
    raise ValueError(f"no variable is called {brief(name)} among the {len(names)} here ({known}): use one of them")


def first_repeated(names: Sequence[str]) -> str:
    """The first name that has already occurred; there must be one.

    >>> first_repeated(["a", "b", "b", "a"])
    'b'
    """
    seen: set[str] = set()
    return next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]


def code_type(variables: tuple[Variable, ...]) -> type[np.uint8] | type[np.uint16]:
    """The narrower of the two code types that can represent all states.

    >>> code_type((Variable("rain", ("no", "yes")),))
    <class 'numpy.uint8'>
    """
    return np.uint8 if all(variable.n_states <= 256 for variable in variables) else np.uint16


def _table_problem(table: Table) -> str | None:
    variables, codes = table.variables, table.codes
    names = [variable.name for variable in variables]
    if len(set(names)) < len(names):
        twice = first_repeated(names)
        return f"two variables are called {twice!r}, where names must differ: rename one"
    if codes.ndim != 2 or codes.shape[0] != len(variables):
        return f"codes have shape {codes.shape}, not ({len(variables)}, cases): give one row of codes a variable"
    wanted = np.dtype(code_type(variables))
    if codes.dtype != wanted:
        return f"codes are {codes.dtype}, where these states need {wanted}: convert them with astype"
    if not codes.flags.c_contiguous:
        return "codes are not C-contiguous: pass them through numpy.ascontiguousarray"
    if codes.size == 0:
        return None
    for variable, largest in zip(variables, codes.max(axis=1).tolist(), strict=True):
        if largest >= variable.n_states:
            return f"variable {variable.name!r} has code {largest}, above its last state {variable.n_states - 1}"
    return None
