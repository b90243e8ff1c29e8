"""Complete tables beside other libraries: search over single arcs, from the empty graph, on the same cases.

The others are those of PyBNesian, pyAgrum, pgmpy, causal-learn and R's bnlearn that are installed; none is required.
Times are processor seconds, one thread each, of the learning call alone, data in memory and kernels compiled, since
they depend least on other load. Ours are those of `learn`, from a table to the network, which includes its counts and
computes nodes and scores on access; the others' are those of their searches for a DAG, from their own representation of
the cases. All take turns, and the least time of several runs counts; for bnlearn the mean. Every DAG is scored by
leafwise.log_score. With K2 (the uniform prior) no two arcs tie, so all greedy searches climb the same hill; with BDeu
the direction of most arcs is a tie, and where a greedy search ends is luck. Our search reverses tied arcs, and
continues where no arc gains; its network must be no worse than any other. Plain greedy search is the one that does the
same work as the others.

causal-learn does slightly different work: it searches equivalence classes (GES), and its BDeu includes a fixed price
per arc, so its score by BDeu alone may be lower than what it could find.
"""

import importlib.util
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.report import Report, check, main
from leafwise.constraints import Constraints
from leafwise.data.table import Table
from leafwise.inference.sampling import sample
from leafwise.learner import learn, log_score
from leafwise.network import Network
from leafwise.search.table_arc_search import GREEDY, TableArcSearch

TURNS, TURN = 12, 0.1  # seconds: in its turn a search runs repeatedly, so that the caches are its own
MOST = 6.0  # seconds after which a search gets no more turns
GOAL = 10.0  # times as fast as the fastest
PRIORS = {"K2": "uniform", "BDeu 1": "bdeu:1"}
SAME = 1e-6  # nats

Arcs = list[tuple[int, int]]
Run = Callable[[], tuple[float, Any]]  # its processor seconds, and its result


@dataclass(frozen=True)
class Job:
    """A data set, and the libraries that are too slow on it."""

    name: str
    n_cases: int | None = None  # None: the training cases of a binary data set
    network: Callable[[], Network] | None = None  # from which they are drawn, if it is not a published one
    without: tuple[str, ...] = ("pgmpy", "causal-learn")


JOBS = (
    Job("asia", 1_000, without=("pgmpy",)),
    Job("asia", 5_000, without=("pgmpy",)),
    Job("alarm", 1_000, without=("pgmpy",)),
    Job("alarm", 10_000),
    Job("alarm", 100_000),
    Job("insurance", 5_000, without=("pgmpy",)),
    Job("child", 5_000, without=()),
    Job("hailfinder", 5_000),
    Job("win95pts", 5_000),
    Job("3 states", 20_000, partial(data.network_of_tables, 42, 3, 2)),
    Job("16 states", 20_000, partial(data.network_of_tables, 17, 16, 1)),
    Job("nltcs"),
    Job("plants"),
    Job("kosarek", without=("pgmpy", "pyAgrum", "causal-learn")),
)


def cases_of(job: Job) -> Table:
    """The training cases."""
    if job.n_cases is None:
        return data.table(job.name)
    if job.name == "alarm":
        return data.alarm_sample(job.n_cases)
    return sample(data.network(job.name) if job.network is None else job.network(), job.n_cases, seed=1)


def timed(action: Callable[[], Any]) -> Run:
    """The action, with its processor seconds."""

    def run() -> tuple[float, Any]:
        began = time.process_time()
        found = action()
        return time.process_time() - began, found

    return run


def least_times(runs: Mapping[str, Run]) -> dict[str, tuple[float, Any]]:
    """The least time of each, taking turns, and the last result of each."""
    least: dict[str, tuple[float, Any]] = {}
    spent = dict.fromkeys(runs, 0.0)
    for _ in range(TURNS):
        for name, run in runs.items():
            end = min(spent[name] + TURN, MOST)
            while spent[name] < end:
                seconds, found = run()
                spent[name] += seconds
                least[name] = min(seconds, least.get(name, (seconds,))[0]), found
    return least


def learned(cases: Table, prior: str, settings: TableArcSearch, constraints: Constraints = Constraints()) -> Network:
    """The network of our search."""
    return learn(cases, search=settings, prior=prior, structure_prior="uniform", constraints=constraints)


def score(cases: Table, arcs: Arcs, prior: str) -> float:
    """The log score of complete tables for these arcs."""
    dag = Constraints(dag=[(cases.names[parent], cases.names[child]) for parent, child in arcs])
    return log_score(learned(cases, prior, TableArcSearch(max_steps=0), dag), cases).total


def _frame(cases: Table) -> "object":
    import pandas

    columns = zip(cases.variables, cases.codes, strict=True)
    return pandas.DataFrame({v.name: pandas.Categorical.from_codes(codes, v.labels) for v, codes in columns})


def pybnesian_run(cases: Table, prior: str) -> Run | None:
    """PyBNesian's hill climbing; it has no K2."""
    import pybnesian

    if prior == "uniform":
        return None
    scorer = pybnesian.BDe(_frame(cases), iss=1)
    climb = partial(pybnesian.GreedyHillClimbing().estimate, pybnesian.ArcOperatorSet(), scorer, epsilon=1e-9)
    search = timed(lambda: climb(pybnesian.DiscreteBN(list(cases.names))))

    def run() -> tuple[float, Arcs]:
        seconds, found = search()
        return seconds, [(cases.index(parent), cases.index(child)) for parent, child in found.arcs()]

    return run


def pyagrum_run(cases: Table, prior: str) -> Run:
    """pyAgrum's hill climbing."""
    import pyagrum

    states = pyagrum.BayesNet()
    for variable in cases.variables:
        states.add(pyagrum.LabelizedVariable(variable.name, "", list(variable.labels)))
    frame = _frame(cases).astype(str)  # type: ignore[attr-defined]

    def run() -> tuple[float, Arcs]:
        learner = pyagrum.BNLearner(frame, states)
        learner.useGreedyHillClimbing()
        learner.setNumberOfThreads(1)
        learner.useScoreK2() if prior == "uniform" else learner.useScoreBDeu()
        learner.useNoPrior()
        seconds, found = timed(learner.learnDAG)()
        return seconds, [(int(parent), int(child)) for parent, child in found.arcs()]

    return run


def pgmpy_run(cases: Table, prior: str) -> Run:
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

    def run() -> tuple[float, Arcs]:
        seconds, found = timed(lambda: climber.estimate(scorer, epsilon=1e-9, show_progress=False))()
        return seconds, [(cases.index(parent), cases.index(child)) for parent, child in found.edges()]

    return run


def causal_learn_run(cases: Table, prior: str) -> Run | None:
    """causal-learn's GES, and a DAG of the class found; it has no K2, and only knows states that occur."""
    if prior == "uniform":
        return None
    from causallearn.search.ScoreBased.GES import ges
    from causallearn.utils.PDAG2DAG import pdag2dag

    codes = cases.codes.T.astype(float)

    def run() -> tuple[float, Arcs]:
        seconds, found = timed(lambda: ges(codes, score_func="local_score_BDeu"))()
        ends = pdag2dag(found["G"]).graph  # [j, i] is 1 and [i, j] is -1 where i is a parent of j
        return seconds, [(int(i), int(j)) for j, i in np.argwhere(ends == 1)]

    return run


# Codes are passed as a CSV file with columns V1, V2, ...; the output is the seconds, then the arcs.
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


def bnlearn_run(cases: Table, prior: str) -> Run:
    """R's bnlearn: its hill climbing; seconds are the mean of several runs, since R counts milliseconds."""
    return cache(lambda: _by_bnlearn(cases, prior))


def _by_bnlearn(cases: Table, prior: str) -> tuple[float, Arcs]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "cases.csv")
        np.savetxt(place, cases.codes.T, "%d", ",")
        n_states = ",".join(map(str, cases.n_states.tolist()))
        command = ["Rscript", "-e", _R, str(place), n_states, "3" if cases.codes.size > 400_000 else "60", prior]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    ends = [int(number) - 1 for number in printed[1:]]
    return float(printed[0]), list(zip(ends[::2], ends[1::2], strict=True))


OTHERS: dict[str, Callable[[Table, str], Run | None]] = {
    "PyBNesian": pybnesian_run,
    "pyAgrum": pyagrum_run,
    "pgmpy": pgmpy_run,
    "causal-learn": causal_learn_run,
    "bnlearn": bnlearn_run,
}


@cache
def installed() -> list[str]:
    return [name for name in OTHERS if is_installed(name)]


def is_installed(name: str) -> bool:
    """Whether a package of this name is installed, in Python or for bnlearn in R."""
    if name != "bnlearn":  # on PyPI this is another library
        return importlib.util.find_spec(name.lower().replace("-", "")) is not None
    asking = ["Rscript", "-e", 'quit(status = !requireNamespace("bnlearn", quietly = TRUE))']
    return shutil.which("Rscript") is not None and subprocess.run(asking, capture_output=True).returncode == 0


def row(job: Job, cases: Table, prior_name: str, beaten: list[str]) -> tuple[list[str], float]:
    """Times, scores less our own, and how many times as fast plain greedy search is as the fastest.

    Libraries that find a better network than ours are added to `beaten`.
    """
    prior = PRIORS[prior_name]
    runs = {
        "ours": timed(lambda: learned(cases, prior, TableArcSearch(threads=1))),
        "greedy": timed(lambda: learned(cases, prior, replace(GREEDY, threads=1))),
    }
    for name in installed():
        other = None if name in job.without else OTHERS[name](cases, prior)
        if other is not None:
            runs[name] = other
    least = least_times(runs)
    (seconds, found), (greedy_seconds, greedy) = least.pop("ours"), least.pop("greedy")
    ours = score(cases, list(found.arcs), prior)
    told = found.learned["log_score"]
    check(abs(ours - told) < SAME, f"{job.name}: the score is {ours}, not {told}")
    cells = [f"{job.name}, {prior_name}", f"{cases.n_cases:,} × {cases.n_variables}", f"{ours:.2f}", f"{seconds:.4f}"]
    cells += [f"{greedy_seconds:.5f}", f"{greedy.learned['log_score'] - ours:+.2f}"]
    for name in installed():
        if name not in least:
            cells += ["–", "–"]
            continue
        theirs = score(cases, least[name][1], prior)
        if ours < theirs - SAME:
            beaten.append(f"{job.name}, {prior_name}: {name} found {theirs:.2f}, more than our {ours:.2f}")
        cells += [f"{least[name][0]:.4f}", f"{theirs - ours:+.2f}"]
    fastest = min((other for other, _ in least.values()), default=np.nan)
    times = [fastest / own for own in (seconds, greedy_seconds)]
    return [*cells, *("–" if np.isnan(ratio) else f"{ratio:.1f}" for ratio in times)], times[1]


def measure() -> Iterator[Report]:
    """Two rows per data set."""
    heads = ["data", "size", "log score", "s", "plain greedy s", "its score"]
    heads += [head for name in installed() for head in (f"{name} s", "its score")]
    rows: list[list[str]] = []
    beaten: list[str] = []
    times: dict[str, float] = {}
    learned(data.alarm_sample(500), "bdeu:1", TableArcSearch())
    for job in JOBS:
        cases = cases_of(job)
        for prior_name in PRIORS:
            cells, ratio = row(job, cases, prior_name, beaten)
            rows.append(cells)
            times |= {} if np.isnan(ratio) else {f"{job.name}, {cases.n_cases:,} cases, {prior_name}": ratio}
    remarks = ["Scores in the columns of others are relative to ours. – : not there, or takes minutes."]
    slow = [f"{name} ({ratio:.1f})" for name, ratio in times.items() if ratio < GOAL]
    missed = f"; it is not on {', '.join(slow)}" if slow else ""
    remarks += [
        f"Plain greedy search, at least {GOAL:.0f} times as fast: {len(times) - len(slow)} of {len(times)}{missed}."
    ]
    absent = [name for name in OTHERS if name not in installed()]
    remarks += [f"Not installed here, and not measured: {', '.join(absent)}."] if absent else []
    how = "least times of many runs; scores by leafwise.log_score, checked"
    heads += ["times faster than the fastest", "plain greedy: times faster"]
    yield Report(f"Complete tables, search from no arcs; {how}", heads, rows, remarks)
    check(not beaten, "; ".join(beaten))


if __name__ == "__main__":
    main(measure, __doc__)
