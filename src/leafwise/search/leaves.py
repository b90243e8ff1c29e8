"""The leaves of all nodes under search: their cases are held by a counter, their histograms and prices here.

`advance` applies operators until it needs leaves that are not there yet; `feed` then counts and prices, in one batch,
what every node will need next: the children of each leaf's best split and each node's best merge.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise import dag
from leafwise.constraints import ParentRules
from leafwise.counters.counter import Counter
from leafwise.decision_graph import DecisionGraph
from leafwise.kernels import children, frontier, gains, nodes
from leafwise.kernels.arrays import grown
from leafwise.priors import ParameterPrior, Uniform
from leafwise.regions import Region, flags_of, set_of
from leafwise.search.histograms import Histograms, make_layout
from leafwise.search.planting import sets_of_leaves
from leafwise.workers import Workers

Integers = NDArray[np.int64]

_ROOM_FOR_STEPS = 4096
_AHEAD = 0.5  # nodes run ahead as long as their steps gain this share of the next step's gain
_TABLE_COST, _EXPONENT_COST = 8.0, 150.0  # nanoseconds to price one state of a candidate


class Leaves:
    """All leaves that are, those counted ahead, and the log of the steps that led here."""

    def __init__(
        self,
        counter: Counter,
        workers: Workers,
        prior: ParameterPrior,
        operators: str,
        rules: nodes.Rules,
        parents: ParentRules,
        n_states: Integers,
        targets: Integers,
    ) -> None:
        self.rules, self.targets = rules, targets
        self._counter, self._workers, self._prior, self._parents = counter, workers, prior, parents
        n = len(n_states)
        layout = make_layout(parents.allowed | parents.is_parent, n_states, targets)
        self.records = np.zeros(4 * n, gains.LEAF)
        self.n_records = 0
        self.nodes = np.zeros(n, nodes.NODE)
        for field in ("head", "tail", "split_leaf", "merge_leaf", "merged", "first_pending", "last_pending"):
            self.nodes[field] = -1
        self.nodes["n_states"] = n_states
        self.nodes["room"] = rules.most_children
        self.histograms = Histograms(layout, self.nodes)
        self.pricing = gains.Pricing(
            layout,
            parents.allowed.copy(),
            self.nodes,
            self.histograms.counts,
            gains.log_factorials(counter.n_cases + int(n_states.max())),
            rules.log_kappa,
            "C" in operators,
            "B" in operators,
        )
        self.is_parent = parents.is_parent.copy()
        self.ancestors = np.zeros((n, -(-n // 64)), np.uint64)
        self._log = np.zeros(_ROOM_FOR_STEPS, nodes.STEP)
        self._committed = np.zeros(_ROOM_FOR_STEPS, np.int64)
        self.regions: dict[int, Region] = {}
        self.groups: dict[int, tuple[int, ...]] = {}  # complete splits of leaves where some state cannot occur
        self._exponents = np.zeros(0)
        self._n_exponents = 0
        self._n_spent = 0  # records before this one have been looked at for histograms to give back
        self._priced = True  # since the nodes last looked for their best leaves
        self._dropped = np.zeros(len(self.records), np.int64)
        self._totals = np.zeros(3, np.int64)
        self._tracks_regions = not isinstance(prior, Uniform) or ("C" in operators and rules.most_children > 2)

    @property
    def n_steps(self) -> int:
        return int(self._totals[nodes.N_COMMITTED])

    def steps(self, begin: int, end: int) -> NDArray[np.void]:
        """The committed steps from one to another."""
        return self._log[self._committed[begin:end]]

    def plant(self, graphs: dict[int, DecisionGraph]) -> dict[int, list[int]]:
        """Begin with these graphs, one for each target; the records of each one's leaves."""
        if self._parents.is_parent.any():
            frontier.add_arcs(np.argwhere(self._parents.is_parent)[:, ::-1], self._frontier())
        sets = {
            target: sets_of_leaves(target, graphs[target], self._counter, self.pricing.layout, self._tracks_regions)
            for target in self.targets.tolist()
        }
        where = np.array([target for target, own in sets.items() for _ in own])
        new = self._add(where, 0)
        self.records["cases"][new] = [cases for own in sets.values() for cases, _ in own]
        self._count(new)
        records = iter(new.tolist())
        out: dict[int, list[int]] = {}
        for target, own in sets.items():
            out[target] = [next(records) for _ in own]
            self.regions.update((at, region) for at, (_, region) in zip(out[target], own, strict=True))
            self.nodes[target]["room"] = max(0, min(self.rules.most_leaves - len(own) + 1, self.rules.most_children))
        self._price(new)
        self._link(out)
        self.nodes["n_committed_leaves"] = self.nodes["n_leaves"]
        self._priced = True
        return out

    def _link(self, leaves: dict[int, list[int]]) -> None:
        """Make the list of leaves of each node."""
        for target, own in leaves.items():
            self.records["previous"][own] = [-1, *own[:-1]]
            self.records["next"][own] = [*own[1:], -1]
            node = self.nodes[target]
            node["head"], node["tail"], node["n_leaves"] = own[0], own[-1], len(own)

    def advance(self, n_steps: int, seconds: float) -> int:
        """Take steps until there are so many in all, or for so long, feeding as needed. FULL, FINISHED or MERGED."""
        until = time.perf_counter() + seconds
        if n_steps > len(self._committed):
            self._committed = grown(self._committed, n_steps)
        while True:
            if self._totals[nodes.N_STEPS] + _ROOM_FOR_STEPS > len(self._log):
                self._log = grown(self._log, len(self._log) + _ROOM_FOR_STEPS)
            found = np.empty((3, self.n_records + len(self.nodes)), np.int64)
            status, *wanted = frontier.advance(n_steps, _AHEAD, self._priced, found, self._frontier())
            self._priced = False
            self._release()
            if status != nodes.HUNGRY:
                return status
            if time.perf_counter() > until:
                return nodes.FULL
            self._feed(*(found[row, :n] for row, n in enumerate(wanted)))

    def live(self, target: int) -> list[int]:
        """The records of a node's leaves, oldest first."""
        out, at = [], int(self.nodes[target]["head"])
        while at >= 0:
            out.append(at)
            at = int(self.records[at]["next"])
        return out

    def counts(self, records: list[int]) -> NDArray[np.int64]:
        """The target's counts in each of these leaves of one node."""
        r = int(self.nodes[self.records[records[0]]["target"]]["n_states"])
        counts: Integers = self.histograms.counts[self.records["counts"][records][:, None] + np.arange(r)]
        return counts

    def close(self) -> None:
        """Release all sets of cases; no steps can be taken after this."""
        cases = self.records["cases"][: self.n_records]
        self._counter.release(cases[cases > 0])
        cases[:] = 0

    def delete_parents(self, target: int, variables: list[int]) -> None:
        """Take arcs away: what they ruled out may come back."""
        self.is_parent[target, variables] = 0
        self.nodes[target]["n_parents"] -= len(variables)
        rows = [tuple(np.flatnonzero(row).tolist()) for row in self.is_parent]
        above = dag.ancestor_matrix(rows)
        packed = np.packbits(above, axis=1, bitorder="little")
        self.ancestors[:] = 0
        self.ancestors.view(np.uint8)[:, : packed.shape[1]] = packed
        allowed = self._parents.allowed & ~above.T
        full = self.nodes["n_parents"] >= self.rules.most_parents
        allowed[full] &= self.is_parent[full]
        for child in np.flatnonzero((allowed > self.pricing.allowed).any(axis=1)).tolist():
            if self.nodes[child]["head"] >= 0:
                self._start_afresh(child)
        self.pricing.allowed[:] = allowed
        self._priced = True

    def _start_afresh(self, target: int) -> None:
        """Forget what the node was about to do, and all prices."""
        frontier.roll_back(target, self._frontier())
        own = np.array(self.live(target))
        nodes.drop_children(own, self._frontier())
        if self.nodes[target]["merged"] >= 0:
            nodes.drop_leaves(self.nodes["merged"][[target]], self._frontier())
            self.nodes[target]["merged"] = -1
        self.records["gain"][own] = np.inf
        self.records["room"][own] = -1

    def _frontier(self) -> nodes.Frontier:
        return nodes.Frontier(
            self.records,
            self.nodes,
            self.targets,
            self.histograms.cells,
            self.histograms.free,
            self.histograms.counts,
            self._exponents,
            self.pricing.log_factorial,
            self.pricing.allowed,
            self.ancestors,
            self.is_parent,
            self._log,
            self._committed,
            self._dropped,
            self._totals,
            self.rules,
        )

    def _add(self, targets: Integers, cases: int) -> Integers:
        """Records, with room for a histogram, for new leaves of these targets that hold the sets from `cases` on."""
        first = self.n_records
        self.n_records += len(targets)
        if self.n_records > len(self.records):
            self.records = grown(self.records, self.n_records)
            self._dropped = grown(self._dropped, len(self.records))
        self.histograms.add_leaves(targets, cases, first, self.records)
        self.pricing = self.pricing._replace(counts=self.histograms.counts)
        return np.arange(first, self.n_records)

    def _count(self, leaves: Integers) -> None:
        own = self.records[leaves]
        self._counter.count(
            own["cases"], own["target"].astype(np.int64), own["histogram"], self.histograms.cells, self.pricing.layout
        )

    def _feed(self, stale: Integers, splits: Integers, merges: Integers) -> None:
        """Price again, and count and price ahead, what the nodes need for their next steps."""
        if len(stale):
            nodes.drop_children(stale, self._frontier())
            self._price(stale)
            self._priced = True
        if len(splits):
            self._split(splits)
        if len(merges):
            self._merge(merges)
        if self.histograms.are_plenty:
            nodes.free_spent(np.arange(self._n_spent, self.n_records), self._frontier())
            self._n_spent = self.n_records

    def _split(self, batch: Integers) -> None:
        """Make the children of each leaf's best split."""
        self._recount(batch)
        layout = self.pricing.layout
        plan = children.make_plan(len(batch), *children.measure_splits(batch, self.records, layout))
        possible = self._possible_of_splits(batch)
        n_to_count = children.plan_splits(batch, self.records, self.histograms.cells, layout, possible, plan)
        cases = self._counter.cut(plan.cases, plan.variables, plan.n_children, plan.groups, plan.sizes)
        new = self._add(plan.targets, cases)
        ends = np.cumsum(plan.n_children)
        self.records["first_child"][batch] = new[0] + ends - plan.n_children
        self._count(new[plan.to_count[:n_to_count]])
        if self._tracks_regions:
            self._cut_regions(batch, plan.groups)
        price = self._pricer(new)

        def finish(begin: int, end: int) -> None:
            children.derive_children(batch, begin, end, self.records, plan.sizes, self.histograms.cells, layout)
            price(ends[begin] - plan.n_children[begin], ends[end - 1])

        self._workers.run(finish, 2 * self._price_costs(self.records["target"][batch]))

    def _possible_of_splits(self, batch: Integers) -> NDArray[np.uint8]:
        """For each state of each leaf's best split's variable: can it occur? Empty when all can."""
        if not self._tracks_regions:
            return np.empty(0, np.uint8)
        flags = []
        for at in batch.tolist():
            variable = int(self.records[at]["variable"])
            r = int(self.pricing.layout.n_states[variable])
            possible = self.regions[at].possible(variable, r)
            flags.append(flags_of(possible, r))
        return np.concatenate(flags)

    def _cut_regions(self, batch: Integers, groups: Integers) -> None:
        begin = 0
        for at in batch.tolist():
            leaf = self.records[at]
            variable, n_children = int(leaf["variable"]), int(leaf["n_children"])
            r = int(self.pricing.layout.n_states[variable])
            group = groups[begin : begin + r]
            begin += r
            for child in range(n_children):
                part = set_of(group == child)
                self.regions[int(leaf["first_child"]) + child] = self.regions[at].cut(variable, part, r)
            if leaf["state"] == gains.COMPLETE and n_children < r:
                self.groups[at] = tuple(group.tolist())

    def _merge(self, targets: Integers) -> None:
        """Make each node's best merged leaf."""
        first = self.nodes["merge_leaf"][targets]
        second = self.records["partner"][first]
        made_before = self.nodes["merged"][targets]
        if (made_before >= 0).any():
            nodes.drop_leaves(made_before[made_before >= 0], self._frontier())
        cases = self._counter.join(self.records["cases"][first], self.records["cases"][second])
        new = self._add(targets, cases)
        pairs = np.stack([first, second, new], axis=1)
        has_both = (self.records["histogram"][first] >= 0) & (self.records["histogram"][second] >= 0)
        children.add_histograms(pairs[has_both], self.records, self.histograms.cells, self.pricing.layout)
        self._count(new[~has_both])
        if self._tracks_regions:
            for one, two, both in pairs.tolist():
                self.regions[both] = self.regions[one].join(self.regions[two])
        self._price(new)
        for field, values in (("merged", new), ("merged_first", first), ("merged_second", second)):
            self.nodes[field][targets] = values

    def _price(self, batch: Integers) -> None:
        """Find the best split of each leaf."""
        self._recount(batch)
        self._workers.run(self._pricer(batch), self._price_costs(self.records["target"][batch]))

    def _recount(self, batch: Integers) -> None:
        """Count again the histograms that were given back, as after a step that was rolled back."""
        dropped = batch[self.records["histogram"][batch] < 0]
        if len(dropped):
            self.histograms.take_back(dropped, self.records)
            self._count(dropped)

    def _pricer(self, batch: Integers) -> Callable[[int, int], None]:
        """The function that prices a range of the batch."""
        weights, at = self._weights(batch)
        kernel = gains.price_by_table if isinstance(self._prior, Uniform) else gains.price_by_exponents
        cells = self.histograms.cells
        return lambda begin, end: kernel(batch, begin, end, self.records, cells, weights, at, self.pricing)

    def _price_costs(self, targets: NDArray[np.int32]) -> NDArray[np.float64]:
        layout = self.pricing.layout
        cost = _TABLE_COST if isinstance(self._prior, Uniform) else _EXPONENT_COST
        return cost * layout.n_rows[layout.of_target[targets]] * layout.n_states[targets]

    def _weights(self, batch: Integers) -> tuple[NDArray[Any], Integers]:
        """What the prior has to say of each leaf in the batch, one behind the other, and where each begins."""
        if not self._tracks_regions:
            return np.empty(0, np.uint8), np.zeros(len(batch) + 1, np.int64)
        regions = [self.regions[at] for at in batch.tolist()]
        targets = self.records["target"][batch].tolist()
        if isinstance(self._prior, Uniform):
            rows: list[NDArray[Any]] = [
                self._flags(target, region) for target, region in zip(targets, regions, strict=True)
            ]
        else:
            rows = [
                self._prior.exponents(t, region, self.pricing.layout)
                for t, region in zip(targets, regions, strict=True)
            ]
            self._keep_exponents(batch, targets, rows)
        return np.concatenate(rows), np.cumsum([0, *map(len, rows)])

    def _flags(self, target: int, region: Region) -> NDArray[np.uint8]:
        """Which states of the target's candidates can occur in the region."""
        layout = self.pricing.layout
        flags = np.ones(layout.n_rows[layout.of_target[target]], np.uint8)
        tested = region.tested()
        for variable, rows in zip(tested, layout.rows(target, tested), strict=True):
            r = int(layout.n_states[variable])
            flags[rows] = flags_of(region.possible(variable, r), r)
        return flags

    def _keep_exponents(self, batch: Integers, targets: list[int], rows: list[NDArray[np.float64]]) -> None:
        """The leaves' own exponents, for merges."""
        n_states = self.pricing.layout.n_states
        own = [row[len(row) - n_states[target] :] for target, row in zip(targets, rows, strict=True)]
        sizes = np.array([len(part) for part in own])
        self.records["exponents"][batch] = self._n_exponents + np.cumsum(sizes) - sizes
        end = self._n_exponents + int(sizes.sum())
        if end > len(self._exponents):
            self._exponents = grown(self._exponents, end)
        self._exponents[self._n_exponents : end] = np.concatenate(own)
        self._n_exponents = end

    def _release(self) -> None:
        """Give back the sets of leaves that are not needed any more."""
        gone = self._dropped[: self._totals[nodes.N_DROPPED]]
        if len(gone) == 0:
            return
        cases = self.records["cases"][gone]
        self._counter.release(cases[cases > 0])
        self.records["cases"][gone] = 0
        if self._tracks_regions:
            for at in gone.tolist():
                del self.regions[at]
        self._totals[nodes.N_DROPPED] = 0
