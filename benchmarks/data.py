"""The data sets of the benchmarks: where they are, and how each is read.

They are expected in the folder named by the environment variable LEAFWISE_DATA, or else beside the repository. It
contains `debd/NAME.train.csv.gz` (binary, no header), `tables/NAME.csv` or `.csv.gz` (with a header), and
`networks/NAME.bif` or `.bif.gz`.
"""

import os
from pathlib import Path

import numpy as np

from leafwise.data.encoding import read
from leafwise.data.table import Table, Variable
from leafwise.decision_graph import DecisionGraph
from leafwise.formats.bif import load
from leafwise.inference.sampling import sample
from leafwise.network import Network, Node

BINARY = (
    *("ad", "baudio", "bnetflix", "cwebkb", "dna", "jester", "kdd"),
    *("kosarek", "msnbc", "msweb", "nltcs", "plants", "tmovie", "tretail"),
)
TABLES = ("promoters", "splice", "car", "nursery", "mushroom", "adult_train")
_BINS = {"adult_train": 8}


class NoData(Exception):
    """A data set is missing; the message says where it was expected."""


def folder() -> Path:
    """Where the data sets should be."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("LEAFWISE_DATA", beside))


def path(name: str) -> Path:
    """The file of a data set, or NoData."""
    places = [f"debd/{name}.train.csv.gz"] if name in BINARY else [f"tables/{name}.csv", f"tables/{name}.csv.gz"]
    for place in places:
        if (folder() / place).is_file():
            return folder() / place
    raise NoData(
        f"the data set {name!r} is not at {folder() / places[0]}: "
        "set the environment variable LEAFWISE_DATA to the folder that holds debd/ and tables/"
    )


def options(name: str) -> list[str]:
    """The command-line options with which a data set is read; `table` reads it the same way."""
    header = ["--no-header"] if name in BINARY else []
    bins = ["--bins", str(_BINS[name])] if name in _BINS else []
    return [*header, *bins, "--missing", "state"]


def table(name: str) -> Table:
    """A data set, encoded: missing cells are a state, and numbers (in one table) are binned."""
    cases = read(path(name), header=name not in BINARY, missing="state", bins=_BINS.get(name))
    return _with_both_states(cases) if name in BINARY else cases


def _with_both_states(cases: Table) -> Table:
    """States 0 and 1 for every variable, even if all cases have the same."""
    shift = np.array([[variable.labels == ("1",)] for variable in cases.variables])
    return Table(tuple(Variable(name, ("0", "1")) for name in cases.names), cases.codes + shift.astype(np.uint8))


def test_table(name: str, learned_from: Table) -> Table | None:
    """The test cases of a data set, in the states of the training cases; None if there are none."""
    tests = {"adult_train": "tables/adult_test.csv.gz"} | {binary: f"debd/{binary}.test.csv.gz" for binary in BINARY}
    place = folder() / tests.get(name, "none")
    if not place.is_file():
        return None
    return read(place, header=name not in BINARY, missing="state", variables=learned_from.variables)


def network(name: str) -> Network:
    """A published network."""
    for place in (folder() / f"networks/{name}.bif", folder() / f"networks/{name}.bif.gz"):
        if place.is_file():
            return load(place)
    raise NoData(
        f"the network {name!r} is not at {folder() / f'networks/{name}.bif'}: "
        "set the environment variable LEAFWISE_DATA to the folder that holds networks/"
    )


def alarm_sample(n_cases: int, seed: int = 1) -> Table:
    """Cases of the built-in ALARM network; they need no file."""
    from leafwise.examples import alarm

    return sample(alarm(), n_cases, seed)


def binary_chain(n_variables: int, n_cases: int, seed: int = 1) -> Table:
    """Binary variables, each equal to the one before it in four cases of five."""
    random = np.random.default_rng(seed)
    changes = random.random((n_variables, n_cases)) < 0.2
    changes[0] = random.random(n_cases) < 0.5
    codes = np.cumsum(changes, axis=0, dtype=np.int64) % 2
    variables = tuple(Variable(f"x{i + 1}", ("0", "1")) for i in range(n_variables))
    return Table(variables, codes.astype(np.uint8))


def random_network(n_variables: int, seed: int = 1, most_states: int = 4) -> Network:
    """Variables of 2 to `most_states` states; graphs have up to 7 splits on some of the 30 before, and merges."""
    random = np.random.default_rng(seed)
    n_states = random.integers(2, most_states + 1, n_variables).tolist()
    variables = tuple(Variable(f"x{i + 1}", tuple(map(str, range(n)))) for i, n in enumerate(n_states))
    graphs = [_random_graph(random, i, n_states) for i in range(n_variables)]
    leaves = [random.dirichlet([0.7] * n, graph.n_leaves) for n, graph in zip(n_states, graphs, strict=True)]
    return Network(variables, tuple(Node(graph.tested, graph, p) for graph, p in zip(graphs, leaves, strict=True)))


def _random_graph(random: np.random.Generator, target: int, n_states: list[int]) -> DecisionGraph:
    graph = DecisionGraph.single()
    for _ in range(random.integers(1, 8) if target else 0):
        variable, leaf = int(random.integers(max(0, target - 30), target)), int(random.integers(graph.n_leaves))
        if variable not in graph.tested:
            state = int(random.integers(n_states[variable]))
            graph = graph.split(leaf, variable, [{state}, set(range(n_states[variable])) - {state}])
    return graph.merge(0, graph.n_leaves - 1) if graph.n_leaves > 3 and random.random() < 0.5 else graph


def network_of_tables(n_variables: int, n_states: int, most_parents: int, seed: int = 1) -> Network:
    """Variables with complete tables for up to `most_parents` parents among the eight before each."""
    random = np.random.default_rng(seed)
    variables = tuple(Variable(f"x{i + 1}", tuple(map(str, range(n_states)))) for i in range(n_variables))
    nodes: list[Node] = []
    for i in range(n_variables):
        before = np.arange(max(0, i - 8), i)
        n_parents = min(i, int(random.integers(1, most_parents + 1)))
        parents = tuple(sorted(random.choice(before, n_parents, replace=False).tolist())) if i else ()
        graph = DecisionGraph.complete(parents, [n_states] * n_variables)
        nodes.append(Node(parents, graph, random.dirichlet([0.3] * n_states, graph.n_leaves)))
    return Network(variables, tuple(nodes))


def write_like_promoters(place: Path) -> Path:
    """Write a table of the size of promoters: 106 cases, a class of two states, 57 letters of four."""
    random = np.random.default_rng(1)
    names = ["class", *(f"p{i}" for i in range(57))]
    rows = [[random.choice(["+", "-"]), *random.choice(list("acgt"), 57)] for _ in range(106)]
    place.write_text("\n".join(",".join(row) for row in [names, *rows]) + "\n")
    return place


def head(cases: Table, n: int) -> Table:
    """The first n cases."""
    return Table(cases.variables, np.ascontiguousarray(cases.codes[:, :n]))
