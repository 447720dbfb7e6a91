"""The app in headless Chromium: it plays, obeys, asks nobody for anything, and keeps its pace."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.browser

ROOT = Path(__file__).parent.parent.parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def browser() -> Iterator:
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}",
               "--server.address=127.0.0.1"]  # fmt: skip
    server = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "COVERAGE_PROCESS_START": ""},
    )  # fmt: skip
    found = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(f"{found}/_stcore/health", timeout=1).close()
            break
        except OSError:
            assert time.monotonic() < deadline, "the app did not start"
            time.sleep(0.2)
    yield found
    server.terminate()
    server.wait(timeout=20)


@pytest.fixture
def page(browser, address: str) -> Iterator:
    """A page that notes errors of scripts and requests to anyone else."""
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    opened.faults = []
    opened.on("pageerror", lambda error: opened.faults.append(str(error)))
    opened.on(
        "request",
        lambda request: (
            None
            if request.url.startswith(
                (address, address.replace("http", "ws"), "data:", "blob:", "file:")
            )
            else opened.faults.append(f"outside request: {request.url}")
        ),
    )
    yield opened
    assert opened.faults == []
    opened.close()


def player(page):
    found = page.locator(".collsim").first
    found.wait_for(state="visible", timeout=60_000)
    return found


def moment(page) -> int:
    return int(player(page).get_attribute("data-time"))


def test_it_opens_playing_and_obeys_the_keyboard(page, address: str) -> None:
    page.goto(address)
    found = player(page)
    page.wait_for_function("document.querySelector('body') !== null")
    first = moment(page)
    page.wait_for_timeout(500)
    assert moment(page) > first
    found.focus()
    page.keyboard.press("Space")
    assert found.get_attribute("data-playing") == "false"
    page.keyboard.press("Home")
    assert moment(page) == 0
    page.keyboard.press("ArrowRight")
    step = moment(page)
    assert step > 0
    page.keyboard.press("ArrowRight")
    assert moment(page) > step
    page.keyboard.press("ArrowLeft")
    assert moment(page) == step
    page.keyboard.press("End")
    assert re.search(r"Done after .*rank \d is the last", found.locator(".said").inner_text())
    assert found.get_attribute("data-active") == "0"


def test_scrubbing_moves_both_ways(page, address: str) -> None:
    page.goto(address)
    found = player(page)
    found.focus()
    page.keyboard.press("Space")
    slider = found.locator("input[type=range]")
    for part in (8000, 2000):
        slider.evaluate(
            "(e, v) => { e.value = v; e.dispatchEvent(new Event('input', {bubbles: true})); }", part
        )
        shown = moment(page)
        assert shown == pytest.approx(part / 10000 * 5_882_000_000, rel=0.01)


def test_an_unrelated_rerun_does_not_restart_the_animation(page, address: str) -> None:
    page.goto(address)
    player(page).focus()
    page.keyboard.press("Space")
    page.keyboard.press("End")
    end = moment(page)
    page.get_by_text("Take it away").click()
    page.wait_for_timeout(1500)
    assert moment(page) == end


def test_a_link_restores_the_scenario_and_the_algorithm(page, address: str) -> None:
    page.goto(f"{address}/?scenario=ring&algorithm-broadcast=binomial")
    found = player(page)
    found.locator("h3 span", has_text="binomial").wait_for(timeout=30_000)
    assert "ring of 8 hosts" in found.locator("header").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["", "race", "curves", "check", "learn"])
def test_pages_open_in_both_themes_without_faults(
    browser, address: str, name: str, scheme: str
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(f"{address}/{name}")
    page.get_by_text("Scenario" if name != "learn" else "Lesson").first.wait_for(timeout=60_000)
    page.wait_for_timeout(1000)
    assert page.get_by_text("Traceback").count() == 0
    assert faults == []
    page.close()


RANKS = [(16, 1000), (64, 10_000), (256, 50_000)]


@pytest.mark.parametrize(("ranks", "messages"), RANKS)
def test_frames_keep_coming(page, tmp_path: Path, ranks: int, messages: int, capsys) -> None:
    """Frame rates are printed; only a stall fails."""
    segments = messages // (ranks - 1)
    scenario = tmp_path / "many.yaml"
    scenario.write_text(
        f"algorithm: chain\nranks: {ranks}\nnbytes: 16 MiB\nsegment: {(16 << 20) // segments}\n"
        "topology: {kind: star, bandwidth: 10 Gbit/s, latency: 1 us}\nnetwork: {sharing: fifo}\n"
    )
    target = tmp_path / "many.html"
    command = [sys.executable, "-m", "collsim", "play", str(scenario), "-o", str(target)]
    subprocess.run(command, check=True, capture_output=True)
    page.goto(f"file://{target}")
    player(page)
    frames = page.evaluate(
        """() => new Promise((done) => {
            const start = performance.now(); let frames = 0;
            const count = (now) => {
                frames += 1;
                if (now - start > 2000) done(frames / (now - start) * 1000);
                else requestAnimationFrame(count);
            };
            requestAnimationFrame(count);
        })"""
    )
    with capsys.disabled():
        print(f"\n{ranks} ranks, {messages:,} messages: {frames:.0f} frames/s, "
              f"{target.stat().st_size / 1024:,.0f} KiB")  # fmt: skip
    assert frames > 5
