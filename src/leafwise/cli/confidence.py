"""`leafwise confidence`: the confidence in each arc."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leafwise.cli.data import data_argument, reading_options
from leafwise.cli.learn import COUNT, KILLED_BY
from leafwise.cli.models import save_page
from leafwise.cli.options import OUTPUT_FILE, check_output, json_option, print_json, print_rows, say
from leafwise.cli.progress import asked_to_stop, telling

if TYPE_CHECKING:
    from leafwise.arc_confidence import Confidence
    from leafwise.data.table import Table
    from leafwise.search.run import Settings


@click.command()
@data_argument
@click.option("--networks", type=COUNT, default=100, show_default=True, metavar="N", help="Number of networks.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Random seed of the halves.")
@click.option(
    "--search",
    type=click.Choice(["greedy", "tables", "recover"]),
    default="recover",
    show_default=True,
    help="As in learn; only the shares of recover are calibrated, and greedy takes less time.",
)
@click.option(
    "-o",
    "--output",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="Save a picture (.svg or .png) in which arc widths show confidence.",
)
@click.option(
    "--consensus",
    type=OUTPUT_FILE,
    metavar="MODEL",
    help="Save the network with the arcs above the threshold, its graphs learned from all cases.",
)
@click.option("--html", type=OUTPUT_FILE, metavar="FILE", help="Save the same as a page to explore.")
@reading_options("error", "state", "drop", states=True)
@json_option
def confidence(
    data: Sequence[Path],
    networks: int,
    seed: int,
    search: str,
    output: Path | None,
    consensus: Path | None,
    html: Path | None,
    reading: dict[str, Any],
    as_json: bool,
) -> int:
    """The confidence in each arc: the share of networks, learned from halves of the cases of DATA, that contain it.

    Ctrl-C stops it after the network in progress, and again at once; the results are then those of the networks learned
    so far.
    """
    files = [file for file in (output, consensus, html) if file is not None]
    for place, file in enumerate(files):
        check_output(file, *data)
        if file.absolute() in [other.absolute() for other in files[:place]]:
            raise click.UsageError(f"two results would both be '{file}': give them different names.")
    if output is not None and output.suffix.lower() not in (".svg", ".png"):
        raise ValueError(f"the name {output.name!r} ends like no picture: use .svg or .png.")
    from leafwise.arc_confidence import Confidence, halves
    from leafwise.data.encoding import read
    from leafwise.data.new_data import without_inference
    from leafwise.formats.files import format_of
    from leafwise.search.leaf_search import LeafSearch
    from leafwise.search.recover import RecoverySearch
    from leafwise.search.table_arc_search import TableArcSearch

    if consensus is not None:
        format_of(consensus)  # an unknown one is refused before the networks are learned
    with without_inference():
        table = read(list(data), **reading)
    searches: dict[str, Settings] = {"greedy": LeafSearch(), "tables": TableArcSearch(), "recover": RecoverySearch()}
    found = []
    with asked_to_stop() as asked, telling(quiet=as_json) as tell:
        try:
            for network in halves(table, networks, seed, search=searches[search]):
                found.append(network)
                tell(f"{len(found):,} of {networks:,} networks")
                if asked.signal:
                    break
        except KeyboardInterrupt:  # asked again: only the network in progress is lost
            if not found:
                raise
    result = Confidence.of(found)
    if output is not None:
        result.plot().save(output)
    if consensus is not None or html is not None:
        _save_consensus(result, table, consensus, html)
    _print(result, {"output": output, "consensus": consensus, "html": html}, as_json)
    if asked.signal:
        say(f"leafwise: interrupted after {len(found):,} of {networks:,} networks.")
    return KILLED_BY + asked.signal if asked.signal else 0


def _save_consensus(result: "Confidence", table: "Table", consensus: Path | None, html: Path | None) -> None:
    network = result.network(table)
    if consensus is not None:
        network.save(consensus)
    if html is not None:
        save_page(network, "consensus", html)


def _print(result: "Confidence", files: dict[str, Path | None], as_json: bool) -> None:
    from leafwise.data.table import many

    columns: Any = result.frame_columns()
    rows = list(zip(*columns.values(), strict=True))
    saved = {key: str(file) for key, file in files.items() if file is not None}
    if as_json:
        pairs = [dict(zip(columns, (x if isinstance(x, str) else float(x) for x in row), strict=True)) for row in rows]
        arcs = [list(arc) for arc in result.consensus]
        about = {"networks": result.n_networks, "threshold": result.threshold, "consensus_arcs": arcs, "pairs": pairs}
        print_json(about | saved)
        return
    size = many(len(result.consensus), "arc")
    click.echo(f"{many(result.n_networks, 'network')}; the consensus has {size}, ", nl=False)
    click.echo(f"of pairs that {100 * result.threshold:.0f} % or more connect")
    lines = [("from", "to", "connected", "this way", "the other", "tests")]
    for parent, child, both, one, other, tests, _ in rows:
        shares = [f"{100 * share:.0f} %" for share in (both, one, other)]
        lines.append((parent, child, *shares, f"{tests:.1f}"))
    print_rows(lines, right=2)
    for file in saved.values():
        click.echo(f"saved in {file}")
