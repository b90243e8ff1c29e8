"""`leafwise learn`: learn a network from data files, and save it."""

import sys
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from leafwise.cli.data import READING, column_names, reading_options
from leafwise.cli.options import (
    INPUT_FILE,
    OUTPUT_FILE,
    STANDARD,
    check_output,
    json_option,
    load_model,
    print_json,
    print_rows,
    say,
    say_log,
    stacked,
)
from leafwise.cli.progress import asked_to_stop, follow, narrate, not_interrupted, telling
from leafwise.cli.saving import dumped, saved

if TYPE_CHECKING:
    from leafwise.constraints import Constraints
    from leafwise.counters.dask import DaskCounter
    from leafwise.data.case_weights import Floats
    from leafwise.data.description import Description
    from leafwise.data.encoding import Reading
    from leafwise.data.table import Table
    from leafwise.ensembles import MixtureRun
    from leafwise.mixture import Mixture
    from leafwise.network import Network
    from leafwise.search.run import SearchRun, Settings

EXAMPLES = ("alarm",)
EXAMPLE_CASES = 1000
KILLED_BY, NOT_SAVED = 128, 2  # exit codes: plus a signal's number; where it was wanted
INTERRUPTED = 130
IN_ROUNDS_WITHOUT = ("keep", "device", "networks", "cluster")
MIXED_WITHOUT = ("leaves", "keep", "start", "weights", "device", "cluster", "tied")
LEAVES_WITHOUT = {
    "plain": (),
    "average": ("weights", "hidden", "cluster", "tied"),
    "stacked": ("weights", "hidden", "cluster"),
}
ON_A_CLUSTER_WITHOUT = ("cache", "weights", "device", "example", "tied")
SERIES_WITHOUT = (
    *("example", "target", "start", "hidden", "completions", "weights", "networks", "keep", "tied", "cache", "cluster"),
)
MOST = 2**31 - 1
MOST_KEPT = 10_000  # each is a file, whose name is checked before the search
COUNT = click.IntRange(1, MOST)


@dataclass(frozen=True)
class Request:
    """The parsed command line, one field per option."""

    data: tuple[Path, ...]
    example: str | None
    seed: int
    output: Path | None
    reading: dict[str, Any]
    cache: bool
    target: str | None
    search: str
    rounds: int | None
    keep: int | None
    operators: str
    schedule: str
    prior: str
    structure_prior: str
    hidden: Any
    completions: int
    leaves: str
    networks: int | None
    lags: int | None
    by: str | None
    time: str | None
    delete_parents: bool
    start: Path | None
    weights: str | None
    dag: Path | None
    order: Path | None
    tiers: Path | None
    forbid: Path | None
    require: Path | None
    tied: Path | None
    max_parents: int | None
    max_leaves: int | None
    steps: int | None
    seconds: float | None
    threads: int | None
    checkpoint: Path | None
    every: float
    device: str
    cluster: str | None
    quiet: bool
    verbose: bool
    as_json: bool


def _hidden(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | list[int] | None:
    if text is None or text == "auto":
        return text
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) >= 2 for part in parts):
        raise click.BadParameter(
            f"{text!r} is no number of states >= 2: write --hidden 8, --hidden 4,4 or --hidden auto."
        )
    return [int(part) for part in parts]


# How to search and how to score.
search_options = stacked(
    click.option(
        "--target",
        metavar="NAME",
        shell_complete=column_names,
        help="Learn only this variable, with all others as possible parents.",
    ),
    click.option(
        "--search",
        type=click.Choice(["greedy", "tables", "edges", "restarts", "recover"]),
        default="greedy",
        show_default=True,
        help="greedy: over the leaves of all decision graphs; tables: over arcs, with complete tables; edges: over "
        "arcs, with graphs that are relearned for each; restarts: greedy, continued where it gets stuck; recover: "
        "first for the arcs that generated the data, then for graphs along them.",
    ),
    click.option("--tables", is_flag=True, help="Short for --search tables."),
    click.option(
        "--rounds",
        type=click.IntRange(min=0),
        metavar="K",
        help="Rounds of --search restarts.  [default: 100]",
    ),
    click.option(
        "--keep",
        type=click.IntRange(1, MOST_KEPT),
        metavar="K",
        help="With --search restarts: save the K best networks.",
    ),
    click.option(
        "--operators",
        default="auto",
        show_default=True,
        help="auto (CBIM; with --target BIM, too, and the more probable graph is kept), or any of C (complete splits), "
        "B (splits on one state), I (splits of ordered states at a threshold), M (merges), O (partial splits, which "
        "test the variable itself), and after the search R (leaves of a variable share a distribution up to a "
        "permutation of states), T (leaves of several variables share one).",
    ),
    click.option(
        "--schedule",
        type=click.Choice(["best-first", "splits-first"]),
        default="splits-first",
        show_default=True,
        help="Always the operator with the largest gain, or merges only when no split gains.",
    ),
    click.option(
        "--prior",
        default="auto",
        show_default=True,
        help="Parameter prior: auto (two pseudo-cases per leaf, and after the search a number chosen for each "
        "variable), symmetric:2, uniform (the paper's), bdeu:10, or network:FILE:10.",
    ),
    click.option(
        "--structure-prior",
        default="auto",
        show_default=True,
        help="Structure prior: auto (every choice is charged by the number of alternatives), kappa:0.1 (a factor of "
        "0.1 for each parameter), or uniform.",
    ),
    click.option(
        "--hidden",
        metavar="auto|K|K,K,...",
        callback=_hidden,
        help="Add a hidden variable with K states, or several, or one with the number of states that scores best.",
    ),
    click.option(
        "--completions",
        type=COUNT,
        metavar="K",
        default=5,
        show_default=True,
        help="Completions of each row, if missing cells are inferred or variables are hidden.",
    ),
    click.option(
        "--leaves",
        type=click.Choice(["plain", "average", "stacked"]),
        default="plain",
        show_default=True,
        help="Distributions in the leaves: posterior means; or, to predict better, means over all prunings of trees, "
        "or mixtures of estimates from coarse to fine for each combination of parent states.",
    ),
    click.option(
        "--networks",
        type=COUNT,
        metavar="N",
        help="Learn a mixture of N networks, which predicts better than one.",
    ),
    click.option(
        "--lags",
        type=COUNT,
        metavar="N",
        help="The rows are time series: each slice depends on the N before it, in the same way at any time.",
    ),
    click.option(
        "--by",
        metavar="COLUMN",
        shell_complete=column_names,
        help="With --lags: the column that identifies the series.",
    ),
    click.option(
        "--time",
        metavar="COLUMN",
        shell_complete=column_names,
        help="With --lags: the column of whole numbers or dates that orders the rows.  [default: order of the rows]",
    ),
    click.option(
        "--weights",
        metavar="COLUMN",
        shell_complete=column_names,
        help="The column with the number of cases that each row represents; it is then not a variable.",
    ),
    click.option(
        "--delete-parents", is_flag=True, help="During the search, delete parents that have become irrelevant."
    ),
    click.option("--start", type=INPUT_FILE, help="Start from this saved network instead of an empty one."),
)

# Which parents are allowed, and when to stop.
limit_options = stacked(
    click.option(
        "--dag",
        type=INPUT_FILE,
        help="Parents only along these arcs: a file with 'parent child', 'parent, child' or 'parent -> child' on each "
        "line, or a saved network.",
    ),
    click.option(
        "--order", type=INPUT_FILE, help="Parents only from earlier in this file, which has one name per line."
    ),
    click.option(
        "--tiers",
        type=INPUT_FILE,
        help="Parents only from the same or an earlier tier: one tier per line, names separated by commas.",
    ),
    click.option("--forbid", type=INPUT_FILE, help="Forbidden arcs: a file as for --dag."),
    click.option("--require", type=INPUT_FILE, help="Required arcs: a file as for --dag."),
    click.option(
        "--tied",
        type=INPUT_FILE,
        help="Variables that share one graph and its parameters, one group per line: 'x1, z1 -> y1; x2, z2 -> y2' "
        "matches their parents by position.",
    ),
    click.option("--max-parents", type=click.IntRange(0, MOST), metavar="K", help="Largest number of parents."),
    click.option("--max-leaves", type=COUNT, metavar="K", help="Largest number of leaves of a graph."),
    click.option("--steps", type=click.IntRange(min=0), metavar="K", help="Stop after this many steps."),
    click.option("--seconds", type=click.FloatRange(min=0), metavar="S", help="Stop after this many seconds."),
    click.option("--threads", type=COUNT, metavar="K", help="Threads to use.  [default: all cores]"),
    click.option(
        "--checkpoint",
        type=OUTPUT_FILE,
        metavar="FILE",
        help="Save the search in this file regularly; after an interruption, the same command resumes it.",
    ),
    click.option(
        "--every",
        type=click.FloatRange(min=0),
        default=60.0,
        show_default=True,
        metavar="S",
        help="With --checkpoint: lose at most this many seconds.",
    ),
    click.option(
        "--device",
        type=click.Choice(["cpu", "gpu"]),
        default="cpu",
        show_default=True,
        help="Count on this machine's cores, or on a GPU (with the extra gpu); the result is the same.",
    ),
    click.option(
        "--cluster",
        metavar="ADDRESS",
        help="Let the workers of a Dask scheduler, such as tcp://10.0.0.1:8786, read the files and count (with the "
        "extra dask); the result is the same.",
    ),
)


@click.command()
@click.argument("data", type=OUTPUT_FILE, nargs=-1)
@click.option("-o", "--output", type=OUTPUT_FILE, metavar="MODEL", help="Where to save the network: .json or .json.gz.")
@click.option("--example", metavar="NAME", help=f"Learn from {EXAMPLE_CASES:,} cases of a built-in network: alarm.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Random seed of the example's cases, restarts, completions and mixtures.",
)
@reading_options("error", "state", "drop", "infer", states=True)
@click.option("--cache", is_flag=True, help="Keep the packed table in a file beside the first one, and reuse it.")
@search_options
@limit_options
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summary.")
@click.option("-v", "--verbose", is_flag=True, help="A line on standard error for every step.")
@json_option
def learn(**given: Any) -> int:
    """Learn a network from DATA: files (.csv, .tsv, .txt, each also .gz, or .parquet), folders or patterns of them, or
    - for standard input.

    Ctrl-C stops the search and saves the network found so far; so do SIGTERM and SIGHUP.
    """
    request = Request(**_with_tables(**given))
    _refuse_unused(request)
    output = _output(request)
    if output is not None:
        constraint_files = (request.dag, request.order, request.tiers, request.forbid, request.require, request.tied)
        for file in _names(output, request.keep or 1):
            check_output(file, *request.data, request.start, *constraint_files, standard=True)
        _check_format(output)
    _check_checkpoint(request, output)
    settings = _settings(request)  # invalid settings are refused before the data are read
    table, understood, start, weights = _table(request)
    if not request.quiet and not request.as_json and sys.stderr.isatty():
        from leafwise.kernels.compiling.sources import when_compiling

        when_compiling(lambda: say("leafwise: compiling, once: the next run starts at once."))
    if request.device == "gpu" and not request.quiet and not request.as_json:
        say_log("leafwise.counters.gpu")  # the memory that the table takes there
    search = _search(request, settings, table, start, weights)
    if understood is not None and not request.quiet and not request.as_json:
        say(f"{understood.summary(in_options=True)}\n")
    if (n_before := getattr(search, "n_steps_before", 0)) and not request.quiet and not request.as_json:
        say(f"leafwise: going on from '{request.checkpoint}', after {n_before:,} steps.")
    with asked_to_stop():  # a signal between search and saving must not end the process
        if request.verbose:
            interrupted = narrate(search, _names_of(table))
        else:
            interrupted = follow(search, quiet=request.quiet or request.as_json)
        with not_interrupted():
            return _finish(request, table, search, output, interrupted)


def _finish(
    request: Request,
    table: "Table | DaskCounter",
    search: "SearchRun | MixtureRun",
    output: Path | None,
    interrupted: int,
) -> int:
    """Save the network, print the summary, and return the exit code."""
    from leafwise.data.table import Table
    from leafwise.dynamic_network import DynamicNetwork
    from leafwise.learner import with_leaves
    from leafwise.network import Network

    wanted = output

    network = search.network
    if isinstance(network, Network) and isinstance(table, Table):
        network = with_leaves(request.leaves, network, table, request.seed)
    model: Network | Mixture | DynamicNetwork = network
    if request.lags is not None and isinstance(network, Network):
        model = DynamicNetwork(network, request.lags)
    if output == STANDARD:
        click.echo(dumped(model), nl=False)
    elif output is not None:
        output = saved(model, output)
    values = ({"splits": 0, "merges": 0} if request.search == "tables" else {}) | dict(network.learned)
    values |= {"seconds": search.seconds, "output": None if output is None else str(output)}
    if not isinstance(table, Table):
        values["cluster"] = table.report
        table.close()
    if request.keep is not None:
        values["networks"] = _save_all(search, output)
    if interrupted:
        values["stopped"] = "interrupted"
        _say_interrupted(output)
    if request.as_json:
        print_json(values)
    elif not request.quiet:
        print_rows(_summary(values), right=2, err=output == STANDARD)
    if output != wanted:
        return NOT_SAVED
    return KILLED_BY + interrupted if interrupted else 0


def _with_tables(tables: bool, **given: Any) -> dict[str, Any]:
    """The options, with --tables replaced by --search tables."""
    source = click.get_current_context().get_parameter_source("search")
    if tables and source is not ParameterSource.DEFAULT and given["search"] != "tables":
        raise click.UsageError(f"both --tables and --search {given['search']} were given: leave one of them out.")
    return given | {"search": "tables"} if tables else given


def _refuse_unused(request: Request) -> None:
    """Refuse options that would have no effect."""
    infers, averaging = request.reading.get("missing") == "infer", ("leaves",) if request.leaves == "average" else ()
    unused = {
        "--tables": ("operators", "schedule", "delete_parents") if request.search == "tables" else (),
        "--example": (*READING, "weights", "cache") if request.example is not None else (),
        "--networks": MIXED_WITHOUT if request.networks is not None else (),
        "--networks without --hidden": ("completions",) if request.networks and request.hidden is None else (),
        "--cluster": ON_A_CLUSTER_WITHOUT if request.cluster is not None else (),
        f"--leaves {request.leaves}": LEAVES_WITHOUT[request.leaves],
        f"--search {request.search}": ("rounds", "keep") if request.search != "restarts" else ("steps",),
        "--weights": ("cache",) if request.weights is not None else (),
        "--start": ("cache",) if request.start is not None else (),
        "a run without --checkpoint": ("every",) if request.checkpoint is None else (),
        "--lags": SERIES_WITHOUT if request.lags is not None else (),
        "a run without --lags": ("by", "time") if request.lags is None else (),
        "--missing infer": (*IN_ROUNDS_WITHOUT, *averaging) if infers else (),
        "--missing infer, with --leaves stacked,": ("target",) if infers and request.leaves == "stacked" else (),
        "--hidden": ("keep", "device", "cluster") if request.hidden is not None else (),
    }
    context = click.get_current_context()
    for option, names in unused.items():
        for name in names:
            if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
                _, without, wanted = option.partition("a run without ")
                advice = f"give {wanted}, or leave it out" if without else "leave one of them out"
                value = f" {request.leaves}" if name == "leaves" else ""  # other values of it may be allowed
                raise click.UsageError(f"{option} takes no --{name.replace('_', '-')}{value}: {advice}.")


def _output(request: Request) -> Path | None:
    if request.example is None and not request.data:
        raise click.UsageError("there is nothing to learn from: give a DATA file, or --example alarm.")
    if request.example is not None and request.data:
        raise click.UsageError(
            f"both '{request.data[0]}' and --example {request.example} were given: give one of them."
        )
    if request.example is not None and request.example not in EXAMPLES:
        raise click.UsageError(f"there is no example {request.example!r}: the examples are {', '.join(EXAMPLES)}.")
    if request.output is None and request.example is not None:
        return Path(f"{request.example}-model.json")
    if request.output == STANDARD and (request.as_json or request.keep is not None):
        raise click.UsageError("the network alone goes to standard output: leave out -o -, or --json and --keep.")
    if request.output is None and not request.as_json:
        raise click.UsageError("there is no place to save the network: name one with -o model.json.")
    return request.output


def _names_of(table: "Table | DaskCounter") -> tuple[str, ...]:
    """The names of the variables."""
    return tuple(variable.name for variable in table.variables)


def _table(request: Request) -> "tuple[Table | DaskCounter, Description | None, Network | None, Floats | None]":
    """The cases to learn from, their description, the network to start from, and weights that are not repeated rows."""
    from leafwise.data.batches import at_most_threads, rows_told
    from leafwise.data.encoding import read_and_describe, read_weighted
    from leafwise.data.new_data import for_learning, without_inference

    start = None if request.start is None else load_model(request.start)
    if not request.data:
        from leafwise.examples import alarm
        from leafwise.inference.sampling import sample

        return sample(alarm(), EXAMPLE_CASES, request.seed), None, start, None
    variables = None if start is None else start.variables
    files = list(request.data)
    if request.cluster is not None:
        from leafwise.counters.dask import DaskCounter

        return DaskCounter.read(files, request.cluster, target=request.target, **request.reading), None, start, None
    if request.lags is not None:
        from leafwise.data.series import read_series, windows

        series, understood = read_series(files, by=request.by, time=request.time, **request.reading)
        return windows(series, request.lags), understood, None, None
    given = {"target": request.target, "variables": variables, **request.reading}
    if request.weights is not None:
        with for_learning():
            table, understood, weights = read_weighted(files, request.weights, **given)
        return table, understood, start, weights
    advising = for_learning() if request.networks is None else without_inference()
    with (
        advising,
        telling(quiet=request.quiet or request.as_json) as tell,
        nullcontext() if request.threads is None else at_most_threads(request.threads),
        rows_told(lambda n: tell(f"{n:,} rows read")),
    ):
        table, understood = read_and_describe(files, cache=request.cache, **given)
    return table, understood, start, None


def _search(
    request: Request,
    settings: "Settings",
    table: "Table | DaskCounter",
    start: "Network | None",
    weights: "Floats | None",
) -> "SearchRun | MixtureRun":
    from leafwise.learner import grown_for, start_mixture, start_search

    if request.networks is not None:
        return start_mixture(
            table,
            request.networks,
            seed=request.seed,
            target=request.target,
            search=settings,
            prior=request.prior,
            structure_prior=request.structure_prior,
            constraints=_constraints(request, _names_of(table)),
            hidden=request.hidden,
            completions=request.completions,
            checkpoint=request.checkpoint,
            every=request.every,
        )
    inferred: Reading = {"missing": "infer"} if request.reading.get("missing") == "infer" else {}
    search, structure_prior = grown_for(request.leaves, settings, request.structure_prior)
    return start_search(
        table,
        target=request.target,
        search=search,
        prior=request.prior,
        structure_prior=structure_prior,
        constraints=_constraints(request, _names_of(table)),
        start=start,
        hidden=request.hidden,
        completions=request.completions,
        seed=request.seed,
        **inferred,
        weights=weights,
        checkpoint=request.checkpoint,
        every=request.every,
        device=request.device,
    )


def _settings(request: Request) -> "Settings":
    from leafwise.search.graph_arc_search import GraphArcSearch
    from leafwise.search.leaf_search import LeafSearch
    from leafwise.search.recover import RecoverySearch
    from leafwise.search.restarts import LeafSearchRestarts
    from leafwise.search.table_arc_search import TableArcSearch

    if request.search == "tables":
        return TableArcSearch(max_steps=request.steps, seconds=request.seconds, threads=request.threads)
    greedy = LeafSearch(request.operators, request.schedule, request.delete_parents, threads=request.threads)
    if request.search == "restarts":
        given = {"rounds": request.rounds, "keep": request.keep}
        chosen = {name: value for name, value in given.items() if value is not None}
        return LeafSearchRestarts(greedy, seed=request.seed, seconds=request.seconds, **chosen)
    if request.search == "edges":
        return GraphArcSearch(greedy, max_steps=request.steps, seconds=request.seconds)
    if request.search == "recover":
        return RecoverySearch(greedy, max_steps=request.steps, seconds=request.seconds)
    return replace(greedy, max_steps=request.steps, seconds=request.seconds)


def _constraints(request: Request, names: tuple[str, ...]) -> "Constraints":
    from leafwise.constraints import Constraints
    from leafwise.formats.arcs import read_arcs, read_order, read_tied, read_tiers

    slice_names = names if request.lags is None else names[len(names) // (request.lags + 1) * request.lags :]
    constraints = Constraints(
        order=() if request.order is None else read_order(request.order, slice_names),
        tiers=() if request.tiers is None else read_tiers(request.tiers, slice_names),
        required=() if request.require is None else read_arcs(request.require, names),
        forbidden=() if request.forbid is None else read_arcs(request.forbid, names),
        dag=None if request.dag is None else read_arcs(request.dag, names),
        max_parents=request.max_parents,
        max_leaves=request.max_leaves,
        tied=() if request.tied is None else read_tied(request.tied, names),
    )
    return constraints if request.lags is None else constraints.over_slices(slice_names, request.lags)


def _check_checkpoint(request: Request, output: Path | None) -> None:
    if request.checkpoint is None:
        return
    check_output(request.checkpoint, *request.data, request.start)
    others = [] if output is None else [file.resolve() for file in _names(output, request.keep or 1)]
    if request.checkpoint.resolve() in others:
        raise click.UsageError("the checkpoint needs a file of its own: give --checkpoint another name.")


def _check_format(output: Path) -> None:
    """Refuse other formats than JSON: they cannot store every network, which would only show after the search."""
    from leafwise.formats.files import format_of

    if output != STANDARD and format_of(output) != "JSON":
        raise ValueError(f"cannot write '{output}': learn saves .json, which loses nothing: convert it later.")


def _names(output: Path, n: int) -> list[Path]:
    """The files in which the n best networks are saved, the best one in `output`."""
    return [output, *(output.with_stem(f"{output.stem}-{place}") for place in range(2, n + 1))]


def _save_all(search: Any, output: Path | None) -> list[dict[str, Any]]:
    """Save the networks that were kept: the best as model.json, the second best as model-2.json, and so on."""
    found = []
    files = [None] * len(search.networks) if output is None else _names(output, len(search.networks))
    for file, (network, log_score, posterior) in zip(files, search.networks, strict=True):
        if file is not None:
            file = saved(network, file)
        found.append(
            {"log_score": log_score, "relative_posterior": posterior, "output": None if file is None else str(file)}
        )
    return found


def _say_interrupted(output: Path | None) -> None:
    saved = "was not saved (no --output)" if output is None else f"is saved in '{output}'"
    say(f"leafwise: interrupted: the network found so far {saved}.")


def _summary(values: dict[str, Any]) -> list[tuple[str, str]]:
    sizes = ("cases", "variables", "arcs", "tests", "leaves", "parameters")
    rows = [(name, f"{values[name]:,}") for name in sizes if name in values]
    if isinstance(values.get("networks"), int):  # a mixture
        unseen = values["mean_log_probability_unseen"]
        chosen = (("networks", f"{values['networks']:,}"), ("trees pay", values["structure_prior"]))
        rows = [*rows[:2], *chosen, ("leaves are", values["leaves_chosen"]), *rows[2:]]
        rows += [] if unseen is None else [("mean log probability of unseen cases", f"{unseen:,.4f}")]
    else:
        rows += [(name.replace("_", " "), f"{values[name]:,.4f}") for name in ("log_score", "log_marginal_likelihood")]
    counted = (
        "splits",
        "merges",
        "relabelled_merges",
        "ties",
        "additions",
        "deletions",
        "reversals",
        "rounds",
        "steps",
    )
    rows += [(name.replace("_", " "), f"{values[name]:,}") for name in counted if name in values]
    rows += _cluster_rows(values["cluster"]) if "cluster" in values else []
    rows += [("seconds", f"{values['seconds']:.2f}"), ("stopped", values["stopped"])]
    if values["output"] is not None:
        rows.append(("saved in", values["output"]))
    for network in values["networks"] if isinstance(values.get("networks"), list) else []:
        rows.append(
            (network["output"] or "", f"{network['log_score']:,.4f}  {100 * network['relative_posterior']:.1f} %")
        )
    return rows


def _cluster_rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    """The requests to a cluster, and how long each stage took."""
    counted = ("workers", "shards", "round_trips", "histograms", "bytes_sent", "bytes_received", "restored")
    rows = [(name.replace("_", " "), f"{report[name]:,}") for name in counted]
    return rows + [(f"seconds to {name.replace('_', ' ')}", f"{s:.2f}") for name, s in report["seconds"].items()]
