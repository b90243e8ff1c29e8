"""Counting on a Dask cluster: its workers hold the rows in shards, packed, and return the sum of their counts.

A round is one batch of requests to every worker, and the sum of their counts, by a tree if there are many workers.
Workers remember sets of cases between rounds, and may die at any time. A worker that lacks a shard, or has missed
rounds of a session, says so; the shard is then read again, its sets are rebuilt from their history, and the round is
repeated. Knows the interface of counters, tables read in shards, and Dask, which only this module imports.
"""

import threading
import time
import uuid
import weakref
from collections.abc import Iterable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from leafwise.counters.counter import EVERYTHING, Integers
from leafwise.counters.cpu import CpuCounter, CpuSession
from leafwise.data.batches import Bytes, Packing, files_of, is_path
from leafwise.data.encoding import Options, Reading, options_of
from leafwise.data.shards import Survey, agreed, check_options, pack_shard, survey
from leafwise.data.table import Table, Variable
from leafwise.kernels.counting.arrays import Layout
from leafwise.workers import Workers

_ATTEMPTS = 50  # to complete one task while workers die
_ANSWER = 10.0  # seconds to wait for the answer of a scheduler
_PATIENCE = 60.0  # seconds to wait without any worker
_FEW_WORKERS = 16  # up to this number, their counts are summed here
_REACH = 2.0  # seconds to connect to a worker without the scheduler
_COUNT = "leafwise_count"  # the operation that workers are then asked for
_SPARE = 2**20  # numbers in the history that are kept as they were sent
Operation = tuple[str, tuple[Integers, ...]]  # cut, join or release, and its arguments


def is_dask_frame(data: object) -> bool:
    """Return whether this is a Dask data frame."""
    return hasattr(data, "__dask_graph__") and hasattr(data, "to_delayed")


def client_of(cluster: Any) -> Any:
    """Return the client of a cluster: itself, or of the scheduler at an address; None: the one this process has."""
    distributed = _distributed()
    if cluster is None:
        try:
            return distributed.get_client()
        except ValueError:
            raise ValueError(
                "there is no client of a Dask cluster: make one with dask.distributed.Client(), or pass cluster"
            ) from None
    if not isinstance(cluster, str):
        if not isinstance(cluster, distributed.Client):
            raise TypeError(f"cluster is {type(cluster).__name__}: give a dask.distributed.Client, or an address")
        return cluster
    try:
        with ThreadPoolExecutor(1) as thread:  # since this thread may run an event loop, as in a notebook
            thread.submit(_knock, cluster).result()
        client = distributed.Client(cluster, timeout=_ANSWER, set_as_default=False)
    except (OSError, ValueError, MemoryError) as error:  # memory: if another program answers
        raise ValueError(
            f"no Dask scheduler answers at '{cluster}' ({type(error).__name__}): check the address, such as "
            "'tcp://10.0.0.1:8786', and that versions of dask are the same"
        ) from None
    return client


def _knock(address: str) -> None:
    """Check that a scheduler answers: a client would wait forever for another program, such as the dashboard."""
    import asyncio

    from distributed import Security
    from distributed.comm import connect

    async def knock() -> None:
        security = Security().get_connection_args("client")
        comm = await asyncio.wait_for(connect(address, timeout=_ANSWER, **security), _ANSWER)
        await comm.close()

    asyncio.run(knock())


class DaskCounter:
    """A `Counter` of rows on the workers of a cluster.

    `report` contains what it took: rounds, bytes, seconds by stage, and how often a shard was loaded again.
    """

    lookahead = 0.3  # every batch goes to all workers, so few large batches are better
    overlaps = False
    local = None
    unit = 1.0

    def __init__(self, client: Any, shards: "Sequence[_Shard]", variables: tuple[Variable, ...]) -> None:
        self.client, self.shards, self.variables = client, list(shards), variables
        self.n_cases = sum(shard.n_cases for shard in shards)
        self.run = uuid.uuid4().hex
        self.report: dict[str, Any] = {
            "workers": len(client.nthreads()), "shards": len(shards), "round_trips": 0, "histograms": 0,
            "bytes_sent": 0, "bytes_received": 0, "restored": 0,
            "seconds": {"read": 0.0, "agree": 0.0, "pack": 0.0, "count": 0.0, "count_on_workers": 0.0},
        }  # fmt: skip
        self.homes: dict[int, str] = {}  # by shard: the worker that has it, as far as is known
        self.out_of_reach: set[str] = set()  # workers that only the scheduler can reach
        self._n_sessions = 0
        self._forget = weakref.finalize(self, _tell_all_to_forget, client, self.run)

    def close(self) -> None:
        """Let the workers drop the rows; happens by itself when this object is no longer referenced."""
        self._forget()

    @classmethod
    def of_tables(cls, tables: Sequence[Table], cluster: Any = None) -> "DaskCounter":
        """Make a counter of tables of this process as shards, one each; all must have the same variables."""
        shards = [_Shard(table, table.n_cases, _Plan(None, table.variables, ())) for table in tables]
        counter = cls(client_of(cluster), shards, tables[0].variables)
        counter.restore(range(len(shards)))
        return counter

    @classmethod
    def read(
        cls, data: Any, cluster: Any = None, *, target: str | None = None, **reading: Unpack[Reading]
    ) -> "DaskCounter":
        """Let workers read files, or partitions of a Dask data frame; states are agreed on before rows are counted."""
        options = options_of(reading, target)
        check_options(options)
        client = client_of(cluster)
        began = time.perf_counter()
        sources = _dealt(data, max(1, len(client.nthreads())))
        counter = cls(client, [_Shard(source, 0, _Plan(options, (), ())) for source in sources], ())
        surveys = counter._survey()
        if not any(one.n_rows for one in surveys):
            raise ValueError("the data have no rows, where at least one is needed: check where they come from")
        read = time.perf_counter()
        variables, states = agreed(surveys, options)
        counter.variables, counter.n_cases = variables, sum(one.n_rows for one in surveys)
        counter.shards = [
            _Shard(source, one.n_rows, _Plan(options, variables, tuple(own)))
            for source, one, own in zip(sources, surveys, states, strict=True)
        ]
        packing = time.perf_counter()
        counter.homes = {number: home for number, home in counter.homes.items() if surveys[number].n_rows}
        counter.restore(counter.homes.copy())
        counter.report["seconds"] |= {
            "read": read - began, "agree": packing - read, "pack": time.perf_counter() - packing,
        }  # fmt: skip
        return counter

    def session(self) -> "DaskSession":
        self._n_sessions += 1
        return DaskSession(self, self._n_sessions)

    def copying(self, variables: list[int]) -> "DaskCounter":
        shards = [shard._replace(plan=shard.plan.copying(variables)) for shard in self.shards]
        names = Table(self.variables, np.zeros((len(self.variables), 0), np.uint8)).copying(variables).variables
        copy = DaskCounter(self.client, shards, names)
        copy.restore(range(len(shards)))
        return copy

    def _survey(self) -> list[Survey]:
        futures = [
            self.submit(
                _survey,
                self.run,
                number,
                shard.plain or self.client.compute(shard.source),
                shard.plan.options,
                shard=number,
            )
            for number, shard in enumerate(self.shards)
        ]
        found = []
        for number, future in enumerate(futures):
            self.homes[number], one = self.result(future)
            found.append(one)
        return found

    def restore(self, numbers: Iterable[int], session: int = 0, heard: "_Heard | None" = None) -> None:
        """Have shards loaded where they are missing, and a session's sets rebuilt."""

        def ask(number: int, source: Any) -> Any:
            plan = self.shards[number].plan
            return self.submit(_restore, self.run, number, source, plan, session, heard, shard=number)

        futures = {number: ask(number, self.shards[number].plain) for number in numbers}
        for number, future in futures.items():
            home = self.result(future)
            while home is None:  # the shard is missing, and its part of the graph must be computed
                home = self.result(ask(number, self.client.compute(self.shards[number].source)))
            self.homes[number] = home

    def submit(self, function: Any, *arguments: Any, shard: int) -> Any:
        """Submit a task to the worker that has a shard, or to another if that one is gone."""
        alive = dict.fromkeys(self.client.nthreads(), 0)
        if alive and self.homes.get(shard) not in alive:
            for home in self.homes.values():
                if home in alive:
                    alive[home] += 1
            self.homes[shard] = min(alive, key=lambda worker: alive[worker])  # the one with the fewest shards
        return self.send(function, *arguments, to=self.homes.get(shard))

    def send(self, function: Any, *arguments: Any, to: str | None) -> Any:
        """Submit a task to one worker, or to any other if it is gone."""
        where = {} if to is None else {"workers": [to], "allow_other_workers": True}
        return self.client.submit(function, *arguments, pure=False, **where)

    def result(self, future: Any) -> Any:
        """Return the result of a task; while there are workers, it is run again when one of them dies."""
        distributed, since = _distributed(), time.monotonic()
        for _ in range(_ATTEMPTS):
            while True:
                try:
                    return future.result(timeout=5)
                except distributed.TimeoutError:
                    if self.client.status != "running":
                        raise ConnectionError("the Dask scheduler is gone: start it again") from None
                    if self.client.nthreads():
                        since = time.monotonic()
                    elif time.monotonic() > since + _PATIENCE:
                        raise ConnectionError(
                            f"the cluster has had no worker for {_PATIENCE:.0f} seconds: start some"
                        ) from None
                except distributed.KilledWorker:  # several workers have died while they ran it
                    break
                except CancelledError:
                    raise ConnectionError("the Dask scheduler has lost what it was asked for: start again") from None
            future.retry()
        raise ConnectionError(f"workers died {_ATTEMPTS} times over the same task: have they enough memory?")


class DaskSession:
    """One search's sets of cases on all workers. Requests other than counts are sent with the next count."""

    def __init__(self, counter: DaskCounter, number: int) -> None:
        self._counter, self._number = counter, number
        self._history = _History(counter.variables)
        self._layout: Layout | None = None
        self._waiting: list[Operation] = []
        self._n_rounds = 0

    def cut(self, parents: Integers, variables: Integers, groups: Integers, children: Integers) -> None:
        self._waiting.append(("cut", (parents, variables, groups, children)))

    def join(self, first: Integers, second: Integers, unions: Integers) -> None:
        self._waiting.append(("join", (first, second, unions)))

    def release(self, gone: Integers) -> None:
        self._waiting.append(("release", (gone,)))

    def count(self, of: Integers, targets: Integers, layout: Layout) -> NDArray[np.int32]:
        began, report = time.perf_counter(), self._counter.report
        is_new = layout is not self._layout
        round_ = _Round(self._n_rounds, self._waiting, of, targets, layout if is_new else None)
        try:
            found = self._until_known(round_)
        finally:
            self._n_rounds += 1  # even after an interrupt: no two rounds may have the same number
        assert found.counts is not None
        self._history.add(self._waiting)
        self._waiting, self._layout = [], layout
        report["round_trips"] += 1
        report["histograms"] += len(of)
        report["bytes_received"] += found.counts.nbytes
        report["seconds"]["count"] += time.perf_counter() - began
        report["seconds"]["count_on_workers"] += found.seconds
        return found.counts

    def _until_known(self, round_: "_Round") -> "_Sum":
        for _ in range(_ATTEMPTS):
            found = self._ask(round_)
            if not found.lacking:
                return found
            self._counter.report["restored"] += len(found.lacking)
            heard = _Heard(round_.number, self._history.operations(), self._layout)
            self._counter.restore(found.lacking, self._number, heard)
        raise ConnectionError(f"workers died in {_ATTEMPTS} rounds one after the other: have they enough memory?")

    def _ask(self, round_: "_Round") -> "_Sum":
        """Ask every worker for the counts of its shards, and sum them: here or, if there are many, by a tree."""
        counter = self._counter
        shards_of: dict[str, list[int]] = {}
        for number, home in counter.homes.items():
            shards_of.setdefault(home, []).append(number)
        counter.report["bytes_sent"] += len(shards_of) * round_.nbytes
        if len(shards_of) <= _FEW_WORKERS:
            return self._ask_at_once(shards_of, round_)
        futures = [
            counter.send(_count, counter.run, numbers, self._number, round_, to=home)
            for home, numbers in shards_of.items()
        ]
        while len(futures) > 1:
            pairs = zip(futures[::2], futures[1::2], strict=False)
            added = [counter.client.submit(_add, *pair, pure=False) for pair in pairs]
            futures = added + futures[len(futures) // 2 * 2 :]
        found: _Sum = counter.result(futures[0])
        return found

    def _ask_at_once(self, shards_of: dict[str, list[int]], round_: "_Round") -> "_Sum":
        """Ask without tasks: Dask's scheduler delays these by milliseconds each way, and a tree has several levels."""
        from distributed.protocol.pickle import dumps

        counter = self._counter
        request = dumps((counter.run, self._number, round_))  # once for all workers
        try:
            found = counter.client.sync(_ask_directly, counter.client, request, shards_of, counter.out_of_reach)
            if others := [home for home in shards_of if home not in found]:
                found |= counter.client.run(_count_here, request, shards_of, workers=others, on_error="return")
        except OSError:
            raise ConnectionError("the Dask scheduler is gone: start it again") from None
        sums = []
        for home, numbers in shards_of.items():
            one = found.get(home, OSError())
            if isinstance(one, _Fault):
                raise one.error
            if isinstance(one, BaseException) and not isinstance(one, OSError):
                raise one
            sums.append(_Sum(None, numbers, 0.0) if isinstance(one, OSError) else one)  # OSError: the worker died
        return reduce(_add, sums)

    def close(self) -> None:
        client = self._counter.client
        if client.status == "running":
            client.run(_close, self._counter.run, self._number, wait=False)


async def _ask_directly(
    client: Any, request: bytes, shards_of: dict[str, list[int]], out_of_reach: set[str]
) -> dict[str, Any]:
    """Have workers count, without the scheduler, which would double the time; only those that can be reached."""
    import asyncio

    from distributed.core import send_recv
    from distributed.protocol.pickle import loads

    found: dict[str, Any] = {}

    async def ask(home: str) -> None:
        try:
            connection = await client.rpc.connect(home, timeout=_REACH)
        except OSError:
            out_of_reach.add(home)
            return
        try:
            answer = await send_recv(connection, op=_COUNT, request=request, shards=shards_of[home])
            found[home] = OSError() if answer is None else loads(answer["found"])  # None: by now it is another worker
        except OSError as error:
            found[home] = error
        finally:
            client.rpc.reuse(home, connection)

    await asyncio.gather(*(ask(home) for home in shards_of if home not in out_of_reach))
    return found


# Messages


@dataclass(frozen=True)
class _Plan:
    """How a shard becomes a table: its options, the state of each byte, and variables that are copied."""

    options: Options | None  # None: the source is already a table
    variables: tuple[Variable, ...]
    states: tuple[Bytes, ...]
    copies: tuple[int, ...] = ()

    def copying(self, variables: list[int]) -> "_Plan":
        return _Plan(self.options, self.variables, self.states, (*self.copies, *variables))


class _Shard(NamedTuple):
    """Some of the rows: names of files, a table, or a part of a Dask graph."""

    source: Any
    n_cases: int
    plan: _Plan

    @property
    def plain(self) -> Any:
        """What a task needs to read the rows; None for a part of a graph, which has to be computed first."""
        return None if hasattr(self.source, "__dask_graph__") else self.source


@dataclass(frozen=True)
class _Round:
    """Sets to make and to release, and those to count then; a new layout is sent once."""

    number: int
    operations: list[Operation]
    of: Integers
    targets: Integers
    layout: Layout | None

    @property
    def nbytes(self) -> int:
        arrays = [array for _, arguments in self.operations for array in arguments]
        return sum(array.nbytes for array in (*arrays, self.of, self.targets, *(self.layout or ())))


@dataclass(frozen=True)
class _Heard:
    """Everything requested in earlier rounds, condensed."""

    n_rounds: int
    operations: list[Operation]
    layout: Layout | None


class _Sum(NamedTuple):
    """Histograms of some shards, or the shards that could not be counted; and the seconds of the slowest worker."""

    counts: NDArray[np.int32] | None
    lacking: list[int]
    seconds: float


class _Fault(NamedTuple):
    """An error of a worker that is alive; raised there, it would look like an error of the connection."""

    error: OSError


class _History:
    """How the sets of a session were made: kept while they, or sets made from them, may be requested."""

    def __init__(self, variables: tuple[Variable, ...]) -> None:
        self._n_states = [variable.n_states for variable in variables]
        self._recent: list[Operation] = []  # not processed yet: most searches end before the history is needed
        self._n_recent = 0  # number of integers in these
        self._made: dict[int, tuple[int, str, tuple[Any, ...]]] = {}  # by name: level, operation and its arguments
        self._live: set[int] = set()

    def add(self, operations: Sequence[Operation]) -> None:
        """Record requested operations."""
        self._recent += operations
        self._n_recent += sum(len(array) for _, arguments in operations for array in arguments)
        if self._n_recent > max(_SPARE, 2 * len(self._made)):
            self._look()

    def _look(self) -> None:
        """Process recent operations, and discard sets that will no longer be needed."""
        for kind, arguments in self._recent:
            if kind == "release":
                self._live.difference_update(arguments[0].tolist())
            elif kind == "join":
                for one, two, union in zip(*(array.tolist() for array in arguments), strict=True):
                    self._note((one, two), kind, (one, two, (union,)))
            else:
                parents, variables, groups, children = arguments
                at = child = 0
                for parent, variable in zip(parents.tolist(), variables.tolist(), strict=True):
                    group = groups[at : at + self._n_states[variable]].tolist()
                    names = tuple(children[child : child + max(group) + 1].tolist())
                    self._note((parent,), kind, (parent, variable, group, names))
                    at, child = at + len(group), child + len(names)
        self._recent, self._n_recent = [], 0
        needed = self._needed()
        self._made = {name: made for name, made in self._made.items() if name in needed}

    def _note(self, inputs: tuple[int, ...], kind: str, how: tuple[Any, ...]) -> None:
        level = 1 + max(self._made[name][0] if name != EVERYTHING else 0 for name in inputs)
        for name in how[-1]:
            self._made[name] = (level, kind, how)
            self._live.add(name)

    def _needed(self) -> set[int]:
        needed: set[int] = set()
        waiting = list(self._live)
        while waiting:
            name = waiting.pop()
            if name != EVERYTHING and name not in needed:
                needed.add(name)
                _, kind, how = self._made[name]
                waiting += how[:2] if kind == "join" else how[:1]
        return needed

    def operations(self) -> list[Operation]:
        """Return operations that make all sets again that may be requested, level by level."""
        self._look()
        needed = self._needed()
        levels: dict[tuple[int, str], dict[tuple[int, ...], tuple[Any, ...]]] = {}
        for name in sorted(needed):
            level, kind, how = self._made[name]
            levels.setdefault((level, kind), {})[how[-1]] = how
        found: list[Operation] = []
        for (_, kind), hows in sorted(levels.items()):
            if kind == "join":
                rows = np.array([(one, two, names[0]) for one, two, names in hows.values()], np.int64)
                found.append((kind, tuple(rows.T.copy())))
            else:
                parents, variables, groups, names = zip(*hows.values(), strict=True)
                arrays = (parents, variables, [*chain(*groups)], [*chain(*names)])
                found.append((kind, tuple(np.array(array, np.int64) for array in arrays)))
        made = {name for name in needed for name in self._made[name][2][-1]}
        return [*found, ("release", (np.array(sorted(made - self._live), np.int64),))]


# On the workers


class _Held:
    """A shard on a worker."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.packing: Packing | None = None
        self.counter: CpuCounter | None = None
        self.sessions: dict[int, _Sitting] = {}


@dataclass
class _Sitting:
    """A session with a shard: its sets, and the number of rounds it has executed."""

    session: CpuSession
    n_rounds: int
    layout: Layout | None


_HELD: dict[tuple[str, int], _Held] = {}


def _survey(run: str, number: int, source: Any, options: Options) -> tuple[str, Survey]:
    """Read a shard; return the worker's address, and a survey of the shard."""
    held = _HELD.setdefault((run, number), _Held())
    with held.lock:
        held.packing = pack_shard(source, options)
        return _here().address, survey(held.packing)


def _restore(run: str, number: int, source: Any, plan: _Plan, session: int, heard: _Heard | None) -> str | None:
    """Load a shard, unless it is here, and rebuild a session's sets; return the address; None: it needs the source."""
    held = _HELD.setdefault((run, number), _Held())
    worker = _here()
    with held.lock:
        if held.counter is None:
            if source is None and held.packing is None:
                return None
            table = source
            if plan.options is not None:
                packing, held.packing = held.packing or pack_shard(source, plan.options), None
                table = packing.table(plan.variables, plan.states)
            if plan.copies:
                table = table.copying(list(plan.copies))
            held.counter = CpuCounter(table, Workers(worker.state.nthreads))
        if heard is not None:
            sitting = _Sitting(held.counter.session(), heard.n_rounds, heard.layout)
            if session in held.sessions:
                held.sessions.pop(session).session.close()
            _do(sitting.session, heard.operations)
            held.sessions[session] = sitting
    return str(worker.address)


def _count(run: str, numbers: list[int], session: int, round_: _Round) -> _Sum:
    """Execute a round for the shards that are here and have executed all rounds before."""
    began, total, lacking = time.perf_counter(), None, []
    for number in numbers:
        held = _HELD.get((run, number))
        counts = None if held is None else _count_shard(held, session, round_)
        if counts is None:
            lacking.append(number)
        else:
            total = counts if total is None else total + counts
    return _Sum(None if lacking else total, lacking, time.perf_counter() - began)


async def _count_asked(request: bytes, shards: list[int]) -> dict[str, bytes]:
    """Execute a round for a client that asks this worker directly, concurrently with its other tasks."""
    import asyncio

    from distributed.protocol.pickle import dumps, loads

    run, session, round_ = loads(request)
    found: _Sum | _Fault
    try:
        found = await asyncio.to_thread(_count, run, shards, session, round_)
    except OSError as error:
        found = _Fault(error)
    return {"found": dumps(found)}


async def _count_here(request: bytes, shards_of: dict[str, list[int]], dask_worker: Any) -> Any:
    """Execute a round for a client that asks through the scheduler."""
    from distributed.protocol.pickle import loads

    return loads((await _count_asked(request, shards_of[dask_worker.address]))["found"])


def _count_shard(held: _Held, session: int, round_: _Round) -> NDArray[np.int32] | None:
    with held.lock:
        if held.counter is None:
            return None
        if round_.number == 0 and session not in held.sessions:
            held.sessions[session] = _Sitting(held.counter.session(), 0, None)
        sitting = held.sessions.get(session)
        if sitting is None or not round_.number <= sitting.n_rounds <= round_.number + 1:
            return None
        if sitting.n_rounds == round_.number:  # otherwise it has executed this one already
            sitting.n_rounds = -1  # until it is complete: after a fault, the sets must be rebuilt
            _do(sitting.session, round_.operations)
            sitting.layout = round_.layout or sitting.layout
            sitting.n_rounds = round_.number + 1
        assert sitting.layout is not None
        return sitting.session.count(round_.of, round_.targets, sitting.layout)


def _do(session: CpuSession, operations: Sequence[Operation]) -> None:
    for kind, arguments in operations:
        getattr(session, kind)(*arguments)


def _add(one: _Sum, two: _Sum) -> _Sum:
    counts = None if one.counts is None or two.counts is None else one.counts + two.counts
    return _Sum(counts, one.lacking + two.lacking, max(one.seconds, two.seconds))


async def _close(run: str, session: int) -> None:
    def close() -> None:
        for (of, _), held in list(_HELD.items()):
            if of == run:
                with held.lock:
                    if session in held.sessions:
                        held.sessions.pop(session).session.close()

    import asyncio  # here, since it takes long, and searches without workers do not need it

    await asyncio.to_thread(close)  # waits for counts in progress


async def _forget(run: str) -> None:
    for key in [key for key in _HELD if key[0] == run]:
        del _HELD[key]


def _tell_all_to_forget(client: Any, run: str) -> None:
    def tell() -> None:
        with suppress(OSError, RuntimeError):  # the cluster may be gone
            client.run(_forget, run, wait=False)

    if client.status == "running":
        if threading.current_thread() is threading.main_thread():
            tell()
        else:  # this may be the client's own thread, which would wait for itself
            threading.Thread(target=tell, daemon=True).start()


def _here() -> Any:
    """Return this worker, which from now on also serves clients that ask it directly."""
    worker = _distributed().get_worker()
    worker.handlers.setdefault(_COUNT, _count_asked)
    return worker


def _dealt(data: Any, n_workers: int) -> list[Any]:
    """Distribute files over shards, in order and by size; or return the partitions of a Dask data frame."""
    if is_dask_frame(data):
        return list(data.to_delayed())
    if not is_path(data):
        raise TypeError(
            f"data of type {type(data).__name__} cannot be read by a cluster: give files, or a Dask data frame"
        )
    files = [str(path.resolve()) for path in files_of(data)]
    sizes = np.array([path.stat().st_size for path in files_of(data)], np.float64)
    middles = (np.cumsum(sizes) - sizes / 2) / max(1.0, sizes.sum())
    owners = np.minimum((middles * n_workers).astype(int), n_workers - 1).tolist()
    shards = [tuple(file for file, owner in zip(files, owners, strict=True) if owner == k) for k in range(n_workers)]
    return [shard for shard in shards if shard]


def _distributed() -> Any:
    try:
        import distributed
    except ModuleNotFoundError:
        raise ValueError(
            "counting on a cluster needs the package dask, which is not installed: pip install 'leafwise[dask]'"
        ) from None
    return distributed
