"""The page in a real browser: live curves, no gap and nothing twice over a restart, figures as in /metrics."""

import itertools
import os
import re
import shutil
import time

import pytest

pytest.importorskip("apsw", reason="needs the extra 'serve'")
pytest.importorskip("playwright", reason="needs playwright (the extra 'dev')")

from harness import PATIENCE, Editor, Server, free_port
from playwright.sync_api import sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the PATH; apt-get install chromium")
V = "/v1/models/fusion"
VOTERS = ("ann", "bob", "cy", "dee")


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def server(tmp_path, nursery):
    with Server(tmp_path / "data", "--port", str(free_port()), nursery=nursery) as server:
        made = server.call("POST", "/v1/models?wait=300", {"name": "fusion", "learner": "winnow(1.5)", "kind": "votes"})
        assert made[0] == 201
        yield server


@pytest.fixture
def page(browser, server):
    context = browser.new_context(viewport={"width": 1100, "height": 1300})
    context.set_default_timeout(1000 * PATIENCE)
    page = context.new_page()
    page.faults = []
    page.elsewhere = []
    page.on("console", lambda message: page.faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("request", lambda request: page.elsewhere.append(request.url) if "127.0.0.1" not in request.url else None)
    yield page
    context.close()


def teach(server, first, count):
    """Trials whose label ann always names and bob half the time."""
    for start in range(first, first + count, 100):
        items = []
        for i in range(start, min(start + 100, first + count)):
            label = f"c{i * 7 % 3}"
            votes = {"ann": label, "bob": label if i % 2 else "c0", "cy": "c1", "dee": f"c{i * i % 3}"}
            items.append({"id": f"t{i}", "votes": votes, "label": label})
        assert server.call("POST", f"{V}/learn/batch", {"items": items})[0] == 200


def shown(page, id):
    """A figure; None as long as there is none."""
    text = page.locator(f"#{id}").inner_text()
    return None if text == "–" else int(text.replace(",", ""))


def until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "the page does not get there"
        time.sleep(0.05)


def metric(server, name):
    text = server.call("GET", "/metrics")[1].decode()
    return float(re.search(rf'^{name}{{model="fusion"}} (\S+)$', text, re.MULTILINE)[1])


def trials_drawn(page):
    return page.evaluate("data[0]")


def keep_picture(page, name):
    """For the eyes: LINMAX_SCREENSHOTS names a folder."""
    folder = os.environ.get("LINMAX_SCREENSHOTS")
    if folder:
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def test_curves_advance_and_survive_a_restart(server, page):
    teach(server, 0, 300)
    page.goto(server.address)
    until(lambda: shown(page, "trials") == 300)
    teach(server, 300, 200)
    until(lambda: shown(page, "trials") == 500)
    assert shown(page, "mistakes") == metric(server, "linmax_mistakes_total") > 0
    assert shown(page, "trials") == metric(server, "linmax_trials_total")
    before = trials_drawn(page)
    keep_picture(page, "light")

    server.kill()
    until(lambda: "lost" in page.locator("#state").inner_text())
    server.start()
    teach(server, 500, 150)
    until(lambda: shown(page, "trials") == 650)
    drawn = trials_drawn(page)
    assert drawn[: len(before)] == before
    assert drawn == sorted(set(drawn)), "a point was drawn twice"
    assert max(b - a for a, b in itertools.pairwise(drawn)) <= 1, "a point is missing"
    assert page.evaluate("data[1].at(-1)") == metric(server, "linmax_mistakes_total")
    curve = server.call("GET", f"{V}/curve?points=100000")[1]["points"]
    assert page.evaluate("data[0].map((_, i) => data.map((column) => column[i]))") == curve
    painted = page.evaluate("""() => {
        const canvas = document.querySelector("#curve canvas");
        const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        return pixels.filter((_, i) => i % 4 === 3).some((alpha) => alpha > 0);
    }""")
    assert painted
    assert page.elsewhere == []
    while_down = ("ERR_CONNECTION_RE", "ERR_INCOMPLETE", "503")  # refused or reset, and while it starts
    assert [fault for fault in page.faults if not any(word in fault for word in while_down)] == []


def test_weights_errors_and_words(server, page):
    teach(server, 0, 100)
    for _ in range(3):
        server.call("POST", f"{V}/label", {"id": "nobody", "label": "c0"})
    page.goto(server.address)
    until(lambda: page.locator("#weights tr").count() > 0)
    assert page.locator("#weights th").first.inner_text() == "ann"
    error = page.locator("#errors li").first.inner_text()
    assert "label: 404" in error
    assert error.endswith("(3 times)")
    assert page.locator("#errors li").count() == 1  # asking whether it is ready yet is no error
    words = page.locator("#curve-words").inner_text()
    assert words.startswith("After 100 trials:")
    assert "the best voter 0" in words
    page.locator("summary").click()
    until(lambda: page.locator("#rows tr").count() >= 25)
    until(lambda: page.locator("#learner").inner_text() == "winnow(1.5), votes, 3 classes")


def test_by_keyboard_and_in_the_dark(server, page):
    server.call("POST", "/v1/models?wait=300", {"name": "other", "learner": "perceptron"})
    page.emulate_media(color_scheme="dark")
    page.goto(server.address)
    until(lambda: page.locator("#models button").count() == 2)
    teach(server, 0, 100)
    until(lambda: shown(page, "trials") == 100)
    keep_picture(page, "dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert sum(map(int, re.findall(r"\d+", dark)[:3])) < 150
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.name") == "other"
    page.keyboard.press("Enter")
    until(lambda: page.locator("#model-title").inner_text() == "other")
    assert page.locator("#models [aria-current=true]").inner_text().startswith("other")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert page.locator("#learner").inner_text() == "perceptron, attributes, 0 classes"
    until(lambda: shown(page, "trials") == 0)  # nothing is left of the other model
    assert page.locator("#curve-words").inner_text() == "No labelled trial yet."
    assert page.locator("#weights tr").count() == 0
    assert page.faults == []


def test_before_there_is_a_model(tmp_path, nursery, browser):
    with Server(tmp_path / "data", nursery=nursery) as server:
        page = browser.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.goto(server.address)
        until(lambda: page.locator("#first").is_visible())
        assert f"{server.address}/v1/models" in page.locator("#first").inner_text()
        server.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})
        until(lambda: page.locator("#model-title").inner_text() == "m")
        assert not page.locator("#first").is_visible()
        page.close()


def test_operator_alarms(tmp_path, nursery, browser):
    """Models in quarantine and incidents are shown, and are no reason to propose a first model."""
    with Server(tmp_path / "data", nursery=nursery) as server:
        assert server.call("POST", "/v1/models?wait=300", {"name": "broken", "learner": "perceptron"})[0] == 201
        for label in "xy":
            assert server.call("POST", "/v1/models/broken/learn", {"attributes": {"a": 1}, "label": label})[0] == 200
        server.stop()
        database = Editor(tmp_path / "data" / "log.sqlite")
        database.execute("UPDATE events SET crc = 0 WHERE seq = 3")
        database.execute("INSERT INTO incidents (at, message) VALUES (0, 'the log has lost <b>its</b> end')")
        database.close()
        for path in (tmp_path / "data" / "snapshots").iterdir():
            path.unlink()
        server.start()
        page = browser.new_page()
        page.goto(server.address)
        until(lambda: "event 3 is damaged" in page.locator("#quarantine").inner_text())
        assert "broken: event 3 is damaged: it does not fit" in page.locator("#quarantine").inner_text()
        until(lambda: "the log has lost <b>its</b> end" in page.locator("#incidents").inner_text())
        assert page.locator("#no-models").is_hidden()
        page.close()


def test_narrow(server, page):
    teach(server, 0, 100)
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto(server.address)
    until(lambda: shown(page, "trials") == 100)
    keep_picture(page, "narrow")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_with_a_key(server, page):
    from linmax.service.keys import KeyFile

    teach(server, 0, 50)
    key = KeyFile(server.data).add("viewer", ["predict"])
    until(lambda: server.call("GET", V)[0] == 401)
    page.goto(server.address)
    page.locator("#key").fill("lmx_wrong")
    page.keyboard.press("Enter")
    until(lambda: "a valid key is needed" in page.locator("#login-error").inner_text())
    keep_picture(page, "key")
    page.locator("#key").fill(key)
    page.keyboard.press("Enter")
    until(lambda: page.locator("#board").is_visible() and shown(page, "trials") == 50)
    assert page.evaluate("document.cookie") == ""
    page.locator("#leave").click()
    until(lambda: page.locator("#login").is_visible())
