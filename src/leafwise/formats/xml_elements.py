"""The elements of an XML file, with their places.

Entities are refused, so nothing short can expand, and no other file is opened.
"""

import re
from dataclasses import dataclass, field
from typing import Any, NoReturn
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from leafwise.data.table import brief
from leafwise.errors import AdvisedError

_UNWRITABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(slots=True)
class Element:
    """One XML element and its place."""

    tag: str
    attributes: dict[str, str]
    place: tuple[int, int]
    texts: list[str] = field(default_factory=list)
    inside: list["Element"] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Its text, without surrounding blanks."""
        return "".join(self.texts).strip()

    def all(self, tag: str) -> list["Element"]:
        """Its child elements with this tag."""
        return [element for element in self.inside if element.tag == tag]

    def one(self, tag: str) -> "Element":
        """Its one child element with this tag, or fail."""
        found = self.all(tag)
        if len(found) != 1:
            self.fail(f"{len(found)} <{tag}> came in <{self.tag[:30]}> where one is expected: correct that.")
        return found[0]

    def attribute(self, name: str) -> str:
        """An attribute, or fail."""
        if name not in self.attributes:
            self.fail(f"a <{self.tag}> came without its {name!r}: add it.")
        return self.attributes[name]

    def whole_numbers(self, below: int) -> list[int]:
        """The whole numbers in its text, or fail."""
        words = self.text.split()
        if not all(word.isascii() and word.isdecimal() and len(word) < 7 and int(word) < below for word in words):
            self.fail(
                f"the <{self.tag}> holds something else where whole numbers below {below} are expected: correct it."
            )
        return [int(word) for word in words]

    def fail(self, problem: str) -> NoReturn:
        """Raise a ValueError with the place and the problem."""
        line, column = self.place
        raise AdvisedError(f"line {line}, column {column}: ", problem)


def parsed(data: bytes, tag: str, kind: str) -> Element:
    """The root element of a file, which must have this tag; expat provides the places."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    top = Element("", {}, (1, 1))
    trail = [top]

    def start(own: str, attributes: dict[str, str]) -> None:
        element = Element(own, attributes, (parser.CurrentLineNumber, parser.CurrentColumnNumber + 1))
        if len(trail) == 1 and own != tag:
            element.fail(f"<{own[:30]}> came where <{tag}> is expected: give a file of the format {kind}.")
        trail[-1].inside.append(element)
        trail.append(element)

    def refuse(*_: Any) -> None:
        place = Element("", {}, (parser.CurrentLineNumber, parser.CurrentColumnNumber + 1))
        place.fail("an entity came where none is expected: write what it stands for.")

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: trail.pop()
    parser.CharacterDataHandler = lambda text: trail[-1].texts.append(text)
    parser.EntityDeclHandler = parser.SkippedEntityHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise ValueError(
            f"line {error.lineno}, column {error.offset + 1}: {reason} where XML is expected: save the file again."
        ) from None
    return top.inside[0]


def text_of(words: str) -> str:
    """A text escaped for XML content; one that would not be read back unchanged is refused."""
    if words.strip() != words:
        raise ValueError(f"{brief(words)} begins or ends with a blank, which this format loses: rename it.")
    return escape(_writable(words), {"\r": "&#13;"})


def attribute_of(words: str) -> str:
    """A text as an XML attribute value, with its quotes."""
    return quoteattr(_writable(words))


def _writable(text: str) -> str:
    if _UNWRITABLE.search(text):
        raise ValueError(f"{brief(text)} holds a sign that XML cannot: rename it, or save the network as JSON.")
    return text
