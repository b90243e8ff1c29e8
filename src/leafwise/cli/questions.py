"""The commands that ask a network: query and mpe."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leafwise.cli.options import (
    exactness_options,
    given_option,
    json_option,
    load_model,
    model_argument,
    parse_given,
    print_json,
    print_rows,
    split_entries,
    variable_names,
)
from leafwise.cli.progress import telling

if TYPE_CHECKING:
    from leafwise.inference.query import Answer

MOST_ROWS = 100  # of a joint distribution: the most probable ones are printed


@click.command()
@model_argument
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME,...",
    shell_complete=variable_names,
    help="What to ask for.  [default: all not given]",
)
@given_option
@click.option("--joint", is_flag=True, help="One distribution over all targets, not one for each.")
@click.option(
    "--method",
    type=click.Choice(["auto", "exact", "weighting", "gibbs"]),
    default="auto",
    show_default=True,
    help="Exact, or from samples: auto is exact where that is within the limits.",
)
@exactness_options
@click.option(
    "--samples", type=click.IntRange(100, 2**31 - 1), default=100_000, show_default=True, help="How many to draw."
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, help="The same seed, the same samples."
)
@json_option
def query(
    model: Path,
    targets: Sequence[str],
    given: Sequence[str],
    joint: bool,
    method: str,
    memory: float,
    operations: float,
    samples: int,
    seed: int,
    as_json: bool,
) -> None:
    """The distribution of variables of the network MODEL, given what is known of others."""
    from leafwise.inference.exact import Limits
    from leafwise.inference.query import query as ask

    with telling(quiet=as_json) as tell:
        tell(f"reading {model.name}")
        network = load_model(model)
        known = parse_given(given, network)
        names = split_names(targets, network.names) or [name for name in network.names if name not in known]
        tell(f"asking for {len(names):,} of {len(network.names):,} variables")
        limits = Limits(memory * 2**30, operations)
        answer = ask(
            network, names, given=known, joint=joint, method=method, limits=limits, n_samples=samples, seed=seed
        )
    if as_json:
        print_json({**_about(answer), **(_joint_json(answer) if joint else _json(answer))})
        return
    click.echo("  ".join(f"{key.replace('_', ' ')}: {_short(value)}" for key, value in _about(answer).items()))
    print_rows(_joint_rows(answer) if joint else _rows(answer), right=len(answer.variables) if joint else 2)


@click.command()
@model_argument
@given_option
@exactness_options
@json_option
def mpe(model: Path, given: Sequence[str], memory: float, operations: float, as_json: bool) -> None:
    """The most probable explanation: the states of all variables of MODEL, together, given what is known of some."""
    from leafwise.inference.exact import Limits
    from leafwise.inference.query import explain

    with telling(quiet=as_json) as tell:
        tell(f"reading {model.name}")
        network = load_model(model)
        tell(f"looking for the best states of {len(network.names):,} variables")
        best = explain(network, given=parse_given(given, network), limits=Limits(memory * 2**30, operations))
    if as_json:
        print_json(
            {
                "log_probability": best.log_probability,
                "log_posterior": best.log_posterior,
                "states": dict(best.states),
            }
        )
        return
    click.echo(f"log probability: {best.log_probability:.6f}  log posterior: {best.log_posterior:.6f}")
    print_rows(list(best.states.items()))


def split_names(texts: Sequence[str], names: Sequence[str]) -> list[str]:
    """The names in texts that are one name each, or several with commas between."""
    return [name for text in texts for name in ([text] if text in names else split_entries([text], "--target"))]


def _about(answer: "Answer") -> dict[str, Any]:
    about: dict[str, Any] = {"method": answer.method}
    if answer.log_evidence is not None:
        about["log_evidence"] = answer.log_evidence
    if answer.effective_sample_size is not None:
        about["effective_sample_size"] = answer.effective_sample_size
    return about


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _json(answer: "Answer") -> dict[str, Any]:
    errors = answer.standard_errors or [None] * len(answer.variables)
    out: dict[str, Any] = {"probabilities": {}}
    for variable, values, error in zip(answer.variables, answer.distributions, errors, strict=True):
        out["probabilities"][variable.name] = dict(zip(variable.labels, values.tolist(), strict=True))
        if error is not None:
            out.setdefault("standard_errors", {})[variable.name] = dict(
                zip(variable.labels, error.tolist(), strict=True)
            )
    return out


def _rows(answer: "Answer") -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    errors = answer.standard_errors or [None] * len(answer.variables)
    for variable, values, error in zip(answer.variables, answer.distributions, errors, strict=True):
        for state, label in enumerate(variable.labels):
            name = variable.name if state == 0 else ""
            rows.append((name, label, f"{values[state]:.6f}", *([] if error is None else [f"± {error[state]:.6f}"])))
    return rows


def _joint_cells(answer: "Answer") -> list[tuple[tuple[str, ...], float, float | None]]:
    """Labels, probability and error of each cell, the most probable first."""
    values = answer.distributions[0].ravel().tolist()
    errors = [None] * len(values) if answer.standard_errors is None else answer.standard_errors[0].ravel().tolist()
    cells = zip(product(*(variable.labels for variable in answer.variables)), values, errors, strict=True)
    return sorted(cells, key=lambda cell: -cell[1])


def _joint_json(answer: "Answer") -> dict[str, Any]:
    cells = [
        {"states": labels, "probability": value, **({} if error is None else {"standard_error": error})}
        for labels, value, error in _joint_cells(answer)
    ]
    return {"targets": [variable.name for variable in answer.variables], "joint": cells}


def _joint_rows(answer: "Answer") -> list[tuple[str, ...]]:
    with_errors = answer.standard_errors is not None
    rows = [(*(variable.name for variable in answer.variables), "probability", *([""] if with_errors else []))]
    cells = _joint_cells(answer)
    for labels, value, error in cells[:MOST_ROWS]:
        rows.append((*labels, f"{value:.6f}", *([] if error is None else [f"± {error:.6f}"])))
    if len(cells) > MOST_ROWS:
        rows.append((f"and {len(cells) - MOST_ROWS:,} less probable", *[""] * (len(rows[0]) - 1)))
    return rows
