"""`relaunch dashboard` in Chromium, over a world that is the same each time."""

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from fakes.dashboard_world import DashboardWorld, serving
from relaunch_cli.dashboard.guard import Guard

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

REBOUND = "attacker.example"
# As in tests/browser/test_web_page.py: a busy machine is no error.
PATIENCE_MILLISECONDS = 120_000.0


class Dashboards:
    """Opens pages of a world in Chromium, and keeps what must not happen in `troubles`."""

    def __init__(self, browser: "Browser", world: DashboardWorld, guard: Guard) -> None:
        self.browser = browser
        self.world = world
        self.guard = guard
        self.troubles: list[str] = []

    def open(self, path: str = "/", **options: Any) -> "Page":
        """Let a browser in, and open a page."""
        page = self.enter(**options).new_page()
        page.goto(self.guard.url)
        page.wait_for_url("**/")
        if path != "/":
            page.goto(f"http://127.0.0.1:{self.guard.port}{path}")
        return page

    def enter(self, **options: Any) -> "BrowserContext":
        """Return a profile of its own, whose pages are watched."""
        context = self.browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        context.on("page", self._watch)
        return context

    def _watch(self, page: "Page") -> None:
        page.on("console", lambda said: self.troubles.append(said.text) if said.type in {"error", "warning"} else None)
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("dialog", lambda dialog: (self.troubles.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: self._check(request.url))

    def _check(self, url: str) -> None:
        if urlsplit(url).netloc != f"127.0.0.1:{self.guard.port}":
            self.troubles.append(f"asked {url}")


@pytest.fixture(scope="session")
def chromium() -> "Iterator[Browser]":
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only .venv-browser has it

    found = shutil.which("chromium")
    if found is None:
        pytest.fail("Chromium is missing: apt-get install --no-install-recommends chromium")
    # Nothing is downloaded. What a page asks a host that was rebound reaches loopback.
    arguments = ["--no-sandbox", f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def world() -> DashboardWorld:
    return DashboardWorld()


@pytest.fixture
def dashboards(chromium: "Browser", world: DashboardWorld) -> Iterator[Dashboards]:
    with serving(world) as guard:
        opened = Dashboards(chromium, world, guard)
        yield opened
        for context in chromium.contexts:
            context.close()
    assert opened.troubles == []
