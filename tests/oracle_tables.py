"""A slow and obvious twin of the search with complete tables: every step scores every DAG next to the current one.

A node's score is Equation 5 over all parent configurations, observed or not, times kappa for each parameter. Nothing is
kept from one step to the next, and a cycle is found by walking.
"""

import itertools
import math
from dataclasses import dataclass

from oracle import TIE, Rules, leads_to, log_likelihood


@dataclass(frozen=True)
class Move:
    """A change of one arc."""

    kind: str  # "add", "delete" or "reverse"
    parent: int
    child: int
    gain: float


class TableArcSearchRun:
    """Greedy search over the arcs into some targets."""

    def __init__(
        self, table, *, alpha=("uniform", None), log_kappa=0.0, arc_cost=0.0, rules=None, targets=None, start=()
    ) -> None:
        self.arc_cost = arc_cost
        self.rows = table.codes.T.tolist()
        self.n_states = [variable.n_states for variable in table.variables]
        self.alpha, self.log_kappa, self.rules = alpha, log_kappa, rules or Rules()
        self.targets = list(range(table.n_variables)) if targets is None else list(targets)
        self.fixed = self.rules.arcs_at_start()
        self.arcs = self.fixed | set(start)

    def table(self, target, parents):
        """The target's counts in every configuration of the parents, the last varying fastest."""
        counts = {
            c: [0] * self.n_states[target] for c in itertools.product(*(range(self.n_states[p]) for p in parents))
        }
        for row in self.rows:
            counts[tuple(row[p] for p in parents)][row[target]] += 1
        return list(counts.values())

    def exponent(self, target, n_rows):
        kind, size = self.alpha
        if kind == "uniform":
            return 1.0
        return size / self.n_states[target] / (n_rows if kind == "bdeu" else 1)

    def node_score(self, target, arcs):
        r = self.n_states[target]
        parents = sorted(p for p, c in arcs if c == target)
        counts = self.table(target, parents)
        exponents = [self.exponent(target, len(counts))] * r
        likelihood = math.fsum(log_likelihood(row, exponents) for row in counts)
        return likelihood + len(counts) * (r - 1) * self.log_kappa - len(parents) * self.arc_cost

    def log_score(self, arcs=None):
        arcs = self.arcs if arcs is None else arcs
        return math.fsum(self.node_score(target, arcs) for target in self.targets)

    def may_go(self, arc):
        return arc in self.arcs and arc not in self.fixed and arc[1] in self.targets

    def may_come(self, parent, child, arcs):
        """Whether an arc may be added to these."""
        if parent == child or child not in self.targets or not self.rules.permit(parent, child):
            return False
        own = [p for p, c in arcs if c == child] + [parent]
        if self.rules.max_parents is not None and len(own) > self.rules.max_parents:
            return False
        rows = math.prod(self.n_states[p] for p in own)
        if self.rules.max_leaves is not None and rows > self.rules.max_leaves:
            return False
        return not leads_to(child, parent, arcs)

    def neighbours(self):
        """All moves in the order of ties, with the arcs they lead to."""
        pairs = [(parent, child) for child in self.targets for parent in range(len(self.n_states))]
        for parent, child in pairs:
            if (parent, child) not in self.arcs and self.may_come(parent, child, self.arcs):
                yield "add", parent, child, self.arcs | {(parent, child)}
        for arc in pairs:
            if self.may_go(arc):
                yield "delete", *arc, self.arcs - {arc}
        for parent, child in pairs:
            without = self.arcs - {(parent, child)}
            if self.may_go((parent, child)) and self.may_come(child, parent, without):
                yield "reverse", parent, child, without | {(child, parent)}

    def step(self):
        """Take the best move; None when none gains."""
        before, best, to = {t: self.node_score(t, self.arcs) for t in self.targets}, None, None
        for kind, parent, child, arcs in self.neighbours():
            changed = {child, parent} if kind == "reverse" else {child}
            gain = math.fsum(self.node_score(t, arcs) - before[t] for t in changed)
            if gain > (0.0 if best is None else best.gain) + TIE:
                best, to = Move(kind, parent, child, gain), arcs
        if best is not None:
            self.arcs = to
        return best
