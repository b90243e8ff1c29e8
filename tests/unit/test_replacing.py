"""Files that take the place of others: networks, tables and packed tables are all written through them."""

import os
import threading
from pathlib import Path

import pytest

import leafwise
from leafwise import replacing
from leafwise.cli import run
from leafwise.data.encoding import write
from leafwise.replacing import replaced

NOBODY = 999_999_999  # no process has that number


@pytest.fixture
def cases(tmp_path):
    path = tmp_path / "cases.csv"
    path.write_text("a,b\n" + "0,1\n1,0\n" * 20)
    return path


def test_what_killed_processes_left_half_written_is_removed(cases):
    table = leafwise.read(cases, cache=True)
    (packed,) = cases.parent.glob(".leafwise-*.cache")
    packed.unlink()
    left = [f".{name}.{NOBODY}{number}.part" for name in ("out.csv", packed.name) for number in ("", "-3")]
    left.append(f".out.csv.{replacing._HOST}.{NOBODY}-0.part")
    others = [
        f".out.csv.elsewhere.{NOBODY}-0.part",
        ".out.csv.x.part",
        f".another.csv.{NOBODY}.part",
        f".out.csv.{os.getppid()}-0.part",
    ]
    for name in [*left, *others]:
        (cases.parent / name).write_text("half of")
    write(table, cases.parent / "out.csv")
    leafwise.read(cases, cache=True)
    found = {path.name for path in cases.parent.iterdir()}
    assert found == {"cases.csv", "out.csv", packed.name, *others}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_device_is_named(cases, capsys):
    model = str(cases.with_name("model.json"))
    leafwise.learn(leafwise.read(cases)).save(model)
    for command in (["sample", model], ["impute", model, str(cases)]):
        assert run([*command, "-o", "/dev/full"]) == 2
        assert capsys.readouterr().err == "leafwise: /dev/full: No space left on device\n"


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="no names of open files")
def test_a_pipe_that_is_open_is_written_by_its_name(cases):
    """As /dev/stdout is in a pipeline: what it links to is no path."""
    model = cases.with_name("model.json")
    leafwise.learn(leafwise.read(cases)).save(model)
    for command in (["sample", "-n", "5", str(model)], ["impute", str(model), str(cases)]):
        reader, writer = os.pipe()
        with os.fdopen(reader) as found:
            with os.fdopen(writer, "w"):
                assert run([*command, "-o", f"/dev/fd/{writer}"]) == 0
            assert next(found).startswith(cases.read_text().splitlines()[0])


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet", "out.json", "out.bif"])
def test_a_full_disk_is_named_and_nothing_is_left(name, cases, monkeypatch, capsys):
    def full(_handle):
        raise OSError(28, "No space left on device")

    output = cases.parent / "there" / name
    output.parent.mkdir()
    leafwise.learn(leafwise.read(cases)).save(cases.with_name("model.json"))
    monkeypatch.setattr(replacing.os, "fsync", full)
    command = "convert" if name in ("out.json", "out.bif") else "sample"
    arguments = [str(output)] if command == "convert" else ["-n", "5", "-o", str(output)]
    assert run([command, str(cases.with_name("model.json")), *arguments]) == 2
    assert capsys.readouterr().err == f"leafwise: {output}: No space left on device\n"
    assert not list(output.parent.iterdir())


def test_two_threads_may_write_one_file(tmp_path):
    begun, may_end = threading.Event(), threading.Event()

    def slow():
        with replaced(tmp_path / "a.txt") as file:
            file.write(b"slow")
            begun.set()
            may_end.wait(10)

    other = threading.Thread(target=slow)
    other.start()
    begun.wait(10)
    with replaced(tmp_path / "a.txt") as file:
        file.write(b"fast")
    assert (tmp_path / "a.txt").read_bytes() == b"fast"
    may_end.set()
    other.join()
    assert [(path.name, path.read_bytes()) for path in Path(tmp_path).iterdir()] == [("a.txt", b"slow")]


def test_a_pipe_is_written_to_and_stays_one(tmp_path, cases):
    pipe, table, found = tmp_path / "pipe", leafwise.read(cases), []
    os.mkfifo(pipe)
    (tmp_path / "out.csv").symlink_to(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write(table, tmp_path / "out.csv")
    reader.join()
    assert pipe.is_fifo()
    assert found == [cases.read_bytes()]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("cases.csv/x.json", "Not a directory"),
        ("x" * 250, "File name too"),
        ("no/such/x.json", "No such file or directory"),
    ],
)
def test_errors_name_the_file_that_was_asked_for(name, problem, cases):
    with pytest.raises(OSError, match=problem) as caught, replaced(cases.parent / name):
        pass
    assert caught.value.filename == str(cases.parent / name)
    assert ".part" not in str(caught.value)
    assert "->" not in str(caught.value)
