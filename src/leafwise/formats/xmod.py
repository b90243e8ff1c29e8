"""Networks as XMOD files, the decision trees of WinMine and Libra.

There is no published description: this is what Libra's source reads and writes. A vertex has a branch for each group of
states. A leaf on several paths is written once for each, so a decision graph comes back as a tree, whose leaves are
numbered from the root down. Libra reads only vertices with two branches, the first of which has one state.

    <AnalysisNotebook>
      <Variables>
        <Variable name="rain" type="categorical">
          <State index="0" name="no"/><State index="1" name="yes"/>
        </Variable> ...
      </Variables>
      <Model name="">
        <LocalModels>
          <LocalModel variable="wet">
            <Inputs><Input variable="rain"/></Inputs>
            <DecisionTree>
              <Vertex split="rain">
                <Branch>
                  <Values>0</Values>
                  <Leaf><Multinomial><Probs>0.9 0.1</Probs><Counts>9 1</Counts></Multinomial></Leaf>
                </Branch> ...
"""

import os
from collections.abc import Iterator

from leafwise.data.table import Variable
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.formats.tables import MOST_CELLS, Room, check_size
from leafwise.formats.whole_files import read_as, write_whole
from leafwise.formats.xml_elements import attribute_of
from leafwise.formats.xmod_reading import read_network
from leafwise.network import Network, Node


def save(network: Network, path: str | os.PathLike[str], most_cells: int = MOST_CELLS) -> None:
    """Write a network to an .xmod or .xmod.gz file, atomically.

    >>> import tempfile
    >>> from leafwise.examples import alarm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(alarm(), folder + "/alarm.xmod")
    ...     load(folder + "/alarm.xmod").n_parameters
    509
    """
    write_whole(path, dumps(network, most_cells).encode())


def load(path: str | os.PathLike[str]) -> Network:
    """Read a network from an .xmod or .xmod.gz file; a one-line ValueError with line and column if it is invalid."""
    return read_as(path, loads)


def dumps(network: Network, most_cells: int = MOST_CELLS) -> str:
    """The XMOD text of a network; a ValueError if a tree's leaves would have more than `most_cells` numbers."""
    lines = ['<?xml version="1.0" standalone="yes"?>', "<AnalysisNotebook>", "<Variables>"]
    for variable in network.variables:
        lines += _variable_lines(variable)
    lines += ["</Variables>", '<Model name="">', "<LocalModels>"]
    for index, node in enumerate(network.nodes):
        if node is not None:
            _check_size(network.variables[index].name, node, most_cells)
            lines += _model_lines(network, index, node)
    return "\n".join([*lines, "</LocalModels>", "</Model>", "</AnalysisNotebook>", ""])


def loads(text: str | bytes, most_cells: int | None = None) -> Network:
    """The network of an XMOD text."""
    data = text.encode() if isinstance(text, str) else text
    return read_network(data, Room(len(data), most_cells))


def _variable_lines(variable: Variable) -> list[str]:
    states = [f'<State index="{state}" name={attribute_of(label)}/>' for state, label in enumerate(variable.labels)]
    return [f'<Variable name={attribute_of(variable.name)} type="categorical">', *states, "</Variable>"]


def _check_size(name: str, node: Node, most_cells: int) -> None:
    n_leaves = [0] * len(node.graph.tests)
    for place in reversed(range(len(n_leaves))):
        n_leaves[place] = sum(n_leaves[child] for _, child in node.graph.arcs(place)) or 1
    check_size(f"the tree of {name!r}", n_leaves[0] * node.n_states, most_cells)


def _model_lines(network: Network, index: int, node: Node) -> Iterator[str]:
    yield f"<LocalModel variable={attribute_of(network.variables[index].name)}>"
    inputs = [f"<Input variable={attribute_of(network.variables[parent].name)}/>" for parent in node.parents]
    if inputs:
        yield f"<Inputs>{''.join(inputs)}</Inputs>"
    yield "<DecisionTree>"
    leaf_number = {place: leaf for leaf, place in enumerate(node.graph.leaves)}
    pending: list[int | str] = [0]  # nodes still to be written, and lines after them
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif node.graph.tests[item] == LEAF:
            yield _leaf_line(node, leaf_number[item])
        else:
            name = network.variables[node.graph.tests[item]].name
            yield f"<Vertex split={attribute_of(name)}>"
            pending += reversed([*_branches(node.graph, item), "</Vertex>"])
    yield from ("</DecisionTree>", "</LocalModel>")


def _branches(graph: DecisionGraph, place: int) -> Iterator[int | str]:
    """The branches of a vertex, one with a single state first."""
    for states, child in sorted(graph.arcs(place), key=lambda arc: len(arc[0]) > 1):
        yield f"<Branch><Values>{' '.join(map(str, sorted(states)))}</Values>"
        yield from (child, "</Branch>")


def _leaf_line(node: Node, leaf: int) -> str:
    numbers = f"<Probs>{' '.join(map(repr, node.probabilities[leaf].tolist()))}</Probs>"
    if node.counts is not None:
        numbers += f"<Counts>{' '.join(map(str, node.counts[leaf].tolist()))}</Counts>"
    return f"<Leaf><Multinomial>{numbers}</Multinomial></Leaf>"
