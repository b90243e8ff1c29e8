"""Networks as pictures."""

from collections.abc import Iterator, Sequence

import numpy as np

from leafwise.data.table import many
from leafwise.network import Network
from leafwise.report.layout import Layout, Size
from leafwise.report.map_layout import arranged, is_small
from leafwise.report.svg import Picture, curve, element, shortened, tip, title, width_of, words

_NAME = 200  # the widest name
_MOST_SHOWN = 100  # variables; larger networks are drawn in a notebook only on request


def network_picture(network: Network) -> Picture:
    """The variables and arcs: in rows, parents above children, or for a large network as a map.

    >>> from leafwise.examples import alarm
    >>> network_picture(alarm()).svg.count("<rect") > 37
    True
    """
    sizes = [name_size(name) for name in network.names]
    layout = arranged(sizes, network.arcs)
    parts = list(_arcs(layout, sizes, network.arcs))
    for variable, ((x, y), (width, height)) in enumerate(zip(layout.centres, sizes, strict=True)):
        node, name = network.nodes[variable], network.names[variable]
        box = element(
            "rect", kind="given" if node is None else "box", x=x - width / 2, y=y - height / 2, width=width,
            height=height, rx=7,
        )  # fmt: skip
        parts.append(
            element(
                "g", title(about(network, variable)), box, words(shortened(name, _NAME), x, y + 4.5, anchor="middle")
            )
        )
    return Picture.of(parts, layout.width, layout.height, _sizes(network))


def network_html(network: Network) -> str:
    """HTML for notebooks: the sizes, and the picture of a network that is not too large."""
    line = f"{_sizes(network)}, {many(network.n_leaves, 'leaf', 'leaves')}"
    if len(network.variables) > _MOST_SHOWN:
        return element("p", f"{line}. network.plot() draws it, network.plot_node(name) the graph of one variable.")
    return element("div", element("p", line), network_picture(network).svg)


def name_size(name: str) -> Size:
    """The size of a variable's box."""
    return width_of(shortened(name, _NAME)) + 22, 28.0


def _sizes(network: Network) -> str:
    return f"A network of {many(len(network.variables), 'variable')} and {many(len(network.arcs), 'arc')}"


def about(network: Network, variable: int) -> str:
    """A variable in brief: its name, states, and the size of its graph."""
    one, node = network.variables[variable], network.nodes[variable]
    text = f"{one.name}: {many(one.n_states, 'state')}"
    if node is None:
        return text + ", given"
    parents = many(len(node.parents), "parent")
    return f"{text}, {parents}, {many(node.n_leaves, 'leaf', 'leaves')}"


def _arcs(layout: Layout, sizes: Sequence[Size], arcs: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Curves between rows, or straight lines in a map, ending at the border of the child's box."""
    kind = "arc" if is_small(len(sizes), arcs) else "faint"
    for (start, end), route in zip(arcs, layout.routes, strict=True):
        if not route:
            (x0, y0), (x1, y1) = layout.centres[start], layout.centres[end]
            length = max(np.hypot(x1 - x0, y1 - y0), 1e-9)
            dx, dy = (x1 - x0) / length, (y1 - y0) / length
            back = min(sizes[end][k] / 2 / max(abs(d), 1e-9) for k, d in enumerate((dx, dy)))
            x1, y1 = x1 - dx * back, y1 - dy * back
            yield element("path", kind="faint", d=f"M{x0:.0f},{y0:.0f}L{x1:.0f},{y1:.0f}")
            yield tip(x1, y1, dx, dy, size=6, kind="faint tip")
        else:
            x, y = route[-1]
            yield element("path", kind=kind, d=curve((*route[:-1], (x, y - 6))))
            yield tip(x, y)
