"""Orders of multiplying factors: our elimination beside those of opt_einsum and cotengra, where installed.

Multiplications are counted alike for all: each step multiplies two factors, over all indices of both. Published
networks without evidence, and learned ones with half of the variables observed.
"""

import importlib.util
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks import data
from benchmarks.report import Report, main
from leafwise.inference.contraction import Plan
from leafwise.inference.exact import Exact, Limits
from leafwise.learner import learn

NETWORKS = ("alarm", "insurance", "andes", "water", "barley", "pigs", "link", "munin1")
LEARNED = ("plants", "tretail", "dna")
LIMITS = Limits(memory=2**40, operations=1e300)

Sets = Sequence[tuple[int, ...]]
Steps = Sequence[Sequence[int]]


def multiplications(sets: Sets, extents: dict[int, int], steps: Steps) -> float:
    """The cost of steps that refer to tensors by number, with results numbered consecutively."""
    left = Counter(index for one in sets for index in one)
    tensors = dict(enumerate(map(frozenset, sets)))
    total, n = 0.0, len(sets)
    for step in steps:
        parts = [tensors.pop(number) for number in step]
        union = frozenset().union(*parts)
        total += math.prod(extents[index] for index in union)
        left.subtract(index for one in parts for index in one)
        tensors[n] = frozenset(index for index in union if left[index] > 0)
        left.update(tensors[n])
        n += 1
    return total


def of_opt_einsum(sets: Sets, extents: dict[int, int]) -> Steps:
    import opt_einsum

    numbers = list(range(len(sets)))
    steps = []
    for step in opt_einsum.paths.greedy([frozenset(one) for one in sets], frozenset(), extents):
        steps.append([numbers[place] for place in step])
        for place in sorted(step, reverse=True):
            numbers.pop(place)
        numbers.append(len(sets) + len(steps) - 1)
    return steps


def of_cotengra(sets: Sets, extents: dict[int, int]) -> Steps:
    import cotengra

    finder = cotengra.pathfinders.path_basic.RandomGreedyOptimizer(max_repeats=32, seed=1)
    sign = {index: chr(0x4E00 + place) for place, index in enumerate(extents)}  # theirs are single characters
    sizes = {sign[index]: n for index, n in extents.items()}
    return finder.ssa_path([tuple(sign[index] for index in one) for one in sets], (), sizes)


FINDERS: dict[str, Callable[[Sets, dict[int, int]], Steps]] = {"opt_einsum": of_opt_einsum, "cotengra": of_cotengra}


def questions() -> Iterator[tuple[str, Exact]]:
    for name in NETWORKS:
        network = data.network(name)
        yield name, Exact.of(network, {}, [(v,) for v in range(len(network.variables))], LIMITS)
    for name in LEARNED:
        cases = data.table(name)
        network = learn(cases, prior="uniform", structure_prior="kappa:0.01")
        shown = np.random.default_rng(1).permutation(cases.n_variables)[: cases.n_variables // 2].tolist()
        weights = {v: np.eye(network.variables[v].n_states)[cases.codes[v, 0]] for v in shown}
        hidden = [(v,) for v in range(cases.n_variables) if v not in weights]
        yield f"{name}, half shown", Exact.of(network, weights, hidden, LIMITS)


def row(name: str, question: Exact) -> list[str]:
    factors = [factor for factor in question.factors if factor.indices]
    sets = [factor.indices for factor in factors]
    extents = {index: n for factor in factors for index, n in zip(factor.indices, factor.values.shape, strict=True)}
    began = time.perf_counter()
    ours = Plan.of(sets, extents, LIMITS.operations)
    cells = [name, f"{ours.operations:.1e}", f"{1e3 * (time.perf_counter() - began):.0f}"]
    for package, find in FINDERS.items():
        if importlib.util.find_spec(package) is None:
            cells += ["-", "-"]
            continue
        began = time.perf_counter()
        steps = find(sets, extents)
        took = time.perf_counter() - began
        cells += [f"{multiplications(sets, extents, steps):.1e}", f"{1e3 * took:.0f}"]
    return cells


def measure() -> Iterator[Report]:
    yield Report(
        "Multiplications of one pass, and milliseconds to find the order",
        ("question", "ours", "ms", "opt_einsum greedy", "ms", "cotengra greedy, best of 32", "ms"),
        [row(name, question) for name, question in questions()],
    )


if __name__ == "__main__":
    main(measure, __doc__)
