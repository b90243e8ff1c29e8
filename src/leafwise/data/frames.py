"""Tables, answers and predictions as frames: of Arrow via its PyCapsule stream, and thereby of pandas and polars.

Knows NumPy; Arrow and the others are imported when a frame is made.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Categories:
    """A column of labels: one code per row, and the labels; `missing`: the code of missing cells."""

    codes: NDArray[Any]
    labels: Sequence[str]
    ordered: bool = False
    missing: int | None = None


Columns = Mapping[str, "Categories | NDArray[Any] | Sequence[str]"]


def arrow_table(columns: Columns) -> "pa.Table":
    """Convert columns to an Arrow table.

    >>> arrow_table({"a": ["x", "y"], "p": np.array([0.25, 0.75])}).to_pydict()
    {'a': ['x', 'y'], 'p': [0.25, 0.75]}
    """
    import pyarrow as pa

    arrays = [
        _dictionary(column) if isinstance(column, Categories) else pa.array(column) for column in columns.values()
    ]
    return pa.table(arrays, names=list(columns))


def _dictionary(column: Categories) -> "pa.DictionaryArray":
    import pyarrow as pa

    mask = None if column.missing is None else column.codes == column.missing
    codes = pa.array(column.codes.astype(np.int32), mask=mask)
    return pa.DictionaryArray.from_arrays(codes, pa.array(column.labels, pa.string()), ordered=column.ordered)


class Framed(ABC):
    """What can be converted to frames, and passed to their constructors: `polars.DataFrame(answer)`."""

    @abstractmethod
    def frame_columns(self) -> Columns:
        """The columns of the frame."""

    def to_arrow(self) -> "pa.Table":
        """Convert to a pyarrow table."""
        return arrow_table(self.frame_columns())

    def to_pandas(self) -> "pd.DataFrame":
        """Convert to a pandas data frame with categorical labels."""
        _check_installed("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> "pl.DataFrame":
        """Convert to a polars data frame with categorical labels."""
        _check_installed("polars")
        import polars

        return polars.DataFrame(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export as an Arrow PyCapsule stream."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def _check_installed(package: str) -> None:
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise ValueError(f"a frame of {package} needs the package {package}, which is not installed: install it")


def html_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a small HTML table for notebooks.

    >>> html_table("<b>", ["a"], [["1"]])
    '<p>&lt;b&gt;</p><table><tr><th>a</th></tr><tr><td>1</td></tr></table>'
    """
    lines = [("th", heads), *(("td", row) for row in rows)]
    cells = ("".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) for tag, row in lines)
    return f"<p>{escape(title)}</p><table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"
