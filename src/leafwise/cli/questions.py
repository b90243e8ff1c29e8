"""The commands that ask a network: query and mpe."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leafwise.cli.options import (
    exactness_options,
    given_option,
    json_option,
    model_argument,
    parse_given,
    print_json,
    print_rows,
    split_entries,
)
from leafwise.cli.progress import telling

if TYPE_CHECKING:
    from leafwise.inference.query import Answer

MOST_ROWS = 100  # of a joint distribution: the most probable ones are printed


@click.command()
@model_argument
@click.option(
    "--target", "targets", multiple=True, metavar="NAME,...", help="What to ask for.  [default: all not given]"
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
    from leafwise.formats.files import load
    from leafwise.inference.exact import Limits
    from leafwise.inference.query import query as ask

    with telling(quiet=as_json) as tell:
        tell(f"reading {model.name}")
        network = load(model)
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
    about = _about(answer)
    warnings = about.pop("warnings", [])
    click.echo("  ".join(f"{key.replace('_', ' ')}: {_short(value)}" for key, value in about.items()))
    for warning in warnings:
        click.echo(f"warning: {warning}")
    print_rows(_joint_rows(answer) if joint else _rows(answer), right=len(answer.variables) if joint else 2)


@click.command()
@model_argument
@given_option
@exactness_options
@json_option
def mpe(model: Path, given: Sequence[str], memory: float, operations: float, as_json: bool) -> None:
    """The most probable explanation: the states of all variables of MODEL, together, given what is known of some."""
    from leafwise.formats.files import load
    from leafwise.inference.exact import Limits
    from leafwise.inference.query import explain

    with telling(quiet=as_json) as tell:
        tell(f"reading {model.name}")
        network = load(model)
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
    if answer.log_evidence_error is not None:
        about["log_evidence_error"] = answer.log_evidence_error
    if answer.effective_sample_size is not None:
        about |= {"effective_sample_size": answer.effective_sample_size, "warnings": answer.warnings}
    if answer.mixing is not None:
        about |= asdict(answer.mixing)
    return about


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _json(answer: "Answer") -> dict[str, Any]:
    out: dict[str, Any] = {"probabilities": {}}
    errors, intervals = answer.standard_errors, answer.intervals
    for place, (variable, values) in enumerate(zip(answer.variables, answer.distributions, strict=True)):
        columns = {"probabilities": values}
        if errors is not None and intervals is not None:
            columns |= {"standard_errors": errors[place], "intervals": intervals[place].T}
        for key, column in columns.items():
            out.setdefault(key, {})[variable.name] = dict(zip(variable.labels, column.tolist(), strict=True))
    return out


def _rows(answer: "Answer") -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    errors, intervals = answer.standard_errors, answer.intervals
    for place, (variable, values) in enumerate(zip(answer.variables, answer.distributions, strict=True)):
        for state, label in enumerate(variable.labels):
            row = [variable.name if state == 0 else "", label, f"{values[state]:.6f}"]
            if errors is not None and intervals is not None:
                row += _certainty(errors[place][state], intervals[place][:, state].tolist())
            rows.append(tuple(row))
    return rows


def _certainty(error: float, interval: Sequence[float]) -> list[str]:
    """How certain a probability is, as text."""
    low, high = interval
    return [f"± {error:.6f}", f"{low:.6f} to {high:.6f}"]


_JointCell = tuple[tuple[str, ...], float, tuple[float, list[float]] | None]


def _joint_cells(answer: "Answer") -> list[_JointCell]:
    """Labels and probability of each cell, its error and interval; the most probable first."""
    values = answer.distributions[0].ravel().tolist()
    certainties: list[tuple[float, list[float]] | None] = [None] * len(values)
    if answer.standard_errors is not None and answer.intervals is not None:
        intervals = answer.intervals[0].reshape(2, -1).T.tolist()
        certainties = list(zip(answer.standard_errors[0].ravel().tolist(), intervals, strict=True))
    cells = zip(product(*(variable.labels for variable in answer.variables)), values, certainties, strict=True)
    return sorted(cells, key=lambda cell: -cell[1])


def _joint_json(answer: "Answer") -> dict[str, Any]:
    cells = []
    for labels, value, certainty in _joint_cells(answer):
        sure = {} if certainty is None else {"standard_error": certainty[0], "interval": certainty[1]}
        cells.append({"states": labels, "probability": value, **sure})
    return {"targets": [variable.name for variable in answer.variables], "joint": cells}


def _joint_rows(answer: "Answer") -> list[tuple[str, ...]]:
    beside = [] if answer.standard_errors is None else ["", ""]
    rows: list[tuple[str, ...]] = [(*(variable.name for variable in answer.variables), "probability", *beside)]
    cells = _joint_cells(answer)
    for labels, value, certainty in cells[:MOST_ROWS]:
        rows.append((*labels, f"{value:.6f}", *([] if certainty is None else _certainty(*certainty))))
    if len(cells) > MOST_ROWS:
        rows.append((f"and {len(cells) - MOST_ROWS:,} less probable", *[""] * (len(rows[0]) - 1)))
    return rows
