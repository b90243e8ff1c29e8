"""Bayesian networks with decision graphs, learned from data.

    table = leafwise.read("data.csv")          encode a file, a frame or an array; describe(...) reports how
    network = leafwise.learn(table)            or directly from the file or frame: learn("data.csv", bins=8)
    network["age"]                             one variable: its parents and its decision graph
    network.query("ill", given={"age": 40})    distributions given evidence
    network.predict("new.csv", "ill")          the same for every row
    network.sample(100).to_pandas()            sampled cases
    network.plot().save("network.svg")         pictures
    network.save("model.json")                 load it with leafwise.Network.load("model.json")

`leafwise.estimators` contains estimators for scikit-learn, and `leafwise.examples.alarm()` is an example network.
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
    from leafwise.data.description import Description, ReadColumn
    from leafwise.data.encoding import describe, read, write
    from leafwise.data.table import Table, Variable
    from leafwise.decision_graph import DecisionGraph
    from leafwise.dynamic_network import DynamicNetwork
    from leafwise.errors import Advice, AdvisedError, Argument
    from leafwise.imputation import CellProbabilities, impute
    from leafwise.inference.convergence import Mixing
    from leafwise.inference.exact import Limits
    from leafwise.inference.explanation import Explanation, explain
    from leafwise.inference.independence import Context, contexts, dependence_path, is_independent, markov_blanket
    from leafwise.inference.information import (
        Importance,
        InformationValue,
        entropy,
        feature_importance,
        mutual_information,
        value_of_information,
    )
    from leafwise.inference.intervention import do, reversible_arcs
    from leafwise.inference.likelihood import log_probabilities
    from leafwise.inference.prepared import Answers, PreparedQuery
    from leafwise.inference.query import Answer, query
    from leafwise.inference.sampling import Approximate, sample
    from leafwise.learner import learn, log_score, start_search
    from leafwise.mixture import Mixture
    from leafwise.network import Network, Node, TiedLeaf
    from leafwise.operators import (
        BinarySplit,
        CompleteSplit,
        Merge,
        OrderedSplit,
        PartialSplit,
        RelabelledMerge,
        Tie,
    )
    from leafwise.own_tests import OwnTests
    from leafwise.predictions import Predictions, predict
    from leafwise.prior_network import PriorNetwork
    from leafwise.priors import Bdeu, Symmetric, Uniform
    from leafwise.report.steps import plot_steps
    from leafwise.report.svg import Picture
    from leafwise.scores import NodeScore, NodeScores
    from leafwise.search.graph_arc_search import GraphArcSearch
    from leafwise.search.incomplete import CompletedRound
    from leafwise.search.leaf_search import LeafSearch
    from leafwise.search.problem import Step
    from leafwise.search.recover import RecoverySearch
    from leafwise.search.restarts import LeafSearchRestarts, Perturbation
    from leafwise.search.run import SearchRun
    from leafwise.search.table_arc_search import AddArc, DeleteArc, PutBack, ReverseArc, TableArcSearch
    from leafwise.smoothing import smoothed
    from leafwise.stacking import stacked
    from leafwise.structure_priors import Arcs, Choices, Kappa

# Public names and their modules, imported on first access, so that `import leafwise` is fast.
_HOME = {
    "AddArc": "search.table_arc_search",
    "Advice": "errors",
    "AdvisedError": "errors",
    "Answer": "inference.query",
    "Answers": "inference.prepared",
    "Approximate": "inference.sampling",
    "Arcs": "structure_priors",
    "Argument": "errors",
    "Bdeu": "priors",
    "BinarySplit": "operators",
    "CPD": "cpd",
    "CellProbabilities": "imputation",
    "Choices": "structure_priors",
    "Comparison": "comparison",
    "CompleteSplit": "operators",
    "CompletedRound": "search.incomplete",
    "Confidence": "arc_confidence",
    "Constraints": "constraints",
    "Context": "inference.independence",
    "CpuCounter": "counters.cpu",
    "DecisionGraph": "decision_graph",
    "DeleteArc": "search.table_arc_search",
    "Description": "data.description",
    "DynamicNetwork": "dynamic_network",
    "Explanation": "inference.explanation",
    "GraphArcSearch": "search.graph_arc_search",
    "Importance": "inference.information",
    "InformationValue": "inference.information",
    "Kappa": "structure_priors",
    "LeafSearch": "search.leaf_search",
    "LeafSearchRestarts": "search.restarts",
    "Limits": "inference.exact",
    "Merge": "operators",
    "Mixing": "inference.convergence",
    "Mixture": "mixture",
    "Network": "network",
    "Node": "network",
    "NodeScore": "scores",
    "NodeScores": "scores",
    "OrderedSplit": "operators",
    "OwnTests": "own_tests",
    "PartialSplit": "operators",
    "Perturbation": "search.restarts",
    "Picture": "report.svg",
    "Predictions": "predictions",
    "PreparedQuery": "inference.prepared",
    "PriorNetwork": "prior_network",
    "PutBack": "search.table_arc_search",
    "ReadColumn": "data.description",
    "ReverseArc": "search.table_arc_search",
    "SearchRun": "search.run",
    "RelabelledMerge": "operators",
    "RecoverySearch": "search.recover",
    "ShardedCounter": "counters.sharded",
    "Step": "search.problem",
    "Symmetric": "priors",
    "Table": "data.table",
    "TableArcSearch": "search.table_arc_search",
    "TiedLeaf": "network",
    "Tie": "operators",
    "Uniform": "priors",
    "Variable": "data.table",
    "averaged": "averaging",
    "compare": "comparison",
    "confidence": "arc_confidence",
    "contexts": "inference.independence",
    "dependence_path": "inference.independence",
    "describe": "data.encoding",
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
    "read": "data.encoding",
    "reversible_arcs": "inference.intervention",
    "sample": "inference.sampling",
    "smoothed": "smoothing",
    "stacked": "stacking",
    "start_search": "learner",
    "value_of_information": "inference.information",
    "write": "data.encoding",
}
_MODULES = ("estimators", "examples")
__all__ = [
    "CPD",
    "AddArc",
    "Advice",
    "AdvisedError",
    "Answer",
    "Answers",
    "Approximate",
    "Arcs",
    "Argument",
    "Bdeu",
    "BinarySplit",
    "CellProbabilities",
    "Choices",
    "Comparison",
    "CompleteSplit",
    "CompletedRound",
    "Confidence",
    "Constraints",
    "Context",
    "CpuCounter",
    "DecisionGraph",
    "DeleteArc",
    "Description",
    "DynamicNetwork",
    "Explanation",
    "GraphArcSearch",
    "Importance",
    "InformationValue",
    "Kappa",
    "LeafSearch",
    "LeafSearchRestarts",
    "Limits",
    "Merge",
    "Mixing",
    "Mixture",
    "Network",
    "Node",
    "NodeScore",
    "NodeScores",
    "OrderedSplit",
    "OwnTests",
    "PartialSplit",
    "Perturbation",
    "Picture",
    "Predictions",
    "PreparedQuery",
    "PriorNetwork",
    "PutBack",
    "ReadColumn",
    "RecoverySearch",
    "RelabelledMerge",
    "ReverseArc",
    "SearchRun",
    "ShardedCounter",
    "Step",
    "Symmetric",
    "Table",
    "TableArcSearch",
    "Tie",
    "TiedLeaf",
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
    "stacked",
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
    """List the public names and modules, for tab completion and help()."""
    return [*__all__, *_MODULES, *(name for name in globals() if name.startswith("__"))]
