"""What priors over trees that sum to one would charge for the learned trees, beside the default's charges.

All numbers are nats per test, over all trees (B) learned under the default priors. `default`: log p, for one of the p
variables that the tree tests. A prior that sums to one must also encode where the tests are. *Variables*: one of those
not yet tested on the path, uniformly, or by how often the tree has tested each before (its count plus 1/2). *Shape*:
one of the Catalan number of shapes with this many tests, or node by node whether it is a test, by how often nodes at
its depth were. The number of tests, which must be encoded as well, is omitted. `more` is the cheapest prior that sums
to one, less the default.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks import data
from benchmarks.report import Report, check, main
from benchmarks.structure_prior import WAYS
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.experiments.density import read_parts
from leafwise.experiments.published import DENSITY

DEEPEST = 12  # deeper nodes count as having this depth


def prices(tree: DecisionGraph) -> NDArray[np.float64]:
    """The number of tests, and in nats: the default's price, variables in two ways, shape in two ways."""
    n_tests, tested = tree.n_tests, tree.tested
    default = n_tests * math.log(max(len(tested), 1))
    n_times = dict.fromkeys(tested, 0)
    seen = np.full((DEEPEST + 1, 2), 0.5)  # leaves and tests, by depth
    alike = adaptive = shape = 0.0
    stack: list[tuple[int, frozenset[int]]] = [(0, frozenset())]
    while stack:
        node, path = stack.pop()
        test, left = tree.tests[node], [variable for variable in tested if variable not in path]
        if left:  # otherwise it can only be a leaf
            own = seen[min(len(path), DEEPEST)]
            shape -= math.log(own[int(test != LEAF)] / own.sum())
            own[int(test != LEAF)] += 1
        if test != LEAF:
            alike += math.log(len(left))
            adaptive -= math.log((n_times[test] + 0.5) / sum(n_times[variable] + 0.5 for variable in left))
            n_times[test] += 1
            stack += [(child, path | {test}) for child in sorted(set(tree.children[node]))]
    catalan = math.lgamma(2 * n_tests + 1) - math.lgamma(n_tests + 1) - math.lgamma(n_tests + 2)
    return np.array([n_tests, default, alike, adaptive, catalan, shape])


def measure() -> Iterator[Report]:
    """All binary data sets."""
    rows = []
    for name in DENSITY:
        train, _, _ = read_parts(data.folder(), name)
        network = WAYS["trees (B)"].learn(train)
        n_tests, *totals = np.sum([prices(node.graph) for node in network.nodes if node is not None], axis=0)
        check(n_tests == network.n_tests, f"{name} has {network.n_tests} tests, and {n_tests} were scored")
        default, alike, adaptive, catalan, shape = (total / n_tests for total in totals)
        more = min(alike, adaptive) + min(catalan, shape) - default
        numbers = [default, alike, adaptive, catalan, shape, more]
        rows.append([name, f"{network.n_tests:,}", *(f"{number:.2f}" for number in numbers)])
    heads = ["data", "tests", "default", "variables, alike", "variables, adaptive", "shape, Catalan", "shape, by depth"]
    yield Report("What a test costs, in nats", [*heads, "more"], rows, [])


if __name__ == "__main__":
    main(measure, __doc__)
