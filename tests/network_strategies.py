"""Random decision graphs (by splits and merges) and networks, for Hypothesis."""

import itertools

import numpy as np
from hypothesis import strategies as st

from leafwise.data.table import Variable
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.network import Network, Node
from leafwise.own_tests import OwnTests


def assignments(n_states):
    return list(itertools.product(*map(range, n_states)))


@st.composite
def graphs(draw, n_states, variables=None, max_operators=8):
    """A graph made by a random sequence of splits (of any grouping) and merges."""
    variables = list(range(len(n_states))) if variables is None else list(variables)
    graph = DecisionGraph.single()
    for _ in range(draw(st.integers(0, max_operators))):
        if graph.n_leaves > 1 and draw(st.booleans()):
            leaf, other = draw(st.permutations(range(graph.n_leaves)))[:2]
            graph = graph.merge(leaf, other)
        elif any(n_states[variable] > 1 for variable in variables):
            variable = draw(st.sampled_from([v for v in variables if n_states[v] > 1]))
            labels = draw(st.lists(st.integers(0, 2), min_size=n_states[variable], max_size=n_states[variable]))
            groups = [{s for s, label in enumerate(labels) if label == k} for k in sorted(set(labels))]
            if len(groups) > 1:
                graph = graph.split(draw(st.integers(0, graph.n_leaves - 1)), variable, groups)
    return graph


state_counts = st.lists(st.integers(2, 4), min_size=1, max_size=4)


@st.composite
def sized_graphs(draw):
    n_states = draw(state_counts)
    return n_states, draw(graphs(n_states))


@st.composite
def nodes(draw, n_states, index, parents):
    graph = draw(graphs(n_states, parents))
    shape = (graph.n_leaves, n_states[index])
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    counts = random.integers(0, 50, shape)
    kind = draw(st.sampled_from(["given", "ones", "alike", "any"]))
    if kind == "given":
        weights = random.random(shape) * (random.random(shape) < 0.8)
        weights[:, 0] += 0.1
        return Node(tuple(parents), graph, weights / weights.sum(axis=1, keepdims=True))
    exponents = {
        "ones": np.ones(shape),
        "alike": np.repeat(random.random((shape[0], 1)) + 0.01, shape[1], axis=1),
        "any": random.random(shape) + 0.01,
    }[kind]
    return Node.learned(tuple(parents), graph, counts, exponents)


class _OwnGraph:
    """A graph with own-value tests being drawn: children come before their parents, and places may be shared."""

    def __init__(self, draw, n_states, target, parents):
        self.draw, self.n_states, self.target, self.parents = draw, n_states, target, parents
        self.tests, self.rows, self.made = [], [], {}

    def add(self, states, test, row):
        self.tests.append(test)
        self.rows.append(row)
        self.made.setdefault(states, []).append(len(self.tests) - 1)
        return len(self.tests) - 1

    def below(self, states, depth, parts=False):
        """A place for these states, old or new; `parts`: with an own-value test there or below."""
        kinds = ["own"] * (len(states) > 1) + ["parent"] * bool(self.parents)
        if not parts and self.made.get(states) and self.draw(st.booleans()):
            return self.draw(st.sampled_from(self.made[states]))
        if not parts and (depth == 0 or self.draw(st.booleans())):
            return self.add(states, LEAF, ())
        kind = self.draw(st.sampled_from(kinds if depth else kinds[:1])) if kinds else "leaf"
        if kind == "leaf":
            return self.add(states, LEAF, ())
        if kind == "own":
            labels = self.draw(st.lists(st.integers(0, 2), min_size=len(states), max_size=len(states)))
            labels[:2] = [0, 1]
            which = {
                label: tuple(s for s, own in zip(states, labels, strict=True) if own == label) for label in set(labels)
            }
            child = {label: self.below(part, depth - 1) for label, part in which.items()}
            row = [child[max(child)]] * self.n_states[self.target]
            for state, label in zip(states, labels, strict=True):
                row[state] = child[label]
            return self.add(states, self.target, tuple(row))
        parent = self.draw(st.sampled_from(self.parents))
        children = [self.below(states, depth - 1, parts)]
        children += [self.below(states, depth - 1) for _ in range(self.draw(st.integers(0, 2)))]
        row = [self.draw(st.sampled_from(children)) for _ in range(self.n_states[parent])]
        row[: len(children)] = children[: len(row)]
        return self.add(states, parent, tuple(row))

    def graph(self, root):
        kept = {root}
        for node in range(root, -1, -1):
            if node in kept:
                kept.update(self.rows[node])
        number = {node: k for k, node in enumerate(sorted(kept, reverse=True))}
        return DecisionGraph(
            tuple(self.tests[node] for node in number),
            tuple(tuple(number[child] for child in self.rows[node]) for node in number),
        )


def reached_states(graph, target, n_states):
    """For each distribution the states of the target that reach it, by walking from the root for each of them."""
    seen = [[False] * n_states for _ in graph.tests]
    for state in range(n_states):
        stack = [0]
        while stack:
            node = stack.pop()
            seen[node][state] = True
            stack += [graph.children[node][state]] if graph.tests[node] == target else graph.children[node]
    return np.array([row for row, test in zip(seen, graph.tests, strict=True) if test in (LEAF, target)])


def own_probability(own, case, state):
    """The probability of a state of the target given the others of a case, by the definition."""
    rows = {node: k for k, node in enumerate(n for n, test in enumerate(own.graph.tests) if test in (LEAF, own.target))}
    node, probability = 0, 1.0
    while True:
        test = own.graph.tests[node]
        if test in (LEAF, own.target):
            probability *= own.probabilities[rows[node], state]
        if test == LEAF:
            return probability
        node = own.graph.children[node][state if test == own.target else case[test]]


@st.composite
def own_tests(draw, n_states, target, parents, learned=None):
    """Own-value tests of a variable with two states or more, with what they hold."""
    under_way = _OwnGraph(draw, n_states, target, list(parents))
    graph = under_way.graph(under_way.below(tuple(range(n_states[target])), 3, parts=True))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = (sum(test in (LEAF, target) for test in graph.tests), n_states[target])
    reached = reached_states(graph, target, n_states[target])
    counts, exponents = (
        np.where(reached, values, 0) for values in (random.integers(0, 50, shape), random.random(shape) + 0.01)
    )
    own = OwnTests.learned(graph, counts, exponents, target)
    learned = draw(st.booleans()) if learned is None else learned
    return own if learned else OwnTests(graph, target, own.probabilities)


@st.composite
def own_networks(draw, learned=None):
    """A network over two to four variables in which one or more have own-value tests."""
    n_states = draw(st.lists(st.integers(2, 4), min_size=2, max_size=4))
    order = draw(st.permutations(range(len(n_states))))
    built = [None] * len(n_states)
    for place, index in enumerate(order):
        parents = sorted(draw(st.sets(st.sampled_from(order[:place]), max_size=3))) if place else []
        if place == len(order) - 1 or draw(st.booleans()):
            built[index] = Node.with_own_tests(draw(own_tests(n_states, index, parents, learned)), tuple(parents))
        else:
            built[index] = draw(nodes(n_states, index, parents))
    return Network(draw(variable_lists(n_states)), tuple(built), "uniform", "kappa:0.1")


@st.composite
def variable_lists(draw, n_states):
    names = draw(st.lists(st.text(min_size=1, max_size=6), min_size=len(n_states), max_size=len(n_states), unique=True))
    variables = []
    for name, count in zip(names, n_states, strict=True):
        if draw(st.booleans()):
            cuts = sorted(draw(st.sets(st.floats(-1e9, 1e9), min_size=count - 1, max_size=count - 1)))
            variables.append(Variable(name, tuple(f"bin {k}" for k in range(count)), tuple(cuts)))
        else:
            labels = draw(st.lists(st.text(max_size=4), min_size=count, max_size=count, unique=True))
            missing = draw(st.booleans()) and "(missing)" not in labels
            variables.append(Variable(name, (*labels[:-1], "(missing)") if missing else tuple(labels), (), missing))
    return tuple(variables)


@st.composite
def networks(draw, complete=False):
    """A network over one to six variables in a random order; some nodes are None unless `complete`."""
    n_states = draw(st.lists(st.integers(1, 6), min_size=1, max_size=6))
    order = draw(st.permutations(range(len(n_states))))
    built = [None] * len(n_states)
    for place, index in enumerate(order):
        parents = sorted(draw(st.sets(st.sampled_from(order[:place]), max_size=3))) if place else []
        if complete or draw(st.integers(0, 4)):
            built[index] = draw(nodes(n_states, index, parents))
    learned = draw(st.dictionaries(st.text(max_size=4), st.none() | st.integers() | st.floats(-1, 1) | st.text()))
    prior = draw(st.sampled_from([None, "uniform", "bdeu:10"]))
    return Network(
        draw(variable_lists(n_states)), tuple(built), prior, draw(st.sampled_from([None, "kappa:0.1"])), learned
    )
