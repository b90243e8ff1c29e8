"""Every page of the documentation is run: Python, and command lines with what they print.

A page is run from top to bottom in a folder and a namespace of its own. In fences called python and pycon is code, in
the latter with its results, which must come out. In fences called console are command lines after $, and what they
print. Commands elsewhere, and those that take long or never end, are checked for being there with their options.
"""

import doctest
import importlib.util
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from leafwise.cli import cli, run

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"^ {4,}((?:leafwise|python -m benchmarks) .*)$", re.MULTILINE)
ONLY_PARSED = {"explore", "reproduce", "benchmark"}
HEAVY = {"pgmpy"}  # packages that the tests do not ask for: blocks that import them run where they are installed


@dataclass(frozen=True)
class Block:
    kind: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        indent = len(match[1])
        body = "".join(line[indent:] if line.strip() else line for line in match[3].splitlines(keepends=True))
        yield Block(match[2], body, text.count("\n", 0, match.start()) + 1)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder: a page makes the files that it needs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_does_what_it_says(page: Path, capfd: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        where = f"{page.relative_to(ROOT)}, line {block.line}"
        if block.kind == "python" and not needs_what_is_not_here(block.text):
            exec(compile(block.text, where, "exec"), namespace)
        elif block.kind == "pycon":
            check_session(block, where, namespace)
        elif block.kind == "console":
            for command, printed in commands(block.text):
                check_command(command, printed, where, capfd)


def needs_what_is_not_here(code: str) -> bool:
    return any(f"import {name}" in code and importlib.util.find_spec(name) is None for name in HEAVY)


def check_session(block: Block, where: str, namespace: dict[str, Any]) -> None:
    session = doctest.DocTestParser().get_doctest(block.text, namespace, where, where, block.line)
    session.globs = namespace  # what a block defines, later ones see
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(session, out=report.append, clear_globs=False)
    assert not report, "".join(report)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Command lines and what they print."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield command, printed


def check_command(command: str, printed: str, where: str, capfd: pytest.CaptureFixture[str]) -> None:
    program, *arguments = shlex.split(command, comments=True)
    if program in ("pip", "make"):
        return
    assert program == "leafwise", f"{where}: {command}"
    if arguments[0] in ONLY_PARSED:
        parse(arguments, where)
        return
    capfd.readouterr()
    code = run(arguments)
    out = "".join(capfd.readouterr())
    assert code == (2 if printed.startswith("leafwise: ") else 0), f"{where}: {command}: {out}"
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert not printed or doctest.OutputChecker().check_output(printed, out, flags), f"{where}: {command}:\n{out}"


def parse(arguments: list[str], where: str) -> None:
    """Whether there is such a command with such options; files need not be there."""
    command: click.Command = cli
    while isinstance(command, click.Group):
        name, *arguments = arguments
        assert name in command.commands, f"{where}: no command {name!r}"
        command = command.commands[name]
    context = click.Context(command)
    try:
        command.make_parser(context).parse_args(list(arguments))
    except click.UsageError as error:
        pytest.fail(f"{where}: {' '.join(arguments)}: {error.format_message()}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_passing_are_there(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    assert not re.search(r"^ {4}(>>>|from|import) ", text, re.MULTILINE), "code is run only in fences"
    for line in INDENTED.findall(text):
        program, *arguments = re.sub(r"[\[\]]", "", re.split(r" {3,}|  # ", line)[0]).split()
        if program == "leafwise":
            parse(arguments, f"{page.relative_to(ROOT)}: {line}")
        elif not arguments[2].startswith("-"):
            assert (ROOT / "benchmarks" / f"{arguments[2]}.py").is_file(), line


def test_what_is_wrong_is_found(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssertionError, match="Expected"):
        check_session(Block("pycon", ">>> 1 + 1\n3\n", 1), "here", {})
    with pytest.raises(AssertionError, match="leafwise --version"):
        check_command("leafwise --version", "something else", "here", capfd)
    with pytest.raises(pytest.fail.Exception, match="No such option"):
        parse(["learn", "--no-such-option"], "here")
    assert [block.kind for block in blocks(PAGES[0])].count("python") == 2
