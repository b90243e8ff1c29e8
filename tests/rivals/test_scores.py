"""Scores of complete tables are pyAgrum's: K2, which is the uniform prior, and BDeu, on random tables.

pyAgrum looks up log Γ at whole numbers and is off between them (by 0.7 for BDeu 1 on a table of 60 cases), so BDeu is
compared where every cell of the table, and so every row, has a whole number of cases a priori.
"""

import math

import numpy as np
import pytest

from leafwise import DecisionGraph, Network, Node, Table, Variable, log_score, write

pyagrum = pytest.importorskip("pyagrum", reason="pyAgrum is not installed: leafwise[pyagrum]")


def _random_family(random):
    """A table, all its states seen, and a network in which the first variable has some of the others as parents."""
    n_states = random.integers(2, 5, size=random.integers(1, 6)).tolist()
    variables = tuple(Variable(f"x{k}", tuple(f"s{state}" for state in range(r))) for k, r in enumerate(n_states))
    n_cases, every = random.integers(1, 300), np.arange(max(n_states))
    codes = [np.append(every % r, random.integers(0, r, n_cases)) for r in n_states]
    parents = tuple(sorted(random.permutation(range(1, len(n_states)))[: random.integers(0, 4)].tolist()))
    graph = DecisionGraph.complete(parents, n_states)
    node = Node(parents, graph, np.full((graph.n_leaves, n_states[0]), 1 / n_states[0]))
    network = Network(variables, (node, *[None] * (len(n_states) - 1)))
    return Table(variables, np.array(codes, np.uint8)), network


def _theirs(path, table, parents, weight):
    learner = pyagrum.BNLearner(str(path))
    if weight is None:
        learner.useScoreK2()
    else:
        learner.useScoreBD()
        learner.useBDeuPrior(weight)
    return learner.score("x0", [table.names[parent] for parent in parents]) * math.log(2)


@pytest.mark.parametrize("seed", range(25))
def test_scores_of_complete_tables(seed, tmp_path):
    random = np.random.default_rng(seed)
    table, network = _random_family(random)
    write(table, tmp_path / "cases.csv")
    node = network.nodes[0]
    n_cells = node.graph.n_leaves * node.n_states
    for weight in (None, n_cells, 3 * n_cells, 10 * n_cells):
        prior = "uniform" if weight is None else f"bdeu:{weight}"
        ours = log_score(network, table, prior=prior, structure_prior="uniform")["x0"].log_marginal_likelihood
        assert ours == pytest.approx(_theirs(tmp_path / "cases.csv", table, node.parents, weight), abs=1e-3)
