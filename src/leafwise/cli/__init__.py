"""The command line: the only code that prints, and that imports click and rich.

Large modules are imported only when a command runs, so that `leafwise --version` and `leafwise --help` are fast. Exit
codes: 0 success, 2 bad input (reported in one line on standard error, and nothing is written), 130 interrupted.
"""

import io
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

import click

from leafwise.cli.benchmark import benchmark
from leafwise.cli.compare import compare
from leafwise.cli.completion import completion
from leafwise.cli.confidence import confidence
from leafwise.cli.convert import convert
from leafwise.cli.describe import describe
from leafwise.cli.explore import explore
from leafwise.cli.impute import impute
from leafwise.cli.learn import INTERRUPTED, learn
from leafwise.cli.models import evaluate, sample, score, show
from leafwise.cli.options import say
from leafwise.cli.predict import predict
from leafwise.cli.questions import mpe, query
from leafwise.cli.reproduce import reproduce
from leafwise.cli.structure import importance, independence, information
from leafwise.cli.unroll import unroll
from leafwise.errors import in_options
from leafwise.report.signs import printable

BAD_INPUT = 2


@click.group(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="leafwise", prog_name="leafwise", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Learn Bayesian networks whose conditional distributions are decision graphs."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


COMMANDS = (
    *(describe, learn, show, explore, query, mpe, predict, impute, sample, evaluate, score),
    *(confidence, compare, convert, unroll, completion, reproduce, benchmark),
)
for command in COMMANDS:
    cli.add_command(command)
for command in (independence, information, importance):
    cli.add_command(command)


def main() -> NoReturn:
    """Run the command line of this process, and exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # characters that a terminal cannot show are replaced
            stream.reconfigure(errors="replace")
    if isinstance(out := sys.stdout, io.TextIOWrapper):
        encoding, at_once = out.encoding, out.line_buffering
        sys.stdout = sys.__stdout__ = _Plain(out.detach(), encoding, "replace", line_buffering=at_once)  # type: ignore[misc]
    sys.exit(run())


class _Plain(io.TextIOWrapper):
    """Standard output without control characters from data; tables are written to its buffer, as they are."""

    def write(self, text: str) -> int:
        return super().write(printable(text, kept="\n\t"))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; errors become one line on standard error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = lambda message, *_: _note(message)
            code = cli.main(args=arguments, prog_name="leafwise", standalone_mode=False)
    except click.ClickException as error:
        return _fail(_usage_message(error))
    except click.Abort:
        say("leafwise: interrupted: nothing was written.")
        return INTERRUPTED
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
    except MemoryError:
        return _fail("there is not enough memory for this: use fewer cases or fewer variables.")
    except (ValueError, TypeError) as error:
        return _fail(in_options(error))
    return code if isinstance(code, int) else 0


def _usage_message(error: click.ClickException) -> str:
    message = error.format_message()
    if isinstance(error, click.UsageError) and error.ctx is not None:
        return f"{message} See '{error.ctx.command_path} --help'."
    return message


def _note(message: Warning | str) -> None:
    """Print a warning of the library as a note."""
    say(f"leafwise: note: {in_options(message)}")


def _fail(message: str) -> int:
    with suppress(OSError):  # the terminal may be gone
        say(f"leafwise: {printable(' '.join(message.split()))}")
    return BAD_INPUT
