"""leafwise score, evaluate, sample and show."""

import json
import math

import pytest


def test_score_is_the_score_of_learning(leafwise, data, tmp_path):
    output = tmp_path / "model.json"
    learned = leafwise("learn", data, "-o", output, "--json").object
    scored = leafwise("score", output, data, "--json").object
    assert scored["cases"] == 400
    assert scored["log_score"] == pytest.approx(learned["log_score"], abs=1e-6)
    assert scored["log_marginal_likelihood"] == pytest.approx(learned["log_marginal_likelihood"], abs=1e-6)
    assert set(scored["nodes"]) == {"cloudy", "rain", "sprinkler", "wet grass"}
    parts = [node["log_score"] for node in scored["nodes"].values()]
    assert sum(parts) == pytest.approx(scored["log_score"])


def test_score_under_other_priors(leafwise, model, data):
    learned = leafwise("score", model, data, "--json").object
    other = leafwise("score", model, data, "--prior", "bdeu:10", "--structure-prior", "uniform", "--json").object
    assert other["log_prior"] == 0 > learned["log_prior"]
    assert other["log_marginal_likelihood"] != learned["log_marginal_likelihood"]
    assert "bdeu" in leafwise("score", model, data, "--prior", "bdeu:zero").complaint


def test_score_is_a_table_for_people(leafwise, model, data):
    lines = leafwise("score", model, data).stdout.splitlines()
    assert lines[0].split()[0] == "node"
    assert [line.split("  ")[0] for line in lines[1:]] == ["cloudy", "rain", "sprinkler", "wet grass", "total"]


def test_evaluate(leafwise, model, data):
    found = leafwise("evaluate", model, data, "--json").object
    assert found["cases"] == 400
    assert found["mean_log_likelihood"] == pytest.approx(found["log_likelihood"] / 400)
    assert -4 * math.log(2) < found["mean_log_likelihood"] < 0
    assert 0 < found["standard_error"] < 0.2
    assert "standard error" in leafwise("evaluate", model, data).stdout


def test_evaluate_one_case_has_no_standard_error(leafwise, model, data, tmp_path):
    one = tmp_path / "one.csv"
    one.write_text("\n".join(data.read_text().splitlines()[:2]))
    assert leafwise("evaluate", model, one, "--json").object["standard_error"] is None
    assert "standard error" not in leafwise("evaluate", model, one).stdout


def test_evaluate_impossible_cases(leafwise, tmp_path):
    network, data = tmp_path / "sure.json", tmp_path / "data.csv"
    node = {"variable": "a", "parents": [], "graph": [{"leaf": 0, "probabilities": [1.0, 0.0]}]}
    document = {"format": "leafwise-network", "version": 1, "prior": None, "structure_prior": None, "learned": {}}
    network.write_text(json.dumps(document | {"variables": [{"name": "a", "labels": ["x", "y"]}], "nodes": [node]}))
    data.write_text("a\nx\ny\n")
    found = leafwise("evaluate", network, data, "--json").object
    assert (found["mean_log_likelihood"], found["standard_error"], found["impossible_cases"]) == (None, None, 1)
    assert "impossible cases" in leafwise("evaluate", network, data).stdout


def test_the_model_decides_about_missing_cells(leafwise, data, tmp_path):
    data.write_text(data.read_text() + "yes,,no,no\n")
    output = tmp_path / "model.json"
    assert leafwise("learn", data, "-o", output, "--missing", "state", "-q").code == 0
    assert leafwise("evaluate", output, data, "--json").object["cases"] == 401
    data.write_text(data.read_text() + ",no,no,no\n")  # of this column it has seen no missing cell: it sums
    assert leafwise("evaluate", output, data, "--json").object["cases"] == 402
    assert "cloudy" in leafwise("evaluate", output, data, "--missing", "error").complaint
    assert leafwise("evaluate", output, data, "--missing", "drop", "--json").object["cases"] == 401


def test_score_advises_what_it_takes_where_cells_are_missing(leafwise, model, data):
    names, *rows = data.read_text().splitlines()
    data.write_text("\n".join([names, *rows, "yes,,no,no"]) + "\n")
    complaint = leafwise("score", model, data).complaint
    assert "--missing drop" in complaint
    assert "leafwise evaluate" in complaint
    assert "unknown" not in complaint
    assert leafwise("score", model, data, "--missing", "drop", "--json").object["cases"] == len(rows)
    data.write_text(f"{names}\nyes,,no,no\n")
    complaint = leafwise("score", model, data, "--missing", "drop").complaint
    assert "leaves none: ask for log-likelihoods" in complaint
    complaint = leafwise("evaluate", model, data, "--missing", "drop").complaint
    assert "leaves none: pass --missing unknown to sum over them" in complaint


@pytest.mark.parametrize("command", ["score", "evaluate"])
def test_data_that_does_not_fit_the_model(leafwise, model, data, tmp_path, command):
    other = tmp_path / "other.csv"
    other.write_text(data.read_text().replace("cloudy", "sunny"))
    assert "cloudy" in leafwise(command, model, other).complaint
    other.write_text(data.read_text() + "perhaps,no,no,no\n")
    assert "perhaps" in leafwise(command, model, other).complaint
    other.write_text(data.read_text() + ",no,no,no\n")
    assert "cloudy" in leafwise(command, model, other, "--missing", "error").complaint
    assert "nowhere.csv" in leafwise(command, model, "nowhere.csv").complaint
    assert data.name in leafwise(command, data, data).complaint


def test_sample_writes_cases(leafwise, model, tmp_path):
    output = tmp_path / "cases.csv"
    told = leafwise("sample", model, "-n", 25, "--seed", 3, "-o", output, "--json").object
    assert (told["cases"], told["output"]) == (25, str(output))
    lines = output.read_text().splitlines()
    assert lines[0] == "cloudy,rain,sprinkler,wet grass"
    assert len(lines) == 26
    assert leafwise("evaluate", model, output, "--json").object["cases"] == 25
    assert "25 cases" in leafwise("sample", model, "-n", 25, "-o", output).stdout


def test_sample_to_standard_output_is_the_file(leafwise, model, tmp_path):
    output = tmp_path / "cases.csv"
    leafwise("sample", model, "-n", 10, "--seed", 3, "-o", output)
    assert leafwise("sample", model, "-n", 10, "--seed", 3).stdout == output.read_text()


def test_sample_refuses(leafwise, model, tmp_path):
    assert "-o" in leafwise("sample", model, "--json").complaint
    assert "-n" in leafwise("sample", model, "-n", 0).complaint
    assert "does not exist" in leafwise("sample", model, "-o", tmp_path / "no" / "cases.csv").complaint
    assert "also read" in leafwise("sample", model, "-o", model).complaint
    assert "nowhere.json" in leafwise("sample", "nowhere.json").complaint


def test_a_model_of_one_target_cannot_be_sampled(leafwise, data, tmp_path):
    output, cases = tmp_path / "model.json", tmp_path / "cases.csv"
    leafwise("learn", data, "-o", output, "--target", "rain")
    assert "target" in leafwise("sample", output, "-o", cases).complaint
    assert not cases.exists()
    assert leafwise("show", output, "--node", "cloudy", "--json").object["graph"] is None


def test_show(leafwise, model):
    assert "wet grass" in leafwise("show", model).stdout
    text = leafwise("show", model, "--node", "wet grass").stdout
    assert "leaf 0" in text
    assert "%" in text


def test_show_json(leafwise, model):
    network = leafwise("show", model, "--json").object
    assert network["variables"] == 4
    assert network["tests"] == sum(node["tests"] for node in network["nodes"].values()) == network["learned"]["tests"]
    assert network["leaves"] == sum(node["leaves"] for node in network["nodes"].values())
    assert len(network["arcs"]) == sum(len(node["parents"]) for node in network["nodes"].values())
    for name, summary in network["nodes"].items():
        node = leafwise("show", model, "--node", name, "--json").object
        leaves = [entry for entry in node["graph"] if "leaf" in entry]
        assert len(node["graph"]) == summary["tests"] + summary["leaves"]
        assert [entry["leaf"] for entry in leaves] == list(range(summary["leaves"]))
        assert all(sum(entry["probabilities"].values()) == pytest.approx(1) for entry in leaves)
        assert all(sum(entry["counts"].values()) > 0 for entry in leaves)
        assert all(arc["to"] < len(node["graph"]) for entry in node["graph"] for arc in entry.get("arcs", []))


def test_show_refuses(leafwise, model, tmp_path):
    assert "'wet grass'" in leafwise("show", model, "--node", "wetgrass").complaint
    assert "among the 4" in leafwise("show", model, "--node", "zzz").complaint
    broken = tmp_path / "broken.json"
    broken.write_text(model.read_text()[:-20])
    assert "broken.json" in leafwise("show", broken).complaint
    broken.write_text("{}")
    assert "broken.json" in leafwise("show", broken).complaint
    broken.write_bytes(b"\xff\xfe\x00")
    assert "broken.json" in leafwise("show", broken).complaint
