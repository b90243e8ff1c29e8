"""Random tables with something to find in them, constraints that can be met, and settings, for Hypothesis."""

import math
import os
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from oracle import Rules

from leafwise.constraints import Constraints
from leafwise.counters.cpu import CpuCounter
from leafwise.counters.dask import DaskCounter
from leafwise.counters.gpu import GpuCounter
from leafwise.counters.sharded import ShardedCounter
from leafwise.data.table import MISSING, Table, Variable, code_type
from leafwise.decision_graph import DecisionGraph
from leafwise.network import Network, Node
from leafwise.search.leaf_search import LeafSearch
from leafwise.workers import Workers

OPERATOR_SETS = ("C", "B", "CB", "CM", "BM", "CBM", "CBIM", "IM", "BI")
SCHEDULES = ("best-first", "splits-first")
PRIORS = {
    "uniform": ("uniform", None),
    "symmetric:2": ("symmetric", 2.0),
    **{f"bdeu:{size:g}": ("bdeu", size) for size in (0.5, 1.0, 10.0, 50.0)},
}
STRUCTURE_PRIORS = {"uniform": 0.0, "choices": None, "kappa:0.1": math.log(0.1), "kappa:0.01": math.log(0.01)}
KINDS = ("noise", "skewed", "copy", "function", "constant")
WEIGHTS = (0.1, 0.1, 0.2, 0.55, 0.05)


def examples(n):
    """Settings for so many examples; half of them where time is short, an eighth where nothing is compiled.

    All of them with HYPOTHESIS_ALL=1.
    """
    if os.environ.get("HYPOTHESIS_ALL") == "1":
        return settings(max_examples=n)
    return settings(max_examples=max(4, n // 8) if os.environ.get("NUMBA_DISABLE_JIT") == "1" else n // 2)


def make_table(n_states, columns, ordered=frozenset(), missing=frozenset()):
    """A table of variables a, b, c, ... with states 0, 1, 2, ..., of which some have an order, or a missing state."""
    names = "abcdefghijklmnopqrstuvwxyz"
    labels = [[*map(str, range(r - (k in missing))), *[MISSING] * (k in missing)] for k, r in enumerate(n_states)]
    variables = tuple(
        Variable(names[k], tuple(own), missing=k in missing, ordered=k in ordered) for k, own in enumerate(labels)
    )
    codes = np.ascontiguousarray(np.array(columns).reshape(len(n_states), -1), dtype=code_type(variables))
    return Table(variables, codes)


def shards(table, random, n, n_threads=1):
    """The table's rows, dealt at random to so many counters, some of which may have got none."""
    owners = random.integers(n, size=table.n_cases)
    return ShardedCounter(
        [
            CpuCounter(Table(table.variables, np.ascontiguousarray(table.codes[:, owners == k])), Workers(n_threads))
            for k in range(n)
            if (owners == k).any()
        ]
    )


@cache
def has_gpu():
    """Whether a GPU can be asked, too."""
    try:
        GpuCounter(make_table([2], [[0, 1]]))
    except ValueError:
        return False
    return True


@cache
def dask_client():
    """A client of a cluster in this process, of two workers; None without Dask."""
    if find_spec("distributed") is None:
        return None
    from distributed import Client

    return Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0", set_as_default=False)


def on_a_cluster(table, random, n):
    """The table's rows, dealt at random to so many shards of a cluster in this process."""
    owners = random.integers(n, size=table.n_cases)
    parts = [table.codes[:, owners == k] for k in range(n) if (owners == k).any()]
    return DaskCounter.of_tables([Table(table.variables, np.ascontiguousarray(p)) for p in parts], dask_client())


def _column(kind, k, columns, n_states, n_cases, noise, random):
    """Noise, or a table look-up of one or two earlier columns in which a share of the cells is noise."""
    r = n_states[k]
    if kind == "constant":
        return np.full(n_cases, random.integers(r))
    if kind == "skewed":
        return np.minimum(random.geometric(0.6, n_cases) - 1, r - 1)
    blank = random.integers(r, size=n_cases)
    if kind == "noise" or k == 0:
        return blank
    one, two = int(random.integers(k)), int(random.integers(k))
    look_up = random.permutation(np.arange(n_states[one] * n_states[two]) % r).reshape(n_states[one], n_states[two])
    if kind == "copy":
        look_up[:] = (np.arange(n_states[one]) % r)[:, None]
    return np.where(random.random(n_cases) < noise, blank, look_up[columns[one], columns[two]])


def random_table(random, max_variables=5, max_cases=200, max_states=7, max_assignments=400):
    """One variable or more, in which later columns often depend on earlier ones; the columns are then shuffled."""
    n = int(random.integers(2, max_variables + 1)) if random.random() < 0.95 else 1
    n_cases = random.choice(
        [random.integers(max_cases // 2, max_cases + 1), random.integers(1, max_cases + 1), 1, 64],
        p=[0.7, 0.2, 0.05, 0.05],
    )
    n_states = []
    for _ in range(n):
        room = max(2, min(max_states, max_assignments // math.prod(n_states)))
        n_states.append(int(random.integers(2, room + 1)) if random.random() < 0.95 else 1)
    noise = random.choice([0.0, 0.05, 0.2, 0.4])
    columns = []
    for k, kind in enumerate(random.choice(KINDS, n, p=WEIGHTS)):
        columns.append(_column(kind, k, columns, n_states, n_cases, noise, random))
    places = random.permutation(n)
    ordered = {k for k in range(n) if random.random() < 0.4}
    missing = {k for k in range(n) if n_states[places[k]] > 1 and random.random() < 0.2}
    return make_table([n_states[p] for p in places], [columns[p] for p in places], ordered, missing)


def generators():
    """Sources of randomness. One seed makes a whole example: Hypothesis itself prefers the small and the same."""
    return st.integers(0, 2**32 - 1).map(np.random.default_rng)


def tables(**limits):
    return generators().map(lambda random: random_table(random, **limits))


@dataclass(frozen=True)
class Setup:
    """One way to search, for the library and for the oracle."""

    operators: str
    schedule: str
    prior: str
    structure_prior: str
    constraints: Constraints = Constraints()
    rules: Rules = field(default_factory=Rules)

    def for_library(self, **greedy):
        settings = {"operators": self.operators, "schedule": self.schedule, "threads": 1, **greedy}
        return {
            "search": LeafSearch(**settings),
            "prior": self.prior,
            "structure_prior": self.structure_prior,
            "constraints": self.constraints,
        }

    def for_oracle(self):
        return {
            "operators": self.operators,
            "schedule": self.schedule,
            "alpha": PRIORS[self.prior],
            "log_kappa": STRUCTURE_PRIORS[self.structure_prior],
            "rules": self.rules,
        }


def by_name(rules, names):
    """The oracle's rules, as the library's constraints."""

    def named(arcs):
        return [(names[parent], names[child]) for parent, child in sorted(arcs)]

    return Constraints(
        order=[names[v] for v in rules.order],
        tiers=[[names[v] for v in tier] for tier in rules.tiers],
        required=named(rules.required),
        forbidden=named(rules.forbidden),
        allowed_parents={names[c]: [names[p] for p in sorted(ps)] for c, ps in rules.allowed_parents.items()},
        dag=None if rules.dag is None else named(rules.dag),
        max_parents=rules.max_parents,
        max_leaves=rules.max_leaves,
    )


RULES = ("order", "tiers", "required", "forbidden", "allowed", "max_parents", "max_leaves")


def _some(items, most, random):
    """A few of the items, perhaps none."""
    n = int(random.integers(0, min(most, len(items)) + 1))
    return {items[k] for k in random.permutation(len(items))[:n]}


def random_rules(random, n, kinds=RULES):
    """Some constraints that do not contradict each other, for a table of n variables."""
    chosen = _some(kinds, 3, random)
    order = random.permutation(n).tolist()  # whatever is asked for agrees with this order, so it can be met
    before = [(order[i], order[j]) for j in range(n) for i in range(j)]
    every = [(p, c) for p in range(n) for c in range(n) if p != c]
    required = _some(before, 3, random) if "required" in chosen else set()
    forbidden = _some(every, 6, random) - required if "forbidden" in chosen else set()
    cut = int(random.integers(0, n))
    allowed = {}
    for child in _some(range(n), 2, random) if "allowed" in chosen else ():
        own = {p for p, c in required if c == child}
        allowed[child] = frozenset(own | _some(sorted(set(range(n)) - {child}), n, random))
    most = max([sum(c == child for _, c in required) for child in range(n)], default=0)
    return Rules(
        order=tuple(order) if "order" in chosen else (),
        tiers=(tuple(order[:cut]), tuple(order[cut:])) if "tiers" in chosen else (),
        required=frozenset(required),
        forbidden=frozenset(forbidden),
        allowed_parents=allowed,
        max_parents=most + int(random.integers(3)) if "max_parents" in chosen else None,
        max_leaves=int(random.integers(1, 9)) if "max_leaves" in chosen else None,
    )


def free(random, n):
    """No rules at all."""
    return Rules()


def random_dag(random, n):
    """Rules for a static search: the arcs of a random DAG, and sometimes a limit on leaves."""
    order = random.permutation(n).tolist()
    arcs = {(order[i], order[j]) for j in range(n) for i in range(j) if random.random() < 0.8}
    return Rules(dag=frozenset(arcs), max_leaves=int(random.integers(1, 9)) if random.random() < 0.3 else None)


def random_setup(random, table, make_rules=random_rules):
    """A way to search a table."""
    rules = make_rules(random, table.n_variables)
    return Setup(
        str(random.choice(OPERATOR_SETS)),
        str(random.choice(SCHEDULES)),
        str(random.choice(["uniform", *PRIORS])),
        str(random.choice(list(STRUCTURE_PRIORS), p=[0.35, 0.4, 0.15, 0.1])),
        by_name(rules, table.names),
        rules,
    )


def problems(make_rules=random_rules, **limits):
    """A table, a way to search it, and a target among its variables."""

    def make(random):
        table = random_table(random, **limits)
        return table, random_setup(random, table, make_rules), int(random.integers(table.n_variables))

    return generators().map(make)


def random_graph(random, target, n_states, candidates, n_operators):
    """A decision graph made by random splits, complete or binary, and merges; every leaf is reached by some case."""
    graph = DecisionGraph.single()
    for _ in range(n_operators):
        leaf = int(random.integers(graph.n_leaves))
        if graph.n_leaves > 1 and random.random() < 0.3:
            graph = graph.merge(leaf, (leaf + 1) % graph.n_leaves)
        elif candidates:
            variable = int(random.choice(candidates))
            paths = graph.paths(leaf)
            every = frozenset(range(n_states[variable]))
            possible = sorted(frozenset().union(*(path.get(variable, every) for path in paths)))
            if len(possible) > 1:
                first = possible if random.random() < 0.4 else [int(random.choice(possible))]
                groups = [{state} for state in first]
                rest = set(every) - set(first)
                groups = [*groups[:-1], groups[-1] | rest] if first == possible else [*groups, rest]
                graph = graph.split(leaf, variable, groups)
    return graph


def random_start(random, table, rules=None, n_operators=5):
    """A network that is not learned, one graph a variable, tests only arcs that the rules permit."""
    rules = rules or Rules()
    n_states = [variable.n_states for variable in table.variables]
    order = list(rules.order) or random.permutation(table.n_variables).tolist()
    nodes = []
    for target in range(table.n_variables):
        own = [v for v in order[: order.index(target)] if rules.permit(v, target)][: rules.max_parents]
        graph = random_graph(random, target, n_states, own, n_operators)
        if rules.max_leaves is not None and graph.n_leaves > rules.max_leaves:
            graph = DecisionGraph.single()
        r = n_states[target]
        nodes.append(Node(graph.tested, graph, np.full((graph.n_leaves, r), 1 / r)))
    return Network(table.variables, tuple(nodes))
