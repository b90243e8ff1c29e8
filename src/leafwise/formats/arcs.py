"""Small text files that refer to variables by name: lists of arcs, an order, tiers, tied groups.

A saved network is also accepted as a list of arcs.

Arcs, one per line, in any of three forms; the last two allow names with blanks::

    smoke lung            # a comment
    smoke, lung
    tuberculosis or cancer -> x ray
"""

import csv
import difflib
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from leafwise.formats.bif_text import brief

Arc = tuple[str, str]
COMMENT = re.compile(r"(^|\s)#.*")


def read_arcs(path: Path, names: Collection[str] | None = None) -> tuple[Arc, ...]:
    """The (parent, child) arcs of a text file or of a saved network, in file order, without duplicates.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "arcs.txt"
    ...     _ = path.write_text("smoke lung\\nlung -> x ray\\n")
    ...     read_arcs(path)
    (('smoke', 'lung'), ('lung', 'x ray'))
    """
    if _is_model(path) or (text := _text(path)).lstrip().startswith("{"):
        return _arcs_of_model(path, names)
    arcs: dict[Arc, None] = {}
    for place, line in _lines(path, text):
        arc = _arc(place, line)
        _check_names(place, arc, names)
        arcs[arc] = None
    return tuple(arcs)


def read_order(path: Path, names: Collection[str] | None = None) -> tuple[str, ...]:
    """The names in a file with one name per line."""
    return tuple(name for tier in _named(_rows(path, names, one_a_line=True), path) for name in tier)


def read_tiers(path: Path, names: Collection[str] | None = None) -> tuple[tuple[str, ...], ...]:
    """The tiers in a file with one tier per line and names separated by commas."""
    return tuple(_named(_rows(path, names, one_a_line=False), path))


def read_tied(path: Path, names: Collection[str] | None = None) -> tuple[tuple[tuple[str, tuple[str, ...]], ...], ...]:
    """The groups in a file with one group per line: each variable with its parents, separated by semicolons.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "tied.txt"
    ...     _ = path.write_text("x1, z1 -> y1; x2, z2 -> y2\\n")
    ...     read_tied(path)
    ((('y1', ('x1', 'z1')), ('y2', ('x2', 'z2'))),)
    """
    groups = []
    for place, line in _lines(path, _text(path)):
        families = []
        for text in line.split(";"):
            parents, arrow, child = (part.strip() for part in text.partition("->"))
            own = _fields(place, parents) if parents else ()
            if not arrow or not child or "" in own:
                raise ValueError(
                    f"{place}: {brief(text)} is not a variable with its parents: write 'x1, z1 -> y1; x2, z2 -> y2'."
                )
            _check_names(place, (*own, child), names)
            families.append((child, own))
        groups.append(tuple(families))
    return tuple(groups)


def _named(rows: Iterable[tuple[str, ...]], path: Path) -> list[tuple[str, ...]]:
    found = list(rows)
    if not found:
        raise ValueError(
            f"{path}: there is no name in it, where every variable has its place: name them, or leave it out."
        )
    return found


def _is_model(path: Path) -> bool:
    """Whether the name of a file is that of a saved network; texts without an extension, or in .json, may be lists."""
    from leafwise.formats.files import format_of

    try:
        return format_of(path) != "JSON" or path.name.lower().endswith(".gz")
    except ValueError:
        return False


def _arcs_of_model(path: Path, names: Collection[str] | None) -> tuple[Arc, ...]:
    from leafwise.formats.files import load

    network = load(path)
    arcs = tuple((network.names[parent], network.names[child]) for parent, child in network.arcs)
    for arc in arcs:
        _check_names(str(path), arc, names)
    return arcs


def _rows(path: Path, names: Collection[str] | None, *, one_a_line: bool) -> Iterator[tuple[str, ...]]:
    seen: dict[str, str] = {}
    for place, line in _lines(path, _text(path)):
        row = (line,) if one_a_line else _fields(place, line)
        if "" in row:
            raise ValueError(f"{place}: a name is empty in {brief(line)}: write names separated by single commas.")
        _check_names(place, row, names)
        for name in row:
            if name in seen:
                raise ValueError(f"{place}: {brief(name)} was already named in {seen[name]}: name it once.")
            seen[name] = place
        yield row


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: byte {error.start} is not UTF-8 text: save the file as UTF-8.") from error


def _lines(path: Path, text: str) -> Iterator[tuple[str, str]]:
    """Each line that is not empty or a comment, with its place."""
    for number, line in enumerate(text.splitlines(), start=1):
        content = COMMENT.sub("", line).strip()
        if content:
            yield f"{path}, line {number}", content


def _arc(place: str, line: str) -> Arc:
    if "->" in line:
        fields = tuple(part.strip() for part in line.split("->"))
    elif "," in line:
        fields = _fields(place, line)
    else:
        fields = tuple(line.split())
    if len(fields) != 2 or "" in fields:
        raise ValueError(
            f"{place}: {brief(line)} is not one arc: write 'parent child', 'parent, child' or 'parent -> child'."
        )
    parent, child = fields
    if parent == child:
        raise ValueError(
            f"{place}: an arc from {brief(parent)} to itself is not possible: name two different variables."
        )
    return parent, child


def _fields(place: str, line: str) -> tuple[str, ...]:
    try:
        return tuple(field.strip() for field in next(csv.reader([line], skipinitialspace=True)))
    except csv.Error as error:
        raise ValueError(f"{place}: {brief(line)} is no list of names ({error}): check its quotes.") from None


def _check_names(place: str, given: Collection[str], names: Collection[str] | None) -> None:
    if names is None:
        return
    for name in given:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=3)
            hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "names must be columns of the data."
            raise ValueError(f"{place}: there is no variable {brief(name)} among the {len(names)} of the data: {hint}")
