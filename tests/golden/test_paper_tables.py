"""The paper's numbers on its two real data sets: Table 1 (promoters) and Table 2 (splice), relative to complete splits.

The files are looked for in the directory that LEAFWISE_DATA names, else in the data directory next to the project.
"""

import os
from functools import cache
from pathlib import Path

import pytest

from leafwise import LeafSearch, learn, read

HOME = Path(__file__).resolve().parents[3].joinpath("shared", "data")


@cache
def table(name):
    folder = Path(os.environ.get("LEAFWISE_DATA") or HOME)
    for path in (folder / name, folder / "tables" / name):
        if path.exists():
            return read(path)
    return None


def above_complete_splits(name, operators, prior="uniform", schedule="splits-first"):
    cases = table(name)
    if cases is None:
        pytest.skip(f"{name} is not here: name its directory in LEAFWISE_DATA")
    scores = [
        learn(
            cases, target="class", search=LeafSearch(letters, schedule), prior=prior, structure_prior="uniform"
        ).learned["log_score"]
        for letters in (operators, "C")
    ]
    return scores[0] - scores[1]


@pytest.mark.parametrize(
    ("operators", "expected"), [("B", 13.62), ("CB", 6.07), ("CM", 22.13), ("BM", 26.11), ("CBM", 26.11)]
)
def test_promoters_uniform(operators, expected):
    assert above_complete_splits("promoters.csv", operators) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(("operators", "expected"), [("CM", 22.13), ("BM", 26.11), ("CBM", 22.13)])
def test_promoters_best_first(operators, expected):
    found = above_complete_splits("promoters.csv", operators, schedule="best-first")
    assert found == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(
    ("operators", "size", "expected"),
    [
        ("B", 10, 6.12),
        ("B", 20, 5.09),
        ("B", 30, 4.62),
        ("B", 40, 3.14),
        ("B", 50, 2.99),
        ("CB", 10, 4.21),
        ("CB", 20, 3.34),
        ("CB", 30, 2.97),
        ("CB", 40, 1.27),
        ("CB", 50, 1.12),
    ],
)
def test_promoters_prior_network(operators, size, expected):
    assert above_complete_splits("promoters.csv", operators, f"bdeu:{size}") == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(
    ("operators", "schedule", "expected"),
    [
        ("B", "splits-first", 383),
        ("CB", "splits-first", 363),
        ("CM", "best-first", 435),
        ("BM", "best-first", 557),
        ("CBM", "best-first", 572),
        ("CM", "splits-first", 453),
        ("BM", "splits-first", 660),
        ("CBM", "splits-first", 711),
    ],
)
def test_splice(operators, schedule, expected):
    assert round(above_complete_splits("splice.csv", operators, schedule=schedule)) == expected
