"""Bayesian networks with decision graphs, learned from data.

    table = leafwise.read("data.csv")          a file, a frame or an array as states; describe(...) says how it is read
    network = leafwise.learn(table)            or straight from the file or frame: learn("data.csv", bins=8)
    network["age"]                             one variable: its parents, its decision graph
    network.query("ill", given={"age": 40})    distributions given evidence
    network.predict("new.csv", "ill")          the same for every row
    network.sample(100).to_pandas()            cases drawn
    network.plot().save("network.svg")         pictures
    network.save("model.json")                 and back: leafwise.Network.load("model.json")

`leafwise.estimators` has classifiers for scikit-learn, and `leafwise.examples.alarm()` is a network to try things on.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leafwise.arc_confidence import Confidence, confidence
    from leafwise.averaging import averaged
    from leafwise.comparison import Comparison, compare
    from leafwise.constraints import Constraints
    from leafwise.counters.cpu import CpuCounter
    from leafwise.counters.sharded import ShardedCounter
    from leafwise.cpd import CPD
    from leafwise.decision_graph import DecisionGraph
    from leafwise.description import Description
    from leafwise.encoding import describe, read, write
    from leafwise.imputation import CellProbabilities, impute
    from leafwise.inference.exact import Limits
    from leafwise.inference.explanation import Explanation, explain
    from leafwise.inference.independence import contexts, dependence_path, is_independent, markov_blanket
    from leafwise.inference.information import entropy, feature_importance, mutual_information, value_of_information
    from leafwise.inference.intervention import do, reversible_arcs
    from leafwise.inference.likelihood import log_probabilities
    from leafwise.inference.query import Answer, query
    from leafwise.inference.sampling import sample
    from leafwise.learner import learn, log_score, start_search
    from leafwise.mixture import Mixture
    from leafwise.network import Network, Node
    from leafwise.operators import BinarySplit, CompleteSplit, Merge, OrderedSplit
    from leafwise.predictions import Predictions, predict
    from leafwise.prior_network import PriorNetwork
    from leafwise.priors import Bdeu, Symmetric, Uniform
    from leafwise.report.steps import plot_steps
    from leafwise.scores import NodeScore
    from leafwise.search.edges import GraphArcSearch
    from leafwise.search.greedy import LeafSearch, Step
    from leafwise.search.recover import RecoverySearch
    from leafwise.search.restarts import LeafSearchRestarts
    from leafwise.search.tables import TableArcSearch
    from leafwise.smoothing import smoothed
    from leafwise.structure_priors import Arcs, Choices, Kappa
    from leafwise.table import Table, Variable

# Public names and where they live: imported when first asked for, so that `import leafwise` is instant.
_HOME = {
    "Answer": "inference.query",
    "Arcs": "structure_priors",
    "Bdeu": "priors",
    "BinarySplit": "operators",
    "CPD": "cpd",
    "CellProbabilities": "imputation",
    "Choices": "structure_priors",
    "Comparison": "comparison",
    "CompleteSplit": "operators",
    "Confidence": "arc_confidence",
    "Constraints": "constraints",
    "CpuCounter": "counters.cpu",
    "DecisionGraph": "decision_graph",
    "Description": "description",
    "Explanation": "inference.explanation",
    "GraphArcSearch": "search.edges",
    "Kappa": "structure_priors",
    "LeafSearch": "search.greedy",
    "LeafSearchRestarts": "search.restarts",
    "Limits": "inference.exact",
    "Merge": "operators",
    "Mixture": "mixture",
    "Network": "network",
    "Node": "network",
    "NodeScore": "scores",
    "OrderedSplit": "operators",
    "Predictions": "predictions",
    "PriorNetwork": "prior_network",
    "RecoverySearch": "search.recover",
    "ShardedCounter": "counters.sharded",
    "Step": "search.greedy",
    "Symmetric": "priors",
    "Table": "table",
    "TableArcSearch": "search.tables",
    "Uniform": "priors",
    "Variable": "table",
    "averaged": "averaging",
    "compare": "comparison",
    "confidence": "arc_confidence",
    "contexts": "inference.independence",
    "dependence_path": "inference.independence",
    "describe": "encoding",
    "do": "inference.intervention",
    "entropy": "inference.information",
    "explain": "inference.explanation",
    "feature_importance": "inference.information",
    "impute": "imputation",
    "is_independent": "inference.independence",
    "learn": "learner",
    "log_probabilities": "inference.likelihood",
    "log_score": "learner",
    "markov_blanket": "inference.independence",
    "mutual_information": "inference.information",
    "plot_steps": "report.steps",
    "predict": "predictions",
    "query": "inference.query",
    "read": "encoding",
    "reversible_arcs": "inference.intervention",
    "sample": "inference.sampling",
    "smoothed": "smoothing",
    "start_search": "learner",
    "value_of_information": "inference.information",
    "write": "encoding",
}
_MODULES = ("estimators", "examples")
__all__ = [
    "CPD",
    "Answer",
    "Arcs",
    "Bdeu",
    "BinarySplit",
    "CellProbabilities",
    "Choices",
    "Comparison",
    "CompleteSplit",
    "Confidence",
    "Constraints",
    "CpuCounter",
    "DecisionGraph",
    "Description",
    "Explanation",
    "GraphArcSearch",
    "Kappa",
    "LeafSearch",
    "LeafSearchRestarts",
    "Limits",
    "Merge",
    "Mixture",
    "Network",
    "Node",
    "NodeScore",
    "OrderedSplit",
    "Predictions",
    "PriorNetwork",
    "RecoverySearch",
    "ShardedCounter",
    "Step",
    "Symmetric",
    "Table",
    "TableArcSearch",
    "Uniform",
    "Variable",
    "averaged",
    "compare",
    "confidence",
    "contexts",
    "dependence_path",
    "describe",
    "do",
    "entropy",
    "explain",
    "feature_importance",
    "impute",
    "is_independent",
    "learn",
    "log_probabilities",
    "log_score",
    "markov_blanket",
    "mutual_information",
    "plot_steps",
    "predict",
    "query",
    "read",
    "reversible_arcs",
    "sample",
    "smoothed",
    "start_search",
    "value_of_information",
    "write",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("leafwise")
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"leafwise.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'leafwise' has no attribute {name!r}")
    value = getattr(import_module(f"leafwise.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """What Tab offers and help() lists: the public names."""
    return [*__all__, *_MODULES, *(name for name in globals() if name.startswith("__"))]
