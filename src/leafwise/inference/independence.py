"""Independence: read off the arcs, and in a context off the decision graphs.

A context assigns states to some variables. In it, graphs have fewer tests: arcs from parents that are no longer tested
disappear, and what the remaining arcs d-separate is independent in this context, though perhaps not in others
(Boutilier, Friedman, Goldszmidt & Koller, 1996). What they do not separate may still be independent by the parameters.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from leafwise.data.table import index_of
from leafwise.decision_graph import LEAF
from leafwise.inference.evidence import mapping_of, weights_of
from leafwise.network import Network, check_network

Known = Mapping[str, str | None] | Iterable[str] | str


def markov_blanket(network: Network, name: str, *, given: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The Markov blanket of a variable: its parents, its children, and the children's other parents.

    With states `given`, the blanket in this context, without the given variables.

    >>> from leafwise.examples import alarm
    >>> markov_blanket(alarm(), "SHUNT")
    ('PVSAT', 'SAO2', 'PULMEMBOLUS', 'INTUBATION')
    """
    check_network(network, "markov_blanket")
    index, context = index_of(name, network.names), _context(network, mapping_of(given))
    parents = _parents(network, {v: state for v, state in context.items() if state is not None})
    families = [{child, *row} for child, row in enumerate(parents) if child == index or index in row]
    return tuple(network.names[v] for v in sorted(set().union(*families) - {index} - context.keys()))


def is_independent(network: Network, one: str, other: str, given: Known = ()) -> bool:
    """Whether the structure makes two variables independent, given variables or given states of them.

    Names alone test d-separation, for all states of the given variables. States test this context only, where decision
    graphs imply more. False means that the graphs do not imply independence.

    >>> from leafwise.examples import alarm
    >>> network = alarm()
    >>> is_independent(network, "HR", "BP", given="CO"), is_independent(network, "HR", "BP", given=["CO", "TPR"])
    (False, True)
    """
    check_network(network, "is_independent")
    return dependence_path(network, one, other, given) is None


def dependence_path(network: Network, one: str, other: str, given: Known = ()) -> tuple[str, ...] | None:
    """An active path between two variables given others, as names; None if they are independent.

    >>> from leafwise.examples import alarm
    >>> dependence_path(alarm(), "HR", "BP", given=["TPR"])
    ('HR', 'CO', 'BP')
    """
    check_network(network, "dependence_path")
    start, goal = index_of(one, network.names), index_of(other, network.names)
    context = _context(network, given)
    for index in (start, goal):
        if index in context:
            raise ValueError(f"{network.names[index]!r} is asked about and given: leave it out of what is given.")
    parents = _parents(network, {v: state for v, state in context.items() if state is not None})
    found = _active_path(parents, start, goal, set(context))
    return None if found is None else tuple(network.names[v] for v in found)


@dataclass(frozen=True)
class Context:
    """States of some parents, and the other parents that are irrelevant in this context."""

    given: Mapping[str, tuple[str, ...]]
    irrelevant: tuple[str, ...]

    def __str__(self) -> str:
        known = ", ".join(f"{name} = {' or '.join(labels)}" for name, labels in self.given.items())
        return f"given {known}: independent of {', '.join(self.irrelevant)}"


def contexts(network: Network, name: str) -> list[Context]:
    """The contexts in which a variable does not depend on some of its parents, according to its decision graph.

    >>> import leafwise
    >>> from leafwise.examples import alarm
    >>> network = leafwise.learn(leafwise.sample(alarm(), 1000, seed=1))
    >>> [str(context) for context in contexts(network, "SHUNT")]
    ['given INTUBATION = ONESIDED: independent of PULMEMBOLUS']
    """
    check_network(network, "contexts")
    index = index_of(name, network.names)
    node = network.nodes[index]
    if node is None:
        raise ValueError(f"the network has no distribution of {name!r}: name a variable that was learned.")
    graph = node.graph.simplified()
    below: list[frozenset[int]] = [frozenset()] * len(graph.tests)
    for at in reversed(range(len(graph.tests))):
        if graph.tests[at] != LEAF:
            below[at] = frozenset({graph.tests[at]}).union(*(below[child] for child in graph.children[at]))
    found: dict[tuple[tuple[int, frozenset[int]], ...], frozenset[int]] = {}
    stack: list[tuple[int, dict[int, frozenset[int]], frozenset[int]]] = [(0, {}, below[0])]
    while stack:
        at, box, matter = stack.pop()
        gone = matter - below[at] - box.keys()
        if gone:
            found[tuple(box.items())] = gone
        for states, child in reversed(graph.arcs(at)):
            left = states & box.get(graph.tests[at], states)
            if left:
                stack.append((child, {**box, graph.tests[at]: left}, matter - gone))
    return [_named(network, dict(box), gone) for box, gone in found.items()]


def _named(network: Network, box: Mapping[int, frozenset[int]], gone: Iterable[int]) -> Context:
    variables = network.variables
    given = {variables[v].name: tuple(variables[v].labels[state] for state in sorted(box[v])) for v in box}
    return Context(given, tuple(variables[v].name for v in sorted(gone)))


def _context(network: Network, given: Known) -> dict[int, int | None]:
    """The given variables, with their state where one is named."""
    if isinstance(given, str):
        given = [given]
    states = given if isinstance(given, Mapping) else dict.fromkeys(given)
    out: dict[int, int | None] = {}
    for name, state in states.items():
        index = index_of(name, network.names)
        out[index] = None
        if state is not None:
            weights = weights_of(network, {name: state}).get(index)
            if weights is None or (weights > 0).sum() != 1:
                several = "no state" if weights is None else "several states"
                raise ValueError(f"a context gives {name!r} {several}: give one, or the name alone.")
            out[index] = int(weights.argmax())
    return out


def _parents(network: Network, states: Mapping[int, int]) -> list[tuple[int, ...]]:
    """The parents that each variable's graph depends on in a context."""
    n_states = [variable.n_states for variable in network.variables]
    out: list[tuple[int, ...]] = []
    for node in network.nodes:
        if node is None:
            out.append(())
        elif states and not states.keys().isdisjoint(node.graph.tested):
            out.append(node.graph.given(states).relevant_parents(n_states))
        else:
            out.append(node.graph.tested)
    return out


def _active_path(parents: list[tuple[int, ...]], start: int, goal: int, given: set[int]) -> list[int] | None:
    """A shortest active path (Koller & Friedman, Algorithm 3.1); None if all are blocked."""
    children: list[list[int]] = [[] for _ in parents]
    for child, row in enumerate(parents):
        for parent in row:
            children[parent].append(child)
    above = set(given)  # the given variables and their ancestors: colliders among these are active
    todo = list(given)
    while todo:
        new = set(parents[todo.pop()]) - above
        above |= new
        todo += new
    came: dict[tuple[int, bool], tuple[int, bool] | None] = {(start, True): None}  # True: reached from a child
    queue = [(start, True)]
    for at, from_below in queue:
        if at == goal:
            return _traced(came, (at, from_below))
        up = (from_below and at not in given) or (not from_below and at in above)
        down = at not in given
        steps = [(parent, True) for parent in parents[at]] if up else []
        steps += [(child, False) for child in children[at]] if down else []
        for step in steps:
            if step not in came:
                came[step] = (at, from_below)
                queue.append(step)
    return None


def _traced(came: Mapping[tuple[int, bool], tuple[int, bool] | None], end: tuple[int, bool]) -> list[int]:
    path = []
    step: tuple[int, bool] | None = end
    while step is not None:
        path.append(step[0])
        step = came[step]
    return path[::-1]
