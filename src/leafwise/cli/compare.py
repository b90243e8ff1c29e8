"""`leafwise compare`: comparison of two networks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from leafwise.cli.data import reading_options
from leafwise.cli.options import INPUT_FILE, OUTPUT_FILE, json_option, load_model, print_json, print_rows
from leafwise.cli.progress import telling


@click.command()
@click.argument("a", type=INPUT_FILE)
@click.argument("b", type=INPUT_FILE)
@click.option("--data", type=OUTPUT_FILE, multiple=True, help="Cases to score both networks on; may be given often.")
@reading_options("unknown", "error", "drop", unseen=True)
@json_option
def compare(a: Path, b: Path, data: Sequence[Path], reading: dict[str, Any], as_json: bool) -> None:
    """Compare the networks A and B: arcs, distances, graphs that differ, and how well each fits data.

    The structural Hamming distance counts pairs of variables whose arc one network lacks or reverses; that of the
    equivalence classes ignores differences that no data can reveal.
    """
    from leafwise.comparison import compare as put_together

    with telling(quiet=as_json) as tell:
        tell(f"reading {a.name} and {b.name}")
        networks = load_model(a), load_model(b)
        tell("comparing")
        found = put_together(*networks, list(data) or None, **reading)
    if as_json:
        print_json(found.as_dict())
    else:
        print_rows(found.rows(), right=2)
