"""What the fuzzer found, made small: each of these was a traceback, a warning, a hang or a page of text once."""

import csv
import os

import numpy as np
import pandas
import pytest
from fuzz.kinds import one
from strategies import make_table

import leafwise
from leafwise import prior_network
from leafwise.cli import run
from leafwise.data.table import Variable
from leafwise.formats import arcs, files, json, libra, net, uai, xdsl, xmlbif
from leafwise.network import Network


def test_integers_too_large_for_a_machine():
    assert leafwise.read(np.array([[10**30], [1]], dtype=object)).variables[0].n_states == 2
    with pytest.raises(ValueError, match="the DataFrame cannot be read"):
        leafwise.read(pandas.DataFrame({"a": [10**30, 1]}))


@pytest.mark.filterwarnings("error")
def test_names_of_columns_of_several_types():
    assert leafwise.read(pandas.DataFrame({"a": ["x", "y"], 1: ["u", "v"]})).names == ("a", "1")


def test_a_field_too_long_for_a_list_of_names(tmp_path):
    path = tmp_path / "arcs.txt"
    path.write_text('"' + "a" * 200_000 + '", b\n')
    csv.field_size_limit(131_072)  # of Python
    with pytest.raises(ValueError, match=r"line 1: .* is no list of names") as refusal:
        arcs.read_arcs(path, None)
    assert len(str(refusal.value)) < 500


def test_a_long_word_where_a_number_is_due():
    text = b"2,2\nBN {\nv0 {\ntable {\n" + b"0" * 200_000 + b"x\n}\n}\n}\n"
    with pytest.raises(ValueError, match="came where a weight is expected"):
        libra.loads(text)  # it took minutes, being quadratic


NET = "net { } node a { states = (x y); } potential ( a ) { data = ( %s ); }"
UAI = "BAYES 1 2 1 1 0 2 %s"
XMLBIF = (
    '<BIF VERSION="0.3"><NETWORK><NAME>n</NAME><VARIABLE TYPE="nature"><NAME>a</NAME><OUTCOME>x</OUTCOME>'
    "<OUTCOME>y</OUTCOME></VARIABLE><DEFINITION><FOR>a</FOR><TABLE>%s</TABLE></DEFINITION></NETWORK></BIF>"
)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("numbers", ["1e308 1e308", "1e999 -1e999", "1e308 -1e308"])
@pytest.mark.parametrize(("read", "text"), [(net, NET), (uai, UAI), (xmlbif, XMLBIF)])
def test_numbers_whose_sum_is_no_number(read, text, numbers):
    with pytest.raises(ValueError, match="these probabilities"):
        read.loads((text % numbers).encode())


@pytest.mark.filterwarnings("error")
def test_log_weights_as_far_apart_as_can_be():
    text = b"2\nBN {\nv0 {\ntable {\n1e308 +v0_0\n-1e308 +v0_1\n}\n}\n}\n"
    assert libra.loads(text).nodes[0].probabilities.tolist() == [[1.0, 0.0]]


def test_a_parquet_file_whose_columns_are_damaged():
    """pyarrow ends the process when it looks at what this one says of a column."""
    assert one("parquet", 17, 1235002) == "refused"


def test_a_parquet_file_whose_dictionary_is_damaged():
    """Cells point behind the values that are left, at what would be a traceback, or other values."""
    assert one("parquet", 171811, 41002) == "refused"


@pytest.mark.parametrize("line", [["--operators", "a,a"], ["--search", "edges", "--operators", "CBIMO"]])
def test_operators_that_cannot_be_are_refused_before_anything_is_read(line, tmp_path, capsys):
    (tmp_path / "cases.csv").write_text("a,b\n1,2\n2,1\n")
    assert run(["learn", str(tmp_path / "cases.csv"), "--cache", "-o", str(tmp_path / "model.json"), *line]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["cases.csv"]


def test_tables_with_hidden_causes_in_many_networks_are_refused_before_anything_is_said(tmp_path, capsys):
    (tmp_path / "cases.csv").write_text("a,b\n1,2\n2,1\n")
    line = [
        "learn",
        str(tmp_path / "cases.csv"),
        "-o",
        str(tmp_path / "model.json"),
        "--networks",
        "2",
        "--hidden",
        "2",
    ]
    assert run([*line, "--search", "recover"]) == 2
    assert capsys.readouterr().err.startswith("leafwise: a search with complete tables takes no")


@pytest.mark.parametrize("search", ["tables", "recover"])
def test_tables_with_as_many_hidden_causes_as_score_best_are_refused_before_the_first_search(search, tmp_path, capsys):
    (tmp_path / "cases.csv").write_text("a,b\n1,2\n2,1\n" * 50)
    line = ["learn", str(tmp_path / "cases.csv"), "-o", str(tmp_path / "model.json"), "--hidden", "auto", "--verbose"]
    assert run([*line, "--search", search]) == 2
    assert capsys.readouterr().err.startswith("leafwise: a search with complete tables takes no")


def test_a_number_of_many_digits_makes_no_long_refusal():
    with pytest.raises(ValueError, match="is not a finite number") as refusal:
        json.loads('{"format": 1' + "0" * 5000 + ".0}")
    assert len(str(refusal.value)) < 500


def test_long_names_make_no_long_refusals(tmp_path):
    (tmp_path / "cases.csv").write_text(f"{'a' * 5000},b\n1,2\n,3\n")
    with pytest.raises(ValueError, match="missing cells in column") as refusal:
        leafwise.read(tmp_path / "cases.csv")
    assert len(str(refusal.value)) < 500
    node = leafwise.learn(np.array([[0], [1]])).nodes[0]
    with pytest.raises(ValueError, match="NET cannot hold") as refusal:
        net.dumps(Network((Variable("a", ("x", '"' * 5000)),), (node,)))
    assert len(str(refusal.value)) < 500


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="takes long without compiled loops")
def test_a_search_on_noise_ends(monkeypatch):
    """Under large samples all directions of arcs are a tie, and rounding told them apart for ever."""
    random = np.random.default_rng(0)
    table = make_table([3, 5, 6], [random.integers(k, size=60) for k in (3, 5, 6)])
    with pytest.raises(ValueError, match=r"scores are exact for 1e-100 to 100000: use one of these"):
        leafwise.learn(table, prior="bdeu:1e6")
    monkeypatch.setattr(prior_network, "_LARGEST_SIZE", 1e8)
    search = leafwise.TableArcSearch(threads=1, patience=1)
    network = leafwise.learn(table, prior="bdeu:1e8", structure_prior="uniform", search=search)
    assert network.learned["stopped"] == "no operator gains"


def test_names_of_5000_letters_are_shortened():
    for make in (
        lambda: Variable("n" * 5000, ("s" * 5000, "s" * 5000)),
        lambda: leafwise.data.table.index_of("x" * 5000, ()),
    ):
        with pytest.raises(ValueError, match="…") as refusal:
            make()
        assert len(str(refusal.value)) < 500


def test_a_kind_of_file_that_cannot_be_is_refused_before_anything_is_said(tmp_path, capsys):
    leafwise.learn(make_table([2], [[0, 1, 0, 1]])).save(tmp_path / "model.json")
    name = Network.load(tmp_path / "model.json").variables[0]
    line = ["sample", str(tmp_path / "model.json"), "--do", f"{name.name}={name.labels[0]}", "-o", "out.bif"]
    assert run(line) == 2
    told = capsys.readouterr().err
    assert "is no kind of data file here" in told
    assert told.count("\n") == 1


def test_a_long_version_makes_no_long_refusal():
    for name in ("network", "mixture", "dynamic-network"):
        document = f'{{"format": "leafwise-{name}", "version": {[[0] * 2000]}}}'
        with pytest.raises(ValueError, match='the "version"') as refusal:
            files.any_model_of(document.encode())
        assert len(str(refusal.value)) < 500
        with pytest.raises(ValueError, match=r'the "version".* is True'):
            files.any_model_of(document.replace(str([[0] * 2000]), "true").encode())


def test_long_names_that_other_files_lack(tmp_path):
    (tmp_path / "0.csv").write_text(f"{'a' * 5000},b\n1,2\n")
    (tmp_path / "1.csv").write_text("c,b\n1,2\n")
    with pytest.raises(ValueError, match="lacks column 'aaa") as refusal:
        leafwise.read(tmp_path)
    assert len(str(refusal.value)) < 500


def test_gibbs_sampling_may_find_no_case_to_begin_with():
    """Possible, with a probability of 1e-10: it says so, and asks for less evidence."""
    assert one("questions", 61117, 38011) == "accepted"


def test_more_networks_to_keep_than_there_can_be_files(capsys):
    assert run(["learn", "--example", "alarm", "--search", "restarts", "--keep", "2147483647", "-o", "out.json"]) == 2
    assert "1<=x<=10000" in capsys.readouterr().err  # it made two thousand million names


@pytest.mark.parametrize("form", [libra, xdsl, xmlbif])
def test_long_names_that_a_format_cannot_hold(form):
    frame = pandas.DataFrame({"a \x01 " * 1500: ["x", "y"], "b": ["x", "y"]})
    with pytest.raises(ValueError, match=r"save it as|save the network as") as refusal:
        form.dumps(leafwise.learn(frame, target="b"))
    assert len(str(refusal.value)) < 500
