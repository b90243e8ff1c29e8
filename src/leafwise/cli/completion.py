"""`leafwise completion`: the script by which a shell completes commands, options, files and names of variables."""

import os
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)


@add_completion_class
class _BashComplete(BashComplete):
    """Bash splits words at = and : as well, and replaces only the last part: the line itself has the words whole."""

    source_template = """\
%(complete_func)s() {
    local IFS=$'\\n' response completion type value

    response=$(env COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORD="${COMP_WORDS[COMP_CWORD]}" \
%(complete_var)s=bash_complete "$1")

    for completion in $response; do
        IFS=',' read -r type value <<< "$completion"

        if [[ $type == 'dir' ]]; then
            COMPREPLY=()
            compopt -o dirnames
        elif [[ $type == 'file' ]]; then
            COMPREPLY=()
            compopt -o default
        elif [[ $type == 'plain' ]]; then
            COMPREPLY+=("$value")
        fi
    done

    return 0
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        *words, last = split_arg_string(os.environ["COMP_LINE"] + "x")  # after a blank, a new word begins
        return words[1:], last[:-1]

    def format_completion(self, item: "CompletionItem[Any]") -> str:
        last, part = self.get_completion_args()[1], os.environ["COMP_WORD"].lstrip("\"'")
        if last.startswith("-"):
            last = last.partition("=")[2]  # click completes the value alone
        part = part if part.strip("=:@") else ""  # the cursor is behind these signs
        before = last.removesuffix(part) if last.endswith(part) else ""
        return f"{item.type},{item.value.removeprefix(before)}"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script by which SHELL completes leafwise's commands, options, files, and names of a model's variables.

    For bash: leafwise completion bash > ~/.leafwise-completion, and in ~/.bashrc: source ~/.leafwise-completion.
    """
    from leafwise.cli import cli

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "leafwise", "_LEAFWISE_COMPLETE").source())
