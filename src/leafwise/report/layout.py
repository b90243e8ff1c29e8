"""Layered layout (after Sugiyama, Tagawa and Toda, 1981): boxes in rows, arcs pointing down.

Rows by longest path, order by medians of neighbours, positions by least squares with minimum distances.
"""

import math
from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass

Size = tuple[float, float]
Point = tuple[float, float]
Arc = tuple[int, int]

_SWEEPS = 24
_STRAIGHT = (1.0, 3.0, 8.0)  # weights for vertical links: between boxes, to a bend, between bends


@dataclass(frozen=True)
class Layout:
    """The centre of each box, the points on each arc from border to border, and the total size."""

    centres: tuple[Point, ...]
    routes: tuple[tuple[Point, ...], ...]  # empty: straight from centre to centre
    width: float
    height: float


def layered(sizes: Sequence[Size], arcs: Sequence[Arc], *, apart: float = 20, below: float = 44) -> Layout:
    """Lay out boxes at least `apart` in a row, with rows `below` each other. The arcs must be acyclic.

    >>> drawn = layered([(40, 20), (40, 20), (40, 20)], [(0, 1), (0, 2)])
    >>> drawn.centres
    ((50.0, 10.0), (20.0, 74.0), (80.0, 74.0))
    """
    if not sizes:
        return Layout((), tuple(() for _ in arcs), 0.0, 0.0)
    rows = _rows(len(sizes), arcs)
    chains = _Chains.of(rows, arcs)
    order = _ordered(chains)
    widths = [size[0] for size in sizes] + [4.0] * (len(chains.row) - len(sizes))
    across = _places(order, chains, widths, apart, len(sizes))
    left = min(x - width / 2 for x, width in zip(across, widths, strict=True))
    right = max(x + width / 2 for x, width in zip(across, widths, strict=True))
    tops = [0.0]
    heights = [max((sizes[box][1] for box in row if box < len(sizes)), default=0.0) for row in order]
    for height in heights:
        tops.append(tops[-1] + height + below)
    centres = [(across[box] - left, tops[rows[box]] + heights[rows[box]] / 2) for box in range(len(sizes))]
    routes = []
    for (start, end), bends in zip(arcs, chains.bends, strict=True):
        (x, y), (last_x, last_y) = centres[start], centres[end]
        route = [(x, y + sizes[start][1] / 2), (x, tops[rows[start]] + heights[rows[start]])]
        for bend in bends:
            top = tops[chains.row[bend]]
            route += [(across[bend] - left, top), (across[bend] - left, top + heights[chains.row[bend]])]
        route += [(last_x, tops[rows[end]]), (last_x, last_y - sizes[end][1] / 2)]
        routes.append(tuple(dict.fromkeys(route)))
    return Layout(tuple(centres), tuple(routes), right - left, tops[-1] - below)


def n_bends(n: int, arcs: Sequence[Arc]) -> int:
    """The number of rows that arcs cross without stopping; with some thousands, a layered picture is a tangle.

    >>> n_bends(3, [(0, 1), (1, 2), (0, 2)])
    1
    """
    rows = _rows(n, arcs)
    return sum(rows[end] - rows[start] - 1 for start, end in arcs)


def _rows(n: int, arcs: Sequence[Arc]) -> list[int]:
    """One row below the lowest parent; then boxes with more children than parents move down towards their children."""
    parents: list[list[int]] = [[] for _ in range(n)]
    children: list[list[int]] = [[] for _ in range(n)]
    for start, end in arcs:
        parents[end].append(start)
        children[start].append(end)
    waits = [len(row) for row in parents]
    order = [box for box in range(n) if not waits[box]]
    for box in order:  # grows during the loop
        for child in children[box]:
            waits[child] -= 1
            if not waits[child]:
                order.append(child)
    rows = [0] * n
    for box in order:
        rows[box] = max((rows[parent] + 1 for parent in parents[box]), default=0)
    for box in reversed(order):
        if len(children[box]) > len(parents[box]):
            rows[box] = min(rows[child] for child in children[box]) - 1
    first = min(rows, default=0)
    return [row - first for row in rows]


@dataclass(frozen=True)
class _Chains:
    """Arcs as links between adjacent rows; a long arc has a bend in every row in between."""

    row: list[int]  # of each box, then of each bend
    bends: list[list[int]]  # of each arc
    above: list[list[int]]  # the neighbours of each box or bend
    below: list[list[int]]

    @classmethod
    def of(cls, rows: Sequence[int], arcs: Sequence[Arc]) -> "_Chains":
        row = list(rows)
        above: list[list[int]] = [[] for _ in rows]
        below: list[list[int]] = [[] for _ in rows]
        bends: list[list[int]] = []
        for start, end in arcs:
            chain = list(range(len(row), len(row) + rows[end] - rows[start] - 1))
            row += range(rows[start] + 1, rows[end])
            above += [[] for _ in chain]
            below += [[] for _ in chain]
            for one, other in zip([start, *chain], [*chain, end], strict=True):
                below[one].append(other)
                above[other].append(one)
            bends.append(chain)
        return cls(row, bends, above, below)


def _ordered(chains: _Chains) -> list[list[int]]:
    """The rows from left to right with few crossings: the best of several sweeps down and up."""
    order = _first_order(chains)
    best, fewest = [list(row) for row in order], _n_crossings(order, chains)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        down = sweep % 2 == 0
        neighbours = chains.above if down else chains.below
        place = {box: float(k) for row in order for k, box in enumerate(row)}
        for row in order if down else reversed(order):
            towards = {box: _median([place[other] for other in neighbours[box]], place[box]) for box in row}
            row.sort(key=towards.__getitem__)
            place.update({box: float(k) for k, box in enumerate(row)})
        _exchange(order, chains)
        crossings = _n_crossings(order, chains)
        if crossings < fewest:
            best, fewest = [list(row) for row in order], crossings
    return best


def _first_order(chains: _Chains) -> list[list[int]]:
    """The order of a walk from the tops, children from left to right."""
    order: list[list[int]] = [[] for _ in range(max(chains.row) + 1)]
    seen = [False] * len(chains.row)
    for top in sorted(range(len(chains.row)), key=lambda box: (chains.row[box], box)):
        stack = [top]
        while stack:
            box = stack.pop()
            if not seen[box]:
                seen[box] = True
                order[chains.row[box]].append(box)
                stack += reversed(chains.below[box])
    return order


def _median(places: list[float], otherwise: float) -> float:
    """The median position; of two middle ones their mean, or if there are many, weighted towards the denser side."""
    if not places:
        return otherwise
    places.sort()
    middle = len(places) // 2
    if len(places) % 2:
        return places[middle]
    low, high = places[middle - 1], places[middle]
    left, right = low - places[0], places[-1] - high
    return (low + high) / 2 if left + right == 0 else (low * right + high * left) / (left + right)


def _exchange(order: list[list[int]], chains: _Chains) -> None:
    """Swap neighbours in a row as long as that removes crossings."""
    for k, row in enumerate(order):
        place = {box: at for other in order[max(k - 1, 0) : k + 2] for at, box in enumerate(other)}
        sides = {
            box: [sorted(place[other] for other in side[box]) for side in (chains.above, chains.below)] for box in row
        }
        improved = True
        while improved:
            improved = False
            for at in range(len(row) - 1):
                one, other = sides[row[at]], sides[row[at + 1]]
                now = sum(_n_pairs(a, b) for a, b in zip(one, other, strict=True))
                if now and now > sum(_n_pairs(b, a) for a, b in zip(one, other, strict=True)):
                    row[at], row[at + 1] = row[at + 1], row[at]
                    improved = True


def _n_pairs(left: list[int], right: list[int]) -> int:
    """The number of links of the left box that cross links of the right one."""
    count, k = 0, 0
    for place in left:
        while k < len(right) and right[k] < place:
            k += 1
        count += k
    return count


def _n_crossings(order: list[list[int]], chains: _Chains) -> int:
    count = 0
    for k in range(len(order) - 1):
        place = {box: at for at, box in enumerate(order[k + 1])}
        ends: list[int] = []
        for box in order[k]:
            mine = [place[other] for other in chains.below[box]]
            count += sum(len(ends) - bisect_right(ends, end) for end in mine)
            for end in mine:
                insort(ends, end)
    return count


def _places(
    order: list[list[int]], chains: _Chains, widths: Sequence[float], apart: float, n_boxes: int
) -> list[float]:
    """The horizontal position of each centre."""
    place = [0.0] * len(widths)
    for row in order:
        edge = 0.0
        for box in row:
            place[box] = edge + widths[box] / 2
            edge += widths[box] + apart
        for box in row:
            place[box] -= edge / 2
    above, below, both = (chains.above,), (chains.below,), (chains.above, chains.below)
    for down, up, times in ((above, below, 8), (both, both, 4)):
        for _ in range(times):
            moved = _sweep(order, down, place, widths, apart, n_boxes)
            moved += _sweep(order[::-1], up, place, widths, apart, n_boxes)
            if down is both:
                _straighten(order, chains, place, widths, apart)
            if moved < 1:
                break
    return place


def _sweep(
    order: Sequence[Sequence[int]],
    sides: Sequence[list[list[int]]],
    place: list[float],
    widths: Sequence[float],
    apart: float,
    n_boxes: int,
) -> float:
    """Move each row in turn towards its neighbours on these sides; return the total movement."""
    moved = 0.0
    for row in order:
        wished, weights = [], []
        for box in row:
            weight, total = 0.01, 0.01 * place[box]
            for side in sides:
                for other in side[box]:
                    pull = _STRAIGHT[(box >= n_boxes) + (other >= n_boxes)]
                    weight += pull
                    total += pull * place[other]
            weights.append(weight)
            wished.append(total / weight)
        for box, at in zip(row, _separated(wished, weights, [widths[box] for box in row], apart), strict=True):
            moved += abs(at - place[box])
            place[box] = at
    return moved


def _straighten(
    order: list[list[int]], chains: _Chains, place: list[float], widths: Sequence[float], apart: float
) -> None:
    """Align the bends of each arc vertically as far as their neighbours allow."""
    beside: dict[int, tuple[int | None, int | None]] = {}
    for row in order:
        for left, box, right in zip([None, *row], row, [*row[1:], None], strict=False):
            beside[box] = left, right
    for bends in chains.bends:
        run: list[int] = []
        low, high = -math.inf, math.inf
        for bend in [*bends, None]:
            least, most = (math.inf, -math.inf) if bend is None else _room(bend, beside[bend], place, widths, apart)
            if max(low, least) > min(high, most):
                mean = sum(place[one] for one in run) / max(len(run), 1)
                for one in run:
                    place[one] = min(max(mean, low), high)
                run, low, high = [], -math.inf, math.inf
            if bend is not None:
                run.append(bend)
                low, high = max(low, least), min(high, most)


def _room(
    box: int, beside: tuple[int | None, int | None], place: list[float], widths: Sequence[float], apart: float
) -> tuple[float, float]:
    """The leftmost and the rightmost possible position of a box."""
    left, right = beside
    least = -math.inf if left is None else place[left] + (widths[left] + widths[box]) / 2 + apart
    most = math.inf if right is None else place[right] - (widths[right] + widths[box]) / 2 - apart
    return min(least, place[box]), max(most, place[box])


def _separated(wished: list[float], weights: list[float], widths: list[float], apart: float) -> list[float]:
    """The positions closest to those wished (weighted least squares) in order and with room, by pooling neighbours."""
    blocks: list[tuple[float, float, int]] = []  # blocks of adjacent boxes: mean, weight, size
    offset, offsets = 0.0, []
    for k, (wish, weight) in enumerate(zip(wished, weights, strict=True)):
        offset += (widths[k - 1] + widths[k]) / 2 + apart if k else 0.0
        offsets.append(offset)
        block = (wish - offset, weight, 1)
        while blocks and blocks[-1][0] > block[0]:
            mean, heavy, size = blocks.pop()
            both = heavy + block[1]
            block = ((mean * heavy + block[0] * block[1]) / both, both, size + block[2])
        blocks.append(block)
    means = [mean for mean, _, size in blocks for _ in range(size)]
    return [mean + at for mean, at in zip(means, offsets, strict=True)]
