"""Pictures of arc confidence: lines between variables, wider the more networks connect the pair."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leafwise.data.table import many
from leafwise.report.map_layout import arranged
from leafwise.report.pictures import name_size
from leafwise.report.svg import Picture, curve, element, shortened, tip, title, words

LEAST = 0.5  # the least share of networks for a pair to be drawn
_WIDEST, _NAME = 6.0, 200
_ONE_WAY = 0.8  # the least share of a pair's arcs in one direction for the line to have a tip


def shares_picture(names: Sequence[str], shares: NDArray[np.float64], least: float = LEAST) -> Picture:
    """Draw `shares[i, j]`, the share of networks with an arc from i to j, without pairs below `least`.

    >>> picture = shares_picture(["rain", "wet", "sun"], np.array([[0, 0.9, 0.1], [0.1, 0, 0], [0.1, 0, 0]]))
    >>> picture.svg.count('class="arc"'), "rain → wet: 100 %" in picture.svg
    (1, True)
    """
    both = shares + shares.T
    pairs = [(int(i), int(j)) for i, j in np.argwhere(np.triu(both, 1) >= least)]
    arcs = [(i, j) if shares[i, j] >= shares[j, i] else (j, i) for i, j in pairs]
    sizes = [name_size(name) for name in names]
    layout = arranged(sizes, pairs)  # directed from the lower to the higher number, so acyclic
    parts = []
    for (i, j), (parent, child), route in zip(pairs, arcs, layout.routes, strict=True):
        points = list(route) or [layout.centres[i], layout.centres[j]]
        one_way = shares[parent, child] >= _ONE_WAY * both[i, j]
        sign = "→" if one_way else "–"
        line = element("path", kind="arc", d=curve(points), stroke_width=_WIDEST * min(both[i, j], 1.0),
                       style=f"stroke-width: {_WIDEST * min(both[i, j], 1.0):.1f}")  # fmt: skip
        about = f"{names[parent]} {sign} {names[child]}: {both[i, j]:.0%}, this way {shares[parent, child]:.0%}"
        parts.append(element("g", title(about.replace("%", " %")), line))
        if one_way and route:
            down = (parent, child) == (i, j)
            parts.append(tip(*points[-1 if down else 0], 0, 1 if down else -1, size=9))
    for name, (x, y), (width, height) in zip(names, layout.centres, sizes, strict=True):
        box = element("rect", kind="box", x=x - width / 2, y=y - height / 2, width=width, height=height, rx=7)
        parts.append(element("g", title(name), box, words(shortened(name, _NAME), x, y + 4.5, anchor="middle")))
    about = f"{many(len(names), 'variable')}, and {many(len(pairs), 'pair')} that at least {least:.0%} connect"
    return Picture.of(parts, layout.width, layout.height, about)
