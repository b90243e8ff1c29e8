"""The forest beside forests and boosting of scikit-learn, on the problems for which its rules were chosen.

Games and rules with all cases known (tic-tac-toe, the balance scale, the three monks' problems), functions made of
random tables in a hierarchy, variables of published networks, the most balanced variable of the binary data sets, and
three data sets of scikit-learn, with numbers cut into bins of equal size. A quarter of the cases is for testing, 40 %
for the monks, or the test cases that come with the binary data sets. One thread; seconds are processor time.
"""

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from benchmarks import data
from benchmarks.classifiers import Problem, boosting
from benchmarks.forests import forest, random_forest, results
from benchmarks.report import Report, main
from leafwise.data.table import Variable
from leafwise.inference.sampling import sample

LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
DRAWN = {
    **{"alarm": "BP", "hailfinder": "R5Fcst", "win95pts": "Problem1", "water": "CBODD_12_15", "hepar2": "Cirrhosis"},
    **{"sachs": "PKA", "barley": "protein"},
}
BINARY = {"nltcs": 16_000, "plants": 6_000, "msnbc": 20_000, "dna": 6_000, "msweb": 6_000}  # training cases, at most
BINS = {"digits": 4, "breast_cancer": 8, "wine": 8}


def made(
    name: str, X: np.ndarray, y: np.ndarray, share: float = 0.25, ordered: bool = False, n_train: int = 0
) -> Problem:
    """A problem from codes; the first `n_train` cases are for training if that is given, else random ones."""
    X = X[:, X.min(axis=0) < X.max(axis=0)].astype(np.int64)
    features = [
        Variable(
            f"x{place}",
            tuple(map(str, range(top + 1))),
            ordered=ordered,
            cuts=tuple(np.arange(top) + 0.5) if ordered else (),
        )
        for place, top in enumerate(X.max(axis=0).tolist())
    ]
    mixed = np.random.default_rng(7).permutation(len(y))
    n_test = int(len(y) * share)
    train, test = np.sort(mixed[n_test:]), np.sort(mixed[:n_test])
    if n_train:
        train, test = np.arange(n_train), np.arange(n_train, len(y))
    return Problem(name, tuple(features), X, np.unique(y, return_inverse=True)[1], [(train, test)])


def tic_tac_toe() -> Problem:
    """All boards at which a game can end: whether the first player has won."""

    def won(board: Sequence[int], player: int) -> bool:
        return any(all(board[place] == player for place in line) for line in LINES)

    def ends(board: tuple[int, ...], player: int) -> Iterator[tuple[int, ...]]:
        if won(board, 1) or won(board, 2) or 0 not in board:
            yield board
            return
        for place in range(9):
            if board[place] == 0:
                yield from ends((*board[:place], player, *board[place + 1 :]), 3 - player)

    boards = sorted(set(ends((0,) * 9, 1)))
    return made("tic-tac-toe", np.array(boards), np.array([won(board, 1) for board in boards]))


def balance() -> Problem:
    """The side to which a scale tips, with weights and distances from 1 to 5 on both."""
    X = np.array(list(itertools.product(range(5), repeat=4)))
    left, right = (X[:, 0] + 1) * (X[:, 1] + 1), (X[:, 2] + 1) * (X[:, 3] + 1)
    return made("balance", X, np.sign(left - right))


def monks(number: int) -> Problem:
    """The three problems; in the third, a twentieth of the labels are wrong."""
    X = np.array(list(itertools.product(*map(range, (3, 3, 2, 3, 4, 2)))))
    labels = (
        (X[:, 0] == X[:, 1]) | (X[:, 4] == 0),
        (X == 0).sum(axis=1) == 2,
        ((X[:, 4] == 2) & (X[:, 3] == 0)) | ((X[:, 4] != 3) & (X[:, 1] != 2)),
    )[number - 1]
    if number == 3:
        labels = labels ^ (np.random.default_rng(3).random(len(X)) < 0.05)
    return made(f"monks {number}", X, labels, 0.4)


def hierarchy(seed: int) -> Problem:
    """Eight features of two to four levels, combined two or three at a time by mean or minimum, and cut again."""
    random = np.random.default_rng(seed)
    levels = random.integers(2, 5, 8)
    X = np.stack([random.integers(0, n, 4_000) for n in levels])
    open_ones = list(X / (levels - 1)[:, None])
    while len(open_ones) > 1:
        n = min(len(open_ones), int(random.integers(2, 4)))
        taken = random.permutation(len(open_ones))[:n].tolist()
        weights = random.dirichlet(np.full(n, 2.0))
        rows = np.stack([open_ones[place] for place in taken])
        joined = weights @ rows if random.random() < 0.6 else rows.min(axis=0)
        n_levels = int(random.integers(3, 5))
        cuts = np.quantile(np.unique(joined), np.linspace(0, 1, n_levels + 1)[1:-1])
        rest = [own for place, own in enumerate(open_ones) if place not in taken]
        open_ones = [*rest, np.digitize(joined, cuts) / (n_levels - 1)]
    return made(f"hierarchy {seed}", X.T, open_ones[0])


def drawn(name: str) -> Problem:
    """A variable of a published network."""
    cases = sample(data.network(name), 4_000 if name == "hepar2" else 2_000, seed=5)
    at = cases.index(DRAWN[name])
    return made(name, np.delete(cases.codes, at, axis=0).T, cases.codes[at])


def binary(name: str) -> Problem:
    """The most balanced variable of a binary data set."""
    cases = data.table(name)
    tests = data.test_table(name, cases)
    assert tests is not None
    train, test = cases.codes[:, : BINARY[name]], tests.codes[:, :3_000]
    at = int(np.abs(train.mean(axis=1) - 0.5).argmin())
    codes = np.concatenate([train, test], axis=1)
    return made(name, np.delete(codes, at, axis=0).T, codes[at], n_train=train.shape[1])


def of_scikit_learn(name: str) -> Problem:
    """A data set that comes with scikit-learn."""
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    cuts = [np.unique(np.quantile(column, np.linspace(0, 1, BINS[name] + 1)[1:-1])) for column in X.T]
    codes = np.stack([np.digitize(column, own) for column, own in zip(X.T, cuts, strict=True)], axis=1)
    return made(name, codes, y, ordered=True)


PROBLEMS: tuple[Callable[[], Problem], ...] = (
    *(tic_tac_toe, balance),
    *(partial(monks, number) for number in (1, 2, 3)),
    *(partial(hierarchy, seed) for seed in (1, 2, 3)),
    *(partial(drawn, name) for name in DRAWN),
    *(partial(binary, name) for name in BINARY),
    *(partial(of_scikit_learn, name) for name in BINS),
)


def measure() -> Iterator[Report]:
    """A row for each problem."""
    ways = {"forest": forest, "RandomForest": random_forest, "boosting": boosting}
    heads = ["problem", *(f"{what}: {name}" for what in ("log loss", "accuracy") for name in ways)]
    rows, won = [], np.zeros(5, int)
    for make in PROBLEMS:
        where = make()
        cells = np.array([own.cells() for own in results(where, ways, fits=1).values()])
        numbers = cells.astype(float)
        own, others = numbers[0], numbers[1:]
        least = [own[0] <= others[:, 0].min(), own[1] >= others[:, 1].max(), own[2] <= others[:, 2].min()]
        won += [least[0] and least[1], *least, own[3] <= others[:, 3].min()]
        rows.append([where.name, *cells.T[:2].ravel()])
        print(*rows[-1], file=sys.stderr, flush=True)
    told = (
        f"Log loss and accuracy at least those of both on {won[0]} of {len(rows)}, log loss on {won[1]}, accuracy on "
        f"{won[2]}; better calibrated on {won[3]}, as fast to fit on {won[4]}."
    )
    yield Report("The forest elsewhere", heads, rows, [told])


if __name__ == "__main__":
    main(measure, __doc__)
