"""The files of compiled functions: damaged, written by two at a time, or without room."""

import os
import subprocess
import sys

import pytest

from leafwise.kernels.compiling import internals, sources

needs_compiler = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")

CALL = """
import resource, sys
if len(sys.argv) > 1:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
import numpy as np
from leafwise.kernels.questions.sampling import tally
sums = np.zeros(3)
tally(np.array([[0, 2, 2]], np.uint8), np.zeros(1, np.int64), np.array([1.0, 2.0, 3.0]), sums)
print(sums.tolist(), sum(tally.stats.cache_hits.values()))
"""


def start(folder, *arguments):
    command = [sys.executable, "-c", CALL, *map(str, arguments)]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(folder, *arguments):
    with start(folder, *arguments) as process:
        return process.communicate()


def damage(data, how):
    """Cut off, emptied, one bit changed, nonsense before or after."""
    middle = len(data) // 2
    return {
        "cut": data[:middle],
        "empty": b"",
        "a bit": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
        "the last byte": data[:-1] + bytes([data[-1] ^ 128]),
        "zeros": bytes(len(data)),
        "before": b"x" + data,
        "after": data + b"x",
    }[how]


KEY = ("arguments", "processor", "code")


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("how", ["cut", "empty", "a bit", "the last byte", "zeros", "before", "after"])
def test_a_damaged_file_is_as_good_as_none(how, suffix, tmp_path):
    files = internals._Files(str(tmp_path), "kernel", "stamp")
    files.save(KEY, list(range(100)))
    assert files.load(KEY) == list(range(100))
    (path,) = tmp_path.glob(f"*.{suffix}")
    path.write_bytes(damage(path.read_bytes(), how))
    assert files.load(KEY) is None
    files.save(KEY, "anew")
    assert files.load(KEY) == "anew"
    assert len(list(tmp_path.iterdir())) == 2


def test_kinds_of_arguments_have_files_of_their_own(tmp_path):
    """Two processes that saw no list yet would both have called theirs 1."""
    one, other = (internals._Files(str(tmp_path), "kernel", "stamp") for _ in range(2))
    one.save(("a", "p", "c"), 1)
    other.save(("b", "p", "c"), 2)
    one._save_index({("a", "p", "c"): "kernel.lost.nbc"})  # as if the other had not been listed, and a file were gone
    assert one.load(("a", "p", "c")) is None
    assert one.load(("b", "p", "c")) is None
    other.save(("b", "p", "c"), 3)
    assert (one.load(("a", "p", "c")), one.load(("b", "p", "c"))) == (None, 3)


def test_what_other_sources_made_is_not_taken(tmp_path, monkeypatch):
    internals._Files(str(tmp_path), "kernel", "stamp").save(KEY, 1)
    monkeypatch.setattr(internals, "SOURCES", "others")
    assert internals._Files(str(tmp_path), "kernel", "stamp").load(KEY) is None


@needs_compiler
def test_two_processes_and_damage(tmp_path):
    """Both begin with nothing; then every file is damaged, and what is compiled again is kept again."""
    both = [start(tmp_path), start(tmp_path)]
    for process in both:
        out, err = process.communicate()
        assert (out[:-2], err) == ("[1.0, 0.0, 5.0] ", "")  # the later one may find what the first has compiled
    assert run(tmp_path) == ("[1.0, 0.0, 5.0] 1\n", "")
    for path in tmp_path.rglob("*.nb?"):
        path.write_bytes(damage(path.read_bytes(), "a bit"))
    assert run(tmp_path) == ("[1.0, 0.0, 5.0] 0\n", "")
    assert run(tmp_path) == ("[1.0, 0.0, 5.0] 1\n", "")


@needs_compiler
@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_a_full_disk_costs_the_time_to_compile_and_no_more(tmp_path):
    for most in (0, 4000):
        stdout, stderr = run(tmp_path, most)
        assert stdout == "[1.0, 0.0, 5.0] 0\n"
        assert stderr.count("\n") == 1
        assert "compiled functions are not kept" in stderr
        assert not list(tmp_path.rglob("*.tmp*"))


def test_no_folder_that_can_be_written_to(monkeypatch, caplog):
    def refuse(*_):
        raise RuntimeError("cannot cache function: no locator available")

    sources.warn_not_kept.cache_clear()
    monkeypatch.setattr(internals._caching.FunctionCache, "__init__", refuse)
    for _ in range(3):
        internals._keep(type("Dispatcher", (), {"py_func": None})())
    assert len(caplog.records) == 1
    assert "set NUMBA_CACHE_DIR" in caplog.text


def test_whoever_waits_for_the_compiler_is_told_once(tmp_path):
    script = (
        "import numpy as np; from leafwise.kernels.compiling.sources import when_compiling;"
        "from leafwise.kernels.scoring import rises; when_compiling(lambda: print('compiling'));"
        "rises.fill(1.0, 1.0, np.zeros(3)); rises.fill(np.float32(1.0), 1.0, np.zeros(3))"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    said = [
        subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert said == ["compiling\n", ""]
