"""numba without its private parts: chosen when it must be, and the same answers. The whole of it: `make test-plain`."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")

CHOSEN = "from leafwise.kernels.compiling import jit; print(jit.chosen.__name__.rpartition('.')[2])"
NEW_RELEASE = "import numba; numba.__version__ = '0.99.0'; "
CHANGED = {
    "a class is gone": "from numba.core import codegen; del codegen.JITCodeLibrary; ",
    "a module is gone": "import sys; sys.modules['numba.core.imputils'] = None; ",
    "a function does something else": "from numba.core import cgutils; cgutils.alloca_once_value = None; ",
}


def run(script, **environment):
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.split(), done.stderr


def test_known_releases_are_trusted_and_new_ones_tried():
    assert run(CHOSEN) == (["internals"], "")
    assert run(NEW_RELEASE + CHOSEN) == (["internals"], "")
    assert run(CHOSEN, LEAFWISE_PLAIN_NUMBA="1") == (["plain"], "")


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_a_release_that_has_changed_inside(change, tmp_path):
    chosen, said = run(NEW_RELEASE + change + CHOSEN, NUMBA_CACHE_DIR=str(tmp_path))
    assert chosen == ["plain"]
    assert said.count("\n") == 1
    assert "numba 0.99.0 has changed inside" in said


def test_plain_numba_gives_the_same():
    """Parts, references, instructions and the files on disk, as these are tested with numba's private parts."""
    of_kernels = ["test_references.py::test_fields_of_fields_and_what_is_written", "test_words.py", "test_sampling.py"]
    folder = os.path.dirname(__file__)
    command = [sys.executable, "-m", "pytest", "-q", *(os.path.join(folder, name) for name in of_kernels)]
    done = subprocess.run(command, env={**os.environ, "LEAFWISE_PLAIN_NUMBA": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
