import re

from fakes.repository import REPOSITORY
from relaunch_local.simulation.areas_page import render_page
from relaunch_local.simulation.checks.areas import WHY_NOT_ENTERED, AreaCounts, SeedAreas, effects, use_cases

PAGE = REPOSITORY / "docs" / "simulated-areas.md"


def rows(page: str) -> dict[str, list[str]]:
    return {name: cells.split(" | ") for name, cells in re.findall(r"^\| `([\w.]+)` \| (.*) \|$", page, re.MULTILINE)}


def test_the_page_has_every_use_case_and_every_effect() -> None:
    assert list(rows(PAGE.read_text(encoding="utf-8"))) == [*use_cases(), *effects()], (
        "write it with make simulated-areas"
    )


def test_each_of_them_is_in_one_per_cent_of_the_seeds_at_least() -> None:
    page = rows(PAGE.read_text(encoding="utf-8"))
    shares = {name: float(cells[1].removesuffix(" %")) for name, cells in page.items() if name not in WHY_NOT_ENTERED}

    assert {name: share for name, share in shares.items() if share < 1} == {}


def test_a_row_tells_seeds_share_and_faults_or_that_there_is_no_call() -> None:
    counts = AreaCounts()
    counts.add(SeedAreas(frozenset({"StopTask", "CountRun"}), frozenset({"StopTask"}), frozenset({"StopTask"})))
    page = rows(render_page(counts, 4))

    assert page["StopTask"] == ["1", "25.0 %", "1"]
    assert page["CountRun"] == ["1", "25.0 %", "no call"]
    assert page["submit_job.submit_direct"] == ["", "", WHY_NOT_ENTERED["submit_job.submit_direct"]]
