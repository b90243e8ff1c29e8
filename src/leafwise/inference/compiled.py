"""Compiled queries: planned once for given targets and evidence variables, and answered for any states of the latter.

Whatever does not depend on the evidence variables is multiplied in advance.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leafwise.inference.contraction import Factor, Plan
from leafwise.inference.evidence import Weights
from leafwise.inference.exact import Limits
from leafwise.inference.factors import Scope, leaf_table, node_factors, ways_of
from leafwise.kernels.questions import contraction
from leafwise.kernels.questions import prepared as compiled
from leafwise.kernels.questions.routes import flatten
from leafwise.network import Network, Node
from leafwise.workers import Workers

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
_MOST_HELD = 2**16  # numbers in a stored table; larger ones are read off the graph for each answer
_NANOSECONDS = 2.0  # per multiplication, roughly, bookkeeping included
_A_PRODUCT = 100.0  # additional nanoseconds per product


@dataclass(frozen=True)
class _Slice:
    """A factor whose first axes are the states of evidence variables, and whose other axes are indices."""

    told: tuple[int, ...]
    indices: tuple[int, ...]
    values: Floats


@dataclass(frozen=True)
class _Walk:
    """A factor over parents, and perhaps the variable itself, that is read off a graph once the evidence is known."""

    variable: int
    node: Node
    indices: tuple[int, ...]


_Leaf = Factor | _Slice | _Walk


@dataclass(frozen=True, eq=False)
class CompiledQuery:
    """A query planned for all states of its evidence variables (`told`).

    >>> from leafwise.examples import alarm
    >>> question = CompiledQuery.of(alarm(), {}, [(0,)], [36], Limits())
    >>> log_evidence, (shares,) = question.answers(np.array([[0], [2]]))
    >>> shares.round(4).tolist()
    [[0.0883, 0.9117], [0.019, 0.981]]
    """

    scope: Scope
    targets: tuple[tuple[int, ...], ...]
    told: tuple[int, ...]
    leaves: tuple[_Leaf, ...]  # the last ones are factors of ones, one per target: their environments are the answers
    plan: Plan
    limits: Limits
    log_weight: float

    @classmethod
    def of(
        cls,
        network: Network,
        weights: Weights,
        targets: Sequence[tuple[int, ...]],
        told: Sequence[int],
        limits: Limits,
        log_evidence: bool = True,
    ) -> "CompiledQuery":
        """Plan the answer; `is_affordable` says whether it is within the limits.

        Without `log_evidence`, evidence that is irrelevant to the targets is omitted, and the log evidence is
        meaningless.
        """
        scope = Scope.of(network, weights, {variable for target in targets for variable in target}, told)
        leaves = _leaves(scope, limits.memory / 8)
        extents = {variable: len(states) for variable, states in scope.states.items()}
        for leaf in leaves:
            if isinstance(leaf, Factor | _Slice) and leaf.indices and leaf.indices[0] >= len(network.variables):
                extents[leaf.indices[0]] = leaf.values.shape[-len(leaf.indices)]
        for variable, weight in weights.items():
            if scope.is_free(variable):
                leaves.append(scope.reduced(Factor((variable,), weight / weight.max())))
        for target in targets:
            free = tuple(filter(scope.is_free, target))
            leaves.append(Factor(free, np.broadcast_to(1.0, [extents[variable] for variable in free])))
        if not log_evidence:
            leaves = _connected(leaves, len(targets))
        # With a single target, the downward pass is short if that is eliminated last.
        last = targets[0] if len(targets) == 1 else ()
        plan = Plan.of([leaf.indices for leaf in leaves], extents, limits.operations, last)
        log_weight = math.fsum(math.log(weight.max()) for weight in weights.values())
        return cls(scope, tuple(targets), tuple(told), tuple(leaves), plan, limits, log_weight)

    @cached_property
    def is_affordable(self) -> bool:
        """Whether the answers are within the limits, and no number on the way underflows."""
        operations = self.plan.operations * (3 if self.targets else 1)  # an upper bound
        memory = self.plan.numbers * (24 if self.targets else 16)
        within = operations <= self.limits.operations and memory <= self.limits.memory
        return self.plan.program is not None and within and self._compiled is not None

    def answers(self, rows: Longs, threads: int | None = None) -> tuple[Floats, list[Floats]]:
        """The log evidence and the distribution of each target, for each row of states of the evidence variables.

        The log evidence is NaN where numbers are too small for this method, or all zero; the distributions of such a
        row are meaningless.
        """
        assert self._compiled is not None, "a question that is too costly"
        packed, base, cuts, template, log_constant, cost = self._compiled
        shares, log_evidence = np.empty((len(rows), cuts[-1])), np.empty(len(rows))
        if len(rows) == 1:
            compiled.answer(packed, base, template, rows, shares, log_evidence)
        else:

            def run(begin: int, end: int) -> None:
                compiled.answer(packed, base, template, rows[begin:end], shares[begin:end], log_evidence[begin:end])

            Workers(threads).run(run, np.full(len(rows), cost))
        log_evidence += log_constant
        parts = [shares[:, begin:end] for begin, end in pairwise(cuts)]
        return log_evidence, parts if self._is_plain else list(map(self._widened, range(len(parts)), parts))

    @cached_property
    def _is_plain(self) -> bool:
        """Whether all targets are single variables with all their states."""
        n_states = [[self.scope.network.variables[v].n_states for v in target] for target in self.targets]
        lengths = [[len(self.scope.states[v]) for v in target] for target in self.targets]
        return n_states == lengths and all(len(target) == 1 for target in self.targets)

    @property
    def leaves_asked(self) -> range:
        """The numbers of the targets' factors."""
        return range(len(self.leaves) - len(self.targets), len(self.leaves))

    def _widened(self, number: int, shares: Floats) -> Floats:
        """The distributions of a target, extended from the states that evidence leaves to all states."""
        target, leaf = self.targets[number], self.leaves_asked[number]
        variables, states = self.scope.network.variables, [self.scope.states[variable] for variable in target]
        out = np.zeros((len(shares), *(variables[variable].n_states for variable in target)))
        axes, indices = self.plan.axes[leaf], self.leaves[leaf].indices
        extents = [len(self.scope.states[indices[axis]]) for axis in axes]
        values = shares.reshape(len(shares), *extents).transpose(0, *(1 + np.argsort(axes)))
        rows = np.arange(len(shares))
        out[np.ix_(rows, *states)] = values.reshape(len(shares), *map(len, states))
        return out

    @cached_property
    def _compiled(self) -> "_Compiled | None":
        """The query for the kernel; None if it would be too costly, or if numbers are too small for it."""
        return None if self.plan.program is None else _compiled(self, self.plan.program)


class _Compiled(NamedTuple):
    packed: Longs  # the query, for the kernel
    base: Floats
    cuts: list[int]  # where the distributions of each target begin in a row of answers, and the end of the row
    template: Floats  # initial memory, with everything that does not vary
    log_constant: float  # the part of the log evidence that the kernel omits
    cost: float  # nanoseconds per answer, roughly


def _connected(leaves: list[_Leaf], n_targets: int) -> list[_Leaf]:
    """The factors connected to one of the last `n_targets`: no others matter to the targets."""
    holders: dict[int, list[int]] = {}
    for number, leaf in enumerate(leaves):
        for index in leaf.indices:
            holders.setdefault(index, []).append(number)
    found = set(range(len(leaves) - n_targets, len(leaves)))
    todo = list(found)
    while todo:
        new = {number for index in leaves[todo.pop()].indices for number in holders[index]} - found
        found |= new
        todo += new
    return [leaves[number] for number in sorted(found)]


def _leaves(scope: Scope, most_numbers: float) -> list[_Leaf]:
    """The factors of all nodes; those over evidence variables are slices or walks."""
    leaves: list[_Leaf] = []
    for variable in scope.variables:
        node = scope.network.nodes[variable]
        if node is not None:
            way = len(scope.network.variables) + variable
            if scope.told.isdisjoint((*node.parents, variable)):
                leaves += node_factors(scope, variable, node, way, most_numbers)
            else:
                leaves += _told_factors(scope, variable, node, way, most_numbers)
    return leaves


def _told_factors(scope: Scope, variable: int, node: Node, way: int, most_numbers: float) -> list[_Leaf]:
    """The factors of a node with evidence variables in its family: by paths or as a table, whichever is smaller."""
    free = [parent for parent in node.parents if scope.is_free(parent)]
    told = [parent for parent in node.parents if parent in scope.told]
    own = len(scope.states[variable])
    size = scope.n_assignments(free) * (1 if variable in scope.told else own)
    width = scope.n_states(free) + len(told) + 1
    most = int(min(size, most_numbers, 2**40) / width) + 1
    leaves, possible = ways_of(scope, node, [*free, *told], most)
    probabilities = node.probabilities[:, scope.states[variable]]
    if len(leaves) <= most and len(leaves) * width < size:
        by_way = _sliced(scope, (way, variable), probabilities[leaves])
        open_ways = [(parent, possible[parent]) for parent in [*free, *told] if not possible[parent].all()]
        return [by_way, *(_sliced(scope, (way, parent), flags) for parent, flags in open_ways)]
    indices = (*free, variable) if scope.is_free(variable) else tuple(free)
    if size * scope.n_assignments(told) * own > _MOST_HELD:
        return [_Walk(variable, node, indices)]
    shape = [len(scope.states[parent]) for parent in [*free, *told]]
    values = probabilities[leaf_table(scope, node, [*free, *told], shape)].reshape(*shape, own)
    return [_sliced(scope, (*free, *told, variable), values)]


def _sliced(scope: Scope, variables: tuple[int, ...], values: Floats) -> _Leaf:
    """A factor with the axes of evidence variables first, and without those of variables with one state left."""
    told = [axis for axis, variable in enumerate(variables) if variable in scope.told]
    kept = [a for a, v in enumerate(variables) if a not in told and (v not in scope.states or scope.is_free(v))]
    gone = [axis for axis in range(len(variables)) if axis not in told and axis not in kept]
    values = values.transpose(*told, *kept, *gone).reshape([values.shape[axis] for axis in [*told, *kept]])
    indices = tuple(variables[axis] for axis in kept)
    return _Slice(tuple(variables[axis] for axis in told), indices, values) if told else Factor(indices, values)


def _compiled(asked: CompiledQuery, program: contraction.Program) -> _Compiled | None:
    """Multiply what does not vary, and lay out the rest for the kernel."""
    steps = _steps(program, asked.leaves_asked)
    sizes = np.diff(program.offset)
    n_slots = 2 * len(sizes)  # one for each tensor, then one for its environment
    varies = np.zeros(n_slots, np.bool_)
    varies[: len(asked.leaves)] = [not isinstance(leaf, Factor) for leaf in asked.leaves]
    for left, right, out in steps[:, :3].tolist():
        varies[out] = varies[left] or varies[right]
    begin = np.concatenate([program.offset[:-1], program.offset[-1] + program.offset])
    memory = np.zeros(int(begin[-1]))
    for leaf, axes, at, end in zip(asked.leaves, asked.plan.axes, begin, begin[1:], strict=False):
        if isinstance(leaf, Factor):
            memory[at:end] = leaf.values.transpose(axes).ravel()
    memory[begin[[len(asked.leaves), n_slots - 1]]] = 1.0  # the unit, and the environment of the root
    held = [leaf.node.probabilities if isinstance(leaf, _Walk) else leaf.values for leaf in asked.leaves]
    if any(((values > 0) & (values < contraction.THIN)).any() for values in held):
        return None
    is_up = steps[:, 2] < len(sizes)
    taken, ignored = np.zeros(1), np.zeros(1)
    fixed = ~varies[steps[:, 2]]
    for which, totals in ((fixed & is_up, taken), (fixed & ~is_up, ignored)):
        if not compiled.multiply_all(_products(steps[which], program, begin), memory, totals):
            return None
    left = steps[~fixed]
    # the memory of one answer: what varies, the constants that its products need, and the answers
    reads = len(sizes) + np.array(asked.leaves_asked, np.int64)
    used = np.unique(
        np.concatenate([left[:, :3].ravel(), reads, np.flatnonzero(varies[: len(asked.leaves)]), [len(sizes) - 1]])
    )
    place = np.zeros(n_slots + 1, np.int64)
    place[used + 1] = np.diff(begin)[used]
    place = np.cumsum(place)
    template = np.concatenate([memory[begin[slot] : begin[slot + 1]] for slot in used.tolist()])
    products = _products(left, program, place)
    question = compiled.Question(
        products=products,
        n_up=int(is_up[~fixed].sum()),
        root=int(place[len(sizes) - 1]),
        reads=np.stack([place[reads], place[reads + 1]], axis=1),
        **_fills(asked, place),
    )
    n_numbers = sum(float(np.prod(products.extent[b:e])) for b, e in pairwise(products.first.tolist()))
    cost = _NANOSECONDS * (n_numbers + len(template)) + _A_PRODUCT * len(left)
    log_constant = float(taken[0]) + asked.log_weight
    cuts = np.cumsum([0, *np.diff(question.reads).ravel()]).tolist()
    return _Compiled(compiled.pack(question), question.base, cuts, template, log_constant, cost)


def _steps(program: contraction.Program, read: Iterable[int]) -> Longs:
    """Rows (left, right, out, step, turn): up to the root, then down to the leaves that are read.

    The environment of tensor t is in slot n_tensors + t. With turn 1, out times right gives left; with turn 2, out
    times left gives right.
    """
    n_tensors, n_steps = len(program.offset) - 1, len(program.left)
    wanted = np.zeros(n_tensors, np.bool_)
    wanted[list(read)] = True
    pairs = list(zip(program.left.tolist(), program.right.tolist(), strict=True))
    rows = []
    for step, (left, right) in enumerate(pairs):
        out = n_tensors - n_steps + step
        rows.append((left, right, out, step, 0))
        wanted[out] = wanted[left] or wanted[right]
    for step, (left, right) in reversed(list(enumerate(pairs))):
        out = n_tensors - n_steps + step
        if wanted[left]:
            rows.append((n_tensors + out, right, n_tensors + left, step, 1))
        if wanted[right]:
            rows.append((n_tensors + out, left, n_tensors + right, step, 2))
    return np.array(rows, np.int64).reshape(-1, 5)


def _products(steps: Longs, program: contraction.Program, begin: Longs) -> compiled.Products:
    """The steps for the kernel; slot s occupies begin[s] to begin[s + 1]."""
    turned = ((0, 1, 2), (2, 1, 0), (2, 0, 1))
    strides = (program.in_left, program.in_right, program.in_out)
    dims = [slice(*program.first[step : step + 2]) for step in steps[:, 3].tolist()]
    columns: list[list[NDArray[Any]]] = [[], [], [], []]
    for dim, turn in zip(dims, steps[:, 4].tolist(), strict=True):
        for column, source in zip(columns, (program.extent, *(strides[k] for k in turned[turn])), strict=True):
            column.append(source[dim])
    place = np.stack([begin[steps[:, :3]], begin[steps[:, :3] + 1]], axis=2).reshape(-1, 6)
    first = np.cumsum([0, *(dim.stop - dim.start for dim in dims)])
    return compiled.Products(place, first, *(np.concatenate([np.zeros(0, np.int64), *column]) for column in columns))


def _fills(asked: CompiledQuery, place: Longs) -> dict[str, Any]:
    """Instructions for filling the factors that vary, as fields of the kernel's question."""
    scope, network = asked.scope, asked.scope.network
    slices: list[tuple[int, ...]] = []
    strides: list[tuple[int, int]] = []
    base = [np.zeros(0)]
    walks: list[tuple[int, ...]] = []
    axes: list[tuple[int, int]] = []
    walked: list[Node] = []
    n_base, n_nodes = 0, 0
    for number, leaf in enumerate(asked.leaves):
        order = asked.plan.axes[number]
        if isinstance(leaf, _Slice):
            n_told = len(leaf.told)
            values = leaf.values.transpose(*range(n_told), *(n_told + axis for axis in order))
            slices.append((place[number], place[number + 1], n_base, len(strides)))
            for axis, variable in enumerate(leaf.told):
                strides.append((asked.told.index(variable), math.prod(values.shape[axis + 1 :])))
            base.append(values.ravel())
            n_base += values.size
        elif isinstance(leaf, _Walk):
            extents = [len(scope.states[leaf.indices[axis]]) for axis in order]
            stride = {leaf.indices[axis]: math.prod(extents[k + 1 :]) for k, axis in enumerate(order)}
            walks.append((place[number], n_nodes, len(axes), leaf.variable, stride.pop(leaf.variable, 0)))
            axes += list(stride.items())
            walked.append(leaf.node)
            n_nodes += len(leaf.node.graph.tests)
    flat = flatten(node.graph for node in walked)
    rows = np.cumsum([0, *(len(node.probabilities) for node in walked)])
    is_leaf = flat.test < 0
    sizes = np.repeat([node.n_states for node in walked], np.diff(rows)).astype(np.int64)
    flat.first[is_leaf] = n_base + np.cumsum(sizes) - sizes
    states = [scope.states.get(v, np.arange(variable.n_states)) for v, variable in enumerate(network.variables)]
    return {
        "slices": np.array([*slices, (0, 0, 0, len(strides))], np.int64),
        "strides": np.array(strides, np.int64).reshape(-1, 2),
        "walks": np.array([*walks, (0, 0, len(axes), 0, 0)], np.int64),
        "axes": np.array(axes, np.int64).reshape(-1, 2),
        "test": flat.test,
        "first": flat.first,
        "child": flat.child,
        "base": np.concatenate([*base, *(node.probabilities.ravel() for node in walked)]),
        "told": np.array(asked.told, np.int64),
        "state_of": np.cumsum([0, *map(len, states)]),
        "states": np.concatenate([np.zeros(0, np.int64), *states]),
    }
