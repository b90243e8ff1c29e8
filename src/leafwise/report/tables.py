"""Tables of results, as text for a terminal and as Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Report:
    """A table with a heading, and remarks about its numbers.

    >>> print(Report("Sizes", ("what", "n"), [("leaves", "12"), ("arcs", "3")]).text())
    Sizes
    <BLANKLINE>
    what     n
    leaves  12
    arcs     3
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    remarks: Sequence[str] = ()
    data: Mapping[str, Any] = field(default_factory=dict)  # the numbers behind the rows, as plain values

    def text(self) -> str:
        """Aligned columns for a terminal."""
        lines = ["  ".join(cells).rstrip() for cells in self._aligned()]
        return "\n".join([self.title, "", *lines, *(("", *self.remarks) if self.remarks else ())])

    def markdown(self) -> str:
        """A Markdown table."""
        head, *body = ("| " + " | ".join(cells) + " |" for cells in self._aligned())
        rule = "|" + "|".join("---" if place == 0 else "---:" for place in range(len(self.heads))) + "|"
        remarks = [line for remark in self.remarks for line in ("", remark)]
        return "\n".join([f"**{self.title}**", "", head, rule, *body, *remarks])

    def _aligned(self) -> Iterable[list[str]]:
        rows = [self.heads, *self.rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            pairs = enumerate(zip(row, widths, strict=True))
            yield [cell.rjust(width) if place else cell.ljust(width) for place, (cell, width) in pairs]
