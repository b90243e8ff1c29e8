"""Coverage: how often intervals from samples contain the exact answer, and the errors of answers without a warning.

Published networks, and random ones with even, nearly certain, or zero probabilities. The evidence: none, some or many
states of a sampled case, states of variables without children, or states that are improbable together. Every state of
up to eight variables is a cell. The goals: in every row, 0.93 of the cells are within their intervals, and no answer
without a warning is off by more than five of its stated errors. For a version without intervals, they are taken as two
standard errors to either side. The typical deviation, the root mean square in stated errors, is 1 if these are right.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest

import numpy as np

from benchmarks import data
from benchmarks.report import Report
from leafwise.inference.exact import Exact, Limits
from leafwise.inference.query import Answer, query
from leafwise.inference.sampling import sample
from leafwise.network import Network, Node

PUBLISHED = (
    *("alarm", "andes", "asia", "barley", "cancer", "child", "earthquake", "hailfinder", "hepar2"),
    *("insurance", "pathfinder", "pigs", "sachs", "survey", "water", "win95pts"),
)
KINDS = ("nothing", "some", "many", "leaves", "odd")
MOST_TARGETS = 8
METHODS = {
    "weighting": partial(query, method="weighting"),
    "weighting, 1,000 samples": partial(query, method="weighting", n_samples=1000),
    "importance": partial(query, method="importance", n_samples=20_000),
    "gibbs": partial(query, method="gibbs"),
    "auto, not exact": partial(query, method="auto", limits=Limits(operations=1)),
}
GOAL, FAR = 0.93, 5.0
Given = dict[str, str]


@dataclass(frozen=True)
class Question:
    """A query with its evidence and the exact answer."""

    group: str
    network: Network
    kind: str
    given: Given
    targets: tuple[str, ...]
    exact: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Cell:
    """One state's probability: exact, and as estimated from samples."""

    group: str
    kind: str
    exact: float
    found: float
    error: float
    low: float
    high: float
    worth: float
    warned: bool

    @property
    def is_within(self) -> bool:
        return self.low - 1e-9 <= self.exact <= self.high + 1e-9

    @property
    def off(self) -> float:
        """The error, in stated errors."""
        return abs(self.found - self.exact) / max(self.error, 1e-9)


def random_network(n_variables: int, concentration: float, zeros: float, seed: int) -> Network:
    """The graphs of benchmarks.data with other parameters: nearly certain for a low concentration, some zero."""
    network = data.random_network(n_variables, seed)
    random = np.random.default_rng([seed, n_variables])
    nodes = []
    for node in network.nodes:
        assert node is not None
        rows = random.dirichlet([concentration] * node.n_states, node.graph.n_leaves) + 1e-6
        rows[random.random(rows.shape) < zeros] = 0
        rows[rows.sum(axis=1) == 0] = 1
        nodes.append(Node(node.parents, node.graph, rows / rows.sum(axis=1, keepdims=True)))
    return Network(network.variables, tuple(nodes))


def networks(seed: int, published: str, n_random: int) -> Iterator[tuple[str, str, Network]]:
    """The kind, name and network of each."""
    for name in published.split(","):
        yield "published", name, data.network(name)
    for k in range(n_random):
        size = (12, 25, 50)[k % 3]
        yield "random, even", f"even {k}", random_network(size, 1.0, 0.0, seed + k)
        yield "random, nearly certain", f"certain {k}", random_network(size, 0.1, 0.0, seed + k)
        yield "random, with zeros", f"zeros {k}", random_network(size, 0.5, 0.4, seed + k)


def questions(group: str, network: Network, n: int, random: np.random.Generator) -> Iterator[Question]:
    """`n` queries with possible answers, of all kinds in turn."""
    cases = sample(network, n, seed=int(random.integers(2**31))).codes
    for k in range(n):
        kind = KINDS[k % len(KINDS)]
        for _ in range(20):
            states = given_states(kind, network, cases[:, k], random)
            free = [v for v in range(len(network.variables)) if v not in states]
            chosen = sorted(random.permutation(free)[:MOST_TARGETS].tolist())
            weights = {v: np.eye(network.variables[v].n_states)[state] for v, state in states.items()}
            asked = Exact.of(network, weights, [(v,) for v in chosen], Limits(2**31, 3e9))
            if not asked.is_affordable or asked.log_evidence() == -np.inf:
                continue
            _, exact = asked.distributions()
            given = {network.names[v]: network.variables[v].labels[state] for v, state in states.items()}
            yield Question(group, network, kind, given, tuple(network.names[v] for v in chosen), tuple(exact))
            break


def given_states(kind: str, network: Network, case: np.ndarray, random: np.random.Generator) -> dict[int, int]:
    """The evidence: variables and their states."""
    n = len(network.variables)
    if kind == "leaves":
        tested = {v for node in network.nodes if node is not None for v in node.parents}
        shown = random.permutation([v for v in range(n) if v not in tested])[: max(1, n // 5)]
    else:
        most = {"nothing": 0, "some": 3, "many": max(1, n // 4), "odd": 3}[kind]
        shown = random.permutation(n)[:most]
    if kind == "odd":
        return {int(v): int(random.integers(network.variables[v].n_states)) for v in shown}
    return {int(v): int(case[v]) for v in shown}


def cells(question: Question, answer: Answer) -> Iterator[Cell]:
    """The cells that are neither impossible nor certain."""
    assert answer.standard_errors is not None
    intervals = getattr(answer, "intervals", None) or [
        (found - 2 * error, found + 2 * error)
        for found, error in zip(answer.distributions, answer.standard_errors, strict=True)
    ]
    warned = bool(getattr(answer, "warnings", ()))
    worth = float(answer.effective_sample_size or 0)
    parts = zip(question.exact, answer.distributions, answer.standard_errors, intervals, strict=True)
    for exact, found, error, (low, high) in parts:
        for k in np.flatnonzero((exact > 0) & (exact < 1 - 1e-12)):
            numbers = (float(values[k]) for values in (exact, found, error, low, high))
            yield Cell(question.group, question.kind, *numbers, worth, warned)


def asked(ask: Callable[..., Answer], question: Question, seed: int) -> list[Cell]:
    """The cells of an answer; none if the sampler finds no case and reports it."""
    try:
        answer = ask(question.network, list(question.targets), given=question.given, seed=seed)
    except ValueError as refusal:
        if "agrees with the evidence" not in str(refusal):
            raise
        return []
    return list(cells(question, answer))


def slices() -> Iterator[tuple[str, Callable[[Cell], bool]]]:
    """The rows: a title, and which cells belong to it."""
    yield "all", lambda _: True
    for group in ("published", "random, even", "random, nearly certain", "random, with zeros"):
        yield group, lambda cell, group=group: cell.group == group
    for kind in KINDS:
        yield f"given: {kind}", lambda cell, kind=kind: cell.kind == kind
    for text, low, high in (("below 0.0001", 0, 1e-4), ("0.0001 to 0.01", 1e-4, 0.01), ("0.01 and more", 0.01, 2)):
        yield f"probability {text}", lambda cell, low=low, high=high: low <= cell.exact < high
    for text, low, high in (("below 20", 0, 20), ("20 to 400", 20, 400), ("400 and more", 400, np.inf)):
        yield f"effective draws {text}", lambda cell, low=low, high=high: low <= cell.worth < high
    yield "unseen states", lambda cell: cell.found == 0


Row = dict[str, float]  # the results for some cells


def rows(found: list[list[Cell]]) -> Iterator[tuple[str, Row]]:
    """Coverage and deviations, slice by slice, of the cells of all queries."""
    for title, is_in in slices():
        by_question = [[cell for cell in cells if is_in(cell)] for cells in found]
        chosen = list(chain.from_iterable(by_question))
        silent = [cell for cell in chosen if not cell.warned]
        if chosen:
            within = float(np.mean([cell.is_within for cell in chosen]))
            yield (
                title,
                {
                    "cells": len(chosen),
                    "within": within,
                    "error": float(np.hypot.reduce([_more(cells, within) for cells in by_question])) / len(chosen),
                    "warned": 1 - len(silent) / len(chosen),
                    "far": sum(cell.off > FAR for cell in silent),
                    "furthest": max((cell.off for cell in silent), default=0.0),
                    "typical": float(np.sqrt(np.mean([cell.off**2 for cell in chosen]))),
                    "width": float(np.median([cell.high - cell.low for cell in chosen])),
                },
            )


def _more(cells: list[Cell], share: float) -> float:
    """The excess of a query's cells within intervals over this share; they share samples, so they err together."""
    return sum(cell.is_within - share for cell in cells)


def found_rows(given: argparse.Namespace) -> dict[str, dict[str, Row]]:
    """The rows of each method."""
    random = np.random.default_rng(given.seed)
    put: list[Question] = []
    for group, name, network in networks(given.seed, given.published, given.random):
        if given.networks in name:
            put += questions(group, network, given.questions, random)
    found: dict[str, dict[str, Row]] = {}
    for name in given.methods.split(";"):
        seeds = [(k, given.seed + k + again * len(put)) for again in range(given.again) for k in range(len(put))]
        cells = [asked(METHODS[name], put[k], seed) for k, seed in seeds if given.only in (None, k)]
        title = f"{name}: {len(cells):,} questions, {sum(not own for own in cells)} of them refused"
        found[title] = dict(rows(cells))
    return found


def reports(now: dict[str, dict[str, Row]], before: dict[str, dict[str, Row]]) -> Iterator[Report]:
    """A table for each method; those of another version beside it."""
    heads = [
        "cells",
        "number",
        "within",
        "±, by questions",
        "warned",
        "far, no warning",
        "furthest, no warning",
        "typically off",
        "median width",
    ]
    beside = ["within, before", "far, before"] if before else []
    for (title, own), other in zip_longest(now.items(), before.values(), fillvalue={}):
        lines = []
        for name, row in own.items():
            line = [name, f"{row['cells']:,}", f"{row['within']:.3f}", f"{row['error']:.3f}", f"{row['warned']:.2f}"]
            line += [f"{row['far']:,}", f"{row['furthest']:.1f}", f"{row['typical']:.2f}", f"{row['width']:.5f}"]
            past = other.get(name)
            line += [] if not before else ["", ""] if past is None else [f"{past['within']:.3f}", f"{past['far']:,}"]
            lines.append(line)
        yield Report(title, [*heads, *beside], lines)


def rows_of_version(source: str) -> dict[str, dict[str, Row]]:
    """The results of this benchmark with the same options for the leafwise sources in another folder."""
    own = [word for word in sys.argv[1:] if word not in ("--before", source)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.coverage", *own, "--json"],
        env={**os.environ, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        check=True,
    )
    before: dict[str, dict[str, Row]] = json.loads(done.stdout)
    return before


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", action="store_true", help="print tables as Markdown")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    parser.add_argument("--seed", type=int, default=2026, help="of the random networks, the questions and the samples")
    parser.add_argument("--questions", type=int, default=10, help="for each network")
    parser.add_argument("--published", default=",".join(PUBLISHED), help="published networks, with commas between")
    parser.add_argument("--random", type=int, default=12, help="random networks of each of three kinds")
    parser.add_argument("--methods", default=";".join(METHODS), help="some of them, with ; between")
    parser.add_argument("--networks", default="", help="those whose names contain this")
    parser.add_argument("--again", type=int, default=1, help="so many times, each with random numbers of its own")
    parser.add_argument("--only", type=int, help="the question with this number")
    parser.add_argument("--before", metavar="SRC", help="the sources of another version, to put beside this one")
    given = parser.parse_args()
    now = found_rows(given)
    if given.json:
        print(json.dumps(now))
        return
    before = rows_of_version(given.before) if given.before else {}
    for report in reports(now, before):
        print((report.markdown() if given.markdown else report.text()) + "\n", flush=True)
    missed = [f"{title}, {name}" for title, own in now.items() for name, row in own.items() if is_missed(row)]
    if missed:
        sys.exit(f"wrong answer: the goals are missed in {'; '.join(missed)}")


def is_missed(row: Row) -> bool:
    return row["within"] < GOAL or row["far"] > 0


if __name__ == "__main__":
    main()
