"""Networks and decision graphs as text for people. Knows networks; prints nothing itself."""

import textwrap
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from leafwise.binning import interval_labels
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.network import Network, Node
from leafwise.report.signs import printable
from leafwise.table import Variable, many

_WIDTH = 100
_FEW_STATES = 3  # so many states are listed in full
_MOST_SHOWN = 6  # distributions over more states show the likeliest ones
_MOST_CAUSES = 8  # states of a hidden cause that are shown
_INDENT = "   "


def network_text(network: Network) -> str:
    """One line for each variable: its states, tests, leaves, parameters and parents; and the totals.

    >>> from leafwise.examples import alarm
    >>> print(network_text(alarm()).splitlines()[0])
    37 variables, 46 arcs, 105 tests, 243 leaves, 509 parameters
    """
    arcs, tests, leaves, parameters = len(network.arcs), network.n_tests, network.n_leaves, network.n_parameters
    sizes = [many(len(network.variables), "variable"), many(arcs, "arc"), many(tests, "test")]
    lines = [", ".join([*sizes, many(leaves, "leaf", "leaves"), many(parameters, "parameter")])]
    priors = {"prior": network.prior, "structure prior": network.structure_prior}
    known = [f"{key} {printable(value)}" for key, value in priors.items() if value]
    lines += [", ".join(known)] if known else []
    rows: list[tuple[str, ...]] = [("variable", "states", "tests", "leaves", "parameters", "parents")]
    rows += [_variable_row(network, index) for index in range(len(network.variables))]
    rows.append(("total", "", str(tests), str(leaves), str(parameters), many(arcs, "arc")))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines.append("")
    for *cells, parents in rows:
        padded = [f"{cell:{'<' if k < 2 else '>'}{widths[k]}}  " for k, cell in enumerate(cells)]
        left = "".join(padded)
        wrapped = textwrap.wrap(parents, max(_WIDTH - len(left), 30)) or [""]
        lines.append((left + wrapped[0]).rstrip())
        lines += [" " * len(left) + line for line in wrapped[1:]]
    for index, variable in enumerate(network.variables):
        if variable.hidden and network.nodes[index] is not None:
            lines += ["", *cause_lines(network, index)]
    return "\n".join(lines)


def cause_lines(network: Network, cause: int) -> list[str]:
    """What a hidden cause stands for: the variables that change most with it, and how."""
    from leafwise.inference.information import strongest_effects

    variable = network.variables[cause]
    lines = [f"{printable(variable.name)}, which nobody observed, stands for"]
    effects = strongest_effects(network, variable.name)
    width = max((len(printable(f"{effect.name} = {effect.label}")) for effect in effects), default=0)
    for effect in effects:
        what = printable(f"{effect.name} = {effect.label}")
        shares = "  ".join(f"{share:6.1%}" for share in effect.shares[:_MOST_CAUSES])
        more = " …" if len(effect.shares) > _MOST_CAUSES else ""
        lines.append(f"{_INDENT}{what:<{width}}  {effect.information:.3f} nats  in its states {shares}{more}")
    return lines


def _variable_row(network: Network, index: int) -> tuple[str, ...]:
    variable, node = network.variables[index], network.nodes[index]
    name, states = printable(variable.name), f"{variable.n_states}: {_listed(variable.labels, 28)}"
    if node is None:
        return name, states, "-", "-", "-", "(given)"
    parents = ", ".join(printable(network.names[parent]) for parent in node.parents)
    return name, states, str(node.graph.n_tests), str(node.graph.n_leaves), str(node.n_parameters), parents


def _listed(labels: tuple[str, ...], width: int) -> str:
    """As many labels as fit, at least one (itself cut short when too long)."""
    text = ", ".join(map(printable, labels))
    if len(text) <= width:
        return text
    shown = 1
    while len(", ".join(map(printable, labels[: shown + 1]))) + 3 <= width:
        shown += 1
    text = ", ".join(map(printable, labels[:shown]))
    return (text if len(text) <= width else text[: width - 1]) + ("…" if len(labels) == shown else ", …")


def node_text(network: Network, variable: int) -> str:
    """A variable's decision graph, indented: tests with the states of their arcs, leaves with their distributions.

    >>> from leafwise.examples import alarm
    >>> print(node_text(alarm(), 0))
    HISTORY, given LVFAILURE: 1 test, 2 leaves, 2 parameters
    <BLANKLINE>
    LVFAILURE = TRUE   leaf 0   TRUE 90.0 %  FALSE 10.0 %
    LVFAILURE = FALSE  leaf 1   TRUE  1.0 %  FALSE 99.0 %
    """
    node, name = network.nodes[variable], printable(network.names[variable])
    if node is None:
        return f"{name}: given, without a distribution of its own"
    parents = ", ".join(printable(network.names[parent]) for parent in node.parents)
    leaf_texts = _leaf_texts(node, network.variables[variable])
    lines = list(_graph_lines(network.variables, node.graph, leaf_texts))
    width = min(max(len(left) for left, right in lines if right), _WIDTH // 2)
    body = [f"{left:<{width}}  {right}".rstrip() if left else right for left, right in lines]
    meaning = ["", *cause_lines(network, variable)] if network.variables[variable].hidden else []
    return "\n".join([f"{name}{', given ' + parents if parents else ''}: {graph_sizes(node)}", "", *body, *meaning])


def graph_sizes(node: Node) -> str:
    """How large the decision graph of a node is, in words."""
    graph = node.graph
    sizes = [many(graph.n_tests, "test"), many(graph.n_leaves, "leaf", "leaves"), many(node.n_parameters, "parameter")]
    return ", ".join(sizes)


def _graph_lines(
    variables: tuple[Variable, ...], graph: DecisionGraph, leaf_texts: list[str]
) -> Iterator[tuple[str, str]]:
    """Each line's left side (an arc, indented) and right side (a leaf, or a word on sub-graphs used twice)."""
    leaf_number = {node: number for number, node in enumerate(graph.leaves)}
    shared = _shared_tests(graph)
    printed: set[int] = set()
    stack: list[tuple[int, str, int]] = [(0, "", 0)]  # node, the arc that leads to it, how deep that arc is
    while stack:
        node, arc, depth = stack.pop()
        left = _INDENT * depth + arc
        if node in printed:
            what = f"sub-graph {shared[node]}" if node in shared else f"leaf {leaf_number[node]}"
            yield left, f"→ {what} (above)"
            continue
        printed.add(node)
        if graph.tests[node] == LEAF:
            yield left, leaf_texts[leaf_number[node]]
            continue
        if arc:
            yield left, f"sub-graph {shared[node]}:" if node in shared else ""
        variable = variables[graph.tests[node]]
        arcs = [(child, f"{variable.name} {arc_states(variable, states)}") for states, child in graph.arcs(node)]
        stack += [(child, printable(text), depth + bool(arc)) for child, text in reversed(arcs)]


def _shared_tests(graph: DecisionGraph) -> dict[int, int]:
    """Numbers, from 1 on, for the tests that several arcs lead to."""
    n_arcs = [0] * len(graph.tests)
    for row in graph.children:
        for child in set(row):
            n_arcs[child] += 1
    tests = [node for node, count in enumerate(n_arcs) if count > 1 and graph.tests[node] != LEAF]
    return {node: number for number, node in enumerate(tests, 1)}


def arc_states(variable: Variable, states: frozenset[int]) -> str:
    """The states of an arc: "= a, b", "≠ a" for all but a, "= a, b, c, … (12 states)"; a range, if they have an order.

    >>> arc_states(Variable("x", ("a", "b", "c")), frozenset({0, 2}))
    '≠ b'
    >>> age = Variable("age", ("< 30", "30 to 56", ">= 56"), cuts=(30.0, 56.0))
    >>> arc_states(age, frozenset({0, 1})), arc_states(age, frozenset({1})), arc_states(age, frozenset({0, 2}))
    ('< 56', '= 30 to 56', '< 30 or >= 56')
    >>> size = Variable("size", ("S", "M", "L", "XL"), ordered=True)
    >>> arc_states(size, frozenset({0, 1})), arc_states(size, frozenset({1, 2, 3})), arc_states(size, frozenset({0, 3}))
    ('≤ M', '≥ M', '= S, XL')
    """
    if variable.cuts:
        return _range(variable, sorted(states))
    if variable.ordered and (text := _span(variable, sorted(states))):
        return text
    others = [state for state in range(variable.n_states) if state not in states]
    if len(others) <= _FEW_STATES and len(others) < len(states) and others:
        return f"≠ {', '.join(variable.labels[state] for state in others)}"
    labels = [variable.labels[state] for state in sorted(states)]
    if len(labels) <= _FEW_STATES + 1:
        return f"= {', '.join(labels)}"
    return f"= {', '.join(labels[:_FEW_STATES])}, … ({len(labels)} states)"


def _span(variable: Variable, states: list[int]) -> str:
    """Several states that follow each other, of a variable whose states have an order; "" where they do not."""
    n, labels = variable.n_states - variable.missing, variable.labels
    own = [state for state in states if state < n]
    if len(own) < 2 or own[-1] - own[0] >= len(own) or len(own) == n:
        return ""
    text = f"= {labels[own[0]]} to {labels[own[-1]]}"
    if own[0] == 0 or own[-1] == n - 1:
        text = f"≤ {labels[own[-1]]}" if own[0] == 0 else f"≥ {labels[own[0]]}"
    return f"{text} or {labels[-1]}" if len(own) < len(states) else text


def _range(variable: Variable, states: list[int]) -> str:
    """The states of a variable with bins, as ranges of its numbers."""
    n_bins = len(variable.cuts) + 1
    bins = [state for state in states if state < n_bins]
    parts = []
    for first in [state for state in bins if state - 1 not in bins]:
        last = next(state for state in range(first, n_bins) if state + 1 not in bins)
        if first == 0 and last == n_bins - 1:
            parts.append("any number")
        elif first == 0:
            parts.append(interval_labels(variable.cuts[last : last + 1])[0])
        elif last == n_bins - 1:
            parts.append(interval_labels(variable.cuts[first - 1 : first])[1])
        else:
            parts.append(interval_labels((variable.cuts[first - 1], variable.cuts[last]))[1])
    parts += [variable.labels[state] for state in states if state >= n_bins]
    text = " or ".join(parts)
    return text if text.startswith(("<", ">")) else f"= {text}"


def _leaf_texts(node: Node, variable: Variable) -> list[str]:
    """For each leaf its number, its cases when they are known, and its distribution in percent, in columns."""
    n_leaves = node.graph.n_leaves
    heads = [f"leaf {leaf:<{len(str(n_leaves - 1))}}" for leaf in range(n_leaves)]
    if node.counts is not None:
        cases = [many(round(number), "case") for number in node.counts.sum(axis=1)]
        width = max(map(len, cases))
        heads = [f"{head}  {text:>{width}}" for head, text in zip(heads, cases, strict=True)]
    digits = 5 if node.probabilities.max() >= 0.9995 else 4  # 100.0 or 99.9
    return [
        f"{head}   {_distribution(row, variable, digits)}" for head, row in zip(heads, node.probabilities, strict=True)
    ]


def _distribution(row: NDArray[np.float64], variable: Variable, digits: int) -> str:
    shown = list(range(variable.n_states))
    if variable.n_states > _MOST_SHOWN:
        shown = np.argsort(-row, kind="stable")[: _MOST_SHOWN - 1].tolist()
    text = "  ".join(f"{printable(variable.labels[state])} {100 * row[state]:{digits}.1f} %" for state in shown)
    return text if len(shown) == variable.n_states else f"{text}  … ({variable.n_states} states)"
