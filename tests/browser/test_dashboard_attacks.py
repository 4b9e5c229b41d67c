"""Pages of others in the browser of somebody who looks at the dashboard: they read nothing, and change nothing."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from browser.conftest import REBOUND
from fakes.dashboard_world import DashboardWorld
from fakes.loopback import LoopbackHandler, serve_on_loopback

if TYPE_CHECKING:
    from browser.conftest import Dashboards

pytestmark = pytest.mark.browser

PAGE = Path(__file__).with_name("dashboard_attacks.html")


class Page(LoopbackHandler):
    """A page of somebody else."""

    def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
        self.respond(200, PAGE.read_bytes(), [("Content-Type", "text/html")])


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", REBOUND])
def test_a_page_of_another_origin_reads_and_changes_nothing(
    dashboards: "Dashboards", world: DashboardWorld, host: str
) -> None:
    victim = dashboards.open()
    assert victim.locator("h1").inner_text() == "Jobs"
    own = f"http://127.0.0.1:{dashboards.guard.port}"
    with serve_on_loopback(Page) as url:
        page = victim.context.new_page()
        page.goto(url.replace("127.0.0.1", host))
        read = page.evaluate("([own, job]) => attack(own, job)", [own, "wait-budget"])
        # A form is a navigation, whose cookies and Origin are others than those of a script.
        page.evaluate("url => submit(url)", f"{own}/jobs/wait-budget/cancel")
        page.wait_for_url(f"{own}/**")
        assert page.locator("h1").inner_text() == "Refused"

    assert len(read) == 8
    assert set(read.values()) == {""}
    assert world.jobs.job("wait-budget").state == "WAITING"
    # Chromium notes each refusal in the console.
    dashboards.troubles.clear()


def test_a_name_that_is_rebound_to_the_dashboard_is_refused(dashboards: "Dashboards") -> None:
    page = dashboards.open()

    page.goto(f"http://{REBOUND}:{dashboards.guard.port}/")

    assert page.locator("h1").inner_text() == "Refused"
    assert "wait-budget" not in page.content()
    dashboards.troubles.clear()


def test_the_cookie_is_read_by_no_script(dashboards: "Dashboards") -> None:
    assert dashboards.open().evaluate("document.cookie") == ""
