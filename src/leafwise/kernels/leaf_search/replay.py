"""Replay of the log of a search, to build decision graphs.

Every leaf that ever existed has a number (its place in the search's records), and so has every test of the graphs that
the search began with; here the latter come first. A split turns a leaf into a test whose children are the new leaves; a
merge, or the deletion of a parent, makes one number an alias of another (`stands_for`). A leaf that is parted becomes a
node of a special kind, OWN, above the graphs of its pieces: the switch, the part (or the rest once more, if the part is
a single state) and the rest.

Arrays of numbers of states have two additional entries at the end, for indices OWN and _LEAF: the number of children of
such a node.
"""

from typing import Any, NamedTuple

import numpy as np

from leafwise.kernels.compiling.jit import bare, inlined, jit
from leafwise.kernels.compiling.references import refer
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.leaf_search.regions import has_state
from leafwise.kernels.leaf_search.splits import child_of
from leafwise.kernels.leaf_search.state import STEP
from leafwise.kernels.leaf_search.weights import log_likelihoods_of

_LEAF, OWN = -1, -2
N_PIECES = 3


class Start(NamedTuple):
    """The graphs that a search began with."""

    numbers: Array  # numbers of the nodes, graph after graph
    targets: Array  # by node: its target
    tests: Array  # by test: the variable
    first_kids: Array  # by test: index in `kids` of the first child
    kids: Array  # numbers of the children, one per state


class Replayed(NamedTuple):
    """The graphs of all targets: target t has the nodes from begin[t] to begin[t + 1] - 1."""

    begin: Array
    tests: Array  # by node: a variable; _LEAF (-1): a leaf; OWN: a parted leaf
    records: Array  # by node: its record in the search; negative for tests of the initial graphs
    first_kids: Array  # by node, and one more: index in `kids` of its first child
    kids: Array  # children, as positions within their graph


class Charged(NamedTuple):
    """What `Choices` charges for, by target: a row for graphs with all tests, and one for the graphs as drawn."""

    n_tests: Array
    n_tested: Array
    ways: Array
    n_shared: Array


class _Made(NamedTuple):
    """Everything that was ever made, by number."""

    tests: Array
    first_kids: Array
    stands_for: Array  # the number that replaces it; -1: none
    kids: Array
    places: Array  # 0: not known to be needed; otherwise 1 + the position in the graph
    table: Array  # hash table of tests


@bare
def is_one(mask: Int) -> bool:
    """Return whether a mask contains a single state."""
    return mask & (mask - 1) == 0


@bare
def _resolve(number: int, stands_for: Array) -> int:
    while stands_for[number] >= 0:
        number = stands_for[number]
    return number


@inlined
def _sort(start: Start, steps: Array, begin: Array, order: Array) -> None:
    """Write the numbers of each target's nodes, in the order they were made; those of a target begin at begin[target].

    On entry `begin` contains zeros, two more than there are targets.
    """
    for k in range(start.targets.shape[0]):
        begin[start.targets[k] + 2] += 1
    for k in range(steps.shape[0]):
        begin[steps[k]["target"] + 2] += steps[k]["n_new"] + (steps[k]["part"] != 0)
    for target in range(begin.shape[0] - 1):
        begin[target + 1] += begin[target]
    for k in range(start.targets.shape[0]):
        order[begin[start.targets[k] + 1]] = start.numbers[k]
        begin[start.targets[k] + 1] += 1
    for k in range(steps.shape[0]):
        for new in range(steps[k]["first_new"] - (steps[k]["part"] != 0), steps[k]["first_new"] + steps[k]["n_new"]):
            order[begin[steps[k]["target"] + 1]] = start.tests.shape[0] + new
            begin[steps[k]["target"] + 1] += 1


@bare
def _send_states(step: Any, first: Int, regions: Array, out: Array) -> None:
    """Write for each state of the variable that a split tests the number of its child, the first being `first`."""
    n_before, n_kids = 0, step["n_new"] - (0 if step["part"] == 0 else 1 if is_one(step["part"]) else 2)
    for state in range(out.shape[0]):
        child = child_of(state, step["kind"], step["state"], out.shape[0])
        if step["possible"] >= 0:
            child = n_kids - 1
            if has_state(regions, step["possible"], state):
                child, n_before = np.int64(n_before), n_before + 1
        out[state] = first + child


@jit
def send_states(steps: Array, regions: Array, out: Array) -> None:
    """Write for each state of the variable that steps[0] tests its child, numbered from 0."""
    _send_states(steps[0], np.int64(0), regions, out)


@inlined
def _follow(start: Start, steps: Array, deletions: Array, regions: Array, n_states: Array, made: _Made) -> None:
    """Repeat all steps. A row (k, target, variable) of `deletions` removes a variable's tests after k steps."""
    n_tests = start.tests.shape[0]
    for number in range(made.tests.shape[0]):
        made.tests[number] = made.stands_for[number] = -1
    for number in range(n_tests):
        made.tests[number], made.first_kids[number] = start.tests[number], start.first_kids[number]
    for k in range(start.kids.shape[0]):
        made.kids[k] = start.kids[k]
    n_kids, deletion = start.kids.shape[0], 0
    for k in range(steps.shape[0] + 1):
        while deletion < deletions.shape[0] and deletions[deletion, 0] == k:
            _delete(deletions[deletion, 1], deletions[deletion, 2], start, steps[:k], made)
            deletion += 1
        if k == steps.shape[0]:
            break
        step = steps[k]
        number, first = n_tests + step["leaf"], n_tests + step["first_new"]
        if step["other"] >= 0:
            made.stands_for[number] = made.stands_for[n_tests + step["other"]] = first
            continue
        if step["part"] != 0:
            split, kids, n_before = first - 1, first, np.int64(0)
            made.tests[number], made.first_kids[number] = OWN, n_kids
            n_pieces = 2 if is_one(step["part"]) else 3
            for piece in range(N_PIECES):
                if piece == 1 and n_pieces == 2:
                    continue
                made.kids[n_kids + piece] = first + n_before
                if piece == step["piece"]:
                    made.kids[n_kids + piece], kids = split, first + n_before
                    n_before += step["n_new"] - n_pieces + 1
                else:
                    n_before += 1
            if n_pieces == 2:
                made.kids[n_kids + 1] = made.kids[n_kids + 2]
            n_kids += N_PIECES
            number, first = split, kids
        made.tests[number], made.first_kids[number] = step["variable"], n_kids
        r = n_states[step["variable"]]
        _send_states(step, first, regions, made.kids[n_kids : n_kids + r])
        n_kids += r


@inlined
def _delete(target: int, variable: int, start: Start, steps: Array, made: _Made) -> None:
    """Remove the target's tests of an irrelevant variable: each is replaced by its child for state 0."""
    for k in range(start.targets.shape[0]):
        if start.targets[k] == target:
            _leave_out(start.numbers[k], variable, made)
    for k in range(steps.shape[0]):
        if steps[k]["target"] == target:  # if a leaf is parted, the test is that of a piece
            tested = steps[k]["leaf"] if steps[k]["part"] == 0 else steps[k]["first_new"] - 1
            _leave_out(start.tests.shape[0] + tested, variable, made)


@bare
def _leave_out(number: int, variable: int, made: _Made) -> None:
    if made.tests[number] == variable:
        made.tests[number] = _LEAF
        made.stands_for[number] = made.kids[made.first_kids[number]]


@bare
def _is_same(one: Int, two: Int, n: Int, kids: Array) -> bool:
    for k in range(n):
        if kids[one + k] != kids[two + k]:
            return False
    return True


@bare
def _reduce(order: Array, n_states: Array, made: _Made) -> None:
    """Remove tests whose outcomes all lead to the same node, and combine identical tests.

    Nodes are visited from last to first, so children come before their parents; of two identical tests the later
    remains.
    """
    size, table = np.int64(2), made.table
    while size < 2 * order.shape[0]:
        size *= 2
    for k in range(size):
        table[k] = -1
    for k in range(order.shape[0] - 1, -1, -1):
        number = order[k]
        if made.tests[number] == _LEAF or made.stands_for[number] >= 0:
            continue
        at, r, key, is_one = made.first_kids[number], n_states[made.tests[number]], made.tests[number], True
        for kid in range(at, at + r):
            made.kids[kid] = _resolve(made.kids[kid], made.stands_for)
            is_one = is_one and made.kids[kid] == made.kids[at]
            key = (key * 1000003 + made.kids[kid]) % 2147483647
        if is_one:
            made.stands_for[number] = made.kids[at]
            continue
        place = key & (size - 1)
        while table[place] >= 0:
            other = table[place]
            if made.tests[other] == made.tests[number] and _is_same(at, made.first_kids[other], r, made.kids):
                made.stands_for[number] = other
                break
            place = (place + 1) & (size - 1)
        if table[place] < 0:
            table[place] = number


@bare
def _write(order: Array, begin: Array, n_states: Array, n_tests: Int, made: _Made, out: Replayed) -> int:
    """Write the graphs, without nodes that nothing leads to; return the number of nodes."""
    place, n, n_kids = made.places, 0, 0
    for number in range(place.shape[0]):
        place[number] = 0
    for target in range(n_states.shape[0] - 2):
        if begin[target] < begin[target + 1]:
            place[_resolve(order[begin[target]], made.stands_for)] = 1
        first = n
        for k in range(begin[target], begin[target + 1]):
            number = order[k]
            if place[number] == 0:
                continue
            place[number] = 1 + n - first
            out.tests[n], out.records[n] = made.tests[number], number - n_tests
            if made.tests[number] != _LEAF:
                at = made.first_kids[number]
                for kid in range(at, at + n_states[made.tests[number]]):
                    out.kids[n_kids] = _resolve(made.kids[kid], made.stands_for)
                    place[out.kids[n_kids]] = 1
                    n_kids += 1
            n += 1
            out.first_kids[n] = n_kids
        out.begin[target + 1] = n
    for kid in range(n_kids):
        out.kids[kid] = place[out.kids[kid]] - 1
    return n


@bare
def _charge(row: int, drawn: Replayed, log_ways: Array, seen: Array, out: Charged) -> None:
    """Count what the structure prior charges for; `seen` is scratch memory for all nodes and all variables."""
    n_targets = drawn.begin.shape[0] - 1
    n_nodes = drawn.begin[n_targets]
    for k in range(n_nodes + n_targets):
        seen[k] = -1
    for target in range(n_targets):
        at, ways, n_tests, n_tested, n_shared = drawn.begin[target], 0.0, 0, 0, 0
        for node in range(at, drawn.begin[target + 1]):
            test = drawn.tests[node]
            if test == _LEAF:
                n_shared -= 1
                continue
            for kid in range(drawn.first_kids[node], drawn.first_kids[node + 1]):
                end = at + drawn.kids[kid]
                if drawn.tests[end] == _LEAF and seen[end] != node:  # several arcs of one test to one leaf count once
                    seen[end] = node
                    n_shared += 1
            if test >= 0:
                n_tests, ways = n_tests + 1, ways + log_ways[test]
                if seen[n_nodes + test] != target:
                    seen[n_nodes + test] = target
                    n_tested += 1
        out.n_tests[row, target], out.n_tested[row, target], out.ways[row, target] = n_tests, n_tested, ways
        out.n_shared[row, target] = max(0, n_shared)  # negative if the root is a leaf: no arc leads to it


@bare
def _replay(
    start: Start,
    steps: Array,
    deletions: Array,
    regions: Array,
    n_states: Array,
    reduces: bool,
    log_ways: Array,
    begin: Array,
    order: Array,
    made: _Made,
    charged: Charged,
    out: Replayed,
) -> int:
    """Write the graphs; return the number of nodes."""
    start, made, charged, out = refer(start), refer(made), refer(charged), refer(out)
    _sort(start, steps, begin, order)
    _follow(start, steps, deletions, regions, n_states, made)
    n, n_rows = 0, charged.ways.shape[0]
    for row in range(0 if n_rows or not reduces else 1, 2 if reduces else 1):
        for target in range(row * (n_states.shape[0] - 2)):
            _reduce(order[begin[target] : begin[target + 1]], n_states, made)
        n = _write(order, begin, n_states, start.tests.shape[0], made, out)
        if row < n_rows:
            _charge(row, out, log_ways, made.table, charged)
    return n


def calls() -> list[tuple[Any, ...]]:
    """Return example calls of the functions that evaluate what was found, to have them compiled (`ready`)."""
    some, none, ways = np.zeros(0, np.int64), np.zeros((0, 2), np.int64), np.zeros((0, 2))
    start, out = Start(some, some, some, some, some), Replayed(some, some, some, some, some)
    doubtful = find_doubtful, some, some, some, some, some, 0, none
    given = start, np.zeros(0, STEP), none, 0, some.view(np.uint64), some, False, np.zeros(0)
    likelihoods = log_likelihoods_of, some, np.zeros(0), np.zeros(0)
    return [doubtful, (replay, *given, Charged(none, none, ways, none), out), likelihoods]


@jit
def replay(
    start: Start,
    steps: Array,
    deletions: Array,
    n_leaves: int,
    regions: Array,
    n_states: Array,
    reduces: bool,
    log_ways: Array,
    charged: Charged,
    out: Replayed,
) -> int:
    """Write the graphs after these steps to `out`, which must be large enough; return the number of nodes.

    The leaves of each graph are in the order they were made. With `reduces`, tests that tell nothing are removed, and
    identical ones combined. Entries of `out` behind the last node are not set. If `charged` has rows, what the
    structure prior charges for is counted, too.
    """
    n = start.tests.shape[0] + n_leaves
    begin, order = np.zeros(n_states.shape[0], np.int64), np.empty(out.tests.shape[0], np.int64)
    made = _Made(
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(out.kids.shape[0], np.int64),
        np.empty(n, np.int64),
        np.empty(4 * out.tests.shape[0] + n_states.shape[0] + 4, np.int64),
    )
    return _replay(start, steps, deletions, regions, n_states, reduces, log_ways, begin, order, made, charged, out)


@bare
def _walk(at: Int, tests: Array, first: Array, kids: Array, states: Array) -> Int:
    """Return the leaf that an assignment leads to, in a graph whose nodes begin at `at`."""
    node = at
    while tests[node] != _LEAF:
        node = at + kids[first[node] + states[tests[node]]]
    return node


@bare
def _is_witnessed(variable: Int, at: Int, tests: Array, first: Array, kids: Array, states: Array, r: Int) -> bool:
    """Return whether another state of the variable leads the assignment to another leaf."""
    own, end = states[variable], _walk(at, tests, first, kids, states)
    is_other = False
    for state in range(r):
        states[variable] = state
        is_other = is_other or _walk(at, tests, first, kids, states) != end
    states[variable] = own
    return is_other


@bare
def _draw_arcs_in(
    at: Int, end: Int, tests: Array, first: Array, kids: Array, n_states: Array, random: int, arcs: Array
) -> int:
    """Draw for each node of a graph except the root an arc that leads to it: (parent, state); return the seed."""
    for node in range(at, end):
        arcs[node, 0] = -1
    for node in range(at, end):
        if tests[node] != _LEAF:
            for state in range(n_states[tests[node]]):
                kid = at + kids[first[node] + state]
                random = random * 48271 % 2147483647
                if arcs[kid, 0] < 0 or random % 2 == 0:
                    arcs[kid, 0], arcs[kid, 1] = node, state
    return random


@bare
def _lead_to(node: Int, at: Int, tests: Array, arcs: Array, states: Array) -> None:
    """Change an assignment so that it leads to a node, unless a variable is tested twice on the way."""
    while node != at:
        before, state = arcs[node]
        states[tests[before]] = state
        node = before


@jit
def find_doubtful(
    begin: Array, tests: Array, first: Array, kids: Array, n_states: Array, n_tries: int, out: Array
) -> int:
    """Write to `out` the pairs (target, tested variable) that no assignment tried shows to matter; return how many.

    The assignments tried lead to a test of the variable, and are random otherwise.
    """
    n, states, is_open, random = 0, np.zeros(n_states.shape[0], np.int64), np.zeros(n_states.shape[0], np.bool_), 1
    arcs = np.empty((tests.shape[0], 2), np.int64)
    for target in range(begin.shape[0] - 1):
        n_open, at, end = 0, begin[target], begin[target + 1]
        for node in range(at, end):
            if tests[node] != _LEAF and not is_open[tests[node]]:
                is_open[tests[node]] = True
                n_open += 1
        for _ in range(n_tries):
            if n_open == 0:
                break
            random = _draw_arcs_in(at, end, tests, first, kids, n_states, random, arcs)
            for node in range(at, end):
                if tests[node] != _LEAF:
                    random = random * 48271 % 2147483647
                    states[tests[node]] = random % n_states[tests[node]]
            for node in range(at, end):
                variable = tests[node]
                if variable != _LEAF and is_open[variable]:
                    _lead_to(node, at, tests, arcs, states)
                    if _is_witnessed(variable, at, tests, first, kids, states, n_states[variable]):
                        is_open[variable] = False
                        n_open -= 1
        for node in range(at, end):
            if tests[node] != _LEAF and is_open[tests[node]]:
                out[n, 0], out[n, 1] = target, tests[node]
                is_open[tests[node]] = False
                n += 1
    return n
