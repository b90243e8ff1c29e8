"""Whatever refusals advise is an argument in Python, and an option of that name on the command line."""

import ast
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

import leafwise
from leafwise.cli import cli
from leafwise.errors import Advice, AdvisedError, Argument, in_options

SOURCE = Path(leafwise.__file__).parent


def advised(tree: ast.AST) -> Iterator[str]:
    """The names of arguments in calls that make advice."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            parts = node.args[:1] if node.func.id == "Argument" else []
            if node.func.id in ("Advice", "AdvisedError", "TooCostly"):
                parts = [part.elts[0] for part in node.args if isinstance(part, ast.Tuple)]
            yield from (part.value for part in parts if isinstance(part, ast.Constant))


def test_every_argument_that_is_advised_is_an_option():
    names = {name for path in SOURCE.rglob("*.py") for name in advised(ast.parse(path.read_text(encoding="utf-8")))}
    assert {"missing", "max_leaves", "operations", "header"} < names
    options = {option for command in cli.commands.values() for each in command.params for option in each.opts}
    assert {name for name in names if Argument(name).in_options() not in options} == set()


@pytest.mark.parametrize(
    ("argument", "in_python", "option"),
    [
        (Argument("header", False), "header=False", "--no-header"),
        (Argument("bins", {"a b": 8}), "bins={'a b': 8}", "--bins 'a b=8'"),
        (Argument("hidden", (4, 4)), "hidden=(4, 4)", "--hidden 4,4"),
        (Argument("ignore", ["a,b", "c"]), "ignore=['a,b', 'c']", "--ignore '\"a,b\",c'"),
        (Argument("most_cells"), "most_cells", "--most-cells"),
        (Argument("memory", of="Limits"), "Limits(memory=...)", "--memory"),
    ],
)
def test_how_an_argument_is_spelled(argument, in_python, option):
    assert (str(argument), argument.in_options()) == (in_python, option)


def test_advice_within_advice_and_across_processes():
    inner = AdvisedError("raise ", ("max_leaves",), " or ", ("missing", "drop"))
    outer = pickle.loads(pickle.dumps(AdvisedError("a.csv: ", inner.advice)))
    assert str(outer) == "a.csv: raise max_leaves or missing='drop'"
    assert in_options(outer) == "a.csv: raise --max-leaves or --missing drop"
    assert outer.arguments == [("max_leaves", ...), ("missing", "drop")]
    note = pickle.loads(pickle.dumps(Advice("note: ", outer.advice)))
    assert in_options(UserWarning(note)) == "note: a.csv: raise --max-leaves or --missing drop"
    assert in_options(ValueError("missing='drop' as data")) == "missing='drop' as data"
