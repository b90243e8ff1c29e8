"""Prepared queries: planned once for given evidence variables, then answered for many rows of their states.

Rows that compiled queries and the elimination for missing cells cannot handle are answered one by one by `query`.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from leafwise.data.encoding import NewReading, read_new
from leafwise.data.table import Table, Variable, index_of
from leafwise.inference.compiled import CompiledQuery
from leafwise.inference.evidence import Given, mapping_of, weights_of
from leafwise.inference.exact import DEFAULT_LIMITS, IMPOSSIBLE, Limits
from leafwise.inference.holes import Holes
from leafwise.inference.likelihood import check_variables
from leafwise.inference.query import Answer, query, wanted_of
from leafwise.network import Network

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
_UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class Answers:
    """Distributions given the evidence of many rows: each array has one entry per row, over a target's states.

    If the evidence of a row is impossible, its distributions are NaN. Rows with inexact answers have standard errors;
    those of the others are zero.
    """

    variables: tuple[Variable, ...]
    distributions: tuple[Floats, ...]
    log_evidence: Floats | None  # only if prepared with `log_evidence`; NaN where the method does not provide it
    is_exact: NDArray[np.bool_]
    standard_errors: tuple[Floats, ...] | None = None

    def __len__(self) -> int:
        return len(self.is_exact)

    def __getitem__(self, name: str) -> Floats:
        """The distributions of a single target, one row each."""
        if len(self.distributions) != len(self.variables):
            raise TypeError(f"{name!r} was asked for together with others: read distributions[0], with an axis each.")
        return self.distributions[index_of(name, [variable.name for variable in self.variables])]


@dataclass
class _Found:
    """Answers so far; a log evidence of NaN marks a row that is not yet answered."""

    distributions: list[Floats]
    log_evidence: Floats
    standard_errors: list[Floats] | None = None

    def __post_init__(self) -> None:
        self.is_exact = np.ones(len(self.log_evidence), np.bool_)

    def take(self, row: int, answer: Answer) -> None:
        for shares, values in zip(self.distributions, answer.distributions, strict=True):
            shares[row] = values
        self.log_evidence[row] = np.nan if answer.log_evidence is None else answer.log_evidence
        self.is_exact[row] = answer.method == "exact"
        if answer.standard_errors is not None:
            self.standard_errors = self.standard_errors or [np.zeros_like(shares) for shares in self.distributions]
            for errors, values in zip(self.standard_errors, answer.standard_errors, strict=True):
                errors[row] = values


class PreparedQuery:
    """A query planned for evidence on given variables; made by `network.prepare`.

    Without `log_evidence`, evidence that is irrelevant to the targets may be ignored, even if it is impossible, and
    answers do not include its probability.
    """

    def __init__(
        self,
        network: Network,
        targets: str | Sequence[str],
        evidence_variables: str | Iterable[str] = (),
        *,
        joint: bool = False,
        log_evidence: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.network = network
        self.targets = [targets] if isinstance(targets, str) else list(targets)
        names = [evidence_variables] if isinstance(evidence_variables, str) else list(dict.fromkeys(evidence_variables))
        self.evidence_variables = tuple(names)
        self.joint = joint
        self.log_evidence = log_evidence
        self.limits = limits
        self._wanted = wanted_of(network, self.targets, joint)
        self._told = [index_of(name, network.names) for name in names]
        for name in self.targets:
            if name in names:
                raise ValueError(f"{name!r} is named as a target and as evidence: leave it out of one of them.")
        self._variables = tuple(network.variables[index] for index in self._wanted)
        self._code = {
            name: {label: code for code, label in enumerate(network.variables[index].labels)}
            for name, index in zip(names, self._told, strict=True)
        }

    @cached_property
    def _compiled(self) -> CompiledQuery | None:
        tables = [tuple(self._wanted)] if self.joint else [(index,) for index in self._wanted]
        question = CompiledQuery.of(self.network, {}, tables, self._told, self.limits, self.log_evidence)
        return question if question.is_affordable else None

    def __call__(self, given: Given) -> Answer:
        """The answer for one row of evidence: a mapping from names of evidence variables to states.

        Evidence that leaves several states possible, or omits a variable, is allowed, and takes as long as `query`.
        """
        row = self._row(given)
        if self._compiled is not None and _UNKNOWN not in row:
            log_evidence, shares = self._compiled.answers(np.array([row], np.int64))
            if not np.isnan(log_evidence[0]):
                told = float(log_evidence[0]) if self.log_evidence else None
                return Answer(self._variables, tuple([share[0] for share in shares]), "exact", told)
        return query(self.network, self.targets, given=given, joint=self.joint, limits=self.limits)

    def batch(self, rows: Any, *, threads: int | None = None, **reading: Unpack[NewReading]) -> Answers:
        """The answers for many rows: a Table with the network's variables, what `read` takes, or a sequence of what is
        given in each.

        Only the evidence variables of a table count. Missing cells in it are not known. `reading`: arguments of `read`.
        """
        if _is_read(rows):
            others = set(self.network.names) - set(self.evidence_variables)
            options: NewReading = {"missing": "unknown", **reading}
            rows = read_new(rows, self.network.variables, optional=others, **options)
        elif reading:
            raise ValueError(
                f"rows that are a Table, or a list of what is given, are not read, so {', '.join(reading)} cannot be "
                "given: leave it out, or give a frame or a file"
            )
        if isinstance(rows, Table):
            check_variables(self.network, rows, gaps=True)
            codes = rows.codes[self._told].T.astype(np.int64)
            codes[codes >= [self.network.variables[index].n_states for index in self._told]] = _UNKNOWN
        else:
            codes = np.array([self._row(given) for given in rows], np.int64).reshape(len(rows), len(self._told))
        shape = [variable.n_states for variable in self._variables]
        shapes = [shape] if self.joint else [[n_states] for n_states in shape]
        found = _Found([np.full((len(codes), *each), np.nan) for each in shapes], np.full(len(codes), np.nan))
        self._by_plan(codes, found, threads)
        if isinstance(rows, Table):
            self._by_holes(codes, found, threads)
        self._one_by_one(rows, codes, found)
        log_evidence = found.log_evidence if self.log_evidence else None
        errors = None if found.standard_errors is None else tuple(found.standard_errors)
        return Answers(self._variables, tuple(found.distributions), log_evidence, found.is_exact, errors)

    def _row(self, given: Given) -> list[int]:
        """The state of each evidence variable, or -1 if it has no single state."""
        given = mapping_of(given)
        row = []
        for name, code in self._code.items():
            what = given.get(name)
            state = code.get(what) if isinstance(what, str) else None
            if state is None and name in given:
                weights = next(iter(weights_of(self.network, {name: what}).values()), np.zeros(0))
                state = int(weights.argmax()) if np.count_nonzero(weights) == 1 else None
            row.append(_UNKNOWN if state is None else state)
        if len(given) > len(row) - row.count(_UNKNOWN):
            other = next((name for name in given if name not in self._code), None)
            if other is not None:
                index_of(other, self.network.names)
                raise ValueError(
                    f"{other!r} is given, and the question was prepared for evidence on "
                    f"{', '.join(map(repr, self._code)) or 'nothing'}: prepare it with {other!r}, or use query."
                )
        return row

    def _by_plan(self, codes: Longs, found: _Found, threads: int | None) -> None:
        """Answer the rows in which every evidence variable has a state."""
        complete = np.flatnonzero((codes != _UNKNOWN).all(axis=1))
        if self._compiled is not None and len(complete):
            found.log_evidence[complete], tables = self._compiled.answers(codes[complete], threads)
            fine = ~np.isnan(found.log_evidence[complete])
            for shares, rows in zip(found.distributions, tables, strict=True):
                shares[complete[fine]] = rows[fine]

    def _by_holes(self, codes: Longs, found: _Found, threads: int | None) -> None:
        """Answer the rows that lack some evidence, whatever the pattern, together, if all variables have a node."""
        partial = np.flatnonzero((codes == _UNKNOWN).any(axis=1))
        if self.joint or not len(partial) or any(node is None for node in self.network.nodes):
            return
        n_variables = len(self.network.variables)
        missing = max(variable.n_states for variable in self.network.variables)
        cases = np.full((n_variables, len(partial)), missing, np.uint8 if missing < 256 else np.uint16)
        cases[self._told] = np.where(codes[partial] == _UNKNOWN, missing, codes[partial]).T
        marginals = Holes(self.network, self.limits, threads).marginals(cases)
        found.log_evidence[partial] = marginals.log_probabilities
        for index, shares in zip(self._wanted, found.distributions, strict=True):
            shares[partial] = marginals.of(index)

    def _one_by_one(self, rows: Table | Sequence[Mapping[str, Any]], codes: Longs, found: _Found) -> None:
        """Answer the remaining rows: soft evidence, underflow, and rows that are too large for the plan."""
        for row in np.flatnonzero(np.isnan(found.log_evidence)).tolist():
            given = self._given(codes[row]) if isinstance(rows, Table) else rows[row]
            try:
                found.take(row, query(self.network, self.targets, given=given, joint=self.joint, limits=self.limits))
            except ValueError as error:
                if str(error) != IMPOSSIBLE:
                    raise
                found.log_evidence[row] = -np.inf

    def _given(self, row: Longs) -> dict[str, str]:
        variables = self.network.variables
        pairs = zip(self._told, row.tolist(), strict=True)
        return {variables[v].name: variables[v].labels[code] for v, code in pairs if code != _UNKNOWN}


def _is_read(rows: Any) -> bool:
    """Whether rows are data for `read`: neither a Table nor a sequence of evidence."""
    if isinstance(rows, Sequence) and not isinstance(rows, str):
        return any(isinstance(row, str | os.PathLike) for row in rows)
    return not isinstance(rows, Table)
