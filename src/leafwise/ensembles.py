"""Learning mixtures of networks: samples for the members, model selection on out-of-sample cases, and weights.

Knows networks, smoothing and averaging; the function that learns one network is an argument.

All variables (`JointRun`): members are trees under a weak structure prior, each learned from a bootstrap sample. They
form groups that share a random order of the variables, and mix their nodes: in a group, every variable takes its
distribution from any of the members. The structure prior and the smoothing of leaves are selected before, on held-out
cases; the weights of groups are fitted to out-of-bag cases.

Hidden variables (`HiddenRun`): networks with hidden variables of their own, from bootstrap samples, with weights.

One target (`TargetRun`): every member is learned from all folds of the cases but one, in one of several ways by turns.
Leaves and weights are selected on out-of-sample cases, and then the leaves are refitted to all cases.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leafwise.averaging import averaged, averaged_means
from leafwise.constraints import Constraints
from leafwise.data.table import Table, many
from leafwise.decision_graph import DecisionGraph
from leafwise.formats import json
from leafwise.inference.likelihood import log_probabilities_by_turns
from leafwise.mixture import Mixture
from leafwise.network import Network, Node
from leafwise.search.run import Resumable
from leafwise.smoothing import counts_of, smoothed_means, smoothings
from leafwise.stacking import em_weights
from leafwise.structure_priors import StructurePrior

Floats = NDArray[np.float64]


class Kind(NamedTuple):
    """How members are learned, and the share of the variables, drawn for each member, that may be parents."""

    structure_prior: str | StructurePrior
    operators: str = "CBI"
    candidates: float = 1.0


LearnMember = Callable[[Table, Constraints, Kind, Mapping[str, Any] | None], Resumable]

FOLDS = 5
Leaves = float | None  # the strength of smoothing; None: averaged over prunings
LEAVES_OF_TARGET: tuple[Leaves, ...] = (None, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
LEAVES_OF_ALL: tuple[Leaves, ...] = (None, 1.0, 2.0, *LEAVES_OF_TARGET[1:])
TRIED = tuple(map(Kind, ("kappa:0.1", "kappa:0.3", "uniform")))  # from strict to lenient, as long as that helps
FOR_A_TARGET = (  # by turns: the weights determine which are good
    Kind("choices", "CBIM"),
    Kind("kappa:0.3"),
    Kind("uniform"),
    Kind("choices", "CBIM", 0.5),
    Kind("kappa:0.3", "CBI", 0.5),
)
_CLEARLY = 0.001  # of the log probability: what more lenient trees, which are larger, or stronger smoothing must gain
_MOST_ASKED = 10_000  # cases to which the weights of groups are fitted


class MixtureRun(ABC):
    """Members being learned, one after the other; at any time, `network` is the mixture of those learned so far."""

    def __init__(
        self,
        table: Table,
        networks: int,
        seed: int,
        constraints: Constraints,
        tried: Sequence[Kind],
        learn_member: LearnMember,
        *,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        if networks < 1:
            raise ValueError(f"networks is {networks}, and a mixture has at least 1: give a number of networks")
        if seed < 0:
            raise ValueError(f"the seed is {seed}, and the least is 0: use a seed of 0 or more")
        self._table, self._n, self._seed = table, networks, seed
        self._constraints, self._tried, self._learn = constraints, tuple(tried), learn_member
        self._now: Resumable | None = None
        self._state_of_next: Mapping[str, Any] | None = None  # from which the search for the next member resumes
        self.chosen = self._tried[0]
        self.seconds, self.stopped = 0.0, ""
        self.n_steps = 0  # networks learned, including those of trials
        self._members: dict[int, Any] = {}
        self._since: float | None = None  # when the current call began
        if state is not None:
            self.seconds, self._state_of_next, self.n_steps = state["seconds"], state["now"], state["n_steps"]

    def __iter__(self) -> "Iterator[int]":
        return self

    def __next__(self) -> int:
        if not self._advance():
            raise StopIteration
        return self.n_steps

    def run(self, progress: Callable[[Any], None] | None = None) -> None:
        """Learn all members; `progress` is called about twenty times a second, and ends the run if it raises."""
        self.watch = progress
        while self._advance():
            self._tell()

    watch: Callable[[Any], None] | None = None  # called regularly during the search for the next member

    @property
    @abstractmethod
    def networks(self) -> list[Network]:
        """The members learned so far."""

    @property
    @abstractmethod
    def log_score(self) -> float:
        """The mean log probability of cases under the members so far that did not see them."""

    @property
    @abstractmethod
    def network(self) -> Mixture:
        """The mixture of the members so far, with leaves and weights selected for these."""

    @abstractmethod
    def _next(self) -> bool:
        """Learn the next member; return whether there was one."""

    @property
    def n_leaves(self) -> int:
        return sum(network.n_leaves for network in self.networks)

    @property
    def n_arcs(self) -> int:
        return sum(len(network.arcs) for network in self.networks)

    def describe(self) -> str:
        """The progress, in one line."""
        done = f"{len(self._members)} of {many(self._n, 'network')}"
        return f"{done}, {self.chosen.structure_prior}, {self.n_leaves:,} leaves"

    def summary(self) -> dict[str, Any]:
        return dict(self.network.learned)

    def state(self) -> dict[str, Any]:
        """The state from which the run can resume, in plain values; subclasses add the members."""
        now = None if self._now is None else self._now.state()
        return {"now": now, "seconds": self._used(), "n_steps": self.n_steps}

    def _advance(self) -> bool:
        self._since = time.perf_counter()
        try:
            if self._next():
                return True
            self.stopped = "all networks are learned"
            return False
        finally:
            self.seconds, self._since = self._used(), None

    def _used(self) -> float:
        """The total seconds so far."""
        return self.seconds + (0.0 if self._since is None else time.perf_counter() - self._since)

    def _learned(self, cases: Table, constraints: Constraints, kind: Kind) -> Network:
        if self._now is None:  # else a search that was interrupted is continued
            self._now = self._learn(cases, constraints, kind, self._state_of_next)
            self._state_of_next = None
        self._now.run(None if self.watch is None else lambda _: self._tell())
        network, self._now = self._now.network, None
        self.n_steps += 1
        return network

    def _tell(self) -> None:
        if self.watch is not None:
            self.watch(self)

    def _of_none(self) -> Mixture:
        """The mixture before the first member is complete: the network that its search has reached."""
        now = self._now or self._learn(self._table, self._constraints, self._tried[0], None)
        network = averaged(now.network, self._table)
        return Mixture((network,), (1.0,), self._summary([network], "average", None))

    def _summary(self, networks: Sequence[Network], leaves: str, unseen: float | None) -> dict[str, Any]:
        return {
            "cases": self._table.n_cases,
            "variables": self._table.n_variables,
            "networks": len(networks),
            **self._told(),
            "leaves_chosen": leaves,
            "mean_log_probability_unseen": unseen,
            "leaves": sum(network.n_leaves for network in networks),
            "parameters": sum(network.n_parameters for network in networks),
            "arcs": sum(len(network.arcs) for network in networks),
            "seed": self._seed,
            "stopped": self.stopped,
        }

    def _told(self) -> dict[str, Any]:
        """The settings by which members are learned."""
        return {**self.chosen._asdict(), "structure_prior": str(self.chosen.structure_prior)}


class JointRun(MixtureRun):
    """Networks of all variables, in groups of about as many members as there are groups.

    Trials come first: a group for each kind of networks, learned from four fifths of the cases, tested on the others.
    """

    def __init__(self, *arguments: Any, state: Mapping[str, Any] | None = None) -> None:
        super().__init__(*arguments, state=state)
        own = self._constraints
        self._draws_orders = not (own.order or own.tiers or own.required or own.dag is not None)
        self._size = math.isqrt(self._n) if self._draws_orders or own.order else 1  # of a group
        mixed = np.random.default_rng(self._seed).permutation(self._table.n_cases)
        n_out = self._table.n_cases // FOLDS
        self._kept, self._held_out = np.sort(mixed[n_out:]), np.sort(mixed[:n_out])
        self._trial: dict[int, Network] = {}  # the current group of trials,
        self._best: dict[int, Network] = {}  # and the best one, with its best leaves
        self._n_tried, self._score = 0, -np.inf
        self._leaves: Leaves = None
        self._logs: dict[tuple[int, int], Floats] = {}  # of out-of-sample cases, by a group's first member and size
        if not n_out:
            self._n_tried = len(self._tried)
        if state is not None:
            self._members, self._trial, self._best = (_networks(state[key]) for key in ("members", "trial", "best"))
            self._n_tried, self._leaves = state["n_tried"], state["leaves"]
            self._score = -np.inf if state["score"] is None else state["score"]
            self.chosen = self._tried[state["chosen"]]

    def state(self) -> dict[str, Any]:
        return {
            **super().state(),
            "members": _plain(self._members),
            "trial": _plain(self._trial),
            "best": _plain(self._best),
            "n_tried": self._n_tried,
            "leaves": self._leaves,
            "score": self._score if math.isfinite(self._score) else None,
            "chosen": self._tried.index(self.chosen),
        }

    @property
    def networks(self) -> list[Network]:
        return list((self._members or self._best or self._trial).values())

    def describe(self) -> str:
        if self._n_tried == len(self._tried):
            return super().describe()
        done = f"{len(self._trial)} of {many(self._size, 'network')}"
        return f"trial {self._n_tried + 1}, {self._tried[self._n_tried].structure_prior}: {done}"

    def _next(self) -> bool:
        while self._n_tried < len(self._tried):
            for number in range(self._size):
                if number not in self._trial:
                    kind = self._tried[self._n_tried]
                    bag, own = self._bag(number, self._kept), self._constraints_of(number, kind)
                    self._trial[number] = self._learned(bag, own, kind)
                    return True
            self._choose()
        number = len(self._members)
        if number == self._n:
            return False
        bag, own = self._bag(number), self._constraints_of(number, self.chosen)
        self._members[number] = self._finished(self._learned(bag, own, self.chosen), bag)
        return True

    def _finished(self, network: Network, bag: Table) -> Network:
        """The member with the selected leaves."""
        return _with_leaves(network, bag, self._leaves)

    def _choose(self) -> None:
        """Evaluate a group of trials: select its kind if it is clearly better than the last, else end the trials."""
        networks = list(self._trial.values())
        bags = [self._bag(number, self._kept) for number in self._trial]
        leaves = [every_kind(*pair, LEAVES_OF_ALL) for pair in zip(networks, bags, strict=True)]
        new = rows_of(self._table, self._held_out).codes
        scores = log_probabilities_by_turns(networks, np.ones(len(networks)), new, leaves).mean(axis=1)
        best, score = LEAVES_OF_ALL[_weakest(scores)], float(scores.max())
        if self._n_tried and score < self._score + _CLEARLY * abs(self._score):
            self._n_tried = len(self._tried)
        else:
            self._score, self._leaves, self.chosen = score, best, self._tried[self._n_tried]
            self._best = {k: _with_leaves(*pair, best) for k, pair in enumerate(zip(networks, bags, strict=True))}
            self._n_tried += 1
        self._trial = {}

    def _drawn_rows(self, number: int, among: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of a member's bootstrap sample."""
        random = np.random.default_rng([self._seed, 1, number])
        return np.sort(among[random.integers(len(among), size=len(among))])

    def _bag(self, number: int, among: NDArray[np.int64] | None = None) -> Table:
        among = np.arange(self._table.n_cases) if among is None else among
        return rows_of(self._table, self._drawn_rows(number, among))

    def _constraints_of(self, number: int, kind: Kind) -> Constraints:
        """The given constraints, with random candidate parents, and the random order of the member's group."""
        names = self._table.names
        random = np.random.default_rng([self._seed, 2, number])
        own = drawn_parents(self._table, self._constraints, random, kind.candidates, names)
        if self._draws_orders:
            random = np.random.default_rng([self._seed, 3, number // self._size])
            own = replace(own, order=[names[index] for index in random.permutation(len(names))])
        return own

    def _groups(self) -> list[tuple[NDArray[np.int64], Floats]]:
        """For each group, the cases that some members did not see, and their log probabilities under these members."""
        found, every = [], np.arange(self._table.n_cases)
        asked = np.sort(np.random.default_rng([self._seed, 4]).permutation(every)[:_MOST_ASKED])
        codes = rows_of(self._table, asked).codes
        for begin in range(0, len(self._members), self._size):
            group = [k for k in range(begin, begin + self._size) if k in self._members]
            if (begin, len(group)) not in self._logs:
                seen = np.stack([np.isin(asked, self._drawn_rows(k, every)) for k in group])
                self._logs[begin, len(group)] = self._log_unseen([self._members[k] for k in group], codes, seen)
            logs = self._logs[begin, len(group)]
            known = ~np.isnan(logs)
            found.append((asked[known], logs[known]))
        return found

    def _log_unseen(self, networks: list[Network], codes: NDArray[Any], seen: NDArray[np.bool_]) -> Floats:
        """The log probabilities of cases under the members of a group that did not see them; NaN if all did."""
        logs: Floats = log_probabilities_by_turns(networks, np.ones(len(networks)), codes, seen=seen)[0]
        return logs

    @property
    def log_score(self) -> float:
        if not self._members:
            return self._score if self._best else float("nan")
        groups = self._groups()
        return _mean_log(groups, np.full(len(groups), 1 / len(groups)), self._table.n_cases)

    @property
    def network(self) -> Mixture:
        networks = self.networks
        if not networks:
            return self._of_none()
        groups, n_cases = self._groups(), self._table.n_cases
        weights = em_weights(groups, n_cases) if groups else np.ones(1)
        unseen = _mean_log(groups, weights, n_cases) if any(len(own) for own, _ in groups) else None
        group_of = np.arange(len(networks)) // self._size
        of_each = weights[group_of] / np.bincount(group_of)[group_of]
        told = self._summary(networks, self._kind_of_leaves, unseen) | {"groups": len(weights)}
        return Mixture(tuple(networks), tuple((of_each / of_each.sum()).tolist()), told, tuple(group_of.tolist()))

    @property
    def _kind_of_leaves(self) -> str:
        return _name_of_leaves(self._leaves)


class HiddenRun(JointRun):
    """Networks with hidden variables of their own: mixed as a whole, with the leaves estimated by EM."""

    def __init__(self, *arguments: Any, state: Mapping[str, Any] | None = None) -> None:
        super().__init__(*arguments, state=state)
        self._draws_orders, self._size, self._n_tried = False, 1, len(self._tried)

    def _finished(self, network: Network, bag: Table) -> Network:
        return network

    def _log_unseen(self, networks: list[Network], codes: NDArray[Any], seen: NDArray[np.bool_]) -> Floats:
        found = np.full(codes.shape[1], np.nan)
        unseen = np.flatnonzero(~seen[0])
        if len(unseen):
            found[unseen] = networks[0].log_probabilities(Table(self._table.variables, codes.take(unseen, axis=1)))
        return found

    def _of_none(self) -> Mixture:
        now = self._now or self._learn(self._table, self._constraints, self._tried[0], None)
        return Mixture((now.network,), (1.0,), self._summary([now.network], self._kind_of_leaves, None))

    @property
    def _kind_of_leaves(self) -> str:
        return "plain"


@dataclass(frozen=True)
class _Member:
    """A network, its out-of-sample cases, and the log probabilities of their targets for each kind of leaves."""

    network: Network
    unseen: NDArray[np.int64]
    logs: Floats  # (kinds of leaves, cases)


class TargetRun(MixtureRun):
    """Graphs for one target, learned in several ways by turns."""

    def __init__(self, *arguments: Any, target: str, state: Mapping[str, Any] | None = None) -> None:
        super().__init__(*arguments, state=state)
        self._target = target
        self._n_folds = min(FOLDS, self._table.n_cases)
        self._fold_of = np.random.default_rng(self._seed).permutation(self._table.n_cases) % self._n_folds
        if state is not None:
            self._members = {number: self._member(number, own) for number, own in _networks(state["members"]).items()}

    def state(self) -> dict[str, Any]:
        return {**super().state(), "members": _plain({k: member.network for k, member in self._members.items()})}

    @property
    def networks(self) -> list[Network]:
        return [member.network for member in self._members.values()]

    @property
    def log_score(self) -> float:
        return float(self._scores().max()) if self._members else float("nan")

    def _next(self) -> bool:
        number = len(self._members)
        if number == self._n:
            return False
        kind = self._tried[number // self._n_folds % len(self._tried)]
        seen = rows_of(self._table, np.flatnonzero(~self._is_out(number)))
        random = np.random.default_rng([self._seed, number])
        own = drawn_parents(self._table, self._constraints, random, kind.candidates, (self._target,))
        self._members[number] = self._member(number, self._learned(seen, own, kind))
        return True

    def _is_out(self, number: int) -> NDArray[np.bool_]:
        """A mask of the cases that a member does not see."""
        out = self._fold_of == number % self._n_folds
        return out if self._n_folds > 1 else np.zeros(self._table.n_cases, np.bool_)

    def _member(self, number: int, network: Network) -> _Member:
        """The member of a learned network, evaluated on its out-of-sample cases."""
        out = self._is_out(number)
        seen, unseen = (rows_of(self._table, np.flatnonzero(which)) for which in (~out, out))
        leaves = every_kind(network, seen, LEAVES_OF_TARGET)
        logs = log_probabilities_by_turns([network], np.ones(1), unseen.codes, [leaves])
        return _Member(network, np.flatnonzero(out), logs)

    def _scores(self) -> Floats:
        """For each kind of leaves, the mean log probability of cases under the members that did not see them."""
        members = self._members.values()
        weights = np.full(len(members), 1 / len(members))
        every = [[(m.unseen, m.logs[kind]) for m in members] for kind in range(len(LEAVES_OF_TARGET))]
        return np.array([_mean_log(unseen, weights, self._table.n_cases) for unseen in every])

    @property
    def network(self) -> Mixture:
        if not self._members:
            return self._of_none()
        members = list(self._members.values())
        scores = self._scores()
        best = int(scores.argmax())
        leaves = LEAVES_OF_TARGET[best]
        weights = em_weights([(m.unseen, m.logs[best]) for m in members], self._table.n_cases)
        networks = [_with_leaves(m.network, self._table, leaves) for m in members]
        told = self._summary(networks, _name_of_leaves(leaves), float(scores[best]))
        return Mixture(tuple(networks), tuple(weights), told)

    def _told(self) -> dict[str, Any]:
        return {"structure_prior": "several"}


def _plain(networks: Mapping[int, Network]) -> list[Any]:
    """Convert numbered networks to plain values."""
    return [[number, json.dumps(network)] for number, network in networks.items()]


def _networks(rows: Sequence[Any]) -> dict[int, Network]:
    """Convert them back."""
    return {number: json.loads(text) for number, text in rows}


def drawn_parents(
    table: Table, constraints: Constraints, random: np.random.Generator, share: float, children: Sequence[str]
) -> Constraints:
    """Constraints with random candidate parents, a share of the other variables, for children without allowed ones."""
    names = table.names
    if share >= 1:
        return constraints
    kept = max(1, round(share * (len(names) - 1)))
    drawn = {name: random.permutation([n for n in names if n != name])[:kept].tolist() for name in children}
    return replace(constraints, allowed_parents={**drawn, **constraints.allowed_parents})


def rows_of(table: Table, rows: NDArray[np.int64]) -> Table:
    """The table of these cases."""
    return Table(table.variables, table.codes.take(rows, axis=1))


def every_kind(network: Network, cases: Table, kinds: Sequence[Leaves]) -> list[Floats]:
    """For each node, the distributions of every kind of leaves, fitted to cases: (leaves * states, kinds)."""
    return [
        every_kind_of_node(network, target, counts_of(node, target, cases)[0], kinds)
        for target, node in enumerate(network.nodes)
        if node is not None
    ]


def every_kind_of_node(network: Network, target: int, on_arcs: NDArray[np.int64], kinds: Sequence[Leaves]) -> Floats:
    """The same for one node, from the counts on its arcs; None must be the first kind, and only this."""
    node, strengths = network.nodes[target], [kind for kind in kinds if kind is not None]
    assert node is not None
    means = (averaged_means(network, target, node, on_arcs), *smoothed_means(node, on_arcs, strengths))
    return np.stack([kind.ravel() for kind in means], axis=1)


def _with_leaves(network: Network, table: Table, leaves: Leaves) -> Network:
    """The network with leaves of a kind, fitted to the cases of a table."""
    return averaged(network, table) if leaves is None else smoothings(network, table, [leaves])[0]


def _weakest(scores: Floats) -> int:
    """The index of the weakest smoothing that is nearly as good as the best leaves; 0, averaging, if there is none."""
    near = np.flatnonzero(scores[1:] >= scores.max() - _CLEARLY * abs(scores.max()))
    return int(near[0]) + 1 if len(near) else 0


def _name_of_leaves(leaves: Leaves) -> str:
    return "average" if leaves is None else f"smoothed:{leaves:g}"


def independent(counts: Sequence[NDArray[Any]]) -> list[Node]:
    """Nodes without parents, from the counts of the states of each variable."""
    single = DecisionGraph.single()
    return [Node.learned((), single, own[None], np.ones((1, len(own)))) for own in counts]


def with_others(network: Network, others: Sequence[Node]) -> Network:
    """Add the nodes that a network lacks; `others` are those of its first variables."""
    if None not in network.nodes:
        return network
    pairs = zip(network.nodes, [*others, *network.nodes[len(others) :]], strict=True)
    return replace(network, nodes=tuple(other if own is None else own for own, other in pairs))


def _mean_log(unseen: Sequence[tuple[NDArray[np.int64], Floats]], weights: Floats, n_cases: int) -> float:
    """The mean log probability of cases under the mixture of those that did not see them; 0 if there are no cases."""
    total, whole = np.full(n_cases, -np.inf), np.zeros(n_cases)
    for (cases, logs), weight in zip(unseen, weights, strict=True):
        if weight > 0:
            total[cases] = np.logaddexp(total[cases], logs + math.log(weight))
            whole[cases] += weight
    known = whole > 0
    return float((total[known] - np.log(whole[known])).mean()) if known.any() else 0.0
