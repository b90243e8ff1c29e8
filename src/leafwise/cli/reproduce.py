"""`leafwise reproduce`: rerun the paper's experiments, and compare the results with the published ones."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leafwise.cli.options import INPUT_FILE, json_option, print_json
from leafwise.cli.progress import telling

if TYPE_CHECKING:
    from leafwise.report.tables import Report

ALARM_TABLES = {"table3": "S", "table4": "U", "table5": "C"}
WHAT = ("table1", "table2", *ALARM_TABLES, "table6", "edges", "recovery")
PARTS = {"section6": ("section6-drawn", "section6-data", "section6-series")}  # experiments with several tables
FILES = {"table1": "promoters.csv", "table2": "splice.csv"}


@click.command()
@click.argument("what", type=click.Choice([*WHAT, "section6", "missing", "all"]))
@click.option("--data", type=INPUT_FILE, help="The data of table1 (promoters) or table2 (splice), if it runs alone.")
@click.option(
    "--data-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where promoters.csv and splice.csv are, or a folder `tables` with them; for section6, with all its sets; for "
    "missing, that of `tables`, `networks` and `debd`.",
)
@click.option(
    "--cases",
    type=click.IntRange(min=10),
    default=50_000,
    show_default=True,
    help="In missing: largest number of rows to learn from.",
)
@click.option(
    "--sets", metavar="NAME,...", help="The sets of missing or section6, such as alarm,adult.  [default: all]"
)
@click.option("--slow", is_flag=True, help="In missing: also run methods that take minutes for each row of the table.")
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Samples for tables 3 to 6, edges and section6.",
)
@click.option("--samples", type=click.IntRange(min=1), default=10, show_default=True, help="Samples for recovery.")
@click.option(
    "--rounds", type=click.IntRange(min=0), default=100, show_default=True, help="Restarts in tables 1 and 2."
)
@click.option(
    "--schedule",
    type=click.Choice(["best-first", "splits-first"]),
    default="splits-first",
    show_default=True,
    help="In tables 3 to 6.",
)
@click.option("--markdown", is_flag=True, help="Tables in Markdown.")
@click.option(
    "--write",
    "page",
    type=click.Path(exists=True, dir_okay=False, writable=True, path_type=Path),
    help="Put the tables into this Markdown page, between lines '<!-- begin table1 -->' and '<!-- end table1 -->'.",
)
@json_option
def reproduce(
    what: str,
    data: Path | None,
    data_dir: Path | None,
    seeds: int,
    samples: int,
    rounds: int,
    cases: int,
    sets: str | None,
    slow: bool,
    schedule: str,
    markdown: bool,
    page: Path | None,
    as_json: bool,
) -> None:
    """Rerun an experiment of the paper, or all of them, and print our numbers beside the published ones."""
    if as_json + markdown + (page is not None) > 1:
        raise click.UsageError("several of --json, --markdown and --write were given: give one of them.")
    if data is not None and what not in FILES:
        takes_folder = what in (*PARTS, "missing", "all")
        advice = "name the folder of all files with --data-dir" if takes_folder else "leave it out"
        raise click.UsageError(f"--data is the file of table1 or of table2, and {what} takes none: {advice}.")
    wanted = WHAT if what == "all" else PARTS.get(what, (what,))
    reports: dict[str, Report] = {}
    if page is not None:
        _fill(page, dict.fromkeys(wanted, ""))  # check that there is a place for each, before the work begins
    files = {name: _file(name, data, data_dir, alone=what == name) for name in wanted if name in FILES}
    with telling() as tell:
        for name, file in files.items():
            reports[name] = _classification(name, file, rounds, tell)
        if any(name in ALARM_TABLES or name == "table6" for name in wanted):
            reports |= _alarm(wanted, seeds, schedule, tell)
        if "edges" in wanted:
            from leafwise.experiments.edge_comparison import edge_report

            reports["edges"] = edge_report(seeds, tell)
        if "recovery" in wanted:
            from leafwise.experiments.recovery import recovery_report

            reports["recovery"] = recovery_report(samples, tell=tell)
        if what == "section6":
            from leafwise.experiments.section6 import data_report, drawn_report, series_report

            reports["section6-data"] = data_report(sets.split(",") if sets else (), data_dir, tell)
            reports["section6-drawn"] = drawn_report(seeds, tell)
            reports["section6-series"] = series_report(tell)
        if "missing" in wanted:
            from leafwise.experiments.missing import missing_report

            reports["missing"] = missing_report(sets.split(",") if sets else (), cases, data_dir, slow, tell)
    if page is None:
        _print({name: reports[name] for name in wanted}, markdown=markdown, as_json=as_json)
    else:
        page.write_text(_fill(page, {name: reports[name].markdown() for name in wanted}), encoding="utf-8")


def _file(name: str, data: Path | None, data_dir: Path | None, *, alone: bool) -> Path:
    """The file of an experiment; one that runs `alone` may also be given its file by --data."""
    if data is not None:
        return data
    if data_dir is None:
        advice = "name it with --data, or its folder with --data-dir" if alone else "name its folder with --data-dir"
        raise click.UsageError(f"{name} needs the file {FILES[name]}: {advice}.")
    for file in (data_dir / FILES[name], data_dir / "tables" / FILES[name]):
        if file.is_file():
            return file
    advice = "name the file with --data" if alone else "put the file there"
    raise click.UsageError(f"there is no {FILES[name]} in '{data_dir}': {advice}.")


def _classification(name: str, file: Path, rounds: int, tell: Callable[[str], None]) -> "Report":
    from leafwise.experiments import published
    from leafwise.experiments.classification import classification, classification_report
    from leafwise.experiments.sequences import read_sequences

    values = published.TABLE_1 if name == "table1" else published.TABLE_2
    title = f"Table {name[-1]}: log scores relative to C, {file.stem}"
    scores = classification(read_sequences(file), list(values), rounds, lambda text: tell(f"{name}: {text}"))
    return classification_report(title, scores, values, digits=2 if name == "table1" else 0)


def _alarm(wanted: tuple[str, ...], seeds: int, schedule: str, tell: Callable[[str], None]) -> "dict[str, Report]":
    from leafwise.experiments.alarm_tables import joint_report, scores_of_seeds, table_report

    scores = scores_of_seeds(seeds, schedule, tell)
    reports = {name: table_report(row, scores) for name, row in ALARM_TABLES.items() if name in wanted}
    return reports | {"table6": joint_report(scores)} if "table6" in wanted else reports


def _print(reports: "dict[str, Report]", *, markdown: bool, as_json: bool) -> None:
    if as_json:
        print_json({name: {"title": report.title, **report.data} for name, report in reports.items()})
        return
    click.echo("\n\n".join(report.markdown() if markdown else report.text() for report in reports.values()))


def _fill(page: Path, texts: dict[str, str]) -> str:
    """The text of the page, with new texts between the markers of their names."""
    text = page.read_text(encoding="utf-8")
    for name, new in texts.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise click.UsageError(f"'{page}' has no lines '{begin}' and '{end}': add them where the table belongs.")
        text = f"{before}{begin}\n\n{new}\n\n{end}{after}"
    return text
