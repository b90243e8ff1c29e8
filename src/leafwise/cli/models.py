"""The commands that take a saved network: score, evaluate, sample, show."""

import math
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from leafwise.cli.data import data_argument, read_for_model, reading_options, titles
from leafwise.cli.options import (
    OUTPUT_FILE,
    STANDARD,
    check_output,
    do_option,
    exactness_options,
    given_option,
    intervened,
    json_option,
    limits_of,
    load_any,
    load_model,
    load_network_or_mixture,
    model_argument,
    parse_given,
    print_json,
    print_rows,
    say,
    standard_table,
    table_output_option,
    variable_names,
)
from leafwise.cli.progress import telling

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from leafwise.data.table import Table
    from leafwise.mixture import Mixture
    from leafwise.network import Network, Node
    from leafwise.report.shown_graph import ShownGraph

SCORE_PARTS = ("log_score", "log_marginal_likelihood", "log_prior")
MOST_CASES = 2**31 - 1


@click.command()
@model_argument
@data_argument
@reading_options("error", "state", "drop")
@click.option("--prior", help="Parameter prior, as in learn.  [default: that of learning]")
@click.option("--structure-prior", help="Structure prior, as in learn.  [default: that of learning]")
@json_option
def score(
    model: Path,
    data: Sequence[Path],
    reading: dict[str, Any],
    prior: str | None,
    structure_prior: str | None,
    as_json: bool,
) -> None:
    """Log p(DATA, structure) of the network MODEL, per node and in total."""
    from leafwise.data.new_data import without_sums
    from leafwise.learner import log_score

    with telling(quiet=as_json) as tell:
        tell(f"reading {model.name} and {titles(data)}")
        network = load_model(model)
        with without_sums():
            table = read_for_model(network, data, reading)
        tell(f"scoring {table.n_cases:,} cases")
        scores = log_score(network, table, prior=prior, structure_prior=structure_prior)
    nodes = {name: {part: getattr(node, part) for part in SCORE_PARTS} for name, node in scores.items()}
    total = {part: math.fsum(node[part] for node in nodes.values()) for part in SCORE_PARTS}
    if as_json:
        print_json({"cases": table.n_cases, "variables": table.n_variables, **total, "nodes": nodes})
        return
    rows = [("node", *(part.replace("_", " ") for part in SCORE_PARTS))]
    for name, node in (*nodes.items(), ("total", total)):
        rows.append((name, *(f"{node[part]:.4f}" for part in SCORE_PARTS)))
    print_rows(rows)


@click.command()
@model_argument
@data_argument
@reading_options("unknown", "error", "drop", unseen=True)
@exactness_options
@json_option
def evaluate(
    model: Path,
    data: Sequence[Path],
    reading: dict[str, Any],
    memory: float | None,
    operations: float | None,
    as_json: bool,
) -> None:
    """The log-likelihood of the cases of DATA under the network MODEL: mean per case, and its standard error."""
    from leafwise.inference.likelihood import log_probabilities

    with telling(quiet=as_json) as tell:
        tell(f"reading {model.name} and {titles(data)}")
        network = load_network_or_mixture(model)
        table = read_for_model(network, data, reading)
        tell(f"evaluating {table.n_cases:,} cases")
        values = _likelihood(log_probabilities(network, table, limits=limits_of(memory, operations)))
    if as_json:
        print_json(values)
        return
    rows = [("cases", f"{values['cases']:,}"), ("mean log-likelihood", f"{values['mean_log_likelihood']:.6f}")]
    if values["standard_error"] is not None:
        rows.append(("standard error", f"{values['standard_error']:.6f}"))
    rows.append(("log-likelihood", f"{values['log_likelihood']:,.4f}"))
    if values["impossible_cases"]:
        rows.append(("impossible cases", f"{values['impossible_cases']:,}"))
    print_rows(rows)


def _likelihood(log_probabilities: "NDArray[np.float64]") -> dict[str, Any]:
    """The mean and its standard error; that is None for a single case, or if the network makes a case impossible."""
    n_cases = len(log_probabilities)
    total = float(log_probabilities.sum())
    error = float(log_probabilities.std(ddof=1)) / math.sqrt(n_cases) if n_cases > 1 and math.isfinite(total) else None
    return {
        "cases": n_cases,
        "mean_log_likelihood": total / n_cases,
        "standard_error": error,
        "log_likelihood": total,
        "impossible_cases": int((log_probabilities == -math.inf).sum()),
    }


@click.command()
@model_argument
@click.option(
    "-n", "--cases", type=click.IntRange(1, MOST_CASES), default=1000, show_default=True, help="Number of cases."
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Random seed.")
@given_option
@do_option
@exactness_options
@table_output_option
@json_option
def sample(
    model: Path,
    cases: int,
    seed: int,
    given: Sequence[str],
    set_to: Sequence[str],
    memory: float | None,
    operations: float | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Draw cases from the network MODEL, with or without evidence on some variables."""
    if as_json and output in (None, STANDARD):
        raise click.UsageError("--json prints no cases: name a file for them with -o cases.csv.")
    from leafwise.data.columns import check_ending
    from leafwise.data.encoding import write
    from leafwise.inference.sampling import sample as draw
    from leafwise.replacing import replaced

    if output is not None:
        check_output(output, model, standard=True)
        is_device = output.exists() and not output.is_file()  # or a pipe: it is written to, not replaced
        if not is_device and output != STANDARD:
            check_ending(output)

    with telling(quiet=as_json) as tell:
        tell(f"reading {model.name}")
        network, notes = intervened(load_network_or_mixture(model), set_to)
        tell(f"drawing {cases:,} cases")
        limits = limits_of(memory, operations)
        table = draw(network, cases, seed, given=parse_given(given, network), limits=limits)
    for note in notes:
        say(f"leafwise: note: {note}")
    if output is None or output == STANDARD:
        with standard_table() as stream:
            _write_to(stream, table)
        return
    if is_device:
        with replaced(output) as stream:
            _write_to(stream, table)
    else:
        write(table, output)
    if as_json:
        print_json({"cases": cases, "variables": table.n_variables, "seed": seed, "output": str(output)})
    else:
        click.echo(f"{cases:,} cases of {table.n_variables:,} variables saved in {output}")


def _write_to(stream: IO[bytes], table: "Table") -> None:
    from leafwise.data.encoding import write

    with tempfile.TemporaryDirectory() as folder:
        cases = Path(folder) / "cases.csv"
        write(table, cases)
        with cases.open("rb") as file:
            shutil.copyfileobj(file, stream)
    stream.flush()


@click.command()
@model_argument
@click.option("--node", metavar="NAME", shell_complete=variable_names, help="Only this variable: its decision graph.")
@click.option("-o", "--output", type=OUTPUT_FILE, metavar="FILE", help="Save a picture: .svg, .png, or .dot text.")
@click.option("--whole", is_flag=True, help="With --node: show the whole decision graph, without folding.")
@click.option(
    "--cases",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="DATA",
    help="With --node: report how many of these cases reach each folded part.",
)
@click.option("--html", type=OUTPUT_FILE, metavar="FILE", help="Save a page to explore, which needs no network access.")
@json_option
def show(
    model: Path,
    node: str | None,
    output: Path | None,
    whole: bool,
    cases: Path | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """The network MODEL, or one of its decision graphs, as text, as a picture, or as a page to explore."""
    from leafwise.data.table import index_of
    from leafwise.dynamic_network import DynamicNetwork
    from leafwise.mixture import Mixture
    from leafwise.report.text import network_text, node_text

    if node is not None and html is not None:
        raise click.UsageError("--html is a page of the whole network, with every decision graph: leave --node out.")
    if node is None and (whole or cases is not None):
        raise click.UsageError(f"--{'whole' if whole else 'cases'} is about one decision graph: name it with --node.")
    if (whole or cases is not None) and (output.suffix.lower() == ".dot" if output is not None else as_json):
        raise click.UsageError(
            f"--{'whole' if whole else 'cases'} is about text and pictures, and --json and .dot have all: leave it out."
        )
    saved = {key: path for key, path in (("output", output), ("html", html)) if path is not None}
    for path in saved.values():
        check_output(path, model, *([cases] if cases else []))
    if output is not None and html is not None and output.absolute() == html.absolute():
        raise click.UsageError(f"the picture and the page would both be '{output}': give them different names.")
    with telling(quiet=as_json) as tell:
        tell(f"reading {model.name}")
        found = load_any(model)
        heading = f"{_slices(found.lags)}\n\n" if isinstance(found, DynamicNetwork) else ""
        network = found.window if isinstance(found, DynamicNetwork) else found
        if isinstance(network, Mixture):
            _show_mixture(network, node, output, html, as_json)
            return
        if output is not None:
            tell("drawing the picture")
            _save_picture(network, node, output, whole, cases)
        if html is not None:
            tell("preparing the page")
            save_page(network, model.name, html)
    if saved and as_json:
        print_json({key: str(path) for key, path in saved.items()})
    elif saved:
        click.echo(f"saved in {' and '.join(map(str, saved.values()))}")
    elif node is None and as_json:
        print_json(_network_summary(network))
    elif node is None:
        click.echo(heading + network_text(network).rstrip("\n"))
    elif as_json:
        print_json(_node_graph(network, index_of(node, network.names)))
    else:
        click.echo(node_text(network, index_of(node, network.names), whole=whole, cases=cases).rstrip("\n"))


def _slices(lags: int) -> str:
    """How to read the names in a window over time series."""
    before = f"the {lags} slices" if lags > 1 else "the slice"
    return (
        f"every slice given {before} before: x[t-1] is x a step before; the graphs of such variables are those of the "
        f"first {lags} slice{'s' * (lags > 1)}"
    )


def _show_mixture(mixture: "Mixture", node: str | None, output: Path | None, html: Path | None, as_json: bool) -> None:
    """Print the pairs of variables that at least half of a mixture's members connect, or save a picture."""
    if node is not None or html is not None:
        raise ValueError("a mixture of networks has no graphs or page of its own: leave out --node and --html.")
    if output is not None:
        mixture.plot().save(output)
        if as_json:
            print_json({"output": str(output)})
        else:
            click.echo(f"saved in {output}")
        return
    shares, names = mixture.arc_shares(), mixture.names
    pairs = [(shares[i, j] + shares[j, i], i, j) for i in range(len(names)) for j in range(i)]
    pairs = sorted((-both, i, j) for both, i, j in pairs if both >= 0.5)
    if as_json:
        found = [{"pair": [names[j], names[i]], "share": -both, "forward": shares[j, i]} for both, i, j in pairs]
        print_json({"networks": len(mixture), "weights": mixture.weights, "pairs": found, **mixture.learned})
        return
    click.echo(repr(mixture))
    rows: list[tuple[str, ...]] = [("pair", "connected", "this way", "the other")]
    for both, i, j in pairs:
        parent, child = (j, i) if shares[j, i] >= shares[i, j] else (i, j)
        both_ways = [f"{100 * share:.0f} %" for share in (-both, shares[parent, child], shares[child, parent])]
        rows.append((f"{names[parent]} → {names[child]}", *both_ways))
    print_rows(rows)


def _save_picture(network: "Network", node: str | None, output: Path, whole: bool, cases: Path | None) -> None:
    from leafwise.formats.whole_files import write_whole

    kind = output.suffix.lower()
    if kind not in (".svg", ".png", ".dot"):
        raise ValueError(f"the name {output.name!r} ends like no picture: use .svg, .png or .dot.")
    if kind == ".dot":
        write_whole(output, network.to_dot(node).encode())
    else:
        (network.plot() if node is None else network.plot_node(node, whole=whole, cases=cases)).save(output)


def save_page(network: "Network", name: str, html: Path) -> None:
    """Save the page for exploring a network."""
    from leafwise.explorer.page import page
    from leafwise.formats.whole_files import write_whole

    write_whole(html, page(network, name).encode())


def _network_summary(network: "Network") -> dict[str, Any]:
    names, parameters = network.names, network.parameters_by_node()
    return {
        "variables": len(names),
        "tests": network.n_tests,
        "leaves": network.n_leaves,
        "parameters": sum(parameters),
        "prior": network.prior,
        "structure_prior": network.structure_prior,
        "arcs": [[names[parent], names[child]] for parent, child in network.arcs],
        "nodes": {
            names[variable]: _node_summary(network, variable, node, parameters[variable])
            for variable, node in enumerate(network.nodes)
            if node is not None
        },
        "learned": dict(network.learned),
    }


def _node_summary(network: "Network", variable: int, node: "Node", n_parameters: int) -> dict[str, Any]:
    labels = network.variables[variable].labels
    return {
        "states": list(labels),
        "parents": [network.names[parent] for parent in node.parents],
        "tests": node.n_tests,
        "leaves": node.n_leaves,
        "parameters": n_parameters,
    }


def _node_graph(network: "Network", variable: int) -> dict[str, Any]:
    """One decision graph, node by node: the root first; arcs refer to later nodes by number."""
    node, name = network.nodes[variable], network.names[variable]
    if node is None:  # it has states, but no distribution of its own
        return {"name": name, "states": list(network.variables[variable].labels), "graph": None}
    from leafwise.report.shown_graph import ShownGraph

    shown = ShownGraph(network, variable, node)
    graph = [
        _leaf(shown, shown.leaf_numbers[place]) if place in shown.leaf_numbers else _test(shown, place)
        for place in range(len(shown.graph.tests))
    ]
    about = _node_summary(network, variable, node, network.parameters_by_node()[variable])
    return {"name": name, **about, "graph": graph}


def _test(shown: "ShownGraph", place: int) -> dict[str, Any]:
    """A test; a test of the variable itself has the probability of each arc, and only states that can occur there."""
    tested, node = shown.network.variables[shown.graph.tests[place]], shown.node
    if node.own is not None and shown.is_own(place):
        row = node.own.places.index(place)
        arcs = [
            {
                "states": [tested.labels[state] for state in part],
                "to": shown.graph.children[place][part[0]],
                "probability": float(node.own.probabilities[row, part[0]]),
            }
            for part in node.own.parts[row]
        ]
    else:
        arcs = [
            {"states": [tested.labels[state] for state in sorted(states)], "to": child}
            for states, child in shown.graph.arcs(place)
        ]
    return {"test": tested.name, "arcs": arcs}


def _leaf(shown: "ShownGraph", leaf: int) -> dict[str, Any]:
    states, row = list(shown.states(leaf)), shown.node.leaf_rows[leaf]
    labels = [shown.variable.labels[state] for state in states]
    holder = shown.node.own or shown.node
    counts = None if holder.counts is None else dict(zip(labels, holder.counts[row, states].tolist(), strict=True))
    tied = shown.tied(leaf)
    return {
        "leaf": leaf,
        "probabilities": dict(zip(labels, holder.probabilities[row, states].tolist(), strict=True)),
        "counts": counts,
        **({"tied": tied} if tied else {}),
    }
