"""Random tables with something to find in them, constraints that can be met, and settings, for Hypothesis."""

import math
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st
from oracle import Rules

from leafwise.constraints import Constraints
from leafwise.search.greedy import Greedy
from leafwise.table import Table, Variable, code_type

OPERATOR_SETS = ("C", "B", "CB", "CM", "BM", "CBM")
SCHEDULES = ("best-first", "splits-first")
PRIORS = {"uniform": None, "bdeu:0.5": 0.5, "bdeu:1": 1.0, "bdeu:10": 10.0, "bdeu:50": 50.0}
STRUCTURE_PRIORS = {"uniform": 0.0, "kappa:0.1": math.log(0.1), "kappa:0.01": math.log(0.01)}
KINDS = ("noise", "skewed", "copy", "function", "constant")
WEIGHTS = (0.15, 0.1, 0.2, 0.5, 0.05)


def make_table(n_states, columns):
    """A table of variables a, b, c, ... with states 0, 1, 2, ..."""
    names = "abcdefghijklmnopqrstuvwxyz"
    variables = tuple(Variable(names[k], tuple(map(str, range(r)))) for k, r in enumerate(n_states))
    codes = np.ascontiguousarray(np.array(columns).reshape(len(n_states), -1), dtype=code_type(variables))
    return Table(variables, codes)


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
    one = int(random.integers(k))
    two = int(random.integers(k)) if kind == "function" else one
    look_up = random.integers(r, size=(n_states[one], n_states[two]))
    if kind == "copy":
        look_up[:] = (np.arange(n_states[one]) % r)[:, None]
    return np.where(random.random(n_cases) < noise, blank, look_up[columns[one], columns[two]])


@st.composite
def generators(draw):
    """A source of randomness: what is drawn from it is spread evenly, where Hypothesis prefers the small and the same."""
    return np.random.default_rng(draw(st.integers(0, 2**32 - 1)))


@st.composite
def tables(draw, max_variables=5, max_cases=200, max_states=7, max_assignments=400):
    """One variable or more, in which later columns often depend on earlier ones; the columns are then shuffled."""
    n = draw(st.sampled_from([1, 2, 3, 3, 4, 4, 4, 5, 5, 5, 5][: 2 * max_variables + 1]))
    n_cases = draw(st.sampled_from([1, 2, 63, 64, 65]) | st.integers(max_cases // 2, max_cases)) % (max_cases + 1)
    random = draw(generators())
    n_states = []
    for _ in range(n):
        room = max(2, min(max_states, max_assignments // math.prod(n_states)))
        n_states.append(int(random.integers(2, room + 1)) if random.random() < 0.95 else 1)
    noise = random.choice([0.0, 0.05, 0.2, 0.4])
    columns = []
    for k, kind in enumerate(random.choice(KINDS, n, p=WEIGHTS)):
        columns.append(_column(kind, k, columns, n_states, n_cases, noise, random))
    places = random.permutation(n)
    return make_table([n_states[p] for p in places], [columns[p] for p in places])


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
            "search": Greedy(**settings),
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


@st.composite
def rules(draw, n, kinds=("order", "tiers", "required", "forbidden", "allowed", "max_parents", "max_leaves")):
    """Some constraints that do not contradict each other, for a table of n variables."""
    chosen = draw(st.sets(st.sampled_from(kinds), max_size=3)) if kinds else set()
    order = draw(st.permutations(range(n)))  # whatever is asked for agrees with this order, so it can be met
    before = [(order[i], order[j]) for j in range(n) for i in range(j)]
    every = [(p, c) for p in range(n) for c in range(n) if p != c]

    def some(arcs):
        return draw(st.sets(st.sampled_from(arcs), max_size=4)) if arcs else set()

    required = some(before) if "required" in chosen else set()
    forbidden = (some(every) if "forbidden" in chosen else set()) - required
    cut = draw(st.integers(0, n - 1))
    tiers = (tuple(order[:cut]), tuple(order[cut:])) if "tiers" in chosen else ()
    allowed = {}
    if "allowed" in chosen:
        for child in draw(st.sets(st.integers(0, n - 1), max_size=2)):
            own = {p for p, c in required if c == child}
            others = sorted(set(range(n)) - {child})
            allowed[child] = frozenset(own | (draw(st.sets(st.sampled_from(others))) if others else set()))
    most = max([sum(c == child for _, c in required) for child in range(n)], default=0)
    return Rules(
        order=tuple(order) if "order" in chosen else (),
        tiers=tiers,
        required=frozenset(required),
        forbidden=frozenset(forbidden),
        allowed_parents=allowed,
        max_parents=draw(st.integers(most, most + 2)) if "max_parents" in chosen else None,
        max_leaves=draw(st.integers(1, 6)) if "max_leaves" in chosen else None,
    )


@st.composite
def dags(draw, n):
    """Rules for a static search: the arcs of a random DAG, and sometimes a limit on leaves."""
    order = draw(st.permutations(range(n)))
    arcs = {(order[i], order[j]) for j in range(n) for i in range(j) if draw(st.integers(0, 3))}
    return Rules(dag=frozenset(arcs), max_leaves=draw(st.none() | st.none() | st.integers(1, 6)))


@st.composite
def setups(draw, names, own_rules=None):
    """A way to search a table with these names."""
    chosen = draw(rules(len(names)) if own_rules is None else own_rules)
    random = draw(generators())
    return Setup(
        str(random.choice(OPERATOR_SETS)),
        str(random.choice(SCHEDULES)),
        str(random.choice(["uniform", *PRIORS])),
        str(random.choice(list(STRUCTURE_PRIORS), p=[0.6, 0.25, 0.15])),
        by_name(chosen, names),
        chosen,
    )


@st.composite
def problems(draw, own_rules=rules, **table):
    """A table and a way to search it."""
    cases = draw(tables(**table))
    return cases, draw(setups(cases.names, own_rules(cases.n_variables)))
