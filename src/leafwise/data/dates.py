"""Dates in labels: converted to numbers of days since 1970, and back. Knows NumPy and nothing else."""

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

_TIME = r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?(?:Z|[+-]\d{2}:?\d{2})?"
_YEAR_FIRST = re.compile(rf"(\d{{4}})[-/](\d{{1,2}})[-/](\d{{1,2}})({_TIME})")
_DOTTED = re.compile(rf"(\d{{1,2}})\.(\d{{1,2}})\.(\d{{4}})({_TIME})")
_ANY = re.compile(rf"(?:{_YEAR_FIRST.pattern}|\d{{1,2}}[-/.]\d{{1,2}}[-/.](?:\d{{4}}|\d{{2}}){_TIME})")
_ZONE = re.compile(r"(?:Z|([+-])(\d{2}):?(\d{2}))$")
_SECONDS = 86_400
MICROSECONDS = 86_400_000_000  # of a day


def are_dates(texts: Iterable[str]) -> bool:
    """Return whether every text looks like a date, even if the order of day and month is ambiguous.

    >>> are_dates(["2024-01-31", "31.1.2024 12:30", "1/2/24"]), are_dates(["2024-01-31", "7"])
    (True, False)
    """
    return all(_ANY.fullmatch(text) for text in texts)


def day(text: str) -> float | None:
    """The days since 1970 of a date with its year first, or with points: 2024-01-31, 2024-01-31T12:30, 31.1.2024.

    None for anything else. Time zones are ignored, and so are fractions of a microsecond.

    >>> day("1970-01-02"), day("2.1.1970 12:00"), day("1/2/1970"), day("2024-02-31")
    (1.0, 1.5, None, None)
    """
    found = moment(text)
    return None if found is None else found / MICROSECONDS


def moment(text: str) -> int | None:
    """The microseconds since 1970 of a date, as `day` reads it: exact, which numbers of days are not."""
    if match := _YEAR_FIRST.fullmatch(text):
        year, month, date, time = match.groups()
    elif match := _DOTTED.fullmatch(text):
        date, month, year, time = match.groups()
    else:
        return None
    clock = _ZONE.sub("", time)[1:] if time[:1] in ("T", " ") else "0:00"
    hour, rest = clock.split(":", 1)
    try:
        found = np.datetime64(f"{year}-{month:>02}-{date:>02}T{hour:>02}:{rest}", "us")
    except ValueError:
        return None
    return int(found.astype(np.int64))


def ahead(text: str) -> int | None:
    """The microseconds by which the zone of a date, as `moment` reads it, is ahead of UTC; None without a zone.

    >>> ahead("2024-03-31T12:30+02:00"), ahead("2024-03-31 12:30Z"), ahead("2024-03-31")
    (7200000000, 0, None)
    """
    match = _ZONE.search(text)
    if match is None:
        return None
    sign, hours, minutes = match.groups(default="0")
    return (-1 if sign == "-" else 1) * (60 * int(hours) + int(minutes)) * 60_000_000


def days(texts: Iterable[str]) -> NDArray[np.float64] | None:
    """The days since 1970 of all texts, or None if `day` is None for one of them.

    >>> days(["1970-01-02", "1970-01-03"])
    array([1., 2.])
    """
    found = [day(text) for text in texts]
    return None if None in found else np.array(found, np.float64)


def date_labels(days: Sequence[float]) -> list[str]:
    """The dates of numbers of days since 1970, with the time unless it is midnight, and digits to tell them apart.

    >>> date_labels([1.0, 1.5]), date_labels([1.5, 1.5 + 0.25 / 86_400])
    (['1970-01-02', '1970-01-02T12:00:00'], ['1970-01-02T12:00:00.000', '1970-01-02T12:00:00.250'])
    """
    texts: list[str] = []
    for unit, parts in (("s", 1), ("ms", 10**3), ("us", 10**6)):
        ticks = np.rint(np.array(days) * _SECONDS * parts).astype(np.int64)
        pairs = zip(days, ticks.astype(f"datetime64[{unit}]"), strict=True)
        texts = [str(moment.astype("datetime64[D]") if float(day).is_integer() else moment) for day, moment in pairs]
        if len(set(texts)) == len(texts):
            break
    return texts
