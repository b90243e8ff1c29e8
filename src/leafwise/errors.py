"""Refusals that carry their advice: the arguments that would help, spelled for Python or as options. Knows nothing."""

import shlex
from collections.abc import Sequence


class AdvisedError(ValueError):
    """What is wrong and what to do: texts, and between them arguments as (name, value).

    >>> error = AdvisedError("column 'id' tells rows apart: leave it out with ", ("ignore", ["id", "a b"]))
    >>> print(error)
    column 'id' tells rows apart: leave it out with ignore=['id', 'a b']
    >>> print(error.in_options())
    column 'id' tells rows apart: leave it out with --ignore 'id,a b'
    """

    def __str__(self) -> str:
        return "".join(part if isinstance(part, str) else f"{part[0]}={part[1]!r}" for part in self.args)

    def in_options(self) -> str:
        """The same for the command line."""
        return "".join(part if isinstance(part, str) else _option(*part) for part in self.args)


def _option(name: str, value: object) -> str:
    if name == "header":
        return "--no-header"
    text = ",".join(map(_entry, value)) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)
    return f"--{name.replace('_', '-')} {shlex.quote(text)}"


def _entry(name: str) -> str:
    return f'"{name}"' if "," in name else name


def check_type(value: object, kinds: type | tuple[type, ...], what: str, wanted: str) -> None:
    """Raise a TypeError unless a value is of a kind; `wanted` says what is allowed and what to do.

    >>> check_type(5, str, "the prior", "a text: use for example 'bdeu:10'")
    Traceback (most recent call last):
        ...
    TypeError: the prior is 5 (int), and must be a text: use for example 'bdeu:10'
    """
    if not isinstance(value, kinds):
        shown = repr(value)
        shown = shown if len(shown) <= 40 else shown[:37] + "..."
        raise TypeError(f"{what} is {shown} ({type(value).__name__}), and must be {wanted}")
