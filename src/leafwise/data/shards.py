"""Reading of a table in shards by several processes: a survey of each, and the states of all variables in all shards.

The result is that of reading everything at once, except that columns needed as a whole are refused: numbers that would
be binned, and columns of many values. Knows batches, kinds and how options choose columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from leafwise.data.batches import Bytes, Packing, packed
from leafwise.data.columns import Source, open_frame
from leafwise.data.encoding import Options, chosen, refuse
from leafwise.data.kinds import Integers, to_be_cut, understand
from leafwise.data.new_data import INFER_OR_STATE, complete
from leafwise.data.table import Variable, brief
from leafwise.errors import AdvisedError

_MOST_STATES = 256


@dataclass(frozen=True)
class Survey:
    """The distinct values of a shard's columns, as a source, with the counts of each, and the number of rows."""

    values: Source
    counts: list[Integers]
    n_rows: int


def pack_shard(source: Any, options: Options) -> Packing:
    """Read a shard, given by the names of files or as a frame."""
    if isinstance(source, tuple):
        return packed([Path(path) for path in source], options.how, lambda whole: chosen(whole, options))
    opened = chosen(open_frame(source), options)
    packing = Packing(opened)
    packing.add(opened)
    return packing


def survey(packing: Packing) -> Survey:
    """The survey of a shard."""
    return Survey(*packing.surveyed(), packing.n_rows)


def check_options(options: Options) -> None:
    """Raise an error for options that need all rows in one place."""
    if options.missing not in ("error", "state"):
        raise AdvisedError(
            *(("missing", options.missing), " does not go with a cluster: pass "),
            *(("missing", "state"), ", or leave it out"),
        )
    if options.cache:
        raise AdvisedError(
            ("cache",), " keeps a table on this machine, and a cluster reads it elsewhere: leave one out"
        )


def agreed(surveys: Sequence[Survey], options: Options) -> tuple[tuple[Variable, ...], list[list[Bytes]]]:
    """The variables of all shards together, and for each shard and column the state of each byte (`Packing.table`)."""
    seen = Packing(surveys[0].values)
    for one in surveys:
        seen.add(one.values)
    source = seen.finished(options.how)
    begins = np.cumsum([0, *(one.values.n_rows for one in surveys)])
    columns = []
    for place, column in enumerate(source.columns):
        counts = np.zeros(len(column.labels) + 1, np.int64)
        for begin, one in zip(begins, surveys, strict=False):
            n_values, own = len(one.values.cells[place][0]), one.counts[place]
            np.add.at(counts, column.codes[begin : begin + n_values], own[:n_values])  # code -1 is the last
            counts[-1] += own[-1]
        columns.append(replace(column, counts=counts))
    choices = options.choices(source.names)
    if cut := to_be_cut(columns, choices):
        raise AdvisedError(
            f"column{'s' * (len(cut) > 1)} {', '.join(map(repr, cut[:5]))} would be cut into bins, which takes all "
            "rows in one place: leave out with ",
            ("ignore", cut),
            ", take every value as a state with ",
            ("states", cut),
            ", or read without a cluster",
        )
    understood = understand(columns, choices)
    refuse(understood)
    if options.missing == "error":
        complete(columns, columns, "error", INFER_OR_STATE)
    variables = tuple(one.variable for one in understood if one.variable is not None)
    large = [variable for variable in variables if variable.n_states > _MOST_STATES]
    if large:
        raise AdvisedError(
            f"column {brief(large[0].name)} has {large[0].n_states} states, more than the {_MOST_STATES} of a cluster: "
            "group them, or leave it out with ",
            ("ignore", [large[0].name]),
        )
    every = []
    for begin, one in zip(begins, surveys, strict=False):
        own_codes = []
        for place, found in enumerate(understood):
            assert found.states is not None
            n_values = len(one.values.cells[place][0])
            codes = np.full(256, found.states[-1], np.uint8)
            codes[:n_values] = found.states[columns[place].codes[begin : begin + n_values]]
            own_codes.append(codes)
        every.append(own_codes)
    return variables, every
