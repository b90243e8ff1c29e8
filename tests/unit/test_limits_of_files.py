"""Small files that would become large: refused by size, before anything large is made, and allowed on demand."""

import gzip
import json

import numpy as np
import pytest

from leafwise.examples import alarm
from leafwise.formats import bif, libra, uai, xmod
from leafwise.formats import json as own
from leafwise.formats.files import load, save

REFUSED = r"the file becomes more than 100,000, the limit for its [\d,]+ bytes: convert it with larger most_cells"


def json_of_many_tests(n_states, n_tests):
    """A variable with many states that is tested again and again; arcs without states are short."""
    tests = [{"test": "x", "arcs": [{"states": ["0"], "to": k + 1}, {"to": n_tests}]} for k in range(n_tests)]
    tests[-1]["arcs"] = [{"to": n_tests}]
    graph = [*tests, {"leaf": 0, "probabilities": [1.0]}]
    variables = [{"name": "x", "labels": list(map(str, range(n_states)))}, {"name": "y", "labels": ["a"]}]
    document = {"format": "leafwise-network", "version": 1, "variables": variables}
    return json.dumps({**document, "nodes": [{"variable": "y", "parents": ["x"], "graph": graph}]})


def xmod_of_many_tests(n_states, n_tests):
    """The same: where one state is left, a test of it is short."""
    states = "".join(f'<State index="{k}" name="{k}"/>' for k in range(n_states))
    leaf = tree = "<Leaf><Multinomial><Probs>1</Probs></Multinomial></Leaf>"
    for _ in range(n_tests):
        tree = f'<Vertex split="x"><Branch><Values>0</Values>{tree}</Branch></Vertex>'
    rest = f"<Branch><Values>{' '.join(map(str, range(1, n_states)))}</Values>{leaf}</Branch>"
    tree = f'<Vertex split="x"><Branch><Values>0</Values>{tree}</Branch>{rest}</Vertex>'
    return (
        f'<AnalysisNotebook><Variables><Variable name="x">{states}</Variable><Variable name="y">'
        f'<State index="0" name="a"/></Variable></Variables><Model><LocalModels><LocalModel variable="y">'
        f"<DecisionTree>{tree}</DecisionTree></LocalModel></LocalModels></Model></AnalysisNotebook>"
    )


def bif_of_defaults(n_tables):
    """Each table has 2 ** 15 numbers and is written in a line."""
    names = [f"x{k}" for k in range(14 + n_tables)]
    lines = ["network x { }", *(f"variable {name} {{ type discrete [2] {{ a, b }}; }}" for name in names)]
    lines += [f"probability ( {name} ) {{ table 0.5, 0.5; }}" for name in names[:14]]
    parents = ", ".join(names[:14])
    lines += [f"probability ( {name} | {parents} ) {{ default 0.5, 0.5; }}" for name in names[14:]]
    return "\n".join(lines)


def libra_of_features(n_tables):
    """The same: each of eleven weights depends on one of ten variables, or on the one it is of."""
    n = 10 + n_tables
    lines = [",".join(["2"] * n), "BN {", *(f"v{k} {{ 0.5 +v{k}_0 }}" for k in range(10))]
    weights = " ".join(f"0.1 +v{k}_0" for k in range(10))
    lines += [f"v{k} {{ {weights} 0.3 +v{k}_1 }}" for k in range(10, n)]
    return "\n".join([*lines, "}"])


@pytest.mark.parametrize(
    ("module", "text", "few"),
    [
        (own, json_of_many_tests(1000, 150), json_of_many_tests(1000, 80)),
        (xmod, xmod_of_many_tests(1000, 150), xmod_of_many_tests(1000, 80)),
        (bif, bif_of_defaults(4), bif_of_defaults(2)),
        (libra, libra_of_features(10), libra_of_features(5)),
        (libra, ",".join(["65000"] * 100), None),
        (uai, "BAYES 100 " + "65000 " * 100, None),
    ],
)
def test_small_files_do_not_become_large(module, text, few, monkeypatch):
    monkeypatch.setattr("leafwise.formats.tables.MOST_CELLS", 100_000)
    with pytest.raises(ValueError, match=REFUSED):
        module.loads(text.encode())
    if few is not None:
        module.loads(few.encode())
        module.loads(text.encode(), most_cells=1_000_000)


def test_one_variable_of_libra_with_a_long_chain_of_its_own_states():
    """The chain is walked once, not once for each state."""
    n = 60_000
    text = f"{n}\nBN {{ v0 {{ tree {{ {''.join(f'(v0_{k} 0.1 ' for k in range(n - 1))}0.2{')' * (n - 1)} }} }} }}"
    row = libra.loads(text).nodes[0].probabilities[0]
    assert row[-1] / row[0] == pytest.approx(np.exp(0.1))
    assert row[:-1].tolist() == [row[0]] * (n - 1)


def test_a_packed_file_that_unpacks_to_much_more(tmp_path, monkeypatch):
    path = tmp_path / "x.bif.gz"
    monkeypatch.setattr("leafwise.formats.whole_files._SPARE_BYTES", 1 << 20)
    path.write_bytes(gzip.compress(b" " * (4 << 20)))
    with pytest.raises(ValueError, match=r"unpacks to more than [\d,]+ bytes, .* or raise most_bytes"):
        load(path)
    with pytest.raises(ValueError, match="the end of the file came"):
        load(path, most_bytes=5 << 20)
    save(alarm(), tmp_path / "alarm.uai.gz")
    assert load(tmp_path / "alarm.uai.gz").n_parameters == 509


@pytest.mark.parametrize(
    ("leaf", "learned", "expected"),
    [
        ('"probabilities": [0.5, 1' + "0" * 400 + "]", "{}", "too large for a number"),
        ('"probabilities": [0.5, 1e999]', "{}", "not a finite number"),
        ('"counts": [1, 2], "exponents": [1e308, 1e308]', "{}", "do not sum to one"),
        ('"counts": [1, 2], "exponents": 1' + "0" * 400, "{}", "too large for a number"),
        ('"counts": [1, 1' + "0" * 30 + "]", "{}", "give numbers from 0 on"),
        ('"counts": [1, 2]', '{"deep": ' + "[" * 600 + "]" * 600 + "}", "nested too deeply"),
        ('"counts": [1, 2]', '{"deep": ' + "[" * 100_000 + "]" * 100_000 + "}", "not JSON"),
        ('"counts": [1, 2]', '{"text": "\\ud800"}', "not JSON .*surrogates"),
        ('"counts": 1, "x": ' + "[" * 900 + "]" * 900, "{}", "must be a list|nested too deeply|not JSON"),
    ],
)
def test_numbers_and_lists_of_json(leaf, learned, expected):
    text = (
        f'{{"format": "leafwise-network", "version": 1, "learned": {learned}, "variables": '
        f'[{{"name": "x", "labels": ["a", "b"]}}], "nodes": [{{"variable": "x", "parents": [], "graph": '
        f'[{{"leaf": 0, {leaf}}}]}}]}}'
    )
    with pytest.raises(ValueError, match=expected):
        own.loads(text)
