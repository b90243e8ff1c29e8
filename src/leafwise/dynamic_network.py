"""DynamicNetwork: how the variables of a time slice depend on earlier slices and on each other. Immutable.

Knows networks and series; methods import what they need from higher layers when called, as in `Network`.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from leafwise.data.series import lagged, read_series, wide
from leafwise.data.table import Variable, brief, many
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.errors import check_type
from leafwise.network import Network, Node, TiedLeaf, check_network

if TYPE_CHECKING:
    from leafwise.cpd import CPD
    from leafwise.data.encoding import NewReading


@dataclass(frozen=True, eq=False, repr=False)
class DynamicNetwork:
    """A network of a window over series: `lags` slices, and the present one, which depends on them alike at any time.

    In `window`, x[t-1] is x one step before. The nodes of the present slice apply at every time from `lags` on; those
    of earlier slices are the distribution of the first ones. `unroll` makes an ordinary network.

    >>> import leafwise
    >>> dynamic = leafwise.learn(np.array([[0], [1]] * 50), lags=1)
    >>> dynamic, dynamic.unroll(3).named_arcs
    (DynamicNetwork(1 variable, 1 lag, 1 arc, 3 parameters, learned from 99 cases), \
(('x1[0]', 'x1[1]'), ('x1[1]', 'x1[2]')))
    """

    window: Network
    lags: int

    def __post_init__(self) -> None:
        """Refuse a network that is not one of a window."""
        check_network(self.window, "DynamicNetwork")
        check_type(self.lags, (int, np.integer), "lags", "a whole number from 1 on: say how many slices before matter.")
        object.__setattr__(self, "lags", int(self.lags))
        if self.lags < 1 or len(self.window) % (self.lags + 1) or not len(self.window):
            raise ValueError(
                f"the window has {many(len(self.window), 'variable')} for lags={self.lags}: give it equally many "
                f"for each of the slices."
            )
        n, variables = len(self.variables), self.window.variables
        for place, variable in enumerate(variables):
            own = variables[len(variables) - n + place % n]
            if variable != replace(own, name=lagged(own.name, self.lags - place // n)):
                raise ValueError(
                    f"{brief(variable.name)} is not {brief(own.name)} of an earlier slice: give it its name and states."
                )
        for place, node in enumerate(self.window.nodes):
            if node is None or any(parent // n > place // n for parent in node.parents):
                problem = "has no distribution" if node is None else "depends on a later slice"
                raise ValueError(f"{brief(variables[place].name)} {problem}: give it one, and parents from before.")

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables of one slice."""
        return self.window.variables[self.lags * (len(self.window) // (self.lags + 1)) :]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables of one slice."""
        return tuple(variable.name for variable in self.variables)

    def __getitem__(self, name: str) -> "CPD":
        """The conditional distribution of a variable given its own slice and earlier ones."""
        return self.window[name]

    def unroll(self, slices: int) -> Network:
        """The network over `slices` slices, with variables x[0], x[1], ...: it supports every query of a network.

        >>> import leafwise
        >>> network = leafwise.learn(np.array([[0], [1]] * 50), lags=1).unroll(10)
        >>> round(network.query("x1[9]", given={"x1[7]": 0})["x1[9]"]["0"], 2)
        0.96
        """
        check_type(
            slices, (int, np.integer), "the number of slices", "a whole number from 1 on: use for example unroll(10)."
        )
        if slices < 1:
            raise ValueError(f"the number of slices is {slices}, and must be at least 1: raise it.")
        n, variables, nodes = len(self.variables), [], []
        for step in range(slices):
            first = min(step, self.lags)
            variables += [replace(variable, name=f"{variable.name}[{step}]") for variable in self.variables]
            nodes += [_moved(node, (step - first) * n) for node in self.window.nodes[first * n : (first + 1) * n]]
        learned = {key: value for key, value in self.window.learned.items() if key == "cases"}
        learned |= {"lags": self.lags, "slices": slices}
        if slices > self.lags + 1:
            learned["tied"] = [[f"{name}[{step}]" for step in range(self.lags, slices)] for name in self.names]
        priors = self.window.prior, self.window.structure_prior
        return Network(tuple(variables), tuple(nodes), *priors, learned, self._ties(slices))

    def _ties(self, slices: int) -> tuple[tuple[TiedLeaf, ...], ...]:
        """Tie the leaves of the present slice over time, together with those to which the window ties them."""
        n, groups = len(self.variables), [*self.window.ties]
        known = {(tied.variable, tied.leaf) for group in groups for tied in group}
        for place in range(self.lags * n, len(self.window)):
            leaves = (TiedLeaf(place, row, states) for row, states in _leaves(self.window.nodes[place]))
            groups += [(leaf,) for leaf in leaves if (place, leaf.leaf) not in known]
        found, n_times = [], max(slices - self.lags, 0)
        for group in groups:
            times = [(tied, n_times if tied.variable // n == self.lags else 1) for tied in group]
            moved = [tied._replace(variable=tied.variable + n * k) for tied, often in times for k in range(often)]
            there = sorted(tied for tied in moved if tied.variable < n * slices)
            found += [tuple(there)] if len(there) > 1 else []
        return tuple(found)

    def log_probabilities(
        self, data: Any, *, by: str | None = None, time: str | None = None, **reading: Unpack["NewReading"]
    ) -> NDArray[np.float64]:
        """The natural log of the probability of each series, in order of first appearance.

        Missing cells are summed out, unless `missing="error"` refuses them.

        >>> import leafwise
        >>> dynamic = leafwise.learn(np.array([[0], [1]] * 50), lags=1)
        >>> dynamic.log_probabilities(np.array([[0], [1], [0]])).round(2)
        array([-0.72])
        """
        given: NewReading = {"missing": "unknown", **reading}
        series, _ = read_series(data, by=by, time=time, variables=self.variables, **given)
        logs = np.empty(len(series.names))
        for length in np.unique(series.lengths).tolist():
            chosen, table = wide(series, length)
            logs[chosen] = self.unroll(length).log_probabilities(table)
        return logs

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a .json or .json.gz file, from which `load` restores it exactly."""
        from leafwise.formats.files import save_dynamic

        check_type(path, (str, os.PathLike), "where to save", "a path: use for example 'model.json'.")
        save_dynamic(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, most_bytes: int | None = None) -> "DynamicNetwork":
        """Read a dynamic network from a file."""
        from leafwise.formats.files import load_dynamic

        check_type(path, (str, os.PathLike), "what to load", "a path: use for example 'model.json'.")
        return load_dynamic(path, most_bytes=most_bytes)

    def __repr__(self) -> str:
        sizes = [many(len(self.variables), "variable"), many(self.lags, "lag"), many(len(self.window.arcs), "arc")]
        sizes.append(many(self.window.n_parameters, "parameter"))
        cases = self.window.learned.get("cases")
        learned = [f"learned from {many(cases, 'case')}"] if isinstance(cases, int) else []
        return f"DynamicNetwork({', '.join(sizes + learned)})"

    def __eq__(self, other: object) -> bool:
        """Equal windows and lags."""
        if not isinstance(other, DynamicNetwork):
            return NotImplemented
        return self.window == other.window and self.lags == other.lags

    def __hash__(self) -> int:
        """Consistent with equality."""
        return hash((self.window, self.lags))


def _leaves(node: Node | None) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The rows of a node's leaves that have parameters, and their states."""
    assert node is not None
    own, everything = node.own, tuple(range(node.n_states))
    for row in range(len((own or node).probabilities)):
        states = everything if own is None else own.states[own.places[row]]
        if len(states) > 1 and (own is None or not own.is_switch(row)):
            yield row, states


def _moved(node: Node | None, by: int) -> Node:
    """A node with its parents, and own-value tests, moved by `by` variables."""
    assert node is not None
    parents, own = tuple(parent + by for parent in node.parents), node.own
    if own is not None:
        return Node.with_own_tests(replace(own, graph=_graph_moved(own.graph, by), target=own.target + by), parents)
    return replace(node, parents=parents, graph=_graph_moved(node.graph, by))


def _graph_moved(graph: DecisionGraph, by: int) -> DecisionGraph:
    return DecisionGraph(tuple(test if test == LEAF else test + by for test in graph.tests), graph.children)
