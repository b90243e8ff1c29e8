import json as plain_json
import os
from dataclasses import replace
from importlib import resources
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from network_strategies import networks, own_networks

import leafwise
from leafwise.data.table import Variable
from leafwise.decision_graph import DecisionGraph
from leafwise.examples import alarm
from leafwise.formats import dynamic_json, json, mixture_json
from leafwise.formats.files import any_model_of, model_of
from leafwise.mixture import Mixture
from leafwise.network import Network, Node, TiedLeaf
from leafwise.own_tests import OwnTests

GOLDEN = Path(__file__).parents[1] / "golden" / "network.json"
GOLDEN_2 = GOLDEN.with_name("network-2.json")
GOLDEN_MIXTURE = GOLDEN.with_name("mixture-3.json")
SCHEMA = plain_json.loads(resources.files("leafwise.formats").joinpath("network.schema.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def golden_network():
    """All that the format can say, in four variables."""
    age = Variable("age", ("< 30", "30 to 50.5", "≥ 50.5", "(missing)"), cuts=(30.0, 50.5), missing=True)
    town = Variable("town", ("A", "B", "C", "D", "E", "F"), ordered=True)
    smoker = Variable("smoker", ("no", "yes"))
    given_only = Variable("region", ("north", 'the "south"'))
    graph = DecisionGraph.single().split(0, 1, [{2}, {0, 1, 3, 4, 5}]).split(1, 0, [{0, 3}, {1}, {2}]).merge(0, 2)
    counts = np.array([[3, 4], [0, 10], [123456789, 1]])
    exponents = np.array([[1.0, 1.0], [0.1, 0.1], [0.1, 1 / 3]])
    nodes = (
        Node((1,), DecisionGraph.complete([1], [4, 6]), np.array([[0.1, 0.2, 0.3, 0.4]] * 6)),
        Node((3,), DecisionGraph.single(), np.array([[0.5, 0.1, 0.1, 0.1, 0.2, 0.0]])),
        Node.learned((0, 1), graph, counts, exponents),
        None,
    )
    history = {"search": "greedy", "steps": 3, "seconds": 0.25, "operators": ["C", "B", "M"], "limit": None}
    return Network((age, town, smoker, given_only), nodes, "bdeu:10", "kappa:0.1", history)


def test_the_golden_file_is_written_byte_for_byte(tmp_path):
    json.save(golden_network(), tmp_path / "network.json")
    assert (tmp_path / "network.json").read_bytes() == GOLDEN.read_bytes()


def test_the_golden_file_loads():
    assert json.load(GOLDEN) == golden_network()
    VALIDATOR.validate(plain_json.loads(GOLDEN.read_text("utf-8")))


@given(networks())
def test_what_is_saved_loads_back_identical(network):
    text = json.dumps(network)
    VALIDATOR.validate(plain_json.loads(text))
    back = json.loads(text)
    assert back == network
    assert [repr(variable) for variable in back.variables] == [repr(variable) for variable in network.variables]
    assert json.dumps(back) == text


def golden_network_2():
    """What version 2 adds: own-value tests, learned and given, and ties, with states in another order."""
    size = Variable("size", ("S", "M", "L", "XL", "(missing)"), missing=True, ordered=True)
    colour, shade = (Variable(name, ("red", "green", "blue")) for name in ("colour", "shade"))
    # the shade is red or not, by the size; if not, one distribution for all sizes
    graph = DecisionGraph((0, 2, 2, -1, -1), ((1, 1, 2, 2, 2), (3, 4, 4), (3, 4, 4), (), ()))
    counts = np.array([[6, 1, 2], [0, 3, 4], [6, 0, 0], [0, 7, 5]])
    exponents = np.array([[0.5, 0.5, 0.5], [1, 1, 1], [0.5, 0, 0], [0, 0.25, 0.75]])
    given = OwnTests(
        DecisionGraph((0, -1, -1), ((1, 1, 1, 2, 2), (), ())),
        0,
        np.array([[0.75] * 3 + [0.25] * 2, [0.5, 0.25, 0.25, 0, 0], [0, 0, 0, 0.125, 0.875]]),
    )
    pooled = np.array([[2, 7, 5]]), np.array([[1.5, 0.25, 0.75]])
    nodes = (
        Node.with_own_tests(given),
        Node.learned((), DecisionGraph.single(), *(row[:, [0, 2, 1]] for row in pooled)),
        Node.with_own_tests(OwnTests.learned(graph, counts, exponents, 2)),
        Node.learned((2,), DecisionGraph.single(), *pooled),
    )
    ties = [[TiedLeaf(1, 0, (0, 1, 2)), TiedLeaf(3, 0, (0, 2, 1))]]
    return Network((size, colour, shade, replace(shade, name="hue")), nodes, "uniform", "uniform", {}, ties)


def test_the_golden_file_of_version_2_is_written_byte_for_byte_and_loads():
    assert json.dumps(golden_network_2()) == GOLDEN_2.read_text("utf-8")
    assert json.load(GOLDEN_2) == golden_network_2()
    VALIDATOR.validate(plain_json.loads(GOLDEN_2.read_text("utf-8")))


def golden_mixture():
    """What version 3 adds: groups of members, whose nodes are mixed."""
    one = golden_network_2()
    other = Node((), DecisionGraph.single(), np.array([[0.5, 0.25, 0.25]]))
    two = replace(one, nodes=(*one.nodes[:3], other), learned={"cases": 12}, ties=())
    return Mixture((one, two, one), (0.25, 0.25, 0.5), {"cases": 12, "networks": 3}, (0, 0, 1))


def test_the_golden_file_of_a_mixture_is_written_byte_for_byte_and_loads():
    assert mixture_json.dumps(golden_mixture()) == GOLDEN_MIXTURE.read_text("utf-8")
    assert Mixture.load(GOLDEN_MIXTURE) == golden_mixture()
    assert Mixture.load(GOLDEN_MIXTURE).groups == (0, 0, 1)


@pytest.mark.parametrize("kind", ["network", "mixture", "dynamic network"])
def test_the_kind_of_a_model_is_read_wherever_its_file_says_it(kind):
    if kind == "dynamic network":
        model = leafwise.learn(np.array([[0], [1], [1], [0]] * 9), lags=1)
        text = dynamic_json.dumps(model)
    else:
        model = golden_network() if kind == "network" else golden_mixture()
        text = json.dumps(model) if kind == "network" else mixture_json.dumps(model)
    document = plain_json.loads(text)
    others = {key: value for key, value in document.items() if key != "format"}
    turned = plain_json.dumps({**others, "format": document["format"]}, indent=4)
    for content in (text.encode(), turned.encode(), text.encode("utf-16")):
        assert any_model_of(content) == model
        if kind != "dynamic network":
            assert model_of(content) == model


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('["leafwise-mixture"]', "this is JSON but no network"),
        ('["leafwise-dynamic-network"]', "this is JSON but no network"),
        ('{"learned": {"a": ' + "[" * 900 + "]" * 900 + "}}", "nested too deeply|recursion"),
    ],
)
def test_what_is_no_mixture_gets_one_clear_line(text, message):
    if text.startswith("{"):
        text = plain_json.dumps({**plain_json.loads(GOLDEN_MIXTURE.read_text("utf-8")), **plain_json.loads(text)})
    with pytest.raises(ValueError, match=message):
        any_model_of(text.encode())


@given(own_networks())
def test_own_value_tests_load_back_identical(network):
    text = json.dumps(network)
    VALIDATOR.validate(plain_json.loads(text))
    assert json.loads(text) == network
    assert json.dumps(json.loads(text)) == text


def test_save_and_load_by_the_network(tmp_path):
    path = tmp_path / "alarm.json"
    alarm().save(path)
    assert Network.load(str(path)) == alarm()
    VALIDATOR.validate(plain_json.loads(path.read_text("utf-8")))
    assert os.listdir(tmp_path) == ["alarm.json"]


def test_saving_follows_links_and_keeps_the_old_file_on_failure(tmp_path, monkeypatch):
    path, link = tmp_path / "a.json", tmp_path / "link.json"
    path.write_text("old")
    link.symlink_to(path)
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        json.save(alarm(), link)
    assert path.read_text() == "old"
    monkeypatch.undo()
    json.save(alarm(), link)
    assert link.is_symlink()
    assert json.load(path) == alarm()
    assert sorted(os.listdir(tmp_path)) == ["a.json", "link.json"]


def test_devices_are_written_to_and_not_replaced():
    json.save(alarm(), os.devnull)
    assert not Path(os.devnull).is_file()


def test_unordered_nodes_and_omitted_members_load():
    document = plain_json.loads(json.dumps(alarm()))
    document["nodes"].reverse()
    for key in ("prior", "structure_prior", "learned"):
        del document[key]
    assert json.loads(plain_json.dumps(document)).nodes == alarm().nodes


def changed(change):
    document = plain_json.loads(GOLDEN.read_text("utf-8"))
    change(document)
    return plain_json.dumps(document)


def node(document, k=2):
    return document["nodes"][k]


def set_at(*path_and_value):
    *path, last, value = path_and_value

    def change(document):
        for key in path:
            document = document[key]
        document[last] = value

    return change


def drop(*path):
    def change(document):
        for key in path[:-1]:
            document = document[key]
        del document[path[-1]]

    return change


OWN, TIE = ("nodes", 2, "graph", 1), ("ties", 0, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(version=1), "which version 1 of the format does not have"),
        (drop(*OWN, "counts"), "some leaves have counts"),
        (set_at(*OWN, "counts", [1]), "own-value test of 'shade' has 1 counts, and 3 are due"),
        (set_at(*OWN, "exponents", -1), "exponents above 0"),
        (set_at("nodes", 2, "graph", 4, "counts", 0, 1), "cannot reach its distribution"),
        (set_at(*OWN, "arcs", [{"to": 4}]), "a distribution has one set of states"),
        (set_at("ties", {}), "must be a list"),
        (set_at("ties", 0, 3), "must be a list"),
        (lambda d: d["ties"][0].pop(), "fewer than two leaves"),
        (set_at(*TIE, "variable", "x"), "not among the variables"),
        (set_at(*TIE, "leaf", 1), "which has no such leaf"),
        (set_at(*TIE, "leaf", True), "must be an integer"),
        (set_at(*TIE, "states", ["red", "green", 3]), "no state of 'colour'"),
        (set_at(*TIE, "states", ["red", "blue", "green"]), "do not hold the same distribution"),
        (set_at(*TIE, "states", ["red", "red", "green"]), "give each once"),
    ],
)
def test_bad_own_value_tests_and_ties_get_one_clear_line(change, message):
    document = plain_json.loads(GOLDEN_2.read_text("utf-8"))
    change(document)
    with pytest.raises(ValueError, match=message) as caught:
        json.loads(plain_json.dumps(document))
    assert "\n" not in str(caught.value)


def add_cycle(document):
    node(document, 0)["parents"].append("smoker")


TEST, LEAF = ("nodes", 2, "graph", 0), ("nodes", 2, "graph", 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_at("format", "other"), "no network"),
        (set_at("version", 3), "newer leafwise"),
        (set_at("version", "1"), '"version" is'),
        (drop("version"), '"version" is None'),
        (drop("variables"), 'lacks "variables"'),
        (drop("nodes"), 'lacks "nodes"'),
        (set_at("nodes", {}), "must be a list"),
        (set_at("nodes", 0, "x"), "must be an object"),
        (set_at("prior", 3), "must be a string"),
        (set_at("learned", []), "must be an object"),
        (drop("variables", 0, "labels"), 'lacks "labels"'),
        (set_at("variables", 0, "labels", []), "has 0 states"),
        (set_at("variables", 0, "labels", 0, 5), "must be a string"),
        (set_at("variables", 0, "cuts", ["x"]), "must be a number"),
        (set_at("variables", 0, "cuts", 7), "must be a list"),
        (set_at("variables", 0, "missing", 1), "true or false"),
        (set_at("variables", 1, "name", "age"), "same name"),
        (drop("nodes", 2, "variable"), 'lacks "variable"'),
        (set_at("nodes", 2, "variable", "nobody"), "not among the variables"),
        (set_at("nodes", 1, "variable", "age"), "two nodes"),
        (set_at("nodes", 2, "parents", ["nobody"]), "not among the variables"),
        (set_at("nodes", 2, "parents", [["town"]]), "must be a string"),
        (set_at("nodes", 2, "parents", ["town"]), "tests 'age', which is not among its parents"),
        (set_at("nodes", 2, "parents", ["age", "town", "town"]), "each once"),
        (set_at("nodes", 2, "parents", ["age", "smoker", "town"]), "name other variables"),
        (set_at("nodes", 2, "graph", []), "."),
        (add_cycle, "cycle"),
        (set_at(*TEST, "test", "nobody"), "not among the variables"),
        (set_at(*TEST, "arcs", [{"states": ["A"], "to": 1}]), "no arc for the state 'B'"),
        (set_at(*TEST, "arcs", [{"to": 1}, {"to": 2}]), "too many arcs without states"),
        (set_at(*TEST, "arcs", 0, "states", ["Z"]), "no state of its test"),
        (set_at(*TEST, "arcs", 0, "states", [0]), "no state of its test"),
        (set_at(*TEST, "arcs", 1, "states", ["A", "A"]), "two arcs for the state 'A'"),
        (set_at(*TEST, "arcs", 0, "to", 0), "order the nodes"),
        (set_at(*TEST, "arcs", 0, "to", 99), "order the nodes"),
        (drop(*TEST, "arcs", 0, "to"), 'lacks "to"'),
        (set_at(*LEAF, "leaf", 1), "number them in order"),
        (drop(*LEAF, "leaf"), 'lacks "leaf"'),
        (drop(*LEAF, "counts"), "some leaves have counts"),
        (set_at(*LEAF, "counts", [1, 2, 3]), "3 counts, and 2 are due"),
        (set_at(*LEAF, "counts", [1, -2]), "numbers from 0 on"),
        (set_at(*LEAF, "counts", [1, 10**30]), "numbers from 0 on"),
        (set_at(*LEAF, "counts", [1, "two"]), "must be a number"),
        (set_at(*LEAF, "exponents", 0), "exponents above 0"),
        (set_at(*LEAF, "exponents", [1]), "1 exponents, and 2 are due"),
        (set_at(*LEAF, "exponents", "1"), "must be a number"),
        (set_at("nodes", 1, "graph", 0, "probabilities", [0.5] * 6), "do not sum to one"),
        (set_at("nodes", 1, "graph", 0, "probabilities", [1]), "1 probabilities, and 6 are due"),
        (drop("nodes", 1, "graph", 0, "probabilities"), 'lacks "probabilities"'),
        (set_at("nodes", 1, "graph", 0, "probabilities", [True] + [0] * 5), "must be a number"),
    ],
)
def test_bad_files_get_one_clear_line(change, message, tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(changed(change))
    with pytest.raises(ValueError, match=message) as caught:
        json.load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"\xff\xfe\x00", b"[NaN]", b"[-Infinity]", b"[1e999]", b"[" * 100_000, b"a,b\n1,2\n"]
)
def test_files_that_are_not_json(text, tmp_path):
    path = tmp_path / "bad.json"
    path.write_bytes(text)
    with pytest.raises(ValueError, match="not JSON") as caught:
        json.load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["[]", "3", '{"format": "x"}', "{}"])
def test_json_that_is_no_network(text):
    with pytest.raises(ValueError, match="no network"):
        json.loads(text)


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        json.load(tmp_path / "none.json")
