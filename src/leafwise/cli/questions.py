"""The commands that query a network: query and mpe."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leafwise.cli.options import (
    do_option,
    exactness_options,
    given_option,
    intervened,
    json_option,
    limits_of,
    load_network_or_mixture,
    model_argument,
    parse_given,
    print_json,
    print_rows,
    variable_names,
)
from leafwise.cli.progress import telling
from leafwise.cli.structure import split_names
from leafwise.errors import in_options

if TYPE_CHECKING:
    from leafwise.inference.query import Answer

MOST_ROWS = 100  # of a joint distribution that are printed, the most probable ones


@click.command()
@model_argument
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME,...",
    shell_complete=variable_names,
    help="The variables to query.  [default: all that are not given]",
)
@given_option
@do_option
@click.option("--joint", is_flag=True, help="The joint distribution of the targets instead of one for each.")
@click.option(
    "--method",
    type=click.Choice(["auto", "exact", "weighting", "importance", "gibbs", "loopy"]),
    default="auto",
    show_default=True,
    help="auto is exact within the limits, otherwise from samples; loopy is belief propagation, of unknown error.",
)
@click.option(
    "--seconds", type=click.FloatRange(min=0, min_open=True), help="Answer within this time, exactly or from samples."
)
@click.option(
    "--error",
    type=click.FloatRange(min=0, min_open=True),
    help="If not exact, sample until no standard error is larger.",
)
@exactness_options
@click.option(
    "--samples", type=click.IntRange(100, 2**31 - 1), default=100_000, show_default=True, help="Number of samples."
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Random seed of samples.")
@json_option
def query(
    model: Path,
    targets: Sequence[str],
    given: Sequence[str],
    set_to: Sequence[str],
    joint: bool,
    method: str,
    seconds: float | None,
    error: float | None,
    memory: float | None,
    operations: float | None,
    samples: int,
    seed: int,
    as_json: bool,
) -> None:
    """The distribution of variables of the network MODEL, given evidence on others."""
    from leafwise.inference.query import query as ask

    with telling(quiet=as_json) as tell:
        tell(f"reading {model.name}")
        network, notes = intervened(load_network_or_mixture(model), set_to)
        known = parse_given(given, network)
        names = split_names(targets, network.names, "--target") or [name for name in network.names if name not in known]
        tell(f"asking for {len(names):,} of {len(network.names):,} variables")
        answer = ask(
            network,
            names,
            given=known,
            joint=joint,
            method=method,
            limits=limits_of(memory, operations),
            n_samples=samples,
            seed=seed,
            seconds=seconds,
            error=error,
        )
    notes += [] if answer.note is None else [answer.note]
    if as_json:
        print_json({**_about(answer), **(_joint_json(answer) if joint else _json(answer)), **_notes(notes)})
        return
    about = _about(answer)
    warnings = about.pop("warnings", [])
    click.echo("  ".join(f"{key.replace('_', ' ')}: {_short(value)}" for key, value in about.items()))
    for warning in warnings:
        click.echo(f"warning: {warning}")
    _say(notes)
    print_rows(_joint_rows(answer) if joint else _rows(answer), right=len(answer.variables) if joint else 2)


@click.command()
@model_argument
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME,...",
    shell_complete=variable_names,
    help="Only these variables; all others are summed out.",
)
@given_option
@do_option
@click.option(
    "--method",
    type=click.Choice(["auto", "exact", "search"]),
    default="auto",
    show_default=True,
    help="auto is exact within the limits, otherwise a search among samples.",
)
@exactness_options
@json_option
def mpe(
    model: Path,
    targets: Sequence[str],
    given: Sequence[str],
    set_to: Sequence[str],
    method: str,
    memory: float | None,
    operations: float | None,
    as_json: bool,
) -> None:
    """The most probable explanation: the most probable joint state of all variables of MODEL, given evidence on some.

    With --target, the most probable joint state of these variables, with all others summed over (MAP).
    """
    from leafwise.inference.explanation import explain

    with telling(quiet=as_json) as tell:
        tell(f"reading {model.name}")
        network, notes = intervened(load_network_or_mixture(model), set_to)
        names = split_names(targets, network.names, "--target")
        tell(f"looking for the best states of {len(names or network.names):,} variables")
        known, limits = parse_given(given, network), limits_of(memory, operations)
        best = explain(network, names or None, given=known, method=method, limits=limits)
    notes += [] if best.note is None else [best.note]
    if as_json:
        print_json(
            {
                "log_probability": best.log_probability,
                "log_posterior": best.log_posterior,
                "states": dict(best.states),
                "method": best.method,
                **_notes(notes),
            }
        )
        return
    click.echo(f"log probability: {best.log_probability:.6f}  log posterior: {best.log_posterior:.6f}")
    _say(notes)
    print_rows(list(best.states.items()))


def _notes(notes: Sequence[str]) -> dict[str, Any]:
    return {"notes": list(notes)} if notes else {}


def _say(notes: Sequence[str]) -> None:
    for note in notes:
        click.echo(f"note: {in_options(note)}")


def _about(answer: "Answer") -> dict[str, Any]:
    about: dict[str, Any] = {"method": answer.method}
    if answer.log_evidence is not None:
        about["log_evidence"] = answer.log_evidence
    if answer.log_evidence_error is not None:
        about["log_evidence_error"] = answer.log_evidence_error
    if answer.effective_sample_size is not None:
        about["effective_sample_size"] = answer.effective_sample_size
    if answer.standard_errors is not None:
        about["warnings"] = answer.warnings
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
        columns |= {} if errors is None else {"standard_errors": errors[place]}
        columns |= {} if intervals is None else {"intervals": intervals[place].T}
        for key, column in columns.items():
            out.setdefault(key, {})[variable.name] = dict(zip(variable.labels, column.tolist(), strict=True))
    return out


def _rows(answer: "Answer") -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    errors, intervals = answer.standard_errors, answer.intervals
    for place, (variable, values) in enumerate(zip(answer.variables, answer.distributions, strict=True)):
        for state, label in enumerate(variable.labels):
            row = [variable.name if state == 0 else "", label, f"{values[state]:.6f}"]
            if errors is not None:
                interval = None if intervals is None else intervals[place][:, state].tolist()
                row += _certainty(errors[place][state], interval)
            rows.append(tuple(row))
    return rows


def _certainty(error: float, interval: Sequence[float] | None) -> list[str]:
    """The standard error and, unless it is from a mixture, the interval of a probability, as text."""
    return [f"± {error:.6f}", *([] if interval is None else ["{:.6f} to {:.6f}".format(*interval)])]


_JointCell = tuple[tuple[str, ...], float, tuple[float, list[float] | None] | None]


def _joint_cells(answer: "Answer") -> list[_JointCell]:
    """Labels, probability, error and interval of each cell, the most probable first."""
    values = answer.distributions[0].ravel().tolist()
    certainties: list[tuple[float, list[float] | None] | None] = [None] * len(values)
    if answer.standard_errors is not None:
        none = [None] * len(values)
        intervals = none if answer.intervals is None else answer.intervals[0].reshape(2, -1).T.tolist()
        certainties = list(zip(answer.standard_errors[0].ravel().tolist(), intervals, strict=True))
    cells = zip(product(*(variable.labels for variable in answer.variables)), values, certainties, strict=True)
    return sorted(cells, key=lambda cell: -cell[1])


def _joint_json(answer: "Answer") -> dict[str, Any]:
    cells = []
    for labels, value, certainty in _joint_cells(answer):
        sure = {} if certainty is None else dict(zip(("standard_error", "interval"), certainty, strict=True))
        known = {key: number for key, number in sure.items() if number is not None}
        cells.append({"states": labels, "probability": value, **known})
    return {"targets": [variable.name for variable in answer.variables], "joint": cells}


def _joint_rows(answer: "Answer") -> list[tuple[str, ...]]:
    beside = [""] * ((answer.standard_errors is not None) + (answer.intervals is not None))
    rows: list[tuple[str, ...]] = [(*(variable.name for variable in answer.variables), "probability", *beside)]
    cells = _joint_cells(answer)
    for labels, value, certainty in cells[:MOST_ROWS]:
        rows.append((*labels, f"{value:.6f}", *([] if certainty is None else _certainty(*certainty))))
    if len(cells) > MOST_ROWS:
        rows.append((f"and {len(cells) - MOST_ROWS:,} less probable", *[""] * (len(rows[0]) - 1)))
    return rows
