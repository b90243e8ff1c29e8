"""Mixtures: every answer against the joint table of the members, summed by hand."""

import json
import math
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from oracle_inference import joint_table
from strategies import generators, random_table

import leafwise
import leafwise.examples
from leafwise import Constraints, Mixture, Network, Table, Variable
from leafwise.inference.likelihood import log_probabilities_by_turns
from leafwise.learner import start_mixture
from leafwise.stacking import em_weights


def mixtures_of(random, n=3):
    table = random_table(random, max_variables=4, max_cases=60, max_states=3)
    mixture = leafwise.learn(table, networks=n, seed=int(random.integers(100)))
    weights = random.dirichlet(np.ones(n))
    return table, Mixture(mixture.members, tuple(weights / weights.sum()))


@settings(max_examples=15)
@given(generators())
def test_answers_are_those_of_the_summed_joint_table(random):
    table, mixture = mixtures_of(random)
    pairs = zip(mixture.members, mixture.weights, strict=True)
    joint = sum(weight * joint_table(member) for member, weight in pairs)
    cells = joint[tuple(table.codes)]
    assert mixture.log_probabilities(table) == pytest.approx(np.log(cells))
    assert leafwise.log_probabilities(mixture, table) == pytest.approx(np.log(cells))
    n = table.n_variables
    known, target = int(random.integers(n)), int(random.integers(n))
    state = int(random.integers(table.variables[known].n_states))
    name, label = table.names[known], table.variables[known].labels[state]
    rest = joint.take([state], axis=known)
    answer = leafwise.query(mixture, table.names[target], given={name: label})
    axes = tuple(axis for axis in range(n) if axis != target)
    expected = rest.sum(axis=axes) / rest.sum()
    if known != target:
        assert answer.distributions[0] == pytest.approx(expected)
    assert answer.log_evidence == pytest.approx(math.log(rest.sum()))
    shares = joint / joint.sum(axis=target, keepdims=True)
    rows = [np.moveaxis(shares, target, -1)[tuple(np.delete(case, target))] for case in table.codes.T]
    found = leafwise.predict(mixture, table, table.names[target])
    assert found.probabilities == pytest.approx(np.array(rows))
    best = mixture.explain()
    codes = tuple(v.labels.index(best.states[v.name]) for v in table.variables)
    assert best.log_probability == pytest.approx(math.log(joint[codes]))
    for axis in range(n):  # no change of one variable is better
        assert joint[codes] >= joint[(*codes[:axis], slice(None), *codes[axis + 1 :])].max() - 1e-12


def joint_of_groups(mixture):
    """The joint table: in a group, each variable's distribution is the mean of the members', by their weights."""
    sizes = [variable.n_states for variable in mixture.variables]
    joint = np.zeros(sizes)
    for group in set(mixture.groups):
        places = [k for k, own in enumerate(mixture.groups) if own == group]
        weight = sum(mixture.weights[k] for k in places)
        for cell in np.ndindex(*sizes):
            product = weight
            for variable, state in enumerate(cell):
                nodes = [mixture.members[k].nodes[variable] for k in places]
                own = [node.probabilities[node.graph.leaf_of(cell)][state] for node in nodes]
                product *= sum(mixture.weights[k] / weight * p for k, p in zip(places, own, strict=True))
            joint[cell] += product
    return joint


@settings(max_examples=10)
@given(generators())
def test_groups_mix_their_nodes(random):
    """Five networks are groups of two, two and one."""
    table, mixture = mixtures_of(random, 5)
    learned = leafwise.learn(table, networks=5, seed=int(random.integers(100)))
    mixture = Mixture(learned.members, mixture.weights, groups=learned.groups)
    assert mixture.groups == (0, 0, 1, 1, 2)
    joint = joint_of_groups(mixture)
    assert joint.sum() == pytest.approx(1)
    logs = np.log(joint[tuple(table.codes)])
    assert mixture.log_probabilities(table) == pytest.approx(logs)
    by_causes = [np.log(w) + network.log_probabilities(table) for network, w in mixture.components]
    assert np.logaddexp.reduce(by_causes) == pytest.approx(logs)
    target = int(random.integers(table.n_variables))
    name, others = table.names[target], tuple(k for k in range(table.n_variables) if k != target)
    assert mixture.query(name).distributions[0] == pytest.approx(joint.sum(axis=others))
    shares = np.moveaxis(joint / joint.sum(axis=target, keepdims=True), target, -1)
    rows = np.array([shares[tuple(np.delete(case, target))] for case in table.codes.T])
    assert mixture.predict(table, name).probabilities == pytest.approx(rows)
    if others and not table.variables[others[0]].missing:
        frame = table.to_pandas().head(4).astype(object)
        hole = others[0]
        frame[table.names[hole]] = None
        codes = table.codes[:, :4]
        whole = np.array([joint[(*case[:hole], slice(None), *case[hole + 1 :])].sum() for case in codes.T])
        options = {"missing": "unknown"}
        assert mixture.log_probabilities(frame, **options) == pytest.approx(np.log(whole))
        both = joint.sum(axis=hole, keepdims=True)
        both = np.moveaxis(both / both.sum(axis=target, keepdims=True), target, -1)
        left = [np.delete(np.where(np.arange(len(case)) == hole, 0, case), target) for case in codes.T]
        rows = np.array([both[tuple(case)] for case in left])
        assert mixture.predict(frame, name).probabilities == pytest.approx(rows)
    best = mixture.explain()
    codes = tuple(v.labels.index(best.states[v.name]) for v in table.variables)
    assert best.log_probability == pytest.approx(math.log(joint[codes]))


def test_cases_drawn_from_groups():
    table = leafwise.sample(leafwise.examples.alarm(), 400, seed=1)
    table = Table(table.variables[:3], np.ascontiguousarray(table.codes[:3]))
    mixture = leafwise.learn(table, networks=4)
    assert mixture.groups == (0, 0, 1, 1)
    drawn = mixture.sample(20_000, seed=1)
    assert drawn.variables == table.variables
    counts = np.zeros([variable.n_states for variable in table.variables])
    np.add.at(counts, tuple(drawn.codes), 1)
    assert counts / 20_000 == pytest.approx(joint_of_groups(mixture), abs=0.015)


def test_cases_drawn_from_a_group_with_more_members_than_a_byte_can_number(cases):
    network = leafwise.learn(cases)
    mixture = Mixture((network,) * 300, (1 / 300,) * 300, groups=(0,) * 300)
    own = Mixture((*mixture.members, network), (*(1 / 600,) * 300, 0.5), groups=(0,) * 300 + (1,))
    for drawn in (mixture.sample(2000), own.sample(2000)):
        assert drawn.variables == cases.variables
        assert drawn.codes.dtype == np.uint8
        for codes, name in zip(drawn.codes, drawn.names, strict=True):
            expected = network.query(name).distributions[0]
            assert np.bincount(codes, minlength=len(expected)) / 2000 == pytest.approx(expected, abs=0.05)


def test_groups_that_do_not_fit(mixture):
    with pytest.raises(ValueError, match="6 networks and 2 groups"):
        Mixture(mixture.members, mixture.weights, groups=(0, 1))
    with pytest.raises(TypeError, match="the groups of a mixture are numbers"):
        Mixture(mixture.members, mixture.weights, groups=tuple("abcdef"))
    two = [
        leafwise.learn(np.array([[0, 0], [1, 1]] * 20), constraints=Constraints(order=o))
        for o in (["x1", "x2"], ["x2", "x1"])
    ]
    assert [member.arcs for member in two] == [((0, 1),), ((1, 0),)]
    assert len(Mixture(tuple(two), (0.5, 0.5))) == 2
    with pytest.raises(ValueError, match="cycle"):
        Mixture(tuple(two), (0.5, 0.5), groups=(0, 0))


def test_networks_say_nothing_of_cases_they_saw(cases):
    """A case that one of two did not see has the probability by that one; what both saw has none."""
    own = Constraints(order=cases.names)
    networks = [leafwise.learn(cases, constraints=own, structure_prior=prior) for prior in ("kappa:0.01", "uniform")]
    seen = np.zeros((2, cases.n_cases), bool)
    seen[0, :20] = True
    seen[1, 10:30] = True
    logs = log_probabilities_by_turns(networks, np.array([0.3, 0.7]), cases.codes, seen=seen)[0]
    first, second = (network.log_probabilities(cases) for network in networks)
    assert logs[:10] == pytest.approx(second[:10])
    assert np.isnan(logs[10:20]).all()
    assert logs[20:30] == pytest.approx(first[20:30])
    both = Mixture(tuple(networks), (0.3, 0.7), groups=(0, 0)).log_probabilities(cases)
    assert logs[30:] == pytest.approx(both[30:])
    assert np.abs(both - np.logaddexp(first + np.log(0.3), second + np.log(0.7))).max() > 1e-3


def test_members_of_a_group_share_an_order(cases):
    mixture = leafwise.learn(cases, networks=9)
    assert mixture.groups == (0, 0, 0, 1, 1, 1, 2, 2, 2)
    assert mixture.learned["groups"] == 3
    assert mixture.learned["mean_log_probability_unseen"] < 0
    tiers = leafwise.learn(cases, networks=4, constraints=Constraints(tiers=[NAMES[:4], NAMES[4:]]))
    assert tiers.groups == (0, 1, 2, 3)


NAMES = ("HRBP", "HR", "ERRLOWOUTPUT", "CO", "BP", "TPR", "CATECHOL", "SAO2")


def drawn(n_cases, seed):
    """Cases of some variables of ALARM."""
    whole = leafwise.sample(leafwise.examples.alarm(), n_cases, seed=seed)
    places = [whole.index(name) for name in NAMES]
    return Table(tuple(whole.variables[k] for k in places), np.ascontiguousarray(whole.codes[places]))


@pytest.fixture(scope="module")
def cases():
    return drawn(300, 1)


@pytest.fixture(scope="module")
def mixture(cases):
    return leafwise.learn(cases, networks=6)


def test_many_predict_better_than_each_of_them(cases, mixture):
    new = drawn(1000, 2)
    together = mixture.log_probabilities(new).mean()
    assert together > max(member.log_probabilities(new).mean() for member in mixture.members)
    assert (len(mixture), mixture.learned["networks"], mixture.learned["cases"]) == (6, 6, 300)


def test_the_same_for_any_number_of_threads_and_another_for_another_seed(cases, mixture):
    for threads in (1, 2):
        assert leafwise.learn(cases, networks=6, search=leafwise.LeafSearch(threads=threads)) == mixture
    assert leafwise.learn(cases, networks=6, seed=2) != mixture


def test_a_group_without_weight_says_nothing(cases, mixture):
    network, other = mixture.members[:2]
    alone = Mixture((network, other, other), (1, 0, 0), groups=(7, 9, 9))
    assert alone.groups == (0, 1, 1)
    name = cases.names[0]
    assert alone.query(name)[name] == pytest.approx(network.query(name)[name])
    assert alone.log_probabilities(cases) == pytest.approx(network.log_probabilities(cases))
    assert alone.sample(20, seed=1).n_cases == 20


def test_evidence_that_only_a_group_without_weight_allows_is_impossible():
    alarm = leafwise.examples.alarm()
    mixture, given = Mixture((alarm.do({"BP": "LOW"}), alarm), (1, 0)), {"BP": "HIGH"}
    for ask in (lambda: mixture.query("CO", given=given), lambda: mixture.explain(given=given)):
        with pytest.raises(ValueError, match="impossible"):
            ask()
    with pytest.raises(ValueError, match="impossible"):
        mixture.sample(3, given=given)


def test_saved_loaded_and_pickled(mixture, tmp_path):
    for name in ("mixture.json", "mixture.json.gz"):
        mixture.save(tmp_path / name)
        assert Mixture.load(tmp_path / name) == mixture
    assert pickle.loads(pickle.dumps(mixture)) == mixture
    assert hash(pickle.loads(pickle.dumps(mixture))) == hash(mixture)
    with pytest.raises(ValueError, match="holds a mixture of networks, and one network is needed"):
        Network.load(tmp_path / "mixture.json")
    with pytest.raises(ValueError, match=r"a mixture is saved as \.json"):
        mixture.save(tmp_path / "mixture.bif")


def test_seeds_of_numpy_are_saved(cases, tmp_path):
    mixture = leafwise.learn(cases, networks=2, seed=np.int64(3))
    mixture.save(tmp_path / "mixture.json")
    assert Mixture.load(tmp_path / "mixture.json") == mixture == leafwise.learn(cases, networks=2, seed=3)


def test_a_network_is_a_mixture_of_one(tmp_path):
    leafwise.examples.alarm().save(tmp_path / "alarm.json")
    assert Mixture.load(tmp_path / "alarm.json").members == (leafwise.examples.alarm(),)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(version=4), 'the "version" of the mixture is 4'),
        (lambda d: (d.update(version=2), d["members"][0].update(group=0)), 'members have a "group"'),
        (lambda d: d["members"][0].pop("weight"), 'lacks "weight"'),
        (lambda d: d["members"][0].update(weight=0.9), "sum to one"),
        (lambda d: d.update(members=[]), "a mixture got 0 networks"),
    ],
)
def test_files_that_are_wrong(mixture, tmp_path, change, message):
    mixture.save(tmp_path / "mixture.json")
    document = json.loads((tmp_path / "mixture.json").read_text())
    change(document)
    (tmp_path / "mixture.json").write_text(json.dumps(document))
    with pytest.raises(ValueError, match=message):
        Mixture.load(tmp_path / "mixture.json")


def test_members_must_fit(cases, mixture):
    alarm = leafwise.examples.alarm()
    asia = leafwise.learn(np.array([[0, 1], [1, 1]]))
    with pytest.raises(ValueError, match="different variables or states"):
        Mixture((alarm, asia), (0.5, 0.5))
    with pytest.raises(ValueError, match="1 networks and 2 weights"):
        Mixture((alarm,), (0.5, 0.5))
    with pytest.raises(TypeError, match="ask one of its members"):
        leafwise.log_score(mixture, cases)


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: leafwise.markov_blanket(model, "CO"),
        lambda model: leafwise.is_independent(model, "CO", "BP"),
        lambda model: leafwise.dependence_path(model, "CO", "BP"),
        lambda model: leafwise.contexts(model, "CO"),
        lambda model: leafwise.do(model, {"CO": "LOW"}),
        lambda model: leafwise.reversible_arcs(model, "CO"),
        lambda model: leafwise.value_of_information(model, "CO"),
        lambda model: leafwise.feature_importance(model, "CO"),
        lambda model: leafwise.inference.information.strongest_effects(model, "CO"),
    ],
)
def test_what_asks_for_one_network_says_so(mixture, ask):
    for model, advice in [
        (mixture, "ask one of its members"),
        (leafwise.learn(np.array([[0], [1]] * 9), lags=1), r"its unroll\(T\) makes one"),
        ("model.json", r"Network.load\(path\) reads one"),
    ]:
        with pytest.raises(TypeError, match=f"needs a Network: {advice}"):
            ask(model)


def test_cases_drawn_follow_the_weights(mixture):
    alarm = leafwise.examples.alarm()
    two = Mixture((alarm.do({"BP": "LOW"}), alarm.do({"BP": "HIGH"})), (0.25, 0.75))
    drawn = two.sample(4000, seed=3)
    assert np.bincount(drawn.codes[36], minlength=3) / 4000 == pytest.approx([0.25, 0, 0.75], abs=0.03)
    assert (two.sample(4000, seed=3).codes == drawn.codes).all()
    assert two.query("BP", given={"BP": "HIGH"}).log_evidence == pytest.approx(math.log(0.75))
    assert two.explain(given={"BP": "HIGH"}).states["BP"] == "HIGH"
    with pytest.raises(ValueError, match="the evidence is impossible"):
        two.query("CO", given={"BP": "NORMAL"})
    assert set(two.sample(50, seed=1, given={"BP": "HIGH"}).codes[36].tolist()) == {2}
    with pytest.raises(ValueError, match="0 cases to draw"):
        two.sample(0)


def test_weights_of_states_count_in_explanations(cases, mixture):
    alarm, given = leafwise.examples.alarm(), {"CO": {"LOW": 30, "NORMAL": 1}, "BP": {"LOW": 0.01, "HIGH": 1}}
    alone, best = Mixture((alarm,), (1.0,)).explain(given=given), alarm.explain(given=given)
    assert alone.states == best.states
    assert (alone.log_probability, alone.log_posterior) == pytest.approx((best.log_probability, best.log_posterior))
    likely = mixture.explain().states["HR"]
    other = next(label for label in cases.variables[cases.index("HR")].labels if label != likely)
    assert mixture.explain(given={"HR": {likely: 1e-9, other: 1}}).states["HR"] == other


def test_some_targets_are_not_explained(mixture):
    with pytest.raises(ValueError, match="explains everything"):
        mixture.explain(["CO"])


def test_missing_cells_are_summed_over(cases, mixture):
    frame = cases.to_pandas().head(5).astype(object)
    frame.loc[:, ["HR", "BP"]] = None
    found = mixture.predict(frame, "CO").probabilities
    for row, case in zip(found, frame.to_dict("records"), strict=True):
        evidence = {name: label for name, label in case.items() if label is not None and name != "CO"}
        assert row == pytest.approx(mixture.query("CO", given=evidence).distributions[0], abs=1e-9)


def test_one_target(cases):
    forest = leafwise.learn(cases, networks=4, target="HRBP")
    rows = [w * m.predict(cases, "HRBP").probabilities for m, w in zip(forest.members, forest.weights, strict=True)]
    assert forest.predict(cases, "HRBP").probabilities == pytest.approx(sum(rows))


def test_interrupted_it_keeps_what_is_there(cases):
    under_way = start_mixture(cases, 8)
    next(under_way)
    assert len(under_way.network) == 1
    assert len(start_mixture(cases, 8).network) == 1  # nothing is there yet: an empty network is


def test_steps_count_the_networks_of_trials_too(cases, tmp_path):
    under_way = start_mixture(cases, 4, checkpoint=tmp_path / "run.checkpoint", every=0)
    told = [(step, under_way.describe()) for _, step in zip(range(5), under_way, strict=False)]
    assert [step for step, _ in told] == [1, 2, 3, 4, 5]
    assert told[0][1] == "trial 1, kappa:0.1: 1 of 2 networks"
    going_on = start_mixture(cases, 4, checkpoint=tmp_path / "run.checkpoint", every=1e9)
    steps = list(going_on)
    assert steps == list(range(6, steps[-1] + 1))
    assert going_on.describe().startswith("4 of 4 networks, ")


@pytest.mark.parametrize("rows", [[["a", "b"]], [["a", "b"], ["a", "c"]], [["a"], ["b"], ["a"]]])
def test_tiny_tables(rows, tmp_path):
    table = leafwise.read(np.array(rows), states=["x1", "x2"][: len(rows[0])])
    mixture = leafwise.learn(table, networks=3, checkpoint=tmp_path / "saved", every=0)
    assert np.isfinite(mixture.log_probabilities(table)).all()
    assert math.fsum(mixture.weights) == pytest.approx(1)


def test_constraints_hold_for_every_member(cases):
    order = list(cases.names)
    mixture = leafwise.learn(cases, networks=3, constraints=Constraints(order=order, max_parents=1))
    for member in mixture.members:
        assert all(parent < child for parent, child in member.arcs)
        assert all(len(node.parents) <= 1 for node in member.nodes)


def test_what_is_refused(cases):
    with pytest.raises(ValueError, match="networks is 0"):
        leafwise.learn(cases, networks=0)
    with pytest.raises(ValueError, match="leaves='average' was given with networks=3"):
        leafwise.learn(cases, networks=3, leaves="average")
    with pytest.raises(TypeError, match="whole number"):
        leafwise.learn(cases, networks="40")


def test_weights_raise_the_likelihood_of_unseen_cases():
    random = np.random.default_rng(1)
    unseen = [(np.sort(random.permutation(60)[:20]), np.log(random.random(20))) for _ in range(5)]

    def value(weights):
        top, below = np.zeros(60), np.zeros(60)
        for weight, (rows, logs) in zip(weights, unseen, strict=True):
            top[rows] += weight * np.exp(logs)
            below[rows] += weight
        return np.log(top[below > 0] / below[below > 0]).mean()

    best = em_weights(unseen, 60)
    assert best.sum() == pytest.approx(1)
    assert value(best) > value(np.full(5, 0.2))
    for _ in range(200):
        near = best * np.exp(random.normal(scale=0.2, size=5))
        assert value(near / near.sum()) <= value(best) + 2e-3


def test_the_picture_has_a_line_for_every_pair_that_most_connect(mixture):
    shares = mixture.arc_shares()
    n_pairs = int((np.triu(shares + shares.T, 1) >= 0.5).sum())
    assert mixture.plot().svg.count('class="arc"') == n_pairs > 4


@settings(max_examples=8)
@given(generators())
def test_missing_cells_are_filled_as_the_joint_table_says(random):
    table = random_table(random, max_variables=4, max_cases=60, max_states=3)
    labels = [tuple(map(str, range(variable.n_states))) for variable in table.variables]
    table = Table(tuple(map(Variable, table.names, labels)), table.codes)
    mixture = leafwise.learn(table, networks=4, seed=int(random.integers(100)))
    joint, axis = joint_of_groups(mixture), int(random.integers(table.n_variables))
    codes, variable = table.codes.repeat(40, axis=1), table.variables[axis]
    codes[axis, ::2] = variable.n_states
    holes = Table(tuple(v.with_missing if v is variable else v for v in table.variables), codes)
    shares = np.moveaxis(joint / joint.sum(axis=axis, keepdims=True), axis, -1)
    rows = np.array([shares[tuple(np.delete(case, axis))] for case in codes[:, ::2].T])
    found = leafwise.impute(mixture, holes, "mean probabilities")
    assert found.of(variable.name)[::2] == pytest.approx(rows)
    assert found.of(variable.name)[1::2] == pytest.approx(np.eye(variable.n_states)[codes[axis, 1::2]])
    best = leafwise.impute(mixture, holes, "most probable").codes[axis, ::2]
    assert rows[np.arange(len(rows)), best] == pytest.approx(rows.max(axis=1))
    drawn = leafwise.impute(mixture, holes, seed=1).codes
    n, mean = np.bincount(drawn[axis, ::2], minlength=variable.n_states), rows.sum(axis=0)
    assert (np.abs(n - mean) <= 5 * np.sqrt(mean) + 1).all()
    drawn[axis, ::2] = codes[axis, ::2]
    assert np.array_equal(drawn, codes)


def test_members_with_hidden_causes_are_summed_over_theirs():
    table = random_table(np.random.default_rng(3), max_variables=4, max_cases=60, max_states=3)
    mixture = leafwise.learn(table, networks=3, hidden=2, completions=2)
    assert [member.variables[-1].hidden for member in mixture] == [True] * 3
    pairs = zip(mixture.members, mixture.weights, strict=True)
    joint = sum(weight * joint_table(member).sum(axis=-1) for member, weight in pairs)
    assert mixture.log_probabilities(table) == pytest.approx(np.log(joint[tuple(table.codes)]))
    assert mixture == leafwise.learn(table, networks=3, hidden=2, completions=2)
    assert mixture.learned["leaves_chosen"] == "plain"
    for others in ({"hidden": "auto"}, {"hidden": 2, "target": table.names[0]}):
        with pytest.raises(ValueError, match="hidden="):
            leafwise.learn(table, networks=3, **others)


def test_groups_that_hold_a_row_impossible_are_not_asked():
    alarm = leafwise.examples.alarm()
    mixture = Mixture((alarm, alarm.do({"BP": "LOW"})), (0.75, 0.25))
    frame = leafwise.sample(alarm, 4, seed=1).to_pandas()
    frame.loc[1, ["BP", "SHUNT"]], frame.loc[2, "CVP"] = ["NORMAL", None], None
    found = leafwise.impute(mixture, frame, "mean probabilities").of("SHUNT")[1]
    assert found == pytest.approx(leafwise.impute(alarm, frame, "mean probabilities").of("SHUNT")[1])
    only = Mixture((alarm.do({"BP": "LOW"}), alarm.do({"BP": "HIGH"})), (0.5, 0.5))
    frame["BP"] = ["LOW", "NORMAL", "LOW", "LOW"]
    with pytest.raises(ValueError, match="what row 2 shows is impossible"):
        leafwise.impute(only, frame, "draw")


@pytest.mark.parametrize("method", ["exact", "weighting", "importance"])
def test_groups_that_hold_evidence_impossible_say_nothing(method):
    alarm = leafwise.examples.alarm()
    mixture, given = Mixture((alarm.do({"BP": "LOW"}), alarm), (0.5, 0.5)), {"BP": "HIGH"}
    found = mixture.query("CO", given=given, method=method, n_samples=1000)
    assert found["CO"] == pytest.approx(alarm.query("CO", given=given, method=method, n_samples=1000)["CO"])


def test_draws_by_a_mixture_are_not_those_that_chose_the_group():
    one = leafwise.learn(np.array([["x"], ["y"]]))
    mixture, hole = Mixture((one, one), (0.5, 0.5)), np.array([[None]])
    found = [leafwise.impute(mixture, hole, "draw", seed=s).codes[0, 0] for s in range(300)]
    assert 0.4 < np.mean(found) < 0.6


@pytest.mark.parametrize("how", ["draw", "mean probabilities"])
def test_one_warning_tells_of_all_groups_that_a_row_is_too_large_for(monkeypatch, how):
    from leafwise import imputation
    from leafwise.inference.holes import Holes

    alarm = leafwise.examples.alarm()
    mixture = Mixture((alarm, alarm.do({"BP": "LOW"})), (0.75, 0.25))
    frame = leafwise.sample(alarm, 6, seed=1).to_pandas()
    frame.loc[:1, ["CVP", "LVEDVOLUME", "PCWP"]] = None
    monkeypatch.setattr(imputation, "Holes", lambda network, limits: Holes(network, limits, room=2))
    with pytest.warns(leafwise.Approximate) as told:
        leafwise.impute(mixture, frame, how)
    assert len(told) == 1
    assert told[0].filename == __file__
    words = "2 rows of 6 are too large .* by some group .* have the weights of the mixture, .* by Gibbs sampling"
    assert re.match(words, str(told[0].message))
