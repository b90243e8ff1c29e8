"""leafwise learn: what it prints, what it saves, what it refuses."""

import json
import random
from pathlib import Path

import pytest

PROMISED = {
    "cases",
    "variables",
    "log_score",
    "log_marginal_likelihood",
    "tests",
    "leaves",
    "parameters",
    "arcs",
    "splits",
    "merges",
    "steps",
    "seconds",
}


def test_prints_a_summary_and_saves(leafwise, data, tmp_path):
    output = tmp_path / "model.json"
    result = leafwise("learn", data, "-o", output)
    assert result.code == 0
    said = result.stderr.splitlines()
    assert said[0].endswith("garden.csv': 400 rows, 4 columns; commas, UTF-8")
    assert said[1] == "states  cloudy (2), rain (2), sprinkler (2), wet grass (2)"
    assert "log score" in result.stdout
    assert str(output) in result.stdout
    assert json.loads(output.read_text())["format"] == "leafwise-network"


def test_json_is_one_object_with_all_that_is_promised(leafwise, data, tmp_path):
    output = tmp_path / "model.json"
    result = leafwise("learn", data, "-o", output, "--json")
    assert (result.code, result.stderr) == (0, "")
    assert result.object.keys() >= PROMISED
    assert (result.object["cases"], result.object["variables"]) == (400, 4)
    assert result.object["steps"] == result.object["splits"] + result.object["merges"] > 0
    assert result.object["output"] == str(output)
    assert output.exists()


def test_json_needs_no_place_to_save(leafwise, data, tmp_path):
    assert leafwise("learn", data, "--json").object["output"] is None
    assert list(tmp_path.iterdir()) == [data]


def test_quiet_says_nothing(leafwise, data, tmp_path):
    result = leafwise("learn", data, "-o", tmp_path / "model.json", "--quiet")
    assert (result.code, result.stdout, result.stderr) == (0, "", "")


def test_verbose_has_a_line_a_step(leafwise, data):
    result = leafwise("learn", data, "--json", "--verbose")
    assert len(result.stderr.splitlines()) == result.object["steps"]


def test_target_learns_one_node(leafwise, data, tmp_path):
    output = tmp_path / "model.json"
    result = leafwise("learn", data, "-o", output, "--target", "wet grass", "--json")
    saved = json.loads(output.read_text())
    assert [node["variable"] for node in saved["nodes"]] == ["wet grass"]
    score = leafwise("score", output, data, "--json").object
    assert score["log_score"] == pytest.approx(result.object["log_score"], abs=1e-6)


def test_the_network_says_which_priors_auto_were(leafwise, data, tmp_path):
    output = tmp_path / "model.json"
    by_default, by_name = (
        leafwise("learn", data, "-o", output, "--json", *given).object["log_score"]
        for given in ([], ["--structure-prior", "choices", "--prior", "symmetric:2"])
    )
    saved = json.loads(output.read_text())
    assert (saved["prior"], saved["structure_prior"]) == ("symmetric:2", "choices")
    assert by_default == by_name
    scored = [leafwise("score", output, data, "--json", *given).object for given in ([], ["--structure-prior", "auto"])]
    assert scored[0] == scored[1]


def test_two_leaves_tell_the_garden(leafwise, data):
    found = leafwise("learn", data, "--target", "wet grass", "--json").object
    assert (found["leaves"], found["merges"]) == (2, 1)


def test_example_needs_no_file(leafwise, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = leafwise("learn", "--example", "alarm", "--json")
    assert (result.object["cases"], result.object["variables"]) == (1000, 37)
    assert (tmp_path / "alarm-model.json").exists()


def test_example_cases_depend_on_the_seed(leafwise, tmp_path):
    def learned(seed):
        return leafwise("learn", "--example", "alarm", "--seed", seed, "-o", tmp_path / "m.json", "--json").object[
            "log_score"
        ]

    assert learned(1) == learned(1) != learned(2)


def test_start_goes_on_from_a_network(leafwise, data, tmp_path):
    part, whole = tmp_path / "part.json", tmp_path / "whole.json"
    leafwise("learn", data, "-o", part, "--operators", "B", "--steps", 1)
    rest = leafwise("learn", data, "-o", whole, "--operators", "B", "--start", part, "--json").object
    straight = leafwise("learn", data, "--operators", "B", "--json").object
    assert rest["log_score"] == pytest.approx(straight["log_score"])
    assert rest["steps"] == straight["steps"] - 1


def test_steps_limits_the_search(leafwise, data):
    assert leafwise("learn", data, "--steps", 2, "--json").object["steps"] == 2


def test_no_header_takes_the_first_row_as_a_case(leafwise, data, tmp_path):
    headless = tmp_path / "headless.csv"
    headless.write_text(data.read_text().split("\n", 1)[1])
    assert leafwise("learn", headless, "--no-header", "--json").object["cases"] == 400


@pytest.mark.parametrize("bins", ["3", "height=3", "height=3,weight=2"])
def test_bins(leafwise, tmp_path, bins):
    data = tmp_path / "people.csv"
    data.write_text("height,weight\n" + "\n".join(f"{150 + i % 37}.5,{50 + i % 41}" for i in range(200)))
    output = tmp_path / "model.json"
    assert leafwise("learn", data, "-o", output, "--bins", bins, "--binning", "uniform", "--quiet").code == 0
    height = json.loads(output.read_text())["variables"][0]
    assert len(height["labels"]) == 3
    assert len(height["cuts"]) == 2


@pytest.mark.parametrize(("choice", "cases"), [("state", 401), ("drop", 400)])
def test_missing(leafwise, data, choice, cases):
    data.write_text(data.read_text() + "yes,,no,no\n")
    complaint = leafwise("learn", data, "--json").complaint
    assert "rain" in complaint
    assert "--missing drop" in complaint
    assert leafwise("learn", data, "--missing", choice, "--json").object["cases"] == cases


def arcs_of(model: Path) -> set[tuple[str, str]]:
    return {(parent, node["variable"]) for node in json.loads(model.read_text())["nodes"] for parent in node["parents"]}


def test_dag_allows_only_its_arcs(leafwise, data, tmp_path):
    dag, output, again = tmp_path / "dag.txt", tmp_path / "model.json", tmp_path / "again.json"
    dag.write_text("# the garden\nrain, wet grass\nsprinkler -> wet grass\ncloudy rain\n")
    assert leafwise("learn", data, "-o", output, "--dag", dag, "-q").code == 0
    assert arcs_of(output) <= {("rain", "wet grass"), ("sprinkler", "wet grass"), ("cloudy", "rain")}
    assert leafwise("learn", data, "-o", again, "--dag", output, "-q").code == 0
    assert arcs_of(again) == arcs_of(output)


def test_order_tiers_forbid_and_require(leafwise, data, tmp_path):
    output, file = tmp_path / "model.json", tmp_path / "file.txt"
    file.write_text("wet grass\nrain\nsprinkler\ncloudy\n")
    place = {name: i for i, name in enumerate(["wet grass", "rain", "sprinkler", "cloudy"])}
    assert leafwise("learn", data, "-o", output, "--order", file, "-q").code == 0
    assert all(place[parent] < place[child] for parent, child in arcs_of(output))
    file.write_text("cloudy\nrain, sprinkler\nwet grass\n")
    tier = {"cloudy": 0, "rain": 1, "sprinkler": 1, "wet grass": 2}
    assert leafwise("learn", data, "-o", output, "--tiers", file, "-q").code == 0
    assert all(tier[parent] <= tier[child] for parent, child in arcs_of(output))
    file.write_text("cloudy rain\n")
    assert leafwise("learn", data, "-o", output, "--require", file, "-q").code == 0
    assert ("cloudy", "rain") in arcs_of(output)
    assert leafwise("learn", data, "-o", output, "--forbid", file, "-q").code == 0
    assert ("cloudy", "rain") not in arcs_of(output)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--target", "wet gras"], "wet grass"),
        (["--prior", "bdeu"], "prior"),
        (["--prior", "jeffreys"], "jeffreys"),
        (["--structure-prior", "kappa:-1"], "kappa"),
        (["--operators", "XYZ"], "operators"),
        (["--operators", ""], "operators"),
        (["--schedule", "random"], "--schedule"),
        (["--bins", "many"], "--bins"),
        (["--bins", "1"], "--bins"),
        (["--bins", "rain=2,5"], "--bins"),
        (["--bins", "snow=2"], "snow"),
        (["--missing", "guess"], "--missing"),
        (["--steps", "-1"], "--steps"),
        (["--threads", "0"], "--threads"),
        (["--seconds", "soon"], "--seconds"),
        (["--max-leaves", "0"], "--max-leaves"),
        (["--dag", "nowhere.txt"], "nowhere.txt"),
        (["--start", "nowhere.json"], "nowhere.json"),
        (["--colour"], "--colour"),
    ],
)
def test_bad_options_are_one_line(leafwise, data, tmp_path, arguments, word):
    output = tmp_path / "model.json"
    assert word in leafwise("learn", data, "-o", output, *arguments).complaint
    assert not output.exists()


def test_what_to_learn_from_and_where_to_save_must_be_clear(leafwise, data):
    assert "--example" in leafwise("learn").complaint
    assert "one of them" in leafwise("learn", data, "--example", "alarm").complaint
    assert "alarm" in leafwise("learn", "--example", "alarms").complaint
    assert "-o" in leafwise("learn", data).complaint


def test_outputs_that_cannot_be_written_are_refused_before_learning(leafwise, data, tmp_path):
    assert "does not exist" in leafwise("learn", data, "-o", tmp_path / "no" / "model.json").complaint
    assert "folder" in leafwise("learn", data, "-o", tmp_path).complaint
    if Path("/proc/self").is_dir():
        assert "permission" in leafwise("learn", data, "-o", "/proc/self/model.json").complaint
    before = data.read_text()
    assert "also read" in leafwise("learn", data, "-o", data).complaint
    assert data.read_text() == before


@pytest.mark.parametrize(
    ("text", "word"),
    [("", "empty"), ("a,b\n", "a,b.csv"), ("a,b\n1,2\n1\n", "2"), ("a,a\n1,2\n", "a"), ("a,\n1,2\n", "name")],
)
def test_data_that_is_none(leafwise, tmp_path, text, word):
    data = tmp_path / "a,b.csv"
    data.write_text(text)
    assert word in leafwise("learn", data, "-o", tmp_path / "model.json").complaint
    assert list(tmp_path.iterdir()) == [data]


@pytest.mark.parametrize(
    "text", ["a,b\n1,2\n", "a\n1\n2\n1\n", "a,b\n1,x\n2,x\n1,x\n"], ids=["row", "column", "constant"]
)
def test_the_smallest_tables_learn(leafwise, tmp_path, text):
    data, output = tmp_path / "small.csv", tmp_path / "model.json"
    data.write_text(text)
    assert leafwise("learn", data, "-o", output, "--json").object["arcs"] == 0
    assert leafwise("score", output, data).code == 0
    assert leafwise("evaluate", output, data).code == 0
    assert leafwise("show", output).code == 0


def test_missing_and_unreadable_files(leafwise, tmp_path):
    assert "nowhere.csv" in leafwise("learn", "nowhere.csv", "-o", tmp_path / "model.json").complaint
    latin = tmp_path / "latin.csv"
    latin.write_bytes(b"a,b\n\x81,\x82\n")
    complaint = leafwise("learn", latin, "-o", tmp_path / "model.json").complaint
    assert "latin.csv" in complaint
    assert "--encoding latin-1" in complaint
    assert leafwise("learn", latin, "-o", tmp_path / "model.json", "--encoding", "latin-1", "-q").code == 0


def test_kept_networks_never_take_the_place_of_an_input(leafwise, data, model, tmp_path):
    start = tmp_path / "kept-2.json"
    start.write_bytes(model.read_bytes())
    arguments = ("--search", "restarts", "--rounds", 1, "--keep", 3, "--start", start, "-o", tmp_path / "kept.json")
    assert "it is also read from" in leafwise("learn", data, *arguments).complaint
    assert start.read_bytes() == model.read_bytes()


def test_tables_and_another_search_are_refused(leafwise, data, tmp_path):
    output = tmp_path / "model.json"
    assert "leave one of them out" in leafwise("learn", data, "--tables", "--search", "edges", "-o", output).complaint
    assert leafwise("learn", data, "--tables", "--search", "tables", "-o", output).code == 0
    assert leafwise("learn", data, "--max-leaves", 10**20, "-o", output).complaint


def test_a_column_of_weights(leafwise, tmp_path):
    data, model, again = tmp_path / "data.csv", tmp_path / "model.json", tmp_path / "again.json"
    data.write_text("rain,wet,n\n" + "yes,yes,3\nno,no,5\nyes,no,1\nno,yes,0\n" * 10)
    result = leafwise("learn", data, "--weights", "n", "-o", model, "--json")
    assert (result.code, result.object["cases"], result.object["variables"]) == (0, 90, 2)
    data.write_text("rain,wet\n" + "yes,yes\n" * 30 + "no,no\n" * 50 + "yes,no\n" * 10)
    assert leafwise("learn", data, "-o", again).code == 0
    assert model.read_text() == again.read_text()


@pytest.mark.parametrize(
    ("cell", "complaint"),
    [
        ("-1", "case 1 has the weight -1, and weights are numbers from 0 on: correct it"),
        ("many", "column 'n' holds 'many', which is no weight"),
        ("", "row 1 has no weight in column 'n'"),
        ("0", "all weights are zero"),
    ],
)
def test_what_is_no_weight_is_refused(leafwise, tmp_path, cell, complaint):
    data = tmp_path / "data.csv"
    data.write_text(f"rain,n\nyes,{cell}\nno,{0 if cell == '0' else 1}\n")
    assert complaint in leafwise("learn", data, "--weights", "n", "-o", tmp_path / "m.json").complaint
    assert "weights names 'm'" in leafwise("learn", data, "--weights", "m", "-o", tmp_path / "m.json").complaint
    assert leafwise("learn", "--example", "alarm", "--weights", "n").code == 2
    assert not (tmp_path / "m.json").exists()


@pytest.mark.parametrize("search", ["greedy", "tables", "edges", "restarts", "recover"])
def test_tests_are_counted_by_every_search(leafwise, data, tmp_path, search):
    found = leafwise("learn", data, "--search", search, "-o", tmp_path / "m.json", "--json").object
    assert found["tests"] == leafwise("show", tmp_path / "m.json", "--json").object["tests"] > 0
    assert f"{found['tests']} tests" in leafwise("show", tmp_path / "m.json").stdout.splitlines()[0]


def test_leaves_that_are_shared_and_variables_that_are_tied(leafwise, tmp_path):
    draw = random.Random(1)
    lines = ["x1,y1,x2,y2"]
    for _ in range(300):
        x1, x2 = draw.random() < 0.5, draw.random() < 0.5
        lines.append(",".join(str(int(v)) for v in (x1, x1 ^ (draw.random() < 0.1), x2, x2 ^ (draw.random() < 0.1))))
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    model = tmp_path / "model.json"
    found = leafwise("learn", tmp_path / "data.csv", "-o", model, "--operators", "CBMRT", "--json").object
    assert found["relabelled_merges"] + found["ties"] > 0
    said = leafwise("learn", tmp_path / "data.csv", "-o", model, "--operators", "CBMRT", "--verbose")
    assert "RelabelledMerge" in said.stderr
    assert "relabelled merges" in said.stdout
    (tmp_path / "tied.txt").write_text("x1 -> y1; x2 -> y2\n")
    found = leafwise("learn", tmp_path / "data.csv", "-o", model, "--tied", tmp_path / "tied.txt", "--json").object
    assert found["tied"] == [["y1", "y2"]]
    (tmp_path / "tied.txt").write_text("x1 -> y1; x2, y2\n")
    for others in (("--leaves", "average"), ("--networks", 2)):
        said = leafwise("learn", tmp_path / "data.csv", "-o", model, "--tied", tmp_path / "tied.txt", *others).complaint
        assert "takes no --tied: leave one of them out" in said
    said = leafwise("learn", tmp_path / "data.csv", "-o", model, "--tied", tmp_path / "tied.txt").complaint
    assert "is not a variable with its parents" in said
