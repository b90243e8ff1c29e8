"""The explorer's server: on the loopback address, with a token in its URL; the only module that imports waitress.

Other pages in the same browser, and other users of the same machine, can reach the port. So every request must name
this host (a name that someone points at 127.0.0.1 is another host) and the token, which only the printed address
contains.
"""

import hmac
import json
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from leafwise.explorer.answers import Given, explanation, marginals, read_given
from leafwise.explorer.page import page
from leafwise.network import Network

HOST = "127.0.0.1"
_MOST_BYTES = 2**20
_MOST_CONNECTIONS, _IDLE_SECONDS = 500, 10  # idle connections are closed
_HEADERS = [
    ("Cache-Control", "no-store"),
    ("Referrer-Policy", "no-referrer"),  # the address contains the token
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
]
_REASONS = {
    200: "OK", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
    413: "Content Too Large", 415: "Unsupported Media Type",
}  # fmt: skip
_QUESTIONS: dict[str, Callable[[Network, Given], dict[str, Any]]] = {"marginals": marginals, "explanation": explanation}
StartResponse = Callable[..., Any]


@dataclass(frozen=True)
class Refusal(Exception):
    """A request that is refused, and why."""

    status: int
    reason: str


@dataclass(frozen=True, eq=False)
class Explorer:
    """The page of a network and its queries, as a WSGI application."""

    network: Network
    name: str
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @cached_property
    def page(self) -> str:
        """The page, generated once."""
        return page(self.network, self.name, live=True)

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        try:
            kind, body = self._answer(environ)
            status = 200
        except Refusal as refusal:
            status, kind, body = refusal.status, "application/json", json.dumps({"problem": refusal.reason})
        content = body.encode()
        head = [("Content-Type", f"{kind}; charset=utf-8"), ("Content-Length", str(len(content))), *_HEADERS]
        start_response(f"{status} {_REASONS[status]}", head)
        return [content]

    def _answer(self, environ: dict[str, Any]) -> tuple[str, str]:
        here = {f"{name}:{environ['SERVER_PORT']}" for name in (HOST, "localhost")}
        if environ.get("HTTP_HOST") not in here:
            raise Refusal(403, "This is not the host that was asked for.")
        if environ.get("HTTP_ORIGIN", "null") not in {"null", *(f"http://{name}" for name in here)}:
            raise Refusal(403, "Another page may not ask.")
        token, _, path = str(environ.get("PATH_INFO", "")).removeprefix("/").partition("/")
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode()):
            raise Refusal(403, "The address lacks its token: open the one that leafwise explore printed.")
        return self._question(path, environ) if path else self._page(environ)

    def _page(self, environ: dict[str, Any]) -> tuple[str, str]:
        if environ["REQUEST_METHOD"] != "GET":
            raise Refusal(405, "The page is there to be read.")
        return "text/html", self.page

    def _question(self, path: str, environ: dict[str, Any]) -> tuple[str, str]:
        if path not in _QUESTIONS:
            raise Refusal(404, "There is nothing at this address.")
        if environ["REQUEST_METHOD"] != "POST":
            raise Refusal(405, "Questions are posted.")
        if environ.get("CONTENT_TYPE", "").partition(";")[0].strip() != "application/json":
            raise Refusal(415, "Questions are JSON.")
        try:
            answer = self.answer(path, json.loads(environ["wsgi.input"].read(_MOST_BYTES)))
        except (ValueError, RecursionError) as error:  # a RecursionError if it is deeply nested
            raise Refusal(400, str(error)) from None
        return "application/json", json.dumps(answer, allow_nan=False)

    def answer(self, question: str, asked: Any) -> dict[str, Any]:
        """The answer to a query, or why there is none: impossible evidence, or too costly."""
        given = read_given(self.network, asked)
        try:
            return _QUESTIONS[question](self.network, given)
        except ValueError as error:
            return {"problem": str(error)}


def start(explorer: Explorer, port: int = 0) -> tuple[str, Any]:
    """The address, at this port or a free one, and a server, which answers during `run()` until Ctrl-C.

    `close()` stops it.
    """
    try:
        import waitress
    except ModuleNotFoundError:
        raise ValueError(
            "leafwise explore needs the package waitress, which is not installed: pip install 'leafwise[explore]'."
        ) from None
    server = waitress.create_server(
        explorer,
        host=HOST,
        port=port,
        threads=4,
        ident="",
        max_request_body_size=_MOST_BYTES,
        clear_untrusted_proxy_headers=True,
        connection_limit=_MOST_CONNECTIONS,
        channel_timeout=_IDLE_SECONDS,
        cleanup_interval=_IDLE_SECONDS,
        asyncore_use_poll=True,
    )
    return f"http://{HOST}:{server.effective_port}/{explorer.token}/", server
