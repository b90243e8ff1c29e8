"""Relabelled merges and ties: of all pairs of groups of leaves the one that gains most, again and again.

A group has the place of its first leaf. Every pair belongs to the group that was made later, which remembers its best
partner; partners only ever go, so what it remembers stays an upper bound until it is asked for again.

Partners are found in trees of boxes around the shares q = w / W of the weights w (counts and exponents, W in all). With
b known, log p(b given a) = Σ rise(w, b) - rise(W, B), where rise(x, y) = log Γ(x + y) - log Γ(x). For a given W it is
concave in q, so below its tangent in the middle of the box. And where W grows by a factor and q stays, it grows by
little times the log of the factor: x ψ(x + y) - x ψ(x) is x log(1 + y / x) and some D more, and Σ x log(1 + b / x) is
at most W log(1 + B / W), by Jensen's inequality. D is above 0. As ψ(x) is between log x - 1/2x - 1/12x² and the same
without its last term, D is at most y / 2(x + y) + 1/12x; as ψ'(x) is below 1/x + 1/2x² + 1/6x³, it is at most
y / 2x + y / 6x²; and at most 1. The least of these is taken where x is the least.
"""

import math
from typing import NamedTuple

import numpy as np

from leafwise.kernels.compiling.jit import bare, jit, part
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.scoring.dirichlet import TIE, log_gamma

RELABELLED, TIED = 0, 1  # kinds of pairs, and views of the groups: slots sorted by weight, slots by label
NOBODY = -1
N_MADE, N_MOVED, N_STEPS = 0, 1, 2  # groups that were ever made, that have grown in their trees; steps taken
_BUCKET = 8  # groups at the end of a tree
_SLACK = 1e-7  # of bounds: more than is lost to rounding
_MOVED, _MOVED_SHARE = 64, 64  # so many, and this part of all, grow before trees are made anew


class Groups(NamedTuple):
    """All leaves as groups, by number; slots are in the order of labels of a group's first leaf."""

    counts: Array  # (n, slots), of all members
    exponents: Array
    sizes: Array  # slots that there are
    variables: Array  # of the first leaf
    labels: Array  # which set of labels the first leaf is over
    places: Array  # for each leaf and state in order of labels: the slot
    next_member: Array
    last_member: Array
    numbers: Array  # when a group was made; NOBODY: it is part of another
    n_same: Array  # members of the first one's variable, but for the first
    pairings: Array  # ... and what these pay for other states, or other slots
    n_far: Array  # members of other variables
    partner: Array  # the best of those made before, and
    partner_number: Array  # ... when it was made
    gains: Array  # what that gains: an upper bound, if the partner is gone
    totals: Array  # by N_MADE, N_MOVED, N_STEPS
    log: Array  # of each step the first leaves of both groups, and for each slot of the second that of the first
    log_gains: Array


class SharingCosts(NamedTuple):
    """What sharing gives back and costs."""

    back: float  # for the parameters
    shared: float  # for each leaf that is shared
    chosen: Array  # by variable: for the partner, if both leaves are its own
    permuted: float  # ... and for a permutation of states, but for the identity,
    paired: float  # ... or for how other states are paired
    tied: Array  # by set of labels: for the partner, if it is of another variable
    relabels: bool  # which kinds of pairs there are
    ties: bool
    adds: bool  # whether exponents add


class Trees(NamedTuple):
    """Boxes around groups, for each view: nodes from roots[view, class] on."""

    members: Array  # (views, n): groups, in the order of the trees,
    places: Array  # ... and where each is
    weights: Array  # (views, n, slots): counts and exponents, in the order of the view
    orders: Array  # (n, slots): the slots by weight
    priors: Array  # of a group: F of its exponents,
    values: Array  # ... and log p, which is F of its weights less that
    in_tree: Array  # (views, n)
    classes: Array  # (views, n): which tree a group is in
    roots: Array  # (views, classes)
    begins: Array  # of nodes, by number: members from begin to end, and children
    ends: Array
    children: Array
    shares: Array  # (nodes, slots): in the middle of the box
    half_widths: Array
    least_total: Array
    most_total: Array
    log_gammas: Array  # (nodes, slots): of the shares in the middle at the least weight,
    digammas: Array
    total_log_gamma: Array  # ... and of that weight
    least_exponents: Array
    most_exponents: Array
    constant: Array  # the largest F of exponents
    refunds: Array


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
    """Σ log Γ - log Γ Σ."""
    value, total = 0.0, 0.0
    for k in range(groups.sizes[group]):
        value += log_gamma(groups.exponents[group, k])
        total += groups.exponents[group, k]
    return value - log_gamma(total)


@bare
def _of_weights(group: Int, groups: Groups) -> float:
    """The same of counts and exponents."""
    value, total = 0.0, 0.0
    for k in range(groups.sizes[group]):
        weight = groups.counts[group, k] + groups.exponents[group, k]
        value += log_gamma(weight)
        total += weight
    return value - log_gamma(total)


@bare
def _likelihood_gain(a: Int, b: Int, sorts: bool, groups: Groups, trees: Trees, adds: bool) -> float:
    """log p of both together less those of each; slots are paired as they are, or sorted."""
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
    """The slot of a that a slot of b is paired with."""
    if not sorts:
        return slot
    for k in range(groups.sizes[a]):
        if trees.orders[b, k] == slot:
            return trees.orders[a, k]
    return slot


@bare
def _pairings_after(a: Int, b: Int, sorts: bool, groups: Groups, trees: Trees, costs: SharingCosts) -> float:
    """What members of b, of its first one's variable, will pay for other states than the first leaf of a in a slot."""
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
    """What the structure prior gives for b becoming part of a."""
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
    """What two groups gain as one, and whether their slots are sorted for that."""
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
    """The weights of a group as the views have them."""
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
    """The most that the cost of joining may fall by what is in a group already."""
    tied = costs.tied[groups.labels[group]]
    if view == RELABELLED:
        return groups.pairings[group] + groups.n_far[group] * tied
    return groups.pairings[group] + groups.n_same[group] * max(costs.chosen[groups.variables[group]] - tied, 0.0)


@bare
def _widen(node: Int, view: Int, group: Int, groups: Groups, trees: Trees, costs: SharingCosts) -> None:
    """Make a box hold a group, too; its least and most shares are in the place of the middle and of half the width."""
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
    """From least and most shares to the middle and half the width, and what bounds need of these."""
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
    """Make all boxes hold a group that has grown where it was: it is not far from there."""
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
    """Sort the members of a node by what makes the box widest: the share of a slot, or the weight in all."""
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
    """Trees of all groups that there are, anew."""
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
    """At least what group b gains with anyone in a box; `own` is F of its weights, `slopes` is room to work in."""
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
    """See whether y is a better partner for x."""
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
    """Whether the first of two pairs comes first where they gain the same: relabelled, then the older leaves."""
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
    """Find the best partners of some groups."""
    for x in range(begin, end):
        if groups.numbers[x] != NOBODY:
            _look_for(x, groups, trees, costs)


# Steps


@bare
def _join(a: Int, b: Int, sorts: bool, groups: Groups, trees: Trees, costs: SharingCosts) -> None:
    """Make b a part of a."""
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
    """The group that remembers the pair that gains most; the first of those that gain as much."""
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
    """What is the most in the block of a group whose gain has changed."""
    begin = x // width * width
    tops[x // width] = groups.gains[begin : begin + width].max()


@jit
def share(most: Int, groups: Groups, trees: Trees, costs: SharingCosts) -> bool:
    """Take steps until there are so many in the log; whether there may be more."""
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
