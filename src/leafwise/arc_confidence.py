"""Confidence in arcs: the shares of networks that have them, when learned from random halves of the cases.

Knows how a network is learned. Halves, drawn without replacement, are used instead of bootstrap samples, whose repeated
cases count as additional evidence and inflate the shares (docs/how-to/many.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from leafwise.constraints import Constraints
from leafwise.dag import find_cycle, parent_lists
from leafwise.data.encoding import Reading, read
from leafwise.data.frames import Columns, Framed, html_table
from leafwise.data.new_data import without_inference
from leafwise.data.table import Table, many, shortened
from leafwise.decision_graph import LEAF
from leafwise.errors import AdvisedError, Part, check_type
from leafwise.learner import DEFAULT_PRIOR, DEFAULT_STRUCTURE_PRIOR, learn
from leafwise.network import Network
from leafwise.report.arc_shares import shares_picture
from leafwise.search.recover import RecoverySearch
from leafwise.search.run import Settings

if TYPE_CHECKING:
    from leafwise.report.svg import Picture

Floats = NDArray[np.float64]
_SHOWN = 20


@dataclass(frozen=True, eq=False, repr=False)
class Confidence(Framed):
    """The agreement of networks on arcs: `shares[i, j]` is the share of networks with an arc from i to j.

    `frame_columns()`, or `to_pandas()`, has one row per pair that some network connects, largest share first.
    """

    names: tuple[str, ...]
    n_networks: int
    shares: Floats
    tests: Floats  # tests[i, j]: the mean number of tests of i in the graph of j

    @classmethod
    def of(cls, networks: Sequence[Network]) -> "Confidence":
        """Count the arcs and tests of networks over the same variables."""
        if not networks:
            raise ValueError("no network was given, and confidence needs one at least: give some.")
        other = next((network for network in networks if network.names != networks[0].names), None)
        if other is not None:
            raise ValueError(
                f"a network of {shortened(other.names)} was given beside one of {shortened(networks[0].names)}, and "
                f"arcs are counted over the same variables in the same order: give networks of these"
            )
        n = len(networks[0].variables)
        shares, tests = np.zeros((n, n)), np.zeros((n, n))
        for network in networks:
            for child, node in enumerate(network.nodes):
                if node is not None:
                    shares[list(node.parents), child] += 1
                    for test in node.whole_graph.tests:
                        tests[test, child] += test not in (LEAF, child)
        n = len(networks)
        return cls(networks[0].names, n, shares / n, tests / n)

    @property
    def connected(self) -> Floats:
        """The share of networks that connect two variables, in either direction."""
        return self.shares + self.shares.T

    @property
    def threshold(self) -> float:
        """The least share with which a pair counts as connected, determined by the shares themselves.

        If everything were certain, all shares would be 0 or 1. The nearest distribution of this kind, in the L1
        distance of distribution functions, says how many pairs are connected (Scutari & Nagarajan 2013): those from
        the smallest share of at least 1/2 on.
        """
        i, j = np.triu_indices(len(self.names), 1)
        found = np.append(0.0, np.sort(np.clip(self.connected[i, j], 0, 1)))  # steps of the distribution function
        up_to = np.append(found[1:], 1.0).searchsorted(0.5)  # the shares below 1/2, where it has its median value
        return float(found[up_to + 1]) if up_to + 1 < len(found) else 1.0

    @property
    def consensus(self) -> tuple[tuple[str, str], ...]:
        """The arcs of the consensus network: pairs from the threshold on, each in its more frequent direction.

        They are in descending order of shares; an arc that would close a cycle with earlier ones is reversed.
        """
        n = len(self.names)
        is_parent = np.zeros((n, n), np.uint8)
        arcs = []
        for i, j in self._pairs(self.threshold):
            parent, child = (i, j) if self.shares[i, j] >= self.shares[j, i] else (j, i)
            is_parent[child, parent] = 1
            if find_cycle(parent_lists(is_parent)):
                is_parent[child, parent] = 0
                parent, child = child, parent
                is_parent[child, parent] = 1
            arcs.append((self.names[parent], self.names[child]))
        return tuple(arcs)

    def network(self, data: Any, **reading: Unpack[Reading]) -> Network:
        """The consensus as a network whose graphs are learned from all cases of the data, by the default search.

        Its `learned["confidence"]` has the number of networks, the threshold, and for each arc (parent, child) the
        shares of networks that connect the pair and that have this arc; the explorer displays them.

        >>> from leafwise.examples import alarm
        >>> from leafwise.inference.sampling import sample
        >>> cases = sample(alarm(), 300, seed=1)
        >>> found = confidence(cases, 5)
        >>> found.network(cases).learned["confidence"]["arcs"][0]
        ['LVEDVOLUME', 'CVP', 1.0, 1.0]
        """
        network = learn(data, constraints=Constraints(dag=self.consensus), **reading)
        places = [(self.names.index(parent), self.names.index(child)) for parent, child in self.consensus]
        rows = [
            [self.names[i], self.names[j], float(self.connected[i, j]), float(self.shares[i, j])] for i, j in places
        ]
        told = {"networks": self.n_networks, "threshold": self.threshold, "arcs": rows}
        return replace(network, learned={**network.learned, "confidence": told})

    def _pairs(self, least: float) -> list[tuple[int, int]]:
        """The pairs (i < j) connected by a positive share of at least `least`, largest share first."""
        both = np.triu(self.connected, 1)
        pairs = np.argwhere((both >= least) & (both > 0))
        return [(int(i), int(j)) for i, j in sorted(pairs.tolist(), key=lambda pair: -both[tuple(pair)])]

    def plot(self, least: float | None = None) -> "Picture":
        """A picture of the pairs with a share of at least `least` (by default the threshold), shown by line widths."""
        return shares_picture(self.names, self.shares, self.threshold if least is None else least)

    def frame_columns(self) -> Columns:
        rows = [(*((i, j) if self.shares[i, j] >= self.shares[j, i] else (j, i)),) for i, j in self._pairs(0.0)]
        first, second = np.array(rows, np.int64).reshape(-1, 2).T
        return {
            "from": [self.names[i] for i in first],
            "to": [self.names[j] for j in second],
            "connected": self.connected[first, second],
            "this_way": self.shares[first, second],
            "the_other": self.shares[second, first],
            "tests": self.tests[first, second],
            "tests_back": self.tests[second, first],
        }

    def _lines(self) -> list[list[str]]:
        columns = self.frame_columns()
        cells = [[f"{v:.2f}" for v in c] if isinstance(c, np.ndarray) else c for c in columns.values()]
        return [list(row) for row in zip(*cells, strict=True)]

    def __repr__(self) -> str:
        n = len(self._pairs(self.threshold))
        return f"Confidence({many(self.n_networks, 'network')}, {many(n, 'pair')} at {self.threshold:.2f} or more)"

    def _repr_html_(self) -> str:
        return html_table(repr(self), list(self.frame_columns()), self._lines()[:_SHOWN])


def confidence(
    data: Any,
    networks: int = 100,
    *,
    seed: int = 1,
    search: Settings = RecoverySearch(),
    prior: str = DEFAULT_PRIOR,
    structure_prior: str = DEFAULT_STRUCTURE_PRIOR,
    constraints: Constraints = Constraints(),
    **reading: Unpack[Reading],
) -> Confidence:
    """Estimate the confidence in each arc: learn from random halves of the cases, and count the networks that have it.

    The other arguments are those of `learn`. Only with `search=RecoverySearch()` are shares calibrated: other searches
    connect many non-adjacent pairs in every half. `LeafSearch()` takes less time.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.sampling import sample
    >>> found = confidence(sample(alarm(), 1000, seed=1), 20)
    >>> found
    Confidence(20 networks, 41 pairs at 0.65 or more)
    >>> found.connected[found.names.index("SHUNT"), found.names.index("INTUBATION")]
    np.float64(1.0)
    """
    settings = {"search": search, "prior": prior, "structure_prior": structure_prior, "constraints": constraints}
    if reading.get("missing") == "infer":
        instead: tuple[Part, ...] = ("missing", "state"), " or ", ("missing", "drop")
        raise AdvisedError(("missing", "infer"), " is for one network, and here are many: pass ", *instead)
    with without_inference():
        table = read(data, **reading)
    return Confidence.of(list(halves(table, networks, seed, **settings)))


def halves(table: Table, networks: int, seed: int, **settings: Any) -> Iterator[Network]:
    """Learn networks from random halves of the cases, one after the other."""
    check_type(networks, (int, np.integer), "networks", "a whole number: give one such as 100")
    check_type(seed, (int, np.integer), "the seed", "a whole number: give one such as 1")
    if seed < 0:
        raise ValueError(f"the seed is {seed}, and the least is 0: use a seed of 0 or more")
    if networks < 1 or table.n_cases < 2:
        raise ValueError(
            f"{many(networks, 'network')} of half of {many(table.n_cases, 'case')} were asked for: give at least 1 "
            f"network and 2 cases"
        )
    for number in range(networks):
        random = np.random.default_rng([seed, number])
        rows = np.sort(random.permutation(table.n_cases)[: table.n_cases // 2])
        half = Table(table.variables, np.ascontiguousarray(table.codes[:, rows]))
        yield learn(half, **settings)
