"""Mixture: a weighted mixture of networks over the same variables. Immutable.

Knows networks; methods that answer queries import the modules that implement them, as in `Network`.
"""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leafwise.dag import topological_order
from leafwise.data.table import Table, Variable, code_type, index_of, many
from leafwise.decision_graph import DecisionGraph
from leafwise.errors import Advice, check_type
from leafwise.network import Network, Node, check_network, read_only

if TYPE_CHECKING:
    from leafwise.inference.evidence import Given
    from leafwise.inference.explanation import Explanation
    from leafwise.inference.query import Answer
    from leafwise.predictions import Predictions
    from leafwise.report.svg import Picture

Floats = NDArray[np.float64]
_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Mixture:
    """Networks over the same variables, with weights that sum to one: the probability of a case is the weighted mean.

    If a group has several members, their nodes are mixed: every variable takes its distribution from one of them,
    drawn by their weights, so that a group of k networks over n variables represents k**n networks. All arcs of a
    group together must be acyclic, as they are if its members share an order of the variables.

    >>> from leafwise.examples import alarm
    >>> mixture = Mixture((alarm(), alarm().do({"BP": "LOW"})), (0.75, 0.25))
    >>> round(mixture.query("BP")["BP"]["LOW"], 4), round(alarm().query("BP")["BP"]["LOW"], 4)
    (0.5425, 0.39)
    >>> mixture
    Mixture(2 networks, 37 variables, 1,002 parameters)
    """

    members: tuple[Network, ...]
    weights: tuple[float, ...]
    learned: Mapping[str, Any] = field(default_factory=dict)  # how it was learned: JSON values
    groups: tuple[int, ...] = ()  # the number of each member's group; by default, each is its own group

    def __post_init__(self) -> None:
        """Raise an error for members that do not match, and for invalid weights or groups."""
        object.__setattr__(self, "members", tuple(self.members))
        object.__setattr__(self, "weights", tuple(float(weight) for weight in self.weights))
        object.__setattr__(self, "learned", read_only(self.learned))
        if not self.members or len(self.members) != len(self.weights):
            raise ValueError(
                f"a mixture got {len(self.members)} networks and {len(self.weights)} weights: give one weight for each "
                f"of at least one network."
            )
        for member in self.members:
            check_network(member, "Mixture")
            if member.variables != self.variables or self._given_in(member) != self._given_in(self.members[0]):
                raise ValueError("the networks of a mixture have different variables or states: give them the same.")
        sound = all(0 <= weight <= 1 + _SUM_TOLERANCE for weight in self.weights)
        if not sound or abs(math.fsum(self.weights) - 1) > _SUM_TOLERANCE:
            raise ValueError("the weights of a mixture are shares, and sum to one: normalise them.")
        groups = tuple(self.groups) or tuple(range(len(self.members)))
        if len(groups) != len(self.members):
            raise ValueError(f"a mixture got {len(self.members)} networks and {len(groups)} groups: give one for each.")
        if not all(isinstance(group, int | np.integer) for group in groups):
            raise TypeError("the groups of a mixture are numbers, one for each network: give these.")
        number = {group: k for k, group in enumerate(dict.fromkeys(groups))}
        object.__setattr__(self, "groups", tuple(number[group] for group in groups))
        for members, _ in self._grouped():
            topological_order(_all_parents(members))

    def _grouped(self) -> Iterator[tuple[tuple[Network, ...], Floats]]:
        """The members of each group, and their weights."""
        for group in dict.fromkeys(self.groups):
            places = [place for place, own in enumerate(self.groups) if own == group]
            yield tuple(self.members[place] for place in places), np.array([self.weights[place] for place in places])

    @cached_property
    def components(self) -> "tuple[tuple[Network, float], ...]":
        """An equivalent network for each group, and its weight.

        For several members, each variable has a hidden cause that selects the member from which it takes its
        distribution. The causes come after all variables.
        """
        return tuple((switched(members, weights), float(weights.sum())) for members, weights in self._grouped())

    @staticmethod
    def _given_in(member: Network) -> list[int]:
        return [index for index, node in enumerate(member.nodes) if node is None]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables of all members."""
        return self.members[0].variables

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables."""
        return self.members[0].names

    @property
    def n_leaves(self) -> int:
        """The number of leaves of all members."""
        return sum(member.n_leaves for member in self.members)

    @property
    def n_parameters(self) -> int:
        """The number of free parameters of all members."""
        return sum(member.n_parameters for member in self.members)

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Network]:
        return iter(self.members)

    def arc_shares(self) -> Floats:
        """For each pair of variables, the total weight of the members with an arc from the first to the second."""
        shares = np.zeros((len(self.variables), len(self.variables)))
        for member, weight in zip(self.members, self.weights, strict=True):
            for parent, child in member.arcs:
                shares[parent, child] += weight
        return shares

    def log_probabilities(self, data: Any, **options: Any) -> Floats:
        """The natural log of the probability of each case, as by `leafwise.log_probabilities`."""
        from leafwise.inference.likelihood import log_probabilities_by_turns

        table = self._table(data, options)
        logs, total = [], []
        for place, (members, weights) in enumerate(self._grouped()):
            total.append(float(weights.sum()))
            if total[-1] == 0:
                logs.append(np.full(table.n_cases, -np.inf))
            elif len(members) == 1:
                logs.append(members[0].log_probabilities(table, **options))
            elif table.variables == self.variables:
                logs.append(log_probabilities_by_turns(members, weights, table.codes)[0])
            else:
                logs.append(self.components[place][0].log_probabilities(table, **options))
        return _log_sum(logs, total)

    def query(self, targets: str | Sequence[str], *, given: "Given | None" = None, **options: Any) -> "Answer":
        """The distributions of targets given evidence: means over groups, weighted by their posterior weights.

        The options are those of `leafwise.query`, with a method that computes the probability of the evidence.
        """
        from leafwise.inference.query import Answer

        found = self._answers(targets, given, options)
        weights, log_evidence = self._posterior(found)
        answers = list(found.values())
        first = answers[0]
        mixed = tuple(_mean([a.distributions[k] for a in answers], weights) for k in range(len(first.distributions)))
        others = {answer.method for answer in answers} - {"exact"}
        notes = list(dict.fromkeys(answer.note for answer in answers if answer.note))
        warned = tuple(dict.fromkeys(warning for answer in answers for warning in answer.warnings))
        errors = None
        if others:
            known = [a.standard_errors or tuple(np.zeros_like(d) for d in a.distributions) for a in answers]
            squares = [_mean([e[k] ** 2 * w for e, w in zip(known, weights, strict=True)], weights)
                       for k in range(len(mixed))]  # fmt: skip
            errors = tuple(np.sqrt(square) for square in squares)
        method = "exact" if not others else sorted(others)[0]
        return Answer(
            first.variables,
            mixed,
            method,
            log_evidence,
            errors,
            warnings=warned,
            note=_joined(notes),
        )

    def _answers(
        self, targets: str | Sequence[str], given: "Given | None", options: dict[str, Any]
    ) -> "dict[int, Answer]":
        """The answers of the components with a weight under which the evidence is possible."""
        from leafwise.inference.evidence import mapping_of
        from leafwise.inference.exact import Impossible

        given = mapping_of(given)
        for name in [*([targets] if isinstance(targets, str) else targets), *given]:
            index_of(name, self.names)  # an error for the hidden causes of groups
        found: dict[int, Answer] = {}
        refusal: Impossible | None = None
        for place, (network, weight) in enumerate(self.components):
            if weight == 0:
                continue
            try:
                found[place] = network.query(targets, given=given, **options)
            except Impossible as error:
                refusal = error
        if not found and refusal is not None:
            raise refusal
        return found

    def _possible(self, given: "Given", options: dict[str, Any]) -> tuple[tuple[Network, ...], Floats]:
        """The components under which the evidence is possible, and their posterior weights."""
        found = self._answers(self.names[0], given, options)
        return tuple(self.components[place][0] for place in found), self._posterior(found)[0]

    def explain(
        self, targets: str | Sequence[str] | None = None, *, given: "Given | None" = None, **options: Any
    ) -> "Explanation":
        """Approximate the most probable states of all variables given evidence, by local search.

        The best of the members' explanations is changed, one variable at a time, as long as its probability
        increases. Explanations of targets are refused; for a single one, `query` gives the exact answer.
        """
        from leafwise.inference.explanation import Explanation

        if targets is not None:
            raise ValueError(
                "a mixture of networks explains everything, not some targets: leave targets out, or query one of them."
            )
        codes = self._explained(given, options)
        log_probability = float(self._log_with(given, codes)[0])
        log_evidence = self.query(self.names[0], given=given).log_evidence if given else 0.0
        states = {v.name: v.labels[code] for v, code in zip(self.variables, codes[:, 0].tolist(), strict=True)}
        note = "the best found from the explanations of the members, not known to be the best"
        return Explanation(states, log_probability, log_probability - (log_evidence or 0.0), "search", note)

    def _log_with(self, given: "Given | None", codes: NDArray[np.int64]) -> Floats:
        """The log probability of each case and of the evidence, which may weigh states."""
        from leafwise.inference.evidence import weights_of

        logs = self.log_probabilities(self._cases(codes))
        with np.errstate(divide="ignore"):
            for variable, weights in weights_of(self.members[0], given).items():
                logs += np.log(weights)[codes[variable]]
        return logs

    def _explained(self, given: "Given | None", options: dict[str, Any]) -> NDArray[np.int64]:
        """The result of the local search, as one column of codes."""
        from leafwise.inference.evidence import weights_of

        known = weights_of(self.members[0], given)
        found = self._explanations(given, options)
        begin = np.array([[v.labels.index(states[v.name]) for v in self.variables] for states in found]).T
        open_states = [
            (v, state)
            for v, variable in enumerate(self.variables)
            for state in range(variable.n_states)
            if v not in known or known[v][state] > 0
        ]
        best = begin[:, [int(self._log_with(given, begin).argmax())]]
        while True:
            near = best.repeat(len(open_states) + 1, axis=1)
            for place, (v, state) in enumerate(open_states):
                near[v, place + 1] = state
            at = int(self._log_with(given, near).argmax())  # the first of equals; 0 is no change
            if at == 0:
                return best
            best = near[:, [at]]

    def _explanations(self, given: "Given | None", options: dict[str, Any]) -> list[Mapping[str, str]]:
        """The explanations of the members with a weight under which the evidence is possible."""
        from leafwise.inference.exact import Impossible

        found: list[Mapping[str, str]] = []
        refusal: Impossible | None = None
        for member, weight in zip(self.members, self.weights, strict=True):
            if weight == 0:
                continue
            try:
                found.append(member.explain(given=given, **options).states)
            except Impossible as error:
                refusal = error
        if not found and refusal is not None:
            raise refusal
        return found

    def _cases(self, codes: NDArray[Any]) -> Table:
        return Table(self.variables, np.ascontiguousarray(codes, dtype=code_type(self.variables)))

    def sample(self, n_cases: int, seed: int = 1, *, given: "Given | None" = None, **options: Any) -> Table:
        """Draw cases, as by `leafwise.sample`, each from a group that is drawn by its weight given the evidence."""
        from leafwise.inference.evidence import mapping_of
        from leafwise.inference.sampling import sample

        given = mapping_of(given)
        sample(self.members[0], n_cases, seed)  # raises an error for invalid numbers
        networks, weights = tuple(one for one, _ in self.components), np.array([own for _, own in self.components])
        if given:
            networks, weights = self._possible(given, options)
        random = np.random.default_rng(seed)
        numbers = random.multinomial(n_cases, weights / weights.sum())
        parts = [
            network.sample(int(n), int(own), given=given, **options).codes[: len(self.variables)]
            for network, n, own in zip(networks, numbers, random.integers(2**31, size=len(numbers)), strict=True)
            if n
        ]
        return self._cases(np.concatenate(parts, axis=1)[:, random.permutation(n_cases)])

    def predict(self, data: Any, target: str, **options: Any) -> "Predictions":
        """The distribution of a target in every case, as by `leafwise.predict`.

        Groups are weighted by their posterior weights given the rest of the case; if only one target was learned, by
        their weights.
        """
        from leafwise.predictions import predict_by_mixture

        return predict_by_mixture(self, data, target, **options)

    def plot(self) -> "Picture":
        """A picture of the arcs of most members: the more members connect two variables, the wider is the line."""
        from leafwise.report.arc_shares import shares_picture

        return shares_picture(self.names, self.arc_shares())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the mixture to a .json or .json.gz file, from which it loads identically."""
        from leafwise.formats.files import save_mixture

        check_type(path, (str, os.PathLike), "where to save", "a path: use for example 'model.json'.")
        save_mixture(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, most_bytes: int | None = None) -> "Mixture":
        """Read a mixture from a file; a single network becomes a mixture of one."""
        from leafwise.formats.files import load_model

        check_type(path, (str, os.PathLike), "what to load", "a path: use for example 'model.json'.")
        found = load_model(path, most_bytes=most_bytes)
        return found if isinstance(found, Mixture) else cls((found,), (1.0,))

    def __repr__(self) -> str:
        sizes = [many(len(self.members), "network"), many(len(self.variables), "variable")]
        sizes.append(many(self.n_parameters, "parameter"))
        cases = self.learned.get("cases")
        learned = [f"learned from {many(cases, 'case')}"] if isinstance(cases, int) else []
        return f"Mixture({', '.join(sizes + learned)})"

    def __eq__(self, other: object) -> bool:
        """Equal members, weights, groups and history."""
        if not isinstance(other, Mixture):
            return NotImplemented
        same = (self.members, self.weights, self.groups) == (other.members, other.weights, other.groups)
        return same and dict(self.learned) == dict(other.learned)

    def __hash__(self) -> int:
        """Agrees with equality."""
        return hash((self.members, self.weights))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle `learned` as a dict, since a read-only mapping cannot be pickled."""
        return Mixture, (self.members, self.weights, dict(self.learned), self.groups)

    def _table(self, data: Any, options: dict[str, Any]) -> Table:
        """The data in the members' states, read once; options for reading are removed from `options`."""
        from leafwise.data.encoding import read_new

        reading = {name: options.pop(name) for name in list(options) if name != "limits"}
        if isinstance(data, Table) and not reading:
            return data
        return read_new(data, self.variables, **{"missing": "unknown", **reading})

    def _posterior(self, answers: "Mapping[int, Answer]") -> tuple[Floats, float]:
        """The posterior weights of components given the evidence, and its log probability."""
        if any(answer.log_evidence is None for answer in answers.values()):
            raise ValueError(
                "this method does not tell the probability of the evidence, by which a mixture weighs its members: "
                "use method 'exact', 'weighting' or 'importance'."
            )
        own = np.log([self.components[place][1] for place in answers])
        logs = own + np.array([answer.log_evidence for answer in answers.values()], np.float64)
        total = float(np.logaddexp.reduce(logs))
        return np.exp(logs - total), total


def _all_parents(networks: Sequence[Network]) -> list[list[int]]:
    """The union of each variable's parents in all networks, sorted."""
    every = zip(*(network.nodes for network in networks), strict=True)
    return [sorted({parent for node in nodes if node is not None for parent in node.parents}) for nodes in every]


def switched(networks: Sequence[Network], weights: Floats) -> Network:
    """Combine networks into one, in which a hidden cause of each variable selects the network of its distribution.

    The causes come after the variables of the networks. A single network is returned as it is.

    >>> from leafwise.examples import alarm
    >>> both = switched((alarm(), alarm().do({"BP": "LOW"})), np.array([0.6, 0.2]))
    >>> len(both.variables), round(both.query("BP")["BP"]["LOW"], 4), round(alarm().query("BP")["BP"]["LOW"], 4)
    (74, 0.5425, 0.39)
    """
    first = networks[0]
    if len(networks) == 1:
        return first
    n, names = len(first.variables), {*first.names}
    places = [place for place, node in enumerate(first.nodes) if node is not None]
    labels = tuple(str(k + 1) for k in range(len(networks)))
    shares = (weights / weights.sum() if weights.any() else np.full(len(networks), 1 / len(networks)))[None]
    variables, nodes = list(first.variables), list(first.nodes)
    all_parents = _all_parents(networks)
    for number, place in enumerate(places):
        name = f"network of {first.names[place]}"
        while name in names:
            name += "'"
        names.add(name)
        variables.append(Variable(name, labels, hidden=True))
        own = [node for network in networks if (node := network.nodes[place]) is not None]
        graph = DecisionGraph.choice(n + number, [node.graph for node in own])
        nodes[place] = Node(
            (*all_parents[place], n + number), graph, np.concatenate([node.probabilities for node in own])
        )
        nodes.append(Node((), DecisionGraph.single(), shares))
    return Network(tuple(variables), tuple(nodes))


def _joined(notes: Sequence[str]) -> Advice | None:
    return Advice(*[part for note in notes for part in ("; ", note)][1:]) if notes else None


def _mean(arrays: Sequence[Floats], weights: Floats) -> Floats:
    return np.tensordot(weights, np.stack(list(arrays)), 1)


def _log_sum(logs: Sequence[Floats], weights: Sequence[float]) -> Floats:
    """The log of the weighted sum, case by case."""
    total = np.full(len(logs[0]), -np.inf)
    for values, weight in zip(logs, weights, strict=True):
        if weight > 0:
            total = np.logaddexp(total, values + math.log(weight))
    return total
