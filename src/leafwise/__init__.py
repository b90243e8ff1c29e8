"""Bayesian networks with decision graphs, learned from data."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leafwise.constraints import Constraints
    from leafwise.decision_graph import DecisionGraph
    from leafwise.encoding import read, write
    from leafwise.inference.exact import Limits
    from leafwise.inference.explanation import explain
    from leafwise.inference.independence import contexts, dependence_path, is_independent, markov_blanket
    from leafwise.inference.information import entropy, feature_importance, mutual_information, value_of_information
    from leafwise.inference.intervention import do, reversible_arcs
    from leafwise.inference.likelihood import log_probabilities
    from leafwise.inference.query import query
    from leafwise.inference.sampling import sample
    from leafwise.learner import learn, learning, log_score
    from leafwise.network import Network
    from leafwise.report.steps import plot_steps
    from leafwise.search.edges import Edges
    from leafwise.search.greedy import Greedy
    from leafwise.search.restarts import Restarts
    from leafwise.search.tables import Tables
    from leafwise.smoothing import smoothed
    from leafwise.table import Table, Variable

# Public names and where they live: imported when first asked for, so that `import leafwise` is instant.
_HOME = {
    "Constraints": "constraints",
    "DecisionGraph": "decision_graph",
    "Edges": "search.edges",
    "Greedy": "search.greedy",
    "Limits": "inference.exact",
    "Network": "network",
    "Restarts": "search.restarts",
    "Table": "table",
    "Tables": "search.tables",
    "Variable": "table",
    "contexts": "inference.independence",
    "dependence_path": "inference.independence",
    "do": "inference.intervention",
    "entropy": "inference.information",
    "explain": "inference.explanation",
    "feature_importance": "inference.information",
    "is_independent": "inference.independence",
    "learn": "learner",
    "learning": "learner",
    "log_probabilities": "inference.likelihood",
    "log_score": "learner",
    "markov_blanket": "inference.independence",
    "mutual_information": "inference.information",
    "plot_steps": "report.steps",
    "query": "inference.query",
    "read": "encoding",
    "reversible_arcs": "inference.intervention",
    "sample": "inference.sampling",
    "smoothed": "smoothing",
    "value_of_information": "inference.information",
    "write": "encoding",
}
__all__ = [
    "Constraints",
    "DecisionGraph",
    "Edges",
    "Greedy",
    "Limits",
    "Network",
    "Restarts",
    "Table",
    "Tables",
    "Variable",
    "contexts",
    "dependence_path",
    "do",
    "entropy",
    "explain",
    "feature_importance",
    "is_independent",
    "learn",
    "learning",
    "log_probabilities",
    "log_score",
    "markov_blanket",
    "mutual_information",
    "plot_steps",
    "query",
    "read",
    "reversible_arcs",
    "sample",
    "smoothed",
    "value_of_information",
    "write",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("leafwise")
    if name not in _HOME:
        raise AttributeError(f"module 'leafwise' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"leafwise.{_HOME[name]}"), name)
    globals()[name] = value
    return value
