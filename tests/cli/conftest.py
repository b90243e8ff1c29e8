"""A small table, a network learned from it, and a way to run a command line as a person would."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from leafwise.cli import run


@dataclass(frozen=True)
class Outcome:
    code: int
    stdout: str
    stderr: str

    @property
    def object(self) -> dict[str, Any]:
        """Standard output as one JSON object and nothing else."""
        value = json.loads(self.stdout)
        assert isinstance(value, dict)
        return value

    @property
    def complaint(self) -> str:
        """The one line of an error: nothing on standard output, exit code 2."""
        assert (self.code, self.stdout) == (2, ""), self
        assert self.stderr.startswith("leafwise: "), self.stderr
        assert self.stderr.count("\n") == 1, self.stderr
        return self.stderr


Leafwise = Callable[..., Outcome]


@pytest.fixture
def leafwise(capfd: pytest.CaptureFixture[str]) -> Leafwise:
    def call(*arguments: object) -> Outcome:
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        return Outcome(code, *capfd.readouterr())

    return call


def garden(n_cases: int) -> str:
    """Cases where wet grass needs rain or the sprinkler: a decision graph with two leaves says it all."""
    draw = random.Random(1)
    lines = ["cloudy,rain,sprinkler,wet grass"]
    for _ in range(n_cases):
        cloudy = draw.random() < 0.5
        rain = draw.random() < (0.8 if cloudy else 0.1)
        sprinkler = draw.random() < (0.1 if cloudy else 0.6)
        wet = draw.random() < (0.95 if rain or sprinkler else 0.05)
        lines.append(",".join("yes" if x else "no" for x in (cloudy, rain, sprinkler, wet)))
    return "\n".join(lines) + "\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "garden.csv"
    path.write_text(garden(400))
    return path


@pytest.fixture
def model(leafwise: Leafwise, data: Path, tmp_path: Path) -> Path:
    path = tmp_path / "model.json"
    assert leafwise("learn", data, "-o", path, "--quiet").code == 0
    return path
