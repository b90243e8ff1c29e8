"""`leafwise describe`: how the columns of a table are interpreted, before anything is learned."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from leafwise.cli.data import column_names, data_argument, reading_options, titles
from leafwise.cli.options import json_option, print_json
from leafwise.cli.progress import telling


@click.command()
@data_argument
@click.option(
    "--target",
    metavar="NAME",
    shell_complete=column_names,
    help="The variable to learn, about which bins are to be informative.",
)
@reading_options("error", "state", "drop", "infer", states=True)
@json_option
def describe(data: Sequence[Path], target: str | None, reading: dict[str, Any], as_json: bool) -> None:
    """How each column of DATA is interpreted: states, bins, dates, identifiers, free text, constants, copies.

    Columns that `learn` would refuse are shown here, with what can be done.
    """
    from leafwise.data.encoding import describe as understand

    with telling(quiet=as_json) as tell:
        tell(f"reading {titles(data)}")
        found = understand(list(data), target=target, **reading)
    if as_json:
        print_json(found.as_dict())
    else:
        click.echo(found.text(in_options=True))
