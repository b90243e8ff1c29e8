"""Importance sampling: cases are drawn from a proposal distribution in each leaf, and weighted by the ratio.

Compiled loops over the flat form of a part of a network; random numbers are arguments.
"""

import numpy as np

from leafwise.kernels.compiling.jit import jit
from leafwise.kernels.questions.routes import Codes, Floats, Ints, find_leaves, state_at
from leafwise.kernels.questions.sampling import FlatPart


@jit
def draw_proposed(
    codes: Codes, flat: FlatPart, cumulative: Floats, log_ratio: Floats, uniform: Floats, log_weight: Floats
) -> None:
    """Fill the rows of all variables that are not known, and add to each case's log weight the ratios of its leaves.

    `cumulative` and `log_ratio` have the layout of the leaves' distributions; for a known variable the ratio is the log
    of its probability.
    """
    row = 0
    leaves = np.empty(codes.shape[1], np.int32)
    for g in range(flat.root.shape[0]):
        find_leaves(codes, flat.test, flat.first, flat.child, flat.root[g], 0, leaves)
        if not flat.known[g]:
            for case in range(codes.shape[1]):
                begin = flat.first[leaves[case]]
                codes[g, case] = state_at(cumulative, begin, flat.n_states[g], uniform[row, case])
            row += 1
        for case in range(codes.shape[1]):
            log_weight[case] += log_ratio[flat.first[leaves[case]] + codes[g, case]]


@jit
def count_leaves(codes: Codes, flat: FlatPart, weight: Floats, counts: Floats) -> None:
    """Add each case's weight to its state in each of its leaves; counts have the layout of the distributions."""
    leaves = np.empty(codes.shape[1], np.int32)
    for g in range(flat.root.shape[0]):
        find_leaves(codes, flat.test, flat.first, flat.child, flat.root[g], 0, leaves)
        for case in range(codes.shape[1]):
            counts[flat.first[leaves[case]] + codes[g, case]] += weight[case]


@jit
def add_logs(codes: Codes, flat: FlatPart, log_probability: Floats, logs: Floats) -> None:
    """Add to each case's log the log probability of each of its states in its leaf."""
    leaves = np.empty(codes.shape[1], np.int32)
    for g in range(flat.root.shape[0]):
        find_leaves(codes, flat.test, flat.first, flat.child, flat.root[g], 0, leaves)
        for case in range(codes.shape[1]):
            logs[case] += log_probability[flat.first[leaves[case]] + codes[g, case]]


@jit
def climb(codes: Codes, flat: FlatPart, log_probability: Floats, free: Ints) -> float:
    """Change one variable of a case at a time while that makes it more probable; return the final log probability."""
    leaves = np.empty(1, np.int32)
    best = -np.inf
    while True:
        before = best
        for v in free:
            present = codes[v, 0]
            chosen = present
            for state in range(flat.n_states[v]):
                codes[v, 0] = state
                total = 0.0
                for g in range(flat.root.shape[0]):
                    find_leaves(codes, flat.test, flat.first, flat.child, flat.root[g], 0, leaves)
                    total += log_probability[flat.first[leaves[0]] + codes[g, 0]]
                if total > best + 1e-12:
                    best, chosen = total, state
            codes[v, 0] = chosen
        if not best > before:
            return best
