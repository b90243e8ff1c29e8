"""What a table was understood as, column by column: for people to read before anything is learned. Knows variables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from leafwise.table import Variable

_MOST_SIGNS = 60  # of states in a line
_MOST_NAMES = 12  # in a line of the summary


@dataclass(frozen=True)
class ReadColumn:
    """One column: its kind, and the variable it becomes, None where it is refused as it is.

    `kind` is "states", "bins", "constant", "dates", "identifier" or "free text".
    """

    name: str
    kind: str
    n_values: int
    n_missing: int
    variable: Variable | None
    copy_of: str | None = None  # an earlier column that tells the same cases apart

    @property
    def read_as(self) -> str:
        """What becomes of it, in a few words."""
        if self.variable is None:
            return "refused"
        labels = self.variable.labels
        text = ", ".join(labels)
        if len(text) > _MOST_SIGNS:
            text = text[:_MOST_SIGNS].rpartition(", ")[0] + ", ..."
        if self.variable.cuts:
            text = f"{len(self.variable.cuts) + 1} bins: {text}"
        return f"{text} (says the same as {self.copy_of})" if self.copy_of else text


@dataclass(frozen=True)
class Description:
    """What each column of a table was understood as.

    `print` shows it as a table, and notebooks as HTML; `columns` has the parts, `refused` those that cannot be read as
    they are, and `as_dict()` everything in plain values.
    """

    title: str
    told: str  # how the text was written, where it was text
    n_rows: int
    columns: tuple[ReadColumn, ...]
    refuses_missing: bool = False  # missing cells would be refused

    @property
    def refused(self) -> tuple[ReadColumn, ...]:
        """The columns that are no variables as they are."""
        return tuple(column for column in self.columns if column.variable is None)

    @property
    def head(self) -> str:
        """Title, sizes, and how the text was written, in a line."""
        told = f"; {self.told}" if self.told else ""
        rows, columns = self.n_rows, len(self.columns)
        return f"{self.title}: {rows:,} row{'s' * (rows > 1)}, {columns:,} column{'s' * (columns > 1)}{told}"

    def as_dict(self) -> dict[str, Any]:
        """Everything in plain values."""
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
                }
                for column in self.columns
            ],
        }

    def __str__(self) -> str:
        rows = [_HEADS, *self._rows()]
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        lines = []
        for row in rows:
            pairs = enumerate(zip(row, widths, strict=True))
            cells = [cell.rjust(width) if place in (2, 3) else cell.ljust(width) for place, (cell, width) in pairs]
            lines.append("  ".join(cells).rstrip())
        advice = list(self.advice())
        return "\n".join([self.head, "", *lines, *(("", *advice) if advice else ())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = "".join(
            "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) + "</tr>"
            for tag, rows in (("th", [_HEADS]), ("td", self._rows()))
            for row in rows
        )
        advice = "".join(f"<p>{escape(line)}</p>" for line in self.advice())
        return f"<p>{escape(self.head)}</p><table>{cells}</table>{advice}"

    def _rows(self) -> "list[Sequence[str]]":
        return [
            (column.name, column.kind, f"{column.n_values:,}", f"{column.n_missing:,}", column.read_as)
            for column in self.columns
        ]

    def advice(self) -> Iterator[str]:
        """What to do about columns that are refused, missing cells, constants and copies, a line each."""
        if self.refused:
            yield (
                f"{_listed([column.name for column in self.refused])}: not states as they are: leave them out "
                "(ignore), or say that their values are states (states)"
            )
        lacking = [column.name for column in self.columns if column.n_missing]
        if lacking and self.refuses_missing:
            yield f"{_listed(lacking)}: missing cells: say whether they are a state or their rows are dropped (missing)"
        for column in self.columns:
            if column.copy_of and column.variable is not None:
                yield f"{column.name} says the same as {column.copy_of}: leave one out (ignore)"

    def summary(self) -> str:
        """The head, and a line a kind with its columns and how many states each has."""
        kinds: dict[str, list[str]] = {}
        for column in self.columns:
            n = "refused" if column.variable is None else f"{column.variable.n_states:,}"
            kinds.setdefault(column.kind, []).append(f"{column.name} ({n})")
        width = max(map(len, kinds))
        lines = [f"{kind.ljust(width)}  {_listed(names)}" for kind, names in kinds.items()]
        return "\n".join([self.head, *lines, *self.advice()])


_HEADS = ("column", "kind", "values", "missing", "read as")


def _listed(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + rest
