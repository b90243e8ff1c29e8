"""The command line as a process of its own: streams, signals, exit codes."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from leafwise.cli import run, saving
from leafwise.data.table import Variable
from leafwise.decision_graph import DecisionGraph
from leafwise.examples import alarm
from leafwise.network import Network, Node

COMMAND = [sys.executable, "-c", "from leafwise.cli import main; main()"]


def test_version_and_help():
    version = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.split()[0] == "leafwise"
    listing = subprocess.run(COMMAND, capture_output=True, text=True, check=True)
    for command in ("learn", "score", "evaluate", "sample", "show"):
        assert command in listing.stdout
        assert "--json" in subprocess.run([*COMMAND, command, "-h"], capture_output=True, text=True, check=True).stdout


def test_errors_leave_with_two():
    done = subprocess.run([*COMMAND, "show", "nowhere.json"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("leafwise: ")


def test_a_closed_pipe_is_no_accident(model):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*COMMAND, "sample", str(model), "-n", "50000"], stdout=write, stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    assert done.stderr == ""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_interrupted_learning_saves_what_it_found(tmp_path):
    draw = random.Random(1)
    data, output = tmp_path / "noise.csv", tmp_path / "model.json"
    names = ",".join(f"x{i}" for i in range(150))
    rows = (",".join(map(str, draw.choices((0, 1, 2), k=150))) for _ in range(3000))
    data.write_text("\n".join([names, *rows]))
    arguments = [
        "learn",
        str(data),
        "-o",
        str(output),
        "--structure-prior",
        "uniform",
        "--prior",
        "bdeu:1000",
        "--verbose",
        "--json",
    ]
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert first
    assert process.returncode == 130, stderr[-500:]
    assert "leafwise: interrupted" in stderr.splitlines()[-1]
    found = json.loads(stdout)
    assert found["stopped"] == "interrupted"
    assert found["steps"] > 0
    show = subprocess.run([*COMMAND, "show", str(output), "--json"], capture_output=True, text=True, check=True)
    assert json.loads(show.stdout)["leaves"] == found["leaves"]


EVIL = "evil\x1b[31m\x07\n\u202eabc\x9b1m"


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")
@pytest.mark.parametrize(
    "arguments",
    [
        ("show",),
        ("show", "--node", "y\x1b[2J"),
        ("query",),
        ("query", "--joint", "--method", "weighting", "--samples", "100"),
        ("mpe",),
        ("sample", "-n", "3"),
        ("predict", "cases.csv", "--target", "y\x1b[2J"),
        ("impute", "cases.csv"),
        ("query", "--target", "z\x1b[31m"),
        ("query", "--given", "\x1b[31m=3"),
        ("show", "--\x1b[31m"),
    ],
)
def test_names_do_not_steer_the_terminal(arguments, tmp_path):
    first = Node((), DecisionGraph.single(), np.array([[0.5, 0.5]]))
    second = Node((0,), DecisionGraph.complete([0], [2]), np.array([[0.5, 0.5], [0.1, 0.9]]))
    variables = (Variable(EVIL, ("a\x1b]0;title\x07", "b\r\x08")), Variable("y\x1b[2J", ("no", "yes")))
    model = tmp_path / "model.json"
    Network(variables, (first, second), "uni\x1bform").save(model)
    (tmp_path / "cases.csv").write_text(f"{EVIL},y\x1b[2J\na\x1b]0;title\x07,no\n")
    assert not _signs_shown([arguments[0], str(model), *arguments[1:]], tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")
@pytest.mark.parametrize("arguments", [("describe",), ("learn", "-v", "-o", "model.json"), ("learn", "--json")])
def test_names_in_data_do_not_steer_the_terminal(arguments, tmp_path):
    rows = "".join(f"{state},{number}\n" for number in (1, 2) for state in ("x\x1b[2J", "y", "z") * 4)
    (tmp_path / "cases.csv").write_text(f"{EVIL},c\x07\n{rows}")
    assert not _signs_shown([arguments[0], "cases.csv", *arguments[1:]], tmp_path)


def _signs_shown(arguments, folder):
    """What reaches a terminal that is not to be seen; the progress of a command is not looked at."""
    import pty

    screen, terminal = pty.openpty()
    command = [*COMMAND, *arguments]
    with subprocess.Popen(command, stdout=terminal, stderr=subprocess.PIPE, cwd=folder) as process:
        os.close(terminal)
        shown = b""
        try:
            while piece := os.read(screen, 65536):
                shown += piece
        except OSError:  # the other end is closed
            pass
        shown += process.communicate()[1]
    os.close(screen)
    text = shown.decode().replace("\r\n", "\n")
    assert text
    return [sign for sign in text if not sign.isprintable() and sign != "\n"]


ROUNDS = ["learn", "--example", "alarm", "--search", "restarts", "--keep", "2", "--threads", "1", "--quiet"]


@contextmanager
def started(folder, arguments):
    """A search that saves all the time, once it has saved for the first time."""
    more = ["-o", "model.json", "--checkpoint", "run.checkpoint", "--every", "0"]
    process = subprocess.Popen([*COMMAND, *arguments, *more], cwd=folder, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not (folder / "run.checkpoint").exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    with process:
        try:
            yield process
        finally:
            process.kill()  # whatever happened


KILLED = {
    "restarts": [*ROUNDS, "--rounds", "30"],
    "infer": ["learn", "cases.csv", "--missing", "infer", "--threads", "1", "--quiet"],
    "networks": ["learn", "cases.csv", "--missing", "state", "--networks", "12", "--threads", "1", "--quiet"],
}


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("kind", KILLED)
def test_killed_at_any_moment(kind, tmp_path, monkeypatch):
    """`python -m benchmarks kills` does it 200 times."""
    draw, whole, names = random.Random(1), tmp_path / "whole", ["model.json"] + ["model-2.json"] * (kind == "restarts")
    whole.mkdir()
    cells = [[draw.choice(["", *"aaabc"]) for _ in range(5)] for _ in range(300)]
    cells = [[*row[:3], row[0] if draw.random() < 0.8 else row[3], row[1] + row[2]] for row in cells]
    (tmp_path / "cases.csv").write_text("\n".join(",".join(row) for row in ["vwxyz", *cells]) + "\n")
    monkeypatch.chdir(tmp_path)
    assert run([*KILLED[kind], "-o", str(whole / "model.json")]) == 0
    (tmp_path / ".model.json.999999999.part").write_text("half of")
    n_killed = 0
    for _ in range(2):
        with started(tmp_path, KILLED[kind]) as process:
            time.sleep(draw.uniform(0, 0.7))
        n_killed += process.returncode == -signal.SIGKILL
    with started(tmp_path, KILLED[kind]) as process:
        assert process.wait(60) == 0
    assert n_killed > 0
    for name in names:
        assert (tmp_path / name).read_bytes() == (whole / name).read_bytes()
    left = sorted(file.name for file in tmp_path.iterdir())
    assert left == sorted([*names, "cases.csv", "run.checkpoint", "whole"])


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_asked_to_end_it_saves_as_when_interrupted(tmp_path):
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:  # as under nohup
            continue
        (tmp_path / "run.checkpoint").unlink(missing_ok=True)
        with started(tmp_path, [*ROUNDS, "--rounds", "1000000"]) as process:
            process.send_signal(number)
            _, stderr = process.communicate(timeout=60)
        assert process.returncode == 128 + number, stderr
        assert "leafwise: interrupted: the network found so far is saved in 'model.json'." in stderr
        assert Network.load(tmp_path / "model.json").learned["search"] == "restarts"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no disk that is always full")
def test_a_result_that_cannot_be_saved_is_kept_elsewhere(tmp_path, monkeypatch, capsys):
    from leafwise.formats import whole_files

    sync, folder = os.fsync, tmp_path / "full"
    folder.mkdir()

    def full(handle):
        if str(folder) in os.readlink(f"/proc/self/fd/{handle}"):
            raise OSError(28, "No space left on device")
        sync(handle)

    monkeypatch.setattr(whole_files.os, "fsync", full)
    monkeypatch.chdir(tmp_path)
    arguments = ["learn", "--example", "alarm", "--target", "HR", "--steps", "1", "--json"]
    assert run([*arguments, "-o", str(folder / "model.json")]) == 2
    told = capsys.readouterr()
    assert told.err == (
        f"leafwise: cannot write '{folder / 'model.json'}' (No space left on device): the network is kept in "
        f"'{tmp_path / 'model-kept.json'}'.\n"
    )
    assert json.loads(told.out)["output"] == str(tmp_path / "model-kept.json")
    assert Network.load("model-kept.json").learned["steps"] == 1
    assert not list(folder.iterdir())


def test_a_result_is_kept_where_no_folder_is_left(tmp_path, monkeypatch, capsys):
    """The current folder is deleted, nobody knows where home is, and no folder takes temporary files."""

    def nobody_knows():
        raise RuntimeError("Could not determine home directory.")

    def full():
        raise FileNotFoundError(2, "No usable temporary directory found")

    (tmp_path / "gone").mkdir()
    network = alarm()
    monkeypatch.chdir(tmp_path / "gone")
    if sys.platform != "win32":
        (tmp_path / "gone").rmdir()
    monkeypatch.setattr(saving.Path, "home", nobody_knows)
    monkeypatch.setattr(saving.tempfile, "gettempdir", lambda: str(tmp_path))
    wanted = tmp_path / "gone" / "lost" / "model.json"
    assert saving.saved(network, wanted) == tmp_path / "model-kept.json"
    assert Network.load(tmp_path / "model-kept.json") == network
    capsys.readouterr()
    monkeypatch.setattr(saving.tempfile, "gettempdir", full)
    assert saving.saved(network, wanted) == Path("-")
    assert json.loads(capsys.readouterr().out) == json.loads(saving.dumped(network))


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")
@pytest.mark.skipif(
    sys.platform != "win32" and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, reason="SIGHUP is ignored here"
)
def test_a_terminal_that_goes_away(tmp_path):
    """Its window is closed: SIGHUP comes, and nothing can be shown any more."""
    import pty

    leader, follower = pty.openpty()
    more = ["--rounds", "1000000", "-o", "model.json", "--checkpoint", "run.checkpoint", "--every", "0"]
    command = [*COMMAND, *[word for word in ROUNDS if word != "--quiet"], *more]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdin=follower, stdout=follower, stderr=follower, start_new_session=True
    )
    os.close(follower)
    until = time.monotonic() + 60
    while not (tmp_path / "run.checkpoint").exists() and time.monotonic() < until:
        os.read(leader, 10000)
    os.close(leader)
    process.send_signal(signal.SIGHUP)
    process.wait(60)
    assert Network.load(tmp_path / "model.json").learned["search"] == "restarts"
