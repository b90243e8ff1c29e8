"""Groups of variables that are known to share one graph and one set of parameters."""

import json

import numpy as np
import pytest

import leafwise
from leafwise import Constraints, LeafSearch
from leafwise.report.text import network_text
from leafwise.scores import node_score

TIED = Constraints(tied=[[("y1", ["x1", "z1"]), ("y2", ["x2", "z2"])]])


@pytest.fixture(scope="module")
def cases():
    """y is x or z, but for some noise, for two pairs of parents; w copies y1."""
    random = np.random.default_rng(1)
    columns = {}
    for k in "12":
        columns[f"x{k}"], columns[f"z{k}"] = random.integers(2, size=(2, 150))
        columns[f"y{k}"] = (columns[f"x{k}"] | columns[f"z{k}"]) ^ (random.random(150) < 0.1)
    columns["w"] = columns["y1"] ^ (random.random(150) < 0.05)
    rows = np.stack(list(columns.values()), axis=1)
    return leafwise.read(leafwise.read(rows).to_pandas().set_axis(list(columns), axis=1))


def test_a_group_shares_graph_and_parameters(cases):
    search = leafwise.start_search(cases, constraints=TIED)
    steps = list(search)
    network = search.network
    one, two = network["y1"], network["y2"]
    assert (one.parents, two.parents) == (("x1", "z1"), ("x2", "z2"))
    nodes = [network.nodes[network.names.index(name)] for name in ("y1", "y2")]
    assert np.array_equal(nodes[0].probabilities, nodes[1].probabilities)
    assert nodes[0].graph.n_leaves > 1
    assert nodes[0].counts.sum() == 300
    assert len(network.ties) == nodes[0].graph.n_leaves
    whole = leafwise.learn(cases)
    assert network.n_parameters < sum(node.n_parameters for node in network.nodes)
    assert whole.ties == ()
    assert "y1" in network.parents("w")
    assert (len(steps), steps[-1].log_score) == (network.learned["steps"], pytest.approx(network.learned["log_score"]))
    assert leafwise.learn(cases, constraints=TIED) == network


def test_the_score_is_that_of_the_stacked_columns(cases):
    network = leafwise.learn(cases, constraints=TIED, prior="symmetric:2", structure_prior="uniform")
    total = 0.0
    for place, node in enumerate(network.nodes):
        if network.names[place] != "y2":
            total += node_score(node.counts, node.exponents, 0.0).log_score
    assert network.learned["log_score"] == pytest.approx(total)


@pytest.mark.parametrize("structure_prior", ["auto", "uniform", "kappa:0.3"])
@pytest.mark.parametrize("prior", ["auto", "bdeu:4"])
def test_the_network_has_the_score_that_was_learned(cases, structure_prior, prior):
    """What is known was not chosen: a group pays for one graph, and nothing for its ties. With own-value tests, too."""
    random, columns = np.random.default_rng(2), {}
    for k in "12":
        columns[f"x{k}"] = random.integers(4, size=2000)
        which = random.random(2000) < 0.2 + 0.2 * columns[f"x{k}"]
        columns[f"y{k}"] = np.where(random.random(2000) < 0.4, 2, which)  # whether it is 2 does not depend on x
    parted = leafwise.read(
        leafwise.read(np.stack(list(columns.values()), axis=1)).to_pandas().set_axis(list(columns), axis=1)
    )
    alike = Constraints(tied=[[("y1", ["x1"]), ("y2", ["x2"])]])
    for table, constraints, operators in ((cases, TIED, "CBIM"), (parted, alike, "CBIMO")):
        network = leafwise.learn(
            table,
            constraints=constraints,
            search=LeafSearch(operators),
            structure_prior=structure_prior,
            prior=prior,
        )
        assert (operators == "CBIMO") == (network["y1"].own is not None)
        scores = leafwise.log_score(network, table)
        assert scores.total == pytest.approx(network.learned["log_score"], abs=1e-8)
        again = leafwise.log_score(network, table, prior="symmetric:2" if prior == "auto" else prior)
        assert again.total == pytest.approx(scores.total, abs=1e-8)
        likelihood = sum(score.log_marginal_likelihood for score in scores.values())
        assert likelihood == pytest.approx(network.learned["log_marginal_likelihood"], abs=1e-8)


def test_limits(cases):
    network = leafwise.learn(cases, constraints=TIED, search=LeafSearch(max_steps=1))
    assert (network.learned["steps"], network.learned["stopped"]) == (1, "max_steps")
    network = leafwise.learn(cases, constraints=TIED, search=LeafSearch(seconds=0.0))
    assert network.learned["stopped"] == "seconds"


def test_all_variables_may_be_tied(cases):
    pairs = [[(f"{name}1", parents), (f"{name}2", [p[0] + "2" for p in parents])] for name, parents in
             (("x", []), ("z", ["x1"]), ("y", ["x1", "z1"]))]  # fmt: skip
    frame = cases.to_pandas().drop(columns="w")
    network = leafwise.learn(frame, constraints=Constraints(tied=pairs))
    assert network.nodes[0].counts.sum() == 300


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"target": "w"}, "target and constraints with tied were both given"),
        ({"search": leafwise.TableArcSearch()}, "constraints with tied are for LeafSearch"),
        ({"search": LeafSearch("CBIMT")}, "without the operators R and T"),
        ({"lags": 1}, "tied and lags were both given"),
        ({"networks": 2}, "networks and constraints with tied were both given"),
        ({"leaves": "average"}, "leaves and constraints with tied were both given"),
    ],
)
def test_what_does_not_go_with_it(cases, options, problem):
    with pytest.raises(ValueError, match=problem):
        leafwise.learn(cases, constraints=TIED, **options)


def test_what_is_shared_counts_once():
    """Two switches and the leaf of the other states, in both nodes; the first has them, and each parent has one."""
    random = np.random.default_rng(0)
    parents = random.integers(2, size=(4000, 2))
    is_first = random.random((4000, 2)) < np.array([0.2, 0.7])[parents]
    children = np.where(is_first, 0, 1 + (random.random((4000, 2)) < 0.4))
    network = leafwise.learn(
        np.hstack([parents, children]),
        search=LeafSearch("CBIMO"),
        constraints=Constraints(tied=[[("x3", ["x1"]), ("x4", ["x2"])]]),
    )
    assert network.parameters_by_node() == [1, 1, 3, 0]
    assert network.n_parameters == network.learned["parameters"] == 5
    assert "x4, given x2: 3 tests, 2 leaves, 0 parameters" in str(network["x4"])
    assert network_text(network).splitlines()[-1].split()[:4] == ["total", "6", "6", "5"]


def test_names_alone_tie_nothing():
    with pytest.raises(ValueError, match="tied has 'x1' where a child and its parents belong: give groups such as"):
        leafwise.learn(np.zeros((5, 2), int), constraints=Constraints(tied=[["x1", "x2"]]))


@pytest.mark.parametrize(
    "said", [[[]], [["x3"]], [["x3", "x1"]], [["x3", "x3"]], [["x3", "x5"]], [[["x3"]]], [1], {"x3": 1}, "x3,x4", None]
)
def test_a_file_that_is_wrong_about_what_is_tied(said, tmp_path):
    random = np.random.default_rng(0)
    x = random.integers(2, size=(4000, 2))
    y = np.where(random.random((4000, 2)) < np.array([0.2, 0.7])[x], 0, 1 + (random.random((4000, 2)) < 0.4))
    cases, alike = np.hstack([x, y]), Constraints(tied=[[("x3", ["x1"]), ("x4", ["x2"])]])
    network = leafwise.learn(cases, search=LeafSearch("CBIMO"), constraints=alike)
    path = tmp_path / "network.json"
    network.save(path)
    values = json.loads(path.read_text())
    values["learned"]["tied"] = said
    path.write_text(json.dumps(values))
    loaded = leafwise.Network.load(path)
    assert loaded.n_parameters == 7  # of the switches, nobody says that they are shared
    assert np.isfinite(leafwise.log_score(loaded, cases).total)
