"""leafwise query, mpe, sample --given and evaluate with missing cells."""

import re

import pytest

from leafwise.inference.explanation import explain
from leafwise.inference.independence import dependence_path, markov_blanket
from leafwise.inference.query import query
from leafwise.network import Network


def test_query_answers_as_the_library_does(leafwise, model):
    found = leafwise("query", model, "--target", "rain", "--given", "wet grass=yes,sprinkler=no", "--json").object
    expected = query(Network.load(model), "rain", given={"wet grass": "yes", "sprinkler": "no"})
    assert found["method"] == "exact"
    assert found["log_evidence"] == pytest.approx(expected.log_evidence)
    assert found["probabilities"] == {"rain": pytest.approx(expected["rain"])}
    assert "standard_errors" not in found


def test_query_asks_for_all_that_is_not_given(leafwise, model):
    found = leafwise("query", model, "--given", "rain=yes", "--json").object
    assert set(found["probabilities"]) == {"cloudy", "sprinkler", "wet grass"}
    lines = leafwise("query", model, "--given", "rain=yes").stdout.splitlines()
    assert lines[0].startswith("method: exact  log evidence: -")
    assert [line.split("  ")[0] for line in lines[1::2]] == ["cloudy", "sprinkler", "wet grass"]


@pytest.mark.parametrize("method", ["weighting", "gibbs"])
def test_query_from_samples_says_how_sure_it_is(leafwise, model, method):
    exact = leafwise("query", model, "--json").object
    arguments = ("query", model, "--method", method, "--samples", 2000)
    found = leafwise(*arguments, "--json").object
    assert found["method"] == method
    assert found["effective_sample_size"] > 100
    for name, errors in found["standard_errors"].items():
        for state, error in errors.items():
            assert error < 0.1
            assert abs(found["probabilities"][name][state] - exact["probabilities"][name][state]) <= 5 * error + 1e-12
    assert max(errors["yes"] for errors in found["standard_errors"].values()) > 0
    assert leafwise(*arguments, "--json").object == found
    assert leafwise(*arguments, "--seed", 2, "--json").object != found
    for name, intervals in found["intervals"].items():
        for state, (low, high) in intervals.items():
            assert low <= exact["probabilities"][name][state] <= high
    assert found["warnings"] == []
    lines = leafwise(*arguments).stdout.splitlines()
    assert lines[0].startswith(f"method: {method}  ")
    assert re.fullmatch(r".* 0\.\d{6}  ± 0\.0\d{5}  0\.\d{6} to 0\.\d{6}", lines[1])


def test_query_warns_of_what_it_cannot_know(leafwise, model):
    arguments = ("query", model, "--method", "gibbs", "--samples", 100)
    found = leafwise(*arguments, "--json").object
    assert any("400 are the least for a sure answer" in warning for warning in found["warnings"])
    assert found["bulk_size"] < 400
    assert found["r_hat"] >= 1
    assert leafwise(*arguments).stdout.splitlines()[1] == f"warning: {found['warnings'][0]}"


def test_query_joint(leafwise, model):
    found = leafwise("query", model, "--target", "rain,sprinkler", "--joint", "--json").object
    assert found["targets"] == ["rain", "sprinkler"]
    values = [cell["probability"] for cell in found["joint"]]
    assert sum(values) == pytest.approx(1)
    assert values == sorted(values, reverse=True)
    lines = leafwise("query", model, "--target", "rain", "--target", "sprinkler", "--joint").stdout.splitlines()
    assert lines[1].split() == ["rain", "sprinkler", "probability"]
    assert lines[2].split()[:2] == found["joint"][0]["states"]
    sampled = leafwise(
        "query", model, "--target", "rain,sprinkler", "--joint", "--method", "weighting", "--samples", 2000, "--json"
    ).object
    for cell in sampled["joint"]:
        exact = next(other["probability"] for other in found["joint"] if other["states"] == cell["states"])
        assert cell["interval"][0] <= cell["probability"] <= cell["interval"][1]
        assert 0 < abs(cell["probability"] - exact) < 5 * cell["standard_error"]


def test_sets_and_weights(leafwise, model):
    free = leafwise("query", model, "--target", "rain", "--json").object["probabilities"]["rain"]
    either = leafwise("query", model, "--target", "rain", "--given", "cloudy=yes|no", "--json").object
    assert either["probabilities"]["rain"] == pytest.approx(free)
    soft = leafwise("query", model, "--target", "rain", "--given", "cloudy=yes:3|no:0", "--json").object
    sure = leafwise("query", model, "--target", "rain", "--given", "cloudy=yes", "--json").object
    assert soft["probabilities"]["rain"] == pytest.approx(sure["probabilities"]["rain"])


def test_limits_are_obeyed(leafwise, model):
    complaint = leafwise("query", model, "--method", "exact", "--operations", 1).complaint
    assert "an exact answer takes about" in complaint
    assert leafwise("query", model, "--operations", 1, "--json").object["method"] == "weighting"
    assert "raise --memory" in leafwise("mpe", model, "--memory", 1e-9, "--method", "exact").complaint
    found = leafwise("mpe", model, "--memory", 1e-9, "--json").object
    assert (found["method"], "not known to be the best" in found["notes"][0]) == ("search", True)
    drawn = leafwise("sample", model, "--given", "rain=yes", "--operations", 1, "-n", 5)
    assert (drawn.code, len(drawn.stdout.splitlines())) == (0, 6)
    assert "note: the cases are chosen by weight" in drawn.stderr
    assert "raise --operations" in drawn.stderr


def test_mpe(leafwise, model):
    best = explain(Network.load(model), given={"wet grass": "yes"})
    found = leafwise("mpe", model, "--given", "wet grass=yes", "--json").object
    assert found["states"] == best.states
    assert found["log_posterior"] == pytest.approx(best.log_posterior)
    lines = leafwise("mpe", model, "--given", "wet grass=yes").stdout.splitlines()
    assert lines[0].startswith("log probability: ")
    assert dict(line.rsplit(None, 1) for line in lines[1:]) == best.states


def test_sample_given(leafwise, model):
    lines = leafwise("sample", model, "-n", 50, "--given", "rain=yes,sprinkler=no").stdout.splitlines()
    assert lines[0] == "cloudy,rain,sprinkler,wet grass"
    assert {tuple(line.split(",")[1:3]) for line in lines[1:]} == {("yes", "no")}
    assert len(lines) == 51


def test_evaluate_sums_over_missing_cells(leafwise, model, tmp_path):
    cases = tmp_path / "cases.csv"
    cases.write_text("cloudy,rain,sprinkler,wet grass\nyes,,no,yes\n")
    found = leafwise("evaluate", model, cases, "--json").object
    assert leafwise("evaluate", model, cases, "--missing", "unknown", "--json").object == found
    whole = tmp_path / "whole.csv"
    whole.write_text("cloudy,rain,sprinkler,wet grass\nyes,yes,no,yes\nyes,no,no,yes\n")
    expected = query(Network.load(model), [], given={"cloudy": "yes", "sprinkler": "no", "wet grass": "yes"})
    assert found["log_likelihood"] == pytest.approx(expected.log_evidence)
    assert "--missing unknown" in leafwise("evaluate", model, cases, "--missing", "error").complaint
    assert "--missing drop" in leafwise("evaluate", model, cases, "--missing", "error").complaint


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--target", "snow"), "no variable is called 'snow'"),
        (("--given", "snow=yes"), "no variable is called 'snow'"),
        (("--given", "rain=maybe"), "'rain' has no state 'maybe'"),
        (("--given", "rain"), "is not NAME=STATE"),
        (("--given", "rain=yes,rain=no"), "names 'rain' twice"),
        (("--given", "rain=yes:much"), "the weight 'much'"),
        (("--given", "rain=yes:-1"), "got the weight -1.0"),
        (("--given", "rain=yes:0|no:0"), "leaves no state"),
        (("--target", "rain,rain"), "named twice"),
        (("--method", "guess"), "'guess' is not one of"),
        (("--given", "a\nb=4"), "--given cannot be read"),
        (("--memory", "nan"), "the limits are nan bytes"),
        (("--samples", 10**20), "is not in the range"),
    ],
)
def test_bad_questions(leafwise, model, arguments, what):
    assert what in leafwise("query", model, *arguments).complaint


def test_names_with_signs(leafwise, tmp_path):
    cases = tmp_path / "odd.csv"
    cases.write_text('"a=b,c",d\n"x|y",1:2\n"x|y",3\nz,3\n')
    model = tmp_path / "odd.json"
    assert leafwise("learn", cases, "-o", model).code == 0
    found = leafwise("query", model, "--given", '"a=b,c=x|y"', "--target", "d", "--json").object
    expected = query(Network.load(model), "d", given={"a=b,c": "x|y"})
    assert found["probabilities"]["d"] == pytest.approx(expected["d"])
    found = leafwise("query", model, "--given", "d=1:2", "--target", "a=b,c", "--json").object
    assert set(found["probabilities"]["a=b,c"]) == {"x|y", "z"}


def test_names_in_quotes_and_weights_of_odd_labels(leafwise, tmp_path):
    cases = tmp_path / "odd.csv"
    cases.write_text('"a,b",d\n"x|y",1\n"x|y",3\nz,3\n')
    model = tmp_path / "odd.json"
    assert leafwise("learn", cases, "-o", model).code == 0
    found = leafwise("query", model, "--target", '"a,b",d', "--json").object
    assert set(found["probabilities"]) == {"a,b", "d"}
    soft = leafwise("query", model, "--target", "d", "--given", '"a,b=x|y:0.5"', "--json").object
    sure = leafwise("query", model, "--target", "d", "--given", '"a,b=x|y"', "--json").object
    assert soft["probabilities"] == sure["probabilities"]


def test_anytime_and_messages(leafwise, model):
    given = ("query", model, "--target", "rain", "--given", "wet grass=yes")
    exact = leafwise(*given, "--seconds", 5, "--json").object
    assert exact["method"] == "exact"
    found = leafwise(*given, "--operations", 1, "--error", 0.02, "--json").object
    assert found["method"] == "importance"
    assert max(found["standard_errors"]["rain"].values()) <= 0.02
    assert "raise Limits(operations=...)" in found["notes"][0]
    lines = leafwise(*given, "--method", "loopy").stdout.splitlines()
    assert lines[0] == "method: loopy"
    assert lines[1].endswith("no error is known")
    assert "does not stop by seconds" in leafwise(*given, "--method", "gibbs", "--error", 0.1).complaint


def test_what_is_set(leafwise, model):
    seen = leafwise("query", model, "--target", "rain", "--given", "cloudy=yes", "--json").object
    done = leafwise("query", model, "--target", "rain", "--do", "cloudy=yes", "--json").object
    expected = query(Network.load(model).do({"cloudy": "yes"}), "rain")
    assert done["probabilities"]["rain"] == pytest.approx(expected["rain"])
    assert done["probabilities"]["rain"] != pytest.approx(seen["probabilities"]["rain"], abs=0.01)
    assert "reads arcs as causes" in done["notes"][0]
    assert "could as well point the other way" in " ".join(done["notes"])
    assert "reads arcs as causes" in leafwise("mpe", model, "--do", "rain=yes").stdout
    assert "reads arcs as causes" in leafwise("sample", model, "--do", "rain=yes", "-n", 2).stderr
    assert "--do got 'rain'" in leafwise("query", model, "--do", "rain").complaint
    assert "--do got the weight 'much'" in leafwise("query", model, "--do", "rain=yes:much").complaint


def test_the_most_probable_states_of_some(leafwise, model):
    best = explain(Network.load(model), ["rain", "sprinkler"], given={"wet grass": "yes"})
    found = leafwise("mpe", model, "--target", "rain,sprinkler", "--given", "wet grass=yes", "--json").object
    assert found["states"] == best.states
    assert found["log_posterior"] == pytest.approx(best.log_posterior)


def test_independence(leafwise, model):
    network = Network.load(model)
    found = leafwise("independence", model, "rain", "--json").object
    assert found["markov_blanket"] == list(markov_blanket(network, "rain"))
    assert leafwise("independence", model, "rain").stdout.startswith("Markov blanket: ")
    for given in ("cloudy", "wet grass=yes,cloudy=no"):
        found = leafwise("independence", model, "rain", "sprinkler", "--given", given, "--json").object
        text = leafwise("independence", model, "rain", "sprinkler", "--given", given).stdout
        known = {"cloudy": None} if given == "cloudy" else {"wet grass": "yes", "cloudy": "no"}
        path = dependence_path(network, "rain", "sprinkler", known)
        assert found == {"independent": path is None, "path": path and list(path)}
        assert text.startswith("independent" if path is None else "not independent by the graphs: rain - ")
    assert "give one, or two" in leafwise("independence", model, "rain", "cloudy", "sprinkler").complaint
    assert "asked about and given" in leafwise("independence", model, "rain", "cloudy", "--given", "rain").complaint


@pytest.mark.parametrize("given", ["cloudy=yes,cloudy=no", "cloudy=yes,cloudy", "cloudy,cloudy=yes", "cloudy,cloudy"])
def test_independence_given_a_variable_twice(leafwise, model, given):
    complaint = leafwise("independence", model, "rain", "sprinkler", "--given", given).complaint
    assert "names 'cloudy' twice: name every variable once" in complaint


def test_independence_given_names_with_quotes(leafwise, tmp_path):
    cases = tmp_path / "quotes.csv"
    cases.write_text('"a""b",c\n' + '"x""y",1\nz,2\n' * 20)
    model = tmp_path / "quotes.json"
    assert leafwise("learn", cases, "-o", model).code == 0
    found = leafwise("independence", model, "c", "--given", '"a""b=x""y"', "--json").object
    assert found["markov_blanket"] == []


def test_information(leafwise, model):
    found = leafwise("information", model, "--target", "rain", "--given", "cloudy=yes", "--json").object
    values = [value["information"] for value in found["values"].values()]
    assert set(found["values"]) == {"wet grass", "sprinkler"}
    assert values == sorted(values, reverse=True)
    lines = leafwise("information", model, "--target", "rain", "--candidate", "cloudy").stdout.splitlines()
    assert lines[0].startswith("entropy of rain: ")
    assert len(lines) == 3


def test_importance(leafwise, model, tmp_path):
    found = leafwise("importance", model, "--target", "cloudy", "--json").object["importance"]
    assert set(found) == {"rain", "sprinkler", "wet grass"}
    assert all(value["beyond"] >= 0 and value["alone"] >= 0 for value in found.values())
    leafwise("sample", model, "-n", 500, "-o", tmp_path / "cases.csv")
    lines = leafwise("importance", model, tmp_path / "cases.csv", "--target", "cloudy").stdout.splitlines()
    assert len(lines) == 4
