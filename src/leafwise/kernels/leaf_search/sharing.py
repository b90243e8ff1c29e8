"""Relabelled merges and ties: repeatedly join the pair of groups of leaves that gains most.

A group is stored in the place of its first leaf. Every pair belongs to the group that was made later, which remembers
its best partner. Partners can only disappear, so the remembered gain stays an upper bound until it is recomputed.

Partners are found by branch and bound, in trees of boxes around the shares q = w / W of the weights w (counts and
exponents, W in all). For a given b, log p(b given a) = Σ rise(w, b) - rise(W, B), where rise(x, y) = log Γ(x + y) - log
Γ(x). For a given W it is concave in q, and therefore bounded by its tangent at the centre of the box. If W grows by a
factor while q is constant, it grows by at most the log of the factor times a bound on its derivative x ψ(x + y) - x
ψ(x) = x log(1 + y / x) + D, and Σ x log(1 + b / x) <= W log(1 + B / W), by Jensen's inequality. D is positive. As ψ(x)
is between log x - 1/2x - 1/12x² and the same without its last term, D <= y / 2(x + y) + 1/12x; as ψ'(x) < 1/x + 1/2x² +
1/6x³, D <= y / 2x + y / 6x²; and D <= 1. The smallest of these is taken, at the smallest x.
"""

import math
from typing import NamedTuple

import numpy as np

from leafwise.kernels.compiling.jit import bare, jit, part
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.scoring.dirichlet import TIE, log_gamma

RELABELLED, TIED = 0, 1  # kinds of pairs, and views of the groups: slots sorted by weight, slots by label
NOBODY = -1  # no group
# Indices in Groups.totals: groups that were ever made; that have grown since the trees were built; steps taken.
N_MADE, N_MOVED, N_STEPS = 0, 1, 2
_BUCKET = 8  # most groups in a leaf of a tree
_SLACK = 1e-7  # added to bounds: more than rounding errors
_MOVED, _MOVED_SHARE = 64, 64  # trees are rebuilt after 64 + 1/64 of all groups have grown


class Groups(NamedTuple):
    """All leaves as groups, by number; slots are in the order of labels of a group's first leaf."""

    counts: Array  # (n, slots): totals of all members
    exponents: Array  # (n, slots)
    sizes: Array  # number of slots in use
    variables: Array  # variable of the first leaf
    labels: Array  # number of the set of labels that the first leaf is over
    places: Array  # (leaf, state in order of labels): the slot
    next_member: Array  # linked list of the leaves of a group; NOBODY: end
    last_member: Array
    numbers: Array  # serial number of the group; NOBODY: it is part of another
    n_same: Array  # members of the first leaf's variable, without the first leaf
    pairings: Array  # charged for those of them with other states or slots than the first leaf
    n_far: Array  # members of other variables
    partner: Array  # best partner among groups made before; NOBODY: none
    partner_number: Array  # serial number of the partner when it was chosen
    gains: Array  # gain of joining the partner: an upper bound, if the partner has changed
    totals: Array  # by N_MADE, N_MOVED, N_STEPS
    log: Array  # by step: first leaves of both groups, then for each slot of the second that of the first
    log_gains: Array  # by step


class SharingCosts(NamedTuple):
    """What the structure prior refunds and charges for sharing."""

    back: float  # refunded for the parameters
    shared: float  # charged for each leaf that is shared
    chosen: Array  # by variable: charged for the choice of partner, if both leaves belong to the variable
    permuted: float  # then also charged for a permutation of states other than the identity
    paired: float  # or for the pairing of states, if the leaves are over different states
    tied: Array  # by set of labels: charged for the choice of partner, if it belongs to another variable
    relabels: bool  # whether relabelled pairs are allowed
    ties: bool  # whether tied pairs are allowed
    adds: bool  # whether exponents add


class Trees(NamedTuple):
    """Trees of boxes around groups, for each view and class; F denotes Σ log Γ - log Γ Σ."""

    members: Array  # (views, n): groups, in the order of the trees
    places: Array  # (views, n): position of each group in `members`
    weights: Array  # (views, n, slots): counts plus exponents, in the order of the view
    orders: Array  # (n, slots): the slots by weight
    priors: Array  # by group: F of its exponents
    values: Array  # by group: log p, which is F of its weights minus F of its exponents
    in_tree: Array  # (views, n)
    classes: Array  # (views, n): the tree that a group is in
    roots: Array  # (views, classes): root node; NOBODY: no tree
    begins: Array  # by node: its members are members[view, begin:end]
    ends: Array
    children: Array  # by node: the first of two adjacent children; NOBODY: a leaf of the tree
    shares: Array  # (nodes, slots): centre of the box; least shares while it is being built
    half_widths: Array  # (nodes, slots): half the width of the box; largest shares while it is being built
    least_total: Array  # by node: smallest total weight
    most_total: Array  # by node: largest total weight
    log_gammas: Array  # (nodes, slots): log Γ of the central weights at the smallest total
    digammas: Array  # (nodes, slots): ψ of the same
    total_log_gamma: Array  # by node: log Γ of the smallest total
    least_exponents: Array  # (nodes, slots)
    most_exponents: Array  # by node: largest sum of exponents
    constant: Array  # by node: largest F of exponents
    refunds: Array  # by node: largest `_refund`


@bare
def _rise(x: float, y: float) -> float:
    return log_gamma(x + y) - log_gamma(x) if y > 0.0 else 0.0


@bare
def _digamma(x: float) -> float:
    value = 0.0
    while x < 6.0:
        value -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    return value + math.log(x) - 0.5 / x - y * (1.0 / 12.0 - y * (1.0 / 120.0 - y * (1.0 / 252.0 - y / 240.0)))


@bare
def _of_exponents(group: Int, groups: Groups) -> float:
    """Return F of a group's exponents: Σ log Γ - log Γ Σ."""
    value, total = 0.0, 0.0
    for k in range(groups.sizes[group]):
        value += log_gamma(groups.exponents[group, k])
        total += groups.exponents[group, k]
    return value - log_gamma(total)


@bare
def _of_weights(group: Int, groups: Groups) -> float:
    """Return F of a group's weights (counts plus exponents)."""
    value, total = 0.0, 0.0
    for k in range(groups.sizes[group]):
        weight = groups.counts[group, k] + groups.exponents[group, k]
        value += log_gamma(weight)
        total += weight
    return value - log_gamma(total)


@bare
def _likelihood_gain(a: Int, b: Int, sorts: bool, groups: Groups, trees: Trees, adds: bool) -> float:
    """Return log p of both groups together minus log p of each; slots are paired as they are, or in order of weight."""
    value, total, prior, prior_total = 0.0, 0.0, 0.0, 0.0
    for k in range(groups.sizes[a]):
        i = trees.orders[a, k] if sorts else k
        j = trees.orders[b, k] if sorts else k
        exponent = groups.exponents[a, i]
        if adds:
            exponent += groups.exponents[b, j]
            prior += log_gamma(exponent)
            prior_total += exponent
        weight = groups.counts[a, i] + groups.counts[b, j] + exponent
        value += log_gamma(weight)
        total += weight
    prior = prior - log_gamma(prior_total) if adds else trees.priors[a]
    return value - log_gamma(total) - prior - trees.values[a] - trees.values[b]


@bare
def _is_symmetric(group: Int, groups: Groups) -> bool:
    first = groups.exponents[group, 0]
    for k in range(1, groups.sizes[group]):
        if abs(groups.exponents[group, k] - first) > 1e-12:
            return False
    return True


@bare
def _slot_after(a: Int, b: Int, slot: Int, sorts: bool, groups: Groups, trees: Trees) -> Int:
    """Return the slot of a that a slot of b is paired with."""
    if not sorts:
        return slot
    for k in range(groups.sizes[a]):
        if trees.orders[b, k] == slot:
            return trees.orders[a, k]
    return slot


@bare
def _pairings_after(a: Int, b: Int, sorts: bool, groups: Groups, trees: Trees, costs: SharingCosts) -> float:
    """Return the charge for members of b that have a's variable, but other states or slots than the first leaf of a."""
    paid, leaf = 0.0, b
    while leaf != NOBODY:
        if groups.variables[leaf] == groups.variables[a]:
            if groups.labels[leaf] != groups.labels[a]:
                paid += costs.paired
            else:
                for k in range(groups.sizes[a]):
                    if _slot_after(a, b, groups.places[leaf, k], sorts, groups, trees) != k:
                        paid += costs.permuted
                        break
        leaf = groups.next_member[leaf]
    return paid


@bare
def _cost_of_joining(a: Int, b: Int, sorts: bool, groups: Groups, trees: Trees, costs: SharingCosts) -> float:
    """Return the gain in the structure prior if b becomes part of a."""
    back, tied = costs.back - costs.shared, costs.tied[groups.labels[a]]
    if groups.variables[a] != groups.variables[b]:
        chosen = costs.chosen[groups.variables[b]]
        return back - tied - groups.n_same[b] * (tied - chosen) + groups.pairings[b]
    moved = groups.n_far[b] * (tied - costs.tied[groups.labels[b]]) + costs.chosen[groups.variables[a]]
    if costs.paired == 0.0:
        return back - moved
    return back - moved - (_pairings_after(a, b, sorts, groups, trees, costs) - groups.pairings[b])


@bare
def gain_of(one: Int, other: Int, groups: Groups, trees: Trees, costs: SharingCosts) -> tuple[float, bool]:
    """Return the gain from joining two groups, and whether their slots are paired in order of weight for that."""
    a, b = min(one, other), max(one, other)
    if groups.variables[a] != groups.variables[b]:
        likelihood = _likelihood_gain(a, b, False, groups, trees, costs.adds)
        return likelihood + _cost_of_joining(a, b, False, groups, trees, costs), False
    likelihood = _likelihood_gain(a, b, True, groups, trees, costs.adds)
    best, sorts = likelihood + _cost_of_joining(a, b, True, groups, trees, costs), True
    if groups.labels[a] == groups.labels[b] and _is_symmetric(a, groups) and _is_symmetric(b, groups):
        likelihood = _likelihood_gain(a, b, False, groups, trees, costs.adds)
        gain = likelihood + _cost_of_joining(a, b, False, groups, trees, costs)
        if gain > best - TIE:
            best, sorts = gain, False
    return best, sorts


# Trees


@bare
def _set_weights(group: Int, groups: Groups, trees: Trees) -> None:
    """Compute the weights of a group in the order of each view, and its F and log p."""
    size = groups.sizes[group]
    for k in range(size):
        weight = groups.counts[group, k] + groups.exponents[group, k]
        trees.weights[TIED, group, k] = weight
        at = k
        while at > 0 and trees.weights[RELABELLED, group, at - 1] > weight:
            trees.weights[RELABELLED, group, at] = trees.weights[RELABELLED, group, at - 1]
            trees.orders[group, at] = trees.orders[group, at - 1]
            at -= 1
        trees.weights[RELABELLED, group, at] = weight
        trees.orders[group, at] = k
    trees.priors[group] = _of_exponents(group, groups)
    trees.values[group] = _of_weights(group, groups) - trees.priors[group]


@bare
def _refund(view: Int, group: Int, groups: Groups, costs: SharingCosts) -> float:
    """Return the most by which the cost of joining can fall because of the members that a group already has."""
    tied = costs.tied[groups.labels[group]]
    if view == RELABELLED:
        return groups.pairings[group] + groups.n_far[group] * tied
    return groups.pairings[group] + groups.n_same[group] * max(costs.chosen[groups.variables[group]] - tied, 0.0)


@bare
def _widen(node: Int, view: Int, group: Int, groups: Groups, trees: Trees, costs: SharingCosts) -> None:
    """Extend a box, stored as smallest and largest shares, to contain a group."""
    least, most, total, exponents = trees.shares[node], trees.half_widths[node], 0.0, 0.0
    for k in range(groups.sizes[group]):
        total += trees.weights[view, group, k]
    for k in range(groups.sizes[group]):
        share, slot = trees.weights[view, group, k] / total, k if view == TIED else trees.orders[group, k]
        exponent = groups.exponents[group, slot]
        least[k], most[k] = min(least[k], share), max(most[k], share)
        trees.least_exponents[node, k] = min(trees.least_exponents[node, k], exponent)
        exponents += exponent
    trees.least_total[node] = min(trees.least_total[node], total)
    trees.most_total[node] = max(trees.most_total[node], total)
    trees.most_exponents[node] = max(trees.most_exponents[node], exponents)
    trees.constant[node] = max(trees.constant[node], trees.priors[group])
    trees.refunds[node] = max(trees.refunds[node], _refund(view, group, groups, costs))


@bare
def _close_box(node: Int, trees: Trees) -> None:
    """Convert smallest and largest shares to centre and half width, and compute what bounds need of these."""
    least, most = trees.shares[node], trees.half_widths[node]
    trees.total_log_gamma[node] = log_gamma(trees.least_total[node])
    for k in range(len(least)):
        least[k], most[k] = (least[k] + most[k]) / 2, (most[k] - least[k]) / 2
        weight = least[k] * trees.least_total[node]
        trees.log_gammas[node, k], trees.digammas[node, k] = log_gamma(weight), _digamma(weight)


@bare
def _set_box(node: Int, view: Int, groups: Groups, trees: Trees, costs: SharingCosts) -> None:
    least, most = trees.shares[node], trees.half_widths[node]
    for k in range(len(least)):
        least[k], most[k], trees.least_exponents[node, k] = np.inf, 0.0, np.inf
    trees.least_total[node], trees.most_total[node], trees.most_exponents[node] = np.inf, 0.0, 0.0
    trees.constant[node], trees.refunds[node] = -np.inf, 0.0
    for at in range(trees.begins[node], trees.ends[node]):
        _widen(node, view, trees.members[view, at], groups, trees, costs)
    _close_box(node, trees)


@bare
def _grow(group: Int, view: Int, groups: Groups, trees: Trees, costs: SharingCosts) -> None:
    """Extend all boxes on the path to a group that has grown in place; it has not moved far."""
    node, place = trees.roots[view, trees.classes[view, group]], trees.places[view, group]
    while node != NOBODY:
        least, most = trees.shares[node], trees.half_widths[node]
        for k in range(len(least)):
            least[k], most[k] = least[k] - most[k], least[k] + most[k]
        _widen(node, view, group, groups, trees, costs)
        _close_box(node, trees)
        child = trees.children[node]
        node = child + (place >= trees.begins[child + 1]) if child != NOBODY else NOBODY


@part
def _cut(node: Int, view: Int, groups: Groups, trees: Trees) -> None:
    """Sort the members of a node along the widest dimension of its box: the share of a slot, or the total weight."""
    begin, end = trees.begins[node], trees.ends[node]
    members = trees.members[view, begin:end]
    size = groups.sizes[members[0]]
    widest, slot = math.log(trees.most_total[node] / trees.least_total[node]), size
    for k in range(size):
        middle, half = trees.shares[node, k], trees.half_widths[node, k]
        width = (math.sqrt(middle + half) - math.sqrt(max(middle - half, 0.0))) * math.sqrt(trees.least_total[node])
        if width > widest:
            widest, slot = width, k
    keys = np.zeros(len(members))
    for at in range(len(members)):
        total = trees.weights[view, members[at], :size].sum()
        keys[at] = total if slot == size else trees.weights[view, members[at], slot] / total
    order = np.argsort(keys, kind="mergesort")
    members[:] = members.copy()[order]


@jit
def build_trees(groups: Groups, trees: Trees, costs: SharingCosts) -> None:
    """Rebuild the trees of all groups."""
    n, n_nodes = len(groups.sizes), 0
    trees.in_tree[:], trees.roots[:] = 0, NOBODY
    groups.totals[N_MOVED] = 0
    for group in range(n):
        if groups.numbers[group] != NOBODY:
            _set_weights(group, groups, trees)
    for view in range(2):
        if not (costs.ties if view == TIED else costs.relabels):
            continue
        there = np.flatnonzero(groups.numbers != NOBODY)
        there = there[np.argsort(trees.classes[view][there], kind="mergesort")]
        trees.members[view, : len(there)] = there
        trees.in_tree[view][there] = 1
        own = trees.classes[view][there]
        begin = 0
        while begin < len(there):
            end = begin
            while end < len(there) and own[end] == own[begin]:
                end += 1
            trees.roots[view, own[begin]] = n_nodes
            trees.begins[n_nodes], trees.ends[n_nodes] = begin, end
            todo, n_nodes = n_nodes, n_nodes + 1
            while todo < n_nodes:
                _set_box(todo, view, groups, trees, costs)
                trees.children[todo] = NOBODY
                first, last = trees.begins[todo], trees.ends[todo]
                if last - first > _BUCKET:
                    _cut(todo, view, groups, trees)
                    middle = (first + last) // 2
                    trees.children[todo] = n_nodes
                    trees.begins[n_nodes], trees.ends[n_nodes] = first, middle
                    trees.begins[n_nodes + 1], trees.ends[n_nodes + 1] = middle, last
                    n_nodes += 2
                todo += 1
            begin = end
        for at in range(len(there)):
            trees.places[view, trees.members[view, at]] = at


@bare
def _bound(
    node: Int, view: Int, b: Int, own: float, slopes: Array, groups: Groups, trees: Trees, costs: SharingCosts
) -> float:
    """Return an upper bound on the gain of group b with any group in a box.

    `own` is F of b's weights; `slopes` is scratch memory.
    """
    size, weight = groups.sizes[b], trees.least_total[node]
    value, total, most, exponents, prior, steep, growth = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    outside = 1.0
    for k in range(size):
        slot = k if view == TIED else trees.orders[b, k]
        count, exponent, least = groups.counts[b, slot], groups.exponents[b, slot], trees.least_exponents[node, k]
        more = count + (exponent if costs.adds else max(exponent - least, 0.0))
        share = trees.shares[node, k]
        slopes[k] = 0.0
        if more > 0.0:
            value += log_gamma(share * weight + more) - trees.log_gammas[node, k]
            slopes[k] = weight * (_digamma(share * weight + more) - trees.digammas[node, k])
            least_weight = max((share - trees.half_widths[node, k]) * weight, 1e-9)
            z = 1.0 / least_weight
            growth += min(0.5 * more / (least_weight + more) + z / 12.0, more * z * (0.5 + z / 6.0), 1.0)
        steep += share * slopes[k]
        outside -= share
        most += more
        total += count
        exponents += exponent
        if costs.adds:
            prior += _rise(least, exponent)
    steep /= 1.0 - outside
    value += steep * outside
    for k in range(size):
        value += abs(slopes[k] - steep) * trees.half_widths[node, k]
    if costs.adds:
        total += exponents
        constant = trees.priors[b] - prior + _rise(trees.most_exponents[node], exponents)
    else:
        total = max(total + min(exponents - trees.most_exponents[node], 0.0), 0.0)
        constant = max(trees.priors[b], trees.constant[node])
    value -= log_gamma(weight + total) - trees.total_log_gamma[node]
    growth += most - total
    value += growth * math.log(trees.most_total[node] / weight)
    cost = costs.back - costs.shared
    cost -= costs.tied[groups.labels[b]] if view == TIED else costs.chosen[groups.variables[b]]
    return value - own + constant + cost + max(trees.refunds[node], _refund(view, b, groups, costs)) + _SLACK


@bare
def _offer(x: Int, y: Int, view: Int, groups: Groups, trees: Trees, costs: SharingCosts) -> None:
    """Make y the partner of x if it is better than the present one."""
    if y == x or groups.numbers[y] == NOBODY or groups.numbers[y] > groups.numbers[x]:
        return
    if (groups.variables[x] == groups.variables[y]) != (view == RELABELLED):
        return
    gain, _ = gain_of(x, y, groups, trees, costs)
    best, present = groups.gains[x], groups.partner[x]
    if gain > best + TIE or (gain > best - TIE and present != NOBODY and _is_before(x, y, x, present, groups)):
        groups.gains[x], groups.partner[x], groups.partner_number[x] = gain, y, groups.numbers[y]


@bare
def _is_before(a: Int, b: Int, c: Int, d: Int, groups: Groups) -> bool:
    """Return whether pair (a, b) precedes (c, d) in a tie: relabelled before tied, then the older leaves."""
    one = groups.variables[a] != groups.variables[b], min(a, b), max(a, b)
    return one < (groups.variables[c] != groups.variables[d], min(c, d), max(c, d))


@part
def _look_for(x: Int, groups: Groups, trees: Trees, costs: SharingCosts) -> None:
    """Find the best partner of a group among those made before."""
    groups.gains[x], groups.partner[x] = 0.0, NOBODY
    own, stack = trees.values[x] + trees.priors[x], np.empty(128, np.int64)
    bounds, slopes = np.empty(128), np.empty(groups.counts.shape[1])
    for view in range(2):
        if not (costs.ties if view == TIED else costs.relabels):
            continue
        root, depth = trees.roots[view, trees.classes[view, x]], 0
        if root != NOBODY:
            stack[0], bounds[0], depth = root, np.inf, 1
        while depth:
            depth -= 1
            node = stack[depth]
            if bounds[depth] < groups.gains[x] - TIE:
                continue
            child = trees.children[node]
            if child == NOBODY:
                for at in range(trees.begins[node], trees.ends[node]):
                    y = trees.members[view, at]
                    if trees.in_tree[view, y]:
                        _offer(x, y, view, groups, trees, costs)
                continue
            first = _bound(child, view, x, own, slopes, groups, trees, costs)
            second = _bound(child + 1, view, x, own, slopes, groups, trees, costs)
            better = child if first >= second else child + 1
            stack[depth], bounds[depth] = 2 * child + 1 - better, min(first, second)
            stack[depth + 1], bounds[depth + 1] = better, max(first, second)
            depth += 2
    if groups.partner[x] == NOBODY:
        groups.gains[x] = -np.inf


@jit
def look_for_all(begin: Int, end: Int, groups: Groups, trees: Trees, costs: SharingCosts) -> None:
    """Find the best partners of groups begin to end - 1."""
    for x in range(begin, end):
        if groups.numbers[x] != NOBODY:
            _look_for(x, groups, trees, costs)


# Steps


@bare
def _join(a: Int, b: Int, sorts: bool, groups: Groups, trees: Trees, costs: SharingCosts) -> None:
    """Make b part of a."""
    if groups.variables[a] == groups.variables[b]:
        groups.pairings[a] += _pairings_after(a, b, sorts, groups, trees, costs)
    leaf = b
    while leaf != NOBODY:
        for k in range(groups.sizes[a]):
            groups.places[leaf, k] = _slot_after(a, b, groups.places[leaf, k], sorts, groups, trees)
        groups.n_same[a] += groups.variables[leaf] == groups.variables[a]
        groups.n_far[a] += groups.variables[leaf] != groups.variables[a]
        leaf = groups.next_member[leaf]
    for k in range(groups.sizes[a]):
        slot = _slot_after(a, b, k, sorts, groups, trees)
        groups.counts[a, slot] += groups.counts[b, k]
        if costs.adds:
            groups.exponents[a, slot] += groups.exponents[b, k]
    groups.next_member[groups.last_member[a]] = b
    groups.last_member[a] = groups.last_member[b]
    groups.numbers[b], groups.gains[b] = NOBODY, -np.inf
    groups.numbers[a] = groups.totals[N_MADE]
    groups.totals[N_MADE] += 1


@part
def _best(groups: Groups, tops: Array, width: Int) -> int:
    """Return the group whose remembered pair gains most; of ties, the first pair."""
    best = NOBODY
    top = tops.max()
    if top <= TIE:
        return best
    for block in range(len(tops)):
        if tops[block] > top - TIE:
            for x in range(block * width, min((block + 1) * width, len(groups.gains))):
                if groups.gains[x] > top - TIE and (
                    best == NOBODY or _is_before(x, groups.partner[x], best, groups.partner[best], groups)
                ):
                    best = x
    return best


@part
def _note(x: Int, groups: Groups, tops: Array, width: Int) -> None:
    """Update the maximum of the block of a group whose gain has changed."""
    begin = x // width * width
    tops[x // width] = groups.gains[begin : begin + width].max()


@jit
def share(most: Int, groups: Groups, trees: Trees, costs: SharingCosts) -> bool:
    """Take steps until there are `most` in the log; return whether there may be more."""
    width = max(int(np.sqrt(len(groups.gains))), 1)
    n_blocks = (len(groups.gains) + width - 1) // width
    tops = np.empty(n_blocks)
    for block in range(n_blocks):
        tops[block] = groups.gains[block * width : (block + 1) * width].max()
    while groups.totals[N_STEPS] < most:
        x = _best(groups, tops, width)
        if x == NOBODY:
            return False
        y = groups.partner[x]
        if groups.numbers[y] != groups.partner_number[x]:
            _look_for(x, groups, trees, costs)
            _note(x, groups, tops, width)
            continue
        a, b = min(x, y), max(x, y)
        gain, sorts = gain_of(a, b, groups, trees, costs)
        step = groups.totals[N_STEPS]
        groups.log[step, 0], groups.log[step, 1], groups.log_gains[step] = a, b, gain
        for k in range(groups.sizes[a]):
            groups.log[step, 2 + k] = _slot_after(a, b, k, sorts, groups, trees)
        groups.totals[N_STEPS] = step + 1
        _join(a, b, sorts, groups, trees, costs)
        _set_weights(a, groups, trees)
        for view in range(2):
            trees.in_tree[view, b] = 0
            if costs.ties if view == TIED else costs.relabels:
                _grow(a, view, groups, trees, costs)
        groups.totals[N_MOVED] += 1
        if groups.totals[N_MOVED] > _MOVED + len(groups.sizes) // _MOVED_SHARE:
            build_trees(groups, trees, costs)
        _look_for(a, groups, trees, costs)
        _note(a, groups, tops, width)
        _note(b, groups, tops, width)
    return True
