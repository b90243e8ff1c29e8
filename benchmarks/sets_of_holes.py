"""Learning with missing cells, over several sets of rows and holes: means of `leafwise reproduce missing`.

All methods have stacked leaves and are tested on held-out cases, as there; the first set of holes in all rows is that
of its table. *Rows of a pair*: complete data, with a share of the rows equal to the mean share, over all pairs of
variables, of rows in which both are observed: the information that is available about an arc.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks import data
from benchmarks.report import Report, main
from leafwise.data.table import Table
from leafwise.experiments.missing import (
    DEPENDS,
    SETS,
    SHARES,
    Cut,
    Found,
    cases,
    iterative,
    learned_from,
    most_common,
    nearest,
    of_held_back,
    removed,
)

CASES, ALL, TURNS, SEED = 2000, 50_000, 5, 2024
NAMES = [name for name in SETS if name != "alarm-10000"]
LARGE = ("adult", "nltcs", "msnbc", "tretail")  # with many more rows than CASES; repeated with them
ENDS = ("most common", "infer", "complete")  # KNNImputer takes minutes there; see `leafwise reproduce missing`
WAYS = ("most common", "IterativeImputer", "KNNImputer", "infer", "complete")
PAIR = "rows of a pair"
Floats = NDArray[np.float64]


def of_ways(cut: Cut, seed: int, ways: Sequence[str]) -> list[float]:
    """The log probability of held-out cases with each method."""
    learned: dict[str, Callable[[], Found]] = {
        "most common": lambda: most_common(cut),
        "IterativeImputer": lambda: iterative(cut),
        "KNNImputer": lambda: nearest(cut),
        "infer": lambda: learned_from(cut.shown(), infers=True),
        "complete": lambda: learned_from(cut.complete),
        PAIR: lambda: learned_from(fewer(cut, seed)),
    }
    return [of_held_back(learned[way]()[1], cut) for way in ways]


def fewer(cut: Cut, seed: int) -> Table:
    """A share of the complete rows equal to the mean share in which two variables are both observed."""
    shown, n_cases = (~cut.holes).astype(float), cut.complete.n_cases
    share = float((shown @ shown.T / n_cases)[~np.eye(len(shown), dtype=bool)].mean())
    left = np.sort(np.random.default_rng(seed).permutation(n_cases)[: round(n_cases * share)])
    return Table(cut.complete.variables, np.ascontiguousarray(cut.complete.codes[:, left]))


def covered(values: Floats, worst: Floats, best: Floats) -> str:
    """The share of the gap between two others that is closed, from the means of all sets, and its standard error."""
    share = (values - worst).mean() / (best - worst).mean()
    error = (values - worst - share * (best - worst)).std(ddof=1) / np.sqrt(len(values)) / (best - worst).mean()
    return f"{share:.0%} ± {error:.0%}"


def values_of(name: str, how: float | str, most: int, turn: int, ways: Sequence[str]) -> list[float]:
    """The results for one set of rows and holes."""
    train, test = cases(name, most, data.folder(), turn)
    return of_ways(Cut(train, removed(train, how, SEED + turn), test), turn, ways)


def row(name: str, how: float | str, most: int, ways: Sequence[str]) -> tuple[list[str], str]:
    """The cells of one line, and a remark if another method is ahead."""
    found = [values_of(name, how, most, turn, ways) for turn in range(TURNS)]
    by_way = dict(zip(ways, np.array(found).T, strict=True))
    means = {way: float(values.mean()) for way, values in by_way.items()}
    best = max((way for way in ways if way not in ("complete", PAIR)), key=lambda way: means[way])
    cells = [f"**{means[way]:.3f}**" if way == best else f"{means[way]:.3f}" for way in ways if way != PAIR]
    ends = by_way["most common"], by_way["complete"]
    shares = [covered(by_way[way], *ends) for way in (PAIR, "infer") if way in ways]
    text = how if isinstance(how, str) else f"{how:.0%}"
    behind = by_way[best] - by_way["infer"]
    error = behind.std(ddof=1) / np.sqrt(TURNS)
    lost = f"{name} at {text} to `{best}` by {behind.mean():.3f} ± {error:.3f}" if best != "infer" else ""
    n_cases = cases(name, most, data.folder())[0].n_cases
    return [f"{name}, {n_cases:,} cases", text, *cells, *shares], lost


def measure() -> Iterator[Report]:
    rows = [row(name, how, ALL, ENDS) for name in LARGE for how in SHARES[:3]]
    yield Report(
        f"All rows: means of {TURNS} sets of holes, and standard errors",
        ["set", "holes", *ENDS, "covered by infer"],
        [cells for cells, _ in rows],
    )
    rows = [row(name, how, CASES, (*WAYS, PAIR)) for name in NAMES for how in (*SHARES, DEPENDS)]
    lost = [text for _, text in rows if text]
    remark = f"Of {len(rows)} rows `infer` loses {len(lost)}" + (f": {'; '.join(lost)}." if lost else ".")
    yield Report(
        f"2,000 rows: means of {TURNS} sets of rows and holes, and standard errors",
        ["set", "holes", *WAYS, "covered by rows of a pair", "covered by infer"],
        [cells for cells, _ in rows],
        [remark],
    )


if __name__ == "__main__":
    main(measure, __doc__)
