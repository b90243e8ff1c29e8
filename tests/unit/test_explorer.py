"""The explorer page and its server."""

import base64
import gzip
import http.client
import json
import math
import re
import socket
from urllib.parse import urlsplit
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from network_strategies import networks
from serving import serving

import leafwise
from leafwise.data.table import Variable
from leafwise.decision_graph import DecisionGraph
from leafwise.examples import alarm
from leafwise.explorer.answers import explanation, marginals, read_given
from leafwise.explorer.page import page
from leafwise.explorer.server import Explorer, start
from leafwise.inference.exact import Limits
from leafwise.network import Network, Node


def small(name="x", labels=("no", "yes")):
    x, y = Variable(name, labels), Variable("y", ("no", "yes"))
    first = Node.learned((), DecisionGraph.single(), np.array([[30, 10]]), np.ones((1, 2)))
    second = Node.learned((0,), DecisionGraph.complete([0], [2]), np.array([[25, 5], [1, 9]]), np.ones((2, 2)))
    return Network((x, y), (first, second), "uniform", "kappa:0.1")


def read_page(text):
    """The data and the decision graphs in a page."""
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    graphs = re.search(r'<script type="text/plain" id="graphs">(.*?)</script>', text, re.DOTALL)
    return json.loads(data[1]), json.loads(gzip.decompress(base64.b64decode(graphs[1])))


def test_a_page_holds_everything():
    network = small()
    data, graphs = read_page(page(network, "model.json"))
    assert [variable["name"] for variable in data["variables"]] == ["x", "y"]
    assert [variable["parents"] for variable in data["variables"]] == [[], [0]]
    assert data["marginals"]["method"] == "exact"
    assert data["marginals"]["values"][1] == pytest.approx(list(leafwise.query(network, "y")["y"].values()), abs=1e-7)
    assert len(graphs) == 2
    assert "leaf 1" in graphs[1][0]
    assert 0 < data["strengths"][0] < 1
    assert data["clusters"] is None
    scores = [variable["score"] for variable in data["variables"]]
    beta = [math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b) for a, b in ((26, 6), (2, 10))]
    assert scores[1] == pytest.approx(sum(beta) + 2 * math.log(0.1))
    assert not data["live"]


def test_a_page_reaches_for_nothing():
    text = page(small(), "model.json")
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text
    assert not re.search(r"""(src|href)=["'](?!data:,)""", text)
    assert "connect-src 'none'" in text
    assert "connect-src 'self'" in page(small(), "model.json", live=True)


HOSTILE = '</script><script>alert(1)</script><!--<img src=x onerror="alert(2)">\u2028%%script%%'


def test_names_cannot_break_out_of_the_page():
    text = page(small(HOSTILE, (HOSTILE, "<b>")), HOSTILE)
    plain = page(small(), "model.json")
    for sign in ("<script", "</script", "<!--", "<img"):
        assert text.count(sign) == plain.count(sign)
    data, graphs = read_page(text)
    assert data["variables"][0]["name"] == HOSTILE
    for (graph,) in graphs:
        tags = {found.tag.split("}")[1] for found in ElementTree.fromstring(graph).iter()}
        assert tags <= {"svg", "title", "g", "rect", "path", "text"}


@settings(max_examples=15)
@given(networks())
def test_any_network_has_a_page(network):
    data, graphs = read_page(page(network, "model.json", live=True))
    assert [variable["name"] for variable in data["variables"]] == list(network.names)
    assert len(data["routes"]) == len(network.arcs)
    for (graph,) in graphs:
        ElementTree.fromstring(graph)


def test_a_network_of_one_target_has_no_marginals():
    network = small()
    data, graphs = read_page(page(Network(network.variables, (None, network.nodes[1])), "model.json"))
    assert "only given" in data["marginals"]["problem"]
    assert graphs[0][0].startswith("<pre>")
    assert data["strengths"] == [None]
    assert data["variables"][0]["score"] is None


def test_marginals_are_those_of_the_library():
    network = alarm()
    found = marginals(network, {"BP": ["LOW"], "CO": ["LOW", "NORMAL"]})
    answer = leafwise.query(network, list(network.names), given={"BP": "LOW", "CO": ["LOW", "NORMAL"]})
    assert found["method"] == "exact"
    for mine, theirs in zip(found["values"], answer.distributions, strict=True):
        assert mine == pytest.approx(theirs.tolist(), abs=1e-7)


def test_marginals_that_are_too_costly_are_sampled_and_say_so():
    found = marginals(small(), {"y": ["yes"]}, Limits(operations=1), 2000)
    assert found["method"] == "weighting"
    exact = leafwise.query(small(), "x", given={"y": "yes"}).distributions[0]
    assert abs(found["values"][0][1] - exact[1]) < 5 * found["errors"][0][1]
    assert found["worth"] > 100
    found = explanation(small(), {}, Limits(operations=1))
    assert found["states"] == explanation(small(), {})["states"]
    assert found["note"].endswith("multiplications, and the limit is 1.0e+00: give more evidence.")


def test_a_sampler_that_finds_no_case_gives_way_to_the_next():
    rare, copy = np.array([[1 - 1e-7, 1e-7]]), Node((0,), DecisionGraph.complete([0], [2]), np.eye(2))
    x, y = Variable("x", ("no", "yes")), Variable("y", ("no", "yes"))
    network = Network((x, y), (Node((), DecisionGraph.single(), rare), copy))
    assert marginals(network, {"y": ["yes"]}, Limits(operations=1), 2000)["values"][0] == [0.0, 1.0]


def test_the_explanation_is_that_of_the_library():
    found = explanation(small(), {"y": ["yes"]})
    assert found["states"] == [1, 1]
    assert found["log_posterior"] == pytest.approx(leafwise.explain(small(), given={"y": "yes"}).log_posterior)


@pytest.mark.parametrize(
    "asked",
    [
        None,
        [],
        {},
        {"given": []},
        {"given": {"x": [0]}},
        {"given": {"2": [0]}},
        {"given": {"-1": [0]}},
        {"given": {"0": []}},
        {"given": {"0": [2]}},
        {"given": {"0": [-1]}},
        {"given": {"0": [True]}},
        {"given": {"0": "01"}},
        {"given": {"0": [0.5]}},
    ],
)
def test_evidence_that_is_none(asked):
    with pytest.raises(ValueError, match=r": (send|use)"):
        read_given(small(), asked)


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("waitress", reason="the server needs the extra explore")
    explorer = Explorer(small(), "model.json")
    with serving(explorer) as address:
        yield explorer, urlsplit(address).port


def ask(server, method, path, body=None, **headers):
    explorer, port = server
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.putrequest(method, path.replace("TOKEN", explorer.token), skip_host=True)
    headers = {"Host": f"127.0.0.1:{port}", "Content-Type": "application/json", **headers}
    content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    for key, value in {"Content-Length": len(content), **headers}.items():
        if value is not None:
            connection.putheader(key, str(value))
    try:
        connection.endheaders(content)
        reply = connection.getresponse()
        return reply.status, reply.read().decode(), reply
    finally:
        connection.close()


def test_the_page_needs_its_token(server):
    status, text, reply = ask(server, "GET", "/TOKEN/")
    assert status == 200
    assert read_page(text)[0]["live"]
    assert reply.getheader("Referrer-Policy") == "no-referrer"
    assert reply.getheader("Cache-Control") == "no-store"
    assert reply.getheader("Server") is None
    for path in ("/", "/TOKENx/", "/x", "/favicon.ico", "/../TOKEN/", "/%00", "/marginals"):
        status, text, _ = ask(server, "GET", path)
        assert (path, status) == (path, 403)
        assert server[0].token not in text


def test_the_server_knows_its_name(server):
    port = server[1]
    assert ask(server, "GET", "/TOKEN/", Host=f"localhost:{port}")[0] == 200
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1",
        f"127.0.0.1:{port + 1}",
        f"127.0.0.1.evil:{port}",
        "",
    ):
        assert ask(server, "GET", "/TOKEN/", Host=host)[0] == 403
    assert ask(server, "GET", "/TOKEN/", Host=None)[0] in (400, 403)
    evil = {"Host": "evil.example", "X-Forwarded-Host": f"127.0.0.1:{port}"}
    assert ask(server, "GET", "/TOKEN/", **evil)[0] == 403
    assert ask(server, "POST", "/TOKEN/marginals", {"given": {}}, Origin="http://evil.example")[0] == 403
    assert ask(server, "POST", "/TOKEN/marginals", {"given": {}}, Origin=f"http://127.0.0.1:{port}")[0] == 200


def test_methods_and_paths(server):
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"):
        assert ask(server, method, "/TOKEN/")[0] == 405
        assert ask(server, method, "/TOKEN/")[0] == 405
    for method in ("GET", "PUT", "OPTIONS"):
        assert ask(server, method, "/TOKEN/marginals", {"given": {}})[0] == 405
    for path in ("/TOKEN/x", "/TOKEN/marginals/", "/TOKEN//", "/TOKEN/../", "/TOKEN/page.js"):
        assert ask(server, "GET", path)[0] == 404


def test_questions_and_answers(server):
    status, text, _ = ask(server, "POST", "/TOKEN/marginals", {"given": {"1": [1]}})
    assert status == 200
    exact = leafwise.query(small(), "x", given={"y": "yes"}).distributions[0]
    assert json.loads(text)["values"][0] == pytest.approx(exact.tolist(), abs=1e-7)
    status, text, _ = ask(server, "POST", "/TOKEN/explanation", {"given": {"1": [1]}})
    assert (status, json.loads(text)["states"]) == (200, [1, 1])


def test_questions_that_are_none(server):
    assert ask(server, "POST", "/TOKEN/marginals", b"{")[0] == 400
    assert ask(server, "POST", "/TOKEN/marginals", b"\xff")[0] == 400
    assert ask(server, "POST", "/TOKEN/marginals", {"given": {"7": [0]}})[0] == 400
    assert ask(server, "POST", "/TOKEN/marginals", {"given": {}}, **{"Content-Type": "text/plain"})[0] == 415
    assert ask(server, "POST", "/TOKEN/marginals", **{"Content-Length": 2**21})[0] == 413


def test_impossible_evidence_is_answered():
    sure = Node((), DecisionGraph.single(), np.array([[1.0, 0.0]]))
    explorer = Explorer(Network((Variable("x", ("no", "yes")),), (sure,)), "sure.json")
    assert "impossible" in explorer.answer("marginals", {"given": {"0": [1]}})["problem"]


def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "waitress", None)
    with pytest.raises(ValueError, match="leafwise\\[explore\\]"):
        start(Explorer(small(), "model.json"))


def test_large_networks_are_grouped():
    n = 300
    coin = Node((), DecisionGraph.single(), np.array([[0.5, 0.5]]))
    copies = [Node((k - 1,), DecisionGraph.complete([k - 1], [2] * n), np.eye(2) * 0.8 + 0.1) for k in range(1, n - 2)]
    variables = tuple(Variable(f"x{k}", ("no", "yes")) for k in range(n))
    data, _ = read_page(page(Network(variables, (coin, *copies, coin, coin)), "chain.json", live=True))
    groups = data["clusters"]
    assert sorted(v for group in groups for v in group["members"]) == list(range(n))
    assert 5 < len(groups) < 60
    assert groups[-1]["members"] == [n - 2, n - 1]
    for group in groups:
        assert group["head"] in group["members"]
        assert len(group["places"]) == len(group["members"])
    links = {(min(k, other), max(k, other)) for k, group in enumerate(groups) for other, _ in group["links"]}
    assert len(links) == len(groups) - 2  # a chain of groups, and those without arcs


def test_large_graphs_are_folded():
    n_states = [4] * 5
    graph = DecisionGraph.complete([0, 1, 2, 3], n_states)
    node = Node((0, 1, 2, 3), graph, np.random.default_rng(1).dirichlet([1.0] * 4, 256))
    coin = Node((), DecisionGraph.single(), np.full((1, 4), 0.25))
    variables = tuple(Variable(f"x{k}", ("a", "b", "c", "d")) for k in range(5))
    _, graphs = read_page(page(Network(variables, (coin,) * 4 + (node,)), "wide.json", live=True))
    drawings = graphs[4]
    seen, todo = set(), [0]
    while todo:
        number = todo.pop()
        if number not in seen:
            seen.add(number)
            todo += [int(fold) for fold in re.findall(r'data-fold="(\d+)"', drawings[number])]
    assert seen == set(range(len(drawings)))
    shown = {int(leaf) for text in drawings for leaf in re.findall(r">leaf (\d+)<", text)}
    assert shown == set(range(256))
    assert max(len(re.findall(r"<rect", text)) for text in drawings) < 400


def test_deep_json_is_a_bad_request(server):
    deep = b"[" * 100_000 + b"]" * 100_000
    for body in (deep, b'{"given": ' + deep + b"}", b'{"given": {"0": ' + b"[" * 900 + b"]" * 900 + b"}}"):
        status, text, _ = ask(server, "POST", "/TOKEN/marginals", body)
        assert status == 400, text
        assert json.loads(text)["problem"]
    assert ask(server, "POST", "/TOKEN/marginals", {"given": {}})[0] == 200


def test_idle_connections_do_not_keep_others_out(server):
    idle = [socket.create_connection(("127.0.0.1", server[1])) for _ in range(150)]
    try:
        assert ask(server, "POST", "/TOKEN/marginals", {"given": {}})[0] == 200
    finally:
        for connection in idle:
            connection.close()


def test_answers_from_samples_bring_intervals_and_warnings():
    found = marginals(small(), {"y": ["yes"]}, Limits(operations=1), n_samples=2000)
    assert found["method"] == "weighting"
    for values, (low, high) in zip(found["values"], found["intervals"], strict=True):
        assert all(a <= p <= b for a, p, b in zip(low, values, high, strict=True))
    assert found["warnings"] == []
