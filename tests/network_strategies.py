"""Random decision graphs (by splits and merges) and networks, for Hypothesis."""

import itertools

import numpy as np
from hypothesis import strategies as st

from leafwise.decision_graph import DecisionGraph
from leafwise.network import Network, Node
from leafwise.table import Variable


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
