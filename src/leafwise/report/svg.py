"""SVG output: widths of text, elements, curves, and files."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from unicodedata import east_asian_width
from xml.sax.saxutils import escape, quoteattr

from leafwise.formats.whole_files import write_whole

# SVG renderers other than browsers use the first of these that is installed, and none for sans-serif.
FONT = (
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans', 'Liberation Sans', "
    "'Noto Sans', Ubuntu, Cantarell, FreeSans, sans-serif"
)
# Classes, so that a page can use other colours; these are for stand-alone pictures.
STYLE = {
    ".lw": f"font: 13px {FONT}",
    ".lw text": "fill: #1b2733",
    ".lw .paper": "fill: #ffffff",
    ".lw .box": "fill: #eef3f8; stroke: #8ba3b8",
    ".lw .own": "fill: #fdf1e3; stroke: #b07a3a; stroke-dasharray: 4 3",
    ".lw .leaf": "fill: #ffffff; stroke: #c3ccd5",
    ".lw .arc": "fill: none; stroke: #7d8c9a; stroke-width: 1.2",
    ".lw .faint": "fill: none; stroke: #7d8c9a; stroke-width: 1; stroke-opacity: 0.45",
    ".lw .tip": "fill: #7d8c9a",
    ".lw .faint.tip": "fill-opacity: 0.6; stroke: none; fill: #7d8c9a",
    ".lw .label": "fill: #ffffff; stroke: none",
    ".lw .bar": "fill: #2f7bbf",
    ".lw .track": "fill: #e8edf2",
    ".lw text.quiet": "fill: #5a6875; font-size: 11px",
    ".lw text.small": "font-size: 11px",
    ".lw text.strong": "font-weight: 600",
    ".lw .given": "fill: #f7f4ea; stroke: #b5a878; stroke-dasharray: 4 3",
}
_SPELLED = {
    "kind": "class",
    "text_anchor": "text-anchor",
    "stroke_width": "stroke-width",
    "stroke_linecap": "stroke-linecap",
    "data_fold": "data-fold",
    "fill_opacity": "fill-opacity",
}
_NARROW, _WIDE = frozenset("iljtfrI.,:;'|!()[]{}/ -"), frozenset("mwMW@%")


def width_of(text: str, size: float = 13) -> float:
    """The approximate width of a text, rather too wide than too narrow, as fonts differ.

    >>> round(width_of("leaf", 10), 1)
    19.6
    """
    return size * sum(map(_em, text))


def _em(sign: str) -> float:
    if sign in _NARROW:
        return 0.36
    if sign in _WIDE:
        return 0.92
    if east_asian_width(sign) in "WF":
        return 1.05
    return 0.7 if sign.isupper() else 0.62 if ord(sign) < 0x250 else 0.75


def shortened(text: str, width: float, size: float = 13) -> str:
    """The text, cut with … if it is wider than `width`.

    >>> shortened("a rather long name", 60)
    'a rathe…'
    """
    text = printable(text)
    if width_of(text, size) <= width:
        return text
    while text and width_of(text + "…", size) > width:
        text = text[:-1]
    return text.rstrip() + "…"


def printable(text: str) -> str:
    """The text with a placeholder for each character that XML cannot contain, and blanks for line ends.

    >>> printable("a\\x00b\\nc")
    'a�b c'
    """
    return "".join(" " if sign in "\t\r\n" else sign if _is_xml(ord(sign)) else "�" for sign in text)


def _is_xml(code: int) -> bool:
    return 0x20 <= code <= 0x7E or 0xA0 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000


def element(name: str, *inside: str, **attributes: str | float | None) -> str:
    """An element; numbers are rounded, `kind` is its class, and None omits an attribute."""
    written = "".join(
        [
            f" {_SPELLED.get(key, key)}={quoteattr(value) if isinstance(value, str) else _quoted(value)}"
            for key, value in attributes.items()
            if value is not None
        ]
    )
    return f"<{name}{written}>{''.join(inside)}</{name}>" if inside else f"<{name}{written}/>"


def _quoted(value: float) -> str:
    return f'"{number(value)}"'


def number(value: str | float) -> str:
    """A number with at most one decimal; a text unchanged.

    >>> number(3.0), number(2.26), number("none")
    ('3', '2.3', 'none')
    """
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")


def words(text: str, x: float, y: float, *, kind: str | None = None, anchor: str | None = None) -> str:
    """A line of text; x and y are its beginning, or with `anchor` its middle or end."""
    return element("text", escape(text), x=x, y=y, kind=kind, text_anchor=anchor)


def title(text: str) -> str:
    """An element's tooltip, also for screen readers."""
    return element("title", escape(printable(text)))


def curve(points: Sequence[tuple[float, float]], *, sideways: bool = False) -> str:
    """A path through the points, vertical at each of them, or horizontal if `sideways`.

    >>> curve([(0, 0), (10, 20)])
    'M0,0C0 10 10 10 10 20'
    """
    steps = [f"M{number(points[0][0])},{number(points[0][1])}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        x, y = (x0 + x1) / 2, (y0 + y1) / 2
        if abs(y0 - y1 if sideways else x0 - x1) < 0.5:
            steps.append(f"L{number(x1)},{number(y1)}")
        else:
            bend = (x, y0, x, y1, x1, y1) if sideways else (x0, y, x1, y, x1, y1)
            steps.append("C" + " ".join(map(number, bend)))
    return "".join(steps)


def tip(x: float, y: float, dx: float = 0, dy: float = 1, *, size: float = 7, kind: str = "tip") -> str:
    """An arrowhead ending at a point, with a direction of length one."""
    back_x, back_y = x - size * dx, y - size * dy
    side_x, side_y = -dy * size * 0.45, dx * size * 0.45
    corners = ((x, y), (back_x + side_x, back_y + side_y), (back_x - side_x, back_y - side_y))
    return element("path", kind=kind, d="M" + "L".join(f"{number(a)},{number(b)}" for a, b in corners) + "Z")


@dataclass(frozen=True)
class Picture:
    """A picture, displayed by notebooks and saved as .svg or .png.

    >>> Picture.of([element("circle", r=3)], 6, 6, "a dot").svg.startswith("<svg")
    True
    """

    svg: str = field(repr=False)

    @classmethod
    def of(cls, parts: Iterable[str], width: float, height: float, name: str) -> "Picture":
        """A picture of these elements on white paper, with a margin."""
        style = "".join(f"{selector} {{ {rules} }}" for selector, rules in STYLE.items())
        return cls(drawing([element("style", style), *parts], width, height, name, paper=True))

    def save(self, path: str | os.PathLike[str], *, scale: float = 2) -> None:
        """Write a .svg file, or a .png file with `scale` pixels per unit."""
        kind = Path(path).suffix.lower()
        if kind not in (".svg", ".png"):
            raise ValueError(f"the name {Path(path).name!r} ends like no picture: use .svg or .png.")
        write_whole(path, self.png(scale) if kind == ".png" else f"{self.svg}\n".encode())

    def png(self, scale: float = 2) -> bytes:
        """The picture as PNG bytes, with `scale` pixels per unit."""
        try:
            import resvg_py
        except ModuleNotFoundError:
            raise ValueError(
                "PNG pictures need the package resvg-py, which is not installed: pip install 'leafwise[plot]', "
                "or save as .svg."
            ) from None
        if not _has_fonts():
            raise ValueError(
                "no font was found, and a PNG picture would have no words: install one, for instance DejaVu Sans "
                "(fonts-dejavu-core in Debian), or save as .svg."
            )
        return bytes(resvg_py.svg_to_bytes(svg_string=self.svg, zoom=scale))

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.svg


def _has_fonts() -> bool:
    """Whether text is visible in PNG pictures."""
    import resvg_py

    empty, word = (
        resvg_py.svg_to_bytes(
            svg_string=f'<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20"><text y="15" '
            f'font-family="{FONT}">{text}</text></svg>'
        )
        for text in ("", "leaf")
    )
    return bytes(empty) != bytes(word)


def drawing(parts: Iterable[str], width: float, height: float, name: str, *, paper: bool = False) -> str:
    """An svg element with an accessible name."""
    margin = 12
    box = (-margin, -margin, width + 2 * margin, height + 2 * margin)
    sheet = [element("rect", kind="paper", x=box[0], y=box[1], width=box[2], height=box[3])] if paper else []
    return element(
        "svg",
        title(name),
        *sheet,
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        kind="lw",
        role="img",
        viewBox=" ".join(map(number, box)),
        width=box[2],
        height=box[3],
    )
