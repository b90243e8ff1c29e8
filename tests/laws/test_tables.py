"""The search with complete tables takes the steps of its slow oracle, and keeps the laws of every search."""

import itertools
import math
from collections import Counter

import numpy as np
import oracle
import oracle_tables
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    PRIORS,
    STRUCTURE_PRIORS,
    Setup,
    examples,
    free,
    generators,
    make_table,
    problems,
    random_dag,
    random_setup,
    random_start,
    random_table,
)

from leafwise import Constraints, Table, Variable, learn, log_score, workers
from leafwise.cli.progress import narrate
from leafwise.counters.cpu import CpuCounter
from leafwise.dag import ancestor_matrix
from leafwise.decision_graph import DecisionGraph
from leafwise.examples import alarm
from leafwise.inference.sampling import sample
from leafwise.kernels.arc_search import equivalence
from leafwise.kernels.scoring import dirichlet as kernels
from leafwise.network import Network
from leafwise.priors import parameter_prior
from leafwise.search import table_arc_search, table_nodes
from leafwise.search.problem import Problem
from leafwise.search.table_arc_search import AddArc, DeleteArc, PutBack, ReverseArc, TableArcSearch, TableArcSearchRun
from leafwise.structure_priors import structure_prior
from leafwise.workers import Workers

LIMITS = {"max_cases": 100, "max_states": 5, "max_assignments": 120}
KINDS = {AddArc: "add", DeleteArc: "delete", ReverseArc: "reverse"}
PLAIN = {"turns": False, "patience": 0}
HOW_HARD = st.sampled_from([PLAIN, {"patience": 0}, {"turns": False, "patience": 2}, {}])


def searching(table, setup, start=(), target=None, **limits):
    """A search under way, from the required arcs and those in `start`."""
    rules = setup.constraints.resolve(table)
    is_parent = rules.is_parent.copy()
    for parent, child in start:
        is_parent[child, parent] = 1
    targets = tuple(range(table.n_variables)) if target is None else (target,)
    problem = Problem(
        table.variables,
        targets,
        parameter_prior(setup.prior),
        structure_prior("arcs" if setup.structure_prior == "choices" else setup.structure_prior),
        rules._replace(is_parent=is_parent),
        np.full(table.n_variables, table.n_variables - 1),
        {},
    )
    how = TableArcSearch(**{"threads": 1, **limits})
    hands = Workers(how.threads)
    return TableArcSearchRun(problem, CpuCounter(table, hands), how, hands)


def plain_setup(prior):
    return Setup("C", "best-first", prior, "uniform")


def total(network, table):
    return sum(score.log_score for score in log_score(network, table).values())


def check_against_oracle(table, setup, start=(), target=None, max_steps=25):
    """Plain search step by step; then the parents, the counts, the exponents and the score of the network."""
    slow = oracle_tables.TableArcSearchRun(
        table,
        alpha=PRIORS[setup.prior],
        log_kappa=STRUCTURE_PRIORS[setup.structure_prior] or 0.0,
        arc_cost=math.log(max(table.n_variables - 1, 1)) if setup.structure_prior == "choices" else 0.0,
        rules=setup.rules,
        targets=None if target is None else [target],
        start=start,
    )
    fast = searching(table, setup, start, target, max_steps=max_steps, **PLAIN)
    assert fast.log_score == pytest.approx(slow.log_score(), abs=1e-6)
    for _ in range(max_steps):
        expected, step = slow.step(), next(fast, None)
        if expected is None:
            assert step is None
            break
        assert step is not None, f"stopped before {expected}"
        found = step.operator
        assert (KINDS[type(found)], found.parent, found.child) == (expected.kind, expected.parent, expected.child)
        assert found.gain == pytest.approx(expected.gain, abs=1e-7)
    assert fast.log_score == pytest.approx(slow.log_score(), abs=1e-6)
    network = fast.network
    assert set(network.arcs) == {(parent, child) for parent, child in slow.arcs if child in slow.targets}
    for target in slow.targets:
        node = network.nodes[target]
        counts = slow.table(target, node.parents)
        assert node.counts.tolist() == counts
        assert node.exponents == pytest.approx(slow.exponent(target, len(counts)), rel=1e-12)


@pytest.mark.interpreted
@examples(150)
@given(problems(make_rules=free, **LIMITS))
def test_from_no_arcs(problem):
    check_against_oracle(*problem[:2])


@pytest.mark.interpreted
@examples(150)
@given(problems(**LIMITS))
def test_with_constraints(problem):
    check_against_oracle(*problem[:2])


@examples(60)
@given(problems(**LIMITS))
def test_one_target(problem):
    table, setup, target = problem
    check_against_oracle(table, setup, target=target)


@examples(30)
@given(problems(make_rules=random_dag, **LIMITS))
def test_the_tables_of_a_dag_are_counted_and_nothing_is_searched(problem):
    check_against_oracle(*problem[:2])


@pytest.mark.interpreted
@examples(150)
@given(generators())
def test_from_given_arcs(random):
    table = random_table(random, **LIMITS)
    setup = random_setup(random, table, free)
    check_against_oracle(table, setup, start=random_start(random, table).arcs)


@examples(100)
@given(problems(**LIMITS))
def test_room_for_few_histograms_changes_nothing(problem):
    table, setup, _ = problem
    expected = searching(table, setup)
    expected.run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_nodes, "_MOST_KEPT", 600)
        patch.setattr(table_nodes, "_SPARE", 0)
        patch.setattr(table_nodes, "_LEAST_FOR_THREADS", 0)
        check_against_oracle(table, setup)
        for threads in (1, 2):
            found = searching(table, setup, threads=threads)
            found.run()
            assert found.network.nodes == expected.network.nodes


def test_room_for_one_node_at_a_time_and_many_pauses_are_enough(monkeypatch):
    cases = sample(alarm(), 2000, seed=1)
    table = Table(cases.variables[:12], np.ascontiguousarray(cases.codes[:12]))
    expected = learn(table, search=TableArcSearch(), prior="bdeu:1")
    pauses, serve = itertools.count(), table_nodes.TableNodes.serve

    def counted(nodes):
        assert next(pauses) < 10_000
        serve(nodes)

    monkeypatch.setattr(table_nodes.TableNodes, "serve", counted)
    for name, value in {"_MOST_KEPT": 3999, "_LEAST_FOR_THREADS": 0, "_SPARE": 0}.items():  # one node takes 4000
        monkeypatch.setattr(table_nodes, name, value)
    assert learn(table, search=TableArcSearch(threads=2), prior="bdeu:1").nodes == expected.nodes


@examples(100)
@given(problems(**LIMITS), HOW_HARD)
def test_a_gain_is_the_score_after_less_the_score_before(problem, how_hard):
    table, setup, _ = problem
    search = searching(table, setup, **how_hard)
    before = total(search.network, table)
    for step in itertools.islice(search, 15):
        network = search.network
        after = total(network, table)
        assert step.operator.gain == pytest.approx(after - before, abs=1e-6)
        assert step.log_score == pytest.approx(after, abs=1e-6)
        assert step.operator.gain > 0
        assert (step.n_leaves, step.n_arcs) == (network.n_leaves, len(network.arcs))
        assert search.n_parameters == network.n_parameters
        before = after


@examples(150)
@given(problems(**LIMITS), HOW_HARD)
def test_networks_are_acyclic_complete_and_within_their_constraints(problem, how_hard):
    table, setup, _ = problem
    rules, n_states = setup.rules, [variable.n_states for variable in table.variables]
    search = searching(table, setup, **how_hard)
    for network in itertools.chain([search.network], (search.network for _ in search)):
        arcs = set(network.arcs)
        assert not any(oracle.leads_to(child, parent, arcs) for parent, child in arcs)
        assert rules.required <= arcs
        assert all(rules.permit(parent, child) for parent, child in arcs)
        for child, node in enumerate(network.nodes):
            assert node.graph == DecisionGraph.complete(node.parents, n_states)
            assert rules.max_parents is None or len(node.parents) <= rules.max_parents
            required = {parent for parent, c in rules.required if c == child}
            within = rules.max_leaves is None or node.graph.n_leaves <= rules.max_leaves
            assert within or set(node.parents) <= required


@examples(40)
@given(problems(max_variables=5, max_cases=200, max_assignments=2000), HOW_HARD)
def test_any_number_of_threads_learns_the_same_network(problem, how_hard):
    table, setup, _ = problem
    networks = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "_WORTH_A_THREAD", 1e-9)  # else threads are for large tables only
        patch.setattr(table_nodes, "_LEAST_FOR_THREADS", 0)
        for threads in (1, 2, 3):
            search = searching(table, setup, threads=threads, **how_hard)
            search.run()
            networks.append(search.network)
    assert networks[0] == networks[1] == networks[2]


@examples(40)
@given(problems(**LIMITS), st.integers(0, 8))
def test_stopping_early_gives_the_first_steps(problem, k):
    table, setup, _ = problem
    every = [step.operator for step in searching(table, setup)]
    search = searching(table, setup, max_steps=k)
    assert [step.operator for step in search] == every[:k]
    assert search.stopped == ("max_steps" if k <= len(every) and search.n_steps == k else "no operator gains")
    assert next(search, None) is None


@examples(40)
@given(problems(**LIMITS))
def test_step_by_step_is_the_same_as_in_one_go(problem):
    table, setup, _ = problem
    one, other = (searching(table, setup) for _ in range(2))
    told = []
    one.run(told.append)
    for _ in other:
        assert other.network.n_leaves == other.n_leaves  # looking at the network on the way changes nothing
    assert one.network == other.network
    assert told[-1] is one


@examples(30)
@given(problems(make_rules=free, **LIMITS), st.integers(0, 6))
def test_a_search_goes_on_from_where_it_was_stopped(problem, k):
    table, setup, _ = problem
    whole, part = searching(table, setup, **PLAIN), searching(table, setup, max_steps=k, **PLAIN)
    whole.run()
    part.run()
    rest = searching(table, setup, start=part.network.arcs, **PLAIN)
    rest.run()
    assert rest.network.nodes == whole.network.nodes
    assert rest.n_steps + part.n_steps == whole.n_steps


@examples(100)
@given(problems(**LIMITS), st.integers(1, 12))
def test_patience_only_adds_to_what_is_found_without_it(problem, patience):
    table, setup, target = problem
    for only in (None, target):
        plain, patient = (searching(table, setup, target=only, turns=False, patience=k) for k in (0, patience))
        steps = [step.operator for step in plain]
        found = [step.operator for step in patient]
        assert found[: len(steps)] == steps
        assert len(found) == len(steps) or isinstance(found[len(steps)], PutBack)
        network = patient.network
        assert total(network, table) == pytest.approx(patient.log_score, abs=1e-6)
        for child, node in enumerate(network.nodes):
            if node is not None:
                counts = np.bincount(table.codes[child], minlength=node.n_states)
                assert node.counts.sum(axis=0).tolist() == counts.tolist()


@pytest.mark.interpreted
@examples(60)
@given(problems(**LIMITS), HOW_HARD)
def test_every_search_ends_where_no_single_arc_gains(problem, how_hard):
    table, setup, _ = problem
    search = searching(table, setup, **how_hard)
    search.run()
    assert search.stopped == "no operator gains"
    on = searching(table, setup, start=search.network.arcs, **PLAIN)
    assert [step.operator for step in on] == []


@examples(60)
@given(problems(**LIMITS), HOW_HARD)
def test_steps_say_which_arcs_change(problem, how_hard):
    table, setup, _ = problem
    search = searching(table, setup, **how_hard)
    arcs = set(search.network.arcs)
    for step in search:
        done = step.operator
        if isinstance(done, PutBack):
            assert set(done.deleted) <= arcs
            assert not arcs & set(done.added)
            arcs = arcs - set(done.deleted) | set(done.added)
        else:
            arcs = arcs - {arc[::-1] for arc in done.turned} | set(done.turned)
            arcs ^= {(done.parent, done.child)}
            if isinstance(done, ReverseArc):
                arcs.add((done.child, done.parent))
        assert set(search.network.arcs) == arcs


def test_turns_and_patience_find_more_in_a_sample_of_alarm():
    table = sample(alarm(), 1000, seed=1)
    scores = []
    for how_hard in (PLAIN, {}):
        search = searching(table, plain_setup("bdeu:1"), **how_hard)
        search.run()
        scores.append(search.log_score)
        assert search.summary()["put_back"] == sum(isinstance(step, PutBack) for step in search.operators)
        assert total(search.network, table) == pytest.approx(search.log_score, abs=1e-6)
    assert scores[1] > scores[0] + 150


def without_seconds(search):
    """What it takes to go on from here."""
    return {**search.state(), "seconds": 0}


def interrupt(search, n_steps, monkeypatch):
    """Run the search, with an interrupt when it has climbed so many steps."""
    climb = TableArcSearchRun._climb

    def interrupted(search, n, reorients):
        climb(search, n_steps, reorients)
        raise KeyboardInterrupt

    monkeypatch.setattr(TableArcSearchRun, "_climb", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search.run()
    monkeypatch.undo()


@pytest.mark.parametrize("prior", ["uniform", "bdeu:1"])
def test_an_interrupt_leaves_the_best_network_so_far_and_the_search_goes_on_as_without_it(prior, monkeypatch):
    table = sample(alarm(), 300, seed=2)
    whole, search = (searching(table, plain_setup(prior)) for _ in range(2))
    whole.run()
    while not search._is_at_top:
        search._advance(1)
    before, score, state = search.network, search.log_score, without_seconds(search)
    interrupt(search, 2, monkeypatch)
    assert (search.log_score, search.network, without_seconds(search)) == (score, before, state)
    search.run()
    assert (search.log_score, search.network) == (whole.log_score, whole.network)


def test_time_that_is_up_while_a_variable_is_taken_out_does_not_count_as_in_vain(monkeypatch):
    table = sample(alarm(), 300, seed=2)
    whole, search = (searching(table, plain_setup("bdeu:1")) for _ in range(2))
    whole.run()
    while not search._is_at_top:
        search._advance(1)
    before, state = search.network, without_seconds(search)
    monkeypatch.setattr(search, "_deadline", -1.0)
    search._step(1)
    assert (search.network, without_seconds(search)) == (before, state)
    monkeypatch.setattr(search, "_deadline", math.inf)
    search.run()
    assert search.network == whole.network


def test_a_pause_before_the_first_step_of_a_search_that_goes_on_is_no_circle(monkeypatch):
    table = sample(alarm(), 300, seed=2)
    monkeypatch.setattr(table_arc_search, "_AT_ONCE", 8)
    whole, search = (searching(table, plain_setup("uniform"), **PLAIN) for _ in range(2))
    whole.run()
    for _ in range(8):
        next(search)
    problem, counter, hands = search._problem, CpuCounter(table, Workers(1)), Workers(1)
    again = TableArcSearchRun(problem, counter, TableArcSearch(threads=1, **PLAIN), hands, search.state())
    monkeypatch.setattr(table_arc_search, "_WORK", 0)  # the clock is looked at before any step is taken
    again._advance(1)
    monkeypatch.undo()
    again.run()
    assert again.network == whole.network


def test_steps_before_an_interrupt_are_noted(monkeypatch):
    table = sample(alarm(), 300, seed=2)
    whole, search = (searching(table, plain_setup("bdeu:1")) for _ in range(2))
    whole.run()
    interrupt(search, 7, monkeypatch)
    assert search.operators == whole.operators[:7]
    search.run()
    assert search.network == whole.network


@pytest.mark.parametrize(("where", "name"), [(TableArcSearchRun, "_note_steps"), (table_arc_search, "_new_arcs")])
def test_an_interrupt_while_steps_are_noted_loses_none(where, name, monkeypatch):
    table = sample(alarm(), 300, seed=2)
    whole, search = (searching(table, Setup("C", "best-first", "bdeu:1", "choices")) for _ in range(2))
    whole.run()
    assert whole.summary()["put_back"] == 1
    plain = getattr(where, name)

    def interrupted(first, *others):
        if where is table_arc_search or first._log.n[0] > 0:
            monkeypatch.undo()
            raise KeyboardInterrupt
        return plain(first, *others)

    monkeypatch.setattr(where, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        search.run()
    assert search.log_score == pytest.approx(search.network.learned["log_score"])
    search.run()
    assert (search.operators, search.network) == (whole.operators, whole.network)


def test_every_step_can_be_told(capsys):
    table = sample(alarm(), 1000, seed=1)
    search = searching(table, plain_setup("bdeu:1"))
    assert not narrate(search, table.names)
    assert capsys.readouterr().err.count("\n") == search.n_steps


def random_parents(random, n):
    """is_parent[child, parent] of a random DAG."""
    order, chance = random.permutation(n), random.random()
    return np.array([[order[p] < order[c] and random.random() < chance for p in range(n)] for c in range(n)], np.uint8)


def says(is_parent):
    """What a DAG says: which variables are linked, and which pairs of unlinked parents there are (Verma & Pearl)."""
    linked, n = is_parent | is_parent.T, len(is_parent)
    triples = itertools.product(itertools.combinations(range(n), 2), range(n))
    colliders = [(a, c, b) for (a, b), c in triples if is_parent[c, a] and is_parent[c, b] and not linked[a, b]]
    return linked.tolist(), colliders


def equivalent_dags(is_parent):
    """Every DAG with the same links, in all directions, that says the same."""
    arcs = np.argwhere(is_parent)
    for turned in itertools.product([False, True], repeat=len(arcs)):
        other = np.zeros_like(is_parent)
        for (child, parent), is_turned in zip(arcs, turned, strict=True):
            other[(parent, child) if is_turned else (child, parent)] = 1
        order_exists = all(not np.linalg.matrix_power(other.astype(int), k).trace() for k in range(1, len(other) + 1))
        if order_exists and says(other) == says(is_parent):
            yield other


@pytest.mark.interpreted
@examples(60)
@given(generators(), st.integers(2, 5))
def test_equivalent_dags_are_those_with_the_same_cpdag(random, n):
    is_parent = random_parents(random, n)
    same = np.array([*equivalent_dags(is_parent)])
    cpdag = np.zeros_like(is_parent)
    is_stale = np.zeros(n, np.bool_)
    equivalence.find_cpdag(is_parent, cpdag, is_stale)
    assert ((cpdag == equivalence.COMPELLED) == same.all(axis=0)).all()
    either = same.any(axis=0) & same.any(axis=0).T
    assert ((cpdag == equivalence.REVERSIBLE) == either).all()
    assert (is_stale == cpdag.any(axis=1)).all()
    is_stale[:] = False
    equivalence.find_cpdag(is_parent, cpdag, is_stale)
    assert not is_stale.any()
    for child in range(n):
        for kept in (-1, *np.flatnonzero(cpdag[child] == equivalence.REVERSIBLE)):
            reoriented = np.zeros_like(is_parent)
            equivalence.reorient(child, kept, cpdag, is_parent, reoriented)
            assert any((reoriented == other).all() for other in same)
            left = {*np.flatnonzero(cpdag[child] == equivalence.COMPELLED), *([kept] if kept >= 0 else [])}
            assert set(np.flatnonzero(reoriented[child])) == left


def test_tables_of_many_rows_agree_with_the_score(tmp_path):
    table = sample(alarm(), 3000, seed=4)
    for prior in ("uniform", "bdeu:1"):
        search = searching(table, plain_setup(prior))
        search.run()
        assert total(search.network, table) == pytest.approx(search.log_score, abs=1e-6)
        search.network.save(tmp_path / "network.json")
        assert Network.load(tmp_path / "network.json") == search.network


@pytest.mark.parametrize("prior", ["uniform", "bdeu:1", "bdeu:1e-6"])
def test_tables_of_many_states_agree_with_the_score(prior):
    random, n_states = np.random.default_rng(1), [40, 70, 16, 16, 7, 16]
    codes = [random.integers(0, n_states[0], 4000)]
    for r in n_states[1:]:  # each follows from the one before in most cases
        codes.append(np.where(random.random(4000) < 0.8, codes[-1] * 3 % r, random.integers(0, r, 4000)))
    variables = [Variable(f"x{i}", tuple(map(str, range(r)))) for i, r in enumerate(n_states)]
    table = Table(tuple(variables), np.array(codes, np.uint8))
    for how_hard in (PLAIN, {}):
        search, score = searching(table, plain_setup(prior), **how_hard), None
        for step in search:
            assert score is None or step.log_score == pytest.approx(score + step.operator.gain, abs=1e-6)
            score = step.log_score
        assert total(search.network, table) == pytest.approx(search.log_score, abs=1e-6)
        threads = searching(table, plain_setup(prior), **how_hard, threads=2)
        threads.run()
        assert threads.network.nodes == search.network.nodes


def bdeu(codes, target, parents, r):
    """Of a node whose variables all have r states, by hand."""
    rows, n_rows = [tuple(case) for case in codes[sorted(parents)].T], r ** len(parents)
    cells, totals = Counter(zip(rows, codes[target].tolist(), strict=True)), Counter(rows)
    value = sum(math.lgamma(n + 1 / (n_rows * r)) - math.lgamma(1 / (n_rows * r)) for n in cells.values())
    return value - sum(math.lgamma(n + 1 / n_rows) - math.lgamma(1 / n_rows) for n in totals.values())


@pytest.mark.parametrize("prior", ["uniform", "bdeu:1", "bdeu:1e-6", "symmetric:50"])
@pytest.mark.parametrize("n_cases", [30, 900, 9000])  # fewer and more than tables have cells
def test_every_gain_in_the_cache_is_a_difference_of_scores(prior, n_cases):
    random, n_states = np.random.default_rng(n_cases), [12, 9, 12, 9, 16]
    codes = [random.integers(0, n_states[0], n_cases)]
    for r in n_states[1:]:
        codes.append(np.where(random.random(n_cases) < 0.7, codes[-1] * 5 % r, random.integers(0, r, n_cases)))
    variables = tuple(Variable(f"x{i}", tuple(map(str, range(r)))) for i, r in enumerate(n_states))
    table = Table(variables, np.array(codes, np.uint8))
    search = searching(table, plain_setup(prior), **PLAIN)
    search.run()
    memory = search._nodes.memory
    for entry, record in enumerate(memory.cache.entries[: memory.used[0]]):
        target, parents = record["target"], memory.parents[record["parents"] :][: record["n_parents"]].tolist()
        now = by_hand(codes, n_states, target, parents, prior)
        assert record["log_likelihood"] == pytest.approx(now, abs=1e-6)
        for other in set(range(len(codes))) - {target, *parents}:
            more = by_hand(codes, n_states, target, [*parents, other], prior)
            assert memory.cache.gains[entry, 0, other] == pytest.approx(more - now, abs=1e-6)


def by_hand(codes, n_states, target, parents, prior):
    """The log likelihood of a node."""
    r, n_rows = n_states[target], math.prod(n_states[parent] for parent in parents)
    name, _, value = prior.partition(":")
    cell = {"uniform": 1, "symmetric": float(value or 0) / r, "bdeu": float(value or 0) / (n_rows * r)}[name]
    rows = list(zip(*(codes[parent].tolist() for parent in parents), strict=True)) or [()] * len(codes[target])
    cells, totals = Counter(zip(rows, codes[target].tolist(), strict=True)), Counter(rows)
    worth = math.fsum(math.lgamma(n + cell) - math.lgamma(cell) for n in cells.values())
    return worth - math.fsum(math.lgamma(n + cell * r) - math.lgamma(cell * r) for n in totals.values())


def test_a_network_tells_of_the_search_as_it_was():
    """Though scores are reckoned when somebody asks."""
    table = sample(alarm(), 500, seed=4)
    search = searching(table, plain_setup("bdeu:1"), **PLAIN)
    for _ in range(5):
        next(search)
    early, score, n_leaves = search.network, search.log_score, search.n_leaves
    search.run()
    assert (early.learned["steps"], early.learned["stopped"], early.learned["leaves"]) == (5, "", n_leaves)
    assert early.learned["log_score"] == pytest.approx(score, abs=1e-6)
    assert total(early, table) == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_fewer_cases_than_variables_of_many_states(seed):
    """Then there are more candidates than configurations, and all must be counted: none that would gain is left."""
    random, n_cases, n, r = np.random.default_rng(seed), 15, 25, 12
    codes = [random.integers(0, r, n_cases)]
    for _ in range(n - 1):
        codes.append(np.where(random.random(n_cases) < 0.85, (codes[-1] * 3 + 1) % r, random.integers(0, r, n_cases)))
    codes = np.array(codes, np.uint8)[random.permutation(n)]
    table = Table([Variable(f"x{i}", tuple(map(str, range(r)))) for i in range(n)], codes)
    search = searching(table, plain_setup("bdeu:1"))
    search.run()
    parents = [set(node.parents) for node in search.network.nodes]
    above = ancestor_matrix([sorted(own) for own in parents])
    for child, parent in itertools.product(range(n), repeat=2):
        if child != parent and parent not in parents[child] and not above[parent, child]:
            gain = bdeu(codes, child, parents[child] | {parent}, r) - bdeu(codes, child, parents[child], r)
            assert gain < 1e-4  # exponents are tiny here, and what they are worth is reckoned less exactly


def test_arcs_between_others_than_the_target_are_not_told():
    table = sample(alarm(), 300, seed=4)
    names = table.names
    dag = Constraints(dag=[(names[0], names[1]), (names[1], names[2])])
    found = learn(table, target=names[2], search=TableArcSearch(), constraints=dag)
    assert found.named_arcs == ((names[1], names[2]),)
    assert found.learned["arcs"] == 1
    assert found.learned["tests"] == 1
    assert found.learned["leaves"] == table.n_states[1]


def test_time_is_up_before_the_first_step():
    table = sample(alarm(), 100, seed=4)
    search = searching(table, plain_setup("uniform"), seconds=0)
    assert (list(search), search.stopped) == ([], "seconds")


def test_tables_that_would_be_too_large_are_refused():
    table = make_table([2] * 22, np.random.default_rng(0).integers(2, size=(22, 10)))
    setup = plain_setup("uniform")
    with pytest.raises(ValueError, match="'v' begins with parents of 2097152 configurations, and a complete table"):
        searching(table, setup, start=[(parent, 21) for parent in range(21)])


def test_arcs_that_close_a_cycle_are_refused():
    table = make_table([2, 2], [[0, 1], [0, 1]])
    setup = plain_setup("uniform")
    with pytest.raises(ValueError, match="cycle"):
        searching(table, setup, start=[(0, 1), (1, 0)])


@pytest.mark.parametrize("wrong", [{"max_steps": -1}, {"seconds": -0.5}, {"threads": 0}, {"patience": -1}])
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match="must be at least"):
        TableArcSearch(**wrong)


@given(st.floats(1e-7, 1e8))
def test_log_gamma(x):
    python = getattr(kernels.log_gamma, "py_func", kernels.log_gamma)
    assert python(x) == pytest.approx(math.lgamma(x), rel=1e-14, abs=1e-14)
