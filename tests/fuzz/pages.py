"""Requests of the explorer's page, at the door of the application."""

import io
import json
from functools import cache
from random import Random

from random_networks import random_network

from fuzz.mutation import mutated
from leafwise.explorer.server import Explorer

PATHS = [
    *["/token/marginals"] * 15,
    *["/token/explanation"] * 5,
    "/token/explanation",
    "/token/",
    "/",
    "//",
    "/\udcff/x",
]
BODIES = [b'{"given": {}}', b'{"given": {"0": [1], "2": [0, 1]}}', b'{"given": {"1": [2]}}', b"[]", b"{}", b'"x"']


@cache
def explorer() -> Explorer:
    """One application for all requests."""
    return Explorer(random_network(3, (2, 3, 2)), "network", "token")


def check_request(random: Random) -> str:
    """Every request gets a status that is known and a body of JSON, or the page."""
    body = random.choice(BODIES)
    if random.random() < 0.7:
        body = mutated(body, random, [b"null", b"1e999", b"[[", b'"0"', b"given", b"{"], BODIES)
    environ = {
        "SERVER_PORT": "80",
        "HTTP_HOST": random.choice(["127.0.0.1:80"] * 30 + ["localhost:80", "evil.org", "", None]),
        "PATH_INFO": random.choice(
            ["/token/marginals"] * 5 + ["/token/explanation", "/token/", "/", "//", "/\udcff/x"]
        ),
        "REQUEST_METHOD": random.choice(["POST"] * 30 + ["GET", "HEAD", "PUT", ""]),
        "CONTENT_TYPE": random.choice(["application/json"] * 30 + ["application/json; charset=x", "", "text/plain"]),
        "HTTP_ORIGIN": random.choice([*["http://127.0.0.1:80", "null"] * 6, "http://evil.org"]),
        "wsgi.input": io.BytesIO(body),
    }
    environ = {key: value for key, value in environ.items() if value is not None}
    statuses: list[str] = []
    content = b"".join(explorer()(environ, lambda status, _headers: statuses.append(status)))
    status = statuses[0].split()[0]
    assert status in {"200", "400", "403", "404", "405", "413", "415"}, statuses
    if not content.startswith(b"<!"):
        assert isinstance(json.loads(content), dict)
    return "accepted" if status == "200" else "refused"
