"""BIF: what is read, what is refused and where, and that what is written is read back to the last bit."""

import gzip
import random
import re
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from network_strategies import networks

from leafwise.data.table import Variable
from leafwise.decision_graph import DecisionGraph
from leafwise.examples import alarm
from leafwise.formats import bif
from leafwise.formats.tables import complete_table, table_node
from leafwise.network import Network, Node

GOLDEN = Path(__file__).parents[1] / "golden" / "network.bif"

HEAD = """network unknown {
}
variable rain {
  type discrete [ 2 ] { no, yes };
}
variable wet {
  type discrete [ 3 ] { dry, damp, wet };
}
probability ( rain ) {
  table 0.8, 0.2;
}
"""
GOOD = (
    HEAD
    + """probability ( wet | rain ) {
  (no) 0.7, 0.2, 0.1;
  (yes) 0.1, 0.2, 0.7;
}
"""
)


def odd_network():
    """Names, labels and numbers that are hard to write."""
    age = Variable("the age", ("< 30", "30, or more", '"quoted"', "back\\slash", ""))
    smoker = Variable("smoker//no", ("no", "yes\nno"))
    lone = Variable("1", ("only",))
    graph = DecisionGraph.single().split(0, 1, [{0}, {1}]).split(1, 0, [{0, 3}, {1, 2, 4}]).merge(0, 2)
    nodes = (
        Node((), DecisionGraph.single(), np.array([[0.1, 0.2, 1 / 3, 0.0, 1 - 0.1 - 0.2 - 1 / 3]])),
        Node((), DecisionGraph.single(), np.array([[1e-300, 1.0]])),
        Node.learned((0, 1), graph, np.array([[3], [4]]), np.ones((2, 1))),
    )
    return Network((age, smoker, lone), nodes, "uniform", "kappa:0.1", {"steps": 3})


def with_tables(network):
    """What is left of a network in a format that knows only tables."""
    n_states = [variable.n_states for variable in network.variables]
    variables = tuple(Variable(variable.name, variable.labels) for variable in network.variables)
    tables = [complete_table(network, index) for index in range(len(variables))]
    pairs = zip(network.nodes, tables, strict=True)
    return Network(variables, tuple(table_node(node.parents, table, n_states) for node, table in pairs))


def test_the_golden_file_is_written_byte_for_byte(tmp_path):
    bif.save(odd_network(), tmp_path / "network.bif")
    assert (tmp_path / "network.bif").read_bytes() == GOLDEN.read_bytes()
    assert bif.load(GOLDEN) == with_tables(odd_network())


@given(networks(complete=True))
def test_what_is_saved_loads_back_identical(network):
    expected = with_tables(network)
    text = bif.dumps(network)
    assert bif.loads(text) == expected
    assert bif.loads(text.encode()) == expected
    assert bif.dumps(expected) == text


@given(networks(complete=True))
def test_a_table_says_what_the_graph_says(network):
    for index, node in enumerate(network.nodes):
        table = complete_table(network, index)
        assert table.shape == (*(network.variables[p].n_states for p in node.parents), node.n_states)
        for states in np.ndindex(table.shape[:-1]):
            case = [0] * len(network.variables)
            for parent, state in zip(node.parents, states, strict=True):
                case[parent] = state
            assert (table[states] == node.probabilities[node.graph.leaf_of(case)]).all()


def test_gzip(tmp_path):
    bif.save(alarm(), tmp_path / "alarm.bif.gz")
    assert bif.loads(gzip.decompress((tmp_path / "alarm.bif.gz").read_bytes())) == bif.load(tmp_path / "alarm.bif.gz")
    (tmp_path / "alarm.bif.gz").write_bytes(b"not packed")
    with pytest.raises(ValueError, match="gzip"):
        bif.load(tmp_path / "alarm.bif.gz")


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        re.sub(r"\s*([{}()\[\],;|])\s*", r"\1", GOOD),
        GOOD.replace("  ", "\t/* a { comment; */ ").replace("\n", " // and ( another\n"),
        GOOD.replace("rain", '"rain"').replace("damp", '"damp"').replace("(no)", '("no")'),
        GOOD.replace(", ", " "),
        GOOD.replace("( wet | rain )", '( "wet" "rain" )'),
        GOOD.replace("{\n}", '{ property author = "me; { }"; property x y z; }').replace(
            "};", "}; property position = (1, 2);"
        ),
        GOOD.replace("  (no) 0.7, 0.2, 0.1;\n  (yes) 0.1, 0.2, 0.7;", "table 0.7, 0.1, 0.2, 0.2, 0.1, 0.7;"),
        GOOD.replace("(no) 0.7, 0.2, 0.1;", "default .7, 2e-1, +0.1;"),
        GOOD.replace("(yes) 0.1, 0.2, 0.7;", "property p; default 0.1, 0.2, 0.7;"),
        GOOD.replace("0.8, 0.2;", "0.8, 0.2;property p;"),
    ],
)
def test_other_spellings_of_the_same_network(text):
    expected = bif.loads(GOOD)
    assert bif.loads(text.encode()) == expected
    assert expected.nodes[1].probabilities.tolist() == [[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]]


def test_the_order_of_a_table_and_of_parents():
    """The file's first parent varies slowest in rows, and the variable itself in a table (JavaBayes' dog problem)."""
    text = """network dog { }
    variable out { type discrete[2] { "true" "false" }; }
    variable family { type discrete[2] { "true" "false" }; }
    variable bowel { type discrete[2] { "true" "false" }; }
    probability (family) { table 0.15 0.85; }
    probability (bowel) { table 0.01 0.99; }
    probability (out bowel family) { table 0.99 0.97 0.9 0.3 0.01 0.03 0.1 0.7; }"""
    node = bif.loads(text).nodes[0]
    assert node.parents == (1, 2)  # family, bowel
    assert node.probabilities[:, 0].tolist() == [0.99, 0.9, 0.97, 0.3]


def test_rounded_rows():
    kept = bif.loads(GOOD.replace("0.7, 0.2, 0.1", "0.7000003, 0.2, 0.1"))
    assert kept.nodes[1].probabilities[0].tolist() == [0.7000003, 0.2, 0.1]
    scaled = bif.loads(GOOD.replace("0.7, 0.2, 0.1", "0.333, 0.333, 0.333"))
    assert scaled.nodes[1].probabilities[0] == pytest.approx([1 / 3] * 3, abs=1e-15)
    assert scaled.nodes[1].probabilities[1].tolist() == [0.1, 0.2, 0.7]
    assert bif.loads(bif.dumps(scaled)) == scaled


ROW = "  (no) 0.7, 0.2, 0.1;"
SECOND = GOOD[GOOD.index("probability ( wet") :]


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("", (1, 1), "'network'"),
        ("hello", (1, 1), "'network'"),
        ("network", (1, 8), "name"),
        ("network x", (1, 10), "'{'"),
        ("network x {", (1, 12), "'}'"),
        ("network x { author }", (1, 13), "'property'"),
        ("network x { property author }", (1, 13), "';'"),
        ("network x { /* for ever", (1, 13), "a comment without its end"),
        ("network x { }", (1, 14), "at least one"),
        (HEAD.replace("network unknown {\n}\n", ""), (1, 1), "'network'"),
        (HEAD.replace("variable wet", "table wet"), (6, 1), "'variable' or 'probability'"),
        (HEAD.replace("variable wet", "variable rain"), (6, 10), "declared twice"),
        (HEAD.replace("variable wet {", "variable wet"), (7, 3), "'{'"),
        (HEAD.replace("discrete [ 3 ]", "continuous"), (7, 8), "'discrete'"),
        (HEAD.replace("[ 3 ]", "[ 2 ]"), (7, 36), "after 2 states"),
        (HEAD.replace("[ 3 ]", "[ 4 ]"), (7, 19), "4 states are said"),
        (HEAD.replace("[ 3 ]", "[ three ]"), (7, 19), "number of states"),
        (HEAD.replace("[ 3 ]", "3"), (7, 17), "'['"),
        (HEAD.replace("damp, wet", "damp, damp"), (7, 36), "another state"),
        (HEAD.replace("damp, wet", "damp,, wet"), (7, 35), "a state or '}'"),
        (HEAD.replace("  type discrete [ 3 ] { dry, damp, wet };\n", ""), (6, 10), "has no type"),
        (HEAD.replace("wet };", "wet }"), (8, 1), "';'"),
        (HEAD, (6, 10), "'wet' has no distribution"),
        (HEAD + HEAD[HEAD.index("probability") :], (12, 15), "second distribution"),
        (GOOD.replace("wet | rain", "wet | snow"), (12, 21), "'snow' came where a variable"),
        (GOOD.replace("wet | rain", "wet | wet"), (12, 21), "another parent"),
        (GOOD.replace("wet | rain", "wet | rain, rain"), (12, 27), "another parent"),
        (GOOD.replace("(yes) 0.1", "(no) 0.1"), (14, 3), "each takes one"),
        (GOOD.replace(ROW, ""), (12, 15), "1 rows came where 2 are expected, and row 1"),
        (GOOD.replace("(no)", "(maybe)"), (13, 4), "'maybe' came where a state of parent 1"),
        (GOOD.replace("(no)", "(no, yes)"), (13, 8), "')'"),
        (GOOD.replace("(no)", "()"), (13, 4), "a state of parent 1"),
        (GOOD.replace("0.7, 0.2, 0.1", "0.7, 0.3"), (13, 8), "2 numbers came where 3"),
        (GOOD.replace("0.7, 0.2, 0.1", "0.7, 0.2, 0.1, 0.0"), (13, 23), "after 3 numbers"),
        (GOOD.replace("0.7, 0.2, 0.1", "0.7, 0.2, O.1"), (13, 18), "'O.1' came where a number"),
        (GOOD.replace("0.7, 0.2, 0.1", "0.7, 0.4, -0.1"), (13, 18), "'-0.1' came where a number"),
        (GOOD.replace("0.7, 0.2, 0.1", "nan, 0.4, inf"), (13, 8), "'nan' came where a number"),
        (GOOD.replace("0.7, 0.2, 0.1", "70, 20, 10"), (13, 8), "'70' came where a number"),
        (GOOD.replace("0.7, 0.2, 0.1", "1e999, 0, 0"), (13, 8), "'1e999' came where a number"),
        (GOOD.replace("0.7, 0.2, 0.1;", "0.7, 0.2, 0.1"), (14, 3), "a number or ';'"),
        (GOOD.replace("0.7, 0.2, 0.1", "0.7, 0.2, 0.2"), (13, 3), "sum to 1.1"),
        (GOOD.replace("0.8, 0.2", "0.8, 0.202"), (10, 3), "sum to 1.002"),
        (GOOD.replace("0.8, 0.2;", "0.8, 0.2; table 0.8, 0.2;"), (10, 19), "one table"),
        (GOOD.replace(ROW, "  default 0.7, 0.2, 0.1; default 0, 0, 1;"), (13, 26), "one 'default'"),
        (GOOD[:-2], (15, 1), "the end of the file"),
        (GOOD + "}", (16, 1), "'}' came"),
        (GOOD.replace("( rain )", "( rain | wet )").replace("table 0.8, 0.2", "default 0.8, 0.2"), (9, 15), "cycle"),
        (GOOD.encode().replace(b"damp", b"d\xe9mp"), (7, 31), "byte 0xe9"),
    ],
)
def test_bad_files_get_one_line_with_the_place(text, place, expected, tmp_path):
    path = tmp_path / "bad.bif"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match="line") as caught:
        bif.load(path)
    message = str(caught.value)
    line, column = place
    assert message.startswith(f"{path}: line {line}, column {column}: "), message
    assert expected in message
    assert "\n" not in message


def test_a_table_that_no_file_could_hold():
    names = [f"v{k}" for k in range(1000)]
    head = "network x { }\n" + "".join(f"variable {name} {{ type discrete [2] {{ a, b }}; }}\n" for name in names)
    block = f"probability ( v0 | {', '.join(names[1:])} ) {{ ENTRY }}"
    for entry, reason in (("default 0.5, 0.5;", "most_cells"), ("table 0.5, 0.5;", "can hold"), ("", "0 rows came")):
        with pytest.raises(ValueError, match=r"line 1002, column \d+.*10\^") as caught:
            bif.loads(head + block.replace("ENTRY", entry))
        assert reason in str(caught.value)


SIGNS = '{}()[],;|"/*\\ \n0.e-xé\0'


@settings(max_examples=400)
@given(st.data())
def test_a_spoiled_file_is_read_or_refused_with_the_place(data):
    """Cut, doubled, changed: nothing but a network or a ValueError with line and column comes out."""
    text = bif.dumps(odd_network()) if data.draw(st.booleans()) else GOOD
    for _ in range(data.draw(st.integers(1, 3))):
        start, end = sorted(data.draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
        end = min(end, start + data.draw(st.sampled_from([0, 1, 4, 1000])))
        text = text[:start] + data.draw(st.sampled_from(["", text[start:end] * 2, *SIGNS])) + text[end:]
    try:
        network = bif.loads(text)
    except ValueError as error:
        refusal = str(error)
    else:
        assert bif.loads(bif.dumps(network)) == network
        return
    assert re.fullmatch(r"line \d+, column \d+: \S.*", refusal)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_with_the_place(data):
    with pytest.raises(ValueError, match=r"^line \d+, column \d+: "):
        bif.loads(data)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 3_000_000,
        '"' + "a" * 3_000_000,
        "/*" * 1_500_000,
        "network x { property " + '"' * 2_999_999,
        GOOD.replace("0.7, 0.2, 0.1", "0.1 " * 1_000_000),
        GOOD.replace("(no)", "(" + "no " * 1_000_000),
        "".join(random.Random(1).choices('network variable{}()[];,|0.1\n"/*', k=3_000_000)),
    ],
)
def test_much_nonsense_is_refused_at_once(text):
    started = time.perf_counter()
    with pytest.raises(ValueError, match=r"^line \d+, column \d+: ") as caught:
        bif.loads(text)
    assert time.perf_counter() - started < 5
    assert len(str(caught.value)) < 300


def test_a_large_table_is_read_in_no_time():
    states = ", ".join(f"s{k}" for k in range(100))
    row = ", ".join(["0.01"] * 100)
    rows = "".join(f"  (s{k}, s{j}) {row};\n" for k in range(100) for j in range(54))
    variables = "".join(f"variable {name} {{ type discrete [100] {{ {states} }}; }}\n" for name in "ax")
    variables += f"variable b {{ type discrete [54] {{ {', '.join(f's{k}' for k in range(54))} }}; }}\n"
    roots = f"probability (a) {{ table {row}; }}\nprobability (b) {{ default {', '.join([repr(1 / 54)] * 54)}; }}\n"
    started = time.perf_counter()
    network = bif.loads(f"network x {{ }}\n{variables}{roots}probability (x | a, b) {{\n{rows}}}\n")
    assert time.perf_counter() - started < 5
    assert network.nodes[1].probabilities.shape == (5400, 100)


def test_what_cannot_be_a_table_is_refused_by_its_size(tmp_path):
    many = tuple(Variable(f"x{k}", ("0", "1")) for k in range(31))
    coin = Node((), DecisionGraph.single(), np.array([[0.5, 0.5]]))
    last = Node(tuple(range(30)), DecisionGraph.single(), np.array([[0.5, 0.5]]))
    network = Network(many, (*[coin] * 30, last))
    with pytest.raises(ValueError, match=r"'x30' given its 30 parents would have 2,147,483,648 cells.*1,000,000"):
        bif.save(network, tmp_path / "x.bif")
    with pytest.raises(ValueError, match="limit of 2"):
        bif.dumps(odd_network(), 2)
    only_given = Network(many[:2], (coin, None))
    with pytest.raises(ValueError, match="'x1' is only given"):
        bif.save(only_given, tmp_path / "x.bif")
    assert list(tmp_path.iterdir()) == []
