"""The explorer in a real browser: what a person does, and the numbers the page then shows.

Needs a Chromium, named by CHROMIUM or found on the path, and the package playwright to drive it.
"""

import os
import re
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from serving import serving

import leafwise
from leafwise.data.table import Variable
from leafwise.decision_graph import DecisionGraph
from leafwise.examples import alarm
from leafwise.explorer import server
from leafwise.explorer.answers import marginals
from leafwise.explorer.page import page as page_text
from leafwise.explorer.server import Explorer
from leafwise.inference.exact import Limits
from leafwise.network import Network, Node

CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"))), None
)
playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
pytest.importorskip("waitress", reason="the server needs the extra explore")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: install it, or name it in CHROMIUM")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    """A page without network access but to the address it came from; whatever it complains of fails the test."""
    page = browser.new_page(viewport={"width": 1300, "height": 850})
    complaints, requests = [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    yield page
    assert complaints == []
    assert all(re.match(r"file:|data:|blob:|http://127\.0\.0\.1:", url) for url in requests), requests
    page.close()


@pytest.fixture(scope="module")
def learned():
    return leafwise.learn(leafwise.sample(alarm(), 300, seed=1))


@pytest.fixture(scope="module")
def address(learned):
    with serving(Explorer(learned, "alarm.json")) as address:
        yield address


def write(network: Network, folder: Path) -> str:
    file = folder / "page.html"
    file.write_text(page_text(network, "model.json"), encoding="utf-8")
    return file.as_uri()


def choose(page, name):
    page.fill("#search", name)
    page.keyboard.press("Enter")
    playwright.expect(page.locator("#chosen")).to_have_text(name)


def settle(page):
    page.wait_for_selector('#evidence[aria-busy="false"]')


def shown(page):
    """The states of the chosen variable and their probabilities, as a person reads them."""
    names = page.locator(".states .name").all_inner_texts()
    shares = page.locator(".states .share").all_inner_texts()
    return {name: float(share.split()[0]) / 100 for name, share in zip(names, shares, strict=True)}


def given(network, target, **evidence):
    return leafwise.query(network, target, given=evidence)[target]


def test_a_consensus_tells_how_sure_its_arcs_are(page, tmp_path):
    cases = leafwise.sample(alarm(), 300, seed=1)
    found = leafwise.confidence(cases, 3, search=leafwise.LeafSearch())
    network = found.network(cases)
    page.goto(write(network, tmp_path))
    (parent, child), *_ = network.named_arcs
    choose(page, child)
    told = dict(zip(*(page.locator(f"#details {kind}").all_inner_texts() for kind in ("dt", "dd")), strict=True))
    share = found.connected[found.names.index(parent), found.names.index(child)]
    assert told[parent] == f"{100 * share:.1f} %"
    playwright.expect(page.locator("#key")).to_contain_text("wider arcs are surer")


def test_a_page_from_a_file(page, learned, tmp_path):
    page.goto(write(learned, tmp_path))
    playwright.expect(page.locator("#sizes")).to_contain_text("37 variables")
    choose(page, "TPR")
    assert shown(page) == pytest.approx(given(learned, "TPR"), abs=0.0006)
    node = learned.nodes[learned.names.index("TPR")]
    parents = page.locator(".chips.parents button").all_inner_texts()
    assert parents == [learned.names[parent] for parent in node.parents]
    assert page.locator(".graph svg .leaf:not(.named)").count() == node.graph.n_leaves
    assert page.locator("dt").all_inner_texts() == ["tests", "leaves", "parameters", "log score", "share of the score"]
    page.click(f".chips.parents button >> text={parents[0]}")
    playwright.expect(page.locator("#chosen")).to_have_text(parents[0])
    assert "TPR" in page.locator(".chips.children button").all_inner_texts()
    assert page.locator("#evidence").is_hidden()
    assert page.locator("button.state").count() == 0


def test_search_with_the_keyboard_alone(page, learned, tmp_path):
    page.goto(write(learned, tmp_path))
    page.keyboard.press("/")
    page.keyboard.type("co")
    hits = page.locator("#found [role=option]").all_inner_texts()
    assert hits == ["CO", *[name for name in learned.names if "CO" in name and name != "CO"]]
    page.keyboard.press("ArrowDown")
    chosen = page.locator("#" + page.get_attribute("#search", "aria-activedescendant")).inner_text()
    page.keyboard.press("Enter")
    playwright.expect(page.locator("#chosen")).to_have_text(chosen)
    page.fill("#search", "nothing like it")
    playwright.expect(page.locator("#found")).to_contain_text("no variable")
    page.keyboard.press("Escape")
    assert page.locator("#found").is_hidden()


def test_clicking_zooming_and_moving_on_the_map(page, tmp_path):
    single = Node((), DecisionGraph.single(), np.array([[0.5, 0.5]]))
    page.goto(write(Network((Variable("lonely", ("no", "yes")),), (single,)), tmp_path))
    box = page.locator("#canvas").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2 + 10
    page.mouse.click(*middle)
    playwright.expect(page.locator("#chosen")).to_have_text("lonely")
    before = page.locator("#canvas").screenshot()
    page.mouse.wheel(0, -300)
    page.click("#larger")
    assert page.locator("#canvas").screenshot() != before
    page.click("#fit")
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] + 150, middle[1] + 90, steps=4)
    page.mouse.up()
    page.locator("#canvas").focus()
    for key in ("ArrowLeft", "ArrowUp", "+", "-"):
        page.keyboard.press(key)
    page.keyboard.press("0")
    page.mouse.move(5, 5)
    assert page.locator("#canvas").screenshot()


def test_neighbours_themes_and_the_large_graph(page, learned, tmp_path):
    page.goto(write(learned, tmp_path))
    assert page.locator("#around").is_disabled()
    choose(page, "TPR")
    whole = page.locator("#canvas").screenshot()
    page.click("#around")
    assert page.get_attribute("#around", "aria-pressed") == "true"
    assert page.locator("#canvas").screenshot() != whole
    colours = set()
    for _ in range(3):
        page.click("#theme")
        colours.add(page.evaluate("() => getComputedStyle(document.body).backgroundColor"))
    assert len(colours) == 2
    page.click(".row button")
    assert page.locator("dialog[open] svg .leaf").count() > 1
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    assert page.url.endswith("#TPR")
    page.reload()
    playwright.expect(page.locator("#chosen")).to_have_text("TPR")


def test_evidence_is_followed_by_all_marginals(page, learned, address):
    page.goto(address)
    settle(page)
    choose(page, "BP")
    assert shown(page) == pytest.approx(given(learned, "BP"), abs=0.0006)
    page.click("button.state >> text=LOW")
    settle(page)
    playwright.expect(page.locator("#method")).to_contain_text("exact")
    assert shown(page)["LOW"] == 1
    assert page.get_attribute("button.state >> nth=0", "aria-pressed") == "true"
    for name in ("TPR", "CO", "HISTORY"):
        choose(page, name)
        assert shown(page) == pytest.approx(given(learned, name, BP="LOW"), abs=0.0006)
    choose(page, "CO")
    page.click("button.state >> text=LOW")
    settle(page)
    page.click("button.state >> text=HIGH", modifiers=["Shift"])
    settle(page)
    playwright.expect(page.locator("#given")).to_contain_text("CO = LOW or HIGH")
    choose(page, "TPR")
    assert shown(page) == pytest.approx(given(learned, "TPR", BP="LOW", CO=["LOW", "HIGH"]), abs=0.0006)
    page.keyboard.press("Escape")
    page.click("#undo")
    settle(page)
    assert shown(page) == pytest.approx(given(learned, "TPR", BP="LOW", CO="LOW"), abs=0.0006)
    page.locator("#canvas").focus()
    page.keyboard.press("Control+z")
    settle(page)
    assert shown(page) == pytest.approx(given(learned, "TPR", BP="LOW"), abs=0.0006)
    page.click("#given button")
    settle(page)
    assert shown(page) == pytest.approx(given(learned, "TPR"), abs=0.0006)
    assert page.locator("#clear").is_disabled()


def test_the_most_probable_explanation(page, learned, address):
    page.goto(address)
    settle(page)
    choose(page, "BP")
    page.locator("button.state").first.focus()
    page.keyboard.press("Enter")  # the keyboard sets evidence too
    settle(page)
    page.click("#explain")
    page.wait_for_selector("dialog[open] tbody")
    rows = [row.split("\t") for row in page.locator("dialog tbody tr").all_inner_texts()]
    best = leafwise.explain(learned, given={"BP": "LOW"})
    assert dict(rows) == {name: state for name, state in best.states.items() if name != "BP"}
    assert f"{best.log_posterior:.3f}" in page.locator("dialog").inner_text()


def test_impossible_evidence_says_so(page):
    sure = Node((), DecisionGraph.single(), np.array([[1.0, 0.0]]))
    with serving(Explorer(Network((Variable("x", ("no", "yes")),), (sure,)), "sure.json")) as address:
        page.goto(address)
        settle(page)
        choose(page, "x")
        page.click("button.state >> text=yes")
        playwright.expect(page.locator("#method.problem")).to_contain_text("impossible")
        page.click("#undo")
        settle(page)
        assert shown(page) == {"no": 1, "yes": 0}


def many(n):
    """A chain of so many variables, with names that would break a page if they could."""
    variables = tuple(Variable(f"<img src=x onerror=alert({k})></script>{k}", ("<b>no</b>", "yes")) for k in range(n))
    first = Node((), DecisionGraph.single(), np.array([[0.5, 0.5]]))
    split = DecisionGraph.complete
    nodes = [Node((k // 2,), split([k // 2], [2] * n), np.array([[0.9, 0.1], [0.2, 0.8]])) for k in range(1, n)]
    return Network(variables, (first, *nodes))


def test_many_variables_and_hostile_names(page, tmp_path):
    network = many(1500)
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    page.goto(write(network, tmp_path))
    playwright.expect(page.locator("#sizes")).to_contain_text("1,500 variables")
    choose(page, network.names[1234])
    assert page.locator(".graph svg .leaf:not(.named)").count() == 2
    assert page.locator("img").count() == 0
    frames = page.evaluate(
        """() => new Promise((done) => {
          const canvas = document.getElementById("canvas"), began = performance.now();
          let frames = 0;
          const step = () => {
            const deltaY = frames % 20 < 10 ? -80 : 80;
            canvas.dispatchEvent(new WheelEvent("wheel", {deltaY, clientX: 300, clientY: 300}));
            if (++frames < 40) requestAnimationFrame(step); else done(1000 * frames / (performance.now() - began));
          };
          step();
        })"""
    )
    assert frames > 8  # a second, on a machine that does other things too


def test_answers_from_samples_are_marked_with_their_errors(page, learned, address, monkeypatch):
    sampled = partial(marginals, limits=Limits(operations=1), n_samples=2000)
    monkeypatch.setitem(server._QUESTIONS, "marginals", sampled)
    page.goto(address)
    settle(page)
    playwright.expect(page.locator("#method")).to_contain_text("Approximate (weighted samples worth")
    choose(page, "CO")
    exact = given(learned, "CO")
    for line in page.locator(".states .state").all_inner_texts():
        name, share, error = re.fullmatch(r"(\w+)\s+([\d.]+) ± ([\d.]+) %", line).groups()
        assert abs(float(share) / 100 - exact[name]) < 5 * float(error) / 100 + 0.001
    playwright.expect(page.locator("#details")).to_contain_text("Approximate, from samples")


def test_what_was_before_the_evidence_is_marked(page, learned, address):
    page.goto(address)
    settle(page)
    choose(page, "TPR")
    assert page.locator(".states .before").count() == 0
    before = shown(page)
    choose(page, "BP")
    page.click("button.state >> text=LOW")
    settle(page)
    playwright.expect(page.locator("#method")).to_contain_text("from no evidence to this evidence")
    choose(page, "TPR")
    assert page.locator(".states .before").count() > 0
    for line in page.locator(".states .share").all_inner_texts():
        was = re.search(r"was ([\d.]+) %", line)
        assert was is None or float(was[1]) / 100 in [pytest.approx(share, abs=0.0006) for share in before.values()]
    move = page.locator(".moves li").first.inner_text()
    assert re.fullmatch(r"\w+ \w+ [\d.]+ → [\d.]+ %", move)


def test_a_large_network_begins_with_groups(page, tmp_path):
    page.goto(write(many(600), tmp_path))
    assert page.get_attribute("#groups", "aria-pressed") == "true"
    playwright.expect(page.locator("#hint")).to_contain_text("Click a group")
    page.click("#everything")
    assert page.get_attribute("#everything", "aria-pressed") == "true"
    everything = page.locator("#canvas").screenshot()
    choose(page, many(600).names[321])
    assert page.locator("#canvas").screenshot() != everything
    page.click("#groups")
    assert page.get_attribute("#groups", "aria-pressed") == "true"
    choose(page, many(600).names[321])
    playwright.expect(page.locator("#hint")).to_contain_text("of the group of")


def test_what_is_folded_opens_and_closes(page, tmp_path):
    graph = DecisionGraph.complete([0, 1, 2], [4] * 4)
    node = Node((0, 1, 2), graph, np.random.default_rng(1).dirichlet([1.0] * 4, 64))
    coin = Node((), DecisionGraph.single(), np.full((1, 4), 0.25))
    variables = tuple(Variable(f"x{k}", ("a", "b", "c", "d")) for k in range(4))
    page.goto(write(Network(variables, (coin, coin, coin, node)), tmp_path))
    choose(page, "x3")
    folds = page.locator("#details [data-fold]").count()
    assert folds == 13
    page.locator("#details [data-fold]").first.click()
    assert page.locator("dialog[open] .leaf:not(.named)").count() == 4
    page.click("dialog[open] >> text=Back up")
    assert page.locator("dialog[open] [data-fold]").count() == folds
