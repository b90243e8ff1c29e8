"""learn(...): the one place where the parts are wired together."""

from leafwise.constraints import Constraints
from leafwise.counters.cpu import CpuCounter
from leafwise.network import Network
from leafwise.priors import log_kappa, parameter_prior
from leafwise.search.greedy import Greedy, Problem, Search
from leafwise.table import Table
from leafwise.workers import Workers


def learning(data: Table, *, target: str | None = None, search: Greedy = Greedy(), prior: str = "uniform",
             structure_prior: str = "kappa:0.1", constraints: Constraints = Constraints(), start: Network | None = None) -> Search:
    table = data
    targets = tuple(range(table.n_variables)) if target is None else (table.index(target),)
    workers = Workers(search.threads)
    problem = Problem(table.variables, targets, parameter_prior(prior), log_kappa(structure_prior), constraints.resolve(table), {})
    return Search(problem, CpuCounter(table, workers), search, workers)
