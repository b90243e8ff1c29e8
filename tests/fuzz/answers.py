"""Calls of the library with small networks and tables, against the slow and obvious ways."""

import math
from dataclasses import replace
from functools import partial
from random import Random

import numpy as np
import pandas
from oracle import log_likelihood
from oracle_inference import joint_table, marginal, weighted
from random_networks import random_network
from strategies import random_table, shards

import leafwise
from fuzz.folders import folder
from fuzz.mutation import mutated
from fuzz.network_files import check_network
from fuzz.refusals import check_refusal
from leafwise.inference.estimates import NoCaseError
from leafwise.inference.exact import Limits
from leafwise.learner import start_mixture, start_search

PRIORS = [
    "auto",
    "auto",
    "symmetric:5",
    "uniform",
    "uniform",
    "bdeu:1",
    "bdeu:0.001",
    "bdeu:10",
    "bdeu:1e5",
    "bdeu:1e-100",
]
OPERATORS = ["CBIM", "CBIM", "CBM", "CB", "C", "B", "CM", "BM", "IM"]
SHARING = ["CBIMO", "CBMR", "CBIMT", "CBIMORT", "BMORT", "CRT"]  # those of Section 6
STRUCTURE_PRIORS = ["auto", "uniform", "kappa:0.1", "kappa:1e-100", "kappa:1"]


def check_questions(random: Random) -> str:
    """Exact answers against the full joint table; samples within their own bounds."""
    n_states = [random.randrange(1, 4) for _ in range(random.randrange(1, 6))]
    network = random_network(random.randrange(2**32), n_states, zeros=random.choice([0.0, 0.3]))
    given, weights = _evidence(network, random)
    table = weighted(joint_table(network), weights)
    asked = random.sample(network.names, random.randrange(0, len(network.names) + 1))
    joint = random.random() < 0.3 and bool(asked)
    if not table.sum() > 0:
        for method in ("exact", "weighting", "gibbs"):
            _refused(lambda method=method: leafwise.query(network, asked, given=given, method=method, n_samples=200))
        return "refused"
    answer = leafwise.query(network, asked, given=given, joint=joint, method="exact")
    assert answer.log_evidence is not None
    assert math.isclose(answer.log_evidence, math.log(table.sum()), rel_tol=1e-9, abs_tol=1e-9)
    targets = [network.names.index(name) for name in asked]
    for own, distribution in zip([targets] if joint else [[t] for t in targets], answer.distributions, strict=True):
        assert np.allclose(distribution, marginal(table, own) / table.sum(), rtol=1e-9, atol=1e-12)
    best = leafwise.explain(network, given=given)
    assert math.isclose(best.log_probability, math.log(table.max()), rel_tol=1e-9, abs_tol=1e-9)
    if random.random() < 0.3:
        _sampled(network, asked, given, joint, random)
    return "accepted"


def _evidence(network, random):
    """What is given, and the same as weights."""
    given, weights = {}, {}
    for index in random.sample(range(len(network.names)), random.randrange(0, len(network.names) + 1)):
        labels = network.variables[index].labels
        row = [random.choice([0.0, 1.0, 1.0]) for _ in labels]
        if not any(row):
            row[random.randrange(len(row))] = 1.0
        if random.random() < 0.3:
            row = [value * random.choice([0.5, 1e-9, 1e9, 3]) for value in row]
            what = dict(zip(labels, row, strict=True))
        else:
            what = [label for label, value in zip(labels, row, strict=True) if value]
        given[network.names[index]], weights[index] = what, np.array(row)
    return given, weights


def _sampled(network, asked, given, joint, random):
    method, seed = random.choice(["weighting", "gibbs", "auto"]), random.randrange(2**32)
    limits = Limits(operations=1)
    how = {"given": given, "joint": joint, "method": method, "n_samples": 400, "seed": seed, "limits": limits}
    try:
        found = leafwise.query(network, asked, **how)
    except NoCaseError as error:
        check_refusal(error)
        return
    for values, errors, (low, high) in zip(
        found.distributions, found.standard_errors or (), found.intervals or (), strict=found.method != "exact"
    ):
        assert abs(values.sum() - 1) < 1e-9
        assert (errors >= 0).all()
        assert np.isfinite(errors).all()
        assert ((low >= -1e-12) & (low <= values + 1e-9) & (values <= high + 1e-9) & (high <= 1 + 1e-12)).all()


def _refused(call):
    try:
        call()
    except ValueError as error:
        check_refusal(error)
    else:
        raise AssertionError("impossible evidence was answered")


SEARCHES = {
    "greedy": lambda greedy, _seed: greedy,
    "tables": lambda greedy, _seed: leafwise.TableArcSearch(threads=greedy.threads),
    "edges": lambda greedy, _seed: leafwise.GraphArcSearch(replace(greedy, max_steps=None)),
    "recover": lambda greedy, _seed: leafwise.RecoverySearch(replace(greedy, max_steps=None)),
    "restarts": lambda greedy, seed: leafwise.LeafSearchRestarts(replace(greedy, max_steps=None), rounds=2, seed=seed),
}


def warm_up() -> None:
    """Compile what the checks call, so that none of them seems to hang."""
    for kind in SEARCHES:
        for prior in ("uniform", "bdeu:1"):
            for k in range(12):
                _check_learning(Random(f"{kind} {k}"), kind, prior)
    for k in range(40):
        check_questions(Random(k))
    for check in (check_rounds, check_series, check_holes):
        for k in range(8):
            check(Random(k))


def check_learning(random: Random) -> str:
    """One thread and two learn the same network; its score is the formula's; its file and its cases come back."""
    return _check_learning(random, random.choice(["greedy", *SEARCHES]), random.choice(PRIORS))


def _check_learning(random: Random, kind: str, prior: str) -> str:
    table = random_table(np.random.default_rng(random.randrange(2**32)), max_variables=5, max_cases=80)
    options = {
        "prior": prior,
        "structure_prior": random.choice(STRUCTURE_PRIORS),
        "target": random.choice([None, None, random.choice(table.names)]) if kind == "greedy" else None,
    }
    greedy = leafwise.LeafSearch(
        random.choice(OPERATORS if kind != "greedy" else OPERATORS + SHARING),
        random.choice(["best-first", "splits-first"]),
        max_steps=random.choice([None, None, 3]),
    )
    seed = random.randrange(1000)
    one, two = (
        leafwise.learn(table, search=SEARCHES[kind](replace(greedy, threads=threads), seed), **options)
        for threads in (1, 2)
    )
    assert one.nodes == two.nodes, "two threads learned another network than one"
    _check_going_on(one, table, random, search=SEARCHES[kind](replace(greedy, threads=1), seed), **options)
    check_network(one)
    if not {*greedy.operators} & {*"ORT"}:
        _check_score(one, table)
        sharded = shards(table, np.random.default_rng(seed), 3)
        assert (
            kind in ("tables", "recover")
            or leafwise.learn(sharded, search=SEARCHES[kind](greedy, seed), **options).nodes == one.nodes
        )
    if options["target"] is None:
        assert np.isfinite(leafwise.log_probabilities(one, table)).all()
        assert leafwise.sample(one, 20, seed=1).variables == table.variables
    return "accepted"


def _check_going_on(network, table, random, **options):
    """A search that is given up after some steps goes on from its checkpoint; from a changed one, or not at all."""
    path = folder() / "run.checkpoint"
    path.unlink(missing_ok=True)
    begun = start_search(table, checkpoint=path, every=0, **options)
    for _ in range(random.randrange(0, 8)):
        next(begun, None)
    sound = path.read_bytes() if path.exists() else b""
    found = leafwise.learn(table, checkpoint=path, every=1e9, **options)
    assert found == network, "it went on elsewhere"
    if sound:
        path.write_bytes(mutated(sound, random, [b"1", b"]", b"null", b'"state"'], [sound]))
        try:
            assert leafwise.learn(table, checkpoint=path, **options).nodes == network.nodes
        except ValueError as error:
            check_refusal(error)


def _frame(random: Random, holes: list[float]) -> pandas.DataFrame:
    """A small table as labels, of which a share misses."""
    table = random_table(np.random.default_rng(random.randrange(2**32)), max_variables=4, max_cases=40)
    cells = np.array([[v.labels[code] for code in row] for v, row in zip(table.variables, table.codes, strict=True)])
    frame = pandas.DataFrame(dict(zip(table.names, cells, strict=True))).astype(object)
    return frame.mask(np.random.default_rng(random.randrange(2**32)).random(frame.shape) < random.choice(holes))


def check_series(random: Random) -> str:
    """Rows as series: the network of a window is saved, unrolled, and tells of the series what its slices tell."""
    frame, lags = _frame(random, [0.0, 0.0, 0.1]), random.randrange(1, 4)
    options = {"lags": lags, "missing": random.choice(["state", "state", "error", "infer"])}
    if random.random() < 0.5:
        frame["when"] = random.choice([range(len(frame)), pandas.date_range("2024-01-31", periods=len(frame))])
        options["time"] = "when"
        frame = frame.sample(frac=1, random_state=random.randrange(1000))
    if random.random() < 0.5:
        options["by"] = random.choice(list(frame.columns))
    try:
        dynamic = leafwise.learn(frame, leaves=random.choice(["plain", "average", "stacked"]), **options)
    except ValueError as error:
        check_refusal(error)
        return "refused"
    dynamic.save(folder() / "dynamic.json")
    assert leafwise.DynamicNetwork.load(folder() / "dynamic.json").window == dynamic.window
    check_network(dynamic.unroll(lags + 3))
    own = {key: value for key, value in options.items() if key in ("by", "time", "missing")}
    assert np.isfinite(dynamic.log_probabilities(frame, **own)).all()
    return "accepted"


def check_holes(random: Random) -> str:
    """Rows with holes: filled in by networks with any leaves and by mixtures, predicted, and how sure arcs are."""
    frame = _frame(random, [0.0, 0.1, 0.5])
    leaves, missing = random.choice(
        [("plain", "infer"), ("stacked", "infer"), ("average", "state"), ("stacked", "state")]
    )
    networks, other = random.randrange(1, 5), random.choice(["state", "drop"])
    try:
        network = leafwise.learn(frame, leaves=leaves, missing=missing, search=leafwise.LeafSearch(threads=1))
        mixture = leafwise.learn(frame, networks=networks, missing=other, seed=random.randrange(9))
        if random.random() < 0.2:
            sure = leafwise.confidence(frame, 2, missing="state", search=leafwise.LeafSearch(threads=1))
            assert all(0 <= share <= 1 for column in ("connected",) for share in sure.frame_columns()[column])
    except ValueError as error:
        check_refusal(error)
        return "refused"
    check_network(network)
    mixture.save(folder() / "mixture.json")
    assert leafwise.Mixture.load(folder() / "mixture.json") == mixture
    apart = leafwise.Mixture(mixture.members, mixture.weights)  # each member a group of its own
    for model in (network, mixture, apart):
        _check_filled(model, frame, random)
    return "accepted"


def _check_filled(model: leafwise.Network | leafwise.Mixture, frame, random: Random) -> None:
    """What is shown stays, and a missing cell has the probabilities that are predicted."""
    how, target = random.choice(["draw", "most probable", "mean probabilities"]), random.choice(model.names)
    try:
        rows = model.predict(frame, target).probabilities
        assert abs(rows.sum(axis=1) - 1).max() < 1e-9
        filled = leafwise.impute(model, frame, how)
    except ValueError as error:
        check_refusal(error)
        return
    assert len(filled) == len(frame)
    if how == "mean probabilities":
        lacks = frame[target].isna()
        assert abs(filled.of(target)[lacks] - rows[lacks]).max(initial=0) < 1e-9
        return
    kept = filled.to_pandas()
    assert not kept.isna().any(axis=None)
    for variable in model.variables:
        if not variable.cuts:  # numbers come as bins
            shown = frame[variable.name].notna()
            assert (kept[variable.name].astype(str)[shown] == frame[variable.name][shown]).all()


def check_rounds(random: Random) -> str:
    """Missing cells that are inferred, hidden causes and many networks: given up anywhere, they go on as if not."""
    frame = _frame(random, [0.05, 0.3])
    first = str(frame.columns[0])
    options = random.choice(
        [
            {"missing": "infer"},
            {"missing": "infer", "target": first},
            {"missing": "infer", "hidden": 2},
            {"missing": "state", "hidden": "auto"},
            {"missing": "state", "networks": random.randrange(1, 8)},
            {"missing": "state", "networks": 3, "target": first},
        ]
    )
    options |= {"seed": random.randrange(100), "search": leafwise.LeafSearch(threads=1)}
    path = folder() / "rounds.checkpoint"
    path.unlink(missing_ok=True)
    try:
        whole = leafwise.learn(frame, **options)
    except ValueError as error:
        check_refusal(error)
        return "refused"
    networks = options.pop("networks", None)
    begin = start_search if networks is None else partial(start_mixture, networks=networks)
    begun = begin(frame, checkpoint=path, every=0, **options)
    for _ in range(random.randrange(0, 6)):
        next(begun, None)
    going_on = begin(frame, checkpoint=path, every=1e9, **options)
    going_on.run()
    ended = going_on.network
    assert (ended == whole) if networks is None else (list(ended) == list(whole) and ended.weights == whole.weights)
    return "accepted"


def _log_prior(network, node):
    """What the structure prior gives a node's graph (docs/structure-prior.md)."""
    kind, _, kappa = network.structure_prior.partition(":")
    n, tests = len(network.variables), [test for test in node.graph.tests if test >= 0]
    p = len(set(tests))
    if kind != "choices":
        arcs = p * math.log(max(n - 1, 1)) if kind == "arcs" else 0.0
        return node.n_parameters * math.log(float(kappa or 1)) - arcs
    n_shared = sum(len(set(row)) for row in node.graph.children) - len(node.graph.tests) + 1
    ways = [_n_ways(network.variables[test]) * p for test in tests]
    n_graphs = (p + 1) * (p + 2) * math.comb(n - 1, p) * math.prod(ways)
    return -math.log(n_graphs) - n_shared * math.log(4)


def _n_ways(variable):
    """In how many ways one step can split by a variable: complete, by one state, and below a state where that is new.

    Of three states in order, to be below the second is to be the first; those that miss go with either side.
    """
    r = variable.n_states
    ordered = set()
    if variable.ordered:
        last = r - variable.missing
        below = [set(range(k)) for k in range(1, last + variable.missing)]
        ordered = {frozenset(s) for s in below}
        ordered |= {frozenset(s | {r - 1}) for s in below if variable.missing and len(s) < last}
    parts = {frozenset([frozenset({s}) for s in range(r)])}
    parts |= {frozenset([s, frozenset(range(r)) - s]) for s in ordered | {frozenset({s}) for s in range(r)}}
    return len(parts)


def _check_score(network, table):
    """Equations 5 and 6 from the counts of the cases, by lgamma."""
    scores = leafwise.log_score(network, table)
    for index, node in enumerate(network.nodes):
        if node is None:
            continue
        counts = np.zeros(node.counts.shape, int)
        for case in table.codes.T.tolist():
            counts[node.graph.leaf_of(case), case[index]] += 1
        assert np.array_equal(counts, node.counts)
        exponents = node.exponents
        if network.prior.startswith("symmetric:"):  # with more than these, after the search, leaves predict better
            exponents = np.full(counts.shape, float(network.prior.partition(":")[2]) / counts.shape[1])
        expected = math.fsum(map(log_likelihood, counts.tolist(), exponents.tolist()))
        expected += _log_prior(network, node)
        size = max(1.0, float(exponents.sum()))
        apart = abs(scores[network.names[index]].log_score - expected)
        assert apart <= 1e-9 * abs(expected) + 1e-12 * size * max(1.0, math.log(size)), (expected, apart)
