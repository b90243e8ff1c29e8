"""Kinds of columns (states, bins, constants, dates, identifiers, free text), and the variables made of them.

Identifiers, free text and dates are never states unless the user says so. Knows columns, `binning`, `discretization`
and dates.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from leafwise.data.binning import BINNINGS, cut_points, interval_labels, number, plain_label
from leafwise.data.columns import Column
from leafwise.data.dates import are_dates, date_labels, days
from leafwise.data.discretization import Numbers, States, cuts_towards, default_bins, few_states, related
from leafwise.data.table import MISSING, MOST_STATES, Variable, index_of
from leafwise.data.text_files import UNNAMED
from leafwise.errors import Advice, AdvisedError

STATES, BINS, CONSTANT, DATES, IDENTIFIER, FREE_TEXT = (
    "states", "bins", "constant", "dates", "identifier", "free text",
)  # fmt: skip
Integers = NDArray[np.int64]
Bins = str | int | Mapping[str, str | int | None] | None
_FEW = 20  # most distinct numbers that are states; beyond this, texts must be frequent
_CASES_A_VALUE = 4  # least mean number of cases per value to be frequent
_FEW_WHOLE = 5  # most distinct whole numbers that are states even if rare
_LEAST_ROWS = 10  # to conclude that values identify rows
_WORDS, _SIGNS = 4, 40  # free text has on average at least so many words, or more characters than this
_LOOKED_AT = 1000  # labels examined
_MOST_WORDS = 3  # labels that are not numbers, in a column of numbers
_FIRST_CASES = 1000  # compared first when looking for copies
_NAME_OF_KEY = re.compile(r"(?i:(?:^|[^a-z])(?:id|index|key|uuid|guid)(?:[^a-z]|$))|[a-z](?:Id|ID)$")


@dataclass(frozen=True)
class Choices:
    """What the user specifies about how columns become variables."""

    bins: Bins = "auto"
    binning: str | None = None
    states: frozenset[str] = frozenset()  # columns whose values are states, whatever they look like
    dates: str = "error"
    target: str | None = None
    towards: States | None = None  # the target's states, if it is none of the columns
    keys: bool = True  # whether distinct whole numbers may identify rows

    def __post_init__(self) -> None:
        if self.binning not in (None, *BINNINGS):
            raise ValueError(f"binning={self.binning!r} is not known: use 'bayes', 'quantile' or 'uniform'")
        if self.dates not in ("error", "bins"):
            raise ValueError(f"dates={self.dates!r} is not known: use 'error' or 'bins'")
        for n_bins in self.bins.values() if isinstance(self.bins, Mapping) else (self.bins,):
            _check_bins(self.bins, n_bins)

    def check_names(self, names: Sequence[str]) -> None:
        """Raise a ValueError unless all named columns exist."""
        unknown = [name for name in self.bins if name not in names] if isinstance(self.bins, Mapping) else []
        if unknown:
            raise ValueError(f"bins name {some(unknown, 3)}, but the columns are {some(names, 5)}: correct the names")
        if self.target is not None:
            index_of(self.target, names)  # its error suggests similar names

    def bins_of(self, name: str) -> str | int | None:
        """The requested number of bins of a column: a number, "auto", or None for states."""
        return self.bins.get(name, "auto") if isinstance(self.bins, Mapping) else self.bins

    def names(self, name: str) -> bool:
        """Whether bins were requested for this column by name."""
        return isinstance(self.bins, Mapping) and self.bins.get(name) is not None


def _check_bins(bins: Bins, n_bins: object) -> None:
    if n_bins is None or (isinstance(n_bins, str) and n_bins == "auto"):
        return
    if isinstance(n_bins, str):
        raise ValueError(f"bins={bins!r} is not known: use 'auto', a whole number, a mapping {{'name': 8}}, or None")
    if isinstance(n_bins, bool) or not isinstance(n_bins, int | np.integer):
        raise TypeError(f"bins={bins!r} is not a count of bins: use a whole number, or a mapping {{'name': 8}}")
    if n_bins < 2:
        raise ValueError(f"bins={bins!r} asks for fewer than 2 bins: use at least 2")


@dataclass(frozen=True, eq=False)
class Understood:
    """How a column was interpreted, and the variable made of it, if any."""

    column: Column
    counts: Integers  # of each label, and last of missing cells
    kind: str
    variable: Variable | None = None
    states: Integers | None = None  # of each label, and last of a missing cell
    copy_of: str | None = None
    words: tuple[str, ...] = ()  # the few labels because of which it is not numeric

    @property
    def n_values(self) -> int:
        """The number of distinct values."""
        return int(np.count_nonzero(self.counts[:-1]))

    @property
    def n_missing(self) -> int:
        """The number of missing cells."""
        return int(self.counts[-1])


def understand(columns: Sequence[Column], choices: Choices) -> list[Understood]:
    """Determine the kind of each column, and make the variables."""
    choices.check_names([column.name for column in columns])
    kinds = [_kind(column, count_labels(column), choices) for column in columns]
    cuts = _all_cuts(kinds, choices)
    copies = _copies(kinds)
    found = []
    for kind in kinds:
        name = kind.column.name
        variable, states = _variable(kind, cuts.get(name, ()))
        words = () if name in choices.states else words_among_numbers(kind.column, kind.counts)
        found.append(Understood(kind.column, kind.counts, kind.kind, variable, states, copies.get(name), words))
    return found


def to_be_cut(columns: Sequence[Column], choices: Choices) -> list[str]:
    """The names of the columns that would be binned, for which all of their cells are needed."""
    kinds = [_kind(column, count_labels(column), choices) for column in columns]
    return [kind.column.name for kind in kinds if kind.numbers is not None]


def count_labels(column: Column) -> Integers:
    """The counts of each label, and last of missing cells."""
    if column.counts is not None:
        return column.counts
    return np.roll(np.bincount(column.codes.astype(np.int64) + 1, minlength=len(column.labels) + 1), -1)


def words_among_numbers(column: Column, counts: Integers) -> tuple[str, ...]:
    """The few labels that are not numbers, such as unknown or inf, in a column of many numbers; else none."""
    if column.numbers is not None or column.declared:
        return ()
    words: list[str] = []
    seen = np.flatnonzero(counts[:-1]).tolist()
    for place in seen:
        if number(column.labels[place]) is None:
            words.append(column.labels[place])
        if len(words) > _MOST_WORDS:
            return ()
    return tuple(words) if len(seen) - len(words) > _FEW_WHOLE else ()


# Kinds


@dataclass(frozen=True, eq=False)
class _Kind:
    column: Column
    counts: Integers
    kind: str
    numbers: Numbers | None = None  # to be binned
    n_bins: str | int | None = None
    is_date: bool = False

    @property
    def is_refused(self) -> bool:
        return self.kind in (DATES, IDENTIFIER, FREE_TEXT) and self.numbers is None


def _kind(column: Column, counts: Integers, choices: Choices) -> _Kind:
    seen = np.flatnonzero(counts[:-1])
    if len(seen) <= 1:
        return _Kind(column, counts, CONSTANT)
    if column.name in choices.states or (column.declared and not choices.names(column.name)):
        return _Kind(column, counts, STATES)
    if column.numbers is not None and (choices.names(column.name) or not column.coded):
        return _kind_of_numbers(column, counts, choices, column.numbers)
    looked_at = [column.labels[i] for i in seen[:_LOOKED_AT].tolist()]
    if are_dates(looked_at):
        return _kind_of_dates(column, counts, choices)
    if choices.names(column.name):
        words = [text for text in column.labels if number(text) is None] or list(column.labels)
        found = some(sorted(words), 3)
        raise ValueError(f"column {column.name!r} is not numeric (it has {found}): take it out of bins")
    return _Kind(column, counts, _kind_of_texts(int(counts[:-1].sum()), len(seen), looked_at))


def _kind_of_texts(n: int, n_values: int, texts: list[str]) -> str:
    """States, unless all values are distinct or many are rare: then identifiers or free text."""
    words = sum(len(text.split()) for text in texts) / len(texts)
    is_long = words >= _WORDS or sum(map(len, texts)) / len(texts) > _SIGNS
    if n_values == n and n >= (3 if is_long else _LEAST_ROWS):
        return FREE_TEXT if is_long else IDENTIFIER
    if n_values > _FEW and n < _CASES_A_VALUE * n_values:
        return FREE_TEXT if is_long else IDENTIFIER
    return STATES


def _kind_of_numbers(column: Column, counts: Integers, choices: Choices, spelled: NDArray[np.float64]) -> _Kind:
    seen, bins = np.flatnonzero(counts[:-1]), choices.bins_of(column.name)
    values = np.unique(spelled[seen])
    n_values, n = len(values), int(counts[:-1].sum())
    if n_values < len(seen) and n_values <= (bins if isinstance(bins, int | np.integer) else _FEW):
        # Numbers written in several ways, or too large for doubles, are states of their own.
        n_values = len({plain_label(column.labels[place]) for place in seen.tolist()})
    if n_values == 1:
        return _Kind(column, counts, CONSTANT)
    named = choices.names(column.name)
    if bins is None or (isinstance(bins, int | np.integer) and n_values <= bins and not named):
        return _Kind(column, counts, STATES)
    is_whole = bool((values == np.floor(values)).all())
    may_be_key = choices.keys and bins == "auto" and not named and is_whole and n_values == n
    if may_be_key and _tells_rows_apart(column.name, _numbers(column, counts, spelled)):
        return _Kind(column, counts, IDENTIFIER)
    few = n_values <= _FEW and (n >= _CASES_A_VALUE * n_values or (is_whole and n_values <= _FEW_WHOLE))
    if bins == "auto" and few and not named:
        return _Kind(column, counts, STATES)
    if len(values) == 1:  # nothing to cut
        return _Kind(column, counts, _kind_of_texts(n, n_values, [column.labels[place] for place in seen.tolist()]))
    return _Kind(column, counts, BINS, _numbers(column, counts, spelled), bins)


def _numbers(column: Column, counts: Integers, spelled: NDArray[np.float64]) -> Numbers:
    """The distinct numbers that occur, and the index of each case's number among them."""
    seen = np.flatnonzero(counts[:-1])
    values, inverse = np.unique(spelled[seen], return_inverse=True)
    place = np.full(len(counts), -1, np.int64)
    place[seen] = inverse
    return Numbers(values, place[column.codes])


def _tells_rows_apart(name: str, numbers: Numbers) -> bool:
    """Whether distinct whole numbers identify rows: consecutive, monotonic, or in a column named like a key."""
    values, places = numbers.values, numbers.places[numbers.places >= 0]
    if name == UNNAMED:
        return True
    if len(values) < _LEAST_ROWS:
        return False
    steps = np.diff(places)
    counts_rows = values[-1] - values[0] == len(values) - 1
    return bool(counts_rows or (steps > 0).all() or (steps < 0).all() or _NAME_OF_KEY.search(name))


def _kind_of_dates(column: Column, counts: Integers, choices: Choices) -> _Kind:
    seen = np.flatnonzero(counts[:-1])
    if choices.dates == "error":
        whole = are_dates(column.labels[i] for i in seen[_LOOKED_AT:].tolist())
        return _Kind(column, counts, DATES if whole else IDENTIFIER)
    found = days(column.labels[i] for i in seen.tolist())
    if found is None or (found == found[0]).all():  # nothing to cut
        return _Kind(column, counts, DATES)
    spelled = np.zeros(len(column.labels))
    spelled[seen] = found
    bins = choices.bins_of(column.name)
    return _Kind(column, counts, DATES, _numbers(column, counts, spelled), "auto" if bins is None else bins, True)


# Cut points


def _all_cuts(kinds: Sequence[_Kind], choices: Choices) -> dict[str, tuple[float, ...]]:
    """The cut points of every binned column, by name."""
    cut = {kind.column.name: kind for kind in kinds if kind.numbers is not None}
    cuts = {name: _equal_parts(kind, choices.binning) for name, kind in cut.items()}
    towards = {
        name: kind
        for name, kind in cut.items()
        if name != choices.target and (choices.binning or ("bayes" if kind.n_bins == "auto" else "quantile")) == "bayes"
    }
    if not towards:
        return cuts
    used = [kind for kind in kinds if not kind.is_refused]
    places = {kind.column.name: place for place, kind in enumerate(used)}
    views = [_view(kind, cuts.get(kind.column.name)) for kind in used]
    if choices.towards is not None:
        others = {name: [choices.towards] for name in towards}
    elif choices.target in places:
        others = {name: [views[places[choices.target]]] for name in towards}
    else:
        found = related(views, [places[name] for name in towards])
        others = {name: [views[other] for other in rows] for name, rows in zip(towards, found, strict=True)}
    for name, kind in towards.items():
        assert kind.numbers is not None
        most = None if kind.n_bins is None or kind.n_bins == "auto" else int(kind.n_bins)
        cuts[name] = cuts_towards(kind.numbers, others[name], most)
    return cuts


def _equal_parts(kind: _Kind, binning: str | None) -> tuple[float, ...]:
    assert kind.numbers is not None
    counts = kind.numbers.counts()
    n_bins = default_bins(int(counts.sum())) if kind.n_bins == "auto" else int(kind.n_bins or 0)
    return cut_points(kind.numbers.values, counts, n_bins, "uniform" if binning == "uniform" else "quantile")


def _view(kind: _Kind, cuts: tuple[float, ...] | None) -> States:
    """The states of a column for binning others: its labels or provisional bins, and one for missing cells."""
    n = len(kind.counts) - 1
    codes = np.where(kind.column.codes < 0, n, kind.column.codes).astype(np.int64)
    if kind.numbers is not None and cuts is not None:
        n, codes = len(cuts) + 1, kind.numbers.parts(cuts)
    return few_states(codes, n + bool(kind.counts[-1]))


# Variables


def _variable(kind: _Kind, cuts: tuple[float, ...]) -> tuple[Variable | None, Integers | None]:
    """The variable of a column, and the state of each of its labels, and last of a missing cell."""
    if kind.is_refused:
        return None, None
    column, counts = kind.column, kind.counts
    states = np.zeros(len(counts), np.int64)
    is_numeric = column.numbers is not None
    if cuts and kind.numbers is not None:
        labels = interval_labels(cuts, date_labels) if kind.is_date else interval_labels(cuts)
        bins = np.append(np.searchsorted(cuts, kind.numbers.values, side="right"), 0)
        states[column.codes] = bins[kind.numbers.places]
    else:
        seen = np.flatnonzero(counts[:-1])
        texts = [column.labels[i] for i in seen.tolist()]
        labels, states[seen] = _natural(texts, numeric=is_numeric, ordered=column.ordered)
    has_missing = bool(counts[-1])
    _check_labels(column.name, labels, has_missing, numeric=is_numeric)
    states[-1] = len(labels)
    ordered = column.ordered or (is_numeric and not column.coded and len(labels) > 2)
    return Variable(column.name, labels + (MISSING,) * has_missing, cuts, has_missing, ordered), states


def _natural(texts: list[str], *, numeric: bool, ordered: bool) -> tuple[tuple[str, ...], Integers]:
    """The labels, in natural order unless `ordered`, and the state of each text."""
    spelled = [plain_label(text) for text in texts] if numeric else as_booleans(texts)
    labels = list(dict.fromkeys(spelled))
    if not ordered:
        labels.sort()
        if numeric:
            labels.sort(key=lambda label: number(label) or 0)
    position = {label: state for state, label in enumerate(labels)}
    return tuple(labels), np.array([position[text] for text in spelled], dtype=np.int64)


def as_booleans(texts: Sequence[str]) -> Sequence[str]:
    """Normalise the spelling of booleans, if there are no other texts: True and FALSE become true and false.

    >>> as_booleans(["True", "False"]), as_booleans(["True", "Maybe"])
    (['true', 'false'], ['True', 'Maybe'])
    """
    lower = [text.lower() for text in texts]
    return lower if {"true", "false"} >= set(lower) else texts


def _check_labels(name: str, labels: tuple[str, ...], has_missing: bool, *, numeric: bool) -> None:
    if len(labels) + has_missing > MOST_STATES:
        advice = Advice("bin it with ", ("bins", {name: 8})) if numeric else Advice("group its labels")
        raise AdvisedError(
            f"column {name!r} has {len(labels)} distinct values, more than the limit of {MOST_STATES}: ",
            advice,
            ", or drop it",
        )
    if has_missing and MISSING in labels:
        raise ValueError(
            f"column {name!r} has missing cells and the label {MISSING!r}, which stands for them: rename it"
        )


def some(texts: Sequence[str], most: int) -> str:
    """The first few texts, quoted, and the number of others."""
    rest = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(repr(text if len(text) <= 40 else text[:37] + "...") for text in texts[:most]) + rest


# Copies


def _copies(understood: Sequence[_Kind]) -> dict[str, str]:
    """The columns that partition the cases in the same way as an earlier one, whatever their labels, with its name."""
    first: dict[bytes, str] = {}
    copies = {}
    looks = [
        (np.sort(kind.counts[:-1][kind.counts[:-1] > 0]).tobytes(), _pattern(kind, _FIRST_CASES)) for kind in understood
    ]
    often = Counter(looks)  # copies have the same counts and first cases; few other columns do
    for kind, own in zip(understood, looks, strict=True):
        pattern = _pattern(kind) if often[own] > 1 else None
        if pattern is not None:
            earlier = first.setdefault(pattern, kind.column.name)
            if earlier != kind.column.name:
                copies[kind.column.name] = earlier
    return copies


def _pattern(kind: _Kind, most: int | None = None) -> bytes | None:
    """A digest of how a column partitions its first cases, or all: labels in order of appearance, many numbers by rank.

    None for constants, and for texts nearly all of which differ.
    """
    n_values, n = int(np.count_nonzero(kind.counts[:-1])), len(kind.column.codes)
    if n_values < 2:
        return None
    if 2 * n_values <= n:
        codes = kind.column.codes[:most].astype(np.int64)
        last = np.full(len(kind.counts), n, np.int64)
        last[codes[::-1]] = np.arange(len(codes))[::-1]  # the first occurrence is written last
        rank = np.empty(len(last), np.int32)
        rank[np.argsort(last, kind="stable")] = np.arange(len(last))
        rank[-1] = -1
        return blake2b(rank[codes].tobytes()).digest()
    if kind.numbers is None:  # nearly all texts differ, as in any other such column
        return None
    return blake2b(kind.numbers.places[:most].tobytes(), person=b"numbers").digest()
