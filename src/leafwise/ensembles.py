"""Learning many networks to be mixed: what each is learned from, what is chosen on the cases it did not see, weights.

Knows networks, smoothing and averaging; how one network is learned it is told.

Every member is learned from all cases but a fifth, with an order of the variables of its own, as a tree that pays
little for its size. On the cases a member did not see, it and others that did not see them are asked for their
probabilities: that chooses what trees pay, how leaves are drawn towards the nodes above them, and the weights. Then
the leaves are filled again with all cases.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leafwise.averaging import averaged, averaged_means
from leafwise.constraints import Constraints
from leafwise.decision_graph import DecisionGraph
from leafwise.kernels.questions import routes
from leafwise.mixture import Mixture
from leafwise.network import Network, Node
from leafwise.predictions import log_posteriors
from leafwise.search.under_way import SearchRun
from leafwise.smoothing import counts_of, smoothed_means, smoothings
from leafwise.structure_priors import StructurePrior
from leafwise.table import Table, many

Floats = NDArray[np.float64]


class Kind(NamedTuple):
    """How members are learned, and which share of the variables, drawn for each of them, may be parents.

    `whole`: with a target all variables are learned nevertheless, and what the target is follows by Bayes' rule.
    """

    structure_prior: str | StructurePrior
    operators: str = "CBI"
    candidates: float = 1.0
    whole: bool = False


LearnMember = Callable[[Table, Constraints, Kind], SearchRun]

FOLDS = 5
STRENGTHS = (4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)  # of smoothing; before them comes averaging over prunings
TRIED = tuple(map(Kind, ("kappa:0.1", "kappa:0.3", "uniform")))  # from strict to lenient, as long as that helps
FOR_A_TARGET = (  # in turn: weights tell which of them are good
    Kind("choices", "CBIM"),
    Kind("kappa:0.3"),
    Kind("uniform"),
    Kind("choices", "CBIM", 0.5),
    Kind("kappa:0.3", "CBI", 0.5),
)
FOR_A_CLASS = (  # the same with networks of all variables
    FOR_A_TARGET[0],
    Kind("choices", "CBIM", whole=True),
    *FOR_A_TARGET[1:],
    Kind("choices", "CBIM", 0.5, whole=True),
    Kind("uniform", "CBI", 0.5),
)
_TRIALS = 4  # members with each of them
_CLEARLY = 0.001  # of the log probability: a more lenient one, with its larger networks, must gain as much
_ROUNDS, _ENOUGH = 200, 1e-7  # of EM; what a round must gain for each case


@dataclass(frozen=True)
class _Member:
    """A network, the cases it did not see, and their log probabilities with each kind of leaves.

    Where there is a target, these are the probabilities of its state given all others. A network of all variables
    then has the leaves it was learned with, whatever the kind.
    """

    network: Network
    whole: bool
    unseen: NDArray[np.int64]
    logs: Floats  # (kinds of leaves, cases)


class MixtureRun:
    """Members being learned, one after the other; `network` is the mixture of those there are, at any time."""

    def __init__(
        self,
        table: Table,
        networks: int,
        seed: int,
        constraints: Constraints,
        tried: Sequence[Kind],
        learn_member: LearnMember,
        target: str | None = None,
    ) -> None:
        if networks < 1:
            raise ValueError(f"networks is {networks}, and a mixture has at least 1: give a number of networks")
        if seed < 0:
            raise ValueError(f"the seed is {seed}, and the least is 0: use a seed of 0 or more")
        self._table, self._n, self._seed = table, networks, seed
        self._constraints, self._tried, self._learn = constraints, tuple(tried), learn_member
        self._target = target
        n_folds = min(FOLDS, table.n_cases)
        self._fold_of = np.random.default_rng(seed).permutation(table.n_cases) % n_folds
        self._n_folds = n_folds
        self._members: dict[int, _Member] = {}
        self._now: SearchRun | None = None
        self.chosen = self._tried[0]
        self.seconds, self.stopped = 0.0, ""
        self._steps = self._all_steps()

    def __iter__(self) -> "Iterator[int]":
        return self

    def __next__(self) -> int:
        return next(self._steps)

    def run(self, progress: Callable[[Any], None] | None = None) -> None:
        """Learn all members; `progress` is called about twenty times a second, and what it raises ends it here."""
        self._progress = progress
        for _ in self._steps:
            pass

    _progress: Callable[[Any], None] | None = None

    @property
    def n_steps(self) -> int:
        """The members there are."""
        return len(self._members)

    @property
    def n_leaves(self) -> int:
        return sum(member.network.n_leaves for member in self._members.values())

    @property
    def n_arcs(self) -> int:
        return sum(len(member.network.arcs) for member in self._members.values())

    @property
    def log_score(self) -> float:
        """The mean log probability of cases by the members that did not see them, as far as they are there."""
        return float(self._scores(list(self._members.values())).max()) if self._members else float("nan")

    def describe(self) -> str:
        """How far it is, in a line."""
        return f"{self.n_steps} of {many(self._n, 'network')}, {self.chosen.structure_prior}, {self.n_leaves:,} leaves"

    def summary(self) -> dict[str, Any]:
        return dict(self.network.learned)

    def _all_steps(self) -> Iterator[int]:
        """Learn the members, those with which structure priors are tried first."""
        began = time.perf_counter()
        tried = range(0, self._n, self._n_folds)[:_TRIALS]
        best = -math.inf
        kinds = self._tried if self._n_folds > 1 and self._target is None else ()
        for kind in kinds:
            found = {} if self._members else self._members  # the first are there at once, others when they are better
            for number in tried:
                found[number] = self._learned(number, kind)
                self.seconds = time.perf_counter() - began
                yield self.n_steps
            score = float(self._scores(list(found.values())).max())
            if best > -math.inf and score < best + _CLEARLY * abs(best):
                break
            best, self.chosen, self._members = score, kind, found
        for number in range(self._n):
            if number not in self._members:
                kind = self.chosen if kinds else self._tried[number // self._n_folds % len(self._tried)]
                self._members[number] = self._learned(number, kind)
                self.seconds = time.perf_counter() - began
                yield self.n_steps
        self.stopped = "all networks are learned"

    def _learned(self, number: int, kind: Kind) -> _Member:
        random = np.random.default_rng([self._seed, number])
        out = self._fold_of == number % self._n_folds if self._n_folds > 1 else np.zeros(self._table.n_cases, np.bool_)
        constraints = self._own_constraints(random, kind.candidates)
        seen, unseen = (_rows(self._table, np.flatnonzero(which)) for which in (~out, out))
        self._now = self._learn(seen, constraints, kind)
        self._now.run(None if self._progress is None else lambda _: self._tell())
        network, self._now = self._now.network, None
        if kind.whole and self._target is not None:
            logs = np.tile(_logs_of_target(network, unseen, self._table.index(self._target)), (len(STRENGTHS) + 1, 1))
        else:
            logs = _logs_of_kinds(network, seen, unseen)
        return _Member(network, kind.whole, np.flatnonzero(out), logs)

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self)

    def _own_constraints(self, random: np.random.Generator, candidates: float) -> Constraints:
        """The constraints, and an order drawn for this member, where none is given; perhaps fewer candidates."""
        names, own = self._table.names, self._constraints
        if self._target is None and not (own.order or own.tiers or own.required or own.dag is not None):
            own = replace(own, order=[names[index] for index in random.permutation(len(names))])
        if candidates < 1:
            kept = max(1, round(candidates * (len(names) - 1)))
            children = names if self._target is None else (self._target,)
            drawn = {name: random.permutation([n for n in names if n != name])[:kept].tolist() for name in children}
            own = replace(own, allowed_parents={**drawn, **own.allowed_parents})
        return own

    def _scores(self, members: Sequence[_Member]) -> Floats:
        """For each kind of leaves, the mean log probability of cases by the members that did not see them."""
        n_kinds = len(STRENGTHS) + 1
        total, n = np.full((n_kinds, self._table.n_cases), -np.inf), np.zeros(self._table.n_cases)
        for member in members:
            total[:, member.unseen] = np.logaddexp(total[:, member.unseen], member.logs)
            n[member.unseen] += 1
        known = n > 0
        if not known.any():
            return np.zeros(n_kinds)
        means: Floats = (total[:, known] - np.log(n[known])).mean(axis=1)
        return means

    @property
    def network(self) -> Mixture:
        """The mixture of the members there are: leaves and weights are chosen for them."""
        if not self._members:
            if self._now is None:
                self._now = self._learn(self._table, self._constraints, self._tried[0])
            network = averaged(self._now.network, self._table)
            return Mixture((network,), (1.0,), self._summary([network], "average", None))
        members = [self._members[number] for number in sorted(self._members)]
        scores = self._scores(members)
        kind = int(scores.argmax())
        weights = em_weights([(m.unseen, m.logs[kind]) for m in members], self._table.n_cases)
        networks = [m.network if m.whole else _kind(m.network, self._table, kind) for m in members]
        if any(kind.whole for kind in self._tried):
            shares = [
                np.bincount(codes, minlength=variable.n_states)
                for variable, codes in zip(self._table.variables, self._table.codes, strict=True)
            ]
            others = independent(shares)
            networks = [with_others(network, others) for network in networks]
        leaves = "average" if kind == 0 else f"smoothed:{STRENGTHS[kind - 1]:g}"
        return Mixture(tuple(networks), tuple(weights), self._summary(networks, leaves, float(scores[kind])))

    def _summary(self, networks: Sequence[Network], leaves: str, unseen: float | None) -> dict[str, Any]:
        return {
            "cases": self._table.n_cases,
            "variables": self._table.n_variables,
            "networks": len(networks),
            **(
                {**self.chosen._asdict(), "structure_prior": str(self.chosen.structure_prior)}
                if self._target is None
                else {"structure_prior": "several"}
            ),
            "leaves_chosen": leaves,
            "mean_log_probability_unseen": unseen,
            "leaves": sum(network.n_leaves for network in networks),
            "parameters": sum(network.n_parameters for network in networks),
            "arcs": sum(len(network.arcs) for network in networks),
            "seed": self._seed,
            "stopped": self.stopped,
        }


def _rows(table: Table, rows: NDArray[np.int64]) -> Table:
    return Table(table.variables, np.ascontiguousarray(table.codes[:, rows]))


def _logs_of_kinds(network: Network, seen: Table, unseen: Table) -> Floats:
    """The log probabilities of cases with every kind of leaves, filled by other cases."""
    pairs = [(target, node) for target, node in enumerate(network.nodes) if node is not None]
    rows = []
    for target, node in pairs:
        on_arcs, _ = counts_of(node, target, seen)
        rows.append((averaged_means(network, target, node, on_arcs), *smoothed_means(node, on_arcs, STRENGTHS)))
    flat = routes.flatten(node.graph for _, node in pairs)
    targets, n_states = np.array([t for t, _ in pairs], np.int32), np.array([n.n_states for _, n in pairs], np.int32)
    starts = np.cumsum([0, *(node.probabilities.size for _, node in pairs)], dtype=np.int64)[:-1]
    logs = [
        routes.sum_log_probabilities(
            unseen.codes, *flat, targets, n_states, starts, np.log(np.concatenate([means.ravel() for means in kind]))
        )
        for kind in zip(*rows, strict=True)
    ]
    return np.stack(logs)


def _logs_of_target(network: Network, table: Table, target: int) -> Floats:
    """The log probability of the target's state given all others, in each case."""
    logs: Floats = log_posteriors(network, table, target)[np.arange(table.n_cases), table.codes[target]]
    return logs


def independent(counts: Sequence[NDArray[Any]]) -> list[Node]:
    """Nodes without parents, of variables that were in each state so often."""
    single = DecisionGraph.single()
    return [Node.learned((), single, own[None], np.ones((1, len(own)))) for own in counts]


def with_others(network: Network, others: Sequence[Node]) -> Network:
    """A network of all variables: those that it lacks have these nodes, the first ones of which are the first's."""
    if None not in network.nodes:
        return network
    pairs = zip(network.nodes, [*others, *network.nodes[len(others) :]], strict=True)
    return replace(network, nodes=tuple(other if own is None else own for own, other in pairs))


def _kind(network: Network, table: Table, kind: int) -> Network:
    return averaged(network, table) if kind == 0 else smoothings(network, table, [STRENGTHS[kind - 1]])[0]


def em_weights(unseen: Sequence[tuple[NDArray[np.int64], Floats]], n_cases: int) -> Floats:
    """Weights of members that make the cases, each by the members that did not see it, as probable as can be.

    `unseen`: for each member the cases it did not see, and their log probabilities. A case's probability is the mean
    over those members, by their weights; each round of the algorithm (EM, with a tangent for the sums of weights
    below the line) raises the likelihood. They begin equal and, where nothing tells them apart, stay so.

    >>> both = np.arange(4)
    >>> em_weights([(both, np.log([0.9, 0.9, 0.9, 0.1])), (both, np.log([0.1, 0.1, 0.1, 0.9]))], 4).round(2)
    array([0.81, 0.19])
    """
    n = len(unseen)
    weights = np.full(n, 1 / n)
    largest = np.full(n_cases, -np.inf)
    for cases, logs in unseen:
        largest[cases] = np.maximum(largest[cases], logs)
    if not np.isfinite(largest).any():
        return weights
    scaled = [np.exp(logs - np.where(np.isfinite(largest[cases]), largest[cases], 0.0)) for cases, logs in unseen]
    before = -np.inf
    for _ in range(_ROUNDS):
        top, below = np.zeros(n_cases), np.zeros(n_cases)
        for weight, share, (cases, _logs) in zip(weights, scaled, unseen, strict=True):
            top[cases] += weight * share
            below[cases] += weight
        known = (below > 0) & (top > 0)
        value = float(np.log(top[known] / below[known]).mean())
        if value - before < _ENOUGH:
            break
        before = value
        with np.errstate(divide="ignore"):
            up, down = np.where(known, 1 / top, 0.0), np.where(known, 1 / below, 0.0)
        for k, (share, (cases, _logs)) in enumerate(zip(scaled, unseen, strict=True)):
            if (total := float(down[cases].sum())) > 0:
                weights[k] *= float((share * up[cases]).sum()) / total
        weights /= weights.sum()
    return weights
