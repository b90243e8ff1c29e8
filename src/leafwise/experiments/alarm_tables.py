"""Tables 3 to 6: ALARM, learned from 1,000 cases with its own arcs (S), freely (U), and along its order (C).

The paper's sample is not available, so each seed draws another one; results are means and standard deviations over
seeds.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from leafwise import dag
from leafwise.constraints import Constraints
from leafwise.data.table import Table
from leafwise.examples import alarm
from leafwise.experiments.published import COLUMNS, OPERATORS, TABLE_6
from leafwise.inference.sampling import sample
from leafwise.learner import log_score, start_search
from leafwise.network import Network
from leafwise.report.tables import Report
from leafwise.search.leaf_search import LeafSearch
from leafwise.search.run import Settings
from leafwise.search.table_arc_search import GREEDY

N_CASES = 1000
ROWS = tuple(TABLE_6)
TITLES = {
    "S": "Table 3: the arcs of ALARM, graphs learned",
    "U": "Table 4: arcs and graphs learned",
    "C": "Table 5: arcs and graphs learned, parents only from non-descendants in ALARM",
}


def alarm_scores(seed: int, schedule: str) -> NDArray[np.float64]:
    """The log scores of one sample: rows S, U, C by columns COMP, C, B, CB, CM, BM, CBM."""
    generator = alarm()
    cases = sample(generator, N_CASES, seed)
    names = generator.names
    arcs = [(names[parent], names[child]) for parent, child in generator.arcs]
    free, along = Constraints(), Constraints(allowed_parents=_non_descendants(generator))
    given = sum(s.log_score for s in log_score(generator, cases, prior="uniform", structure_prior="uniform").values())
    rows = [[given], [_learned(cases, GREEDY, free)], [_learned(cases, GREEDY, free, start=generator)]]
    for operators in OPERATORS:
        settings = LeafSearch(operators, schedule)
        for row, constraints in zip(rows, (Constraints(dag=arcs), free, along), strict=True):
            row.append(_learned(cases, settings, constraints))
    return np.array(rows)


def _learned(cases: Table, search: Settings, constraints: Constraints, start: Network | None = None) -> float:
    under_way = start_search(
        cases, search=search, prior="uniform", structure_prior="uniform", constraints=constraints, start=start
    )
    under_way.run()
    return under_way.log_score


def _non_descendants(network: Network) -> dict[str, list[str]]:
    above = dag.ancestor_matrix([node.parents for node in network.nodes if node is not None])
    names = network.names
    return {
        names[child]: [names[other] for other in range(len(names)) if other != child and not above[other, child]]
        for child in range(len(names))
    }


def scores_of_seeds(n_seeds: int, schedule: str, tell: Callable[[str], None]) -> NDArray[np.float64]:
    """The scores of all samples: (n_seeds, rows, columns)."""
    found = []
    for seed in range(1, n_seeds + 1):
        tell(f"sample {seed} of {n_seeds}")
        found.append(alarm_scores(seed, schedule))
    return np.array(found)


def table_report(row: str, scores: NDArray[np.float64]) -> Report:
    """Table 3, 4 or 5: each sample relative to its worst column."""
    own = scores[:, ROWS.index(row)]
    relative = own - own.min(axis=1, keepdims=True)
    published = np.array(TABLE_6[row]) - min(TABLE_6[row])
    rows = [_row("paper", published), *_mean_rows("leafwise", relative)]
    data = {"columns": COLUMNS, "paper": published.tolist(), "leafwise": own.tolist()}
    return Report(TITLES[row], ("", *COLUMNS), rows, data=data)


def joint_report(scores: NDArray[np.float64]) -> Report:
    """Table 6: each sample relative to the worst of its 21 scores, and the paper's findings."""
    relative = scores - scores.min(axis=(1, 2), keepdims=True)
    rows: list[Sequence[str]] = []
    for k, row in enumerate(ROWS):
        rows += [_row(f"{row}, paper", np.array(TABLE_6[row])), *_mean_rows(f"{row}, leafwise", relative[:, k])]
    checked = findings(scores)
    remarks = [f"{finding.statement}: held in {finding.held} of {finding.n} comparisons." for finding in checked]
    data = {
        "columns": COLUMNS,
        "paper": TABLE_6,
        "leafwise": dict(zip(ROWS, scores.transpose(1, 0, 2).tolist(), strict=True)),
        "findings": [asdict(finding) for finding in checked],
    }
    return Report("Table 6: all experiments with ALARM", ("", *COLUMNS), rows, remarks, data)


def _row(label: str, values: NDArray[np.float64]) -> list[str]:
    return [label, *(f"{value:.0f}" for value in values)]


def _mean_rows(label: str, relative: NDArray[np.float64]) -> list[list[str]]:
    spread = relative.std(axis=0, ddof=1) if len(relative) > 1 else np.zeros(relative.shape[1])
    pairs = zip(relative.mean(axis=0), spread, strict=True)
    return [[label, *(f"{mean:.0f} ± {deviation:.0f}" for mean, deviation in pairs)]]


@dataclass(frozen=True)
class Finding:
    """A claim of the paper, and the number of comparisons over all samples in which it held."""

    statement: str
    held: int
    n: int


def findings(scores: NDArray[np.float64]) -> list[Finding]:
    """The paper's five findings, checked."""
    at = {column: k for k, column in enumerate(COLUMNS)}
    s, u, c = (scores[:, k] for k in range(3))
    graphs = [at["CM"], at["BM"], at["CBM"]]
    merged = np.stack([row[:, at[o + "M"]] > row[:, at[o]] for row in (s, u, c) for o in ("C", "B", "CB")])
    claims = {
        "Merges beat the same operators without them": merged,
        "On the arcs of ALARM, decision graphs and trees beat complete tables": s[:, 1:] > s[:, :1],
        "Graphs with merges learned with their arcs beat every result on the arcs of ALARM": np.stack(
            [row[:, graphs].min(axis=1) > s.max(axis=1) for row in (u, c)]
        ),
        "For trees, adding complete splits to binary splits lowers the score": np.stack(
            [row[:, at["CB"]] < row[:, at["B"]] for row in (s, u, c)]
        ),
        "Learning freely, complete tables beat trees of complete splits": u[:, at["COMP"]] > u[:, at["C"]],
    }
    return [Finding(claim, int(held.sum()), held.size) for claim, held in claims.items()]
