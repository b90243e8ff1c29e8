"""How docstrings are shown: examples as code, arguments as tables, and the comments beside fields as what these are."""

import re
from html import escape
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)
_ARGUMENT = re.compile(r"^`(\w+)`: (.*(?:\n(?!`\w+`: |\n).+)*)", re.MULTILINE)
_ARGUMENTS = re.compile(rf"(?:{_ARGUMENT.pattern}\n?)+", re.MULTILINE)
_COMMENT = re.compile(r"  # (.*)")


class Docstrings(griffe.Extension):
    """For every class, function and field."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Set a fence around lines that begin with >>> and their results, and arguments into a table."""
        if obj.docstring is not None:
            text = _EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
            known = {parameter.name: parameter for parameter in getattr(obj, "parameters", ())}
            obj.docstring.value = _ARGUMENTS.sub(lambda found: _table(found[0], known), text)

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Take the comment beside a public field."""
        if attr.docstring is None and attr.parent is not None and attr.parent.is_class and attr.lineno is not None:
            comment = _COMMENT.search(attr.lines_collection[attr.filepath][attr.lineno - 1])
            if comment is not None:
                attr.docstring = griffe.Docstring(comment[1], parent=attr)


def _table(text: str, known: dict[str, griffe.Parameter]) -> str:
    """Arguments, each with what it may be, what it is if left out, and what it does."""
    lines = ["", "| argument | type | default | |", "|---|---|---|---|"]
    for name, about in _ARGUMENT.findall(text):
        parameter = known.get(name)
        kind = _code(parameter.annotation) if parameter else ""
        default = _code(parameter.default) if parameter else ""
        lines.append(f"| `{name}` | {kind} | {default} | {' '.join(about.split()).replace('|', '&#124;')} |")
    return "\n".join([*lines, "", ""])


def _code(expression: object) -> str:
    return "" if expression is None else f"<code>{escape(str(expression)).replace('|', '&#124;')}</code>"
