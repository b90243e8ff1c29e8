"""Answers to one question for many states of the same known variables: compiled, row after row.

A question is a list of products (as in `contraction`: two tensors, summed over the dimensions that the result lacks) in
one flat memory: those on the way up, whose root is the probability of the evidence, then those on the way down to the
targets. What does not depend on the known variables is computed in advance; each row fills the other leaves and
computes the remaining products.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels.compiling.jit import jit, part
from leafwise.kernels.compiling.references import refer
from leafwise.kernels.questions.contraction import SUM, _multiply, _near_one

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]


class Products(NamedTuple):
    """Products, one after the other: where operands and result begin and end, and the dimensions of each."""

    place: Longs  # (n, 6): begin and end of left, right, out
    first: Longs  # the dimensions of product k: first[k] to first[k + 1] - 1
    extent: Longs
    in_left: Longs  # strides
    in_right: Longs
    in_out: Longs


class Question(NamedTuple):
    """What depends on the known variables: how leaves are filled, the products, and what is read."""

    products: Products
    n_up: int  # number of products that lead up to the root
    root: int  # index of the root in memory
    # leaves that are slices of a table in `base`: their offset depends on the states of known variables
    slices: Longs  # (n, 4): begin and end in memory, begin in base, index of its first stride
    strides: Longs  # (n, 2): column of a known variable in the rows, and the stride of its states
    # leaves that are evaluated by walking down a decision graph, for every assignment of its free variables
    walks: Longs  # (n, 5): begin in memory, root, index of its first axis, own variable, own stride
    axes: Longs  # (n, 2): a free variable, and its stride
    test: Longs
    first: Longs  # a test: index in `child` of its first child; a leaf: index in `base` of its distribution
    child: Longs
    told: Longs  # the known variables, in the order of the rows
    state_of: Longs  # possible states of variable v: states[state_of[v]:state_of[v + 1]]
    states: Longs
    reads: Longs  # (n, 2): begin and end in memory of the distribution of each target
    base: Floats


def pack(question: Question) -> Longs:
    """Pack all integers of a question into one array, which is fast to pass to a compiled function."""
    columns = [*question.products, *question[3:-1]]
    ends = np.cumsum([column.size for column in columns]) + len(columns) + 2
    flat = [np.array([question.n_up, question.root]), ends, *(column.ravel() for column in columns)]
    return np.concatenate(flat).astype(np.int64)


@part
def _unpack(packed: Longs, base: Floats) -> Question:
    ends = packed[2:19]
    return Question(
        Products(
            packed[19 : ends[0]].reshape((-1, 6)),
            packed[ends[0] : ends[1]],
            packed[ends[1] : ends[2]],
            packed[ends[2] : ends[3]],
            packed[ends[3] : ends[4]],
            packed[ends[4] : ends[5]],
        ),
        packed[0],
        packed[1],
        packed[ends[5] : ends[6]].reshape((-1, 4)),
        packed[ends[6] : ends[7]].reshape((-1, 2)),
        packed[ends[7] : ends[8]].reshape((-1, 5)),
        packed[ends[8] : ends[9]].reshape((-1, 2)),
        packed[ends[9] : ends[10]],
        packed[ends[10] : ends[11]],
        packed[ends[11] : ends[12]],
        packed[ends[12] : ends[13]],
        packed[ends[13] : ends[14]],
        packed[ends[14] : ends[15]],
        packed[ends[15] : ends[16]].reshape((-1, 2)),
        base,
    )


@part
def _multiply_all(products: Products, begin: int, end: int, memory: Floats, totals: Floats) -> bool:
    """Compute products begin to end - 1; add logs of extracted scales to totals[0]; return whether none underflowed."""
    for k in range(begin, end):
        place = products.place[k]
        dims = slice(products.first[k], products.first[k + 1])
        made = memory[place[4] : place[5]]
        _multiply(
            SUM,
            memory[place[0] : place[1]],
            memory[place[2] : place[3]],
            made,
            products.extent[dims],
            products.in_left[dims],
            products.in_right[dims],
            products.in_out[dims],
        )
        taken, fine = _near_one(SUM, made)
        totals[0] += taken
        if not fine:
            return False
    return True


@jit
def multiply_all(products: Products, memory: Floats, totals: Floats) -> bool:
    """Compute all products; add the logs of extracted scales to totals[0]; return whether none underflowed."""
    return _multiply_all(products, 0, products.place.shape[0], memory, totals)


@part
def _fill_slices(question: Question, row: Longs, memory: Floats) -> None:
    for k in range(question.slices.shape[0] - 1):
        begin, end, at, stride = question.slices[k]
        for s in range(stride, question.slices[k + 1, 3]):
            at += row[question.strides[s, 0]] * question.strides[s, 1]
        for place in range(begin, end):
            memory[place] = question.base[at]
            at += 1


@part
def _fill_walk(question: Question, k: int, case: Longs, digit: Longs, memory: Floats) -> None:
    begin, root, first_axis, own, own_stride = question.walks[k]
    end_axis = question.walks[k + 1, 2]
    own_begin = question.state_of[own]
    n_own = question.state_of[own + 1] - own_begin if own_stride > 0 else 1
    for axis in range(first_axis, end_axis):
        variable = question.axes[axis, 0]
        digit[variable] = 0
        case[variable] = question.states[question.state_of[variable]]
    at = begin
    while True:
        node = root
        while question.test[node] >= 0:
            node = question.child[question.first[node] + case[question.test[node]]]
        row = question.first[node]
        if own_stride > 0:
            for state in range(n_own):
                memory[at + state * own_stride] = question.base[row + question.states[own_begin + state]]
        else:
            memory[at] = question.base[row + case[own]]
        axis = end_axis - 1
        while axis >= first_axis:
            variable, stride = question.axes[axis]
            digit[variable] += 1
            at += stride
            if digit[variable] < question.state_of[variable + 1] - question.state_of[variable]:
                case[variable] = question.states[question.state_of[variable] + digit[variable]]
                break
            at -= stride * digit[variable]
            digit[variable] = 0
            case[variable] = question.states[question.state_of[variable]]
            axis -= 1
        if axis < first_axis:
            return


@jit
def answer(packed: Longs, base: Floats, template: Floats, rows: Longs, shares: Floats, log_evidence: Floats) -> None:
    """Compute for each row of states the distribution of each target, and the log of the evidence up to a constant.

    `template` is the memory before any row. If numbers are too small to be reliable, the log is NaN.
    """
    _answer(_unpack(packed, base), template.copy(), rows, shares, log_evidence)


@part
def _answer(asked: Question, memory: Floats, rows: Longs, shares: Floats, log_evidence: Floats) -> None:
    question = refer(asked)
    case = question.states[question.state_of[:-1]].copy()
    digit = np.zeros(case.shape[0], np.int64)
    totals = np.zeros(1)
    products = question.products
    n_products = products.place.shape[0]
    for r in range(rows.shape[0]):
        for t in range(question.told.shape[0]):
            case[question.told[t]] = rows[r, t]
        _fill_slices(question, rows[r], memory)
        for k in range(question.walks.shape[0] - 1):
            _fill_walk(question, k, case, digit, memory)
        totals[0] = 0.0
        log_evidence[r] = np.nan
        if _multiply_all(products, 0, question.n_up, memory, totals):
            log_probability = math.log(memory[question.root]) + totals[0]
            if _multiply_all(products, question.n_up, n_products, memory, totals):
                log_evidence[r] = log_probability
                _read(question.reads, memory, shares[r])


@part
def _read(reads: Longs, memory: Floats, shares: Floats) -> None:
    """Write the distributions that are in memory, normalized."""
    place = 0
    for t in range(reads.shape[0]):
        total = 0.0
        for at in range(reads[t, 0], reads[t, 1]):
            total += memory[at]
        for at in range(reads[t, 0], reads[t, 1]):
            shares[place] = memory[at] / total
            place += 1
