"""Regions of leaves: the assignments that reach a leaf, a union of disjoint boxes, encoded as words of one array.

A box gives, for each variable tested on the way, the set of states that it may still have; other variables are free. It
is encoded as the number of its entries, and for each entry, in order of variables, the variable and a bit mask of
states. The first word of the array is a box without entries: the whole space.
"""

from typing import NamedTuple

import numpy as np

from leafwise.kernels.compiling.jit import bare
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.compiling.words import popcount

MOST_JOINED = 2048  # boxes of a region: if there are more, none are combined
_PRIME = np.uint64(2147483647)


class RegionScratch(NamedTuple):
    """Scratch memory of one thread for regions."""

    tested: Array  # variables that some box restricts, sorted
    is_tested: Array  # by variable: whether it is among them
    shares: Array  # by state of each of these, variable after variable: its share of the space of assignments
    places: Array  # by variable: index of its first state in `shares`
    mask: Array  # a set of states
    starts: Array  # by box: index of its first word
    hashes: Array  # by box: its hash
    keys: Array  # hash table: keys
    table: Array  # hash table: numbers of boxes


def make_region_scratch(n_states: Array) -> RegionScratch:
    """Allocate scratch memory for any region."""
    n, places = len(n_states), np.append(0, np.cumsum(n_states))
    return RegionScratch(
        np.empty(n, np.int64),
        np.zeros(n, np.uint8),
        np.empty(places[n]),
        places,
        np.empty((n_states.max() + 63) // 64, np.uint64),
        np.empty(MOST_JOINED, np.int64),
        np.empty(MOST_JOINED, np.int64),
        np.empty(4 * MOST_JOINED, np.int64),
        np.empty(4 * MOST_JOINED, np.int64),
    )


@bare
def mask_words(n_states: Int) -> Int:
    """Return the number of words of a mask of n_states."""
    return (n_states + 63) // 64


@bare
def has_state(words: Array, at: Int, state: Int) -> bool:
    """Return whether the mask at index `at` contains the state."""
    return words[at + state // 64] >> np.uint64(state % 64) & np.uint64(1) != np.uint64(0)


@bare
def _count_states(words: Array, at: Int, n: Int) -> Int:
    total = np.int64(0)
    for word in range(at, at + n):
        total += popcount(words[word])
    return total


@bare
def _next_box(words: Array, at: Int, n_states: Array) -> Int:
    end = at + 1
    for _ in range(words[at]):
        end += 1 + mask_words(n_states[words[end]])
    return end


@bare
def _copy(words: Array, begin: Int, end: Int, to: Int) -> Int:
    """Copy words to an earlier or a disjoint place; return where the copy ends."""
    for k in range(end - begin):
        words[to + k] = words[begin + k]
    return to + end - begin


@bare
def cut_region(
    words: Array, at: Int, n_boxes: Int, variable: Int, mask: Array, n_states: Array, to: Int
) -> tuple[Int, Int]:
    """Write the part of a region in which the variable is in one of the states; return its number of boxes and its end.

    It needs at most one entry more for each box.
    """
    n, n_mask = 0, mask_words(n_states[variable])
    for _ in range(n_boxes):
        begin, at = at, _next_box(words, at, n_states)
        entry = begin + 1
        while entry < at and words[entry] < variable:
            entry += 1 + mask_words(n_states[words[entry]])
        is_there = entry < at and words[entry] == variable
        left = np.uint64(0)
        for k in range(n_mask):
            left |= mask[k] & (words[entry + 1 + k] if is_there else ~np.uint64(0))
        if left == np.uint64(0):
            continue
        end = _copy(words, begin, entry, to)
        words[to] += np.uint64(not is_there)
        words[end] = variable
        for k in range(n_mask):
            words[end + 1 + k] = mask[k] & (words[entry + 1 + k] if is_there else ~np.uint64(0))
        to = _copy(words, entry + 1 + n_mask if is_there else entry, at, end + 1 + n_mask)
        n += 1
    return n, to


@bare
def _volume(words: Array, at: Int, n_states: Array) -> float:
    """Return a box's share of all assignments."""
    entry, volume = at + 1, 1.0
    for _ in range(words[at]):
        r = n_states[words[entry]]
        volume *= _count_states(words, entry + 1, mask_words(r)) / r
        entry += 1 + mask_words(r)
    return volume


@bare
def share_of(words: Array, at: Int, n_boxes: Int, n_states: Array) -> float:
    """Return the region's share of all assignments."""
    share = 0.0
    for _ in range(n_boxes):
        share += _volume(words, at, n_states)
        at = _next_box(words, at, n_states)
    return share


@bare
def _list_tested(words: Array, at: Int, n_boxes: Int, n_states: Array, scratch: RegionScratch) -> Int:
    """List the variables that some box restricts, sorted; return their number."""
    n = 0
    for _ in range(n_boxes):
        entry = at + 1
        for _ in range(words[at]):
            variable = np.int64(words[entry])
            if not scratch.is_tested[variable]:
                scratch.is_tested[variable] = 1
                k = n
                while k > 0 and scratch.tested[k - 1] > variable:
                    scratch.tested[k] = scratch.tested[k - 1]
                    k -= 1
                scratch.tested[k] = variable
                n += 1
            entry += 1 + mask_words(n_states[variable])
        at = entry
    return n


@bare
def find_shares(words: Array, at: Int, n_boxes: Int, n_states: Array, scratch: RegionScratch) -> Int:
    """Compute for each state of each tested variable its share of all assignments; return the number of variables.

    `forget_tested` must be called before the next region.
    """
    shares, places = scratch.shares, scratch.places
    n = _list_tested(words, at, n_boxes, n_states, scratch)
    for k in range(n):
        for value in range(places[scratch.tested[k]], places[scratch.tested[k] + 1]):
            shares[value] = 0.0
    for _ in range(n_boxes):
        volume, entry = _volume(words, at, n_states), at + 1
        at = _next_box(words, at, n_states)
        for k in range(n):
            variable = scratch.tested[k]
            r, first = n_states[variable], places[variable]
            is_there = entry < at and words[entry] == variable
            part = volume / (_count_states(words, entry + 1, mask_words(r)) if is_there else r)
            for state in range(r):
                if not is_there or has_state(words, entry + 1, state):
                    shares[first + state] += part
            if is_there:
                entry += 1 + mask_words(r)
    return n


@bare
def forget_tested(n: Int, scratch: RegionScratch) -> None:
    """Reset what `find_shares` marked, before it is called for another region."""
    for k in range(n):
        scratch.is_tested[scratch.tested[k]] = 0


@bare
def _hash_entry(words: Array, entry: Int, n_states: Array) -> Int:
    value = np.int64(0)
    for k in range(1 + mask_words(n_states[words[entry]])):
        value = (value * 1000003 + np.int64(words[entry + k] % _PRIME)) % np.int64(_PRIME)
    return value


@bare
def _find_entry(words: Array, at: Int, variable: Int, n_states: Array) -> Int:
    entry = at + 1
    for _ in range(words[at]):
        if words[entry] == variable:
            return entry
        entry += 1 + mask_words(n_states[words[entry]])
    return np.int64(-1)


@bare
def _differ_elsewhere(words: Array, one: Int, two: Int, entry: Int, n_states: Array) -> bool:
    """Return whether two boxes differ in more than the states of the first one's entry."""
    if words[one] != words[two]:
        return True
    end, shift = _next_box(words, one, n_states), two - one
    free, last = entry, entry + mask_words(n_states[words[entry]])
    for k in range(one + 1, end):
        if words[k] != words[k + shift] and not free < k <= last:
            return True
    return False


@bare
def _join_along(words: Array, n: Int, variable: Int, n_states: Array, scratch: RegionScratch) -> Int:
    """Combine boxes that differ only in the states of this variable; return the number of boxes left."""
    starts, hashes, table, keys = scratch.starts, scratch.hashes, scratch.table, scratch.keys
    size, m, n_mask = np.int64(2), 0, mask_words(n_states[variable])
    while size < 2 * n:
        size *= 2
    for k in range(size):
        table[k] = -1
    for k in range(n):
        at = starts[k]
        entry = _find_entry(words, at, variable, n_states)
        is_joined = False
        if entry >= 0:
            key = hashes[k] - _hash_entry(words, entry, n_states)
            place = key & (size - 1)
            while table[place] >= 0 and keys[place] != key:
                place = (place + 1) & (size - 1)
            other = table[place]
            if other < 0:
                table[place], keys[place] = m, key
            elif not _differ_elsewhere(words, at, starts[other], entry, n_states):
                there = starts[other] + entry - at
                for word in range(1, 1 + n_mask):
                    words[there + word] |= words[entry + word]
                if _count_states(words, there + 1, n_mask) < n_states[variable]:
                    hashes[other] = key + _hash_entry(words, there, n_states)
                else:  # all states: the variable has become free
                    end, hashes[other] = _next_box(words, starts[other], n_states), key
                    _copy(words, there + 1 + n_mask, end, there)
                    words[starts[other]] -= np.uint64(1)
                is_joined = True
        if not is_joined:
            starts[m], hashes[m] = at, hashes[k]
            m += 1
    return m


@bare
def _pack_boxes(words: Array, n: Int, to: Int, n_states: Array, scratch: RegionScratch) -> Int:
    """Move the remaining boxes together; return where they end."""
    for k in range(n):
        to = _copy(words, scratch.starts[k], _next_box(words, scratch.starts[k], n_states), to)
    return to


@bare
def join_regions(
    words: Array, one: Int, n_one: Int, two: Int, n_two: Int, n_states: Array, to: Int, scratch: RegionScratch
) -> tuple[Int, Int]:
    """Write the union of two disjoint regions; return its number of boxes and its end.

    It needs no more words than the two. Boxes that differ only in the states of one variable are combined.
    """
    n, at = n_one + n_two, to
    for k in range(n):
        source = one if k < n_one else two
        end = _next_box(words, source, n_states)
        if n <= MOST_JOINED:
            scratch.starts[k], scratch.hashes[k], entry = at, np.int64(0), at + 1
        at = _copy(words, source, end, at)
        if n <= MOST_JOINED:
            while entry < at:
                scratch.hashes[k] += _hash_entry(words, entry, n_states)
                entry += 1 + mask_words(n_states[words[entry]])
        if k < n_one:
            one = end
        else:
            two = end
    if n > MOST_JOINED:
        return n, at
    n_tested = _list_tested(words, to, n, n_states, scratch)
    for k in range(n_tested):
        n = _join_along(words, n, scratch.tested[k], n_states, scratch)
    forget_tested(n_tested, scratch)
    return n, _pack_boxes(words, n, to, n_states, scratch)
