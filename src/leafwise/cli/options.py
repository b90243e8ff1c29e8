"""What the commands share: options, loading of models, checks of output files, and printing."""

import csv
import io
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from leafwise.report.signs import printable

if TYPE_CHECKING:
    from leafwise.dynamic_network import DynamicNetwork
    from leafwise.inference.exact import Limits
    from leafwise.mixture import Mixture
    from leafwise.network import Network

F = TypeVar("F", bound=Callable[..., Any])
INPUT_FILE = click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True, path_type=Path)
OUTPUT_FILE = click.Path(path_type=Path)

STANDARD = Path("-")  # standard input, or standard output

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
model_argument = click.argument("model", type=INPUT_FILE)
table_output_option = click.option(
    "-o",
    "--output",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="Where to write: .csv, .tsv or .parquet.  [default: standard output]",
)


def variable_names(context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Complete the name after the last comma, with the model's variables; after NAME=, with its states."""
    model = context.params.get("model") or next(iter(context.args), "-")  # arguments before an option are not parsed
    try:
        network = None if str(model) == "-" else load_model(Path(model))
    except (OSError, ValueError, TypeError):  # an unreadable file completes nothing
        network = None
    if network is None:
        return []
    before, comma, last = begun.rpartition(",")
    name, equals, _ = last.partition("=")
    states = network[name].labels if equals and name in network else ()
    ends = [f"{name}={label}" for label in states] or list(network)
    return [f"{before}{comma}{end}" for end in ends if end.startswith(last)]


def stacked(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Combine several options into one decorator; --help shows them in this order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


# Limits of exact inference.
exactness_options = stacked(
    click.option(
        "--memory",
        type=click.FloatRange(min=0, min_open=True),
        show_default="half of the machine's",
        help="Memory limit of exact answers, in GiB.",
    ),
    click.option(
        "--operations",
        type=click.FloatRange(min=1),
        show_default="1e10, about 20 seconds",
        help="Limit on the multiplications of exact answers.",
    ),
)


def limits_of(memory: float | None, operations: float | None) -> "Limits":
    """The limits of exact inference, with defaults for None."""
    from leafwise.inference.exact import DEFAULT_LIMITS, Limits

    return Limits(
        DEFAULT_LIMITS.memory if memory is None else memory * 2**30,
        DEFAULT_LIMITS.operations if operations is None else operations,
    )


do_option = click.option(
    "--do",
    "set_to",
    multiple=True,
    metavar="NAME=STATE,...",
    shell_complete=variable_names,
    help="Intervention: set these variables, regardless of their parents.",
)


def intervened(network: "Network | Mixture", texts: Sequence[str]) -> "tuple[Network | Mixture, list[str]]":
    """The network under the interventions of --do, and notes on what they assume."""
    from leafwise.inference.intervention import do, reversible_arcs
    from leafwise.mixture import Mixture

    states = parse_given(texts, network, "--do")
    if not states:
        return network, []
    if isinstance(network, Mixture):
        raise ValueError("the arcs of a mixture of networks do not agree on causes: use --do with one network.")
    notes = [
        "what is set with --do reads arcs as causes: it assumes that they are, and that no common cause is left out"
    ]
    for name in states:
        either = reversible_arcs(network, name)
        if either:
            notes.append(f"the arcs between {name} and {', '.join(either)} could as well point the other way")
    return do(network, states), notes


given_option = click.option(
    "--given",
    multiple=True,
    metavar="NAME=STATE,...",
    shell_complete=variable_names,
    help="Evidence: 'smoke=yes,dysp=no', several possible states 'age=young|old', or weights 'age=young:1|old:0.5'.",
)


def parse_given(texts: Sequence[str], network: "Network | Mixture", option: str = "--given") -> dict[str, Any]:
    """Parse evidence. Commas separate entries, except in double quotes; known names and labels may contain =, |, :."""
    from leafwise.data.table import index_of

    given: dict[str, Any] = {}
    for entry in split_entries(texts, option):
        cuts = [place for place, sign in enumerate(entry) if sign == "="]
        if not cuts:
            raise ValueError(f"{option} got {entry!r}, which is not NAME=STATE: write for example {option} smoke=yes.")
        cut = next((cut for cut in cuts if entry[:cut].strip() in network.names), cuts[0])
        name = entry[:cut].strip()
        if name in given:
            raise ValueError(f"{option} names {name!r} twice: name every variable once, with | between its states.")
        labels = network.variables[index_of(name, network.names)].labels
        given[name] = _states(entry[cut + 1 :].strip(), labels, option)
    return given


def split_entries(texts: Sequence[str], option: str) -> list[str]:
    """Split texts at commas, unless these are in double quotes."""
    try:
        return [entry for row in csv.reader(texts, skipinitialspace=True) for entry in row]
    except csv.Error as error:
        raise ValueError(f"{option} cannot be read ({error}): put names with odd signs in double quotes.") from None


def _states(text: str, labels: Sequence[str], option: str) -> str | list[str] | dict[str, float]:
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
            raise ValueError(f"{option} got the weight {weight!r} in {text!r}: write STATE:WEIGHT, a number.") from None
    return weights


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def load_model(model: Path) -> "Network":
    """Load a network from a file, or as JSON from standard input."""
    if model == STANDARD:
        from leafwise.formats.json import loads

        return loads(sys.stdin.buffer.read())
    from leafwise.formats.files import load

    return load(model)


def load_network_or_mixture(model: Path) -> "Network | Mixture":
    """Load a network, or a mixture of networks, from a file or standard input."""
    from leafwise.formats.files import load_model as load
    from leafwise.formats.files import model_of

    return model_of(sys.stdin.buffer.read()) if model == STANDARD else load(model)


def load_any(model: Path) -> "Network | Mixture | DynamicNetwork":
    """Load a model of any kind from a file or standard input."""
    from leafwise.formats.files import any_model_of, format_of
    from leafwise.formats.whole_files import read_as

    if model == STANDARD:
        return any_model_of(sys.stdin.buffer.read())
    return read_as(model, any_model_of) if format_of(model) == "JSON" else load_model(model)


def load_dynamic(model: Path) -> "DynamicNetwork":
    """Load a dynamic network from a file or standard input."""
    from leafwise.formats import dynamic_json
    from leafwise.formats.files import load_dynamic as load

    return dynamic_json.loads(sys.stdin.buffer.read()) if model == STANDARD else load(model)


def check_output(output: Path, *inputs: Path | None, standard: bool = False) -> None:
    """Refuse an output that cannot be written, before any work is done, and one that would overwrite an input.

    Standard output is refused unless `standard`.
    """
    if output == STANDARD:
        if standard:
            return
        raise ValueError("cannot write '-': standard output is not supported here: name a file.")
    folder = output.parent
    if output.is_dir():
        raise ValueError(f"cannot write '{output}': it is a folder: name a file in it.")
    if not folder.is_dir():
        raise ValueError(f"cannot write '{output}': the folder '{folder}' does not exist: create it first.")
    if not (os.access(output, os.W_OK) if output.exists() else _can_make_files(folder)):
        raise ValueError(f"cannot write '{output}': permission denied: choose a place you may write to.")
    for path in inputs:
        if path is not None and output.exists() and path.exists() and output.samefile(path):
            raise ValueError(f"cannot write '{output}': it is also read from: choose another name for the output.")


def _can_make_files(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def print_json(values: Mapping[str, Any]) -> None:
    """Print one JSON object; numbers that JSON does not have (infinities, NaN) become null."""
    click.echo(json.dumps(_plain(values), allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def say(text: str) -> None:
    """Print to standard error, without control characters."""
    click.echo(printable(text, kept="\n\t"), err=True)


def say_log(name: str) -> None:
    """Print what the module of this name logs, and pass it to no other handler."""
    import logging

    def said(record: logging.LogRecord) -> bool:
        say(f"leafwise: {record.getMessage()}")
        return False

    logger = logging.getLogger(name)
    logger.setLevel(logging.INFO)
    logger.filters = [said]  # replaces that of an earlier call


@contextmanager
def standard_table() -> Iterator[IO[bytes]]:
    """The stream for a table on standard output: as it is, but on a terminal without control characters."""
    if not sys.stdout.isatty():
        yield sys.stdout.buffer
        return
    shown = io.BytesIO()
    yield shown
    click.echo(shown.getvalue().decode(), nl=False)


def print_rows(rows: Sequence[Sequence[str]], *, right: int = 1, err: bool = False) -> None:
    """Print aligned columns; those from `right` on are aligned to the right."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        pairs = enumerate(zip(row, widths, strict=True))
        cells = [cell.ljust(width) if place < right else cell.rjust(width) for place, (cell, width) in pairs]
        lines.append("  ".join(cells).rstrip())
    (say if err else click.echo)("\n".join(lines))
