"""XMLBIF, XDSL, HUGIN NET and UAI as other programs write them, and what is refused of them."""

import numpy as np
import pytest

from leafwise.formats import bif, net, uai, xdsl, xmlbif
from leafwise.formats.files import load

# One network in four formats: the sky has three states, rain two, and the table of wet tells all orders apart.
XMLBIF = """<?xml version="1.0"?>
<!DOCTYPE BIF [
 <!ELEMENT BIF (NETWORK)*> <!ATTLIST VARIABLE TYPE (nature|decision|utility) "nature">
]>
<BIF VERSION="0.3"><NETWORK><NAME>garden &amp; sky</NAME>
<VARIABLE TYPE="nature"><NAME>sky</NAME><OUTCOME>clear</OUTCOME><OUTCOME> a few
clouds</OUTCOME><OUTCOME>&lt;grey&gt;</OUTCOME><PROPERTY>position = (73, 165)</PROPERTY></VARIABLE>
<VARIABLE><NAME> rain </NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME></VARIABLE>
<VARIABLE TYPE="nature"><NAME>wet</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME></VARIABLE>
<DEFINITION><FOR>wet</FOR><GIVEN>sky</GIVEN><GIVEN>rain</GIVEN><TABLE>
0.9 .1  0.8 0.2 <!-- clear --> 0.7 0.3 0.6 0.4 0.5 5e-1 0.4 0.6 </TABLE></DEFINITION>
<DEFINITION><FOR>sky</FOR><TABLE>0.2 0.3 0.5</TABLE></DEFINITION>
<DEFINITION><FOR>rain</FOR><GIVEN>sky</GIVEN><TABLE>1 0 0.75 0.25 0.5 0.5</TABLE></DEFINITION>
</NETWORK></BIF>
"""
XDSL = """<?xml version="1.0" encoding="ISO-8859-1"?>
<smile version="1.0" id="Network1" numsamples="1000" discsamples="10000">
  <nodes>
    <cpt id="sky" target="true"><state id="clear" /><state id="clouds" /><state id="grey" />
      <probabilities>0.2 0.3 0.5</probabilities></cpt>
    <cpt id="rain"><state id="no" /><state id="yes" /><parents>sky</parents>
      <probabilities>1 0 0.75 0.25 0.5 0.5</probabilities></cpt>
    <cpt id="wet"><state id="no" /><state id="yes" /><parents>sky rain</parents>
      <probabilities>0.9 0.1 0.8 0.2 0.7 0.3 0.6 0.4 0.5 0.5 0.4 0.6</probabilities></cpt>
  </nodes>
  <extensions><genie version="1.0" app="GeNIe"><node id="sky"><name>Sky</name></node></genie></extensions>
</smile>
"""
NET = """% a garden
net { node_size = (80 40); HR_Groups = ""; }
node wet { states = ("no" "yes"); label = "is; it } wet?"; position = (10 20); }
node sky { label=""; states=("clear" "a few clouds" "grey"); }
discrete node rain { states = (no yes); }
potential (sky) { data = (0.2 0.3 0.5); }
potential ( rain | sky ) { data = ((1 0) (0.75 0.25) % clouds; and ) so on
 (0.5 0.5)); }
potential ( wet | sky rain ) {
  data = (((0.9 0.1) (0.8 0.2)) ((0.7 0.3) (0.6 0.4)) ((0.5 0.5) (0.4 0.6)));
}
"""
UAI = """BAYES
3
3 2 2   # sky, rain, wet
3
1 0
2 0 1
3 0 1 2

3
 0.2 0.3 0.5
6
 1 0
 .75 .25
 0.5 0.5
12
 0.9 0.1 0.8 0.2
 0.7 0.3 0.6 0.4
 0.5 0.5 0.4 0.6
"""
FORMATS = {"xmlbif": (xmlbif, XMLBIF), "xdsl": (xdsl, XDSL), "net": (net, NET), "uai": (uai, UAI)}


def table(network, name, parents):
    """The table of a variable, with an axis for each of these parents."""
    number = {other: index for index, other in enumerate(network.names)}
    node = network.nodes[number[name]]
    assert set(node.parents) == {number[parent] for parent in parents}
    case = [0] * len(network.names)
    out = np.empty([network.variables[number[parent]].n_states for parent in parents] + [node.n_states])
    for states in np.ndindex(out.shape[:-1]):
        for parent, state in zip(parents, states, strict=True):
            case[number[parent]] = state
        out[states] = node.probabilities[node.graph.leaf_of(case)]
    return out


@pytest.mark.parametrize("suffix", FORMATS)
def test_files_as_other_programs_write_them(suffix):
    module, text = FORMATS[suffix]
    network = module.loads(text.encode())
    sky, rain, wet = ("0", "1", "2") if suffix == "uai" else ("sky", "rain", "wet")
    assert table(network, sky, []).tolist() == [0.2, 0.3, 0.5]
    assert table(network, rain, [sky]).tolist() == [[1, 0], [0.75, 0.25], [0.5, 0.5]]
    expected = [[[0.9, 0.1], [0.8, 0.2]], [[0.7, 0.3], [0.6, 0.4]], [[0.5, 0.5], [0.4, 0.6]]]
    assert table(network, wet, [sky, rain]).tolist() == expected
    again = module.loads(module.dumps(network).encode())
    assert table(again, wet, [sky, rain]).tolist() == expected


def test_labels_come_as_they_are_written():
    assert xmlbif.loads(XMLBIF.encode()).variables[0].labels == ("clear", "a few\nclouds", "<grey>")
    assert net.loads(NET.encode()).names == ("wet", "sky", "rain")
    assert net.loads(NET.encode()).variables[1].labels == ("clear", "a few clouds", "grey")
    assert xdsl.loads(XDSL.replace("grey", "gr\xe4y").encode("latin-1")).variables[0].labels[2] == "gr\xe4y"


BAD = [
    ("xmlbif", "0.2 0.3 0.5", "0.2 0.3 O.5", "'O.5' came where a number"),
    ("xmlbif", "0.2 0.3 0.5", "0.2 0.3 nan", "'nan' came where a number"),
    ("xmlbif", "0.2 0.3 0.5", "0.2 0.3 0.4", "sum to 0.9"),
    ("xmlbif", "0.2 0.3 0.5", "1.2 0.3 -0.5", "not all from 0 on"),
    ("xmlbif", "0.2 0.3 0.5", "1e999 0.3 0.5", "sum to inf"),
    ("xmlbif", "0.2 0.3 0.5", "0.2 0.8", "2 numbers came where 3"),
    ("xmlbif", "<GIVEN>rain</GIVEN>", "<GIVEN>snow</GIVEN>", "'snow' came where a variable"),
    ("xmlbif", "<GIVEN>rain</GIVEN>", "<GIVEN>sky</GIVEN>", "came where its parents"),
    ("xmlbif", "<FOR>rain</FOR>", "<FOR>sky</FOR>", "second distribution"),
    ("xmlbif", "<NAME>wet</NAME>", "<NAME>sky</NAME>", "came before"),
    ("xmlbif", "<NAME>wet</NAME>", "<NAME></NAME>", "empty name"),
    ("xmlbif", "<OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME>", "", "has 0 states"),
    ("xmlbif", "<OUTCOME>no</OUTCOME>", "<OUTCOME>yes</OUTCOME>", "two states labelled 'yes'"),
    ("xmlbif", 'TYPE="nature"', 'TYPE="utility"', "of the type 'utility'"),
    ("xmlbif", "<BIF VERSION", "<BIG VERSION", "<BIG> came where <BIF>"),
    ("xmlbif", "garden &amp; sky", "&lol;", "undefined entity"),
    ("xmlbif", "<!ELEMENT BIF (NETWORK)*>", '<!ENTITY lol "lol">', "an entity came"),
    ("xmlbif", "<!ELEMENT BIF (NETWORK)*>", '<!ENTITY % lol SYSTEM "file:///etc/passwd">', "an entity came"),
    ("xdsl", "0.2 0.3 0.5", "0.2 0.3 O.5", "'O.5' came where a number"),
    ("xdsl", "<parents>sky</parents>", "<parents>wet rain</parents>", "came where its parents"),
    ("net", "(sky) { data = (0.2 0.3 0.5", "(sky | wet) { data = (0.2 0.3 0.5 0.2 0.3 0.5", "form a cycle"),
    ("xdsl", '<cpt id="rain">', "<cpt>", "without its 'id'"),
    ("xdsl", '<cpt id="rain">', '<cpt id="sky">', "came before"),
    ("xdsl", "</nodes>", '<noisymax id="x"/></nodes>', "<noisymax> came where <cpt>"),
    ("xdsl", "</smile>", "", "no element found"),
    ("net", "0.2 0.3 0.5", "0.2 0.3 nan", "'nan' came where a number"),
    ("net", "0.2 0.3 0.5", "0.2 0.3 1_0", "'1_0' came where a number"),
    ("net", "data = (0.2", "dote = (0.2", "has no data"),
    ("net", "states = (no yes);", "", "has no states"),
    ("net", "states = (no yes);", "states = (no yes); states = (a b);", "a second time"),
    ("net", "( rain | sky )", "( rain | sky", "'{' came where"),
    ("net", "discrete node", "continuous node", "'continuous' came"),
    ("net", "net {", "network {", "'network' came"),
    ("net", "(0.2 0.3 0.5); }", "(0.2 0.3 0.5);", "came where"),
    ("net", NET[NET.index("potential ( wet") :], "", "'wet' has no distribution"),
    ("uai", "0.2 0.3 0.5", "0.2 0.3 O.5", "'O.5' came where a number"),
    ("uai", "0.2 0.3 0.5", "0.2 0.3 nan", "'nan' came where a number"),
    ("uai", "BAYES", "MARKOV", "'MARKOV' came"),
    ("uai", "3 2 2", "3 2 -2", "'-2' came"),
    ("uai", "3 2 2", "3 2 70000", "70000 states"),
    ("uai", "2 0 1", "2 0 7", "'7' came where a variable"),
    ("uai", "2 0 1", "0", "about no variables"),
    ("uai", "2 0 1", "3 0 0 1", "came where its parents"),
    ("uai", "\n6\n", "\n5\n", "needs '6' numbers"),
    ("uai", "0.4 0.6\n", "0.4", "the end of the file"),
    ("uai", "0.4 0.6\n", "0.4 0.6 0.7", "more came"),
]


@pytest.mark.parametrize(("suffix", "old", "new", "expected"), BAD)
def test_bad_files_get_one_line_with_the_place(suffix, old, new, expected, tmp_path):
    text = FORMATS[suffix][1]
    assert old in text
    path = tmp_path / f"x.{suffix}"
    path.write_text(text[: text.rindex(old)] + new + text[text.rindex(old) + len(old) :])
    with pytest.raises(ValueError, match=r"line \d+, column \d+: ") as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: line ")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("data", [b"", b"hello (", b"\xef", b"\xff\xfe", b"<BIF></BIF>", b"BAYES 2\n2", b"net { }"])
def test_nonsense_gets_one_line_with_the_place(suffix, data, tmp_path):
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"x\.\w+: line \d+, column \d+: \S"):
        load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / f"none.{suffix}")


@pytest.mark.parametrize("suffix", ["net", "uai"])
def test_names_that_are_not_utf_8(suffix, tmp_path):
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(FORMATS[suffix][1].replace("sky", "sk\xff").encode("latin-1"))
    with pytest.raises(ValueError, match=r"line 3, column 1|byte 0xff came where UTF-8 text"):
        load(path)


def test_thousands_of_parents_with_one_state():
    """More axes than an array has."""
    n = 2000
    scopes = "".join(f"1 {k}\n" for k in range(n)) + f"{n + 1} {' '.join(map(str, range(n + 1)))}\n"
    text = f"BAYES {n + 1} {'1 ' * n}2\n{n + 1}\n{scopes}{'1 1 ' * n}2 0.25 0.75"
    network = uai.loads(text.encode())
    assert network.nodes[n].probabilities.tolist() == [[0.25, 0.75]]
    assert network.query(str(n))[str(n)] == {"0": 0.25, "1": 0.75}
    for form in (bif, net, uai, xdsl, xmlbif):
        assert form.loads(form.dumps(network).encode()).nodes == network.nodes
