"""Second choices: what a leaf will split on if another node's arc rules out the variable it would rather test.

Two nodes that want to test each other cannot both do so. The one with the smaller gain will lose, and what it makes for
its first choice would be for nothing: so it gets its second choice ready instead, while the first keeps its place in
the order of steps until it is decided.
"""

from typing import Any

from leafwise.kernels.children import Scratch, has_histogram
from leafwise.kernels.gains import TIE, may_test, price_by_table
from leafwise.kernels.jit import bare, inlined
from leafwise.kernels.nodes import Frontier, drop_second


@inlined
def is_doubtful(leaf: Any, frontier: Frontier) -> bool:
    """Whether the variable that the leaf would test is about to test the leaf's own target, and comes first."""
    variable, target = leaf["variable"], leaf["target"]
    lead = frontier.next_gains[0, variable] - leaf["gain"]
    comes_first = lead > TIE or (lead >= 0.0 and variable < target)
    return comes_first and frontier.next_tests[variable] == target and not frontier.is_parent[target, variable]


@bare
def exchange(leaf: Any) -> None:
    """The second choice becomes the first, and the first the second."""
    leaf["gain"], leaf["second_gain"] = leaf["second_gain"], leaf["gain"]
    leaf["variable"], leaf["second_variable"] = leaf["second_variable"], leaf["variable"]
    leaf["state"], leaf["second_state"] = leaf["second_state"], leaf["state"]
    leaf["n_children"], leaf["second_n_children"] = leaf["second_n_children"], leaf["n_children"]
    leaf["first_child"], leaf["second_child"] = leaf["second_child"], leaf["first_child"]


@inlined
def begin_second(leaf: Any, least: float, frontier: Frontier, scratch: Scratch) -> bool:
    """Put the leaf's second choice in the place of the first, to make what it makes. False: that is not needed."""
    first = leaf["variable"]
    is_known = leaf["without"] == first
    if is_known and (leaf["second_child"] >= 0 or leaf["second_gain"] < least):
        return False
    if not has_histogram(leaf, frontier, scratch):
        return False
    exchange(leaf)
    leaf["without"] = first
    if not is_known:
        allowed = frontier.pricing.allowed[leaf["target"]]
        allowed[first] = 0
        price_by_table(leaf, frontier.pool.cells, scratch.possible, frontier.pricing)
        allowed[first] = 1
    if leaf["gain"] <= 0.0 or leaf["gain"] < least:
        exchange(leaf)
        return False
    return True


@bare
def take_second(leaf: Any, frontier: Frontier) -> bool:
    """If the first choice was ruled out, and a second one is known that was not: that is the first choice now."""
    target, pricing = leaf["target"], frontier.pricing
    is_known = leaf["without"] == leaf["variable"] >= 0 and leaf["room"] == frontier.nodes[target]["room"]
    if (
        not is_known
        or may_test(target, leaf["without"], pricing)
        or (leaf["second_gain"] > 0.0 and not may_test(target, leaf["second_variable"], pricing))
    ):
        return False
    exchange(leaf)
    drop_second(leaf, frontier)
    return True
