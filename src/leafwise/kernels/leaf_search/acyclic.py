"""Ancestors and descendants as arcs are added, and what may no longer be tested."""

import numpy as np

from leafwise.kernels.compiling.jit import bare, inlined, jit
from leafwise.kernels.compiling.references import refer
from leafwise.kernels.compiling.types import Array
from leafwise.kernels.compiling.words import lowest
from leafwise.kernels.leaf_search.state import State


@bare
def _has(row: Array, which: int) -> bool:
    return row[which >> 6] >> np.uint64(which & 63) & np.uint64(1) != np.uint64(0)


@bare
def _add_to_all(rows: Array, which: Array, more: Array) -> None:
    """OR the bits `more` into each row whose bit is set in `which`."""
    for word in range(which.shape[0]):
        bits = which[word]
        while bits != np.uint64(0):
            row = rows[word * 64 + lowest(bits)]
            for k in range(more.shape[0]):
                row[k] |= more[k]
            bits &= bits - np.uint64(1)


@inlined
def _relate(parent: int, child: int, state: State) -> None:
    """Update ancestors and descendants for a new arc; the parent and its ancestors are to check their pending steps."""
    ancestors, descendants = state.ancestors, state.scoring.descendants
    above, below = state.spare_bits[0], state.spare_bits[1]
    for word in range(above.shape[0]):
        above[word], below[word] = ancestors[parent, word], descendants[child, word]
    above[parent >> 6] |= np.uint64(1) << np.uint64(parent & 63)
    below[child >> 6] |= np.uint64(1) << np.uint64(child & 63)
    _add_to_all(ancestors, below, above)
    _add_to_all(descendants, above, below)
    for target in range(state.nodes.shape[0]):
        if _has(above, target):
            state.may_be_invalid[target] = 1


@bare
def add_arc(parent: int, child: int, state: State) -> None:
    """Add an arc, and restrict the child to its parents once it has as many as allowed."""
    if not _has(state.ancestors[child], parent):
        _relate(parent, child, state)
    state.is_parent[child, parent] = 1
    state.nodes[child]["n_parents"] += 1
    if state.nodes[child]["n_parents"] >= state.rules.most_parents:
        for variable in range(state.nodes.shape[0]):
            state.scoring.allowed[child, variable] &= state.is_parent[child, variable]


@jit
def add_arcs(arcs: Array, state: State) -> None:
    """Add the arcs (rows of parent, child) that a search begins with."""
    state = refer(state)
    for k in range(arcs.shape[0]):
        add_arc(arcs[k, 0], arcs[k, 1], state)
