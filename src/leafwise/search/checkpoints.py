"""Checkpoints: a search that periodically saves its state to a JSON file, from which it can be resumed.

    {"format": "leafwise-checkpoint", "version": 4, "digest": "...", "stopped": "",
     "of": {"leafwise": "1.0", "data": "...", "search": "...", ...}, "state": {...}}

`of` identifies the run by its data and options; only the same run can resume from the file. `digest` is a hash of
everything after it, so that a damaged file is refused. The file is kept when the search ends: the same command then
returns the same network at once, and with a higher limit it continues.
"""

import dataclasses
import hashlib
import json
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from leafwise.counters.counter import EVERYTHING, Counter
from leafwise.formats.json import dumps
from leafwise.formats.whole_files import read_as, write_whole
from leafwise.network import Network
from leafwise.prior_network import PriorNetwork
from leafwise.search.problem import Problem
from leafwise.search.run import Resumable, Settings, silence

FORMAT, VERSION = "leafwise-checkpoint", 4
EVERY = 60.0
_OF_TIME = ("seconds", "threads")
_LIMITS = (*_OF_TIME, "max_steps", "rounds")  # settings that may differ when a search is resumed
_SPELLED = {
    "leafwise": "version of leafwise",
    "structure_prior": "structure prior",
    "start": "network to begin with",
    "repeated": "rounds or networks",
}


def run_of(
    problem: Problem,
    counter: Counter,
    search: Settings,
    target: str | None,
    start: Network | None,
    repeated: str,
) -> dict[str, str]:
    """What identifies a run: the data and all options except limits.

    `repeated` describes what runs the search repeatedly, if anything does; `max_steps` and `rounds` of each run are
    then no limits, but options.
    """
    prior, rules = problem.prior, problem.parents
    variables = [dataclasses.astuple(variable) for variable in problem.variables]
    matrices = [rules.allowed.tobytes(), rules.is_parent.tobytes(), rules.kept.tobytes(), repr(rules[3:]).encode()]
    known = str(prior)
    if isinstance(prior, PriorNetwork):
        known += f" ({_digest(dumps(prior.network).encode())})"
    return {
        "leafwise": _version(),
        "data": _digest(repr([variables, counter.n_cases, counter.unit]).encode(), _rows_of(problem, counter)),
        "target": "all" if target is None else repr(target),
        "repeated": repeated or "once",
        "search": _described(search, _OF_TIME if repeated else _LIMITS),
        "prior": known,
        "structure_prior": str(problem.structure_prior),
        "constraints": _digest(*matrices),
        "start": "none" if start is None else _digest(dumps(start).encode()),
    }


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        return version("leafwise")
    except PackageNotFoundError:  # it runs from the sources
        return "not installed"


def _rows_of(problem: Problem, counter: Counter) -> bytes:
    """The rows, or if they are remote, the counts of all pairs of a target and a candidate."""
    if counter.local is not None:
        return counter.local.codes.tobytes()
    session = counter.session()
    try:
        targets = np.array(problem.targets)
        return session.count(np.full(len(targets), EVERYTHING), targets, problem.layout()).tobytes()
    finally:
        session.close()


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:32]


def _described(settings: Any, limits: tuple[str, ...]) -> str:
    """The settings without these limits, as text."""
    fields = [field.name for field in dataclasses.fields(settings) if field.name not in limits]
    values = ((name, getattr(settings, name)) for name in fields)
    told = [f"{name}={_described(v, limits) if dataclasses.is_dataclass(v) else repr(v)}" for name, v in values]
    return f"{type(settings).__name__}({', '.join(told)})"


class Checkpoint:
    """The checkpoint file of the run that `of` identifies."""

    def __init__(self, path: str | os.PathLike[str], of: Mapping[str, str]) -> None:
        self.path, self._of = Path(path), dict(of)
        folder = Path(os.path.realpath(self.path)).parent
        if not folder.is_dir():
            raise ValueError(f"the checkpoint {str(self.path)!r} cannot be written: there is no folder '{folder}'.")

    def load(self) -> dict[str, Any] | None:
        """The saved state, None if there is no file yet; a ValueError if the file is damaged or of another run."""
        return read_as(self.path, self._state_in) if self.path.exists() else None

    def _state_in(self, data: bytes) -> dict[str, Any]:
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise ValueError("this is no checkpoint: name another file, or delete it.")
        if document.get("version") != VERSION:
            raise ValueError(
                "this checkpoint was written by another leafwise: go on with that one, or delete the file."
            )
        if document.get("digest") != _digest_of(document):
            raise ValueError("this checkpoint is damaged: delete it, and begin anew.")
        for name, own in self._of.items():
            found = document["of"].get(name)
            if found != own:
                told = "" if len(own) == 32 else f" ({found}, and this is {own})"
                raise ValueError(
                    f"this is the checkpoint of a run with other {_SPELLED.get(name, name)}{told}: "
                    f"name another file, or delete it."
                )
        state: dict[str, Any] = document["state"]
        return state

    def save(self, state: Mapping[str, Any], stopped: str) -> None:
        """Write the file atomically."""
        document = {"format": FORMAT, "version": VERSION, "digest": "", "stopped": stopped}
        document |= {"of": self._of, "state": state}
        document = json.loads(json.dumps(document, allow_nan=False))  # tuples become lists, as when the file is read
        document["digest"] = _digest_of(document)
        write_whole(self.path, json.dumps(document, separators=(",", ":")).encode())


def _digest_of(document: Mapping[str, Any]) -> str:
    return _digest(json.dumps([document.get(name) for name in ("stopped", "of", "state")]).encode())


class Checkpointed:
    """A search that saves its state every `every` seconds, when it ends, and when `progress` or `watch` raises.

    Everything else is delegated to the search.
    """

    def __init__(self, search: Resumable, checkpoint: Checkpoint, every: float) -> None:
        self._search, self._checkpoint, self._every = search, checkpoint, every
        self.n_steps_before = search.n_steps
        self._saved_at, self._has_failed = time.monotonic(), False
        self.watch: Callable[[Any], None] = silence
        search.watch = lambda of: self._tell(self.watch, of)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._search, name)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            step = next(self._search)
        except StopIteration:
            self.save()
            raise
        self._save_if_due()
        return step

    def run(self, progress: Callable[[Any], None] | None = None) -> None:
        """Take all remaining steps; `progress` is called as by the search."""

        self._search.run(lambda search: self._tell(silence if progress is None else progress, search))
        self.save()

    def _tell(self, progress: Callable[[Any], None], search: Any) -> None:
        """Save if it is time; call `progress`, and save if that stops the search."""
        self._save_if_due()
        with ExitStack() as when_stopped:
            when_stopped.callback(self.save)
            progress(search)
            when_stopped.pop_all()

    def save(self) -> None:
        """Save the current state; if that fails, warn once until it succeeds again, and keep the previous file."""
        try:
            self._checkpoint.save(self._search.state(), self._search.stopped)
            self._has_failed = False
        except OSError as error:
            if not self._has_failed:
                warnings.warn(
                    f"the checkpoint {str(self._checkpoint.path)!r} cannot be written ({error.strerror or error}): "
                    f"the search goes on, and tries again.",
                    stacklevel=2,
                )
            self._has_failed = True
        self._saved_at = time.monotonic()

    def _save_if_due(self) -> None:
        if time.monotonic() >= self._saved_at + self._every:
            self.save()

    @property
    def seconds(self) -> float:
        return self._search.seconds

    @property
    def stopped(self) -> str:
        return self._search.stopped

    @property
    def network(self) -> Network:
        return self._search.network

    @property
    def n_steps(self) -> int:
        return self._search.n_steps

    @property
    def n_leaves(self) -> int:
        return self._search.n_leaves

    @property
    def n_arcs(self) -> int:
        return self._search.n_arcs

    @property
    def log_score(self) -> float:
        return self._search.log_score

    def state(self) -> dict[str, Any]:
        """The state from which the search can be resumed, as plain values."""
        return self._search.state()

    def summary(self) -> dict[str, Any]:
        """What was learned and how, as plain values."""
        return self._search.summary()


def check_every(every: float) -> float:
    """Check the number of seconds between two saves, and return it as a float."""
    if not isinstance(every, int | float) or isinstance(every, bool) or not 0 <= every < math.inf:
        raise ValueError(f"every is {every!r}, and must be seconds, from 0 on: use 60.")
    return float(every)
