"""Series on the command line: learned, shown, unrolled and asked."""

import random

import pytest

from leafwise import DynamicNetwork, Network, learn


@pytest.fixture
def ask(request):
    """A command line, run as a person would."""
    return request.getfixturevalue("leafwise")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place, draw = tmp_path_factory.mktemp("series"), random.Random(1)
    lines = []
    for patient in "abcdef":
        fever = False
        for day in range(1, 21):
            fever = draw.random() < (0.8 if fever else 0.2)
            cough = draw.random() < (0.9 if fever else 0.1)
            lines.append(f"{patient},2024-03-{day:02},{'yes' if fever else 'no'},{'yes' if cough else 'no'}")
    draw.shuffle(lines)
    (place / "series.csv").write_text("\n".join(["patient,day,fever,cough", *lines]) + "\n")
    (place / "uneven.csv").write_text("\n".join(["patient,day,fever,cough", *lines[1:]]) + "\n")
    return place


@pytest.fixture(scope="module")
def model(folder):
    dynamic = learn(folder / "series.csv", lags=1, by="patient", time="day")
    dynamic.save(folder / "model.json")
    return folder / "model.json"


def test_learn_and_unroll(ask, folder, model):
    options = ("--lags", 1, "--by", "patient", "--time", "day")
    done = ask("learn", folder / "series.csv", *options, "-o", folder / "again.json", "--json")
    assert done.object["cases"] == 6 * 19
    assert DynamicNetwork.load(folder / "again.json") == DynamicNetwork.load(model)
    done = ask("unroll", model, 4, "-o", folder / "four.json", "--json")
    assert (done.object["slices"], done.object["variables"]) == (4, 8)
    assert Network.load(folder / "four.json") == DynamicNetwork.load(model).unroll(4)
    assert ask("unroll", model, 2, "-o", folder / "two.bif").stdout.startswith("2 slices, 4 variables")
    asked = ask("query", folder / "four.json", "--target", "fever[3]", "--given", "fever[0]=yes", "--json").object
    assert asked["method"] == "exact"
    assert '"leafwise-network"' in ask("unroll", model, 2, "-o", "-").stdout
    assert '"leafwise-dynamic-network"' in ask("learn", folder / "series.csv", *options, "-q", "-o", "-").stdout


def test_show(ask, folder, model):
    shown = ask("show", model).stdout
    assert shown.startswith("every slice given the slice before: x[t-1] is x a step before")
    assert "fever[t-1]" in shown
    assert "fever[t-1] = yes" in ask("show", model, "--node", "fever").stdout
    assert ask("show", model, "-o", folder / "model.svg").code == 0


def test_constraints_and_limits(ask, folder):
    (folder / "forbid.txt").write_text("fever[t-1] -> fever\n")
    (folder / "tiers.txt").write_text("cough\nfever\n")
    limits = ("--forbid", folder / "forbid.txt", "--tiers", folder / "tiers.txt", "--max-parents", 2)
    options = ("--lags", 2, "--by", "patient", "--time", "day", *limits)
    done = ask("learn", folder / "series.csv", *options, "-q", "-o", folder / "limited.json")
    assert done.code == 0
    arcs = DynamicNetwork.load(folder / "limited.json").window.named_arcs
    assert not {("fever[t-1]", "fever"), ("fever[t-2]", "fever[t-1]"), ("fever", "cough")} & set(arcs)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--by", "patient"), "a run without --lags takes no --by: give --lags, or leave it out"),
        (("--lags", "1", "--target", "fever"), "--lags takes no --target"),
        (("--lags", "1", "--networks", "3"), "--lags takes no --networks"),
        (("--lags", "1", "--by", "patient", "--missing", "infer"), "--missing infer was given for series"),
        (("--lags", "1", "--time", "day"), "the series has two rows at '2024-03-01'"),
        (("--lags", "30", "--by", "patient", "--time", "day"), "has 20 rows, and --lags 30 needs at least 31"),
        (("--lags", "1", "--by", "person"), "by names 'person', but the columns are 'patient'"),
    ],
)  # fmt: skip
def test_what_cannot_be(ask, folder, arguments, problem):
    done = ask("learn", folder / "series.csv", *arguments, "-o", folder / "none.json")
    assert problem in done.complaint
    assert not (folder / "none.json").exists()


def test_what_a_dynamic_network_cannot_be_asked(ask, folder, model):
    uneven = ask("learn", folder / "uneven.csv", "--lags", "1", "--by", "patient", "--time", "day", "-o", "none.json")
    assert "where others go as from" in uneven.complaint
    assert "make one with unroll" in ask("query", model, "--target", "fever").complaint
    assert "no dynamic network" in ask("unroll", folder / "four.json", 2, "-o", folder / "none.json").complaint
    assert "0 is not in the range" in ask("unroll", model, 0, "-o", folder / "none.json").complaint
