"""`learn`, `start_search` and `log_score`: the module that connects data, priors, counters and searches."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leafwise.averaging import GROWTH, averaged
from leafwise.constraints import Constraints, Family, ParentRules, check_arcs
from leafwise.counters.counter import Counter
from leafwise.counters.cpu import CpuCounter
from leafwise.counters.dask import DaskCounter, is_dask_frame
from leafwise.counters.gpu import GpuCounter
from leafwise.data.case_weights import stacked
from leafwise.data.encoding import Reading, read, read_weighted
from leafwise.data.new_data import for_learning, without_inference, without_sums
from leafwise.data.series import read_series, windows
from leafwise.data.table import Table, count_states
from leafwise.decision_graph import DecisionGraph
from leafwise.dynamic_network import DynamicNetwork
from leafwise.empirical_bayes import with_fitted_priors
from leafwise.ensembles import FOR_A_TARGET, TRIED, HiddenRun, JointRun, Kind, MixtureRun, TargetRun
from leafwise.errors import AdvisedError, Argument, check_type
from leafwise.incomplete import DEFAULT_COMPLETIONS, Completing, Hidden, State, begin_incomplete, refuse_tables
from leafwise.inference.completion import counts_in_leaves
from leafwise.inference.likelihood import check_variables
from leafwise.mixture import Mixture
from leafwise.network import Network, Node, all_ties, check_network, known_groups
from leafwise.prior_network import PriorNetwork
from leafwise.priors import Bdeu, ParameterPrior, Symmetric, Uniform, parameter_prior
from leafwise.regions import Region, bits_of
from leafwise.scores import NodeScores, score_with, scored_exponents
from leafwise.search import single_target
from leafwise.search.checkpoints import EVERY, Checkpoint, Checkpointed, check_every, run_of
from leafwise.search.leaf_search import LeafSearch
from leafwise.search.problem import Problem
from leafwise.search.run import Resumable, SearchRun, Settings, parting_or_sharing
from leafwise.search.table_arc_search import TableArcSearch
from leafwise.search.tied import begin_tied
from leafwise.smoothing import counts_of
from leafwise.stacking import stacked as with_stacked_leaves
from leafwise.structure_priors import Arcs, Choices, Kappa, StructurePrior
from leafwise.structure_priors import structure_prior as structure_prior_of
from leafwise.tied_leaves import added_exponents, first_exponents, pooled
from leafwise.workers import Workers

DEFAULT_PRIOR = DEFAULT_STRUCTURE_PRIOR = "auto"
LEAVES = ("plain", "average", "stacked")


@overload
def learn(
    data: Any,
    *,
    target: str | None = None,
    search: Settings = LeafSearch(),
    prior: str | ParameterPrior = DEFAULT_PRIOR,
    structure_prior: str | StructurePrior = DEFAULT_STRUCTURE_PRIOR,
    constraints: Constraints = Constraints(),
    start: Network | None = None,
    hidden: Hidden = None,
    completions: int = DEFAULT_COMPLETIONS,
    seed: int = 1,
    leaves: str = "plain",
    weights: str | ArrayLike | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = EVERY,
    device: str = "cpu",
    cluster: Any = None,
    **reading: Unpack[Reading],
) -> Network: ...


@overload
def learn(
    data: Any,
    *,
    networks: int,
    seed: int = 1,
    target: str | None = None,
    search: Settings = LeafSearch(),
    prior: str | ParameterPrior = DEFAULT_PRIOR,
    structure_prior: str | StructurePrior = DEFAULT_STRUCTURE_PRIOR,
    constraints: Constraints = Constraints(),
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = EVERY,
    **reading: Unpack[Reading],
) -> Mixture: ...


@overload
def learn(
    data: Any,
    *,
    lags: int,
    by: str | None = None,
    time: str | None = None,
    search: Settings = LeafSearch(),
    prior: str | ParameterPrior = DEFAULT_PRIOR,
    structure_prior: str | StructurePrior = DEFAULT_STRUCTURE_PRIOR,
    constraints: Constraints = Constraints(),
    leaves: str = "plain",
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = EVERY,
    device: str = "cpu",
    **reading: Unpack[Reading],
) -> DynamicNetwork: ...


def learn(
    data: Any,
    *,
    target: str | None = None,
    search: Settings = LeafSearch(),
    prior: str | ParameterPrior = DEFAULT_PRIOR,
    structure_prior: str | StructurePrior = DEFAULT_STRUCTURE_PRIOR,
    constraints: Constraints = Constraints(),
    start: Network | None = None,
    hidden: Hidden = None,
    completions: int = DEFAULT_COMPLETIONS,
    leaves: str = "plain",
    weights: str | ArrayLike | None = None,
    networks: int | None = None,
    lags: int | None = None,
    by: str | None = None,
    time: str | None = None,
    seed: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = EVERY,
    device: str = "cpu",
    cluster: Any = None,
    **reading: Unpack[Reading],
) -> Network | Mixture | DynamicNetwork:
    """Learn a network from a file, a data frame, an array, a Table, or a Counter.

    `target`: learn only the distribution of this variable, with all others as possible parents.
    `search`: the search algorithm and its settings: `LeafSearch(...)` searches over the leaves of all graphs;
    `LeafSearchRestarts(...)` continues where that ends; `TableArcSearch(...)` and `GraphArcSearch(...)` search over
    arcs, with complete tables or with decision graphs in the nodes; `RecoverySearch(...)` first recovers the arcs that
    generated the data, and then learns graphs that test their parents.
    `prior`: the parameter prior: "auto" is worth two cases per leaf, spread evenly over the states, and in the leaves
    of the result 2, 4, 8, 16 or 32, as fits a variable's cases best; "symmetric:2" is worth two everywhere,
    "symmetric:5" five; "uniform" one per state, as in the paper; "bdeu:10" is a uniform prior network worth 10 cases;
    "network:FILE:10" the prior network in a file. Objects are accepted, too: `Bdeu(10)`, `PriorNetwork(network, 10)`,
    and for the next argument `Kappa(0.1)`.
    `structure_prior`: "auto" charges every choice made in a structure by the number of alternatives; "kappa:0.1" is a
    factor of 0.1 for each parameter; "uniform" has no charges.
    `constraints`: which parents are allowed (`Constraints`).
    `start`: the initial network.
    `hidden`: 8 adds a hidden variable with eight states, which any graph may test; (4, 4) adds two with four; "auto"
    adds one with the number of states that scores best, or none.
    `completions`: the number of completions of each case, if missing cells are inferred or causes are hidden.
    `leaves`: "plain" is the posterior mean in each leaf of the structure that is found. "average" predicts better: the
    mean over all prunings of each graph (`averaged`), which is then by default a tree grown with low charges: without
    merges, and with "kappa:0.3". "stacked" also predicts better, with the structure of "plain", even if cells are
    missing: each leaf is split by all states of the parents, with a mixture of estimates from coarse to fine
    (`stacked`).
    `weights`: the number of cases that each row represents: the name of a column, which is then no variable, or
    numbers.
    `networks`: learn this many networks, combined in a `Mixture`, which predicts better than any of them: each is
    learned from a bootstrap sample, and groups of them share a random order of the variables and mix their nodes. The
    trees' charges, the smoothing of leaves and the weights are chosen on cases that members did not see.
    `lags`: rows are time series, in which every slice depends on this many preceding ones and on itself; the result is
    a `DynamicNetwork`.
    `by`: the column that identifies series; without it, all rows are one series.
    `time`: the column of whole numbers or dates that orders the rows of a series; without it, rows are in order.
    `seed`: the seed of completions and of mixtures.
    `checkpoint`: a file in which the search is saved, so that the same call resumes it after an interruption.
    `every`: the most seconds of work that are then lost.
    `device`: "gpu" counts on a GPU, with the same result; this needs the extra `gpu`.
    `cluster`: a Dask client, or the address of a scheduler, whose workers read the files and count, with the same
    result; this needs the extra `dask`. A Dask data frame is counted on its own workers.
    `reading`: `bins`, `missing`, `ignore` and other arguments of `read`. With `missing="infer"`, missing cells are
    inferred from the observed cells of their cases: they must be missing at random.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.sampling import sample
    >>> network = learn(sample(alarm(), 500, seed=1), target="HRBP")
    >>> [network.names[parent] for parent in network.nodes[8].parents]
    ['ERRLOWOUTPUT', 'HR']
    """
    check_types(search, prior, structure_prior, constraints, start)
    saving: dict[str, Any] = {"checkpoint": checkpoint, "every": every}
    given: dict[str, Any] = {"search": search, "prior": prior, "structure_prior": structure_prior}
    if lags is None:
        _refuse_beside("a run without lags", {"by": by, "time": time})
    else:
        others = {"target": target, "start": start, "hidden": hidden, "weights": weights, "networks": networks}
        _refuse_beside(Argument("lags", lags), others | {"cluster": cluster})
        series, _ = read_series(data, by=by, time=time, **reading)
        table = windows(series, lags)
        rules = constraints.over_slices(series.table.names, lags)
        window = learn(table, constraints=rules, leaves=leaves, device=device, **given, **saving)
        return DynamicNetwork(window, lags)
    if leaves == "average" and constraints.tied:
        _refuse_beside("constraints with tied", {"leaves": leaves})
    if networks is not None or leaves != "plain":
        infers = reading.get("missing") == "infer" or None
        _refuse_beside(
            Argument("leaves", leaves) if networks is None else Argument("networks", networks),
            {
                "weights": weights,
                "hidden": hidden if networks is None else None,
                "missing": infers if networks is not None or leaves == "average" else None,
                "cluster": cluster,
                "device": None if networks is None or device == "cpu" else device,
            },
        )
        if infers and target is not None:
            _refuse_beside("a target of a table with holes", {"leaves": leaves})
    if networks is not None:
        given |= {"target": target, "constraints": constraints, "start": start, "leaves": leaves, "seed": seed}
        given |= {"hidden": hidden, "completions": completions}
        mixture = start_mixture(data, networks, **given, **saving, **reading)
        mixture.run()
        return mixture.network
    search, structure_prior = grown_for(leaves, search, structure_prior)
    if leaves != "plain":
        with for_learning():
            table = read(data, target=target, variables=None if start is None else start.variables, **reading)
        data, reading = table, {"missing": "infer"} if reading.get("missing") == "infer" else {}
    under_way = start_search(
        data,
        target=target,
        search=search,
        prior=prior,
        structure_prior=structure_prior,
        constraints=constraints,
        start=start,
        hidden=hidden,
        completions=completions,
        seed=seed,
        weights=weights,
        checkpoint=checkpoint,
        every=every,
        device=device,
        cluster=cluster,
        **reading,
    )
    under_way.run()
    return with_leaves(leaves, under_way.network, data, seed)


def with_leaves(leaves: str, network: Network, data: Any, seed: int = 1) -> Network:
    """The network that a search found, with leaves of this kind."""
    if leaves == "stacked":
        return with_stacked_leaves(network, data, seed)
    return averaged(network, data) if leaves == "average" else network


def _refuse_beside(what: str | Argument, others: Mapping[str, object]) -> None:
    """Raise an error if any of the other arguments was given, as they cannot be combined with `what`."""
    for name, value in others.items():
        if value is not None:
            shown = Argument(name, "infer") if name == "missing" else Argument(name)
            raise AdvisedError(shown, " and ", what, " were both given, which do not go together yet: leave one out")


def _refuse_shared(search: Settings, what: Argument) -> None:
    """Raise an error for operators that part or share distributions, which cannot be combined with `what`."""
    if letters := parting_or_sharing(search):
        raise AdvisedError(f"the operators {', '.join(letters)} and ", what, " do not go together yet: leave one out")


def start_mixture(
    data: Any,
    networks: int,
    *,
    seed: int = 1,
    target: str | None = None,
    search: Settings = LeafSearch(),
    prior: str | ParameterPrior = DEFAULT_PRIOR,
    structure_prior: str | StructurePrior = DEFAULT_STRUCTURE_PRIOR,
    constraints: Constraints = Constraints(),
    start: Network | None = None,
    hidden: Hidden = None,
    completions: int = DEFAULT_COMPLETIONS,
    leaves: str = "plain",
    candidates: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = EVERY,
    **reading: Unpack[Reading],
) -> MixtureRun:
    """Begin to learn a mixture, with the arguments of `learn`; `network` is the mixture so far, at any time.

    `candidates`: the fraction of the other variables, drawn for each member and variable, that may be parents. None:
    all, and for a single target, half of them for some members.
    """
    check_types(search, prior, structure_prior, constraints, start)
    check_every(every)
    check_type(networks, (int, np.integer), "networks", "a whole number: give one such as 40")
    if constraints.tied:
        _refuse_beside("constraints with tied", {"networks": networks})
    _refuse_in_mixtures(Argument("networks", networks), start, leaves, search, hidden, target)
    with without_inference():
        table = read(data, target=target, **reading)
    kinds = _kinds(target, search, structure_prior, hidden, candidates)
    given: dict[str, Any] = {"search": search, "prior": prior}

    def learn_member(cases: Table, own: Constraints, kind: Kind, state: State) -> Resumable:
        its = replace(search, operators=kind.operators) if isinstance(search, LeafSearch) else search
        how = {**given, "search": its, "structure_prior": kind.structure_prior, "constraints": own}
        causes: Any = {} if hidden is None else {"hidden": hidden, "completions": completions, "seed": seed}
        return _prepared(cases, target=target, **how, **causes).begin(state)

    file = None
    if checkpoint is not None:
        run = _prepared(table, target=target, structure_prior=structure_prior, constraints=constraints, **given)
        causes = "" if hidden is None else f", hidden={hidden!r}, completions={completions}"
        file = Checkpoint(checkpoint, run.of(f"{networks} networks, seed={seed}, {kinds}{causes}"))
    state = None if file is None else file.load()
    arguments = (table, networks, seed, constraints, kinds, learn_member)
    joint = JointRun if hidden is None else HiddenRun
    under_way: Any = (
        joint(*arguments, state=state) if target is None else TargetRun(*arguments, target=target, state=state)
    )
    if file is not None:
        under_way = Checkpointed(under_way, file, every)  # which delegates everything else to the search
    mixture: MixtureRun = under_way
    return mixture


def _refuse_in_mixtures(
    networks: Argument, start: Network | None, leaves: str, search: Settings, hidden: Hidden, target: str | None
) -> None:
    """Raise an error for arguments that mixtures do not support."""
    if start is not None or leaves != "plain":
        what = Argument("start") if start is not None else Argument("leaves", leaves)
        raise AdvisedError(what, " was given with ", networks, ", which chooses these itself: leave one out")
    _refuse_shared(search, networks)
    if hidden is not None:
        _refuse_beside(Argument("hidden", hidden), {"target": target})
        refuse_tables(search)  # now, before the first of them begins
        if hidden == "auto":
            raise AdvisedError(
                Argument("hidden", hidden),
                " and ",
                networks,
                " were both given: say how many states there are, as with ",
                ("hidden", 4),
            )


def _kinds(
    target: str | None,
    search: Settings,
    structure_prior: str | StructurePrior,
    hidden: Hidden,
    candidates: float | None,
) -> tuple[Kind, ...]:
    """The kinds of members among which a mixture chooses, or which for a target alternate."""
    kinds = TRIED if target is None else FOR_A_TARGET
    if not isinstance(search, LeafSearch):
        kinds = (Kind("auto"),)
    elif hidden is not None:
        kinds = (Kind("auto", search.operators),)
    elif search.operators != LeafSearch.operators:
        kinds = tuple(kind._replace(operators=search.operators) for kind in kinds)
    if structure_prior != "auto":
        kinds = tuple(kind._replace(structure_prior=structure_prior) for kind in kinds)
    if candidates is not None:
        kinds = tuple(kind._replace(candidates=candidates) for kind in kinds)
    return tuple(dict.fromkeys(kinds))


def grown_for(
    leaves: str, search: Settings, structure_prior: str | StructurePrior
) -> tuple[Settings, str | StructurePrior]:
    """The search and structure prior for leaves of this kind, where these have their defaults."""
    if leaves not in LEAVES:
        raise ValueError(f"leaves are {leaves!r}: give 'plain', 'average' or 'stacked'")
    if leaves == "average":
        _refuse_shared(search, Argument("leaves", leaves))
    if leaves != "average" or not isinstance(search, LeafSearch):
        return search, structure_prior
    if search.operators == LeafSearch.operators:
        search = replace(search, operators="CBI")
    if structure_prior == "auto" and "M" not in search.operators:
        structure_prior = GROWTH
    return search, structure_prior


def start_search(
    data: Any,
    *,
    target: str | None = None,
    search: Settings = LeafSearch(),
    prior: str | ParameterPrior = DEFAULT_PRIOR,
    structure_prior: str | StructurePrior = DEFAULT_STRUCTURE_PRIOR,
    constraints: Constraints = Constraints(),
    start: Network | None = None,
    hidden: Hidden = None,
    completions: int = DEFAULT_COMPLETIONS,
    seed: int = 1,
    weights: str | ArrayLike | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = EVERY,
    device: str = "cpu",
    cluster: Any = None,
    **reading: Unpack[Reading],
) -> SearchRun:
    """Begin a single search, with the arguments of `learn`: iterate over its steps; `network` is the network so far.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.sampling import sample
    >>> search = start_search(sample(alarm(), 500, seed=1))
    >>> first = next(search)
    >>> first.n_arcs, first.operator.gain > 0, search.network.n_leaves == first.n_leaves
    (1, True, True)
    """
    check_every(every)
    check_types(search, prior, structure_prior, constraints, start)
    if constraints.tied:
        _refuse_beside("constraints with tied", {"checkpoint": checkpoint})
    run = _prepared(
        data,
        target=target,
        search=search,
        prior=prior,
        structure_prior=structure_prior,
        constraints=constraints,
        start=start,
        hidden=hidden,
        completions=completions,
        seed=seed,
        weights=weights,
        device=device,
        cluster=cluster,
        **reading,
    )
    if checkpoint is None:
        under_way: Any = run.begin(None)
    else:
        file = Checkpoint(checkpoint, run.of())
        under_way = Checkpointed(run.begin(file.load()), file, every)
    found: SearchRun = _Fitted(under_way) if prior == "auto" else under_way
    return found


class _Fitted:
    """A search whose networks have parameter priors fitted to each variable's cases (`empirical_bayes`).

    Everything else is delegated to the search, including `nodes`, which have the prior used for scoring.
    """

    def __init__(self, search: Any) -> None:
        vars(self)["_search"] = search

    def __getattr__(self, name: str) -> Any:
        if name == "_search":  # not set yet, while a copy is being made
            raise AttributeError(name)
        return getattr(self._search, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._search, name, value)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._search)

    def run(self, progress: Callable[[Any], None] | None = None) -> None:
        """Take all remaining steps; `progress` is called with this object."""
        self._search.run(*(() if progress is None else (lambda _: progress(self),)))

    @property
    def network(self) -> Network:
        return with_fitted_priors(self._search.network)

    @property
    def networks(self) -> list[tuple[Network, float, float]]:
        """The networks of a search that keeps several."""
        return [(with_fitted_priors(network), *rest) for network, *rest in self._search.networks]


@dataclass(frozen=True)
class _Run:
    """Everything that a search needs to begin."""

    problem: Problem
    table: Table
    counter: Counter
    search: Settings
    workers: Workers
    target: str | None
    start: Network | None
    completing: Completing | None  # None: nothing is inferred or hidden
    tied: Sequence[Sequence[Family]] = ()  # groups that share a graph
    device: str = "cpu"

    def begin(self, state: State) -> Resumable:
        """Begin the search, or resume one from its state."""
        if self.tied:

            def count(table: Table) -> Counter:
                return _counter_of(table, self.workers, 1.0, self.device)

            settings: Any = self.search  # a LeafSearch
            found: Any = begin_tied(self.problem, self.table, self.tied, settings, self.workers, count)
            tied: Resumable = found  # except for its state, which is not used
            return tied
        if self.completing is None:
            return single_target.begin(self.search, self.problem, self.counter, self.workers, state)
        return begin_incomplete(self.problem, self.table, self.completing, self.search, self.workers, state)

    def of(self, repeated: str = "") -> dict[str, str]:
        """What the result depends on, for the checkpoint; `repeated` describes repetitions of the search."""
        repeated = repeated if self.completing is None else str(self.completing)
        return run_of(self.problem, self.counter, self.search, self.target, self.start, repeated)


@for_learning()
def _prepared(
    data: Any,
    *,
    search: Settings,
    prior: str | ParameterPrior,
    structure_prior: str | StructurePrior,
    constraints: Constraints,
    target: str | None = None,
    start: Network | None = None,
    hidden: Hidden = None,
    completions: int = DEFAULT_COMPLETIONS,
    seed: int = 1,
    weights: str | ArrayLike | None = None,
    device: str = "cpu",
    cluster: Any = None,
    **reading: Unpack[Reading],
) -> _Run:
    """Read the data, and prepare everything else."""
    workers = Workers(search.threads)
    device_given = None if device == "cpu" else device
    if cluster is not None or is_dask_frame(data):
        _refuse_beside(
            "a Dask data frame" if cluster is None else Argument("cluster"),
            {"weights": weights, "hidden": hidden, "device": device_given, "tied": constraints.tied or None},
        )
        data, reading = DaskCounter.read(data, cluster, target=target, **reading), {}
    infers, shares = reading.get("missing") == "infer", None
    if hasattr(data, "session"):
        others = {"weights": weights, "hidden": hidden, "device": device_given, **reading}
        counter, table, parameters = _counting(data, prior, others)
    else:
        variables = None if start is None else start.variables
        if isinstance(data, Table) and variables is None and weights is None and not reading:
            table = data
        elif weights is None:
            table = read(data, target=target, variables=variables, **reading)
        else:
            table, _, shares = read_weighted(data, weights, target=target, variables=variables, **reading)
        infers = infers or any(variable.hidden for variable in table.variables)
        parameters, table = _prior_for(prior, table, "infer" if infers else "error")
        rows, unit = (table, 1.0) if shares is None else stacked(table, shares)
        counter = _counter_of(rows, workers, unit, device)
        is_plain = isinstance(search, LeafSearch) and not infers and hidden is None
        if is_plain and table.n_cases and counter.local is not None:
            counter.local.prepare()  # in the background
    if counter.n_cases == 0:
        raise ValueError("the table has no cases, and learning needs at least one: check the data")
    if start is not None:
        check_variables(start, table, gaps=infers)
    targets = tuple(range(table.n_variables)) if target is None else (table.index(target),)
    rules = _with_arcs_of(start, constraints.resolve(table), targets, table)
    problem = Problem(
        table.variables,
        targets,
        parameters,
        _structure_prior(structure_prior, search),
        rules,
        _count_candidates(rules),
        _graphs_of(start, targets),
    )
    if constraints.tied:
        others = {"hidden": hidden, "weights": weights, "start": start, "target": target, "missing": infers or None}
        _refuse_beside("constraints with tied", others)
        _check_tied(data, search, parameters)
    how = None
    if infers or hidden is not None:
        _check_completing(shares, device)
        how = Completing(hidden, completions, seed, infers, start)
    tied = constraints.families(table) if constraints.tied else ()
    return _Run(problem, table, counter, search, workers, target, start, how, tied, device)


def _check_completing(shares: NDArray[np.float64] | None, device: str) -> None:
    """Raise an error for fractional or large weights, and for GPUs, which completed cases do not support."""
    if shares is not None:
        raise AdvisedError(
            "the weights are not whole, or too large, and cases that are completed count as whole ones: round or "
            "divide them, or where nothing is hidden pass ",
            ("missing", "state"),
            " or ",
            ("missing", "drop"),
        )
    if device != "cpu":
        its = Argument("missing", "infer")
        raise AdvisedError(
            Argument("device", device), " does not go with ", its, " or hidden causes yet: leave one out"
        )


def _check_tied(data: Any, search: Settings, prior: ParameterPrior) -> None:
    """Raise an error for data, searches and priors that do not support groups with a shared graph."""
    if hasattr(data, "session") or not isinstance(search, LeafSearch) or search.shares:
        raise ValueError(
            "constraints with tied are for LeafSearch over a table, without the operators R and T: leave them out"
        )
    if isinstance(prior, PriorNetwork):
        raise ValueError(f"the prior {str(prior)!r} knows no shared graphs: use another prior, such as 'auto'")


def _counter_of(table: Table, workers: Workers, unit: float, device: str) -> Counter:
    """The counter of a table's rows on this device."""
    if device == "cpu":
        return CpuCounter(table, workers, unit)
    if device == "gpu":
        return GpuCounter(table, unit)
    raise ValueError(f"the device is {device!r}: give 'cpu' or 'gpu'")


def _counting(
    counter: Counter, prior: str | ParameterPrior, reading: dict[str, Any]
) -> tuple[Counter, Table, ParameterPrior]:
    """The given counter, a table of its variables without rows, and the prior for them."""
    given = [name for name, value in reading.items() if value is not None]
    if given:
        raise ValueError(
            f"a counter's rows are read already, and counted where they are, so {', '.join(given)} cannot be given: "
            "leave it out, or give the table"
        )
    dtype = np.uint8 if max(variable.n_states for variable in counter.variables) <= 256 else np.uint16
    schema = Table(counter.variables, np.zeros((len(counter.variables), 0), dtype))
    parameters, encoded = _prior_for(prior, schema)
    if encoded.variables != schema.variables:
        raise ValueError("the prior network has other states than the counter's rows: encode the rows in its states")
    return counter, schema, parameters


def check_types(search: object, prior: object, structure_prior: object, constraints: object, start: object) -> None:
    """Raise a TypeError if an argument is not of its type."""
    if not hasattr(search, "begin"):
        raise TypeError(
            f"search is {search!r} ({type(search).__name__}), and must be settings such as leafwise.LeafSearch()"
        )
    check_type(
        prior,
        (str, Uniform, Symmetric, Bdeu, PriorNetwork),
        "the prior",
        "a text or a prior: use 'uniform', 'bdeu:10', 'network:FILE:10' or leafwise.Bdeu(10)",
    )
    check_type(
        structure_prior,
        (str, Kappa, Choices, Arcs),
        "the structure prior",
        "a text or a prior: use 'auto', 'uniform', 'kappa:0.1' or leafwise.Kappa(0.1)",
    )
    check_type(
        constraints, Constraints, "what is given as constraints", "leafwise.Constraints: use Constraints(order=...)"
    )
    if start is not None:
        check_network(start, "start")


def log_score(
    network: Network,
    data: Any,
    *,
    prior: str | ParameterPrior | None = None,
    structure_prior: str | StructurePrior | None = None,
) -> NodeScores:
    """log p(data, structure) of each node, by name, and `total`; priors are the network's own unless given.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.sampling import sample
    >>> cases = sample(alarm(), 500, seed=1)
    >>> round(log_score(alarm(), cases, prior="uniform", structure_prior="uniform")["HISTORY"].log_score, 2)
    -32.51
    """
    check_network(network, "log_score")
    if any(variable.hidden for variable in network.variables):
        raise ValueError(
            "the network has hidden causes, and log_score needs cases that show all: use log_probabilities"
        )
    with without_sums():
        table = read(data, variables=network.variables)
    check_variables(network, table)
    prior_text = network.prior if prior is None else prior
    structure_text = network.structure_prior if structure_prior is None else structure_prior
    if prior_text is None or structure_text is None:
        raise AdvisedError(
            "the network has no priors to score with, as it was not learned, or has other leaves since: give ",
            ("prior",),
            " and ",
            ("structure_prior",),
            ", for instance 'uniform' and 'kappa:0.1'",
        )
    structure = structure_prior_of("choices" if structure_text == "auto" else structure_text)
    held = [None if node is None or prior is not None else scored_exponents(network, node) for node in network.nodes]
    given = all(node is None or own is not None for node, own in zip(network.nodes, held, strict=True))
    parameters, encoded = (Uniform(), table) if given else _prior_for(prior_text, table)
    if encoded.variables != table.variables:
        other = next(a.name for a, b in zip(encoded.variables, table.variables, strict=True) if a != b)
        raise ValueError(
            f"the prior network has other states of {other!r}, or another order of them, than the network: "
            f"use a prior network with the same."
        )
    rows = {}
    for target, node in enumerate(network.nodes):
        if node is not None:
            exponents = held[target]
            if exponents is None:
                exponents = _exponents(network, target, node, parameters)
            rows[target] = _counts(node, target, table), exponents
    adds = not given and isinstance(parameters, Bdeu | PriorNetwork)
    known = set(map(frozenset, known_groups(network)))  # each with one graph over stacked cases, and one prior
    every: list[list[Any]] = [[], []]
    for group in all_ties(network):
        every[frozenset(tied.variable for tied in group) in known].append(group)
    found = pooled(every[0], rows, added_exponents if adds else first_exponents)
    found = pooled(every[1], found, first_exponents)
    return NodeScores(
        {network.names[target]: score_with(network, target, *own, structure) for target, own in found.items()}
    )


def _counts(node: Node, target: int, table: Table) -> NDArray[np.int64]:
    """The counts of a target's states in a table, for each distribution of its node."""
    if node.own is not None:
        return counts_of(node, target, table)[1][list(node.places)]
    return counts_in_leaves(node, target, table.codes)


def _count_candidates(rules: ParentRules) -> NDArray[np.int64]:
    """The number of variables that each graph may test, ignoring cycles."""
    n = len(rules.allowed)
    if np.count_nonzero(rules.allowed) == n * (n - 1):  # a shortcut for the usual case
        return np.full(n, n - 1)
    counts: NDArray[np.int64] = rules.allowed.sum(axis=1, dtype=np.int64)
    return counts


def _structure_prior(text: str | StructurePrior, search: Settings) -> StructurePrior:
    """The structure prior of this name; "auto" is "arcs" for complete tables, otherwise "choices"."""
    if text == "auto":
        text = "arcs" if isinstance(search, TableArcSearch) else "choices"
    return structure_prior_of(text)


def _prior_for(text: str | ParameterPrior, table: Table, missing: str = "error") -> tuple[ParameterPrior, Table]:
    """The prior of this name for a table's variables, and the table, recoded if the prior is a network."""
    prior = parameter_prior(text)
    if not isinstance(prior, PriorNetwork):
        return prior, table
    return replace(prior, names=table.names), read(table, variables=prior.variables(table.names), missing=missing)


def _exponents(network: Network, target: int, node: Node, prior: ParameterPrior) -> Any:
    """The exponents that a prior gives to the distributions of a node."""
    n_states = count_states(network.variables)
    every = [node.whole_graph.paths_to(place) for place in node.places]
    regions = [
        Region(tuple({v: bits_of(states) for v, states in path.items() if v != target} for path in paths))
        for paths in every
    ]
    exponents = np.stack([prior.leaf_exponents(target, region, n_states) for region in regions])
    return exponents if node.own is None else np.where(node.own.reached, exponents, 0.0)


def _graphs_of(start: Network | None, targets: tuple[int, ...]) -> dict[int, DecisionGraph]:
    if start is None:
        return {}
    n_states = [variable.n_states for variable in start.variables]
    nodes = {target: start.nodes[target] for target in targets}
    if start.ties or any(node is not None and node.own is not None for node in nodes.values()):
        raise ValueError(
            "the starting network has own-value tests or ties, and a search begins without: learn it without O, R and "
            "T, or begin without a network"
        )
    graphs = {target: node.graph for target, node in nodes.items() if node is not None}
    for target, graph in graphs.items():
        if not _is_all_in_reach(graph, n_states):
            raise ValueError(
                f"the starting network's graph of {start.names[target]!r} has a leaf that no case can reach, and that "
                f"would count as parameters: take it out"
            )
    return graphs


def _is_all_in_reach(graph: DecisionGraph, n_states: list[int]) -> bool:
    """Whether every node is reached by some assignment; earlier tests may rule out all states of an arc."""
    regions: list[Region | None] = [None] * len(graph.tests)
    regions[0] = Region.everything()
    for node, test in enumerate(graph.tests):
        region = regions[node]
        if region is None or not region.boxes:
            return False
        for states, child in graph.arcs(node):
            part, other = region.cut(test, bits_of(states), n_states[test]), regions[child]
            regions[child] = part if other is None else other.join(part)
    return True


def _with_arcs_of(start: Network | None, rules: ParentRules, targets: tuple[int, ...], table: Table) -> ParentRules:
    """The rules, with the arcs of the initial network as parents; an error if they do not allow that network."""
    if start is None:
        return rules
    is_parent = rules.is_parent.copy()
    for target in targets:
        node = start.nodes[target]
        for parent in () if node is None else node.parents:
            if not rules.allowed[target, parent]:
                arc = f"{table.names[parent]} -> {table.names[target]}"
                raise ValueError(f"the starting network has the arc {arc}, which the constraints rule out: change one")
            is_parent[target, parent] = 1
        if node is not None and node.graph.n_leaves > rules.most_leaves:
            raise AdvisedError(
                f"the starting network has {node.graph.n_leaves} leaves for {table.names[target]!r}, more than ",
                ("max_leaves", rules.most_leaves),
                ": raise it, or start from a smaller network",
            )
    check_arcs(is_parent, rules.most_parents, table)
    return rules._replace(is_parent=is_parent)
