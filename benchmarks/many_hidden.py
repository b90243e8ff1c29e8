"""The benefit of hidden variables, in one network and in the members of a mixture.

The mean log-likelihood of validation cases under networks learned from the first training cases of some of the binary
data sets, and the processor seconds of learning. One thread; not test.
"""

import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.many import parts
from benchmarks.report import Report, main
from leafwise.ensembles import rows_of
from leafwise.learner import learn
from leafwise.search.leaf_search import LeafSearch

SETS = {"nltcs": (4_000, (None, 8)), "baudio": (2_000, (None,))}  # training cases, and numbers of networks
HIDDEN = (None, 4, 8)


def measure() -> Iterator[Report]:
    """A row per data set and method."""
    rows = []
    for name, (n, all_networks) in SETS.items():
        train, valid = parts(name)
        cases = rows_of(train, np.arange(n))
        for networks in all_networks:
            row = [name, f"{n:,}", str(networks or 1)]
            for hidden in HIDDEN:
                given: dict[str, Any] = {"networks": networks, "hidden": hidden}
                began = time.process_time()
                model = learn(cases, search=LeafSearch(threads=1), **given)
                seconds = time.process_time() - began
                row += [f"{model.log_probabilities(valid).mean():.3f}", f"{seconds:.1f}"]
            rows.append(row)
            print(*row, file=sys.stderr, flush=True)
    heads = ["set", "cases", "networks"]
    for hidden in HIDDEN:
        heads += ["none hidden" if hidden is None else f"{hidden} states", "s"]
    yield Report("Mean log-likelihood of validation cases, with hidden causes", heads, rows)


if __name__ == "__main__":
    main(measure, __doc__)
