"""`leafwise explore`: a page to explore a network, served on this machine only."""

import os
import signal
import sys
import threading
import webbrowser
from pathlib import Path

import click

from leafwise.cli.learn import INTERRUPTED
from leafwise.cli.options import json_option, load_model, model_argument, print_json
from leafwise.cli.progress import telling


@click.command()
@model_argument
@click.option("--port", type=click.IntRange(1, 65535), metavar="N", help="Port to listen on.  [default: any free one]")
@click.option(
    "--browser/--no-browser", default=None, help="Open the page in a browser.  [default: if there is a screen]"
)
@json_option
def explore(model: Path, port: int | None, browser: bool | None, as_json: bool) -> int:
    """Explore the network MODEL in a browser: set evidence, and see the resulting probabilities.

    The page is served on this machine only, at an address with a secret token, until Ctrl-C.
    """
    from leafwise.explorer.server import Explorer, start

    with telling(quiet=as_json) as tell:
        tell(f"reading {model.name}")
        explorer = Explorer(load_model(model), model.name)
        try:
            address, server = start(explorer, port or 0)
        except OSError as error:
            raise ValueError(
                f"port {port} cannot be had ({error.strerror}): choose another, or leave --port out for a free one."
            ) from None
        tell("preparing the page")
        _ = explorer.page  # made now, so that the browser does not have to wait
    if as_json:
        print_json({"address": address})
    else:
        click.echo(f"{model.name} is at {address}\nCtrl-C stops.")
    if _has_screen() and not as_json if browser is None else browser:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()  # need not wait for the page
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also if a shell started it in the background
    server.run()  # returns at Ctrl-C
    server.close()
    return INTERRUPTED


def _has_screen() -> bool:
    """Whether there is a terminal, and a screen for a browser window: without one, a browser might use the terminal."""
    if not sys.stdout.isatty():
        return False
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
