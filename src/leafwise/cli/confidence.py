"""`leafwise confidence`: how sure each arc is."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leafwise.cli.data import data_argument, reading_options
from leafwise.cli.learn import COUNT, KILLED_BY
from leafwise.cli.options import OUTPUT_FILE, check_output, json_option, print_json, print_rows
from leafwise.cli.progress import asked_to_stop, telling

if TYPE_CHECKING:
    from leafwise.arc_confidence import Confidence
    from leafwise.search.under_way import Settings
    from leafwise.table import Table


@click.command()
@data_argument
@click.option("--networks", type=COUNT, default=100, show_default=True, metavar="N", help="How many to learn.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of the halves that are drawn.")
@click.option(
    "--search",
    type=click.Choice(["greedy", "tables", "recover"]),
    default="recover",
    show_default=True,
    help="As in learn: shares are to be taken at their word with recover alone; greedy takes less time.",
)
@click.option("-o", "--output", type=OUTPUT_FILE, metavar="FILE", help="Save a picture, arcs by width: .svg or .png.")
@click.option(
    "--consensus",
    type=OUTPUT_FILE,
    metavar="MODEL",
    help="Save the network with the arcs above the threshold, its graphs learned from all cases.",
)
@reading_options("error", "state", "drop", states=True)
@json_option
def confidence(
    data: Sequence[Path],
    networks: int,
    seed: int,
    search: str,
    output: Path | None,
    consensus: Path | None,
    reading: dict[str, Any],
    as_json: bool,
) -> int:
    """How sure each arc is: the share of networks, learned from halves of the cases of DATA, that have it.

    Ctrl-C stops it; what is told then is of the networks learned so far.
    """
    for file in (output, consensus):
        if file is not None:
            check_output(file, *data)
    from leafwise.arc_confidence import Confidence, halves
    from leafwise.encoding import read
    from leafwise.search.greedy import LeafSearch
    from leafwise.search.recover import RecoverySearch
    from leafwise.search.tables import TableArcSearch

    table = read(list(data), **reading)
    searches: dict[str, Settings] = {"greedy": LeafSearch(), "tables": TableArcSearch(), "recover": RecoverySearch()}
    found = []
    with asked_to_stop() as asked, telling(quiet=as_json) as tell:
        for network in halves(table, networks, seed, search=searches[search]):
            found.append(network)
            tell(f"{len(found):,} of {networks:,} networks")
            if asked.signal:
                break
    result = Confidence.of(found)
    if output is not None:
        result.plot().save(output)
    if consensus is not None:
        _save_consensus(result, table, consensus)
    _print(result, output, consensus, as_json)
    if asked.signal:
        click.echo(f"leafwise: interrupted after {len(found):,} of {networks:,} networks.", err=True)
    return KILLED_BY + asked.signal if asked.signal else 0


def _save_consensus(result: "Confidence", table: "Table", consensus: Path) -> None:
    from leafwise.constraints import Constraints
    from leafwise.learner import learn

    learn(table, constraints=Constraints(dag=result.consensus)).save(consensus)


def _print(result: "Confidence", output: Path | None, consensus: Path | None, as_json: bool) -> None:
    columns: Any = result.frame_columns()
    rows = list(zip(*columns.values(), strict=True))
    saved = {key: str(file) for key, file in (("output", output), ("consensus", consensus)) if file is not None}
    if as_json:
        pairs = [dict(zip(columns, (x if isinstance(x, str) else float(x) for x in row), strict=True)) for row in rows]
        arcs = [list(arc) for arc in result.consensus]
        about = {"networks": result.n_networks, "threshold": result.threshold, "consensus_arcs": arcs, "pairs": pairs}
        print_json(about | saved)
        return
    click.echo(f"{result.n_networks:,} networks; the consensus has {len(result.consensus):,} arcs, ", nl=False)
    click.echo(f"of pairs that {100 * result.threshold:.0f} % or more connect")
    lines = [("from", "to", "connected", "this way", "the other", "tests")]
    for parent, child, both, one, other, tests, _ in rows:
        shares = [f"{100 * share:.0f} %" for share in (both, one, other)]
        lines.append((parent, child, *shares, f"{tests:.1f}"))
    print_rows(lines, right=2)
    for file in saved.values():
        click.echo(f"saved in {file}")
