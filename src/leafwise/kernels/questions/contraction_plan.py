"""Compiled planning of a contraction: from an order of elimination to steps, each a product of two tensors.

In every tensor the index that is eliminated last is outermost, and the one that is eliminated next is innermost, so
lists of tensors by their innermost index are the only bookkeeping needed. Tensors that contain the next index are
multiplied, the smallest first. An index is summed over as soon as no other tensor contains it.
"""

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels.compiling.jit import jit, part
from leafwise.kernels.questions.contraction import Program

Longs = NDArray[np.int64]
Floats = NDArray[np.float64]


@part
def _grown(array: Longs, length: int) -> Longs:
    if length <= array.shape[0]:
        return array
    new = np.empty((max(length, 2 * array.shape[0]), *array.shape[1:]), np.int64)
    new[: array.shape[0]] = array
    return new


@part
def _united(
    held: Longs, begin: Longs, rank: Longs, holders: Longs, one: int, other: int, union: Longs
) -> tuple[int, int]:
    """Write the indices of the product of two tensors, first those kept, then those summed over; return (all, kept)."""
    a, b, n = begin[one], begin[other], 0
    while a < begin[one + 1] or b < begin[other + 1]:
        rank_a = rank[held[a]] if a < begin[one + 1] else -1
        rank_b = rank[held[b]] if b < begin[other + 1] else -1
        index = held[a] if rank_a >= rank_b else held[b]
        holders[index] -= rank_a == rank_b
        a += rank_a >= rank_b
        b += rank_b >= rank_a
        union[n] = index
        n += 1
    n_kept = 0
    for place in range(n):  # stable partition: indices that are kept move to the front
        index = union[place]
        if holders[index] > 1:
            for at in range(place, n_kept, -1):
                union[at] = union[at - 1]
            union[n_kept] = index
            n_kept += 1
        else:
            holders[index] = 0
    return n, n_kept


@part
def _stride(indices: Longs, extent: Longs, index: int) -> int:
    """Return the stride of an index in a tensor; 0 if it does not have that index."""
    stride = 1
    for place in range(indices.shape[0] - 1, -1, -1):
        if indices[place] == index:
            return stride
        stride *= extent[indices[place]]
    return 0


@part
def _lay_out(one: Longs, other: Longs, kept: Longs, union: Longs, extent: Longs, rows: Longs) -> int:
    """Write extents and strides of all dimensions; dimensions that are contiguous in all three tensors are merged."""
    n = 0
    for index in union:
        strides = _stride(one, extent, index), _stride(other, extent, index), _stride(kept, extent, index)
        joins = n > 0
        for k in range(3):
            joins = joins and rows[n - 1, k + 1] == strides[k] * extent[index]
        n += not joins
        rows[n - 1, 0] = extent[index] * (rows[n - 1, 0] if joins else 1)
        for k in range(3):
            rows[n - 1, k + 1] = strides[k]
    return n


@part
def _arrange(
    first: Longs, member: Longs, rank: Longs, extent: Longs, begin: Longs, held: Longs, size: Longs, holders: Longs
) -> None:
    """Write the indices of each factor, the one eliminated last first, and count sizes and holders."""
    for tensor in range(first.shape[0] - 1):
        end = begin[tensor]
        for place in range(first[tensor], first[tensor + 1]):
            index = member[place]
            at = end
            while at > begin[tensor] and rank[held[at - 1]] < rank[index]:
                held[at] = held[at - 1]
                at -= 1
            held[at] = index
            end += 1
            size[tensor] *= extent[index]
            holders[index] += 1
        begin[tensor + 1] = end


@part
def _listed(tensor: int, follows: Longs, size: Longs, bucket: Longs) -> int:
    """Write the tensors of a list, ordered by size, then by age; return how many."""
    n = 0
    while tensor >= 0:
        at = n
        while at > 0 and (size[bucket[at - 1]], bucket[at - 1]) > (size[tensor], tensor):
            bucket[at] = bucket[at - 1]
            at -= 1
        bucket[at] = tensor
        n += 1
        tensor = follows[tensor]
    return n


@part
def _enlist(tensor: int, held: Longs, begin: Longs, follows: Longs, by_last: Longs) -> None:
    """Put a tensor into the list of its innermost index; tensors without indices are in the last list."""
    last = held[begin[tensor + 1] - 1] if begin[tensor + 1] > begin[tensor] else by_last.shape[0] - 1
    follows[tensor], by_last[last] = by_last[last], tensor


@jit
def pair_up(first: Longs, member: Longs, extent: Longs, order: Longs, operations: Floats) -> Longs:
    """Return the packed steps that eliminate indices in this order, for `program_of`; add their multiplications.

    Factor f has the indices member[first[f]:first[f + 1]]. The number of multiplications is added to operations[0].
    """
    n_factors, n_indices = first.shape[0] - 1, extent.shape[0]
    most = 2 * n_factors + n_indices + 3
    rank = np.empty(n_indices, np.int64)
    rank[order] = np.arange(n_indices)
    begin, size = np.zeros(most + 1, np.int64), np.ones(most, np.int64)  # by tensor; indices are in `held`
    held, holders = np.empty(4 * member.shape[0] + 64, np.int64), np.zeros(n_indices, np.int64)
    _arrange(first, member, rank, extent, begin, held, size, holders)
    by_last, follows = np.full(n_indices + 1, -1), np.empty(most, np.int64)
    for tensor in range(n_factors):
        _enlist(tensor, held, begin, follows, by_last)
    begin[n_factors + 1] = begin[n_factors]  # the unit has no indices
    left, right = np.empty(most, np.int64), np.empty(most, np.int64)
    first_row, rows = np.zeros(most + 1, np.int64), np.empty((8 * n_factors + 64, 4), np.int64)
    bucket, union = np.empty(n_factors + 1, np.int64), np.empty(n_indices, np.int64)
    s, made = 0, n_factors + 1
    for number in range(n_indices + 1):
        index = order[number] if number < n_indices else n_indices
        n_listed = _listed(by_last[index], follows, size, bucket)
        if n_listed == 0 and index < n_indices:
            continue
        one = bucket[0] if n_listed > 0 else n_factors
        for k in range(1, max(n_listed, 2)):
            other = bucket[k] if k < n_listed else n_factors
            held, rows = _grown(held, begin[made] + n_indices), _grown(rows, first_row[s] + n_indices)
            n_union, n_kept = _united(held, begin, rank, holders, one, other, union)
            begin[made + 1] = begin[made] + n_kept
            held[begin[made] : begin[made + 1]] = union[:n_kept]
            size[made] = np.prod(extent[union[:n_kept]])
            operations[0] += np.prod(extent[union[:n_union]].astype(np.float64))
            first_row[s + 1] = first_row[s] + _lay_out(
                held[begin[one] : begin[one + 1]],
                held[begin[other] : begin[other + 1]],
                union[:n_kept],
                union[:n_union],
                extent,
                rows[first_row[s] :],
            )
            left[s], right[s] = one, other
            one = made
            s, made = s + 1, made + 1
        if index < n_indices:
            _enlist(one, held, begin, follows, by_last)
    offset = np.zeros(made + 1, np.int64)
    offset[1:] = np.cumsum(size[:made])
    sizes, columns = np.array([s, made, first_row[s]]), rows[: first_row[s]].T.copy().ravel()
    return np.concatenate((sizes, left[:s], right[:s], offset, first_row[: s + 1], columns))


def program_of(packed: Longs) -> Program:
    """Unpack the result of `pair_up`."""
    n_steps, n_tensors, n_rows = packed[:3].tolist()
    sizes = (n_steps, n_steps, n_tensors + 1, n_steps + 1, *4 * (n_rows,))
    return Program(*np.split(packed[3:], np.cumsum(sizes)[:-1]))
