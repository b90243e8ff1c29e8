"""Ties among up to 100,000 leaves: the processor time to share all that gains.

Leaves of 100 variables with the same labels, drawn from 50 distributions, with 5 to 2,000 cases each, under the uniform
structure prior, so that nearly all of them end up shared.
"""

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.report import Report, check, main
from leafwise.data.table import Variable
from leafwise.decision_graph import DecisionGraph
from leafwise.network import Network, Node
from leafwise.search.sharing import Sharing
from leafwise.structure_priors import Kappa

N_VARIABLES, N_TRUE = 100, 50
LEAVES, STATES = (1_000, 10_000, 100_000), (2, 3, 4)


def leaves(n: int, n_states: int) -> Network:
    """A network with `n` leaves: all variables have one parent, with a leaf for each of its states."""
    random, n_own = np.random.default_rng(1), n // N_VARIABLES
    labels = tuple("abcd"[:n_states])
    parent = Variable("parent", tuple(map(str, range(n_own))))
    nodes = [Node.learned((), DecisionGraph.single(), np.zeros((1, n_own), int), np.ones((1, n_own)))]
    shares = random.dirichlet(np.ones(n_states), N_TRUE)
    for _ in range(N_VARIABLES):
        sizes = np.exp(random.uniform(np.log(5), np.log(2000), n_own)).astype(int)
        drawn = shares[random.integers(N_TRUE, size=n_own)]
        counts = np.array([random.multinomial(size, share) for size, share in zip(sizes, drawn, strict=True)])
        graph = DecisionGraph.complete([0], [n_own])
        nodes.append(Node.learned((0,), graph, counts, np.full((n_own, n_states), 2 / n_states)))
    return Network((parent, *(Variable(f"v{k}", labels) for k in range(N_VARIABLES))), tuple(nodes))


def share(network: Network) -> tuple[float, Sharing]:
    """Take all steps; return the processor seconds, and the state at the end."""
    began = time.process_time()
    sharing = Sharing(network, "T", Kappa().costs, adds=False)
    while not sharing.finished:
        sharing.advance(2**62)
    return time.process_time() - began, sharing


def measure() -> Iterator[Report]:
    """A row per number of leaves and of states."""
    share(leaves(400, 2))  # compile
    rows = []
    for n in LEAVES:
        for n_states in STATES:
            network = leaves(n, n_states)
            seconds, sharing = share(network)
            after = sharing.shared_in(network)
            check(after.n_parameters == network.n_parameters - sharing.n_saved, "parameters are counted wrongly")
            rows.append((f"{n:,}", str(n_states), f"{sharing.n_steps:,}", f"{seconds:.1f}"))
    yield Report("Ties of many leaves", ("leaves", "states", "ties", "seconds"), rows)


if __name__ == "__main__":
    main(measure, __doc__)
