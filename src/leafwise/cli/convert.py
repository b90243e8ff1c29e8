"""`leafwise convert`: conversion of networks between file formats."""

from pathlib import Path

import click

from leafwise.cli.options import INPUT_FILE, OUTPUT_FILE, STANDARD, check_output, json_option, load_model, print_json
from leafwise.cli.progress import telling


@click.command()
@click.argument("source", type=INPUT_FILE)
@click.argument("target", type=OUTPUT_FILE)
@click.option(
    "--most-cells",
    type=click.IntRange(min=1),
    metavar="N",
    help="Largest table to write for a variable, and most numbers that SOURCE may expand to.  "
    "[default: 1000000; of SOURCE also as many as it has bytes]",
)
@click.option(
    "--most-bytes",
    type=click.IntRange(min=1),
    metavar="N",
    help="Most bytes that a compressed SOURCE may expand to.  [default: 64 MiB plus 200 times its size]",
)
@json_option
def convert(source: Path, target: Path, most_cells: int | None, most_bytes: int | None, as_json: bool) -> None:
    """Convert the network file SOURCE to the file TARGET, in the formats that the endings of their names indicate.

    .json (leafwise's own: nothing is lost), .bif, .xmod, .bn (Libra), .xmlbif, .bifxml or .xml, .uai, .net (HUGIN) and
    .xdsl (GeNIe), each also as .gz. As SOURCE, - is JSON on standard input.
    """
    check_output(target, source)
    from leafwise.formats.files import format_of, load, save

    formats = format_of(source), format_of(target)
    with telling(quiet=as_json) as tell:
        tell(f"reading {source.name}")
        if source == STANDARD:
            network = load_model(source)
        else:
            network = load(source, most_cells=most_cells, most_bytes=most_bytes)
        tell(f"writing {target.name}")
        save(network, target, most_cells)
    if as_json:
        counts = {"variables": len(network.variables), "arcs": len(network.arcs), "parameters": network.n_parameters}
        print_json({"from": formats[0], "to": formats[1], **counts, "output": str(target)})
    else:
        click.echo(
            f"{len(network.variables):,} variables and {len(network.arcs):,} arcs saved as {formats[1]} in {target}"
        )
