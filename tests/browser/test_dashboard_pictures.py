"""The pictures of docs/dashboard.md, which `make dashboard-pictures` draws, and how soon a page is seen."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

if TYPE_CHECKING:
    from browser.conftest import Dashboards

pytestmark = pytest.mark.browser
FOLDER = os.environ.get("DASHBOARD_PICTURES")
PHONE = {"viewport": {"width": 375, "height": 800}}
PICTURES = {
    "list": ("/", {}),
    "list-dark": ("/", {"color_scheme": "dark"}),
    "job": ("/jobs/{running}", {}),
    "job-phone": ("/jobs/{running}", PHONE),
}
MOST_BYTES = 80_000


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.skipif(not FOLDER, reason="drawn by make dashboard-pictures alone")
def test_draw(dashboards: "Dashboards", name: str) -> None:
    path, options = PICTURES[name]
    world = dashboards.world
    world.forget_hostile()
    page = dashboards.open(path.format(**vars(world)), **options)
    if world.running in path:
        page.locator("#log").filter(has_text="epoch").wait_for()
    file = Path(str(FOLDER)) / f"dashboard-{name}.png"
    page.screenshot(path=file, animations="disabled")
    # Of a palette, as it has few colours.
    Image.open(file).quantize(256).save(file, optimize=True)

    assert file.stat().st_size <= MOST_BYTES


def test_a_page_is_painted_soon(dashboards: "Dashboards", capsys: pytest.CaptureFixture[str]) -> None:
    page = dashboards.open()
    paint = page.evaluate(
        """() => new Promise((resolve) => new PerformanceObserver((list) => {
             const found = list.getEntriesByName("first-contentful-paint");
             if (found.length) resolve(found[0].startTime);
           }).observe({ type: "paint", buffered: true }))"""
    )

    with capsys.disabled():
        print(f"first contentful paint of the list after {paint:.0f} ms")  # noqa: T201 - its result is a figure
    # Of a busy machine; docs/dashboard.md has what was measured.
    assert 0 < paint < 10_000
