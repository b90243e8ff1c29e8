"""Errors with advice: the arguments that would help, spelled for Python or as command-line options. Knows nothing."""

import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Argument(NamedTuple):
    """A recommended argument: its name, its value (`...` if left open), and in Python the class that takes it."""

    name: str
    value: object = ...
    of: str = ""

    def __str__(self) -> str:
        text = f"{self.name}={'...' if self.value is ... else repr(self.value)}"
        return f"{self.of}({text})" if self.of else self.name if self.value is ... else text

    def in_options(self) -> str:
        """The command-line option."""
        if self.name == "header":
            return "--no-header"
        option = f"--{self.name.replace('_', '-')}"
        return option if self.value is ... else f"{option} {shlex.quote(_text(self.value))}"


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{name}={entry}" for name, entry in value.items())
    if isinstance(value, str) or not isinstance(value, Sequence):
        return str(value)
    return ",".join(f'"{entry}"' if "," in str(entry) else str(entry) for entry in value)


Part = str | Argument | tuple[str, object] | tuple[str]


class Advice(str):
    """A text for Python that marks which of its parts are arguments; parts are texts, other advice, and (name, value).

    >>> advice = Advice("leave them out with ", ("missing", "drop"), ", or raise ", Argument("memory", of="Limits"))
    >>> print(advice)
    leave them out with missing='drop', or raise Limits(memory=...)
    >>> print(advice.in_options())
    leave them out with --missing drop, or raise --memory
    """

    parts: tuple[str | Argument, ...]

    def __new__(cls, *parts: Part) -> "Advice":
        """Join the parts, and flatten other advice."""
        flat: list[str | Argument] = []
        for part in parts:
            if isinstance(part, Advice):
                flat += part.parts
            else:
                flat.append(part if isinstance(part, str | Argument) else Argument(*part))
        text = super().__new__(cls, "".join(map(str, flat)))
        text.parts = tuple(flat)
        return text

    def in_options(self) -> str:
        """The text for the command line."""
        return "".join(part if isinstance(part, str) else part.in_options() for part in self.parts)


class AdvisedError(ValueError):
    """An error that says what to do. `advice` is the message as `Advice`; `arguments` are those that would help.

    >>> error = AdvisedError("column 'id' tells rows apart: leave it out with ", ("ignore", ["id", "a b"]))
    >>> print(error)
    column 'id' tells rows apart: leave it out with ignore=['id', 'a b']
    >>> print(error.advice.in_options())
    column 'id' tells rows apart: leave it out with --ignore 'id,a b'
    >>> error.arguments
    [('ignore', ['id', 'a b'])]
    """

    @property
    def advice(self) -> Advice:
        """The message, as `Advice`."""
        return Advice(*self.args)

    @property
    def arguments(self) -> list[tuple[str, object]]:
        """Names and values of the recommended arguments, `...` if a value is left open."""
        return [(part.name, part.value) for part in self.advice.parts if isinstance(part, Argument)]

    def __str__(self) -> str:
        return str(self.advice)


def in_options(what: str | Exception) -> str:
    """The text of a message, an error or a warning, spelled for the command line."""
    text = advice_of(what)
    return text.in_options() if isinstance(text, Advice) else text


def advice_of(what: str | Exception) -> str:
    """The message of an error or a warning, as `Advice` if it has some; a text itself.

    >>> advice_of(UserWarning(Advice("raise ", ("max_leaves",)))).in_options()
    'raise --max-leaves'
    """
    if isinstance(what, AdvisedError):
        return what.advice
    if isinstance(what, Exception):
        return what.args[0] if what.args and isinstance(what.args[0], Advice) else str(what)
    return what


def check_type(value: object, kinds: type | tuple[type, ...], what: str, wanted: str) -> None:
    """Raise a TypeError unless a value has one of the types; `wanted` says what is allowed and what to do.

    >>> check_type(5, str, "the prior", "a text: use for example 'bdeu:10'")
    Traceback (most recent call last):
        ...
    TypeError: the prior is 5 (int), and must be a text: use for example 'bdeu:10'
    """
    if not isinstance(value, kinds):
        shown = repr(value)
        shown = shown if len(shown) <= 40 else shown[:37] + "..."
        raise TypeError(f"{what} is {shown} ({type(value).__name__}), and must be {wanted}")
