"""`leafwise benchmark`: how well networks predict, compared with published results."""

from collections.abc import Sequence
from pathlib import Path

import click

from leafwise.cli.learn import COUNT, INTERRUPTED
from leafwise.cli.options import OUTPUT_FILE, check_output, json_option, print_json, say
from leafwise.cli.progress import telling


@click.group()
def benchmark() -> None:
    """Measure how well learned networks predict, compared with published results."""


def _names(_context: click.Context, _parameter: click.Parameter, text: str | None) -> Sequence[str]:
    from leafwise.experiments.published import DENSITY

    names = tuple(DENSITY) if text is None else tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in DENSITY:
            raise click.BadParameter(f"there is no data set {name!r}: give some of {', '.join(DENSITY)}.")
    return names


@benchmark.command()
@click.option(
    "--data-dir",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where NAME.train.csv.gz, NAME.valid.csv.gz and NAME.test.csv.gz are, or a folder `debd` with them.",
)
@click.option("--sets", "names", metavar="NAME,...", callback=_names, help="Only these.  [default: all fourteen]")
@click.option(
    "--networks",
    type=COUNT,
    metavar="N",
    help="Use mixtures of N networks, for which nothing is chosen on valid; of fewer if a set takes more than "
    "--seconds.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    metavar="S",
    help="Time limit of each search; for a mixture, in processor time.",
)
@click.option("--threads", type=COUNT, metavar="K", help="Threads to use.  [default: all cores]")
@click.option(
    "--results",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="Keep results in this JSON file, set by set; those already there with the same --seconds are not run again.",
)
@click.option("--markdown", is_flag=True, help="A table in Markdown.")
@json_option
def density(
    data_dir: Path,
    names: Sequence[str],
    networks: int | None,
    seconds: float | None,
    threads: int | None,
    results: Path | None,
    markdown: bool,
    as_json: bool,
) -> int:
    """Fourteen binary data sets: learn on train, choose on valid (kappa, operators, schedule, smoothing), report test.

    Ctrl-C stops it; finished sets remain in the results file.
    """
    if as_json and markdown:
        raise click.UsageError("--json and --markdown were both given: give one of them.")
    if results is not None:
        check_output(results)
    from leafwise.experiments.density import density, density_of_mixtures, density_report, mixture_report
    from leafwise.search.leaf_search import LeafSearch

    try:
        with telling() as tell:
            limits = LeafSearch(seconds=seconds, threads=threads)
            if networks is None:
                report = density_report(density(data_dir, names, limits, results, tell))
            else:
                report = mixture_report(density_of_mixtures(data_dir, names, networks, limits, results, tell))
    except KeyboardInterrupt:
        kept = "give --results to keep finished sets" if results is None else f"finished sets are in '{results}'"
        say(f"leafwise: interrupted: {kept}.")
        return INTERRUPTED
    if as_json:
        print_json({"title": report.title, **report.data})
    else:
        click.echo(report.markdown() if markdown else report.text())
    return 0
