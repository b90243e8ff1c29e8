"""The command that serves a page to explore a network, on this machine only."""

import signal
from pathlib import Path

import click

from leafwise.cli.learn import INTERRUPTED
from leafwise.cli.options import json_option, model_argument, print_json
from leafwise.cli.progress import telling


@click.command()
@model_argument
@json_option
def explore(model: Path, as_json: bool) -> int:
    """Explore the network MODEL in a browser: set evidence, and see what follows.

    The page is served on this machine only, at an address with a secret token, until Ctrl-C.
    """
    from leafwise.explorer.server import Explorer, start
    from leafwise.formats.files import load

    with telling(quiet=as_json) as tell:
        tell(f"reading {model.name}")
        explorer = Explorer(load(model), model.name)
        address, server = start(explorer)
        tell("preparing the page")
        _ = explorer.page  # made now, so that the browser need not wait
    if as_json:
        print_json({"address": address})
    else:
        click.echo(f"{model.name} is at {address}\nCtrl-C stops.")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell began it in the background
    server.run()  # returns at Ctrl-C
    server.close()
    return INTERRUPTED
