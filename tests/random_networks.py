"""Random networks by seed, for tests of what is random itself: Hypothesis would look for the unlucky ones."""

import numpy as np

from leafwise.data.table import Variable
from leafwise.decision_graph import DecisionGraph
from leafwise.network import Network, Node

STATES = (2, 3, 2, 4, 2, 1)
EVIDENCE = {
    "nothing": {},
    "a state": {1: np.array([0.0, 0.0, 1.0])},
    "a set": {3: np.array([1.0, 0.0, 1.0, 1.0])},
    "weights": {1: np.array([0.5, 20.0, 3.0])},
    "all kinds": {1: np.array([0.2, 0.0, 1e-3]), 2: np.array([0.0, 3.0]), 3: np.array([1.0, 1.0, 0.0, 0.0])},
}


def single(rows):
    return Node((), DecisionGraph.single(), np.array([rows]))


def variables(n_states):
    return tuple(Variable(f"x{v}", tuple(f"s{k}" for k in range(n))) for v, n in enumerate(n_states))


def random_network(seed, n_states, zeros=0.0, max_parents=3):
    """Each variable has complete or merged graphs over some of those before it; a share of the numbers is zero."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(n_states)).tolist()
    nodes = [None] * len(n_states)
    for place, v in enumerate(order):
        n_parents = min(place, int(random.integers(0, max_parents + 1)))
        parents = random.choice(order[:place], n_parents, replace=False).tolist() if n_parents else []
        graph = DecisionGraph.complete(parents, n_states)
        for _ in range(graph.n_leaves // 3):
            graph = graph.merge(*random.choice(graph.n_leaves, 2, replace=False).tolist())
        rows = random.random((graph.n_leaves, n_states[v])) + 0.05
        rows *= random.random(rows.shape) >= zeros
        rows[np.arange(len(rows)), random.integers(0, n_states[v], len(rows))] += 0.1
        nodes[v] = Node(tuple(sorted(parents)), graph, rows / rows.sum(axis=1, keepdims=True))
    return Network(variables(n_states), tuple(nodes))
