"""Features for the estimators: which columns are binned, where, and how new numbers are assigned to states.

Knows how sources are opened and what their columns are.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from leafwise.data.binning import interval_labels
from leafwise.data.columns import Column, Source, open_source
from leafwise.data.discretization import States
from leafwise.data.kinds import Bins, Choices, Understood, understand
from leafwise.data.new_data import INFER_OR_STATE, assembled, complete
from leafwise.data.table import Table, Variable


def read_features(
    source: object,
    bins: Bins = "auto",
    binning: str | None = None,
    missing: str = "error",
    towards: States | None = None,
) -> Table:
    """Read cases from a frame or an array whose numeric columns accept any number in new cases.

    Numeric columns are binned as by `read`, with respect to a class if there is one. If each number is a state, cut
    points are halfway between them, so that a new number is assigned to the nearest. The values of text columns are
    states, even if they spell numbers; without bins, so are those of all columns.

    >>> table = read_features(np.array([[0.5, 7], [1.5, 7], [2.5, 7], [3.5, 8]]), bins=2)
    >>> [(variable.labels, variable.cuts) for variable in table.variables]
    [(('< 2.5', '>= 2.5'), (2.5,)), (('7', '8'), (7.5,))]
    """
    opened = open_source(source)
    columns = [_typed(opened, index) for index in range(len(opened.names))]
    if missing == "error":
        complete(
            columns,
            columns,
            "error",
            INFER_OR_STATE,
        )
    understood = understand(columns, Choices(bins, binning, towards=towards, keys=False))
    _refuse(understood)
    variables, states = [], []
    for one in understood:
        assert one.variable is not None
        assert one.states is not None
        is_number = bins is not None and one.column.numbers is not None
        variable, shift = _with_cuts(one.variable) if is_number and not one.variable.cuts else (one.variable, 0)
        variables.append(variable)
        states.append(one.states + shift)
    return assembled(tuple(variables), columns, states)


def _typed(opened: Source, index: int) -> Column:
    """A column, which is numeric only if its type is."""
    column = opened.column(index)
    return column if opened.holds_numbers(index) else replace(column, numbers=None)


def _refuse(understood: Sequence[Understood]) -> None:
    refused = [one for one in understood if one.variable is None]
    if refused:
        what = ", ".join(f"{one.column.name!r} ({one.kind}, {one.n_values:,} values)" for one in refused[:5])
        more = f" and {len(refused) - 5} more" if len(refused) > 5 else ""
        raise ValueError(
            f"column{'s' * (len(refused) > 1)} {what}{more} of X cannot be states as they are: leave them out, or make "
            "them categorical if their values are states (astype('category'))"
        )


def _with_cuts(variable: Variable) -> tuple[Variable, int]:
    """A variable whose states are numbers, with cut points halfway between them, and the offset of its states.

    A single number becomes a cut point itself, with an additional bin below, so that its state moves up by one.
    """
    labels = variable.labels[: variable.n_states - variable.missing]
    values = np.array(labels, dtype=np.float64)
    below, above = values[:-1], values[1:]
    if not len(values) or (below >= above).any():  # no numbers, or integers that doubles do not distinguish
        return variable, 0
    if len(values) > 1:
        middles = below / 2 + above / 2
        return replace(variable, cuts=tuple(np.where(middles > below, middles, above).tolist())), 0
    cuts = tuple(values.tolist())
    return replace(variable, labels=interval_labels(cuts) + variable.labels[len(labels) :], cuts=cuts), 1
