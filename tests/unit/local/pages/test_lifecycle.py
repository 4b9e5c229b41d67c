import re
from typing import get_args

from fakes.repository import REPOSITORY
from relaunch.core.jobs.attempt import PlacementState
from relaunch.core.jobs.effects import Effect
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.lifecycle.table import TABLE
from relaunch_local.pages.lifecycle import main, render_page

PAGE = REPOSITORY / "docs" / "lifecycle.md"


def test_the_page_is_that_of_the_table():
    assert PAGE.read_text(encoding="utf-8") == render_page(), (
        "write it anew: python -m relaunch_local.pages.lifecycle docs/lifecycle.md"
    )


def test_every_row_of_the_table_is_a_row_of_the_page():
    rows = render_page().partition("## Transitions")[2].partition("\n## ")[0].strip().splitlines()

    assert len(rows) == 2 + len(TABLE)
    assert {row.count("|") for row in rows} == {6}
    assert not [row for row in rows if re.search(r"\| +\|", row)]


def test_every_state_reason_and_effect_is_explained():
    page = render_page()

    for name in (*JobState, *WaitReason, *PlacementState):
        assert f"\n| {name} | " in page
    for effect in get_args(Effect):
        (kind,) = get_args(effect.__annotations__["kind"])
        assert f"\n  - `{kind}`: " in page


def test_no_arrow_of_the_diagram_leaves_a_final_state_but_to_the_end():
    arrows = re.findall(r"^  (\S+) --> (\S+?):?(?: .*)?$", render_page(), re.MULTILINE)

    assert {source for source, target in arrows if target == "[*]"} == {s for s in JobState if s.is_final}
    assert not [
        source for source, target in arrows if target != "[*]" and source in set(JobState) and JobState(source).is_final
    ]


def test_the_command_writes_the_page(tmp_path):
    written = tmp_path / "lifecycle.md"

    main([str(written)])

    assert written.read_text(encoding="utf-8") == render_page()
