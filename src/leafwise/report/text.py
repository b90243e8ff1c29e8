"""Networks and decision graphs as text."""

import textwrap
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from leafwise.data.table import many
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.network import Network, Node
from leafwise.report.folding import Fold, in_order, information, most_that_fit
from leafwise.report.shown_graph import ShownGraph, given_cases
from leafwise.report.signs import printable

_WIDTH = 100
_MOST_SHOWN = 6  # distributions over more states show the most probable ones
_MOST_CAUSES = 8  # the most states of a hidden variable that are shown
_PAGE = 60  # lines
_INDENT = "   "


def network_text(network: Network) -> str:
    """One line per variable: its states, tests, leaves, parameters and parents; and the totals.

    >>> from leafwise.examples import alarm
    >>> print(network_text(alarm()).splitlines()[0])
    37 variables, 46 arcs, 105 tests, 243 leaves, 509 parameters
    """
    arcs, tests, leaves, by_node = len(network.arcs), network.n_tests, network.n_leaves, network.parameters_by_node()
    parameters = sum(by_node)
    sizes = [many(len(network.variables), "variable"), many(arcs, "arc"), many(tests, "test")]
    lines = [", ".join([*sizes, many(leaves, "leaf", "leaves"), many(parameters, "parameter")])]
    priors = {"prior": network.prior, "structure prior": network.structure_prior}
    known = [f"{key} {printable(value)}" for key, value in priors.items() if value]
    lines += [", ".join(known)] if known else []
    rows: list[tuple[str, ...]] = [("variable", "states", "tests", "leaves", "parameters", "parents")]
    rows += [_variable_row(network, index, own) for index, own in enumerate(by_node)]
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
    """An interpretation of a hidden variable: the variables that change most with it, and how."""
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


def _variable_row(network: Network, index: int, n_parameters: int) -> tuple[str, ...]:
    variable, node = network.variables[index], network.nodes[index]
    name, states = printable(variable.name), f"{variable.n_states}: {_listed(variable.labels, 28)}"
    if node is None:
        return name, states, "-", "-", "-", "(given)"
    parents = ", ".join(printable(network.names[parent]) for parent in node.parents)
    return name, states, str(node.n_tests), str(node.n_leaves), str(n_parameters), parents


def _listed(labels: tuple[str, ...], width: int) -> str:
    """As many labels as fit, at least one, which may be shortened."""
    text = ", ".join(map(printable, labels))
    if len(text) <= width:
        return text
    shown = 1
    while len(", ".join(map(printable, labels[: shown + 1]))) + 3 <= width:
        shown += 1
    text = ", ".join(map(printable, labels[:shown]))
    return (text if len(text) <= width else text[: width - 1]) + ("…" if len(labels) == shown else ", …")


def node_text(network: Network, variable: int, *, whole: bool = False, cases: Any = None) -> str:
    """A variable's decision graph, indented: tests with the states of their arcs, leaves with their distributions.

    A graph that is too long for a page is folded unless `whole`. `cases`: the cases whose shares are shown in folds.

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
    shown = ShownGraph(network, variable, node, not whole, given_cases(network, variable, cases))
    lines, n_open = _page(shown, whole)
    width = min(max(len(left) for left, right in lines if right), _WIDTH // 2)
    body = [f"{left:<{width}}  {right}".rstrip() if left else right for left, right in lines]
    meaning = ["", *cause_lines(network, variable)] if network.variables[variable].hidden else []
    left_out = not_shown(shown, n_open)
    note = ["", f"Not shown: {left_out}. With --whole, or .text(whole=True), all is."] if left_out else []
    head = f"{name}{', given ' + parents if parents else ''}: {graph_sizes(network, variable, node)}"
    return "\n".join([head, "", *body, *note, *meaning])


def not_shown(shown: ShownGraph, n_open: int) -> str:
    """What a picture or a text of a graph omits, in words; "" if nothing."""
    n_folded, unseen = shown.graph.n_tests - n_open, len(shown.stands_for)
    n_empty = shown.node.n_tests - shown.graph.n_tests  # below these are only such leaves
    last = ", ".join(f"leaf {leaf}" for leaf in sorted(set(shown.stands_for.values())))
    folded = [f"{many(n_folded, 'test')}, folded at ▸"] if n_folded else []
    empty = f", and {many(n_empty, 'test')} of them alone" if n_empty else ""
    same = [f"{many(unseen, 'leaf', 'leaves')} without cases, the same as {last}{empty}"] if unseen else []
    return "; ".join(folded + same)


def graph_sizes(network: Network, variable: int, node: Node) -> str:
    """The size of a node's decision graph, in words."""
    n_parameters = network.parameters_by_node()[variable] if network.ties else node.n_parameters
    sizes = [many(node.n_tests, "test"), many(node.n_leaves, "leaf", "leaves"), many(n_parameters, "parameter")]
    return ", ".join(sizes)


def _page(shown: ShownGraph, whole: bool) -> tuple[list[tuple[str, str]], int]:
    """The lines of as many tests as fit on a page, or of all; and the number of these tests."""
    order, leaf_texts = list(in_order(shown, information(shown))), _leaf_texts(shown)

    def lines(n_open: int) -> list[tuple[str, str]]:
        return list(_graph_lines(shown, leaf_texts, set(order[:n_open])))

    def fits(n_open: int) -> bool:
        return whole or len(lines(n_open)) <= _PAGE

    n_open = len(order) if fits(len(order)) else most_that_fit(min(len(order), _PAGE), fits)
    return lines(n_open), n_open


def _graph_lines(shown: ShownGraph, leaf_texts: list[str], opened: set[int]) -> Iterator[tuple[str, str]]:
    """Each line's left side (an indented arc) and right side (a leaf, a fold, or a reference to a shared subgraph)."""
    graph, leaf_number = shown.graph, shown.leaf_numbers
    shared = _shared_tests(graph, opened)
    printed: set[int] = set()
    stack: list[tuple[int, str, int]] = [(0, "", 0)]  # node, the arc that leads there, its depth
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
        head = f"sub-graph {shared[node]}:" if node in shared else ""
        if node not in opened:
            yield left, f"▸ {head + ' ' if head else ''}{_fold_text(shown, node, opened)}"
            continue
        if arc:
            yield left, head
        name, below = shown.test_name(node), depth + bool(arc)
        if shown.is_own(node):
            texts = [(one.child, f"{name}: {one.states}  {100 * (one.share or 0):.1f} %") for one in shown.arcs(node)]
        else:
            texts = [(one.child, f"{name} {one.states}") for one in shown.arcs(node)]
        stack += [(child, printable(text), below) for child, text in reversed(texts)]


def _fold_text(shown: ShownGraph, place: int, opened: set[int]) -> str:
    """A summary of a folded test: its size, and the shares of the states."""
    fold, labels = Fold.below(shown, place, opened), shown.variable.labels
    shares = "  ".join(f"{printable(labels[state])} {fold.share(state)}" for state in fold.states)
    return f"{fold.size}   {shares}{'  …' if 0 < len(fold.states) < len(labels) > 2 else ''}".rstrip()


def _shared_tests(graph: DecisionGraph, opened: set[int]) -> dict[int, int]:
    """Numbers, from 1 on, for the tests reached by several arcs of the opened tests."""
    n_into = Counter(child for place in opened for child in set(graph.children[place]))
    tests = sorted(node for node, count in n_into.items() if count > 1 and graph.tests[node] != LEAF)
    return {node: number for number, node in enumerate(tests, 1)}


def _leaf_texts(shown: ShownGraph) -> list[str]:
    """For each leaf its number, its cases if known, and its distribution in percent, in columns."""
    n_leaves = shown.node.n_leaves
    heads = [f"leaf {leaf:<{len(str(n_leaves - 1))}}" for leaf in range(n_leaves)]
    width = max(map(len, shown.cases))
    heads = [f"{head}  {text:>{width}}" if width else head for head, text in zip(heads, shown.cases, strict=True)]
    digits = 5 if shown.probabilities.max() >= 0.9995 else 4  # 100.0 or 99.9
    ties = [shown.tied(leaf) for leaf in range(n_leaves)]
    rows = [_distribution(shown, leaf, digits) for leaf in range(n_leaves)]
    return [
        f"{head}   {row}{'   ' + printable(tied) if tied else ''}"
        for head, row, tied in zip(heads, rows, ties, strict=True)
    ]


def _distribution(shown: ShownGraph, leaf: int, digits: int) -> str:
    variable, row, states = shown.variable, shown.probabilities[leaf], list(shown.states(leaf))
    listed = states
    if len(states) > _MOST_SHOWN:
        likeliest = np.argsort(-row[states], kind="stable")[: _MOST_SHOWN - 1]
        listed = [states[place] for place in likeliest.tolist()]
    text = "  ".join(f"{printable(variable.labels[state])} {100 * row[state]:{digits}.1f} %" for state in listed)
    return text if len(listed) == len(states) else f"{text}  … ({len(states)} states)"
