"""The explorer's server in a thread, as long as a test needs it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from leafwise.explorer.server import Explorer, start


@contextmanager
def serving(explorer: Explorer) -> Iterator[str]:
    """The address. Its sockets, with those a browser keeps open, are closed by the thread that waits for them."""
    from waitress import wasyncore

    address, server = start(explorer)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    yield address
    with suppress(OSError):  # it may be closed already
        server.trigger.pull_trigger(lambda: wasyncore.close_all(server._map))
    thread.join(10)
    assert not thread.is_alive()
    server.task_dispatcher.shutdown()
