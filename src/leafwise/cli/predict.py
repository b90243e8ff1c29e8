"""`leafwise predict`: the distribution of one variable for every row of a table."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leafwise.cli.data import data_argument, reading_options, titles
from leafwise.cli.options import (
    STANDARD,
    check_output,
    exactness_options,
    json_option,
    limits_of,
    load_network_or_mixture,
    model_argument,
    print_json,
    say,
    standard_table,
    table_output_option,
    variable_names,
)
from leafwise.cli.progress import telling

if TYPE_CHECKING:
    from leafwise.predictions import Predictions


@click.command()
@model_argument
@data_argument
@click.option("--target", required=True, metavar="NAME", shell_complete=variable_names, help="The variable to predict.")
@table_output_option
@reading_options("unknown", "error", unseen=True)
@exactness_options
@json_option
def predict(
    model: Path,
    data: Sequence[Path],
    target: str,
    output: Path | None,
    reading: dict[str, Any],
    memory: float | None,
    operations: float | None,
    as_json: bool,
) -> None:
    """The probabilities of the states of a variable of the network MODEL, for every row of DATA.

    Each line contains the most probable state, and the probability of each state. DATA need not contain the target;
    missing cells are summed over, exactly.
    """
    if as_json and output in (None, STANDARD):
        raise click.UsageError("--json prints no probabilities: name a file for them with -o out.csv.")
    from leafwise.data.columns import check_ending

    if output is not None:
        check_output(output, model, *data, standard=True)
        check_ending(output)
    from leafwise.data.new_data import for_every_row
    from leafwise.data.writing import write_columns
    from leafwise.predictions import predict as ask

    with telling(quiet=as_json) as tell:
        tell(f"reading {model.name} and {titles(data)}")
        network = load_network_or_mixture(model)
        tell(f"predicting {target}")
        limits = limits_of(memory, operations)
        with for_every_row():
            found = ask(network, list(data), target, limits=limits, **reading)
    if output is None or output == STANDARD:
        with standard_table() as stream:
            write_columns(found.frame_columns(), stream)
    else:
        write_columns(found.frame_columns(), output)
    impossible = _impossible(found)
    if as_json:
        print_json({"rows": len(found), "target": target, "impossible_rows": impossible, "output": str(output)})
    elif output not in (None, STANDARD):
        click.echo(f"{len(found):,} predictions of {target} saved in {output}")
    if impossible and not as_json:
        say(f"leafwise: the network holds {impossible:,} rows impossible: they have no probabilities.")


def _impossible(found: "Predictions") -> int:
    return int((found.probabilities != found.probabilities).any(axis=1).sum())
