"""Values that would make no sense, refused where they are given."""

import pickle

import pytest

import leafwise
from leafwise import Constraints, GraphArcSearch, LeafSearch, TableArcSearch
from leafwise.cli import run
from leafwise.examples import alarm


@pytest.mark.parametrize(
    "make",
    [
        lambda: LeafSearch(max_steps=2.5),
        lambda: LeafSearch(threads=1.5),
        lambda: TableArcSearch(max_steps=2.5),
        lambda: GraphArcSearch(max_steps=2.5),
        lambda: leafwise.learn(leafwise.sample(alarm(), 10, 1), constraints=Constraints(max_parents=1.5)),
    ],
)
def test_numbers_that_must_be_whole(make):
    with pytest.raises(TypeError, match="must be a whole number"):
        make()


@pytest.mark.parametrize("option", ["--order", "--tiers"])
def test_a_file_without_names_is_no_constraint_but_a_mistake(option, tmp_path, capsys):
    names, model = tmp_path / "names.txt", tmp_path / "m.json"
    names.write_text("# nothing\n")
    assert run(["learn", "--example", "alarm", "-o", str(model), option, str(names)]) == 2
    assert "there is no name in it" in capsys.readouterr().err
    assert not model.exists()


def test_constraint_files_are_not_written_over(tmp_path, capsys):
    names = tmp_path / "names.txt"
    names.write_text("\n".join(alarm().names))
    assert run(["learn", "--example", "alarm", "--order", str(names), "-o", str(names)]) == 2
    assert "also read from" in capsys.readouterr().err
    assert names.read_text().startswith("HISTORY")


def test_an_empty_prior_is_not_the_prior_of_learning(tmp_path):
    table = leafwise.sample(alarm(), 50, 1)
    with pytest.raises(ValueError, match="prior '' is not known"):
        leafwise.log_score(leafwise.learn(table), table, prior="")


def test_the_version_is_there():
    assert leafwise.__version__.count(".") == 2


@pytest.mark.parametrize(
    "options",
    [
        ["--tables", "--operators", "B"],
        ["--tables", "--schedule", "best-first"],
        ["--tables", "--delete-parents"],
        ["--missing", "drop"],
        ["--bins", "8"],
        ["--rounds", "3"],
        ["--search", "restarts", "--steps", "3"],
    ],
)
def test_options_that_would_do_nothing(options, tmp_path, capsys):
    assert run(["learn", "--example", "alarm", "-o", str(tmp_path / "m.json"), *options]) == 2
    assert "leave one of them out" in capsys.readouterr().err


def test_a_network_cannot_be_changed_and_can_be_pickled():
    network = leafwise.learn(leafwise.sample(alarm(), 50, 1), target="HR")
    with pytest.raises(TypeError):
        network.learned["log_score"] = 1
    assert pickle.loads(pickle.dumps(network)) == network
