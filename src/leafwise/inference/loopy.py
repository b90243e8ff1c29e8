"""Loopy belief propagation: messages between graphs and variables until they converge.

Exact if the arcs form no loop, otherwise often close, without a known error.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leafwise.data.table import many
from leafwise.inference.evidence import Weights
from leafwise.inference.exact import IMPOSSIBLE, Impossible
from leafwise.inference.factors import Scope, ways_of
from leafwise.kernels.questions import loopy as kernel
from leafwise.network import Network

_TOLERANCE = 1e-8  # smaller changes of a message count as convergence
_MOST_SWEEPS = 200
_FEW_SWEEPS = 10  # if the messages are only used as a hint
_PATIENCE = 30  # sweeps after which messages are damped by one half, to help convergence
_MOST_WAYS = 2**22  # the most numbers for all ways through a graph

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Beliefs:
    """The estimated distribution of each target, and whether the messages converged."""

    distributions: tuple[Floats, ...]
    n_sweeps: int
    settled: bool

    @property
    def note(self) -> str:
        """A note on how reliable the result is."""
        rounds = many(self.n_sweeps, "round")
        how = f"settled after {rounds}" if self.settled else f"did not settle in {rounds}"
        return f"loopy belief propagation {how}: no error is known"


def propagate(network: Network, targets: Sequence[int], weights: Weights, *, seconds: float | None = None) -> Beliefs:
    """Estimate the distribution of each target given evidence; an error if no state of a variable is left.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.evidence import weights_of
    >>> network = alarm()
    >>> found = propagate(network, [network.names.index("CO")], weights_of(network, {"BP": "LOW"}))
    >>> found.distributions[0].round(2).tolist(), found.settled
    ([0.34, 0.13, 0.53], True)
    """
    scope = Scope.of(network, weights, targets)
    free = [variable for variable in scope.variables if scope.is_free(variable)]
    messages, widest = _messages(scope, free, weights)
    n_sweeps, settled, began = 0, not free, time.monotonic()
    while not settled and n_sweeps < _MOST_SWEEPS:
        change = kernel.sweep(messages, 0.0 if n_sweeps < _PATIENCE else 0.5, widest)
        if change < 0:
            raise _refusal(messages, widest)
        n_sweeps += 1
        settled = change < _TOLERANCE
        if seconds is not None and time.monotonic() - began > seconds:
            break
    out = np.empty(len(messages.weight))
    kernel.beliefs(messages, out)
    rows = dict(zip(free, np.split(out, messages.weight_at[1:-1]), strict=False))
    if not all(row.any() for row in rows.values()):
        raise _refusal(messages, widest)
    found = []
    for target in targets:
        row = np.zeros(network.variables[target].n_states)
        row[scope.states[target]] = rows[target] if scope.is_free(target) else 1.0
        found.append(row)
    return Beliefs(tuple(found), n_sweeps, settled)


def _refusal(messages: kernel.Messages, widest: int) -> ValueError:
    """Why no state of a variable is left: zeros alone rule all of them out, or numbers became too small."""
    ones = np.ones(len(messages.message))
    alike = messages._replace(number=np.sign(messages.number), weight=np.sign(messages.weight), message=ones)
    out, n_left = np.empty(len(messages.weight)), -1
    while np.count_nonzero(ones) != n_left:
        n_left = int(np.count_nonzero(ones))
        if kernel.sweep(alike, 0.0, widest) < 0:
            return Impossible(IMPOSSIBLE)
    kernel.beliefs(alike, out)
    if not np.logical_or.reduceat(out > 0, messages.weight_at[:-1]).all():
        return Impossible(IMPOSSIBLE)
    return ValueError(
        "loopy belief propagation met numbers too small to represent, since the evidence favours some states by more "
        "than e^700 to one: use another method."
    )


class TooManyWays(ValueError):
    """A decision graph has too many paths from its root to its leaves."""


def from_below(network: Network, variables: Sequence[int], weights: Weights) -> dict[int, Floats]:
    """The messages of the evidence at and below each free variable about its states, after a few sweeps."""
    scope = Scope.of(network, weights, variables)
    free = [variable for variable in scope.variables if scope.is_free(variable)]
    messages, widest = _messages(scope, free, weights)
    for _ in range(_FEW_SWEEPS):
        if kernel.sweep(messages, 0.0, widest) < _TOLERANCE:
            break
    out = np.empty(len(messages.weight))
    kernel.from_below(messages, out)
    found = {}
    for variable, row in zip(free, np.split(out, messages.weight_at[1:-1]), strict=False):
        found[variable] = np.zeros(network.variables[variable].n_states)
        found[variable][scope.states[variable]] = row
    return {variable: found[variable] for variable in variables if variable in found}


def _messages(scope: Scope, free: list[int], weights: Weights) -> tuple[kernel.Messages, int]:
    """All graphs as ways, with uniform messages; and the workspace that the widest graph needs."""
    place = {variable: number for number, variable in enumerate(free)}
    slots: list[tuple[int, ...]] = []
    numbers: list[Floats] = []
    own: list[bool] = []
    order = {variable: rank for rank, variable in enumerate(scope.network.order())}
    for variable in sorted(scope.variables, key=order.__getitem__):
        made = _ways(scope, variable)
        if made is None:
            continue
        if not made[1].any():
            raise Impossible(IMPOSSIBLE)
        if made[0]:
            slots.append(tuple(place[v] for v in made[0]))
            own.append(made[0][0] == variable)
            numbers.append(made[1])
    flat = np.array([v for each in slots for v in each], np.int64)
    sizes = np.array([len(scope.states[v]) for v in free], np.int64)
    widths = [numbers_of.shape[1] for numbers_of in numbers]
    lengths = np.array([len(numbers_of) for numbers_of in numbers], np.int64)
    by_variable = np.argsort(flat, kind="stable")
    begin = np.concatenate([[0], np.cumsum(sizes[flat])]).astype(np.int64)
    weight = [
        weights[v][scope.states[v]] / weights[v].max() if v in weights else np.ones(sizes[place[v]]) for v in free
    ]
    messages = kernel.Messages(
        first_slot=np.cumsum([0, *map(len, slots)]),
        variable=flat,
        begin=begin,
        is_own=np.array(own, np.bool_),
        first_way=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        row=np.cumsum([0, *(each.size for each in numbers)])[:-1].astype(np.int64),
        number=np.concatenate([np.zeros(0), *(each.ravel() for each in numbers)]),
        slots=by_variable,
        first_of=np.searchsorted(flat[by_variable], np.arange(len(free) + 1)).astype(np.int64),
        weight=np.concatenate([np.zeros(0), *weight]),
        weight_at=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        message=1.0 / np.repeat(sizes[flat], sizes[flat]),
    )
    return messages, max(widths, default=0) + max(map(len, slots), default=0)


def _ways(scope: Scope, variable: int) -> tuple[list[int], Floats] | None:
    """The free variables of a node, its own first, and a row of numbers for each way, over all their states."""
    node = scope.network.nodes[variable]
    if node is None:
        return None
    free = [parent for parent in node.graph.tested if scope.is_free(parent)]
    width = scope.n_states(free) + len(scope.states[variable])
    most = _MOST_WAYS // width
    leaves, possible = ways_of(scope, node, free, most)
    if len(leaves) > most:
        raise TooManyWays(
            f"the decision graph of {scope.network.names[variable]!r} has more than {most:,} ways from its root to "
            f"its leaves, too many for loopy belief propagation: use another method, or give more evidence."
        )
    free = [parent for parent in free if not possible[parent].all()]
    own = node.probabilities[leaves][:, scope.states[variable]]
    if scope.is_free(variable):
        return [variable, *free], np.hstack([own, *(possible[parent] for parent in free)])
    if not free:
        return [], own
    first, *others = [possible[parent] for parent in free]
    return free, np.hstack([first * own, *others])
