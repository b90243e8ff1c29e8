"""The structure prior `auto`, which needs no tuning, against the best kappa of a grid.

The same operators and schedule for both. Two ways to name the best kappa: as one would, by the log-likelihood of valid;
and in hindsight, by that of test itself. Kappa goes from strict to lenient until it overfits by more than 1 % on valid.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import data
from benchmarks.report import Report, check, main
from leafwise.experiments.density import HOPELESS, KAPPAS, SEARCHES, read_parts
from leafwise.experiments.published import DENSITY
from leafwise.inference.likelihood import log_probabilities
from leafwise.learner import learning
from leafwise.search.greedy import Greedy
from leafwise.table import Table

CLOSE = 0.005  # of the log-likelihood
ENOUGH = 12  # of fourteen sets
STRICTER = (0.0002, 0.0005)


@dataclass(frozen=True)
class Outcome:
    """One structure prior: its kappa, and the mean log-likelihoods of the network learned with it."""

    kappa: str
    valid: float
    test: float
    n_leaves: int


def outcome(parts: tuple[Table, Table, Table], search: Greedy, structure_prior: str) -> Outcome:
    """Learn once."""
    train, valid, test = parts
    under_way = learning(train, search=search, structure_prior=structure_prior)
    under_way.run()
    network = under_way.network
    kappa = (network.structure_prior or "").removeprefix("kappa:")
    likelihoods = [float(log_probabilities(network, cases).mean()) for cases in (valid, test)]
    return Outcome(kappa, *likelihoods, under_way.n_leaves)


def tuned(parts: tuple[Table, Table, Table], search: Greedy) -> Iterator[Outcome]:
    """From the strictest kappa to where more lenient ones only overfit."""
    best = -math.inf
    for kappa in (*STRICTER, *KAPPAS):
        found = outcome(parts, search, f"kappa:{kappa:g}")
        yield found
        if found.valid < HOPELESS * best:
            return
        best = max(best, found.valid)


def measure() -> Iterator[Report]:
    """A table for each search, a row for each data set."""
    for name in DENSITY:
        data.path(name)  # what is missing is said before anything is run
    too_few = []
    for operators, schedule in SEARCHES:
        search = Greedy(operators, schedule)
        rows, near, near_in_hindsight = [], 0, 0
        for name in DENSITY:
            parts = read_parts(data.folder(), name)
            auto, others = outcome(parts, search, "auto"), list(tuned(parts, search))
            by_valid, by_test = (max(others, key=key) for key in (lambda o: o.valid, lambda o: o.test))
            gaps = [auto.test / best.test - 1 for best in (by_valid, by_test)]
            near, near_in_hindsight = near + (gaps[0] <= CLOSE), near_in_hindsight + (gaps[1] <= CLOSE)
            row = [name, auto.kappa, f"{auto.n_leaves:,}", f"{auto.test:.4f}"]
            for best, gap in zip((by_valid, by_test), gaps, strict=True):
                row += [best.kappa, f"{best.test:.4f}", f"{100 * gap:+.2f} %"]
            rows.append(row)
        heads = ["data", "auto: κ", "leaves", "test", "best on valid: κ", "test", "auto is worse by"]
        heads += ["best on test: κ", "test", "auto is worse by"]
        remark = f"Within {CLOSE:.1%} of the κ that is best on valid: {near} of 14; on test: {near_in_hindsight} of 14."
        yield Report(f"Mean log-likelihood of test cases, {operators}, {schedule}", heads, rows, [remark])
        if near < ENOUGH:
            too_few.append(f"{operators}, {schedule}: {near}")
    check(not too_few, f"auto is close to the best kappa on fewer than {ENOUGH} sets: {'; '.join(too_few)}")


if __name__ == "__main__":
    main(measure, __doc__)
