"""`relaunch dashboard` as people use it: with a mouse, with keys alone, on a phone, while jobs go on."""

from typing import TYPE_CHECKING

import pytest

from fakes.dashboard_world import HOSTILE
from relaunch.core.jobs.state import JobState

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from browser.conftest import Dashboards

pytestmark = pytest.mark.browser


def states(page: "Page") -> list[str]:
    return page.locator("td .state").all_inner_texts()


def shows(page: "Page", selector: str, text: str) -> None:
    """Wait until an element has a text: `wait_for_function` would be refused as the page's own code is."""
    page.locator(selector).filter(has_text=text).first.wait_for(state="attached")


def test_the_list_has_all_jobs_and_filters_them(dashboards: "Dashboards") -> None:
    page = dashboards.open()
    assert len(states(page)) == 11
    assert page.locator("h2", has_text="Open").inner_text().split()[:2] == ["Open", "6"]

    page.get_by_label("State").select_option("failed")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**/?state=failed*")
    assert states(page) == ["FAILED", "FAILED"]

    page.get_by_role("link", name="all").click()
    page.get_by_label("Accepted within").fill("a while")
    page.keyboard.press("Enter")
    page.wait_for_url("**since=a+while*")
    assert "30m, 12h or 7d" in page.inner_text("main")
    # The one answer that is an error here.
    assert "400" in dashboards.troubles.pop()


def test_a_job_is_cancelled_by_its_form(dashboards: "Dashboards") -> None:
    page = dashboards.open(f"/jobs/{dashboards.world.running}")
    page.get_by_role("link", name="Cancel…").click()
    page.get_by_label("Reason").fill(HOSTILE)
    page.get_by_role("button", name="Cancel the job").click()

    page.wait_for_url("**/jobs/*?note=*")
    assert (
        page.locator(".note").inner_text()
        == "its task is being stopped, and has time to save; then the job is CANCELLED"
    )
    assert dashboards.world.jobs.job(dashboards.world.running).cancel_requested.startswith(HOSTILE)
    assert page.get_by_role("link", name="Cancel…").count() == 0


def test_a_job_that_has_ended_is_retried_once_however_often_the_form_is_sent(dashboards: "Dashboards") -> None:
    page = dashboards.open("/jobs/failed-1f2e/retry")
    before = len(dashboards.world.jobs.load_open(100))
    page.get_by_role("button", name="Retry the job").dblclick()
    page.wait_for_url("**/jobs/resnet-*?note=*")

    assert page.locator(".note").inner_text() == "it goes on where failed-1f2e ended"
    assert len(dashboards.world.jobs.load_open(100)) == before + 1


def test_a_job_is_submitted_and_a_bad_input_is_the_error_of_the_command(dashboards: "Dashboards") -> None:
    page = dashboards.open("/definitions")
    page.get_by_role("row", name="bert").get_by_role("link", name="Submit…").click()
    page.get_by_label("epochs").fill("many")
    page.get_by_role("button", name="Submit the job").click()
    assert "epochs" in page.locator(".big").inner_text()
    assert "400" in dashboards.troubles.pop()

    page.go_back()
    page.get_by_label("epochs").fill("12")
    # Empty is a value, as `--input seed=` is.
    page.get_by_label("seed").fill("")
    page.get_by_role("button", name="Submit the job").click()
    page.wait_for_url("**/jobs/bert-*")
    assert dashboards.world.jobs.job(page.locator("h1").inner_text()).inputs == {"epochs": "12", "seed": ""}


def test_an_open_page_follows_its_job_and_leaves_alone_what_its_reader_does(dashboards: "Dashboards") -> None:
    world = dashboards.world
    page = dashboards.open(f"/jobs/{world.running}")
    page.evaluate("window.isTheSame = true")
    newest = page.locator("#selections details").first
    newest.locator("summary").click()
    assert newest.get_attribute("open") is None
    page.locator("#selections details summary").last.focus()

    world.clock.advance(600)
    world.save(world.running, 9_000)
    shows(page, "#answers", "9,000")
    world.finish(world.task(world.running))
    shows(page, "#job-head .state", "SUCCEEDED")

    assert page.evaluate("window.isTheSame")
    assert newest.get_attribute("open") is None
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    assert page.locator("#summary").inner_text().startswith(f"{world.running} is SUCCEEDED")


def test_an_open_list_follows_while_a_link_in_it_has_the_focus(dashboards: "Dashboards") -> None:
    world = dashboards.world
    page = dashboards.open()
    page.get_by_role("link", name="wait-budget").focus()

    world.change("wait-budget", state=JobState.CANCELLED, waiting=None, reason="by hand", ended_at=world.now())
    world.clock.advance(20)
    shows(page, "#jobs", "by hand")

    assert page.evaluate("document.activeElement.innerText") == "wait-budget"


def test_a_log_is_followed_and_is_text(dashboards: "Dashboards") -> None:
    world = dashboards.world
    page = dashboards.open(f"/jobs/{world.running}")
    shows(page, "#log", "epoch 1")
    shown = page.locator("#log").inner_text()
    assert HOSTILE in shown
    assert "\u202e" not in shown

    world.clock.advance(5)
    world.log(world.running, *(f"line {number}" for number in range(300)))
    shows(page, "#log", "line 299")
    assert page.evaluate(
        "(log => log.scrollTop + log.clientHeight >= log.scrollHeight - 8)(document.getElementById('log'))"
    )


def test_a_page_says_that_it_is_not_up_to_date_and_then_that_it_is(dashboards: "Dashboards") -> None:
    world = dashboards.world
    page = dashboards.open()
    listing = world.jobs.list_jobs
    world.jobs.list_jobs = lambda *_: (_ for _ in ()).throw(world.throttled())
    world.clock.advance(5)
    shows(page, "#connection", "Not up to date")
    world.jobs.list_jobs = listing
    shows(page, "#connection:empty", "")
    assert page.locator("#jobs table").count() == 2
    dashboards.troubles[:] = [each for each in dashboards.troubles if "503" not in each]


def test_keys_alone_are_enough(dashboards: "Dashboards") -> None:
    page = dashboards.open()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "To the content"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"

    reached = []
    while not reached or reached[-1] != "wait-capacity":
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.innerText"))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid", reached
        assert len(reached) < 60
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/wait-capacity")


PAGES = (
    "/",
    "/jobs/{running}",
    "/jobs/{succeeded}",
    "/jobs/{hostile}",
    "/jobs/{running}/cancel",
    "/definitions",
    "/machines",
    "/costs",
    "/market",
    "/market/g5.xlarge",
    "/definitions/bert/submit",
    "/?state=failed",
)


@pytest.mark.parametrize("path", PAGES)
# In a narrow window tables are scrolled.
@pytest.mark.parametrize(("scheme", "width"), [("light", 700), ("dark", 1280)])
def test_axe_finds_nothing(dashboards: "Dashboards", path: str, scheme: str, width: int) -> None:
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415 - only .venv-browser has it

    size = {"width": width, "height": 900}
    page = dashboards.open(path.format(**vars(dashboards.world)), color_scheme=scheme, viewport=size)

    found = Axe().run(page).response["violations"]

    assert [(each["id"], [node["html"][:200] for node in each["nodes"]][:3]) for each in found] == []


@pytest.mark.parametrize("path", PAGES)
def test_a_phone_scrolls_down_only(dashboards: "Dashboards", path: str) -> None:
    page = dashboards.open(path.format(**vars(dashboards.world)), viewport={"width": 375, "height": 800})

    assert page.evaluate("document.documentElement.scrollWidth") == 375
