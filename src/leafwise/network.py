"""Network: variables, and for each a decision graph with a distribution in every leaf. Immutable.

Knows variables and decision graphs, not how networks are learned.
"""

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leafwise import dag
from leafwise.data.table import Variable, first_repeated, index_of, many
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.errors import check_type
from leafwise.own_tests import OwnTests, frozen, frozen_counts, same

if TYPE_CHECKING:
    import networkx

    from leafwise.cpd import CPD
    from leafwise.data.table import Table
    from leafwise.inference.evidence import Given
    from leafwise.inference.explanation import Explanation
    from leafwise.inference.prepared import PreparedQuery
    from leafwise.inference.query import Answer
    from leafwise.kernels.questions.routes import FlatGraphs
    from leafwise.predictions import Predictions
    from leafwise.report.svg import Picture

_SUM_TOLERANCE = 1e-6  # distributions in published files are rounded
_MOST_AXES = 32  # of an array, in all versions of NumPy
_LOST = 1e-9  # relative difference of numbers that were summed in another order


@dataclass(frozen=True, eq=False)
class Node:
    """One variable's conditional distribution: its parents, the graph over them, and a distribution in each leaf.

    >>> Node.learned((), DecisionGraph.single(), np.array([[3, 1]]), np.ones((1, 2))).probabilities.round(2).tolist()
    [[0.67, 0.33]]
    """

    parents: tuple[int, ...]  # sorted; all tested variables, and perhaps more
    graph: DecisionGraph
    probabilities: NDArray[np.float64]  # (n_leaves, n_states)
    counts: NDArray[Any] | None = None  # integers, or expected counts; None: the distribution was given, not learned
    exponents: NDArray[np.float64] | None = None  # Dirichlet exponents, of the same shape
    own: OwnTests | None = None  # tests of the variable itself, if any; graph and probabilities are then the expanded
    # form over the parents alone, made on first access; a ValueError if that is too large

    def __post_init__(self) -> None:
        """Freeze private copies of the arrays, and check what can be checked without the variables."""
        object.__setattr__(self, "probabilities", frozen(self.probabilities, np.float64))
        if (self.counts is None) != (self.exponents is None):
            raise ValueError("a node got counts or exponents alone, and it takes both or neither: give the other too.")
        if self.counts is not None and self.exponents is not None:
            if self.own is not None:
                raise ValueError("a node with own-value tests got counts of its own: leave them to the tests.")
            object.__setattr__(self, "counts", frozen_counts(self.counts))
            object.__setattr__(self, "exponents", frozen(self.exponents, np.float64))
        _check_numbers(self)
        _check_parents(self)

    @classmethod
    def learned(
        cls,
        parents: tuple[int, ...],
        graph: DecisionGraph,
        counts: NDArray[Any],
        exponents: NDArray[np.float64],
    ) -> "Node":
        """Make a node whose probabilities are the posterior means: counts + exponents, normalised in each leaf."""
        return cls(parents, graph, _posterior_means(counts, exponents), counts, exponents)

    @classmethod
    def with_means(
        cls, parents: tuple[int, ...], graph: DecisionGraph, counts: NDArray[Any], means: NDArray[np.float64]
    ) -> "Node":
        """Make a node with these probabilities, and with exponents for which they are the posterior means."""
        sizes = (counts / means).max(axis=1, keepdims=True) + means.shape[1]
        return cls.learned(parents, graph, counts, means * sizes - counts)

    @classmethod
    def with_own_tests(cls, own: OwnTests, parents: tuple[int, ...] | None = None) -> "Node":
        """Make a node whose graph also tests its own variable; the parents are those that it tests, or more."""
        node = object.__new__(cls)
        vars(node).update(parents=own.parents if parents is None else parents, counts=None, exponents=None, own=own)
        _check_parents(node)
        return node

    if not TYPE_CHECKING:  # otherwise type checkers would accept any attribute

        def __getattr__(self, name: str) -> Any:
            """Make the graph over the parents alone, and its probabilities, on first access."""
            own = vars(self).get("own")
            if name not in ("graph", "probabilities") or own is None:
                raise AttributeError(f"a node has no attribute {name!r}", name=name, obj=self)
            graph, probabilities = own.expanded()
            vars(self).update(graph=graph, probabilities=frozen(probabilities, np.float64))
            return vars(self)[name]

    @classmethod
    def all_learned(
        cls,
        parents: Sequence[tuple[int, ...]],
        graphs: Sequence[DecisionGraph],
        counts: NDArray[Any],
        exponents: NDArray[np.float64],
    ) -> "list[Node]":
        """Make many nodes with the same number of states, as by `learned`; the rows of their leaves are concatenated.

        >>> two = Node.all_learned([(), ()], [DecisionGraph.single()] * 2, np.array([[1, 1], [0, 2]]), np.ones((2, 2)))
        >>> [node.probabilities.tolist() for node in two]
        [[[0.5, 0.5]], [[0.25, 0.75]]]
        """
        leaves = DecisionGraph((LEAF,) * len(counts), ((),) * len(counts))
        whole = cls.learned((), leaves, counts, exponents)  # checks all numbers at once
        arrays = [(name, getattr(whole, name)) for name in ("probabilities", "counts", "exponents")]
        ends = np.cumsum([0, *(graph.n_leaves for graph in graphs)]).tolist()
        if ends[-1] != len(counts):
            raise ValueError(f"the graphs have {ends[-1]} leaves, not {len(counts)}: give one row for each leaf.")
        nodes = []
        for own, graph, (begin, end) in zip(parents, graphs, pairwise(ends), strict=True):
            node = object.__new__(cls)
            fields = vars(node)
            fields["parents"], fields["graph"], fields["own"] = own, graph, None
            for name, array in arrays:
                fields[name] = array[begin:end]
            _check_parents(node)
            nodes.append(node)
        return nodes

    def relearned(self, counts: NDArray[Any], exponents: NDArray[np.float64]) -> "Node":
        """The same graph with other counts and exponents, one row for each distribution (`places`)."""
        if self.own is None:
            return Node.learned(self.parents, self.graph, counts, exponents)
        return Node.with_own_tests(OwnTests.learned(self.own.graph, counts, exponents, self.own.target), self.parents)

    def renumbered(self, number: Callable[[int], int]) -> "Node":
        """The node for variables with other numbers, in the same order."""
        parents = tuple(map(number, self.parents))
        if self.own is None:
            return replace(self, parents=parents, graph=self.graph.renumbered(number))
        own = replace(self.own, graph=self.own.graph.renumbered(number), target=number(self.own.target))
        return Node.with_own_tests(own, parents)

    @property
    def n_states(self) -> int:
        """The number of states of the node's variable."""
        return int(self.probabilities.shape[1]) if self.own is None else self.own.n_states

    @cached_property
    def flat(self) -> "FlatGraphs":
        """The graph in the form used by compiled code."""
        from leafwise.kernels.questions.routes import (
            flatten,  # imports the compiler, which reading a network does not need
        )

        return flatten([self.graph])

    @property
    def whole_graph(self) -> DecisionGraph:
        """The graph with its own-value tests, if it has any."""
        return self.graph if self.own is None else self.own.graph

    @property
    def places(self) -> tuple[int, ...]:
        """The nodes of the whole graph that have a distribution: leaves, and own-value tests."""
        return self.graph.leaves if self.own is None else self.own.places

    @property
    def leaf_rows(self) -> Sequence[int]:
        """The rows of the whole graph's leaves among those of its distributions."""
        return range(len(self.probabilities)) if self.own is None else self.own.leaf_rows

    @property
    def n_tests(self) -> int:
        """The number of tests, including own-value tests."""
        return self.whole_graph.n_tests

    @property
    def n_leaves(self) -> int:
        """The number of leaves; with own-value tests, those below them, not their combinations."""
        return self.whole_graph.n_leaves

    @property
    def n_parameters(self) -> int:
        """The number of free parameters of leaves, and of the switches of own-value tests."""
        return self.graph.n_parameters(self.n_states) if self.own is None else self.own.n_parameters

    def __eq__(self, other: object) -> bool:
        """Equal parents, graphs and, to the last bit, arrays."""
        if not isinstance(other, Node):
            return NotImplemented
        if self.parents != other.parents or self.own is not None or other.own is not None:
            return self.parents == other.parents and self.own == other.own
        return self.graph == other.graph and all(
            same(getattr(self, name), getattr(other, name)) for name in ("probabilities", "counts", "exponents")
        )

    def __hash__(self) -> int:
        """Agrees with equality."""
        return hash((self.parents, self.whole_graph))


class TiedLeaf(NamedTuple):
    """One of several leaves that share a distribution: its entry s is the probability of state `states[s]` here."""

    variable: int
    leaf: int  # the row of the node's probabilities, or of those of its own-value tests
    states: tuple[int, ...]  # all states of the leaf, each once


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """Variables with one node each; acyclic. `network["name"]` is the conditional distribution of a variable.

    >>> coin = Variable("coin", ("heads", "tails"))
    >>> network = Network((coin,), (Node((), DecisionGraph.single(), np.array([[0.5, 0.5]])),))
    >>> network.n_leaves, network.n_parameters, network.arcs
    (1, 1, ())
    >>> network, list(network), "coin" in network
    (Network(1 variable, 0 arcs, 0 tests, 1 leaf, 1 parameter), ['coin'], True)
    """

    variables: tuple[Variable, ...]
    nodes: tuple[Node | None, ...]  # None: no distribution was learned, as for the inputs of a single target
    prior: str | None = None
    structure_prior: str | None = None
    learned: Mapping[str, Any] = field(default_factory=dict)  # how it was learned: JSON values
    ties: tuple[tuple[TiedLeaf, ...], ...] = ()  # groups of leaves that share a distribution

    def __post_init__(self) -> None:
        """Raise an error for nodes or ties that do not fit the variables, and for cycles."""
        object.__setattr__(self, "variables", tuple(self.variables))
        object.__setattr__(self, "nodes", tuple(self.nodes))
        object.__setattr__(self, "learned", read_only(self.learned))
        _check_names(self.names)
        if len(self.nodes) != len(self.variables):
            raise ValueError(
                f"the network got {len(self.nodes)} nodes for {len(self.variables)} variables: "
                f"give one for each variable, None where it is only given."
            )
        n_states = [variable.n_states for variable in self.variables]
        for index, node in enumerate(self.nodes):
            if node is not None:
                _check_fit(self.variables, index, node, n_states)
        self._check_acyclic()
        object.__setattr__(self, "ties", _checked_ties(self))

    @classmethod
    def with_nodes_later(
        cls,
        variables: tuple[Variable, ...],
        make_nodes: Callable[[], tuple[Node | None, ...]],
        ties: Sequence[Sequence[TiedLeaf]] = (),
        learned: Mapping[str, Any] | Callable[[], Mapping[str, Any]] = MappingProxyType({}),
        **others: Any,
    ) -> "Network":
        """Make a network whose nodes are made on first access; the caller has validated them.

        `learned` may be made on first access, too.
        """
        network = cls.__new__(cls)
        vars(network).update(others, variables=tuple(variables), ties=tuple(map(tuple, ties)), _make_nodes=make_nodes)
        if callable(learned):
            vars(network)["_make_learned"] = lambda: read_only(learned())
        else:
            vars(network)["learned"] = read_only(learned)
        _check_names(network.names)
        return network

    if not TYPE_CHECKING:  # otherwise type checkers would accept any attribute

        def __getattr__(self, name: str) -> Any:
            """Make `nodes` or `learned` on first access."""
            if name not in ("nodes", "learned"):
                raise AttributeError(f"a network has no attribute {name!r}", name=name, obj=self)
            make = vars(self).get(f"_make_{name}")
            if make is not None:  # otherwise another thread has just made it
                vars(self)[name] = make()
                vars(self).pop(f"_make_{name}", None)
            return vars(self)[name]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables."""
        return tuple(variable.name for variable in self.variables)

    @property
    def arcs(self) -> tuple[tuple[int, int], ...]:
        """All arcs as (parent, child), ordered by child."""
        return tuple((parent, child) for child, row in enumerate(self._parents()) for parent in row)

    @property
    def named_arcs(self) -> tuple[tuple[str, str], ...]:
        """All arcs as (parent, child), by name."""
        names = self.names
        return tuple((names[parent], names[child]) for parent, child in self.arcs)

    def parents(self, name: str) -> tuple[str, ...]:
        """The names of a variable's parents."""
        return self[name].parents

    def children(self, name: str) -> tuple[str, ...]:
        """The names of a variable's children."""
        return self[name].children

    def __getitem__(self, name: str) -> "CPD":
        """The conditional distribution of a variable: its parents and children by name, its graph and leaves."""
        from leafwise.cpd import CPD

        return CPD(self, index_of(name, self.names))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.variables)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    @property
    def n_tests(self) -> int:
        """The number of tests in all graphs."""
        return sum(node.n_tests for node in self.nodes if node is not None)

    @property
    def n_leaves(self) -> int:
        """The number of leaves of all graphs."""
        return sum(node.n_leaves for node in self.nodes if node is not None)

    @property
    def n_parameters(self) -> int:
        """The number of free parameters of all leaves; those of tied leaves count once."""
        return sum(self.parameters_by_node())

    def parameters_by_node(self) -> list[int]:
        """The number of free parameters of each node; those of tied leaves count in the first node of their group.

        >>> fair = Node.learned((), DecisionGraph.single(), np.array([[3, 2, 2]]), np.ones((1, 3)))
        >>> dice = tuple(Variable(name, ("1", "2", "3")) for name in "ab")
        >>> alike = TiedLeaf(0, 0, (0, 1, 2)), TiedLeaf(1, 0, (0, 1, 2))
        >>> Network(dice, (fair, fair), ties=[alike]).parameters_by_node()
        [2, 0]
        """
        found = [0 if node is None else node.n_parameters for node in self.nodes]
        for first, *others in all_ties(self):
            own = (node := self.nodes[first.variable]) and node.own
            n_outcomes = len(own.parts[first.leaf] if own else first.states)
            for tied in others:
                found[tied.variable] -= n_outcomes - 1
        return found

    @cached_property
    def tables(self) -> tuple[NDArray[np.float64] | None, ...]:
        """The complete table of each variable, one axis per parent and one for itself; None if it has no such table."""
        return tuple(None if node is None else _table(self.variables, node) for node in self.nodes)

    def order(self) -> tuple[int, ...]:
        """A topological order of the variables, with the smallest index first among those available."""
        return dag.topological_order(self._parents())

    def query(self, targets: str | Sequence[str], *, given: "Given | None" = None, **options: Any) -> "Answer":
        """The distributions of targets given evidence, as by `leafwise.query`, with its options."""
        from leafwise.inference.query import query

        return query(self, targets, given=given, **options)

    def explain(
        self, targets: str | Sequence[str] | None = None, *, given: "Given | None" = None, **options: Any
    ) -> "Explanation":
        """The most probable states of all variables, or of targets, given evidence, as by `leafwise.explain`."""
        from leafwise.inference.explanation import explain

        return explain(self, targets, given=given, **options)

    def sample(self, n_cases: int, seed: int = 1, *, given: "Given | None" = None, **options: Any) -> "Table":
        """Draw cases, as by `leafwise.sample`."""
        from leafwise.inference.sampling import sample

        return sample(self, n_cases, seed, given=given, **options)

    def log_probabilities(self, data: Any, **options: Any) -> NDArray[np.float64]:
        """The natural log of the probability of each case of a table, a frame or a file."""
        from leafwise.inference.likelihood import log_probabilities

        return log_probabilities(self, data, **options)

    def predict(self, data: Any, target: str, **options: Any) -> "Predictions":
        """The distribution of a target in every case of a table, a frame or a file, as by `leafwise.predict`."""
        from leafwise.predictions import predict

        return predict(self, data, target, **options)

    def to_networkx(self) -> "networkx.DiGraph":
        """The arcs as a networkx DiGraph whose nodes are the variables' names."""
        try:
            import networkx
        except ModuleNotFoundError:
            raise ValueError(
                "to_networkx needs the package networkx, which is not installed: pip install 'leafwise[networkx]'."
            ) from None
        graph = networkx.DiGraph()
        graph.add_nodes_from(self.names)
        graph.add_edges_from((self.names[parent], self.names[child]) for parent, child in self.arcs)
        return graph

    def prepare(
        self, targets: str | Sequence[str], evidence_variables: str | Iterable[str] = (), *, joint: bool = False
    ) -> "PreparedQuery":
        """A query for targets given evidence variables, planned once for many evaluations with different states.

        >>> from leafwise.examples import alarm
        >>> question = alarm().prepare("LVFAILURE", ["BP", "CO"])
        >>> round(question({"BP": "LOW", "CO": "LOW"})["LVFAILURE"]["TRUE"], 4)
        0.2331
        >>> question.batch([{"BP": "LOW", "CO": "LOW"}, {"BP": "HIGH", "CO": "LOW"}])["LVFAILURE"].round(4).tolist()
        [[0.2331, 0.7669], [0.222, 0.778]]
        """
        from leafwise.inference.prepared import PreparedQuery

        return PreparedQuery(self, targets, evidence_variables, joint=joint)

    def do(self, states: Mapping[str, Any]) -> "Network":
        """The network after an intervention that sets these variables, regardless of their parents.

        Its answers are causal effects only if arcs point from causes to effects, and if no common cause was omitted;
        see `leafwise.reversible_arcs`.

        >>> from leafwise.examples import alarm
        >>> [len(network.nodes[35].parents) for network in (alarm(), alarm().do({"CO": "LOW"}))]
        [2, 0]
        """
        from leafwise.inference.intervention import do

        return do(self, states)

    def save(self, path: str | os.PathLike[str], *, most_cells: int | None = None) -> None:
        """Write the network to a file: .json, from which it loads identically, or a format of other programs.

        `most_cells` raises the limit on the size of the tables and trees that these formats need, 1,000,000 numbers.
        """
        from leafwise.formats.files import save

        check_type(path, (str, os.PathLike), "where to save", "a path: use for example 'model.json'.")
        save(self, path, most_cells)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, most_cells: int | None = None, most_bytes: int | None = None
    ) -> "Network":
        """Read a network from a file, in the format of its extension: .json, .bif or others.

        `most_cells` and `most_bytes` raise the limits on what a file may contain, which guard against untrusted files.
        """
        from leafwise.formats.files import load

        check_type(path, (str, os.PathLike), "what to load", "a path: use for example 'model.json'.")
        return load(path, most_cells=most_cells, most_bytes=most_bytes)

    def plot(self) -> "Picture":
        """A picture of the variables and arcs: notebooks show it, and `.save("network.svg")` or .png writes it."""
        from leafwise.report.pictures import network_picture

        return network_picture(self)

    def plot_node(self, name: str, *, whole: bool = False, cases: Any = None) -> "Picture":
        """A picture of a variable's decision graph: tests, arcs with their states, and a bar chart in each leaf.

        Unless `whole`, a graph that is too large for a page is folded, and equal leaves without cases are merged. If
        `cases` are given (a Table, or an input of `read`), folded parts show how many of them they contain.
        """
        from leafwise.report.graph_picture import node_picture

        return node_picture(self, index_of(name, self.names), whole=whole, cases=cases)

    def to_dot(self, name: str | None = None) -> str:
        """The arcs, or a variable's decision graph, in DOT, the language of Graphviz."""
        from leafwise.report.dot import network_dot, node_dot

        return network_dot(self) if name is None else node_dot(self, index_of(name, self.names))

    def __repr__(self) -> str:
        sizes = [
            many(len(self.variables), "variable"),
            many(len(self.arcs), "arc"),
            many(self.n_tests, "test"),
            many(self.n_leaves, "leaf", "leaves"),
            many(self.n_parameters, "parameter"),
        ]
        cases = self.learned.get("cases")
        learned = [f"learned from {many(cases, 'case')}"] if isinstance(cases, int) else []
        return f"Network({', '.join(sizes + learned)})"

    def _repr_html_(self) -> str:
        from leafwise.report.pictures import network_html

        return network_html(self)

    def __eq__(self, other: object) -> bool:
        """Equal variables, nodes, priors, history and ties."""
        if not isinstance(other, Network):
            return NotImplemented
        return (
            self.variables == other.variables
            and self.nodes == other.nodes
            and self.prior == other.prior
            and self.structure_prior == other.structure_prior
            and self.learned == other.learned
            and self.ties == other.ties
        )

    def __hash__(self) -> int:
        """Agrees with equality."""
        return hash((self.variables, self.nodes))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle `learned` as a dict, since a read-only mapping cannot be pickled."""
        return Network, (self.variables, self.nodes, self.prior, self.structure_prior, dict(self.learned), self.ties)

    def _check_acyclic(self) -> None:
        cycle = dag.find_cycle(self._parents())
        if cycle:
            arrows = " → ".join(repr(self.variables[index].name) for index in cycle)
            raise ValueError(f"the arcs {arrows} form a cycle, and a network has none: leave one of them out.")

    def _parents(self) -> list[tuple[int, ...]]:
        return [() if node is None else node.parents for node in self.nodes]


def known_groups(network: Network) -> list[tuple[int, ...]]:
    """The groups of variables that were constrained to share a graph and its distributions."""
    named = network.learned.get("tied") if network.ties else None
    if not isinstance(named, list | tuple):
        return []
    together = {frozenset(tied.variable for tied in group) for group in network.ties}
    place = {name: k for k, name in enumerate(network.names)}
    known = [names for names in named if isinstance(names, list | tuple) and all(isinstance(n, str) for n in names)]
    groups = [tuple(sorted({place.get(name, -1) for name in names})) for names in known]
    return [group for group in groups if len(group) > 1 and any(members.issuperset(group) for members in together)]


def all_ties(network: Network) -> tuple[tuple[TiedLeaf, ...], ...]:
    """The ties, and those of the switches of own-value tests in known groups."""
    switches = []
    for group in known_groups(network):
        found = [node.own for variable in group if (node := network.nodes[variable]) is not None and node.own]
        if len(found) < len(group) or any(own.parts != found[0].parts for own in found[1:]):
            continue  # there are no own-value tests, or the file is inconsistent
        for row, place in enumerate(found[0].places):
            if found[0].is_switch(row):
                switches.append(tuple(TiedLeaf(variable, row, found[0].states[place]) for variable in group))
    return network.ties + tuple(switches)


def check_network(network: object, asker: str) -> None:
    """Raise a TypeError unless this is a network."""
    if not isinstance(network, Network):
        advice = "Network.load(path) reads one" if isinstance(network, str | os.PathLike) else "learn or load one first"
        other = {"Mixture": "ask one of its members", "DynamicNetwork": "its unroll(T) makes one of T slices"}
        advice = other.get(type(network).__name__, advice)
        raise TypeError(f"{asker} got an object of type {type(network).__name__}, and needs a Network: {advice}.")


def _table(variables: tuple[Variable, ...], node: Node) -> NDArray[np.float64] | None:
    shape = [variables[parent].n_states for parent in node.parents]
    if len(shape) >= _MOST_AXES or len(node.probabilities) != math.prod(shape):
        return None
    from leafwise.kernels.questions.paths import leaf_table

    column = np.zeros(len(variables) + 1, np.int64)
    column[[parent + 1 for parent in node.parents]] = shape
    states = np.concatenate([np.arange(n) for n in shape]) if shape else np.zeros(0, np.int64)
    leaves = leaf_table(
        *node.flat[:3], np.cumsum(column), states, np.array(node.parents, np.int64), np.array(shape, np.int64)
    )
    table: NDArray[np.float64] = node.probabilities[leaves].reshape(*shape, -1)
    return table


def _posterior_means(counts: NDArray[Any], exponents: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # a node with such means is refused
        weights = counts + exponents
        means: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return means


def _check_names(names: tuple[str, ...]) -> None:
    if len(set(names)) < len(names):
        twice = first_repeated(names)
        raise ValueError(f"two variables are called {twice!r}, where names must differ: rename one.")


def _check_numbers(node: Node) -> None:
    """Raise a ValueError unless the arrays are well-formed."""
    if node.probabilities.ndim != 2 or node.probabilities.shape[0] != node.graph.n_leaves:
        raise ValueError(
            f"the probabilities have the shape {node.probabilities.shape}, and the graph has {node.graph.n_leaves} "
            f"leaves: give one row for each leaf."
        )
    for array, name in ((node.counts, "counts"), (node.exponents, "exponents")):
        if array is not None and array.shape != node.probabilities.shape:
            raise ValueError(f"the {name} have the shape {array.shape}, not {node.probabilities.shape}: match them.")
    if node.counts is not None and node.exponents is not None:
        if not (node.counts >= 0).all() or not ((node.exponents > 0) & np.isfinite(node.exponents)).all():
            raise ValueError("a node needs counts of at least 0 and finite exponents above 0: check both arrays.")
        if not np.array_equal(node.probabilities, _posterior_means(node.counts, node.exponents)):
            raise ValueError("the probabilities are not those of the counts and exponents: build it by Node.learned.")
    if not (node.probabilities >= 0).all() or (abs(node.probabilities.sum(axis=1) - 1) > _SUM_TOLERANCE).any():
        raise ValueError("a leaf's probabilities do not sum to one, and every row must: normalise the rows.")


def _check_parents(node: Node) -> None:
    """Raise a ValueError unless the parents are sorted and distinct, and include all tested variables."""
    if not node.parents and len(node.whole_graph.tests) == 1:
        return
    if node.parents != tuple(sorted(set(node.parents))):
        raise ValueError(f"the parents {node.parents} are not sorted and distinct: sort them, each once.")
    tested = node.graph.tested if node.own is None else node.own.parents
    if not set(tested) <= set(node.parents):
        raise ValueError(f"the graph tests {tested}, more than the parents {node.parents}: add the rest.")


def _check_fit(variables: tuple[Variable, ...], index: int, node: Node, n_states: list[int]) -> None:
    """Raise a ValueError unless a node fits its variable and its parents' numbers of states."""
    name = variables[index].name
    if node.n_states != n_states[index]:
        raise ValueError(
            f"the node of {name!r} has distributions over {node.n_states} states, and the variable has "
            f"{n_states[index]}: give one number for each state."
        )
    if any(not 0 <= parent < len(variables) or parent == index for parent in node.parents):
        raise ValueError(f"{name!r} has the parents {node.parents}: name other variables, 0 to {len(variables) - 1}.")
    if node.own is not None:
        _check_own(name, index, node, node.own, n_states)
        return
    try:
        node.graph.validate(n_states)
    except ValueError as error:
        raise ValueError(f"the decision graph of {name!r} is not valid: {error}") from None


def _check_own(name: str, index: int, node: Node, own: OwnTests, n_states: list[int]) -> None:
    """Raise a ValueError unless own-value tests are of this variable and valid, and the node is their expanded form."""
    if own.target != index:
        raise ValueError(f"the own-value tests of {name!r} are of variable {own.target}: give those of {index}.")
    try:
        own.graph.validate(n_states)
    except ValueError as error:
        raise ValueError(f"the graph of {name!r} with its own-value tests is not valid: {error}") from None
    if "graph" not in vars(node):  # made from them on first access
        return
    graph, probabilities = own.expanded()
    if node.graph != graph or not np.array_equal(node.probabilities, probabilities):
        raise ValueError(f"the node of {name!r} is not what its own-value tests say: build it by Node.with_own_tests.")


def _checked_ties(network: Network) -> tuple[tuple[TiedLeaf, ...], ...]:
    """The ties as plain tuples; a ValueError unless they join existing leaves, each once, with equal distributions."""
    ties = tuple(tuple(TiedLeaf(*leaf[:2], tuple(leaf[2])) for leaf in group) for group in network.ties)
    leaves = [(leaf.variable, leaf.leaf) for group in ties for leaf in group]
    if len(set(leaves)) < len(leaves):
        variable, leaf = Counter(leaves).most_common(1)[0][0]
        raise ValueError(f"leaf {leaf} of variable {variable} is tied twice, and a leaf is in one group: drop one.")
    for group in ties:
        if len(group) < 2:
            raise ValueError(f"the tied group {group} has fewer than two leaves: name at least two, or leave it out.")
        arrays = zip(*(_tied_rows(network, tied) for tied in group), strict=True)
        if len({len(tied.states) for tied in group}) > 1 or not all(map(_are_alike, arrays)):
            raise ValueError(f"the leaves tied in {group} do not hold the same distribution: pool their counts first.")
    return ties


def _are_alike(rows: tuple[NDArray[Any] | None, ...]) -> bool:
    """Whether rows are equal, up to rounding of numbers that were summed in another order; or all None."""
    known = [row for row in rows if row is not None]
    spread = np.ptp(known, axis=0) if known else np.zeros(1)
    return len(known) in (0, len(rows)) and bool((spread <= _LOST * np.abs(known).max(initial=0)).all())


def _tied_rows(network: Network, tied: TiedLeaf) -> list[NDArray[Any] | None]:
    """The probabilities, counts and exponents of a tied leaf, in the order of its group."""
    there = 0 <= tied.variable < len(network.nodes)
    node = network.nodes[tied.variable] if there else None
    if node is None:
        raise ValueError(f"a leaf of variable {tied.variable} is tied, which has no distribution here: leave it out.")
    name, holder = network.variables[tied.variable].name, node.own or node
    if not 0 <= tied.leaf < len(holder.probabilities) or (node.own is not None and node.own.is_switch(tied.leaf)):
        raise ValueError(f"row {tied.leaf} of {name!r} is tied, and it is not one of its leaves: name one of these.")
    due = range(node.n_states) if node.own is None else node.own.states[node.own.places[tied.leaf]]
    if sorted(tied.states) != list(due):
        raise ValueError(
            f"leaf {tied.leaf} of {name!r} is tied by the states {tied.states}, not {tuple(due)}: give each once."
        )
    order, arrays = list(tied.states), (holder.probabilities, holder.counts, holder.exponents)
    return [None if array is None else array[tied.leaf, order] for array in arrays]


def read_only(learned: Mapping[str, Any]) -> Mapping[str, Any]:
    """A private, read-only copy of how a network was learned."""
    return MappingProxyType(_json_value(learned, "learned"))


def _json_value(value: Any, where: str) -> Any:
    """A private copy made of plain JSON values (numpy's numbers become Python's, tuples lists)."""
    if type(value) in (int, str, bool):  # the usual case
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, list | tuple):
        return [_json_value(item, where) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _json_value(item, f"{where}[{key!r}]") for key, item in value.items()}
    raise TypeError(f"{where} holds {value!r}, which JSON cannot: use finite numbers, strings, lists and dicts.")
