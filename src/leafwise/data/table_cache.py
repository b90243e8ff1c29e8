"""A cache of the packed table in the folder of the files that it was read from.

One file: a line of JSON with its sources (paths, sizes, times, options), the description of the columns, and a digest;
then the codes. A file that does not match or is damaged is ignored; nothing in it is executed. Knows tables and
descriptions.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

import numpy as np

from leafwise.data.description import Description, ReadColumn
from leafwise.data.table import Table, Variable, code_type
from leafwise.errors import AdvisedError
from leafwise.replacing import replaced

_FORMAT = "leafwise packed table 1"
_MOST_HEADER = 1 << 28


class TableCache:
    """The cached table of some files, read with some options."""

    def __init__(self, paths: Sequence[Path], how: str) -> None:
        from importlib.metadata import PackageNotFoundError, version  # a slow import

        try:
            by = version("leafwise")
        except PackageNotFoundError:  # run from a source folder
            by = "not installed"
        files = [(str(path.resolve()), (stat := path.stat()).st_size, stat.st_mtime_ns) for path in paths]
        self._made_of = {"files": [list(file) for file in files], "read": how, "by": by}
        name = blake2b(json.dumps([[file[0] for file in files], how]).encode(), digest_size=8).hexdigest()
        self.path = paths[0].resolve().parent / f".leafwise-{name}.cache"

    def load(self) -> tuple[Table, Description] | None:
        """The table and its description, if the cache is intact and its files are unchanged; else None."""
        try:
            with self.path.open("rb") as file:
                head = json.loads(file.readline(_MOST_HEADER))
                if head["format"] != _FORMAT or head["made_of"] != self._made_of:
                    return None
                digest = head.pop("digest")
                variables = tuple(map(_variable, head["variables"]))
                codes = np.empty((len(variables), int(head["cases"])), code_type(variables))
                if file.readinto(codes.data) != codes.nbytes or file.read(1) or _digest(head, codes) != digest:
                    return None
            columns = [
                ReadColumn(name, kind, n_values, n_missing, _variable(own), copy_of, tuple(words))
                for name, kind, n_values, n_missing, own, copy_of, words in head["columns"]
            ]
            title, told, n_rows = head["description"]
            return Table(variables, codes), Description(title, told, n_rows, tuple(columns), head["refuses_missing"])
        except (OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError, RecursionError):
            return None

    @contextmanager
    def writing(self) -> Iterator[Callable[[Table, Description], None]]:
        """Open the file, before its content is computed, and yield a function to write it; all or nothing."""
        try:
            with replaced(self.path, lasting=False) as file:  # the digest detects incomplete files
                yield lambda table, described: self._write(file, table, described)
        except OSError as error:
            raise AdvisedError(
                f"the packed table cannot be kept in '{self.path.parent}' ({error.strerror}): leave out ", ("cache",)
            ) from None

    def _write(self, file: IO[bytes], table: Table, described: Description) -> None:
        columns = [
            (
                *(one.name, one.kind, one.n_values, one.n_missing),
                *(one.variable and asdict(one.variable), one.copy_of, one.words),
            )
            for one in described.columns
        ]
        head = {
            "format": _FORMAT,
            "made_of": self._made_of,
            "variables": [asdict(variable) for variable in table.variables],
            "cases": table.n_cases,
            "description": [described.title, described.told, described.n_rows],
            "columns": columns,
            "refuses_missing": described.refuses_missing,
        }
        head = json.loads(json.dumps(head))  # tuples become lists, as when it is loaded
        file.write(json.dumps({**head, "digest": _digest(head, table.codes)}).encode() + b"\n")
        file.write(table.codes.data)


def _digest(head: dict[str, Any], codes: "np.ndarray[Any, Any]") -> str:
    digest = blake2b(json.dumps(head, sort_keys=True).encode(), digest_size=32)
    digest.update(codes.data)
    return digest.hexdigest()


def _variable(said: Any) -> Any:
    return said and Variable(**{**said, "labels": tuple(said["labels"]), "cuts": tuple(said["cuts"])})
