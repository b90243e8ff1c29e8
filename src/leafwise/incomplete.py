"""Setup of searches over incomplete tables: missing cells to be inferred, and hidden causes.

Knows tables, searches, and the counter on this machine.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.counters.cpu import CpuCounter
from leafwise.data.table import MOST_STATES, Table, Variable, code_type
from leafwise.errors import AdvisedError
from leafwise.network import Network
from leafwise.prior_network import PriorNetwork
from leafwise.search import single_target
from leafwise.search.hidden import HiddenChoice, first_network, hidden_variables
from leafwise.search.incomplete import Incomplete, IncompleteSearch
from leafwise.search.problem import Problem
from leafwise.search.recover import RecoverySearch
from leafwise.search.run import Resumable, Settings
from leafwise.search.table_arc_search import TableArcSearch
from leafwise.workers import Workers

Hidden = int | Sequence[int] | str | None
Codes = NDArray[Any]
State = Mapping[str, Any] | None  # of a search to be resumed

DEFAULT_COMPLETIONS = 5
_MOST_HIDDEN = MOST_STATES - 1  # one more code marks an unknown state


@dataclass(frozen=True)
class Completing:
    """What is unobserved, and how cases are completed."""

    hidden: Hidden  # the numbers of states of hidden causes
    completions: int
    seed: int
    infers: bool  # whether missing cells are inferred, instead of being a state
    start: Network | None  # the initial network

    def __post_init__(self) -> None:
        for name, least in (("completions", 1), ("seed", 0)):
            value = getattr(self, name)
            if not _is_count(value) or value < least:
                raise ValueError(f"{name} is {value!r}, and must be a whole number from {least} on: correct it")
            object.__setattr__(self, name, int(value))
        hidden: object = self.hidden
        if isinstance(hidden, np.ndarray):
            object.__setattr__(self, "hidden", hidden.tolist())

    def __str__(self) -> str:
        return f"hidden={self.hidden!r}, completions={self.completions}, seed={self.seed}, infers={self.infers}"

    def causes(self) -> list[int]:
        """The numbers of states of the hidden causes."""
        given = self.hidden
        sizes: list[Any] = [] if given is None else list(given) if isinstance(given, Iterable) else [given]
        if any(not _is_count(n) or not 2 <= n <= _MOST_HIDDEN for n in sizes):
            raise AdvisedError(
                f"hidden is {given!r}, and says how many states a hidden cause has: give a number from 2 to "
                f"{_MOST_HIDDEN}, such as ",
                ("hidden", 8),
                ", several such as ",
                ("hidden", (4, 4)),
                ", or ",
                ("hidden", "auto"),
            )
        return list(map(int, sizes))


def _is_count(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def begin_incomplete(
    problem: Problem, table: Table, how: Completing, search: Settings, workers: Workers, state: State = None
) -> Resumable:
    """Begin or resume a search over an incomplete table: missing cells are inferred, and hidden causes added."""
    _refuse(problem, how, search)
    variables = tuple(map(_shown, table.variables)) if how.infers else table.variables
    known = replace(problem, variables=variables)
    if how.hidden == "auto":
        settings: Any = search  # every kind of settings has the field `seconds`

        def begin(n: int, seconds: float | None, state: State) -> Resumable:
            return _begin(known, table.codes, [n] * (n > 0), how, replace(settings, seconds=seconds), workers, state)

        return HiddenChoice(begin, search.seconds, state)
    return _begin(known, table.codes, how.causes(), how, search, workers, state)


def _refuse(problem: Problem, how: Completing, search: Settings) -> None:
    if how.hidden is None:
        return
    refuse_tables(search)  # also if the search begins without causes
    if len(problem.targets) < len(problem.variables):
        raise ValueError("a hidden cause is one of all variables, and a target was given: leave out one of the two")
    if isinstance(problem.prior, PriorNetwork):
        raise ValueError(f"the prior {str(problem.prior)!r} knows no hidden causes: use another prior, such as 'auto'")
    if how.start is not None:
        raise ValueError("hidden causes were asked for, and a network to begin with: leave out one of the two")


def _shown(variable: Variable) -> Variable:
    """The variable without its state for missing cells."""
    if not variable.missing:
        return variable
    if variable.n_states == 1:
        raise AdvisedError(
            f"column {variable.name!r} has no cell that is not missing, so nothing can be inferred: leave it out with ",
            ("ignore", [variable.name]),
            ", and where it stands for something that nobody observed, learn that with ",
            ("hidden", 2),
        )
    return replace(variable, labels=variable.labels[:-1], missing=False)


def _begin(
    problem: Problem,
    codes: Codes,
    causes: list[int],
    how: Completing,
    search: Settings,
    workers: Workers,
    state: State,
) -> Resumable:
    """Begin a search with hidden causes of these numbers of states; an ordinary search if nothing is missing."""
    problem, codes = _with_causes(problem, codes, causes)
    variables = problem.variables

    def count(completed: Codes, unit: float = 1.0, shown: NDArray[np.bool_] | None = None) -> CpuCounter:
        kind = code_type(variables)
        return CpuCounter(Table(variables, completed.astype(kind, copy=False)), workers, unit, shown)

    n_states = np.array([variable.n_states for variable in variables])
    lacking = (codes >= n_states[:, None]).any(axis=1)
    if not lacking.any():
        return single_target.begin(search, problem, count(codes), workers, state)
    refuse_tables(search)
    start = how.start
    is_usable = start is not None and all(node and (node.probabilities > 0).all() for node in start.nodes)
    first = start if start is not None and is_usable else first_network(variables, codes, how.seed)
    incomplete = Incomplete(codes, first, how.completions, how.seed)
    if not np.delete(lacking, problem.targets).any():
        return IncompleteSearch(problem, incomplete, count, search, workers, None, state)
    joint = replace(problem, targets=tuple(range(len(variables))))
    return IncompleteSearch(joint, incomplete, count, search, workers, problem, state)


def refuse_tables(search: Settings) -> None:
    """Raise an error for searches that do not support completed cases."""
    if isinstance(search, TableArcSearch | RecoverySearch):
        raise AdvisedError(
            "a search with complete tables takes no ",
            ("missing", "infer"),
            " and no hidden causes, which need decision graphs: use another search, or ",
            ("missing", "drop"),
        )


def _with_causes(problem: Problem, codes: Codes, causes: list[int]) -> tuple[Problem, Codes]:
    """Add hidden causes, which any graph may test, to a problem; their own graphs may test only earlier causes."""
    new = hidden_variables(causes, [variable.name for variable in problem.variables])
    variables = (*problem.variables, *new)
    hidden = np.flatnonzero([variable.hidden for variable in variables])
    if not len(hidden):
        return problem, codes
    rules, more = problem.parents, (0, len(new))
    allowed, is_parent, kept = (np.pad(one, (more, more)) for one in (rules.allowed, rules.is_parent, rules.kept))
    allowed[is_parent.sum(axis=1) < rules.most_parents, len(problem.variables) :] = 1
    allowed[hidden] = 0
    allowed[np.ix_(hidden, hidden)] = np.tri(len(hidden), k=-1, dtype=np.uint8)
    kind = code_type(tuple(variable.with_missing for variable in variables))
    holes = np.repeat(np.array(causes, kind)[:, None], codes.shape[1], axis=1)
    extended = replace(
        problem,
        variables=variables,
        targets=tuple(range(len(variables))) if causes else problem.targets,
        parents=rules._replace(allowed=allowed, is_parent=is_parent, kept=kept),
        n_candidates=allowed.sum(axis=1, dtype=np.int64),
    )
    return extended, np.concatenate([codes.astype(kind), holes])
