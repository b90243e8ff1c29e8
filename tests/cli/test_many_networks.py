"""Mixtures and confidence on the command line."""

import json
import os
import signal
from itertools import islice

import pytest

import leafwise
import leafwise.examples
from leafwise import Mixture, Network
from leafwise.arc_confidence import halves


@pytest.fixture
def ask(request):
    """A command line, run as a person would."""
    return request.getfixturevalue("leafwise")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("many")
    cases = leafwise.sample(leafwise.examples.alarm(), 200, seed=1)
    leafwise.read(cases.to_pandas()[["HRBP", "HR", "ERRLOWOUTPUT", "CO", "BP", "TPR"]]).to_pandas().to_csv(
        place / "data.csv", index=False
    )
    return place


@pytest.fixture(scope="module")
def model(folder):
    mixture = leafwise.learn(folder / "data.csv", networks=3)
    mixture.save(folder / "mixture.json")
    return mixture


def test_learn_saves_the_mixture(ask, folder, model):
    done = ask("learn", folder / "data.csv", "--networks", "3", "-o", folder / "m.json")
    assert done.code == 0
    assert "networks" in done.stdout
    assert Mixture.load(folder / "m.json") == model


def test_leaves_averaged(ask, folder):
    done = ask("learn", folder / "data.csv", "--leaves", "average", "--target", "HRBP", "-o", folder / "a.json", "-q")
    assert done.code == 0
    assert Network.load(folder / "a.json") == leafwise.learn(folder / "data.csv", leaves="average", target="HRBP")


def test_questions(ask, folder, model):
    file = folder / "mixture.json"
    done = ask("evaluate", file, folder / "data.csv", "--json")
    mean = json.loads(done.stdout)["mean_log_likelihood"]
    assert mean == pytest.approx(model.log_probabilities(folder / "data.csv").mean())
    done = ask("query", file, "--target", "CO", "--given", "BP=LOW", "--json")
    assert json.loads(done.stdout)["method"] == "exact"
    assert ask("mpe", file, "--given", "BP=LOW").code == 0
    assert ask("sample", file, "-n", "5").stdout.count("\n") == 6
    done = ask("predict", file, folder / "data.csv", "--target", "CO", "-o", folder / "out.csv")
    assert (done.code, (folder / "out.csv").read_text().count("\n")) == (0, 201)


def test_a_joint_answer_by_samples(ask, folder, model):
    """Samples of a mixture have errors, and no intervals."""
    names = [variable.name for variable in model.variables][:2]
    asked = ["query", folder / "mixture.json", "--target", ",".join(names), "--joint", "--operations", "1"]
    lines = ask(*asked).stdout.splitlines()
    assert lines[0].startswith("method: weighting")
    assert [*names, "probability"] in [line.split() for line in lines]
    assert "±" in lines[-1]
    cells = json.loads(ask(*asked, "--json").stdout)["joint"]
    assert {*cells[0]} == {"states", "probability", "standard_error"}


def test_samples_of_a_mixture_come_with_errors_and_warnings(ask, folder, model):
    known = "HRBP=LOW,HR=HIGH,BP=HIGH,TPR=LOW"
    asked = ["query", folder / "mixture.json", "--target", "CO", "--given", known, "--method", "weighting"]
    lines = ask(*asked, "--samples", "100").stdout.splitlines()
    assert any(line.startswith("warning: ") for line in lines)
    assert "±" in lines[-1]
    found = json.loads(ask(*asked, "--samples", "100", "--json").stdout)
    assert found["warnings"]
    assert found["standard_errors"]["CO"].keys() == found["probabilities"]["CO"].keys()
    assert "intervals" not in found


def test_show_tells_what_members_agree_on(ask, folder, model):
    shown = ask("show", folder / "mixture.json").stdout
    assert shown.startswith("Mixture(3 networks")
    assert json.loads(ask("show", folder / "mixture.json", "--json").stdout)["networks"] == 3
    assert ask("show", folder / "mixture.json", "-o", folder / "p.svg").code == 0
    assert (folder / "p.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "mixture.json", "--node", "CO"), "no graphs or page of its own"),
        (("query", "mixture.json", "--target", "CO", "--do", "BP=LOW"), "do not agree on causes"),
        (("score", "mixture.json", "data.csv"), "holds a mixture of networks"),
        (
            ("learn", "data.csv", "--networks", "2", "--leaves", "average", "-o", "x.json"),
            "--networks takes no --leaves",
        ),
        (("learn", "data.csv", "--networks", "2", "-o", "x.bif"), "learn saves .json"),
        (
            ("learn", "data.csv", "--networks", "2", "--hidden", "auto", "-o", "x.json"),
            "--hidden auto and --networks 2",
        ),
        (("confidence", "data.csv", "-o", "picture.txt", "--networks", "2"), "ends like no picture"),
        (("confidence", "nothing.csv"), "nothing.csv"),
        (("confidence", "nothing.csv", "--consensus", "x.txt"), "no format of networks"),
        (("confidence", "nothing.csv", "-o", "x.svg", "--html", "x.svg"), "two results would both be 'x.svg'"),
    ],
)
def test_refused_in_one_line(ask, folder, model, monkeypatch, arguments, message):
    monkeypatch.chdir(folder)
    done = ask(*arguments)
    assert done.code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (folder / "x.json").exists()


def test_missing_cells_are_filled_in(ask, folder, model):
    (folder / "holes.csv").write_text((folder / "data.csv").read_text().replace("NORMAL", ""))
    done = ask("impute", folder / "mixture.json", folder / "holes.csv", "-o", folder / "filled.csv")
    assert done.code == 0
    assert ",," not in (folder / "filled.csv").read_text()


def test_confidence(ask, folder):
    done = ask(
        *("confidence", folder / "data.csv", "--networks", "3", "-o", folder / "c.svg"),
        *("--consensus", folder / "c.json", "--html", folder / "c.html"),
    )
    assert done.code == 0
    assert "3 networks; the consensus has" in done.stdout
    values = json.loads(ask("confidence", folder / "data.csv", "--networks", "3", "--json").stdout)
    assert values["networks"] == 3
    assert {tuple(arc) for arc in values["consensus_arcs"]} == set(Network.load(folder / "c.json").named_arcs)
    assert (folder / "c.svg").exists()
    assert '"shares":[' in (folder / "c.html").read_text().replace(" ", "")


@pytest.mark.parametrize("n_before", [0, 2])
def test_confidence_that_is_interrupted_twice_has_the_networks_so_far(ask, folder, monkeypatch, n_before):
    def interrupted(*arguments, **settings):
        yield from islice(halves(*arguments, **settings), n_before)
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError

    monkeypatch.setattr("leafwise.cli.progress.SECONDS_OF_ONE_CTRL_C", -1.0)
    monkeypatch.setattr("leafwise.arc_confidence.halves", interrupted)
    done = ask("confidence", folder / "data.csv", "--networks", "5", "--json")
    assert done.code == 130
    if n_before:
        assert json.loads(done.stdout)["networks"] == n_before
        assert "interrupted after 2 of 5 networks" in done.stderr
    else:
        assert done.stdout == ""
        assert "nothing was written" in done.stderr


def test_advice_about_missing_cells_can_be_followed(ask, folder):
    (folder / "holes.csv").write_text((folder / "data.csv").read_text().replace("NORMAL", ""))
    for arguments in (("confidence",), ("learn", "--networks", "2", "-o", folder / "x.json")):
        done = ask(*arguments, folder / "holes.csv")
        assert done.code == 2
        assert "pass --missing state" in done.stderr
        assert "infer" not in done.stderr
