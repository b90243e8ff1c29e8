"""Constraints on parents and on the size of nodes. Knows names and matrices, not searches."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leafwise import dag
from leafwise.data.series import lagged
from leafwise.data.table import Table, index_of, many
from leafwise.errors import AdvisedError

NO_LIMIT = 2**31 - 1
Arc = tuple[str, str]
Family = tuple[int, tuple[int, ...]]  # a variable and its parents, by index


class ParentRules(NamedTuple):
    """Constraints in terms of the indices of a table's variables."""

    allowed: NDArray[np.uint8]  # allowed[child, parent]
    is_parent: NDArray[np.uint8]  # arcs present from the start
    kept: NDArray[np.uint8]  # arcs that may not be removed
    most_parents: int
    most_leaves: int
    is_static: bool = False  # a DAG was given: graphs of nodes may change, but not their parents

    @property
    def fixed(self) -> NDArray[np.uint8]:
        """The arcs that searches over arcs may not change."""
        return self.is_parent if self.is_static else self.kept


@dataclass(frozen=True)
class Constraints:
    """Constraints on the structure of a network, by variables' names; arcs are (parent, child).

    >>> Constraints(tiers=[["smoke"], ["lung", "bronc"]], forbidden=[("lung", "bronc")]).max_parents is None
    True
    """

    order: Sequence[str] = ()  # parents must come earlier
    tiers: Sequence[Sequence[str]] = ()  # parents must be in the same tier or an earlier one
    required: Sequence[Arc] = ()
    forbidden: Sequence[Arc] = ()
    allowed_parents: Mapping[str, Sequence[str]] = field(default_factory=dict)  # for the children named, only these
    dag: Sequence[Arc] | None = None  # static search: these arcs and the required ones, no others
    max_parents: int | None = None
    max_leaves: int | None = None
    tied: Sequence[Sequence[tuple[str, Sequence[str]]]] = ()  # groups of (child, its parents) that share a graph

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            if isinstance(value, Iterator):  # it could be read once only
                object.__setattr__(self, name, tuple(value))

    def resolve(self, table: Table) -> ParentRules:
        """Convert names to indices; a ValueError if a name is unknown or constraints contradict each other."""
        allowed = self._by_rank(table)
        for parent, child in self.forbidden:
            allowed[table.index(child), table.index(parent)] = 0
        for child, parents in self.allowed_parents.items():
            row = np.zeros(table.n_variables, np.uint8)
            row[[table.index(parent) for parent in parents]] = 1
            allowed[table.index(child)] &= row
        kept = _matrix(self.required, table)
        for own, above in (family for group in self.families(table) for family in group):
            shared = np.zeros_like(allowed)
            shared[own, list(above)] = 1
            _check_required(allowed, shared, table)
            allowed[own] = shared[own]
            kept |= shared
        if len(self.required) or self.tied:
            _check_required(allowed, kept, table)
        is_parent = kept
        if self.dag is not None:
            is_parent = kept | _matrix(self.dag, table)
            _check_required(allowed, is_parent, table)
            allowed = is_parent.copy()
        most_parents = _limit(self.max_parents, "max_parents", 0)
        if len(self.required) or self.tied or self.dag is not None:
            check_arcs(is_parent, most_parents, table)
        if most_parents < table.n_variables:
            full = is_parent.sum(axis=1, dtype=np.int64) == most_parents
            allowed[full] &= is_parent[full]
        most_leaves = _limit(self.max_leaves, "max_leaves", 1)
        return ParentRules(allowed, is_parent, kept, most_parents, most_leaves, self.dag is not None)

    def families(self, table: Table) -> list[list[Family]]:
        """The groups that share a graph, by index; a ValueError if they cannot."""
        bare = [name for group in self.tied for name in group if isinstance(name, str)]
        if bare:
            raise ValueError(
                f"tied has {bare[0]!r} where a child and its parents belong: give groups such as "
                f"[('b', ['a']), ('d', ['c'])]"
            )
        groups = [
            [(table.index(child), tuple(map(table.index, parents))) for child, parents in group] for group in self.tied
        ]
        seen: set[int] = set()
        for group in groups:
            _check_group(group, table)
            twice = [table.names[child] for child, _ in group if child in seen or seen.add(child)]  # type: ignore[func-returns-value]
            if twice:
                raise ValueError(f"tied names {twice[0]!r} twice, and its node is shared in one group: name it once")
        return groups

    def over_slices(self, names: Sequence[str], lags: int) -> "Constraints":
        """Convert constraints to windows over series: earlier slices come first, and arcs are shifted to every slice.

        Order and tiers are those within a slice; in arcs, x[t-1] is x one step before.

        >>> two = Constraints(forbidden=[("x[t-1]", "y")]).over_slices(["x", "y"], 2)
        >>> two.forbidden, two.tiers[0]
        ([('x[t-1]', 'y'), ('x[t-2]', 'y[t-1]')], ['x[t-2]', 'y[t-2]'])
        """
        if self.tied:
            raise ValueError("tied and lags were both given, and series tie what they share themselves: leave one out")
        lags_of = {lagged(name, lag): (name, lag) for lag in range(lags + 1) for name in names}
        places = list(lags_of.values())

        def shifted(*found: str) -> list[list[str]]:
            """These names, and the same in all earlier slices of the window."""
            known = [places[index_of(name, tuple(lags_of))] for name in found]
            last = lags - max(lag for _, lag in known)
            return [[lagged(name, lag + more) for name, lag in known] for more in range(last + 1)]

        def arcs(given: Sequence[Arc]) -> list[Arc]:
            return [(parent, child) for arc in given for parent, child in shifted(*arc)]

        allowed: dict[str, list[str]] = {}
        for child, parents in self.allowed_parents.items():
            for (own,) in shifted(child):
                allowed.setdefault(own, [])
            for parent, own in arcs([(parent, child) for parent in parents]):
                allowed[own].append(parent)
        tiers, past = self.tiers or [names], range(lags, -1, -1)
        return replace(
            self,
            order=[lagged(name, lag) for lag in past for name in self.order],
            tiers=[[lagged(name, lag) for name in tier] for lag in past for tier in tiers],
            required=arcs(self.required),
            forbidden=arcs(self.forbidden),
            allowed_parents=allowed,
            dag=None if self.dag is None else arcs(self.dag),
        )

    def _by_rank(self, table: Table) -> NDArray[np.uint8]:
        n = table.n_variables
        allowed = np.ones((n, n), np.uint8)
        allowed.ravel()[:: n + 1] = 0  # no variable is its own parent
        if self.order:
            rank = _ranks([[name] for name in self.order], "order", table)
            allowed &= rank[:, None] > rank[None, :]
        if self.tiers:
            rank = _ranks(self.tiers, "tiers", table)
            allowed &= rank[:, None] >= rank[None, :]
        return allowed


def _ranks(tiers: Sequence[Sequence[str]], what: str, table: Table) -> NDArray[np.int64]:
    rank = np.full(table.n_variables, -1)
    for position, names in enumerate(tiers):
        for name in names:
            variable = table.index(name)
            if rank[variable] >= 0:
                raise ValueError(f"{what} names {name!r} twice: name every variable once")
            rank[variable] = position
    missing = [table.names[variable] for variable in np.flatnonzero(rank < 0)]
    if missing:
        raise ValueError(
            f"{what} leaves out {many(len(missing), 'variable')} ({', '.join(missing[:3])}): name every variable once"
        )
    return rank


def _check_group(group: Sequence[Family], table: Table) -> None:
    """Refuse variables that cannot share a graph: matched by position, families must have the same states."""
    if len(group) < 2:
        raise ValueError("a group of tied has fewer than two variables, and sharing takes two: name another, or none")
    first, *others = [(child, *parents) for child, parents in group]
    for family in (first, *others):
        if len(set(family)) < len(family):
            raise ValueError(f"tied names a variable twice for {table.names[family[0]]!r}: name every parent once")
    for family in others:
        if len(family) != len(first):
            raise ValueError(
                f"tied gives {table.names[first[0]]!r} {len(first) - 1} parents and {table.names[family[0]]!r} "
                f"{len(family) - 1}, and they are matched by position: give both equally many"
            )
        for one, other in zip(first, family, strict=True):
            if table.variables[one].labels != table.variables[other].labels:
                raise ValueError(
                    f"tied matches {table.names[one]!r} with {table.names[other]!r}, which have other states: give "
                    f"them the same states and bins, or leave them out"
                )


def _matrix(arcs: Sequence[Arc], table: Table) -> NDArray[np.uint8]:
    out = np.zeros((table.n_variables, table.n_variables), np.uint8)
    for parent, child in arcs:
        out[table.index(child), table.index(parent)] = 1
    return out


def _check_required(allowed: NDArray[np.uint8], required: NDArray[np.uint8], table: Table) -> None:
    ruled_out = required > allowed
    if ruled_out.any():
        child, parent = np.argwhere(ruled_out)[0].tolist()
        raise ValueError(
            f"the arc {table.names[parent]} -> {table.names[child]} is asked for and ruled out at once: "
            f"drop one of the two"
        )


def check_arcs(is_parent: NDArray[np.uint8], most_parents: int, table: Table) -> None:
    """Raise a ValueError if mandatory arcs close a cycle, or are too many for a variable."""
    if not is_parent.view(np.bool_).any():
        return
    crowded = np.flatnonzero(is_parent.sum(axis=1, dtype=np.int64) > most_parents)
    if len(crowded):
        name = table.names[crowded[0]]
        limit = ("max_parents", most_parents)
        raise AdvisedError(f"{name!r} must have more parents than ", limit, ": raise it or drop arcs")
    cycle = dag.find_cycle(dag.parent_lists(is_parent))
    if cycle:
        arrows = " -> ".join(table.names[variable] for variable in cycle)
        raise ValueError(f"the arcs asked for close a cycle ({arrows}): leave one of them out")


def _limit(value: int | None, what: str, least: int) -> int:
    if value is None:
        return NO_LIMIT
    if not isinstance(value, int | np.integer):
        raise TypeError(f"{what} is {value!r}, and must be a whole number: give an int, or leave it out")
    if value < least:
        raise AdvisedError(
            (what,), f" is {value}, and must be at least {least}: raise it, or leave it out for no limit"
        )
    return int(value)
