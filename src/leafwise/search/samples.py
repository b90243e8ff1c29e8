"""Graphs of one target from several samples of the same cases, in one search, for which the cases are laid out once.

The target is copied, once for each sample, and the graph of a copy begins with the cases of its sample. Copies are
nobody's parents, so each graph is the one that a separate search on the sample would find.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leafwise.constraints import ParentRules
from leafwise.counters.counter import LocalCounter
from leafwise.data.table import count_states
from leafwise.decision_graph import DecisionGraph
from leafwise.network import Node
from leafwise.priors import ParameterPrior
from leafwise.search.initial_graphs import initial_names, initial_sets
from leafwise.search.leaf_search import LeafSearch, LeafSearchRun
from leafwise.search.problem import Problem
from leafwise.structure_priors import StructurePrior
from leafwise.workers import Workers


class Sample(NamedTuple):
    """The cases of a sample, the rules for the target's parents, and the initial graph."""

    rows: NDArray[np.int64]
    rules: ParentRules
    start: DecisionGraph | None


def search_samples(
    samples: Sequence[Sample],
    target: int,
    counter: LocalCounter,
    settings: LeafSearch,
    prior: ParameterPrior,
    structure_prior: StructurePrior,
) -> list[Node]:
    """Learn the target's node from each sample; the counter's last variables are copies of it, one for each sample."""
    n = len(counter.variables) - len(samples)
    targets, session = range(n, len(counter.variables)), counter.session()
    rules = _joined([sample.rules for sample in samples], target, n)
    graphs = dict(zip(targets, (sample.start or DecisionGraph.single() for sample in samples), strict=True))
    for copy, graph in graphs.items():
        rules.is_parent[copy, list(graph.tested)] = 1
    roots = counter.name_sets(session, [sample.rows for sample in samples])
    names = initial_sets(graphs, session, count_states(counter.variables), initial_names(), roots)
    sets = counter.take(session, np.array(names, np.int64))
    n_candidates = rules.allowed.sum(axis=1, dtype=np.int64)
    problem = Problem(counter.variables, tuple(targets), prior, structure_prior, rules, n_candidates, graphs)
    search = LeafSearchRun(problem, counter, settings, Workers(settings.threads), sets=sets)
    search.run()
    nodes = search.nodes
    search.close()
    return [node for node in nodes if node is not None]


def _joined(rules: Sequence[ParentRules], target: int, n: int) -> ParentRules:
    """The rules of all copies, combined."""
    size = n + len(rules)
    allowed, is_parent, kept = (np.zeros((size, size), np.uint8) for _ in range(3))
    for copy, own in enumerate(rules, n):
        allowed[copy, :n], is_parent[copy, :n], kept[copy, :n] = (part[target] for part in own[:3])
    return rules[0]._replace(allowed=allowed, is_parent=is_parent, kept=kept)
