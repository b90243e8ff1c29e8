"""Dates in labels: converted to numbers of days since 1970, and back. Knows NumPy and nothing else."""

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

_TIME = r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?(?:Z|[+-]\d{2}:?\d{2})?"
_YEAR_FIRST = re.compile(rf"(\d{{4}})[-/](\d{{1,2}})[-/](\d{{1,2}})({_TIME})")
_DOTTED = re.compile(rf"(\d{{1,2}})\.(\d{{1,2}})\.(\d{{4}})({_TIME})")
_ANY = re.compile(rf"(?:{_YEAR_FIRST.pattern}|\d{{1,2}}[-/.]\d{{1,2}}[-/.](?:\d{{4}}|\d{{2}}){_TIME})")
_SECONDS = 86_400
MOST_DAYS = 4_000_000  # from 1970: more than to any date with a year of four digits


def are_dates(texts: Iterable[str]) -> bool:
    """Return whether every text looks like a date, even if the order of day and month is ambiguous.

    >>> are_dates(["2024-01-31", "31.1.2024 12:30", "1/2/24"]), are_dates(["2024-01-31", "7"])
    (True, False)
    """
    return all(_ANY.fullmatch(text) for text in texts)


def day(text: str) -> float | None:
    """The days since 1970 of a date with its year first, or with points: 2024-01-31, 2024-01-31T12:30, 31.1.2024.

    None for anything else. Time zones are ignored.

    >>> day("1970-01-02"), day("2.1.1970 12:00"), day("1/2/1970"), day("2024-02-31")
    (1.0, 1.5, None, None)
    """
    if match := _YEAR_FIRST.fullmatch(text):
        year, month, date, time = match.groups()
    elif match := _DOTTED.fullmatch(text):
        date, month, year, time = match.groups()
    else:
        return None
    clock = re.sub(r"(?:Z|[+-]\d{2}:?\d{2})$", "", time)[1:] if time[:1] in ("T", " ") else "0:00"
    hour, rest = clock.split(":", 1)
    try:
        moment = np.datetime64(f"{year}-{month:>02}-{date:>02}T{hour:>02}:{rest}", "s")
    except ValueError:
        return None
    return float(moment.astype(np.int64)) / _SECONDS


def days(texts: Iterable[str]) -> NDArray[np.float64] | None:
    """The days since 1970 of all texts, or None if `day` is None for one of them.

    >>> days(["1970-01-02", "1970-01-03"])
    array([1., 2.])
    """
    found = [day(text) for text in texts]
    return None if None in found else np.array(found, np.float64)


def date_label(days: float) -> str:
    """The date of a number of days since 1970, with the time unless it is midnight.

    >>> date_label(1.0), date_label(1.5)
    ('1970-01-02', '1970-01-02T12:00:00')
    """
    moment = np.datetime64(round(days * _SECONDS), "s")
    return str(moment.astype("datetime64[D]") if float(days).is_integer() else moment)
