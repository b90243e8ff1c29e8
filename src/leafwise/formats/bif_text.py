"""Lexing of BIF text: words, signs and numbers, and their places.

Blanks and comments (// to the end of the line, /* */) are allowed anywhere. A word is a sequence of characters other
than blanks and ``{ } ( ) [ ] , ; | "``, or anything between double quotes, where \\" and \\\\ are escapes. All patterns
are possessive: reading takes time linear in the text, whatever it contains.
"""

import re
from typing import NoReturn

from leafwise.errors import AdvisedError

_BLANKS = re.compile(r"(?:\s++|//[^\n]*+|/\*.*?\*/)*+", re.DOTALL)
_WORD = re.compile(r'"((?:[^"\\]++|\\.)*+)"|((?:[^\s{}()\[\],;|"/]|/(?![/*]))++)', re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\])')
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*+")
_TO_SEMICOLON = re.compile(r'(?:[^;"]++|"[^"]*+")*+;')
_NUMBER = re.compile(r"[-+]?+(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][-+]?+[0-9]++)?+")
_NUMBERS = re.compile(r"\s*+((?:[-+.0-9eE]++\s*+,?+\s*+)++);")
_PLAIN_ROW = re.compile(r'\s*+\(([^()"/;{}]*+)\)')
_LARGEST = 1.01  # a probability may be rounded up; whether a row sums to one is checked elsewhere
_LONGEST_PIECE = 30
_LONGEST_PROBLEM = 500


def quoted(word: str) -> str:
    """A word as it is written: in quotes unless every reader accepts it without.

    >>> quoted("two_words"), quoted("two words")
    ('two_words', '"two words"')
    """
    if _PLAIN_WORD.fullmatch(word):
        return word
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


def brief(text: str) -> str:
    """A piece of text on one line, shortened for a message."""
    return repr(text if len(text) <= _LONGEST_PIECE else text[: _LONGEST_PIECE - 1] + "…")


def decoded(data: bytes) -> str:
    """The text of a file's bytes; fails at the first invalid byte."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise ValueError(
            f"line {line}, column {column}: byte 0x{data[error.start]:02x} came where UTF-8 text is expected: "
            f"save the file as UTF-8."
        ) from None


class Cursor:
    """A text and a position in it.

    >>> cursor = Cursor('network "my net" { // empty')
    >>> cursor.word("a word"), cursor.word("a name"), cursor.takes("{"), cursor.at_end()
    ('network', 'my net', True, True)
    """

    blanks, words = _BLANKS, _WORD

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0  # where the next item begins, including blanks before it
        self.began = 0  # where the last word or sign began

    def at_end(self) -> bool:
        """Whether only blanks are left."""
        return self._skip() == len(self.text)

    def ahead(self, sign: str) -> bool:
        """Whether this sign comes next, without reading it."""
        return self.text.startswith(sign, self._skip())

    def takes(self, sign: str) -> bool:
        """Whether this sign comes next; if so, it is read."""
        place = self._skip()
        if not self.text.startswith(sign, place):
            return False
        self.began, self.place = place, place + len(sign)
        return True

    def expect(self, sign: str, advice: str) -> None:
        """Read this sign, or fail."""
        if not self.takes(sign):
            self.fail(f"{self._next()} came where {sign!r} is expected: {advice}.")

    def word(self, expected: str) -> str:
        """Read a word, or fail with what was expected."""
        place = self._skip()
        found = self.words.match(self.text, place)
        if found is None:
            self.fail(f"{self._next()} came where {expected} is expected: write it there, in quotes if it holds signs.")
        self.began, self.place = place, found.end()
        return found[2] if found[1] is None else _ESCAPED.sub(r"\1", found[1])

    def skip_statement(self) -> None:
        """Skip everything up to the next semicolon outside quotes."""
        found = _TO_SEMICOLON.match(self.text, self.place)
        if found is None:
            self.fail("this statement never ends, and a ';' is expected: write one after it.", self.began)
        self.place = found.end()

    def plain_row(self) -> list[str] | None:
        """Read the words of '(a, b)' at once if they are plain and separated by commas."""
        found = _PLAIN_ROW.match(self.text, self.place)
        if found is None:
            return None
        self.place = found.end()
        return [word.strip() for word in found[1].split(",")]

    def numbers(self, due: int) -> list[float]:
        """Read `due` numbers from 0 on, and the semicolon after them."""
        found = _NUMBERS.match(self.text, self.place)
        if found is not None:
            texts = found[1].replace(",", " ").split()
            if len(texts) == due and all(map(_NUMBER.fullmatch, texts)):
                values = list(map(float, texts))
                if min(values) >= 0 and max(values) <= _LARGEST:
                    self.place = found.end()
                    return values
        return self._numbers_one_by_one(due)

    def fail(self, problem: str, place: int | None = None) -> NoReturn:
        """Raise a ValueError with the problem and its place, by default that of the next item."""
        place = self._skip() if place is None else place
        line = self.text.count("\n", 0, place) + 1
        column = place - self.text.rfind("\n", 0, place)
        if len(problem) > _LONGEST_PROBLEM:
            problem = problem[: _LONGEST_PROBLEM - 1] + "…"
        raise AdvisedError(f"line {line}, column {column}: ", problem)

    def fail_here(self, problem: str) -> NoReturn:
        """Raise a ValueError with the problem and the place of the last word or sign."""
        self.fail(problem, self.began)

    def whole_number(self, expected: str) -> int:
        """Read a whole number from 0 on, or fail with what was expected."""
        word = self.word(expected)
        if not (word.isascii() and word.isdecimal() and len(word) < 10):
            self.fail_here(f"{brief(word)} came where {expected} is expected: write it in digits.")
        return int(word)

    def _skip(self) -> int:
        found = self.blanks.match(self.text, self.place)
        self.place = self.place if found is None else found.end()
        return self.place

    def _next(self) -> str:
        """What comes next, for a message."""
        rest = self.text[self._skip() : self.place + _LONGEST_PIECE + 1]
        if not rest:
            return "the end of the file"
        if rest.startswith("/*"):
            return "a comment without its end"
        word = self.words.match(rest)
        return brief(word[0] if word else rest[0])

    def _numbers_one_by_one(self, due: int) -> list[float]:
        values: list[float] = []
        start = self._skip()
        while not self.takes(";"):
            text = self.word("a number or ';'")
            if not _NUMBER.fullmatch(text) or not 0 <= (value := float(text)) <= _LARGEST:
                self.fail(f"{brief(text)} came where a number from 0 to 1 is expected: write one.", self.began)
            if len(values) == due:
                self.fail(f"{brief(text)} came where ';' is expected after {due:,} numbers: drop it.", self.began)
            values.append(value)
            self.takes(",")
        if len(values) < due:
            self.fail(f"{len(values):,} numbers came where {due:,} are expected: give each state one.", start)
        return values
