"""Contraction of products of tensors, pair by pair: compiled loops over one flat memory.

A program is a tree: tensors are leaves, then comes one result per step, each used once by a later step; the last is the
root, a scalar. Every step multiplies two tensors and sums over the dimensions that its result lacks:

    out[..] = sum over the rest of left[..] * right[..]

A dimension has an extent and a stride in each of the three tensors, 0 where a tensor lacks it; those of the result come
in the order of decreasing strides. The upward pass gives the value of the root. The downward pass gives, for every
tensor, the product of everything else (its environment), from which marginals are read. Tracing goes down with one
position at a time and finds the best, or a random, state of everything.

Values are kept near one: each tensor has a separate log scale. KIND determines what adding and multiplying mean.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels.compiling.jit import bare, jit, part
from leafwise.kernels.compiling.types import Int

SUM = 0  # sums of products
LOG_SUM = 1  # the same, with logs in memory: slow, but never underflows
MAX = 2  # maxima of sums of logs
THIN = 1e-150  # if all positive numbers are above this, and at most about one, no product of two underflows

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]


class Program(NamedTuple):
    """The steps, in order: step s makes tensor n_leaves + s."""

    left: Longs  # by step: a tensor
    right: Longs
    offset: Longs  # by tensor, and one more: its first index in memory
    first: Longs  # the dimensions of step s: first[s] to first[s + 1] - 1
    extent: Longs
    in_left: Longs  # strides
    in_right: Longs
    in_out: Longs


@part
def _add(kind: Int, one: float, other: float) -> float:
    if kind == SUM:
        return one + other
    if kind == MAX:
        return max(one, other)
    if one < other:
        one, other = other, one
    if other == -np.inf:
        return one
    return one + math.log1p(math.exp(other - one))


@part
def _multiply(
    kind: Int, a: Floats, b: Floats, out: Floats, extent: Longs, in_a: Longs, in_b: Longs, in_out: Longs
) -> None:
    """Write the product of a and b, summed over the dimensions that `out` lacks."""
    out[:] = 0.0 if kind == SUM else -np.inf
    inner = extent.shape[0] - 1
    if inner < 0:
        out[0] = a[0] * b[0] if kind == SUM else a[0] + b[0]
        return
    lines = extent[inner - 1] if inner > 0 else 1
    above = max(inner - 1, 0)
    state = np.zeros(above + 1, np.int64)
    x = y = z = 0
    while True:
        _add_lines(kind, a, b, out, lines, extent[inner], in_a, in_b, in_out, above, inner, x, y, z)
        d = inner - 2
        while d >= 0:
            state[d] += 1
            x += in_a[d]
            y += in_b[d]
            z += in_out[d]
            if state[d] < extent[d]:
                break
            x -= in_a[d] * extent[d]
            y -= in_b[d] * extent[d]
            z -= in_out[d] * extent[d]
            state[d] = 0
            d -= 1
        if d < 0:
            return


@bare
def _add_lines(
    kind: Int,
    a: Floats,
    b: Floats,
    out: Floats,
    lines: int,
    n: int,
    in_a: Longs,
    in_b: Longs,
    in_out: Longs,
    above: int,
    inner: int,
    x: int,
    y: int,
    z: int,
) -> None:
    """Add the products along the two innermost dimensions."""
    at_a, at_b, at_out = np.uint64(x), np.uint64(y), np.uint64(z)
    line_a, line_b, line_out = np.uint64(in_a[above]), np.uint64(in_b[above]), np.uint64(in_out[above])
    step_a, step_b, step_out = np.uint64(in_a[inner]), np.uint64(in_b[inner]), np.uint64(in_out[inner])
    if kind == SUM and in_out[inner] == 0 and 1 < n <= 4:  # most sums are this short
        for _ in range(lines):
            i_a, i_b = at_a + step_a, at_b + step_b
            total = a[at_a] * b[at_b] + a[i_a] * b[i_b]
            if n > 2:
                total += a[i_a + step_a] * b[i_b + step_b]
            if n > 3:
                total += a[i_a + step_a + step_a] * b[i_b + step_b + step_b]
            out[at_out] += total
            at_a += line_a
            at_b += line_b
            at_out += line_out
        return
    for _ in range(lines):
        i_a, i_b, i_out = at_a, at_b, at_out
        if kind == SUM and in_out[inner] == 0:
            total = 0.0
            for _ in range(n):
                total += a[i_a] * b[i_b]
                i_a += step_a
                i_b += step_b
            out[i_out] += total
        elif kind == SUM:
            for _ in range(n):
                out[i_out] += a[i_a] * b[i_b]
                i_a += step_a
                i_b += step_b
                i_out += step_out
        else:
            for _ in range(n):
                out[i_out] = _add(kind, out[i_out], a[i_a] + b[i_b])
                i_a += step_a
                i_b += step_b
                i_out += step_out
        at_a += line_a
        at_b += line_b
        at_out += line_out


@part
def _near_one(kind: Int, values: Floats) -> tuple[float, bool]:
    """Extract a power of two from the values; return its log, and whether no value is too small to continue with."""
    if kind != SUM:
        return 0.0, True
    largest, smallest = 0.0, np.inf
    for value in values:
        if value > 0:
            largest = max(largest, value)
            smallest = min(smallest, value)
    if largest == 0:  # impossible, or underflow: only logs can tell
        return 0.0, False
    exponent = math.frexp(largest)[1]
    if exponent == 0:
        return 0.0, smallest > THIN
    scale = 2.0**-exponent
    for i in range(values.shape[0]):
        values[i] *= scale
    return exponent * math.log(2.0), smallest * scale > THIN


@jit
def go_up(program: Program, memory: Floats, log_scale: Floats, kind: Int) -> bool:
    """Execute all steps; return whether no numbers are too small to be reliable.

    `log_scale` must contain the scales of the leaves.
    """
    n_leaves = program.offset.shape[0] - 1 - program.left.shape[0]
    offset = program.offset
    trusted = True
    if kind == SUM:
        for value in memory[: offset[n_leaves]]:
            trusted = trusted and not 0 < value < THIN
    for s in range(program.left.shape[0]):
        left, right, out = program.left[s], program.right[s], n_leaves + s
        dims = slice(program.first[s], program.first[s + 1])
        made = memory[offset[out] : offset[out + 1]]
        _multiply(
            kind,
            memory[offset[left] : offset[left + 1]],
            memory[offset[right] : offset[right + 1]],
            made,
            program.extent[dims],
            program.in_left[dims],
            program.in_right[dims],
            program.in_out[dims],
        )
        taken, fine = _near_one(kind, made)
        trusted = trusted and fine
        log_scale[out] = log_scale[left] + log_scale[right] + taken
    return trusted


@jit
def go_up_by_kinds(program: Program, memory: Floats, kinds: Longs) -> None:
    """Execute all steps, each of its own kind, with logs in memory: sums first, then maxima of what remains."""
    n_leaves = program.offset.shape[0] - 1 - program.left.shape[0]
    offset = program.offset
    for s in range(program.left.shape[0]):
        left, right, out = program.left[s], program.right[s], n_leaves + s
        dims = slice(program.first[s], program.first[s + 1])
        _multiply(
            kinds[s],
            memory[offset[left] : offset[left + 1]],
            memory[offset[right] : offset[right + 1]],
            memory[offset[out] : offset[out + 1]],
            program.extent[dims],
            program.in_left[dims],
            program.in_right[dims],
            program.in_out[dims],
        )


@jit
def go_down(program: Program, memory: Floats, read: Longs, kind: Int, around: Floats) -> bool:
    """Write the environment of each leaf in `read`, up to a factor, laid out like memory; return if reliable."""
    n_leaves = program.offset.shape[0] - 1 - program.left.shape[0]
    offset = program.offset
    trusted = True
    wanted = np.zeros(offset.shape[0] - 1, np.bool_)
    wanted[read] = True
    for s in range(program.left.shape[0]):
        wanted[n_leaves + s] = wanted[program.left[s]] or wanted[program.right[s]]
    around[offset[-2] : offset[-1]] = 1.0 if kind == SUM else 0.0
    for s in range(program.left.shape[0] - 1, -1, -1):
        left, right, out = program.left[s], program.right[s], n_leaves + s
        dims = slice(program.first[s], program.first[s + 1])
        above = around[offset[out] : offset[out + 1]]
        extent, in_left, in_right = program.extent[dims], program.in_left[dims], program.in_right[dims]
        for side in range(2):
            this, other = (left, right) if side == 0 else (right, left)
            in_this, in_other = (in_left, in_right) if side == 0 else (in_right, in_left)
            if wanted[this]:
                made = around[offset[this] : offset[this + 1]]
                beside = memory[offset[other] : offset[other + 1]]
                _multiply(kind, above, beside, made, extent, program.in_out[dims], in_other, in_this)
                trusted = _near_one(kind, made)[1] and trusted
    return trusted


@jit
def joint_with(program: Program, memory: Floats, read: Longs, known: Floats, totals: Floats) -> Floats:
    """Return for each row of weights its sum of products, distributed over the states of the leaves `read`.

    A row contains the weights of these leaves, one after another, which replace their contents. `totals` is set to the
    sums.
    """
    shares = np.zeros(known.shape)
    around = np.empty(memory.shape[0])
    log_scale = np.zeros(program.offset.shape[0] - 1)
    for row in range(known.shape[0]):
        place = 0
        for leaf in read:
            for at in range(program.offset[leaf], program.offset[leaf + 1]):
                memory[at] = known[row, place]
                place += 1
        go_up(program, memory, log_scale, np.int64(SUM))
        totals[row] = memory[-1] * math.exp(log_scale[-1])
        if totals[row] == 0:
            continue
        go_down(program, memory, read, np.int64(SUM), around)
        place = 0
        for leaf in read:
            begin, end = program.offset[leaf], program.offset[leaf + 1]
            total = 0.0
            for at in range(begin, end):
                total += around[at] * memory[at]
            for at in range(begin, end):
                shares[row, place] = around[at] * memory[at] / total * totals[row]
                place += 1
    return shares


@jit
def trace(program: Program, memory: Floats, kind: int, uniform: Floats) -> Longs:
    """Return a position in every tensor, for each row of uniform numbers, one per step: (n_rows, n_tensors).

    Positions are drawn in proportion to the product of all leaves; with MAX the largest product is taken.
    """
    n_tensors, n_steps = program.offset.shape[0] - 1, program.left.shape[0]
    place = np.zeros((uniform.shape[0], n_tensors), np.int64)
    for s in range(n_steps - 1, -1, -1):
        left, right, out = program.left[s], program.right[s], n_tensors - n_steps + s
        dims = slice(program.first[s], program.first[s + 1])
        extent, in_left, in_right, in_out = (
            program.extent[dims],
            program.in_left[dims],
            program.in_right[dims],
            program.in_out[dims],
        )
        a = memory[program.offset[left] : program.offset[left + 1]]
        b = memory[program.offset[right] : program.offset[right + 1]]
        n_free = 1
        for d in range(extent.shape[0]):
            if in_out[d] == 0:
                n_free *= extent[d]
        weights = np.empty(n_free)
        for row in range(uniform.shape[0]):
            x, y = _under(place[row, out], extent, in_left, in_right, in_out)
            for free in range(n_free):
                dx, dy = _beside(free, extent, in_left, in_right, in_out)
                weights[free] = a[x + dx] * b[y + dy] if kind == SUM else a[x + dx] + b[y + dy]
            dx, dy = _beside(_chosen(weights, kind, uniform[row, s]), extent, in_left, in_right, in_out)
            place[row, left] = x + dx
            place[row, right] = y + dy
    return place


@part
def _under(place: int, extent: Longs, in_left: Longs, in_right: Longs, in_out: Longs) -> tuple[int, int]:
    """Return where the part of the operands begins that was summed into one place of the result."""
    x = y = 0
    for d in range(extent.shape[0]):
        if in_out[d] > 0:
            digit = place // in_out[d]
            place -= digit * in_out[d]
            x += digit * in_left[d]
            y += digit * in_right[d]
    return x, y


@part
def _beside(free: int, extent: Longs, in_left: Longs, in_right: Longs, in_out: Longs) -> tuple[int, int]:
    """Return the offsets, from the first, of a combination of the states summed over."""
    x = y = 0
    for d in range(extent.shape[0]):
        if in_out[d] == 0:
            digit = free % extent[d]
            free //= extent[d]
            x += digit * in_left[d]
            y += digit * in_right[d]
    return x, y


@part
def _chosen(weights: Floats, kind: int, uniform: float) -> int:
    if kind == MAX:
        return int(np.argmax(weights))
    if kind == LOG_SUM:
        weights = np.exp(weights - weights.max())
    left = uniform * weights.sum()
    last = 0
    for i in range(weights.shape[0]):
        if weights[i] > 0:
            last = i
            if left < weights[i]:
                break
        left -= weights[i]
    return last
