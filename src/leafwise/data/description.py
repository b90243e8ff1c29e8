"""How the columns of a table are interpreted: a report for people to read before learning.

Knows variables, numbers in labels, and advice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from leafwise.data.binning import number
from leafwise.data.frames import html_table
from leafwise.data.table import Variable, many, shortened
from leafwise.errors import Advice

_MOST_SIGNS = 60  # characters of the states listed
_MOST_NAMES = 12  # in a line of the summary
_IN_LINE = {ord(sign): repr(sign)[1:-1] for sign in "\n\r\t"}


@dataclass(frozen=True)
class ReadColumn:
    """One column: its kind, and the variable it becomes, None if it is refused.

    `kind` is "states", "bins", "constant", "dates", "identifier" or "free text".
    """

    name: str
    kind: str
    n_values: int
    n_missing: int
    variable: Variable | None
    copy_of: str | None = None  # an earlier column that distinguishes the same cases
    words: tuple[str, ...] = ()  # the few values that are not numbers, if all others are

    @property
    def read_as(self) -> str:
        """How it is read, in a few words."""
        if self.variable is None:
            return "refused"
        labels = self.variable.labels
        text = ", ".join(labels)
        if len(text) > _MOST_SIGNS:
            whole, comma, cut = text[:_MOST_SIGNS].rpartition(", ")
            text = f"{whole}{comma}..." if comma else f"{cut}..."
        if self.variable.cuts:
            text = f"{len(self.variable.cuts) + 1} bins: {text}"
        return f"{text} (says the same as {self.copy_of})" if self.copy_of else text


@dataclass(frozen=True)
class Description:
    """How each column of a table is interpreted.

    `print` displays it as a table, and notebooks as HTML; `columns` has the columns, `refused` those that cannot be
    read as they are, and `as_dict()` everything as plain values.
    """

    title: str
    told: str  # the format of the text, if it was text
    n_rows: int
    columns: tuple[ReadColumn, ...]
    refuses_missing: bool = False  # whether missing cells would be refused

    @property
    def refused(self) -> tuple[ReadColumn, ...]:
        """The columns that do not become variables."""
        return tuple(column for column in self.columns if column.variable is None)

    @property
    def head(self) -> str:
        """Title, numbers of rows and columns, and format of the text, in one line."""
        told = f"; {self.told}" if self.told else ""
        return f"{self.title}: {many(self.n_rows, 'row')}, {many(len(self.columns), 'column')}{told}"

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "source": self.title,
            "format": self.told,
            "rows": self.n_rows,
            "columns": [
                {
                    "name": column.name,
                    "kind": column.kind,
                    "values": column.n_values,
                    "missing": column.n_missing,
                    "states": None if column.variable is None else list(column.variable.labels),
                    "cuts": None if column.variable is None else list(column.variable.cuts),
                    "copy_of": column.copy_of,
                    "words": list(column.words),
                }
                for column in self.columns
            ],
        }

    def text(self, *, in_options: bool = False) -> str:
        """One line per column, and advice; `in_options`: advice with command-line options."""
        rows = [[cell.translate(_IN_LINE) for cell in row] for row in (_HEADS, *self._rows())]
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        lines = []
        for row in rows:
            pairs = enumerate(zip(row, widths, strict=True))
            cells = [cell.rjust(width) if place in (2, 3) else cell.ljust(width) for place, (cell, width) in pairs]
            lines.append("  ".join(cells).rstrip())
        advice = self._advice(in_options)
        return "\n".join([self.head, "", *lines, *(("", *advice) if advice else ())])

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        advice = "".join(f"<p>{escape(line)}</p>" for line in self._advice(in_options=False))
        return html_table(self.head, _HEADS, self._rows()) + advice

    def _rows(self) -> "list[Sequence[str]]":
        return [
            (column.name, column.kind, f"{column.n_values:,}", f"{column.n_missing:,}", column.read_as)
            for column in self.columns
        ]

    def _advice(self, in_options: bool) -> list[str]:
        """Advice on refused columns, missing cells, copies and the like, one line each."""
        found: list[Advice] = []
        refused = [column.name for column in self.refused]
        if refused:
            found.append(
                Advice("refused: leave out with ", ("ignore", refused), ", or take with ", ("states", refused))
            )
        if any(column.kind == "dates" for column in self.refused):
            found.append(Advice("dates: cut those such as 2024-01-31 into bins with ", ("dates", "bins")))
        worded = [column for column in self.columns if column.words]
        if worded:
            told = ", ".join(f"{column.name} ({', '.join(column.words)})" for column in worded)
            words = list(dict.fromkeys(word for column in worded for word in column.words))
            found.append(Advice(f"numbers but for a few words: {told}; if these mean missing, pass ", ("na", words)))
        numbers = [column.name for column in self.columns if self.told and number(column.name) is not None]
        if numbers:
            found.append(Advice(f"{numbers[0]!r} is a name here: if the first row is a case, pass ", ("header", False)))
        if self.told.startswith("a single column") and self._is_parted_by_blanks():
            found.append(Advice("a single column: if blanks part its cells, pass ", ("delimiter", " ")))
        empty = [column.name for column in self.columns if not column.n_values]
        if empty:  # nothing can be inferred, dropping rows leaves none, and a single state has no information
            found.append(Advice("without a single cell: leave out with ", ("ignore", empty)))
        lacking = [column.name for column in self.columns if column.n_missing and column.n_values]
        if lacking and self.refuses_missing:
            found.append(
                Advice(
                    "missing cells: infer them with ",
                    ("missing", "infer"),
                    ", make them a state with ",
                    ("missing", "state"),
                    ", or drop rows with ",
                    ("missing", "drop"),
                )
            )
        copies = [column.name for column in self.columns if column.copy_of and column.variable is not None]
        if copies:
            found.append(Advice("copies: leave out with ", ("ignore", copies)))
        return [advice.in_options() if in_options else advice for advice in found]

    def _is_parted_by_blanks(self) -> bool:
        only = self.columns[0]
        texts = [only.name, *(only.variable.labels if only.variable is not None else ())]
        return all(" " in text for text in texts)

    def summary(self, *, in_options: bool = False) -> str:
        """The head, one line per kind with its columns and their numbers of states, and advice."""
        kinds: dict[str, list[str]] = {}
        for column in self.columns:
            n = "refused" if column.variable is None else f"{column.variable.n_states:,}"
            kinds.setdefault(column.kind, []).append(f"{column.name} ({n})")
            if column.copy_of:
                kinds.setdefault("copies", []).append(f"{column.name} of {column.copy_of}")
        width = max(map(len, kinds))
        lines = [f"{kind.ljust(width)}  {shortened(names, _MOST_NAMES)}" for kind, names in kinds.items()]
        return "\n".join([self.head, *lines, *self._advice(in_options)])


_HEADS = ("column", "kind", "values", "missing", "read as")
