"""Learning from holes, compared on several sets of rows and holes: means of what `leafwise reproduce missing` tells.

All ways get stacked leaves and are asked for held-back cases, as there; the first set is the one of that table. *Rows
of a pair*: complete data, with as large a share of the rows as show two variables at once, in the mean over all pairs.
That is what there is to see of an arc.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks import data
from benchmarks.report import Report, main
from leafwise.experiments.missing import (
    DEPENDS,
    SETS,
    SHARES,
    Cut,
    cases,
    iterative,
    learned_from,
    most_common,
    nearest,
    of_held_back,
    removed,
)
from leafwise.table import Table

CASES, TURNS, SEED = 2000, 5, 2024
NAMES = [name for name in SETS if name != "alarm-10000"]
WAYS = ("most common", "IterativeImputer", "KNNImputer", "infer", "complete", "rows of a pair")
Floats = NDArray[np.float64]


def of_ways(cut: Cut, seed: int) -> list[float]:
    """How probable held-back cases are by each way."""
    shown, n_cases = (~cut.holes).astype(float), cut.complete.n_cases
    share = float((shown @ shown.T / n_cases)[~np.eye(len(shown), dtype=bool)].mean())
    left = np.sort(np.random.default_rng(seed).permutation(n_cases)[: round(n_cases * share)])
    fewer = Table(cut.complete.variables, np.ascontiguousarray(cut.complete.codes[:, left]))
    found = (
        most_common(cut),
        iterative(cut),
        nearest(cut),
        learned_from(cut.shown(), infers=True),
        learned_from(cut.complete),
        learned_from(fewer),
    )
    return [of_held_back(stacked, cut) for _plain, stacked in found]


def covered(values: Floats, worst: Floats, best: Floats) -> str:
    """How much of the way between two others is covered, from the means of all sets, and its standard error."""
    share = (values - worst).mean() / (best - worst).mean()
    error = (values - worst - share * (best - worst)).std(ddof=1) / np.sqrt(len(values)) / (best - worst).mean()
    return f"{share:.0%} ± {error:.0%}"


def row(name: str, how: float | str) -> tuple[list[str], str]:
    """The cells of one line, and what is to be said where another way is ahead."""
    found = []
    for turn in range(TURNS):
        train, test = cases(name, CASES, data.folder(), turn)
        found.append(of_ways(Cut(train, removed(train, how, SEED + turn), test), turn))
    by_way = dict(zip(WAYS, np.array(found).T, strict=True))
    means = {way: float(values.mean()) for way, values in by_way.items()}
    best = max(WAYS[:4], key=lambda way: means[way])
    cells = [f"**{means[way]:.3f}**" if way == best else f"{means[way]:.3f}" for way in WAYS[:5]]
    ends = by_way["most common"], by_way["complete"]
    shares = [covered(by_way[way], *ends) for way in ("rows of a pair", "infer")]
    text = how if isinstance(how, str) else f"{how:.0%}"
    behind = by_way[best] - by_way["infer"]
    error = behind.std(ddof=1) / np.sqrt(TURNS)
    lost = f"{name} at {text} to `{best}` by {behind.mean():.3f} ± {error:.3f}" if best != "infer" else ""
    return [f"{name}, {train.n_cases:,} cases", text, *cells, *shares], lost


def measure() -> Iterator[Report]:
    rows = [row(name, how) for name in NAMES for how in (*SHARES, DEPENDS)]
    lost = [text for _, text in rows if text]
    remark = f"Of {len(rows)} rows `infer` loses {len(lost)}" + (f": {'; '.join(lost)}." if lost else ".")
    yield Report(
        f"Holes, and ways to learn from them: means of {TURNS} sets of rows and holes, and standard errors",
        ["set", "holes", *WAYS[:5], "covered by rows of a pair", "covered by infer"],
        [cells for cells, _ in rows],
        [remark],
    )


if __name__ == "__main__":
    main(measure, __doc__)
