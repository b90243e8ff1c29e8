"""Complete tables beside other libraries: search over single arcs, from no arcs, on the same cases in one run.

The others are those of PyBNesian, pyAgrum, pgmpy, causal-learn and R's bnlearn that are installed; none is needed.
Times are processor seconds, one thread each, of the learning call alone, data in memory and kernels compiled: they
depend least on what else the machine is doing. Every DAG is scored by leafwise.log_score. With K2 (the uniform prior)
no two arcs tie, so all greedy searches climb the same hill; with BDeu the direction of most arcs is a tie, and where a
greedy search ends is luck. Our search turns arcs that tie, and goes on from where no arc gains; its network must be no
worse than any other. Plain greedy search is the one that does the same work as the others. Of several runs the least
time counts; of bnlearn's the mean.

causal-learn does not do quite the same work: it searches equivalence classes (GES), and to its BDeu belongs a price for
each arc that cannot be changed, so its score by BDeu alone may be lower than what it could find.
"""

import importlib.util
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TypeVar, cast

import numpy as np

from benchmarks import data
from benchmarks.report import Report, check, main
from leafwise.constraints import Constraints
from leafwise.inference.sampling import sample
from leafwise.learner import log_score, start_search
from leafwise.search.tables import GREEDY, TableArcSearch, TableArcSearchRun
from leafwise.table import Table

REPEATS, REPEATS_IF_SMALL = 3, 60
PRIORS = {"K2": "uniform", "BDeu 1": "bdeu:1"}
SAME = 1e-6  # nats

Arcs = list[tuple[int, int]]
T = TypeVar("T")


@dataclass(frozen=True)
class Job:
    """A data set, and the libraries that take too long on it."""

    name: str
    n_cases: int | None = None  # None: the training cases of a binary data set
    without: tuple[str, ...] = ("pgmpy", "causal-learn")


JOBS = (
    Job("alarm", 1_000, ("pgmpy",)),
    Job("alarm", 10_000),
    Job("alarm", 100_000),
    Job("insurance", 5_000, ("pgmpy",)),
    Job("child", 5_000, ()),
    Job("hailfinder", 5_000),
    Job("win95pts", 5_000),
    Job("nltcs"),
    Job("plants"),
    Job("kosarek", without=("pgmpy", "pyAgrum", "causal-learn")),
)


def cases_of(job: Job) -> Table:
    """The cases that are learned from."""
    if job.n_cases is None:
        return data.table(job.name)
    if job.name == "alarm":
        return data.alarm_sample(job.n_cases)
    return sample(data.network(job.name), job.n_cases, seed=1)


def least_time(n: int, action: Callable[[], T]) -> tuple[float, T]:
    """The least of n times, in processor seconds, and what the last call returned."""
    times = []
    for _ in range(n):
        began = time.process_time()
        result = action()
        times.append(time.process_time() - began)
    return min(times), result


def repeats(cases: Table) -> int:
    """How often to measure: times of some milliseconds need it more often."""
    return REPEATS if cases.codes.size > 400_000 else REPEATS_IF_SMALL


def search(
    cases: Table, prior: str, settings: TableArcSearch, constraints: Constraints = Constraints()
) -> TableArcSearchRun:
    """Our search, to its end."""
    under_way = start_search(cases, search=settings, prior=prior, structure_prior="uniform", constraints=constraints)
    under_way.run()
    return cast(TableArcSearchRun, under_way)


def score(cases: Table, arcs: Arcs, prior: str) -> float:
    """The log score of complete tables for these arcs."""
    dag = Constraints(dag=[(cases.names[parent], cases.names[child]) for parent, child in arcs])
    network = search(cases, prior, TableArcSearch(max_steps=0), dag).network
    return sum(node.log_score for node in log_score(network, cases).values())


def arcs_of(found: TableArcSearchRun) -> Arcs:
    return list(found.network.arcs)


def _frame(cases: Table) -> "object":
    import pandas

    columns = zip(cases.variables, cases.codes, strict=True)
    return pandas.DataFrame({v.name: pandas.Categorical.from_codes(codes, v.labels) for v, codes in columns})


def pybnesian_arcs(cases: Table, prior: str) -> tuple[float, Arcs] | None:
    """PyBNesian's hill climbing; it has no K2."""
    import pybnesian

    if prior == "uniform":
        return None
    scorer = pybnesian.BDe(_frame(cases), iss=1)
    climb = partial(pybnesian.GreedyHillClimbing().estimate, pybnesian.ArcOperatorSet(), scorer, epsilon=1e-9)
    seconds, found = least_time(repeats(cases), lambda: climb(pybnesian.DiscreteBN(list(cases.names))))
    return seconds, [(cases.index(parent), cases.index(child)) for parent, child in found.arcs()]


def pyagrum_arcs(cases: Table, prior: str) -> tuple[float, Arcs]:
    """pyAgrum's hill climbing."""
    import pyagrum

    states = pyagrum.BayesNet()
    for variable in cases.variables:
        states.add(pyagrum.LabelizedVariable(variable.name, "", list(variable.labels)))
    frame = _frame(cases).astype(str)  # type: ignore[attr-defined]
    times = []
    for _ in range(repeats(cases)):
        learner = pyagrum.BNLearner(frame, states)
        learner.useGreedyHillClimbing()
        learner.setNumberOfThreads(1)
        learner.useScoreK2() if prior == "uniform" else learner.useScoreBDeu()
        learner.useNoPrior()
        began = time.process_time()
        found = learner.learnDAG()
        times.append(time.process_time() - began)
    return min(times), [(int(parent), int(child)) for parent, child in found.arcs()]


def pgmpy_arcs(cases: Table, prior: str) -> tuple[float, Arcs]:
    """pgmpy's hill climbing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pgmpy.estimators import K2, BDeu, HillClimbSearch

        frame = _frame(cases)
        states = {variable.name: list(variable.labels) for variable in cases.variables}
        scorer = (
            K2(frame, state_names=states)
            if prior == "uniform"
            else BDeu(frame, equivalent_sample_size=1, state_names=states)
        )
        climber = HillClimbSearch(frame, state_names=states)
        seconds, found = least_time(1, lambda: climber.estimate(scorer, epsilon=1e-9, show_progress=False))
    return seconds, [(cases.index(parent), cases.index(child)) for parent, child in found.edges()]


def causal_learn_arcs(cases: Table, prior: str) -> tuple[float, Arcs] | None:
    """causal-learn's GES, and a DAG of the class it finds; it has no K2, and knows only states that occur."""
    if prior == "uniform":
        return None
    from causallearn.search.ScoreBased.GES import ges
    from causallearn.utils.PDAG2DAG import pdag2dag

    codes = cases.codes.T.astype(float)
    seconds, found = least_time(1, lambda: ges(codes, score_func="local_score_BDeu"))
    ends = pdag2dag(found["G"]).graph  # [j, i] is 1 and [i, j] is -1 where i is a parent of j
    return seconds, [(int(i), int(j)) for j, i in np.argwhere(ends == 1)]


# Codes come as a CSV file of columns V1, V2, ...; what is printed are seconds, and then the arcs.
_R = """
given <- commandArgs(trailingOnly = TRUE)
n_states <- as.integer(strsplit(given[2], ",")[[1]])
cases <- read.csv(given[1], header = FALSE)
for (k in seq_along(cases)) cases[[k]] <- factor(cases[[k]], levels = seq_len(n_states[k]) - 1)
n <- as.integer(given[3])
climb <- if (given[4] == "uniform") function() bnlearn::hc(cases, score = "k2") else
  function() bnlearn::hc(cases, score = "bde", iss = 1)
seconds <- system.time(for (k in seq_len(n)) found <- climb())
cat((seconds[["user.self"]] + seconds[["sys.self"]]) / n, sub("V", "", t(bnlearn::arcs(found))))
"""


def bnlearn_arcs(cases: Table, prior: str) -> tuple[float, Arcs]:
    """R's bnlearn: its hill climbing; seconds are the mean of some runs, since R counts milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "cases.csv")
        np.savetxt(place, cases.codes.T, "%d", ",")
        n_states = ",".join(map(str, cases.n_states.tolist()))
        command = ["Rscript", "-e", _R, str(place), n_states, str(repeats(cases)), prior]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    ends = [int(number) - 1 for number in printed[1:]]
    return float(printed[0]), list(zip(ends[::2], ends[1::2], strict=True))


OTHERS: dict[str, Callable[[Table, str], tuple[float, Arcs] | None]] = {
    "PyBNesian": pybnesian_arcs,
    "pyAgrum": pyagrum_arcs,
    "pgmpy": pgmpy_arcs,
    "causal-learn": causal_learn_arcs,
    "bnlearn": bnlearn_arcs,
}


@cache
def installed() -> list[str]:
    return [name for name in OTHERS if is_installed(name)]


def is_installed(name: str) -> bool:
    """Whether there is a Python package, or R's, of this name."""
    if name != "bnlearn":  # on PyPI that is another library
        return importlib.util.find_spec(name.lower().replace("-", "")) is not None
    asking = ["Rscript", "-e", 'quit(status = !requireNamespace("bnlearn", quietly = TRUE))']
    return shutil.which("Rscript") is not None and subprocess.run(asking, capture_output=True).returncode == 0


def row(job: Job, cases: Table, prior_name: str, beaten: list[str]) -> list[str]:
    """Times, and scores less our own; `beaten` is told who found a better network than we did."""
    prior = PRIORS[prior_name]
    greedy_seconds, greedy = least_time(repeats(cases), lambda: search(cases, prior, replace(GREEDY, threads=1)))
    seconds, found = least_time(repeats(cases), lambda: search(cases, prior, TableArcSearch(threads=1)))
    ours = score(cases, arcs_of(found), prior)
    check(abs(ours - found.log_score) < SAME, f"{job.name}: the score is {ours}, not {found.log_score}")
    cells = [f"{job.name}, {prior_name}", f"{cases.n_cases:,} × {cases.n_variables}", f"{ours:.2f}", f"{seconds:.4f}"]
    cells += [f"{greedy_seconds:.4f}", f"{greedy.log_score - ours:+.2f}"]
    fastest = np.inf
    for name in installed():
        other = None if name in job.without else OTHERS[name](cases, prior)
        if other is None:
            cells += ["–", "–"]
            continue
        theirs = score(cases, other[1], prior)
        if ours < theirs - SAME:
            beaten.append(f"{job.name}, {prior_name}: {name} found {theirs:.2f}, more than our {ours:.2f}")
        cells += [f"{other[0]:.4f}", f"{theirs - ours:+.2f}"]
        fastest = min(fastest, other[0])
    return [*cells, *(f"{fastest / own:.2f}" if fastest < np.inf else "–" for own in (seconds, greedy_seconds))]


def measure() -> Iterator[Report]:
    """Two rows a data set."""
    heads = ["data", "size", "log score", "s", "plain greedy s", "its score"]
    heads += [head for name in installed() for head in (f"{name} s", "its score")]
    rows: list[list[str]] = []
    beaten: list[str] = []
    search(data.alarm_sample(500), "bdeu:1", TableArcSearch())
    for job in JOBS:
        cases = cases_of(job)
        rows += [row(job, cases, prior_name, beaten) for prior_name in PRIORS]
    remarks = ["Scores in the columns of others are relative to ours. – : not there, or takes minutes."]
    absent = [name for name in OTHERS if name not in installed()]
    remarks += [f"Not installed here, and not measured: {', '.join(absent)}."] if absent else []
    how = f"best of {REPEATS} to {REPEATS_IF_SMALL}; scores by leafwise.log_score, checked"
    heads += ["times faster than the fastest", "plain greedy: times faster"]
    yield Report(f"Complete tables, search from no arcs; {how}", heads, rows, remarks)
    check(not beaten, "; ".join(beaten))


if __name__ == "__main__":
    main(measure, __doc__)
