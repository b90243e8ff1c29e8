"""Functions that are compiled on their own, some by a second process, and called by others."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

pytestmark = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")

KERNELS = """
from typing import Any, NamedTuple
import numpy as np
from leafwise.kernels.compiling.jit import bare, jit, ready, separate
from leafwise.kernels.compiling.references import Packed, refer

class Numbers(NamedTuple):
    values: Any
    step: int

@separate
def add(k: int, by: float, numbers: Any) -> float:
    numbers.values[k] += numbers.step
    return by * numbers.values[k]

@bare
def add_twice(numbers):
    return add(0, 1.0, numbers) + add(np.int32(1), 10.0, numbers)

@jit
def total(numbers):
    return add_twice(refer(numbers))

def numbers(kind):
    return Packed(Numbers(np.arange(2).astype(kind), 5))
"""
CALLS = """
from kernels import *
some, others = numbers(np.int64), numbers(np.float32)
ready((total, some), (add, 0, 1.0, some))
ready((total, others), (add, 0, 1.0, others))
print(total(some), total(others), total(some), len(total.stats.cache_hits))
"""

ONE_KIND = """
from kernels import *
some = numbers(np.int64)
ready((total, some), (add, 0, 1.0, some))
print(total(some))
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNELS)

    def run(script, **changed):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": str(tmp_path), **changed}
        done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
        return done.stdout, done.stderr

    return run


def test_each_caller_calls_what_was_compiled_for_its_arguments(run):
    """The second time all comes from disk: by then, addresses are elsewhere."""
    assert run(CALLS) == ("65.0 65.0 120.0 0\n", "")
    assert run(CALLS) == ("65.0 65.0 120.0 2\n", "")


@pytest.mark.parametrize("executable", ["None", "'/nowhere'", "'/bin/false'"])
def test_without_a_second_process_the_first_compiles_all(executable, run):
    assert run(f"import sys; sys.executable = {executable};" + ONE_KIND) == ("65.0\n", "")


def test_what_was_compiled_before_an_interrupt_is_found(run):
    """It had not been said where."""
    before = "from leafwise.kernels.compiling.internals import dispatcher_of; import numba; from kernels import *;"
    before += "dispatcher_of(add).compile((numba.int64, numba.float64, numba.typeof(numbers(np.int64))));"
    assert run(before + ONE_KIND) == ("65.0\n", "")


def test_files_that_are_damaged_or_gone_are_made_again(run, tmp_path):
    """Two processes, each with another that compiles, begin with nothing."""
    with ThreadPoolExecutor() as both:
        assert list(both.map(run, [ONE_KIND] * 2)) == [("65.0\n", "")] * 2
    kept = {name: next((tmp_path / "kept").rglob(f"kernels.{name}-*.nbc")) for name in ("add", "total")}
    data = kept["add"].read_bytes()
    damaged = data[:-100] + bytes([data[-100] ^ 1]) + data[-99:]
    kept["add"].write_bytes(damaged)
    kept["total"].unlink()
    assert run(ONE_KIND) == ("65.0\n", "")
    assert kept["add"].read_bytes() != damaged
    assert kept["total"].exists()
    for path in (tmp_path / "kept").rglob("*.nbi"):
        path.write_bytes(path.read_bytes()[:40])
    assert run(ONE_KIND) == ("65.0\n", "")


def test_what_is_not_ready_is_not_called(run):
    out, error = run("from kernels import *; total(numbers(np.int64))")
    assert out == ""
    assert "RuntimeError: kernels.add" in error
    assert "is not ready" in error


def test_plain_numba_gives_the_same(run):
    assert run(ONE_KIND, LEAFWISE_PLAIN_NUMBA="1") == ("65.0\n", "")


def test_a_name_is_known_to_the_linker_before_anybody_gets_it(monkeypatch):
    """Threads that are ready for the first time at once: code that is linked too early would end the process."""
    from leafwise.kernels.compiling import internals

    known, add_symbol = set(), internals.llvmlite.binding.add_symbol

    def add_slowly(name, address):
        time.sleep(0.05)
        add_symbol(name, address)
        known.add(name)

    def ask(_):
        place = internals._address("a name that nobody has")
        return "a name that nobody has" in known, place

    monkeypatch.setattr(internals.llvmlite.binding, "add_symbol", add_slowly)
    monkeypatch.setattr(internals, "_addresses", {})
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(ask, range(4)))
    assert all(is_known for is_known, _ in found)
    assert len({id(place) for _, place in found}) == 1
