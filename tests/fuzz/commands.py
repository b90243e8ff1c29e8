"""Command lines: every command and option, with values that are right, wrong, at the edge or nonsense."""

import contextlib
import io
import json
import os
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random

import click
import numpy as np

import leafwise
from fuzz import folders
from fuzz.mutation import NUMBERS
from fuzz.network_files import sharing_networks
from leafwise.cli import cli, run
from leafwise.formats import json as own

SKIPPED = {"explore", "reproduce", "benchmark"}  # a server, and experiments that take minutes
TEXTS = [
    *("", "a", "b", "a=0", "a=0,b=1", "a=0|1", "a=0:0.5|1:2", "z=9", "=", ",", "a,b", "a,a", "uniform", "auto"),
    *("bdeu:1", "bdeu:1e308", "kappa:0.1", "kappa:1e-300", "network:model.json:5", "network:none:5", "CBM", "M"),
    *("CBIMORT", "OR", "T", "localhost:1", "tcp://127.0.0.1:1", "\x1b[31m", "é" * 500),
]
MOST = {"--networks": 50, "--rounds": 50, "--seconds": 2}


@cache
def folder() -> Path:
    """Files to name: data, models and others. It goes with the process."""
    place = folders.folder() / "commands"
    place.mkdir()
    table = leafwise.read(np.array([[k % 2, k % 3, (k // 2) % 2, (k * 7) % 5] for k in range(60)]))
    leafwise.data.encoding.write(table, place / "cases.csv")
    (place / "names.csv").write_text("a,b,c\n0,1,x\n1,,y\n0,0,x\n1,1,y\n")
    leafwise.learn(leafwise.read(place / "names.csv", missing="drop")).save(place / "model.json")
    leafwise.learn(table).save(place / "other.bif")
    leafwise.learn(leafwise.read(place / "names.csv", missing="drop"), networks=4).save(place / "mixture.json")
    leafwise.learn(leafwise.read(place / "names.csv", missing="drop"), lags=1).save(place / "dynamic.json")
    own.save(sharing_networks()[1], place / "shared.json")
    (place / "series.csv").write_text("who,when,a\n" + "".join(f"{k % 2},{k // 2},{k % 3}\n" for k in range(20)))
    (place / "bad.json").write_text('{"format": "leafwise-network"')
    (place / "empty.csv").write_text("")
    (place / "arcs.txt").write_text("a b\nb -> c\n")
    return place


def _path(random: Random) -> str:
    return random.choice(
        [
            *("cases.csv", "names.csv", "series.csv", "empty.csv", "none.csv", "arcs.txt", "."),
            *("model.json", "mixture.json", "mixture.json", "dynamic.json", "shared.json", "other.bif", "bad.json"),
        ]
    )


def _value(parameter: click.Parameter, random: Random) -> str:
    kind = parameter.type
    if random.random() < 0.08:
        return random.choice([*TEXTS, random.choice(NUMBERS).decode()])
    if isinstance(kind, click.Choice):
        return str(random.choice(list(kind.choices)))
    if isinstance(kind, click.types.IntParamType | click.types.FloatParamType):
        low = getattr(kind, "min", None) or 0
        return str(random.choice([low, low + 1, low - 1, 2, 7, 50, 0.5, -1]))
    if isinstance(kind, click.Path):
        output = "output" in (parameter.name or "") or parameter.name in ("target", "html")
        return random.choice(["out.json", "out.bif", "out.csv", "out.svg", "out.dot"]) if output else _path(random)
    return random.choice(TEXTS)


SOUND = {"model": "model.json", "data": "names.csv", "source": "model.json", "target": "out.bif"}
OFTEN = [  # what takes code that others do not
    *(
        f"query model.json --target a --given b=0 --method {method}"
        for method in ("exact", "weighting", "gibbs", "importance", "loopy")
    ),
    *(f"learn names.csv -o out.json --missing {how}" for how in ("infer", "state --hidden 2", "drop --networks 2")),
    *(f"learn names.csv -o out.json --missing infer --leaves {how}" for how in ("plain", "stacked")),
    *(f"learn cases.csv -o out.json --operators {how}" for how in ("CBIMO", "CBMR", "CBIMORT --threads 1")),
    *(f"learn cases.csv cases.csv -o out.json --leaves {how}" for how in ("average", "stacked")),
    "learn series.csv -o out.json --lags 1 --by who --time when",
    "learn series.csv -o out.json --lags 2 --leaves stacked",
    "learn names.csv -o out.json --missing state --networks 3 --target a",
    *("show mixture.json", "query mixture.json --target a --given b=0", "mpe mixture.json --given a=0"),
    *(f"{asks} mixture.json names.csv --missing unknown" for asks in ("evaluate", "predict --target a")),
    *("show shared.json", "show shared.json --node x2", "query shared.json --target x1 --given x2=0"),
    *("show dynamic.json", "unroll dynamic.json 4 -o out.json"),
    *(f"impute model.json names.csv --how {how}" for how in ("draw", "most-probable", "mean-probabilities")),
    "impute mixture.json names.csv",
    *(f"confidence names.csv --missing state --networks 2 --search {how}" for how in ("greedy", "tables", "recover")),
    "predict model.json names.csv --target a --missing unknown",
]


def warm_up() -> None:
    """Compile what commands call."""
    lines = [
        [name, *(SOUND.get(one.name or "", "model.json") for one in command.params if isinstance(one, click.Argument))]
        for name, command in cli.commands.items()
        if name not in SKIPPED
    ]
    for line in [*lines, *(text.split() for text in OFTEN)]:
        with contextlib.suppress(AssertionError):  # not all of them are sound
            _check_line(line)


def _arguments(random: Random) -> list[str]:
    """A command line; the arguments first, most of its options left out."""
    name, command = random.choice([item for item in sorted(cli.commands.items()) if item[0] not in SKIPPED])
    line = [name]
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            if random.random() < 0.95:
                usual = SOUND.get(parameter.name or "", "names.csv")
                line.append(usual if random.random() < 0.7 else _path(random))
        elif random.random() < 0.12:
            option = random.choice([*parameter.opts, *parameter.secondary_opts])
            line.append(option)
            if not getattr(parameter, "is_flag", False):
                line.append(_value(parameter, random))
    if random.random() < 0.5 and "--json" not in line:
        line.append("--json")
    return line


def check_command(random: Random) -> str:
    """Exit code 0, with JSON where that was asked for; or 2, one line on standard error, and nothing written."""
    return _check_line(_affordable(_arguments(random) if random.random() < 0.7 else _changed(random)))


def _affordable(line: list[str]) -> list[str]:
    """The line with fewer networks, rounds and seconds: whoever asks for 65,536 of them gets them."""
    found = list(line)
    for place, (option, value) in enumerate(pairwise(line), 1):
        if option in MOST and value.isdecimal() and int(value) > MOST[option]:
            found[place] = str(MOST[option])
    return found


def _changed(random: Random) -> list[str]:
    """A line of `OFTEN` with words of other lines, or other values, put in, exchanged or left out."""
    line, other = (random.choice(OFTEN).split() for _ in range(2))
    for _ in range(random.choice([0, 1, 1, 2, 3])):
        place = random.randrange(1, len(line) + 1)
        words = [random.choice([random.choice([*TEXTS, *other]), _path(random), random.choice(NUMBERS).decode()])]
        line[place : place + random.choice([0, 1, 1])] = random.choice([[], words, words, other[1:]])
    return line + ["--json"] * (random.random() < 0.3)


def _asks_for_json(line: list[str]) -> bool:
    """Whether there is a --json that is no name of a file."""
    return any(word == "--json" and before not in ("-o", "--output") for before, word in pairwise(line))


def _check_line(line: list[str]) -> str:
    place = folder()
    before = {path.name for path in place.iterdir()}
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace") for _ in range(2))
    here = Path.cwd()
    os.chdir(place)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(line)
    finally:
        os.chdir(here)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
    new = {path.name for path in place.iterdir()} - before
    for name in new:
        (place / name).unlink()
    assert code in (0, 2), (line, code)
    if code == 2:
        assert texts[0] == "", (line, texts[0][:200])
        assert texts[1].startswith("leafwise: "), (line, texts[1][:200])
        assert texts[1].count("\n") == 1, (line, texts[1][:300])
        packed = re.compile(r"[.]leafwise-[0-9a-f]+[.]cache")  # of data that were read, and it was asked for
        assert not [name for name in new if not ("--cache" in line and packed.fullmatch(name))], (line, new)
    elif _asks_for_json(line) and "--help" not in line and "-h" not in line and "--completion" not in line:
        assert isinstance(json.loads(texts[0]), dict), line
    return "accepted" if code == 0 else "refused"
