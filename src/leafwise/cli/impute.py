"""`leafwise impute`: imputation of the missing cells of a table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from leafwise.cli.data import data_argument, reading_options, titles
from leafwise.cli.options import (
    STANDARD,
    check_output,
    json_option,
    load_network_or_mixture,
    model_argument,
    print_json,
    standard_table,
    table_output_option,
)
from leafwise.cli.progress import telling


@click.command()
@model_argument
@data_argument
@table_output_option
@click.option(
    "--how",
    type=click.Choice(["draw", "most-probable", "mean-probabilities"]),
    default="draw",
    show_default=True,
    help="Draw the cells of a row jointly, take the most probable state of each, or write the probability of each "
    "state of all variables.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Random seed of draws.")
@reading_options("unknown", unseen=True)
@json_option
def impute(
    model: Path,
    data: Sequence[Path],
    output: Path | None,
    how: str,
    seed: int,
    reading: dict[str, Any],
    as_json: bool,
) -> None:
    """Fill in the missing cells of DATA with the network MODEL, given the observed cells of their rows.

    Columns of numbers are written as the bins of the network; columns that it does not contain are left out. Rows keep
    their order.
    """
    if as_json and output in (None, STANDARD):
        raise click.UsageError("--json prints no table: name a file for it with -o out.csv.")
    from leafwise.data.columns import check_ending

    if output is not None:
        check_output(output, model, *data, standard=True)
        check_ending(output)
    from leafwise.data.writing import write_columns
    from leafwise.imputation import impute as fill

    with telling(quiet=as_json) as tell:
        tell(f"reading {model.name} and {titles(data)}")
        network = load_network_or_mixture(model)
        tell("filling in")
        found = fill(network, list(data), how.replace("-", " "), seed=seed, **reading)
    if output is None or output == STANDARD:
        with standard_table() as stream:
            write_columns(found.frame_columns(), stream)
    else:
        write_columns(found.frame_columns(), output)
    if as_json:
        print_json({"rows": len(found), "how": how, "output": str(output)})
    elif output not in (None, STANDARD):
        click.echo(f"{len(found):,} rows saved in {output}")
