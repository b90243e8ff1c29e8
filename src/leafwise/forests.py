"""Forests: weighted products of many graphs of one target, and of networks. Knows how one network is learned.

Predictions are pooled in logarithms: log p(target) is the weighted sum of the members' log probabilities, up to a
constant (a logarithmic pool, or product of experts). Unlike a mean, a pool accumulates the independent evidence of its
members, and is as sharp as the cases allow. Members come in sets: a set is learned in one way, each member from all
cases but a part, so that together they predict every case out of sample. The weights are fitted to these predictions,
and then the leaves are refitted to all cases. Weights have a normal prior, whose variance is fitted, too (the evidence
framework of MacKay, 1992), so nothing is tuned.

In addition, every feature that is informative by itself has a weighted term of its own: its distribution given the
target, from the naive Bayes network.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leafwise.averaging import averaged_means
from leafwise.constraints import Constraints, ParentRules
from leafwise.counters.cpu import CpuCounter
from leafwise.data.table import Table, code_type, many
from leafwise.decision_graph import DecisionGraph
from leafwise.ensembles import Floats, Leaves, drawn_parents, every_kind_of_node, independent, rows_of
from leafwise.imputation import drawn_often
from leafwise.inference.sampling import Approximate
from leafwise.kernels.questions import routes
from leafwise.learner import DEFAULT_PRIOR, DEFAULT_STRUCTURE_PRIOR, check_types, learn
from leafwise.mixture import Mixture
from leafwise.network import Network, Node
from leafwise.predictions import log_joint, log_posteriors
from leafwise.prior_network import PriorNetwork
from leafwise.priors import ParameterPrior, Symmetric, parameter_prior
from leafwise.search.leaf_search import LeafSearch
from leafwise.search.run import Settings, parting_or_sharing
from leafwise.search.samples import Sample, search_samples
from leafwise.smoothing import counts_of, node_counts, smoothed_means
from leafwise.structure_priors import StructurePrior
from leafwise.structure_priors import structure_prior as structure_prior_of
from leafwise.workers import Workers

Ints = NDArray[np.int64]


class Way(NamedTuple):
    """How the members of a set are learned.

    `first`: the number of random features that are tested first. `candidates`: the share of the features, drawn, that
    may be tested. `whole`: learn all variables, not the target alone, and predict the target by Bayes' rule.
    """

    structure_prior: str | StructurePrior
    search: Any = LeafSearch("CBI")  # Settings
    first: int = 0
    candidates: float = 1.0
    whole: bool = False


_GRAPHS = LeafSearch("CBIM", "best-first")
WAYS = (  # by turns; random choices, and the cases that are left out, differ each time
    Way("choices", _GRAPHS),
    Way("choices", LeafSearch("CBIM"), whole=True),
    Way("kappa:0.3"),
    Way("choices", _GRAPHS, first=1),
    Way("kappa:0.3", first=1),
    Way("kappa:0.1", _GRAPHS),
    Way("uniform", first=2),
    Way("kappa:0.1", _GRAPHS, first=1),
)

LEAVES: tuple[Leaves, ...] = (None, 4.0, 16.0, 64.0, 256.0)
PARTS = 4  # of the cases: a member is learned from all but one
WAYS_TO_FILL = 64  # completions of a case: all if there are no more, else as many samples
_AT_ONCE = 1024  # cases with missing cells
_HOLE = np.uint16(2**16 - 1)  # not a state
_LEAST = -30.0  # the least log probability, and that of all states if a member holds a case impossible (NaN)
_MOST_LOGS = 2**23  # log probabilities of all terms, which limit the number of cases to which weights are fitted
_ENOUGH_CASES = 10  # per cell of the features that are tested first
_ROUNDS, _ENOUGH = 30, 1e-5  # Newton steps; the least gain of a step per case
_DIGITS = 6  # of weights: further ones depend on the number of threads
_NARROWEST, _WIDEST = 1e4, 0.05  # bounds of the precision of the weights' prior


@dataclass(frozen=True, eq=False)
class Forest:
    """A product of members, each to the power of its weight, and of terms of single features.

    `mixture` is the ordinary mixture of the same members, weighted by their positive weights. `naive` is the naive
    Bayes network, whose nodes are taken to the powers in `powers`. `features` is the distribution of missing cells: a
    mixture of all variables, or of all but the target.
    """

    mixture: Mixture
    weights: tuple[float, ...]
    naive: Network
    powers: tuple[float, ...]
    features: Mixture

    def log_posteriors(self, table: Table, target: int) -> Floats:
        """log p(target | everything else) of each case; with missing cells, probabilities are means over completions.

        Multiplying the predictions of members that each sum over missing cells would be overconfident.
        """
        n_states = np.array([variable.n_states for variable in self.naive.variables])
        holes = table.codes >= n_states[:, None]
        holes[target] = False
        codes = table.codes.astype(code_type(self.naive.variables))
        found, holed, n_large = np.empty((table.n_cases, n_states[target])), holes.any(axis=0), 0
        found[~holed] = self._pooled(codes[:, ~holed], target)
        n_ways = np.prod(np.where(holes, n_states[:, None], 1.0), axis=0)
        for is_few in (True, False):
            rows = np.flatnonzero(holed & ((n_ways <= WAYS_TO_FILL) == is_few))
            for begin in range(0, len(rows), _AT_ONCE):
                some = rows[begin : begin + _AT_ONCE]
                found[some], large = self._mean(codes[:, some], holes[:, some], n_ways[some], target, is_few)
                n_large += large
        if n_large:
            warnings.warn(
                f"{many(n_large, 'row')} of {table.n_cases:,} lack too much for an exact answer: what they lack was "
                f"drawn by Gibbs sampling, which is off where missing cells nearly decide each other",
                Approximate,
                stacklevel=3,
            )
        return found

    def _pooled(self, codes: NDArray[Any], target: int) -> Floats:
        """The same for cases without missing cells."""
        table = Table(self.naive.variables, np.ascontiguousarray(codes))
        total = np.zeros((table.n_cases, self.naive.variables[target].n_states))
        for member, weight in zip(self.mixture.members, self.weights, strict=True):
            if weight:
                total += weight * np.fmax(log_posteriors(member, table, target), _LEAST)
        for place, power in enumerate(self.powers):
            if power:
                total += power * _term(self.naive, place, table.codes[place], target)
        found: Floats = total - np.logaddexp.reduce(total, axis=1, keepdims=True)
        return found

    def _mean(
        self, codes: NDArray[Any], holes: NDArray[np.bool_], n_ways: Floats, target: int, is_few: bool
    ) -> tuple[Floats, int]:
        """The same for cases with missing cells: the mean over completions by their probabilities, or over samples.

        Also return the number of cases that were too large for exact sampling.
        """
        n_large = 0
        sizes = n_ways.astype(np.int64) if is_few else np.full(codes.shape[1], WAYS_TO_FILL)
        begin = np.cumsum(sizes) - sizes
        if is_few:
            filled, holes = codes.repeat(sizes, axis=1), holes.repeat(sizes, axis=1)
            numbers = np.arange(filled.shape[1]) - begin.repeat(sizes)
            for place, variable in enumerate(self.naive.variables):
                own = holes[place]
                filled[place, own] = numbers[own] % variable.n_states
                numbers[own] //= variable.n_states
            logs = self._log_features(filled, target)
        else:
            filled, n_large = self._drawn(np.where(holes, _HOLE, codes), target)
            logs = np.zeros(filled.shape[1])
        logs -= np.logaddexp.reduceat(logs, begin).repeat(sizes)
        found: Floats = np.logaddexp.reduceat(self._pooled(filled, target) + logs[:, None], begin)
        return found, n_large

    def _log_features(self, codes: NDArray[Any], target: int) -> Floats:
        """The log probability of all variables but the target in each case."""
        if len(self.features.variables) == len(codes):
            joint = log_joint(self.features, Table(self.features.variables, codes), target)
            found: Floats = np.logaddexp.reduce(joint, axis=1)
            return found
        return self.features.log_probabilities(Table(self.features.variables, np.delete(codes, target, axis=0)))

    def _drawn(self, codes: NDArray[Any], target: int) -> tuple[NDArray[Any], int]:
        """Sample WAYS_TO_FILL completions of each case; also return how many cases were too large to do so exactly."""
        members = Mixture(self.features.members, self.features.weights)  # without groups, whose networks are larger
        if len(members.variables) == len(codes):
            codes[target] = _HOLE
            filled, n_large = drawn_often(members, codes, WAYS_TO_FILL, 1)
        else:
            drawn, n_large = drawn_often(members, np.delete(codes, target, axis=0), WAYS_TO_FILL, 1)
            filled = np.insert(drawn, target, 0, axis=0)
        return filled.astype(code_type(self.naive.variables)), n_large


def _term(naive: Network, place: int, codes: NDArray[Any], target: int) -> Floats:
    """The log probabilities by a node of the naive network for each state of the target: (cases, states)."""
    node = naive.nodes[place]
    assert node is not None
    logs: Floats = np.log(node.probabilities)
    return logs if place == target else logs.T[codes]


def grow(
    table: Table,
    n_members: int,
    *,
    target: str,
    seed: int = 1,
    search: Settings = LeafSearch(),
    prior: str | ParameterPrior = DEFAULT_PRIOR,
    structure_prior: str | StructurePrior = DEFAULT_STRUCTURE_PRIOR,
    constraints: Constraints = Constraints(),
    candidates: float | None = None,
    features: Mixture | None = None,
) -> Forest:
    """Learn a forest of `n_members` members for one target; the other arguments are those of `learn`.

    `candidates`: the share of the other variables, drawn for each member, that may be parents; None: all.
    `features`: a mixture of as many networks of the other variables, which come first; members for the target alone
    take their other nodes from these. Without it, the other variables are independent in such members.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.sampling import sample
    >>> cases, new = sample(alarm(), 500, seed=1), sample(alarm(), 2000, seed=2)
    >>> forest, target = grow(cases, 20, target="BP"), cases.index("BP")
    >>> round(float(forest.log_posteriors(new, target)[np.arange(2000), new.codes[target]].mean()), 2)
    -0.49
    """
    if n_members < 1:
        raise ValueError(f"n_estimators is {n_members}, and a forest has at least 1: give a number of graphs")
    if seed < 0:
        raise ValueError(f"the seed is {seed}, and the least is 0: use a seed of 0 or more")
    check_types(search, prior, structure_prior, constraints, None)
    if table.n_cases == 0:
        raise ValueError("the table has no cases, and learning needs at least one: check the data")
    if features is not None:
        _check_features(features, table, n_members, target)
    ways = _ways(search, structure_prior, candidates)
    sizes = [len(part) for part in np.array_split(np.arange(n_members), -(-n_members // PARTS))]
    growing = _Growing(table, target, seed, prior, constraints, len(sizes), features)
    sets = [
        growing.members(number, ways[number % len(ways)], sum(sizes[:number]), size)
        for number, size in enumerate(sizes)
    ]
    naive, places, terms = growing.naive()
    weights = np.append(np.full(len(sets), 1 / len(sets)), np.zeros(len(terms)))
    if n_members > 1 and table.n_cases > 1:  # else there are no out-of-sample cases
        weights = _weights([*(own for _, own in sets), *terms], growing.states, len(sets))
    of_each = np.repeat(weights[: len(sets)] / sizes, sizes)
    powers = np.zeros(table.n_variables)
    powers[places] = weights[len(sets) :]
    networks = [network for members, _ in sets for network in members]
    mixture = _mixture(networks, of_each, table, seed)
    is_whole = np.repeat([ways[number % len(ways)].whole for number in range(len(sizes))], sizes)
    if features is not None:
        mixture = _grouped(mixture, features, is_whole)
    else:
        some = [network for network, own in zip(networks, is_whole, strict=True) if own] or networks[:1]
        features = Mixture(tuple(some), (1 / len(some),) * len(some))
    return Forest(mixture, tuple(of_each.tolist()), naive, tuple(powers.tolist()), features)


def _check_features(features: Mixture, table: Table, n_members: int, target: str) -> None:
    """Raise a ValueError unless there is one network per member, of all variables but the target, the last one."""
    if (*features.names, target) != tuple(table.names) or len(features.members) != n_members:
        raise ValueError(
            f"the features are {many(len(features.members), 'network')} of {many(len(features.names), 'variable')}, "
            f"and a forest of {n_members:,} takes as many, of all variables but the target, which is to be the last: "
            f"learn them from the table without {target!r}, and put it last"
        )


def _ways(search: Settings, structure_prior: str | StructurePrior, candidates: float | None) -> list[Way]:
    """The ways to learn sets, with the settings that differ from the defaults."""
    if shared := parting_or_sharing(search):
        raise ValueError(
            f"the operators {', '.join(shared)} do not go with forests, which average leaves: leave them out"
        )
    if not isinstance(search, LeafSearch):
        ways = [Way("auto", search), Way("auto", search, whole=True)]
    else:
        asked: Any = dict(vars(search).items() - vars(LeafSearch()).items())
        ways = [way._replace(search=replace(way.search, **asked)) for way in WAYS]
    if structure_prior != DEFAULT_STRUCTURE_PRIOR:
        ways = [way._replace(structure_prior=structure_prior) for way in ways]
    if candidates is not None:
        ways = [way._replace(candidates=candidates) for way in ways]
    return list(dict.fromkeys(ways))


def _weights(logs: Sequence[Floats], states: Ints, n_sets: int) -> Floats:
    """The weights of all terms: first sets of members, then the target's marginal distribution, then single features.

    Members are fitted as differences from the marginal, so with weights of 0 this is the prediction.
    """
    places = np.arange(len(logs))
    ratios = np.stack([own[:, 1:] - own[:, :1] for own in logs], axis=2)
    ratios[:, :, :n_sets] -= ratios[:, :, n_sets : n_sets + 1]
    weights = pool_weights(ratios, states, (places == n_sets).astype(np.float64), places >= n_sets)
    weights[n_sets] -= weights[:n_sets].sum()
    return weights


def _mixture(networks: Sequence[Network], weights: Floats, table: Table, seed: int) -> Mixture:
    """The ordinary mixture of the members, by their positive weights."""
    shares = np.maximum(weights, 0)
    shares = shares / shares.sum() if shares.any() else np.full(len(shares), 1 / len(shares))
    told = {
        "cases": table.n_cases,
        "variables": table.n_variables,
        "networks": len(networks),
        "leaves": sum(network.n_leaves for network in networks),
        "parameters": sum(network.n_parameters for network in networks),
        "arcs": sum(len(network.arcs) for network in networks),
        "seed": seed,
    }
    return Mixture(tuple(networks), tuple(shares.tolist()), told)


def _grouped(mixture: Mixture, features: Mixture, is_whole: NDArray[np.bool_]) -> Mixture:
    """The mixture with the weights and groups of the features, except for networks of all variables."""
    every = np.arange(len(is_whole))
    weights = np.where(is_whole, 1 / len(every), features.weights)
    groups = np.where(is_whole, len(every) + every, features.groups)
    told = {**mixture.learned, "groups": len(set(groups.tolist()))}
    return Mixture(mixture.members, tuple((weights / weights.sum()).tolist()), told, tuple(groups.tolist()))


@dataclass(frozen=True, eq=False)
class _Growing:
    """The data and settings from which all members are learned."""

    table: Table
    name: str
    seed: int
    prior: str | ParameterPrior
    constraints: Constraints
    n_sets: int
    features: Mixture | None
    counters: dict[int, CpuCounter] = field(default_factory=dict)  # by their number of copies of the target

    @cached_property
    def target(self) -> int:
        return self.table.index(self.name)

    @cached_property
    def asked(self) -> Ints:
        """The cases to whose out-of-sample predictions the weights are fitted."""
        n_logs = self.table.variables[self.target].n_states * (self.n_sets + self.table.n_variables)
        drawn = np.random.default_rng([self.seed, 1]).permutation(self.table.n_cases)
        return np.sort(drawn[: max(1, _MOST_LOGS // n_logs)])

    @cached_property
    def states(self) -> Ints:
        """The states of the target in these cases."""
        states: Ints = self.table.codes[self.target, self.asked].astype(np.int64)
        return states

    def members(self, number: int, way: Way, first: int, size: int) -> tuple[list[Network], Floats]:
        """Learn a set of networks in one way, from member number `first` on, and predict their out-of-sample cases.

        Predictions are the log probabilities of the target's states, (cases, states).
        """
        random = np.random.default_rng([self.seed, 0, number])
        part_of = random.permutation(self.table.n_cases) % size
        parts = [np.flatnonzero(part_of == part) for part in range(size)]
        parts = [part if len(part) < len(part_of) else part[:0] for part in parts]  # at least one case must be seen
        networks = self._learned(way, parts, random)
        unseen = [np.flatnonzero(part_of[self.asked] == part) for part in range(size)]
        cases = [rows_of(self.table, self.asked[rows]) for rows in unseen]
        said = np.empty((len(self.asked), self.table.variables[self.target].n_states))
        if way.whole:
            for network, rows, there in zip(networks, unseen, cases, strict=True):
                said[rows] = np.fmax(log_posteriors(network, there, self.target), _LEAST)
            return networks, said
        on_arcs = [self._on_arcs(network, self.table) for network in networks]
        logs = [self._logs(*own) for own in zip(networks, on_arcs, parts, strict=True)]
        leaves = [self._leaves_of(*own) for own in zip(networks, cases, strict=True)]
        found = list(zip(logs, leaves, unseen, strict=True))
        best = int(np.argmax(sum(own[:, at, self.states[rows]].sum(axis=1) for own, at, rows in found)))
        for own, at, rows in found:
            said[rows] = own[best, at]
        numbers = range(first, first + size)
        return [self._finished(*own, LEAVES[best]) for own in zip(networks, on_arcs, numbers, strict=True)], said

    def _learned(self, way: Way, parts: Sequence[Ints], random: np.random.Generator) -> list[Network]:
        """Learn one network for each part, from all other cases."""
        children, every = self.table.names if way.whole else (self.name,), np.arange(self.table.n_cases)
        constraints, samples = [], []
        for part in parts:
            own = drawn_parents(self.table, self.constraints, random, way.candidates, children)
            rules = self.rules if own is self.constraints else own.resolve(self.table)
            constraints.append(own)
            samples.append(Sample(np.delete(every, part), rules, self._start(rules, way.first, random)))
        if not way.whole and self._go_together(way.search):
            return self._learned_together(way, samples)
        return [
            learn(
                rows_of(self.table, sample.rows),
                target=None if way.whole else self.name,
                search=way.search,
                prior=self.parameters,
                structure_prior=way.structure_prior,
                constraints=own,
                start=None if sample.start is None else self._with_node(self._uniform(sample.start)),
            )
            for own, sample in zip(constraints, samples, strict=True)
        ]

    def _go_together(self, search: Settings) -> bool:
        """Return whether one search can learn a set: limits apply to each graph, and prior networks lack copies."""
        is_free = isinstance(search, LeafSearch) and search.max_steps is None and search.seconds is None
        return is_free and not isinstance(self.parameters, PriorNetwork) and not self.constraints.tied

    def _learned_together(self, way: Way, samples: Sequence[Sample]) -> list[Network]:
        """The same for graphs of the target alone, by one search."""
        if (counter := self.counters.get(len(samples))) is None:
            counter = CpuCounter(self.table, Workers(way.search.threads)).copying([self.target] * len(samples))
            self.counters[len(samples)] = counter
        prior = structure_prior_of("choices" if way.structure_prior == "auto" else way.structure_prior)
        nodes = search_samples(samples, self.target, counter, way.search, self.parameters, prior)
        how = {"target": self.name, "operators": way.search.letters, "schedule": way.search.schedule}
        networks = []
        for sample, node in zip(samples, nodes, strict=True):
            told = {"cases": len(sample.rows), **how, "leaves": node.n_leaves}
            n_candidates = sample.rules.allowed.sum(axis=1, dtype=np.int64).tolist()
            if n_candidates[self.target] < self.table.n_variables - 1:
                told["candidates"] = n_candidates
            networks.append(self._with_node(node, structure_prior=str(prior), learned=told))
        return networks

    @cached_property
    def parameters(self) -> ParameterPrior:
        return parameter_prior(self.prior)

    @cached_property
    def rules(self) -> ParentRules:
        return self.constraints.resolve(self.table)

    def _with_node(self, node: Node, **others: Any) -> Network:
        """A network in which only the target has a node, which is not checked."""
        nodes = tuple(node if place == self.target else None for place in range(self.table.n_variables))
        return Network.with_nodes_later(self.table.variables, lambda: nodes, **others)

    def _node(self, network: Network) -> Node:
        node = network.nodes[self.target]
        assert node is not None
        return node

    def _on_arcs(self, network: Network, cases: Table) -> Ints:
        """The counts of the target's states on each arc of its graph, and last among all cases."""
        return counts_of(self._node(network), self.target, cases)[0]

    def _leaves_of(self, network: Network, cases: Table) -> NDArray[np.integer[Any]]:
        """The leaf of each case in the target's graph."""
        return routes.leaves_of(cases.codes, *self._node(network).flat[:3], 0)

    def _logs(self, network: Network, on_arcs: Ints, part: Ints) -> Floats:
        """The log probabilities in a graph's leaves, without a part of the cases: (kinds of leaves, leaves, states)."""
        seen = on_arcs - self._on_arcs(network, rows_of(self.table, part))
        means = every_kind_of_node(network, self.target, seen, LEAVES)
        logs: Floats = np.log(means.T).reshape(len(LEAVES), -1, self._node(network).n_states)
        return logs

    def _finished(self, network: Network, on_arcs: Ints, number: int, leaves: Leaves) -> Network:
        """The network with leaves fitted to all cases, and with nodes of the features, which it lacks."""
        node = self._node(network)
        if leaves is None:
            means = averaged_means(network, self.target, node, on_arcs)
        else:
            (means,) = smoothed_means(node, on_arcs, [leaves])
        nodes: list[Node | None] = list(self.alone)
        if self.features is not None:
            nodes[:-1] = self.features.members[number].nodes
        counts = node_counts(node, on_arcs)[list(node.graph.leaves)]
        nodes[self.target] = Node.with_means(node.parents, node.graph, counts, means)
        told: dict[str, Any] = {"structure_prior": network.structure_prior, "learned": network.learned}
        return Network.with_nodes_later(network.variables, lambda: tuple(nodes), **told)  # all of them were checked

    @cached_property
    def alone(self) -> list[Node]:
        """Nodes without parents, for all variables."""
        pairs = zip(self.table.variables, self.table.codes, strict=True)
        return independent([np.bincount(codes, minlength=variable.n_states) for variable, codes in pairs])

    def _start(self, rules: ParentRules, first: int, random: np.random.Generator) -> DecisionGraph | None:
        """A complete tree of up to `first` random features to begin with, as far as there are enough cases."""
        if not first or rules.is_static:
            return None
        n_states = [variable.n_states for variable in self.table.variables]
        most = min(rules.most_leaves, self.table.n_cases // _ENOUGH_CASES)
        room = min(first, rules.most_parents - int(rules.is_parent[self.target].sum()))
        drawn: list[int] = []
        for place in random.permutation(np.flatnonzero(rules.allowed[self.target])).tolist():
            if len(drawn) < room and math.prod(n_states[own] for own in (*drawn, place)) <= most:
                drawn.append(place)
        return DecisionGraph.complete(drawn, n_states) if drawn else None

    def _uniform(self, graph: DecisionGraph) -> Node:
        """A node with this graph and uniform distributions."""
        r = self.table.variables[self.target].n_states
        return Node(tuple(sorted(graph.tested)), graph, np.full((graph.n_leaves, r), 1 / r))

    def naive(self) -> tuple[Network, list[int], list[Floats]]:
        """The naive Bayes network, those of its nodes that are terms, and their log probabilities of `asked` cases.

        A feature is a term if, with the target's marginal, it predicts out-of-sample cases better than this alone.
        """
        table, target = self.table, self.target
        n_states = [variable.n_states for variable in table.variables]
        n_parts, r = min(PARTS, table.n_cases), n_states[target]
        part_of = np.random.default_rng([self.seed, 2]).permutation(table.n_cases) % n_parts
        row_of, graph = part_of * r + table.codes[target], DecisionGraph.complete([target], n_states)
        nodes, asked, parts = list(self.alone), table.codes[:, self.asked], part_of[self.asked]
        shares: Floats = np.log(nodes[target].probabilities)
        logs, alone = {target: shares.repeat(len(parts), axis=0)}, shares[0, self.states].sum()
        for place, n in enumerate(n_states):
            if place != target:
                counts = np.bincount(row_of * n + table.codes[place], None, n_parts * r * n).reshape(n_parts, r, n)
                whole = counts.sum(axis=0)
                nodes[place] = Node.learned((target,), graph, whole, _towards_all(whole))
                left = whole - counts
                means = left + _towards_all(left)
                own = np.log(means / means.sum(axis=2, keepdims=True)).transpose(0, 2, 1).reshape(-1, r)
                both, rows = shares + own, parts * n + asked[place]
                both -= np.logaddexp.reduce(both, axis=1, keepdims=True)
                if np.bincount(rows * r + self.states, None, both.size) @ both.ravel() > alone:
                    logs[place] = own.take(rows, axis=0)
        return Network(table.variables, tuple(nodes)), list(logs), list(logs.values())


def _towards_all(counts: NDArray[Any]) -> Floats:
    """Exponents for each state of another variable: worth as many cases as a leaf's prior, with the marginal shares."""
    prior = Symmetric()
    means = counts.sum(axis=-2, keepdims=True) + prior.exponent(counts.shape[-1])
    found: Floats = prior.cases * means / means.sum(axis=-1, keepdims=True) + np.zeros(counts.shape)
    return found


def pool_weights(logs: Floats, states: Ints, begin: Floats, group: NDArray[Any]) -> Floats:
    """Fit the weights of terms, as log ratios (cases, states but the first, terms), to the states of cases.

    Ratios are those to the probability of the first state. The weights of each group have a normal prior around
    `begin`, whose variance maximizes the probability of the cases (MacKay's evidence, re-estimated after each Newton
    step).

    >>> sure = np.log([[4], [4], [4], [0.25], [0.25], [0.25]])
    >>> random = np.log([[4], [0.25], [1], [1], [4], [0.25]])
    >>> logs, states = np.stack([sure, random], axis=2), np.array([1, 1, 1, 0, 0, 0])
    >>> pool_weights(np.tile(logs, (50, 1, 1)), np.tile(states, 50), np.full(2, 0.5), np.zeros(2)).round(1)
    array([5. , 0.1])
    """
    (n, r, _), numbers = logs.shape, np.unique(group, return_inverse=True)[1]
    flat, is_there = logs.reshape(n * r, len(begin)), states[:, None] == np.arange(1, r + 1)
    observed = is_there.ravel() @ flat
    weights, strength = begin.copy(), np.full(numbers.max() + 1, 10.0)

    def looked_at(weights: Floats) -> tuple[float, Floats]:
        """Minus the log likelihood of the cases, and their probabilities of all states but the first."""
        sums = (flat @ weights).reshape(n, r)
        totals = np.logaddexp(0.0, sums[:, 0]) if r == 1 else np.logaddexp.reduce(sums, axis=1, initial=0.0)
        return float(totals.sum() - observed @ weights), np.exp(sums - totals[:, None])

    def away(weights: Floats) -> float:
        """Minus the log prior, up to a constant."""
        return float(strength[numbers] @ (weights - begin) ** 2 / 2)

    def bend_of(p: Floats) -> Floats:
        """The Hessian of minus the log likelihood."""
        if r == 1:
            return (flat * (p * (1 - p))).T @ flat
        mean = np.einsum("nr,nrt->nt", p, logs)
        found: Floats = (flat * p.reshape(-1, 1)).T @ flat - mean.T @ mean
        return found

    cost, p = looked_at(weights)
    for _ in range(_ROUNDS):
        before = cost + away(weights)
        slope = p.ravel() @ flat - observed + strength[numbers] * (weights - begin)
        bend = bend_of(p) + np.diag(strength[numbers])
        step = np.linalg.solve(bend, slope)
        cost, p = looked_at(weights - step)
        while cost + away(weights - step) > before and np.abs(step).max() > _ENOUGH:
            step /= 2
            cost, p = looked_at(weights - step)
        weights = weights - step
        gained = before - cost - away(weights)
        free = 1 - strength[numbers] * np.diag(np.linalg.inv(bend))
        n_free, squares = (np.bincount(numbers, own) for own in (free, (weights - begin) ** 2))
        new = np.clip(n_free / np.maximum(squares, 1 / _NARROWEST**2), _WIDEST, _NARROWEST)
        settled = np.abs(np.log(new / strength)).max() < 0.1
        strength = new
        if gained < _ENOUGH * n and settled:
            break
    return np.round(weights, _DIGITS)
