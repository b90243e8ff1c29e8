"""CPD: the conditional distribution of one variable in a network, by names.

Knows networks; text and pictures are made on demand.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leafwise.data.table import Variable
from leafwise.decision_graph import DecisionGraph
from leafwise.network import Network, Node
from leafwise.own_tests import OwnTests

if TYPE_CHECKING:
    from leafwise.report.svg import Picture


@dataclass(frozen=True, eq=False, repr=False)
class CPD:
    """The conditional distribution of a variable given its parents: `network["name"]`. `print` displays its graph.

    >>> from leafwise.examples import alarm
    >>> shunt = alarm()["SHUNT"]
    >>> shunt.parents, shunt.children, shunt.labels
    (('PULMEMBOLUS', 'INTUBATION'), ('SAO2',), ('NORMAL', 'HIGH'))
    """

    network: Network
    index: int  # of the variable in the network

    @property
    def variable(self) -> Variable:
        """The variable: its name, labels and cut points."""
        return self.network.variables[self.index]

    @property
    def name(self) -> str:
        """The variable's name."""
        return self.variable.name

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the variable's states."""
        return self.variable.labels

    @property
    def parents(self) -> tuple[str, ...]:
        """The names of its parents."""
        node = self.network.nodes[self.index]
        return () if node is None else tuple(self.network.variables[parent].name for parent in node.parents)

    @property
    def children(self) -> tuple[str, ...]:
        """The names of its children."""
        pairs = zip(self.network.variables, self.network.nodes, strict=True)
        return tuple(variable.name for variable, node in pairs if node is not None and self.index in node.parents)

    @property
    def node(self) -> Node:
        """The node: indices of the parents, graph, probabilities and counts of the leaves."""
        node = self.network.nodes[self.index]
        if node is None:
            raise ValueError(
                f"{self.name!r} is only given in this network, which has no distribution of it: learn all variables, "
                f"without a target."
            )
        return node

    @property
    def graph(self) -> DecisionGraph:
        """The decision graph over the parents."""
        return self.node.graph

    @property
    def own(self) -> OwnTests | None:
        """The graph that also tests the variable itself, with its distributions; None without such tests."""
        return self.node.own

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """One row per leaf, one column per state."""
        return self.node.probabilities

    @property
    def counts(self) -> NDArray[np.int64] | None:
        """The cases in each leaf, by state, if the network was learned; with own-value tests, `own` has them."""
        return self.node.counts

    @property
    def n_leaves(self) -> int:
        """The number of leaves as displayed: of the graph with its own-value tests, if there are any."""
        return self.node.n_leaves

    def plot(self, *, whole: bool = False, cases: Any = None) -> "Picture":
        """A picture of the graph with a bar chart in each leaf, as by `Network.plot_node`."""
        return self.network.plot_node(self.name, whole=whole, cases=cases)

    def text(self, *, whole: bool = False, cases: Any = None) -> str:
        """The graph as text, folded if it is too long for a page; `whole` and `cases` are those of `plot`."""
        from leafwise.report.text import node_text

        return node_text(self.network, self.index, whole=whole, cases=cases).rstrip()

    def __repr__(self) -> str:
        return self.text()

    def _repr_svg_(self) -> str | None:
        return None if self.network.nodes[self.index] is None else self.plot()._repr_svg_()
