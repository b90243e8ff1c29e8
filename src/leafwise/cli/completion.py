"""`leafwise completion`: the script by which a shell completes commands, options, files and names of variables."""

import click
from click.shell_completion import get_completion_class


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
