"""Data files on the command line: what is found out and said; describe, predict, compare and completion."""

import csv
import gzip
import io
import json
import os
import shutil
import socket
import subprocess
import sys

import pytest

import leafwise as package
from leafwise.cli import run

COMMAND = [sys.executable, "-c", "from leafwise.cli import main; main()"]
ROW = "{i};Smith the {i}th of his name;{age},5;{pay},5;{smoker};{ill}\n"
PEOPLE = "id;name;age;pay;smoker;ill\n" + "".join(
    ROW.format(i=i, age=20 + i * 7 % 60, pay=i * 37 % 101, smoker=i % 3 == 0, ill="yes" if i * 7 % 60 > 30 else "no")
    for i in range(120)
)


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE, encoding="cp1252")
    return path


# Describe


def test_describe_shows_every_column_and_what_to_do(leafwise, people):
    lines = leafwise("describe", people, "--target", "ill").stdout.splitlines()
    assert lines[0].endswith("people.csv': 120 rows, 6 columns; semicolons, decimal commas, UTF-8")
    assert [line.split()[:2] for line in lines[3:9]] == [
        ["id", "identifier"],
        ["name", "free"],
        ["age", "bins"],
        ["pay", "bins"],
        ["smoker", "states"],
        ["ill", "states"],
    ]
    assert lines[5].endswith("2 bins: < 51.5, >= 51.5")
    assert lines[-1] == "refused: leave out with --ignore id,name, or take with --states id,name"
    found = leafwise("describe", people, "--json").object
    assert [column["kind"] for column in found["columns"]][:3] == ["identifier", "free text", "bins"]
    assert found["columns"][4]["states"] == ["false", "true"]


def test_describe_names_every_way_to_deal_with_missing_cells(leafwise, tmp_path):
    data = tmp_path / "holes.csv"
    data.write_text("a,b\nx,u\n,v\ny,u\n")
    assert leafwise("describe", data).stdout.splitlines()[-1] == (
        "missing cells: infer them with --missing infer, make them a state with --missing state, "
        "or drop rows with --missing drop"
    )
    for missing in ("infer", "state", "drop"):
        assert leafwise("describe", data, "--missing", missing).code == 0
    assert leafwise("describe", data, "--missing", "infer", "--json").object["columns"][0]["states"] == ["x", "y"]


def test_describe_tells_columns_without_a_cell_from_those_that_lack_some(leafwise, tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("a,b,c\n" + "x,,\ny,,u\n" * 9)
    told = leafwise("describe", data).stdout.splitlines()[-2:]
    assert told[0] == "without a single cell: leave out with --ignore b"
    assert told[1].startswith("missing cells: infer them with --missing infer")
    for missing in ("infer", "state"):
        assert leafwise("describe", data, "--missing", missing).stdout.splitlines()[-1] == told[0]
    assert leafwise("learn", data, "--ignore", "b", "--missing", "infer", "-o", tmp_path / "m.json", "-q").code == 0
    whole = leafwise("describe", data, "--ignore", "c").stdout.splitlines()[-1]
    assert whole == told[0]  # nothing else is missing


def test_what_describe_advises_can_be_pasted(leafwise, people, tmp_path):
    model = tmp_path / "m.json"
    complaint = leafwise("learn", people, "-o", model).complaint
    assert "--ignore id,name, or take every value as a state with --states id,name" in complaint
    assert not model.exists()
    learned = leafwise("learn", people, "-o", model, "--ignore", "id,name")
    assert learned.code == 0
    assert learned.stderr.splitlines()[0].endswith("semicolons, decimal commas, UTF-8")
    assert any(line.startswith("bins    age (") for line in learned.stderr.splitlines())
    assert leafwise("learn", people, "-o", model, "--states", "*", "-q").code == 0


# Reading


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--delimiter", "tab"], "a\tb\nx\ty\n"),
        (["--delimiter", ";", "--decimal", ","], "a;b\n1,5;x\n2,5;y\n"),
        (["--encoding", "latin-1"], "a,b\né,y\n"),
        (["--na", "unknown,n.a.,-", "--missing", "state"], "a,b\nunknown,x\nn.a.,-\n"),
        (["--columns", "a,b"], "a,b,id\nx,y,1\n"),
        (["--columns", "*", "--ignore", "i*"], "a,b,id\nx,y,1\n"),
        (["--no-header"], "x,y\nx,z\n"),
        (["--bins", "none"], "a,b\n1.5,x\n2.5,y\n"),
        (["--bins", "a=auto,b=none"], "a,b\n1.5,2.5\n2.5,3.5\n"),
        (["--dates", "bins"], "a,b\n2024-01-02,x\n2024-01-03,y\n"),
    ],
)
def test_options_of_reading(leafwise, tmp_path, options, text):
    path = tmp_path / "a.csv"
    path.write_text(text, encoding="latin-1")
    assert leafwise("learn", path, "--json", *options).object["variables"] == 2


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--delimiter", "::"], "delimiter"),
        (["--encoding", "klingon"], "encoding"),
        (["--most-bytes", "much"], "500M"),
        (["--most-bytes", "0.5"], "500M"),
        (["--most-bytes", "1" + "0" * 400], "500M"),
        (["--ignore", "zip"], "correct the names"),
        (["--bins", "age=many"], "--bins none"),
        (["--missing", "unknown"], "unknown"),
    ],
)
def test_options_that_cannot_be(leafwise, data, options, word):
    assert word in leafwise("learn", data, "--json", *options).complaint


def test_limits_are_named_and_raised_by_an_option(leafwise, tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"0,1\n" * 5000))
    assert "allow more with --most-bytes" in leafwise("learn", path, "--json", "--most-bytes", "1k").complaint
    for most in ("1M", "100000000T"):
        assert leafwise("learn", path, "--json", "--most-bytes", most).object["cases"] == 5000


def test_several_files_patterns_and_unknown_endings(leafwise, data, tmp_path):
    other = tmp_path / "other.csv"
    other.write_bytes(data.read_bytes())
    assert leafwise("learn", data, other, "--json").object["cases"] == 800
    assert leafwise("learn", tmp_path / "*.csv", "--json").object["cases"] == 800
    model = tmp_path / "m.json"
    leafwise("learn", data, "-o", model, "-q")
    assert leafwise("evaluate", model, data, other, "--json").object["cases"] == 800
    assert leafwise("score", model, data, other, "--json").object["cases"] == 800
    book = tmp_path / "book.xlsx"
    book.write_bytes(b"PK")
    assert "book.xlsx' is a workbook" in leafwise("learn", book, "--json").complaint
    complaint = leafwise("sample", model, "-o", tmp_path / "s.xlsx").complaint
    assert "is a workbook: use a .csv file instead, or read and write it with pandas" in complaint
    assert "ends in '.foo'" in leafwise("predict", model, data, "--target", "rain", "-o", tmp_path / "p.foo").complaint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["book.xlsx", "garden.csv", "m.json", "other.csv"]


def test_standard_input_and_output(data, tmp_path):
    def piped(*arguments, given=b""):
        done = subprocess.run([*COMMAND, *arguments], input=given, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    model = piped("learn", "-", "-o", "-", given=data.read_bytes())
    assert json.loads(model)["format"] == "leafwise-network"
    assert b"4 variables" in piped("show", "-", given=model)
    (tmp_path / "m.json").write_bytes(model)
    rows = piped("predict", str(tmp_path / "m.json"), "-", "--target", "rain", "-o", "-", given=data.read_bytes())
    assert rows.count(b"\n") == 401
    assert piped("sample", "-", "-n", "5", "-o", "-", given=model).count(b"\n") == 6
    both = [str(tmp_path / "m.json")] * 2
    assert b"log likelihood, b less a" in piped("compare", *both, "--data", "-", given=data.read_bytes())


# Predict


def test_predict_writes_probabilities_for_every_row(leafwise, model, data, tmp_path):
    output = tmp_path / "out.csv"
    said = leafwise("predict", model, data, "--target", "wet grass", "-o", output)
    assert said.stdout == f"400 predictions of wet grass saved in {output}\n"
    rows = list(csv.DictReader(io.StringIO(output.read_text())))
    network = package.Network.load(model)
    found = network.predict(data, "wet grass")
    assert [row["wet grass"] for row in rows] == found.labels
    assert [[float(row["p(no)"]), float(row["p(yes)"])] for row in rows] == found.probabilities.tolist()
    one = network.query("wet grass", given={"cloudy": "no", "rain": "no", "sprinkler": "yes"})["wet grass"]["yes"]
    lines = data.read_text().splitlines()[1:]
    assert float(rows[[line.startswith("no,no,yes") for line in lines].index(True)]["p(yes)"]) == pytest.approx(one)
    for name in ("out.tsv", "out.csv.gz", "out.parquet"):
        assert (
            leafwise("predict", model, data, "--target", "rain", "-o", tmp_path / name, "--json").object["rows"] == 400
        )


@pytest.mark.parametrize("command", ["predict", "impute"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_read(leafwise, model, tmp_path, command):
    options = ["--target", "rain"] if command == "predict" else []
    complaint = leafwise(command, model, tmp_path / "none.csv", *options, "-o", tmp_path / "out.json").complaint
    assert "out.json' ends in '.json', which is no kind of data file here" in complaint


def test_new_labels_may_be_missing_cells_wherever_these_are_summed_over(leafwise, model, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("cloudy,rain,sprinkler,wet grass\nyes,,no,no\nno,heavy,yes,yes\n")
    hole = tmp_path / "hole.csv"
    hole.write_text(rows.read_text().replace("heavy", ""))
    for command, more in (
        (["evaluate", model], []),
        (["compare", model, model, "--data"], []),
        (["importance", model], ["--target", "wet grass"]),
        (["impute", model], []),
    ):
        complaint = leafwise(*command, rows, *more).complaint
        assert "unseen labels ('heavy')" in complaint
        assert complaint.rstrip().endswith("or take them as missing with --unseen missing")
        found = leafwise(*command, rows, *more, "--unseen", "missing")
        assert found.stdout == leafwise(*command, hole, *more).stdout


def test_predict_without_the_target_with_gaps_and_with_new_labels(leafwise, model, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("cloudy,rain,sprinkler\nyes,,no\nno,heavy,yes\n")
    complaint = leafwise("predict", model, rows, "--target", "wet grass").complaint
    assert "unseen labels ('heavy')" in complaint
    found = leafwise("predict", model, rows, "--target", "wet grass", "--unseen", "missing")
    assert found.stdout.splitlines()[0] == "wet grass,p(no),p(yes)"
    assert len(found.stdout.splitlines()) == 3
    own = tmp_path / "own.csv"  # whose cells of the target do not count, whatever they hold
    own.write_text("cloudy,rain,sprinkler,wet grass\nyes,,no,soaked\nno,heavy,yes,\n")
    assert leafwise("predict", model, own, "--target", "wet grass", "--unseen", "missing").stdout == found.stdout
    own.write_text(own.read_text().replace("heavy", ""))
    assert leafwise("predict", model, own, "--target", "wet grass").stdout == found.stdout
    assert "missing cells" in leafwise("predict", model, rows, "--target", "wet grass", "--missing", "error").complaint
    assert "no variable is called 'wet'" in leafwise("predict", model, rows, "--target", "wet").complaint
    assert "--json prints no" in leafwise("predict", model, rows, "--target", "rain", "--json").complaint


# Compare


def test_compare_two_networks(leafwise, model, data, tmp_path):
    other = tmp_path / "other.json"
    leafwise("learn", data, "-o", other, "--max-parents", 0, "-q")
    found = leafwise("compare", model, other, "--data", data, "--json").object
    n = len(package.Network.load(model).arcs)
    assert (found["structural_hamming_distance"], len(found["arcs"]["only_in_a"])) == (n, n)
    assert found["structural_hamming_distance_of_classes"] == n
    assert found["fits"]["b less a"]["mean_log_likelihood"] < 0 < found["fits"]["b less a"]["standard_error"]
    text = leafwise("compare", model, model).stdout
    assert "distance of arcs                 0" in text


# Completion and the explorer's port


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("query {model} --target ra", ["rain"]),
        ("query {model} --given sprinkler=", ["sprinkler=no", "sprinkler=yes"]),
        ("query {model} --given 'rain=no,sprinkler=y", ["rain=no,sprinkler=yes"]),
        ("query {model} --do sprinkler=y", ["sprinkler=yes"]),
        ("mpe {model} --target ra", ["rain"]),
        ("independence {model} rain spr", ["sprinkler"]),
        ("independence {model} rain sprinkler --given clo", ["cloudy"]),
        ("information {model} --target rain --candidate spr", ["sprinkler"]),
        ("importance {model} --target ra", ["rain"]),
        ("show {model} --node spr", ["sprinkler"]),
        ("predict {model} {data} --target clo", ["cloudy"]),
        ("learn {data} --ignore rain,spr", ["rain,sprinkler"]),
        ("learn {data} --target clo", ["cloudy"]),
        ("query nowhere.json --target ra", []),
    ],
)
def test_shells_complete_names_of_variables(model, data, words, wanted, monkeypatch, capfd):
    line = f"leafwise {words}".format(model=model, data=data)
    monkeypatch.setenv("COMP_LINE", line)
    monkeypatch.setenv("COMP_WORD", line.split()[-1])
    monkeypatch.setenv("_LEAFWISE_COMPLETE", "bash_complete")
    with pytest.raises(SystemExit):
        run([])
    assert [part.partition(",")[2] for part in capfd.readouterr().out.split()] == wanted


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("line", "words", "wanted"),
    [
        ("query MODEL --target ra", "query MODEL --target ra", ["rain"]),
        ("query MODEL --given sprinkler=", "query MODEL --given sprinkler =", ["no", "yes"]),
        ("query MODEL --given rain=no,sprinkler=y", "query MODEL --given rain = no,sprinkler = y", ["yes"]),
        ("query MODEL --given=rain=n", "query MODEL --given = rain = n", ["no"]),
        ("query MODEL --given ", "query MODEL --given ''", ["cloudy", "rain", "sprinkler", "wet grass"]),
    ],
)
def test_bash_splits_words_at_equals_signs(leafwise, model, line, words, wanted, tmp_path):
    """As bash does, which then replaces only what is behind the sign."""
    program = tmp_path / "leafwise"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m leafwise "$@"\n')
    program.chmod(0o755)
    script = f"""{leafwise("completion", "bash").stdout}
COMP_LINE='leafwise {line}' COMP_POINT=${{#COMP_LINE}}
COMP_WORDS=(leafwise {words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_leafwise_completion '{program}'
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    script = script.replace("MODEL", str(model))
    asked = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert asked.stdout.splitlines() == wanted


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_what_a_shell_needs(leafwise, shell):
    assert "_LEAFWISE_COMPLETE" in leafwise("completion", shell).stdout


def test_the_explorer_listens_where_it_is_told_and_opens_a_browser(model, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [*COMMAND, "explore", str(model), "--port", port], capture_output=True, text=True, check=False
        )
    assert (done.returncode, done.stdout) == (2, "")
    assert f"port {port} cannot be had" in done.stderr
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}.part && mv {seen}.part {seen}\n')
    browser.chmod(0o755)
    arguments = [*COMMAND, "explore", str(model), "--port", port, "--browser"]
    environment = os.environ | {"BROWSER": str(browser)}
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        for _ in range(200):
            if seen.exists():
                break
            subprocess.run(["sleep", "0.05"], check=True)
        process.terminate()
    assert address.startswith(f"http://127.0.0.1:{port}/")
    assert seen.read_text().strip() == address
