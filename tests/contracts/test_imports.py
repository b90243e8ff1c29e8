"""What importing costs: the package and the command line start without anything heavy."""

import subprocess
import sys

import pytest

HEAVY = {
    *("llvmlite", "matplotlib", "networkx", "numba", "pandas", "pgmpy"),
    *("polars", "pyagrum", "pyarrow", "rich", "scipy", "sklearn"),
}


def imported(statement: str) -> set[str]:
    """The top-level packages that a fresh interpreter has loaded after a statement."""
    code = f"import sys; {statement}; print(' '.join({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["leafwise", "leafwise.cli"])
def test_nothing_heavy_is_imported_to_start(module):
    assert imported(f"import {module}") & (HEAVY | {"numpy"}) == set()


def test_the_public_names_can_all_be_had():
    done = subprocess.run(
        [sys.executable, "-c", "import leafwise; [getattr(leafwise, name) for name in leafwise.__all__]"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_learn_stays_a_function_whatever_was_imported_before():
    imported("import leafwise; leafwise.start_search; assert callable(leafwise.learn)")
    imported("import leafwise; from leafwise.learner import start_search; assert callable(leafwise.learn)")


@pytest.mark.parametrize(
    "module", ["leafwise.network", "leafwise.formats.json", "leafwise.report.text", "leafwise.constraints"]
)
def test_models_are_read_without_compiling(module):
    assert imported(f"import {module}") & HEAVY == set()
