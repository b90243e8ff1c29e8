"""What the commands share: options about the data file, reading it, checking where to write, and printing."""

import csv
import json
import math
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from leafwise.report.signs import printable

if TYPE_CHECKING:
    from leafwise.network import Network
    from leafwise.table import Table

F = TypeVar("F", bound=Callable[..., Any])
INPUT_FILE = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
OUTPUT_FILE = click.Path(path_type=Path)

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
model_argument = click.argument("model", type=INPUT_FILE)


def stacked(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, shown by --help in this order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _bins(_context: click.Context, _parameter: click.Parameter, text: str | None) -> int | dict[str, int] | None:
    if text is None:
        return None
    if "=" not in text:
        return _bin_count(text, text)
    bins: dict[str, int] = {}
    for part in text.split(","):
        name, equals, count = part.rpartition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{part!r} in {text!r} is not NAME=K: write for example --bins age=8,pay=4.")
        if name.strip() in bins:
            raise click.BadParameter(f"{text!r} names {name.strip()!r} twice: name every column once.")
        bins[name.strip()] = _bin_count(count, text)
    return bins


def _bin_count(count: str, text: str) -> int:
    if not count.strip().isdecimal() or int(count) < 2:
        raise click.BadParameter(f"{text!r} has no whole number of bins >= 2: write --bins 8 or --bins age=8,pay=4.")
    return int(count)


# About the data file: the same on every command that reads one.
data_options = stacked(
    click.option("--no-header", is_flag=True, help="The first row is a case, not the names."),
    click.option(
        "--missing",
        type=click.Choice(["error", "state", "drop"]),
        default="error",
        show_default=True,
        help="Empty cells: refuse them, make them a state of their own, or drop their rows. Where a model has such a "
        "state they are in it.",
    ),
)

# How numeric columns become states: only where states are made, since a model brings its own cut points.
bin_options = stacked(
    click.option("--bins", metavar="K|NAME=K,...", callback=_bins, help="Bin numeric columns: all, or those named."),
    click.option(
        "--binning",
        type=click.Choice(["quantile", "uniform"]),
        default="quantile",
        show_default=True,
        help="Bins with about equally many cases each, or bins of equal width.",
    ),
)


# What an exact answer may take.
exactness_options = stacked(
    click.option(
        "--memory",
        type=click.FloatRange(min=0, min_open=True),
        default=1.0,
        show_default=True,
        help="The most GiB an exact answer may take.",
    ),
    click.option(
        "--operations",
        type=click.FloatRange(min=1),
        default=1e10,
        show_default="1e10",
        help="The most multiplications an exact answer may take.",
    ),
)

given_option = click.option(
    "--given",
    multiple=True,
    metavar="NAME=STATE,...",
    help="What is known: 'smoke=yes,dysp=no'; several states 'age=young|old', or weights 'age=young:1|old:0.5'.",
)


def parse_given(texts: Sequence[str], network: "Network") -> dict[str, Any]:
    """Evidence as it is typed. Commas part entries, unless in double quotes; known names and labels are kept whole."""
    from leafwise.table import index_of

    given: dict[str, Any] = {}
    for entry in split_entries(texts, "--given"):
        cuts = [place for place, sign in enumerate(entry) if sign == "="]
        if not cuts:
            raise ValueError(f"--given got {entry!r}, which is not NAME=STATE: write for example --given smoke=yes.")
        cut = next((cut for cut in cuts if entry[:cut].strip() in network.names), cuts[0])
        name = entry[:cut].strip()
        if name in given:
            raise ValueError(f"--given names {name!r} twice: name every variable once, with | between its states.")
        labels = network.variables[index_of(name, network.names)].labels
        given[name] = _states(entry[cut + 1 :].strip(), labels)
    return given


def split_entries(texts: Sequence[str], option: str) -> list[str]:
    """What commas part in texts, unless in double quotes."""
    try:
        return [entry for row in csv.reader(texts, skipinitialspace=True) for entry in row]
    except csv.Error as error:
        raise ValueError(f"{option} cannot be read ({error}): put names with odd signs in double quotes.") from None


def _states(text: str, labels: Sequence[str]) -> str | list[str] | dict[str, float]:
    if text in labels or not {"|", ":"} & set(text):
        return text
    whole, _, number = text.rpartition(":")
    if whole in labels and _is_number(number):
        return {whole: float(number)}
    parts = [part.strip() for part in text.split("|")]
    if all(part in labels or ":" not in part for part in parts):
        return parts
    weights: dict[str, float] = {}
    for part in parts:
        label, _, weight = part.rpartition(":") if part not in labels else (part, "", "1")
        try:
            weights[label] = float(weight)
        except ValueError:
            raise ValueError(f"--given got the weight {weight!r} in {text!r}: write STATE:WEIGHT, a number.") from None
    return weights


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_for_model(network: "Network", data: Path, *, no_header: bool, missing: str) -> "Table":
    """The data in the states and cut points of a network."""
    from leafwise.encoding import read

    return read(data, header=not no_header, missing=missing, variables=network.variables)


def check_output(output: Path, *inputs: Path | None) -> None:
    """Refuse at once what could only fail after the work is done, and never write over an input."""
    folder = output.parent
    if output.is_dir():
        raise ValueError(f"cannot write '{output}': it is a folder: name a file in it.")
    if not folder.is_dir():
        raise ValueError(f"cannot write '{output}': the folder '{folder}' does not exist: create it first.")
    if not (os.access(output, os.W_OK) if output.exists() else _can_make_files(folder)):
        raise ValueError(f"cannot write '{output}': permission denied: choose a place you may write to.")
    for path in inputs:
        if path is not None and output.exists() and output.samefile(path):
            raise ValueError(f"cannot write '{output}': it is also read from: choose another name for the output.")


def _can_make_files(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def print_json(values: Mapping[str, Any]) -> None:
    """One JSON object; numbers JSON does not know (infinities) become null."""
    click.echo(json.dumps(_plain(values), allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def print_rows(rows: Sequence[Sequence[str]], *, right: int = 1) -> None:
    """Aligned columns; those from `right` on are numbers, aligned to the right."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        pairs = enumerate(zip(row, widths, strict=True))
        cells = [cell.ljust(width) if place < right else cell.rjust(width) for place, (cell, width) in pairs]
        lines.append("  ".join(cells).rstrip())
    click.echo("\n".join(lines))
