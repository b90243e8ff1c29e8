"""All formats: the networks of the data directory and the odd ones, there and back; objects of pgmpy and pyAgrum.

The networks are looked for in the directory that LEAFWISE_DATA names, else in the data directory next to the project.
Tests of pgmpy and pyAgrum are skipped where these are not installed.
"""

import os
import re
import subprocess
import sys
import warnings
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from network_strategies import networks

from leafwise.data.table import Variable
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.examples import alarm
from leafwise.formats import agrum, bif, files, libra, xmod
from leafwise.formats import pgmpy as pgmpy_objects
from leafwise.formats.tables import complete_table
from leafwise.network import Network, Node

FOLDER = (
    Path(os.environ.get("LEAFWISE_DATA") or Path(__file__).resolve().parents[3].joinpath("shared", "data")) / "networks"
)
GOLDEN = Path(__file__).parents[1] / "golden"
NAMES = (
    *("alarm", "andes", "asia", "barley", "cancer", "child", "earthquake", "hailfinder", "hepar2", "insurance", "link"),
    *("munin1", "pathfinder", "pigs", "sachs", "survey", "water", "win95pts"),
)
LOSSES = {
    "json": 0,
    "bif": 0,
    "bif.gz": 0,
    "xmod": 0,
    "bn": 1e-12,
    "xmlbif": 0,
    "net": 0,
    "uai": 1e-300,  # names are lost
    "xdsl": 1e-300,  # parents come first
}

if find_spec("pyagrum") is not None:
    with warnings.catch_warnings():  # a warning made an error while it is being imported would end the process
        warnings.simplefilter("ignore")
        import pyagrum

needs_pyagrum = pytest.mark.skipif(find_spec("pyagrum") is None, reason="pyagrum is not installed: leafwise[pyagrum]")
needs_pgmpy = pytest.mark.skipif(find_spec("pgmpy") is None, reason="pgmpy is not installed: leafwise[pgmpy]")


@cache
def published(name):
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        pytest.skip("files have no compiled loops: once is enough")
    for path in (FOLDER / f"{name}.bif", FOLDER / f"{name}.bif.gz"):
        if path.exists():
            return files.load(path)
    return pytest.skip(f"{name}.bif is not here: name the directory of networks/ in LEAFWISE_DATA")


def distance(network, other):
    """The largest difference between the tables of two networks, whose variables go by name, or else by place."""
    names = other.names if set(other.names) != set(network.names) else network.names
    place = [other.names.index(name) for name in names]
    worst = 0.0
    for index, node in enumerate(network.nodes):
        there = other.nodes[place[index]]
        parents = [place[parent] for parent in node.parents]
        assert sorted(parents) == list(there.parents)
        table = complete_table(other, place[index]).transpose(*map(there.parents.index, parents), len(parents))
        worst = max(worst, abs(complete_table(network, index) - table).max())
    return worst


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("suffix", LOSSES)
def test_published_networks_there_and_back(name, suffix, tmp_path):
    network = published(name)
    path = tmp_path / f"{name}.{suffix}"
    network.save(path)
    back = Network.load(path)
    assert os.listdir(tmp_path) == [path.name]
    if LOSSES[suffix] == 0:
        assert back == network
        return
    assert distance(network, back) <= LOSSES[suffix]
    if suffix not in ("uai", "bn"):
        assert {v.name: v.labels for v in back.variables} == {v.name: v.labels for v in network.variables}


@needs_pyagrum
@pytest.mark.parametrize("name", NAMES)
def test_pyagrum_reads_what_is_written(name, tmp_path):
    network = published(name)
    bif.save(network, tmp_path / "x.bif")
    if name == "child":  # its states 'Asy/Patch' and '<5' have to be quoted, and pyAgrum's BIF has no quotes
        pytest.skip("pyAgrum's reader of BIF knows no quoted words")
    assert distance(network, agrum.from_agrum(pyagrum.loadBN(str(tmp_path / "x.bif")))) < 1e-7  # it reads 32 bits
    assert agrum.from_agrum(agrum.to_agrum(network)) == network


@needs_pgmpy
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("barley", "link", "munin1", "pathfinder")])
def test_pgmpy_reads_what_is_written(name, tmp_path):
    from pgmpy.readwrite import BIFReader

    network = published(name)
    bif.save(network, tmp_path / "x.bif")
    assert distance(network, pgmpy_objects.from_pgmpy(BIFReader(str(tmp_path / "x.bif")).get_model())) < 1e-6
    assert pgmpy_objects.from_pgmpy(pgmpy_objects.to_pgmpy(network)) == network


@needs_pgmpy
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("suffix", ["xmlbif", "xdsl", "net"])
@pytest.mark.parametrize("name", ["asia", "child", "insurance"])
def test_pgmpy_reads_the_other_formats(name, suffix, tmp_path):
    from pgmpy import readwrite

    path = tmp_path / f"x.{suffix}"
    files.save(published(name), path)
    reader = {"xmlbif": "XMLBIFReader", "xdsl": "XDSLReader", "net": "NETReader"}[suffix]
    model = getattr(readwrite, reader)(str(path)).get_model()
    assert distance(published(name), pgmpy_objects.from_pgmpy(model)) == 0


def odd_network():
    """Labels with signs, integers in falling order, and parents that come after their children."""
    size = Variable("size", ("5", "4", "< 3 & more"))
    kind = Variable("kind", ("a b", "it's", "x/y"))
    wet = Variable("wet", ("no", "yes"))
    graph = DecisionGraph.single().split(0, 2, [{0}, {1}]).split(1, 1, [{0, 2}, {1}])
    nodes = (
        Node((1, 2), graph, np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [1.0, 0.0, 0.0]])),
        Node((), DecisionGraph.single(), np.array([[0.2, 0.3, 0.5]])),
        Node((1,), DecisionGraph.complete([1], [3, 3, 2]), np.array([[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]])),
    )
    return Network((size, kind, wet), nodes)


@pytest.mark.parametrize("suffix", ["xmod", "bn"])
def test_the_golden_files_are_written_byte_for_byte(suffix, tmp_path):
    golden = GOLDEN / f"odd.{suffix}"
    files.save(odd_network(), tmp_path / golden.name)
    assert (tmp_path / golden.name).read_bytes() == golden.read_bytes()
    assert distance(odd_network(), files.load(golden)) < 1e-15


@pytest.mark.parametrize("suffix", ["xmlbif", "bifxml", "xml", "uai", "net", "xdsl", "xdsl.gz"])
def test_odd_networks_there_and_back(suffix, tmp_path):
    files.save(odd_network(), tmp_path / f"x.{suffix}")
    back = files.load(tmp_path / f"x.{suffix}")
    assert distance(odd_network(), back) == 0
    if suffix == "uai":
        assert back.names == ("0", "1", "2")
        assert back.variables[0].labels == ("0", "1", "2")


@pytest.mark.parametrize(
    ("suffix", "name", "label"),
    [
        ("xmlbif", " edge", "b"),
        ("xmlbif", "x", "b\0"),
        ("xmod", "x", "\ufffe"),
        ("net", "two words", "b"),
        ("net", "x", 'say "b"'),
        ("xdsl", "two words", "b"),
        ("xdsl", "x", "\x1b[31m"),
    ],
)
def test_names_that_a_format_cannot_hold_are_refused(suffix, name, label, tmp_path):
    node = Node((), DecisionGraph.single(), np.array([[0.5, 0.5]]))
    network = Network((Variable(name, ("a", label)),), (node,))
    with pytest.raises(ValueError, match=r"rename it") as caught:
        files.save(network, tmp_path / f"x.{suffix}")
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == []


@settings(max_examples=60)
@given(networks(complete=True), st.sampled_from(["xmlbif", "xdsl", "net", "uai"]))
def test_what_is_written_is_read_to_the_last_bit(network, suffix):
    module = import_module(f"leafwise.formats.{suffix}")
    try:
        text = module.dumps(network)
    except ValueError as error:
        assert "rename it" in str(error)  # noqa: PT017
        return
    back = module.loads(text.encode())
    assert distance(network, back) == 0
    if suffix != "uai":
        assert {v.name: v.labels for v in back.variables} == {v.name: v.labels for v in network.variables}


@needs_pgmpy
@pytest.mark.filterwarnings("ignore")
def test_objects_of_pgmpy():
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DiscreteBayesianNetwork

    model = pgmpy_objects.to_pgmpy(odd_network())
    assert model.check_model()
    assert distance(odd_network(), pgmpy_objects.from_pgmpy(model)) == 0
    turned = DiscreteBayesianNetwork([("a", "b")])
    turned.add_cpds(TabularCPD("a", 2, [[0.3], [0.7]], state_names={"a": [0, 1]}))
    with pytest.raises(ValueError, match="'b' has no distribution"):
        pgmpy_objects.from_pgmpy(turned)
    values = [[0.1, 0.8], [0.9, 0.2]]
    turned.add_cpds(TabularCPD("b", 2, values, ["a"], [2], state_names={"b": ["u", "v"], "a": [1, 0]}))
    network = pgmpy_objects.from_pgmpy(turned)
    assert network.variables[0].labels == ("0", "1")
    assert network.nodes[1].probabilities.tolist() == [[0.8, 0.2], [0.1, 0.9]]


@pytest.mark.parametrize("module", ["pyagrum", "pgmpy"])
def test_what_is_not_installed_says_how_to_get_it(module):
    call = {
        "pyagrum": "from leafwise.formats.agrum import to_agrum; to_agrum(alarm())",
        "pgmpy": "from leafwise.formats.pgmpy import to_pgmpy; to_pgmpy(alarm())",
    }[module]
    code = f"import sys; sys.modules[{module!r}] = None; from leafwise.examples import alarm; {call}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].startswith("ValueError: ")
    assert f"pip install 'leafwise[{module}]'" in done.stderr


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.json", "JSON"),
        ("a.JSON.GZ", "JSON"),
        ("model", "JSON"),
        ("a.b.bif", "BIF"),
        ("a.bif.gz", "BIF"),
        ("a.xml", "XMLBIF"),
        ("a.xdsl", "XDSL"),
        ("a.xmod", "XMOD"),
        ("a.bn.gz", "Libra BN"),
        ("a.uai.gz", "UAI"),
    ],
)
def test_the_end_of_a_name_is_the_format(name, kind):
    assert files.format_of(Path("some.where") / name) == kind


@pytest.mark.parametrize("name", ["a.csv", "a.gz", "a.uai.zip", "a.bif.txt"])
def test_other_ends_are_refused(name, tmp_path):
    for call in (files.load, lambda path: files.save(alarm(), path), Network.load, alarm().save):
        with pytest.raises(ValueError, match="no format of networks"):
            call(tmp_path / name)
    assert os.listdir(tmp_path) == []


# XMOD


def as_tree(network):
    """The network with every path of a graph a leaf of its own, nodes numbered level by level."""
    nodes = []
    for node in network.nodes:
        if node is None:
            nodes.append(None)
            continue
        number = {place: leaf for leaf, place in enumerate(node.graph.leaves)}
        waiting, tests, children, rows = [0], [], [], []
        for place in waiting:
            tests.append(node.graph.tests[place])
            child_of = {}
            for states, child in node.graph.arcs(place):
                child_of.update(dict.fromkeys(states, len(waiting)))
                waiting.append(child)
            children.append(tuple(child_of[state] for state in sorted(child_of)))
            if tests[-1] == LEAF:
                rows.append(node.probabilities[number[place]])
        nodes.append(Node(node.parents, DecisionGraph(tuple(tests), tuple(children)), np.array(rows)))
    variables = tuple(Variable(variable.name, variable.labels) for variable in network.variables)
    return Network(variables, tuple(nodes))


def xml_holds(text):
    return all(sign in "\t\n\r" or (sign >= " " and sign not in "\ufffe\uffff") for sign in text)


@given(networks())
def test_xmod_keeps_the_trees(network):
    if all(xml_holds(text) for variable in network.variables for text in (variable.name, *variable.labels)):
        assert xmod.loads(xmod.dumps(network)) == as_tree(network)
    else:
        with pytest.raises(ValueError, match="XML cannot"):
            xmod.dumps(network)


XMOD = """<?xml version="1.0"?>
<AnalysisNotebook>
<Variables>
<TypeVariables>
<Variable name="Boolean"><State index="1" name="yes"/><State index="0" name="no"/></Variable>
</TypeVariables>
<Variable name="rain" typeVariable="Boolean"/>
<Variable name="sky" type="categorical">
<State index="0" name="a"/><State index="1" name="b"/><State index="2" name="c"/>
</Variable>
<Variable name="given" typeVariable="Boolean"/>
</Variables>
<Model name="m"><LocalModels>
<LocalModel variable="sky"><DecisionTree>
<Leaf><Multinomial><Probs>0.2 0.3 0.5</Probs></Multinomial></Leaf>
</DecisionTree></LocalModel>
<LocalModel variable="rain"><Inputs><Input variable="sky"/></Inputs><DecisionTree>
<Vertex split="sky"><Branch><Values>1</Values>
<Leaf><Multinomial><Probs>0.1 0.9</Probs><Counts>1 9</Counts></Multinomial></Leaf></Branch>
<Branch><Values>0 2</Values><Vertex split="sky">
<Branch><Values>2</Values><Leaf><Multinomial><Probs>0.25 0.75</Probs></Multinomial></Leaf></Branch>
<Branch><Values>0</Values><Leaf><Multinomial><Probs>1 0</Probs></Multinomial></Leaf></Branch></Vertex></Branch>
</Vertex></DecisionTree></LocalModel>
</LocalModels></Model></AnalysisNotebook>
"""


def test_xmod_as_winmine_writes_it():
    network = xmod.loads(XMOD)
    assert network.names == ("rain", "sky", "given")
    assert network.variables[0].labels == ("no", "yes")
    assert network.nodes[2] is None
    rain = network.nodes[0]
    rows = [rain.probabilities[rain.graph.leaf_of([0, state, 0])].tolist() for state in range(3)]
    assert rows == [[1.0, 0.0], [0.1, 0.9], [0.25, 0.75]]
    tree = XMOD[XMOD.index('<LocalModel variable="rain">') : XMOD.index("</LocalModels>")]
    entries = "".join(
        f"<TableEntry><InputStates>{state}</InputStates><Multinomial><Probs>{p} {q}</Probs></Multinomial></TableEntry>"
        for state, (p, q) in enumerate(rows)
    )
    table = f'<LocalModel variable="rain"><Inputs><Input variable="sky"/></Inputs><Table>{entries}</Table></LocalModel>'
    assert xmod.loads(XMOD.replace(tree, table)).nodes[0].probabilities.tolist() == rows


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("</AnalysisNotebook>", "", "where XML is expected"),
        ("AnalysisNotebook>", "Other>", "<AnalysisNotebook> is expected"),
        ('<?xml version="1.0"?>', '<!DOCTYPE x [<!ENTITY a "b">]>', "entity"),
        ('name="sky"', 'name="rain"', "came before"),
        ('index="2"', 'index="3"', "each once"),
        ('name="c"', 'name="b"', "names must differ"),
        ('split="sky"', 'split="snow"', "'snow' came where a variable"),
        ('split="sky"', 'split="rain"', "the variable itself"),
        ('<LocalModel variable="sky">', '<LocalModel variable="rain">', "3 numbers came where 2"),
        (
            "</LocalModels>",
            XMOD[XMOD.index('<LocalModel variable="sky">') : XMOD.index("</Model>")],
            "second <LocalModel>",
        ),
        ("<Values>0 2</Values>", "<Values>0</Values>", "share out"),
        ("<Values>0 2</Values>", "<Values>0 1 2</Values>", "share out"),
        ("<Values>0 2</Values>", "<Values>0 3</Values>", "whole numbers"),
        ("<Values>0 2</Values>", "", "0 <Values> came"),
        ("0.2 0.3 0.5", "0.2 0.3", "2 numbers came where 3"),
        ("0.2 0.3 0.5", "0.2 0.3 x", "'x' came where a number"),
        ("0.2 0.3 0.5", "0.2 0.3 0.6", "sum to 1.1"),
        ("0.2 0.3 0.5", "nan 0.3 0.6", "'nan' came where a number"),
        ("<Leaf><Multinomial><Probs>0.2 0.3 0.5</Probs></Multinomial></Leaf>", "", "one <Vertex> or <Leaf>"),
    ],
)
def test_bad_xmod_files_get_one_line_with_the_place(old, new, expected, tmp_path):
    path = tmp_path / "x.xmod"
    assert old in XMOD
    path.write_text(XMOD.replace(old, new))
    with pytest.raises(ValueError, match=r"line \d+, column \d+: ") as caught:
        files.load(path)
    assert str(caught.value).startswith(f"{path}: line ")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_graph_that_makes_too_large_a_tree_is_refused():
    """Thirty parents, of which all that counts is whether they are an even number."""
    n = 30
    variables = tuple(Variable(f"x{k}", ("0", "1")) for k in range(n + 1))
    coin = Node((), DecisionGraph.single(), np.array([[0.5, 0.5]]))
    tests = tuple(test for k in range(n) for test in ((k,) if k == 0 else (k, k)))
    children = [(1, 2)] + [(2 * k + 1, 2 * k + 2) for k in range(1, n) for _ in range(2)]
    graph = DecisionGraph((*tests, LEAF, LEAF), (*children, (), ()))
    graph.validate([2] * (n + 1))
    network = Network(variables, (*[coin] * n, Node(tuple(range(n)), graph, np.array([[0.5, 0.5]] * 2))))
    for module in (xmod, libra):
        with pytest.raises(ValueError, match="tree of 'x30' would have 2,147,483,648 cells"):
            module.dumps(network)


def test_a_network_is_saved_within_the_limit_that_is_asked_for(tmp_path):
    path = tmp_path / "alarm.bif"
    with pytest.raises(ValueError, match="would have 108 cells, more than the limit of 107: raise most_cells"):
        alarm().save(path, most_cells=107)
    alarm().save(path, most_cells=108)
    assert Network.load(path).n_parameters == 509
    alarm().save(tmp_path / "alarm.json", most_cells=1)  # no table is made


# Libra's BN


@settings(max_examples=40)
@given(networks(complete=True))
def test_libra_keeps_the_distributions(network):
    back = libra.loads(libra.dumps(network))
    assert [variable.n_states for variable in back.variables] == [variable.n_states for variable in network.variables]
    for index, node in enumerate(network.nodes):
        there = back.nodes[index]
        assert set(there.parents) <= set(node.parents)
        for states in np.ndindex(*(variable.n_states for variable in network.variables)):
            one, other = (each.probabilities[each.graph.leaf_of(states)] for each in (node, there))
            assert abs(one - other).max() <= 1e-14


LIBRA = """2,3,2
BN {
v0 {
table {
-1.203973e+00 +v0_0
-3.566749e-01 +v0_1
}
}
v1 {
tree {
(v0_0
    (v1_0 -1.609438e+00
        (v1_1 -1.203973e+00 -6.931472e-01)) (v1_0 -inf (v1_1 0.000000e+00 -inf)))
}

}
v2 {
-0.5
features {
1.000000e+00 +v2_1 -v1_0
}
tree {(v2_0 (v0_1 2.0 0.0) 0.0)}
}
}
"""


def test_libra_as_libra_writes_it():
    network = libra.loads(LIBRA)
    assert network.names == ("v0", "v1", "v2")
    assert network.variables[1].labels == ("0", "1", "2")
    assert network.nodes[0].probabilities[0] == pytest.approx([0.3, 0.7], abs=1e-6)
    assert network.nodes[1].graph == DecisionGraph.complete([0], [2])
    assert network.nodes[1].probabilities == pytest.approx(np.array([[0.2, 0.3, 0.5], [0, 1, 0]]), abs=1e-6)
    assert network.nodes[2].parents == (0, 1)
    weights = np.exp([[[2 * (a == 1), float(b != 0)] for b in range(3)] for a in range(2)]).reshape(-1, 2)
    assert network.nodes[2].probabilities == pytest.approx(weights / weights.sum(axis=1, keepdims=True))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (LIBRA, "", "a number of states"),
        ("2,3,2", "", "numbers of states"),
        ("2,3,2", "2,x,2", "'x' came"),
        ("2,3,2", "2,3", "'v2' came"),
        ("BN {", "DN {", "'DN' came"),
        ("BN {", "BN", "'{' is expected"),
        ("v2 {", "v1 {", "each once"),
        ("v2 {", "v3 {", "each once"),
        ("+v2_1", "+v2_2", "'+v2_2' came"),
        ("-1.203973e+00 +v0_0", "one +v0_0", "'one' came"),
        ("-0.5", "1e999", "'1e999' came"),
        ("2.0 0.0)", "2.0)", "')' came"),
        ("2.0 0.0)", "2.0 0.0 1.0)", "')' is expected"),
        ("(v1_1 0.000000e+00 -inf)", "-inf", "all states have the probability 0"),
        ("+v0_0\n", "+v0_0 +v1_1\n", "cycle"),
        (LIBRA[LIBRA.index("v2 {") :], "}", "v2 has no distribution"),
        (LIBRA[-8:], "", "the end of the file"),
    ],
)
def test_bad_libra_files_get_one_line_with_the_place(old, new, expected, tmp_path):
    path = tmp_path / "x.bn"
    assert old in LIBRA
    path.write_text(LIBRA.replace(old, new))
    with pytest.raises(ValueError, match=r"line \d+, column \d+: ") as caught:
        files.load(path)
    assert str(caught.value).startswith(f"{path}: line ")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


@settings(max_examples=300)
@given(st.data())
def test_spoiled_files_are_read_or_refused_with_the_place(data):
    """Cut, doubled, changed: nothing but a network or a ValueError with line and column comes out."""
    module, text = data.draw(st.sampled_from([(xmod, XMOD), (libra, LIBRA)]))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = start + data.draw(st.sampled_from([0, 1, 4, 30, 1000]))
        piece = data.draw(st.sampled_from(["", text[start:end] * 2, *'(){}<>/&"+-9v ', "inf", "&lt;"]))
        text = text[:start] + piece + text[end:]
    try:
        module.loads(text)
    except ValueError as error:
        assert re.fullmatch(r"line \d+, column \d+: \S.*", str(error))  # noqa: PT017
