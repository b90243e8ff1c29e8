"""How docstrings are shown: examples as code, and the comments beside fields as what these are."""

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)
_ARGUMENT = re.compile(r"\n(?=`\w+`: )")
_COMMENT = re.compile(r"  # (.*)")


class Docstrings(griffe.Extension):
    """For every class, function and field."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Set a fence around lines that begin with >>> and their results, and each argument apart."""
        if obj.docstring is not None:
            text = _EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
            obj.docstring.value = _ARGUMENT.sub("\n\n", text)

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Take the comment beside a public field."""
        if attr.docstring is None and attr.parent is not None and attr.parent.is_class and attr.lineno is not None:
            comment = _COMMENT.search(attr.lines_collection[attr.filepath][attr.lineno - 1])
            if comment is not None:
                attr.docstring = griffe.Docstring(comment[1], parent=attr)
