"""Posterior marginals are pyAgrum's, to 1e-8: published networks, twenty random sets of evidence each.

The networks are looked for in the directory that LEAFWISE_DATA names, else in the data directory next to the project;
the built-in one is always there. The largest are left to `python -m benchmarks inference`, where pyAgrum takes minutes.
"""

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from leafwise import examples, query, sample
from leafwise.formats import agrum, bif

HOME = Path(__file__).resolve().parents[3].joinpath("shared", "data")
FOLDER = Path(os.environ.get("LEAFWISE_DATA") or HOME) / "networks"
NAMES = ("asia", "alarm", "child", "insurance", "hailfinder", "win95pts", "hepar2", "water", "andes")

pytestmark = pytest.mark.skipif(find_spec("pyagrum") is None, reason="pyAgrum is not installed: leafwise[pyagrum]")


def _network(name):
    if name == "built-in":
        return examples.alarm()
    if not (FOLDER / f"{name}.bif").is_file():
        pytest.skip(f"{name}.bif is not here: name the directory of networks/ in LEAFWISE_DATA")
    return bif.load(FOLDER / f"{name}.bif")


@pytest.mark.parametrize("name", ["built-in", *NAMES])
def test_posterior_marginals(name):
    network = _network(name)
    theirs = agrum.to_agrum(network)
    import pyagrum

    random, n = np.random.default_rng(7), len(network.variables)
    for case in sample(network, 20, seed=7).codes.T:
        shown = random.permutation(n)[: random.integers(0, n // 3 + 1)].tolist()
        given = {network.names[v]: network.variables[v].labels[case[v]] for v in shown}
        engine = pyagrum.LazyPropagation(theirs)
        engine.setEvidence(given)
        engine.makeInference()
        answer = query(network, network.names, given=given, method="exact")
        for variable, found in zip(network.names, answer.distributions, strict=True):
            np.testing.assert_allclose(found, engine.posterior(variable).toarray(), atol=1e-8)
        assert answer.log_evidence == pytest.approx(np.log(engine.evidenceProbability()), abs=1e-6)
