"""Interventions: a network in which variables are set regardless of their parents (Pearl's do-operator).

Its answers are causal only under assumptions that data alone cannot confirm: arcs point from causes to effects, and no
common cause of the variables is missing.
"""

from dataclasses import replace

from leafwise import dag
from leafwise.data.table import index_of
from leafwise.decision_graph import DecisionGraph
from leafwise.inference.evidence import Given, mapping_of, weights_of
from leafwise.network import Network, Node, check_network
from leafwise.tied_leaves import without_ties_of


def do(network: Network, states: Given) -> Network:
    """The network after an intervention: these variables have a given state or distribution, and no parents.

    All queries work on it. They give the effect of the intervention if arcs point from causes to effects and no common
    cause is missing; `reversible_arcs` reports the arcs whose direction the data do not determine.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.query import query
    >>> seen = query(alarm(), "HR", given={"CO": "LOW"})["HR"]["HIGH"]
    >>> set_to = query(do(alarm(), {"CO": "LOW"}), "HR")["HR"]["HIGH"]
    >>> round(seen, 3), round(set_to, 3)
    (0.723, 0.815)
    """
    check_network(network, "do")
    states = mapping_of(states)
    nodes, known = list(network.nodes), weights_of(network, states)
    unset = [name for name in states if index_of(name, network.names) not in known]
    if unset:
        raise ValueError(f"{unset[0]!r} is set to {states[unset[0]]!r}, which is no state: give one, or leave it out.")
    for index, weights in known.items():
        nodes[index] = Node((), DecisionGraph.single(), weights[None] / weights.sum())
    return replace(network, nodes=tuple(nodes), ties=without_ties_of(network, known))


def reversible_arcs(network: Network, name: str) -> tuple[str, ...]:
    """The neighbours of a variable whose arc could be reversed without changing the independences.

    If such an arc leads into a variable that is set, the result of do() depends on its direction, which the data do not
    determine.

    >>> from leafwise.examples import alarm
    >>> reversible_arcs(alarm(), "LVFAILURE"), reversible_arcs(alarm(), "HISTORY")
    (('HISTORY',), ('LVFAILURE',))
    """
    check_network(network, "reversible_arcs")
    index = index_of(name, network.names)
    arcs = dag.equivalence_class([() if node is None else node.parents for node in network.nodes])
    return tuple(network.names[v] for v in range(len(arcs)) if arcs[index, v] and arcs[v, index])
