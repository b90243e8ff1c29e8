"""Force-directed layout of networks too large for rows: linked boxes attract, all boxes repel.

Small components are laid out in rows.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leafwise.report.layout import Arc, Layout, Point, Size, layered, n_bends

_FEW, _MOST_BENDS = 120, 2500  # the most boxes and bends of a layered picture
_PAIRS = 2**17  # pairs at a time, so that they stay in the cache
Floats = NDArray[np.float32]


def is_small(n: int, arcs: Sequence[Arc]) -> bool:
    """Whether a layered picture is readable."""
    return n <= _FEW and n_bends(n, arcs) <= _MOST_BENDS


def arranged(sizes: Sequence[Size], arcs: Sequence[Arc], *, apart: float = 20, below: float = 44) -> Layout:
    """The layout of each component, in rows or as a map, side by side, the largest first.

    >>> drawn = arranged([(40, 20)] * 3, [(0, 1)])
    >>> drawn.centres
    ((20.0, 10.0), (20.0, 74.0), (20.0, 124.0))
    """
    centres: list[Point] = [(0.0, 0.0)] * len(sizes)
    routes: list[tuple[Point, ...]] = [()] * len(arcs)
    parts = _parts(len(sizes), arcs)
    links: list[list[int]] = [[] for _ in parts]
    part_of = {box: number for number, part in enumerate(parts) for box in part}
    for number, (start, _) in enumerate(arcs):
        links[part_of[start]].append(number)
    drawn = [
        _part([sizes[box] for box in part], _renumbered(part, [arcs[k] for k in links[number]]), apart, below)
        for number, part in enumerate(parts)
    ]
    corners, width, height = _shelves([(layout.width, layout.height) for layout in drawn])
    for part, mine, layout, (left, top) in zip(parts, links, drawn, corners, strict=True):
        for box, (x, y) in zip(part, layout.centres, strict=True):
            centres[box] = (x + left, y + top)
        for arc, route in zip(mine, layout.routes, strict=True):
            routes[arc] = tuple((x + left, y + top) for x, y in route)
    return Layout(tuple(centres), tuple(routes), width, height)


def _parts(n: int, arcs: Sequence[Arc]) -> list[list[int]]:
    """The connected components, the largest first."""
    linked: list[list[int]] = [[] for _ in range(n)]
    for start, end in arcs:
        linked[start].append(end)
        linked[end].append(start)
    seen = [False] * n
    parts = []
    for first in range(n):
        part = [] if seen[first] else [first]
        seen[first] = True
        for box in part:  # grows during the loop
            new = [other for other in dict.fromkeys(linked[box]) if not seen[other]]
            for other in new:
                seen[other] = True
            part += new
        if part:
            parts.append(sorted(part))
    return sorted(parts, key=len, reverse=True)


def _renumbered(part: Sequence[int], arcs: Sequence[Arc]) -> list[Arc]:
    place = {box: number for number, box in enumerate(part)}
    return [(place[start], place[end]) for start, end in arcs]


def _part(sizes: Sequence[Size], arcs: Sequence[Arc], apart: float, below: float) -> Layout:
    return layered(sizes, arcs, apart=apart, below=below) if is_small(len(sizes), arcs) else as_map(sizes, arcs)


def as_map(sizes: Sequence[Size], arcs: Sequence[Arc]) -> Layout:
    """All boxes as a map with straight arcs."""
    wide = np.array(sizes, np.float32) + np.array([14, 16], np.float32)
    places = _apart(_spread(len(sizes), arcs), wide)
    places -= (places - wide / 2).min(axis=0)
    extent = (places + wide / 2).max(axis=0)
    centres = [(float(x), float(y)) for x, y in places]
    return Layout(tuple(centres), tuple(() for _ in arcs), float(extent[0]), float(extent[1]))


def _spread(n: int, arcs: Sequence[Arc]) -> Floats:
    """Positions under attraction proportional to length and repulsion inverse to distance, as in ForceAtlas2.

    Boxes with many links repel more, so hubs stand free. The steps become shorter, so that the map comes to rest.
    """
    start, end = np.array(arcs, np.int64).reshape(-1, 2).T
    degree = np.bincount(np.concatenate([start, end]), minlength=n).astype(np.float32)
    mass = degree + 1
    random = np.random.default_rng(1)
    places: Floats = (random.standard_normal((n, 2)) * np.sqrt(n)).astype(np.float32)
    n_steps = int(np.clip(4e8 / n**2, 60, 300))
    for step in range(n_steps):
        force = _pushes(places, mass)
        pull = places[end] - places[start]
        strength = 1 / np.sqrt(np.minimum(degree[start], degree[end]))[:, None]
        np.add.at(force, start, pull * strength)
        np.add.at(force, end, -pull * strength)
        force -= 0.02 * mass[:, None] * places / np.float32(np.sqrt(n))
        length = np.linalg.norm(force, axis=1, keepdims=True)
        most = np.float32(np.sqrt(n) * 0.6 * (1 - step / n_steps) + 0.01)
        places += force * np.minimum(0.25 / mass[:, None] ** 0.5, most / np.maximum(length, 1e-9))
        places -= places.mean(axis=0)
    return places


def _pushes(places: Floats, mass: Floats) -> Floats:
    """For each box, the sum over all others of mass · mass / distance, away from them."""
    square, ones = (places**2).sum(axis=1, keepdims=True), np.ones_like(mass)[:, None]
    left, right = (
        np.hstack([places, square, ones]),
        np.hstack([-2 * places, ones, square]).T,
    )  # their product: distance²
    weighed = np.hstack([places, ones]) * mass[:, None]
    sums = np.empty((len(places), 3), np.float32)
    for begin in range(0, len(places), rows := max(1, _PAIRS // len(places))):
        closeness = left[begin : begin + rows] @ right
        np.maximum(closeness, 0.05, out=closeness)
        np.reciprocal(closeness, out=closeness)
        np.matmul(closeness, weighed, out=sums[begin : begin + rows])
    return mass[:, None] * (places * sums[:, 2:] - sums[:, :2])


def _apart(places: Floats, wide: Floats) -> Floats:
    """The map, scaled up, with overlapping boxes pushed apart along the shorter way."""
    places = places * (np.float32(0.7) * wide.mean(axis=0) / max(float(np.median(_nearest(places))), 1e-3))
    for _ in range(200):
        order = np.argsort(places[:, 1], kind="stable")
        moved = np.zeros_like(places)
        for near in range(1, len(places)):  # pairs of boxes this many places apart
            upper, lower = order[:-near], order[near:]
            gap = places[lower] - places[upper]
            if (gap[:, 1] >= wide[:, 1].max()).all():
                break
            room = (wide[upper] + wide[lower]) / 2 - np.abs(gap)
            hit = np.flatnonzero((room > 0).all(axis=1))
            along = (room[hit, 1] < room[hit, 0]).astype(np.int64)
            push = room[hit, along] * np.where(gap[hit, along] < 0, -1, 1) / 2
            np.add.at(moved, (lower[hit], along), push)
            np.add.at(moved, (upper[hit], along), -push)
        places = places + np.float32(0.9) * moved
        if np.abs(moved).max() < 1:
            break
    return places


def _nearest(places: Floats) -> Floats:
    """The distance from each box to the nearest other one."""
    out = np.empty(len(places), np.float32)
    for k, place in enumerate(places):
        distance = ((places - place) ** 2).sum(axis=1)
        distance[k] = np.inf
        out[k] = np.sqrt(distance.min())
    return out


def _shelves(sizes: Sequence[Size], gap: float = 30) -> tuple[list[Point], float, float]:
    """Corners of boxes placed on shelves in order, the whole about 3 by 2."""
    area = sum((width + gap) * (height + gap) for width, height in sizes)
    shelf = max((area * 1.5) ** 0.5, *(width for width, _ in sizes), 1.0)
    corners: list[Point] = []
    x = y = tallest = widest = 0.0
    for width, height in sizes:
        if x and (x + width > shelf or (len(corners) == 1 and x > shelf / 2)):
            x, y, tallest = 0.0, y + tallest + gap, 0.0
        corners.append((x, y))
        widest, tallest = max(widest, x + width), max(tallest, height)
        x += width + gap
    return corners, widest, y + tallest
