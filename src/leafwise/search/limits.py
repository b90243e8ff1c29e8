"""Numbers that settings of a search may have: checked alike wherever they are given."""

from typing import Any


def check_operators(operators: str, what: str) -> None:
    """Raise a ValueError where letters are given that only greedy search on its own has."""
    own = [letter for letter in operators if letter not in "CBIM"]
    if own:
        raise ValueError(
            f"operators are {operators!r}, and {what} goes without {', '.join(own)}: leave that out, or search greedily"
        )


def check_numbers(settings: Any, **least: int) -> None:
    """Raise unless each named setting is None or at least so much; all but `seconds` are whole numbers."""
    for name, bound in least.items():
        value = getattr(settings, name)
        if value is None:
            continue
        if not value >= bound:
            raise ValueError(f"{name} is {value}, and must be at least {bound}: raise it, or leave it out")
        if name != "seconds" and not isinstance(value, int):
            raise TypeError(f"{name} is {value!r}, and must be a whole number: give an int, or leave it out")
