"""Options for data files: how files are parsed, which columns are used, and how columns become states."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from leafwise.cli.options import OUTPUT_FILE, STANDARD, split_entries, stacked

if TYPE_CHECKING:
    from leafwise.data.table import Table
    from leafwise.mixture import Mixture
    from leafwise.network import Network

F = TypeVar("F", bound=Callable[..., Any])
data_argument = click.argument("data", type=OUTPUT_FILE, nargs=-1, required=True)


def _bins(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> str | int | dict[str, str | int | None] | None:
    if text is None:
        return "auto"
    if "=" not in text:
        return _bin_count(text, text)
    bins: dict[str, str | int | None] = {}
    for part in text.split(","):
        name, equals, count = part.rpartition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{part!r} in {text!r} is not NAME=K: write for example --bins age=8,pay=4.")
        if name.strip() in bins:
            raise click.BadParameter(f"{text!r} names {name.strip()!r} twice: name every column once.")
        bins[name.strip()] = _bin_count(count, text)
    return bins


def _bin_count(count: str, text: str) -> str | int | None:
    word = count.strip().lower()
    if word in ("auto", "none"):
        return None if word == "none" else word
    if not word.isdecimal() or int(word) < 2:
        raise click.BadParameter(
            f"{text!r} has no whole number of bins >= 2: write --bins 8, --bins age=8,pay=auto, or --bins none."
        )
    return int(word)


def _names(_context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> list[str] | None:
    """Split names at commas; names that contain commas are in double quotes."""
    names = split_entries(texts, parameter.opts[0])
    return names or (None if parameter.name == "columns" else [])


def column_names(context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Complete the name after the last comma, with the column names of the first data file."""
    from leafwise.data.columns import open_source

    data = context.params.get("data") or context.args  # arguments before an option are not parsed
    try:
        names = open_source(data[0]).names if data and str(data[0]) != "-" else ()
    except (OSError, ValueError, TypeError):  # an unreadable file completes nothing
        return []
    before, comma, last = begun.rpartition(",")
    return [f"{before}{comma}{name}" for name in names if name.startswith(last)]


def _size(_context: click.Context, _parameter: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kMGT]?)(?:i?B)?", text.strip())
    size = 0.0 if match is None else float(match[1]) * 1024 ** " kMGT".index(match[2] or " ")
    if not 1 <= size < math.inf:
        raise click.BadParameter(f"{text!r} is no number of bytes: write for example 500000000, 500M or 2G.")
    return int(size)


def _delimiter(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    return {"tab": "\t", "\\t": "\t", "space": " "}.get((text or "").lower(), text)


# How a data file is parsed, and which of its columns are used.
_file_options: tuple[Callable[[Any], Any], ...] = (
    click.option("--no-header", is_flag=True, help="The first row is a case, not the column names."),
    click.option(
        "--delimiter",
        metavar="SIGN",
        callback=_delimiter,
        help="Cell separator: ',', ';', '|' or tab.  [default: detected]",
    ),
    click.option("--decimal", type=click.Choice([".", ","]), help="The decimal sign.  [default: detected]"),
    click.option("--encoding", metavar="NAME", help="Such as utf-8, utf-16, cp1252.  [default: detected]"),
    click.option(
        "--na",
        multiple=True,
        metavar="WORD,...",
        callback=_names,
        help="Additional words for missing cells.",
    ),
    click.option(
        "--columns",
        multiple=True,
        metavar="NAME,...",
        callback=_names,
        shell_complete=column_names,
        help="Use only these columns: names, or patterns such as 'x*'.",
    ),
    click.option(
        "--ignore",
        multiple=True,
        metavar="NAME,...",
        callback=_names,
        shell_complete=column_names,
        help="Leave out these columns: names or patterns.",
    ),
    click.option(
        "--most-bytes",
        metavar="N",
        callback=_size,
        help="Largest size of a compressed file when expanded, such as 2G.  [default: 64M plus 200 times its size]",
    ),
)

# How columns become states: only for commands without a model, since a model has states.
_state_options: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--bins",
        metavar="auto|K|none|NAME=K,...",
        callback=_bins,
        help="Bins of numeric columns: as many as the data support, K in all or in the named ones, or none.  "
        "[default: auto]",
    ),
    click.option(
        "--binning",
        type=click.Choice(["bayes", "quantile", "uniform"]),
        help="Bins that are informative about what is learned, bins of equal frequency, or bins of equal width.  "
        "[default: bayes if --bins is auto, else quantile]",
    ),
    click.option(
        "--states",
        multiple=True,
        metavar="NAME,...",
        callback=_names,
        shell_complete=column_names,
        help="Columns whose values are states, whatever they look like.",
    ),
    click.option(
        "--dates",
        type=click.Choice(["error", "bins"]),
        default="error",
        show_default=True,
        help="Refuse dates, or bin them.",
    ),
)


def _missing_option(*choices: str, has_model: bool) -> Callable[[Any], Any]:
    about = {
        "error": "refuse them",
        "state": "make them a state of their own",
        "unknown": "sum over their states",
        "drop": "drop their rows",
        "infer": "infer them from the rest of their rows (missing at random)",
    }
    *others, last = (about[choice] for choice in choices)
    said = f"{', '.join(others)}, or {last}" if others else last
    of_model = " Where a model has a state for them, they are in that state." if has_model else ""
    return click.option(
        "--missing",
        type=click.Choice(choices),
        default=choices[0],
        show_default=True,
        help=f"Missing cells: {said}.{of_model}",
    )


_unseen_option = click.option(
    "--unseen",
    type=click.Choice(["error", "missing"]),
    default="error",
    show_default=True,
    help="Labels that the model does not have: refuse them, or treat them as missing.",
)

READING = (
    *("no_header", "delimiter", "decimal", "encoding", "na", "columns", "ignore", "most_bytes"),
    *("missing", "bins", "binning", "states", "dates"),
)


def reading_options(*missing: str, states: bool = False, unseen: bool = False) -> Callable[[F], F]:
    """Options for data files; the command gets them as one argument, `reading`: keyword arguments of `read`."""
    known, made = (_unseen_option,) if unseen else (), _state_options if states else ()
    options = (*_file_options, _missing_option(*missing, has_model=not states), *known, *made)

    def decorate(command: F) -> F:
        @wraps(command)
        def gathered(*arguments: Any, **given: Any) -> Any:
            reading = {name: given.pop(name) for name in (*READING, "unseen") if name in given}
            reading["header"] = not reading.pop("no_header")
            return command(*arguments, reading=reading, **given)

        decorated: F = stacked(*options)(gathered)
        return decorated

    return decorate


def read_for_model(network: "Network | Mixture", data: Sequence[Path], reading: Mapping[str, Any]) -> "Table":
    """Read data with the states and cut points of a network."""
    from leafwise.data.encoding import read

    return read(list(data), variables=network.variables, **reading)


def titles(data: Sequence[Path]) -> str:
    """A short name for some data files, for display."""
    names = ["standard input" if path == STANDARD else path.name for path in data]
    return names[0] if len(names) == 1 else f"{len(names)} files"
