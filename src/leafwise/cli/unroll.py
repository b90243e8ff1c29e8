"""`leafwise unroll`: conversion of a dynamic network to an ordinary one over a number of slices."""

from pathlib import Path

import click

from leafwise.cli.options import (
    OUTPUT_FILE,
    STANDARD,
    check_output,
    json_option,
    load_dynamic,
    model_argument,
    print_json,
)
from leafwise.cli.progress import telling
from leafwise.cli.saving import dumped

MOST_SLICES = 10**6


@click.command()
@model_argument
@click.argument("slices", type=click.IntRange(1, MOST_SLICES), metavar="T")
@click.option("-o", "--output", type=OUTPUT_FILE, metavar="FILE", required=True, help="Where to save the network.")
@json_option
def unroll(model: Path, slices: int, output: Path, as_json: bool) -> None:
    """Unroll the dynamic network MODEL to an ordinary network over T slices, with variables x[0], x[1], ..., x[T-1].

    Filtering, smoothing and prediction are queries to it: with query, mpe, sample, evaluate and all other commands.
    """
    from leafwise.data.table import many

    check_output(output, model, standard=True)
    if output == STANDARD and as_json:
        raise click.UsageError("the network alone goes to standard output: leave out -o -, or --json.")
    with telling(quiet=as_json) as tell:
        tell(f"reading {model.name}")
        network = load_dynamic(model).unroll(slices)
        tell(f"writing {output.name}")
        if output != STANDARD:
            network.save(output)
    if output == STANDARD:
        click.echo(dumped(network), nl=False)
    elif as_json:
        counts = {"slices": slices, "variables": len(network.variables), "arcs": len(network.arcs)}
        print_json({**counts, "parameters": network.n_parameters, "output": str(output)})
    else:
        click.echo(f"{many(slices, 'slice')}, {many(len(network.variables), 'variable')}, saved in {output}")
