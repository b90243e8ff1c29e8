"""The commands that analyse dependence: independence, information and importance."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from leafwise.cli.data import read_for_model, reading_options
from leafwise.cli.options import (
    OUTPUT_FILE,
    exactness_options,
    given_option,
    json_option,
    limits_of,
    load_model,
    model_argument,
    parse_given,
    print_json,
    print_rows,
    split_entries,
    variable_names,
)
from leafwise.cli.progress import telling


@click.command()
@model_argument
@click.argument("names", nargs=-1, required=True, metavar="NAME [OTHER]", shell_complete=variable_names)
@click.option(
    "--given",
    multiple=True,
    metavar="NAME[=STATE],...",
    shell_complete=variable_names,
    help="Evidence: names of variables, or their states, from which more may follow.",
)
@json_option
def independence(model: Path, names: Sequence[str], given: Sequence[str], as_json: bool) -> None:
    """Whether NAME is independent of OTHER, according to the arcs and decision graphs of the network MODEL.

    With NAME alone: its Markov blanket, and the contexts in which it does not depend on some of its parents.
    """

    if len(names) > 2:
        raise ValueError(f"independence got {len(names)} names: give one, or two.")
    with telling(quiet=as_json) as tell:
        tell(f"reading {model.name}")
        network = load_model(model)
        known = _parse_known(given, network)
        found = _of_one(network, names[0], known) if len(names) == 1 else _of_two(network, names[0], names[1], known)
    if as_json:
        print_json(found)
    elif len(names) == 1:
        click.echo(f"Markov blanket: {', '.join(found['markov_blanket']) or 'nothing'}")
        for context in found["contexts"]:
            states = ", ".join(f"{name} = {' or '.join(labels)}" for name, labels in context["given"].items())
            click.echo(f"given {states}: independent of {', '.join(context['irrelevant'])}")
    elif found["independent"]:
        click.echo("independent")
    else:
        click.echo(f"not independent by the graphs: {' - '.join(found['path'])}")


def _parse_known(texts: Sequence[str], network: Any) -> dict[str, Any]:
    """Parse evidence: names alone, or with states."""
    entries = [entry.strip() for entry in split_entries(texts, "--given")]
    alone = [entry for entry in entries if entry in network.names]
    with_states = [entry.replace('"', '""') for entry in entries if entry not in network.names]
    known = parse_given([f'"{entry}"' for entry in with_states], network)
    for name in alone:
        if name in known:
            raise ValueError(f"--given names {name!r} twice: name every variable once.")
        known[name] = None
    return known


def _of_one(network: Any, name: str, known: dict[str, Any]) -> dict[str, Any]:
    from leafwise.inference.independence import contexts, markov_blanket

    blanket = markov_blanket(network, name, given=known)
    found = [{"given": dict(one.given), "irrelevant": one.irrelevant} for one in contexts(network, name)]
    return {"markov_blanket": blanket, "contexts": found}


def _of_two(network: Any, one: str, other: str, known: dict[str, Any]) -> dict[str, Any]:
    from leafwise.inference.independence import dependence_path

    path = dependence_path(network, one, other, known)
    return {"independent": path is None, "path": path}


@click.command()
@model_argument
@click.option(
    "--target", required=True, metavar="NAME", shell_complete=variable_names, help="The variable to learn about."
)
@click.option(
    "--candidate",
    "candidates",
    multiple=True,
    metavar="NAME,...",
    shell_complete=variable_names,
    help="The variables that could be observed.  [default: all]",
)
@given_option
@exactness_options
@json_option
def information(
    model: Path,
    target: str,
    candidates: Sequence[str],
    given: Sequence[str],
    memory: float | None,
    operations: float | None,
    as_json: bool,
) -> None:
    """What to observe next, to learn about a variable of the network MODEL: the most informative variables first."""
    from leafwise.inference.information import entropy, value_of_information

    with telling(quiet=as_json) as tell:
        tell(f"reading {model.name}")
        network = load_model(model)
        known = parse_given(given, network)
        names = split_names(candidates, network.names, "--candidate")
        names = names or [name for name in network.names if name not in known and name != target]
        tell(f"asking what {len(names):,} variables tell of {target}")
        before = entropy(network, target, given=known)
        found = value_of_information(network, target, names, given=known, limits=limits_of(memory, operations))
    if as_json:
        values = {
            name: {
                "information": value.information,
                "entropy_after": value.entropy_after,
                "best_guess": value.best_guess,
            }
            for name, value in found.items()
        }
        print_json({"target": target, "entropy": before, "values": values})
        return
    click.echo(f"entropy of {target}: {before:.6f} nats")
    rows = [("", "information", "entropy after", "best guess")]
    for name, value in found.items():
        rows.append((name, f"{value.information:.6f}", f"{value.entropy_after:.6f}", f"{value.best_guess:.6f}"))
    print_rows(rows)


@click.command()
@model_argument
@click.argument("data", type=OUTPUT_FILE, nargs=-1)
@click.option("--target", required=True, metavar="NAME", shell_complete=variable_names, help="The variable to predict.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Random seed of the cases drawn without DATA.",
)
@reading_options("unknown", "error", "drop", unseen=True)
@json_option
def importance(
    model: Path, data: Sequence[Path], target: str, seed: int, reading: dict[str, Any], as_json: bool
) -> None:
    """How much each variable matters for a target, in nats per case: on DATA, or on cases drawn from MODEL."""
    from leafwise.inference.information import feature_importance

    with telling(quiet=as_json) as tell:
        tell(f"reading {model.name}")
        network = load_model(model)
        table = read_for_model(network, data, reading) if data else None
        tell(f"leaving out each of {len(network.names) - 1:,} variables")
        found = feature_importance(network, target, data=table, seed=seed)
    if as_json:
        values = {
            name: {"beyond": v.beyond, "standard_error": v.standard_error, "alone": v.alone}
            for name, v in found.items()
        }
        print_json({"target": target, "importance": values})
        return
    rows = [("", "beyond the others", "", "alone")]
    for name, v in found.items():
        rows.append((name, f"{v.beyond:.6f}", f"± {v.standard_error:.6f}", f"{v.alone:.6f}"))
    print_rows(rows)


def split_names(texts: Sequence[str], names: Sequence[str], option: str) -> list[str]:
    """The names in texts, each of which is one name, or several separated by commas."""
    return [name for text in texts for name in ([text] if text in names else split_entries([text], option))]
