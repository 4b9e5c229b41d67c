from typing import get_args

from fakes.repository import REPOSITORY
from relaunch.core.machines.events import MachineEvent
from relaunch.core.machines.machine import Consequence, MachineEffect, MachineState
from relaunch.core.machines.table import TABLE
from relaunch_local.pages.machine_lifecycle import main, render_page

PAGE = REPOSITORY / "docs" / "machine-lifecycle.md"


def test_the_page_is_that_of_the_table():
    assert PAGE.read_text(encoding="utf-8") == render_page(), (
        "write it anew: python -m relaunch_local.pages.machine_lifecycle docs/machine-lifecycle.md"
    )


def test_every_row_of_the_table_is_a_row_of_the_page():
    rows = render_page().partition("## Transitions")[2].partition("\n## ")[0].strip().splitlines()

    assert len(rows) == 2 + len(TABLE)
    assert {row.count("|") for row in rows} == {6}


def test_every_state_event_and_effect_is_explained():
    page = render_page()

    for name in (*MachineState, *Consequence):
        assert f"\n| {name} | " in page
    assert page.partition("## Events")[2].partition("\n## ")[0].count("\n| ") == 1 + len(get_args(MachineEvent))
    for effect in get_args(MachineEffect):
        (kind,) = get_args(effect.__annotations__["kind"])
        assert f"\n  - `{kind}`: " in page


def test_the_command_writes_the_page(tmp_path):
    written = tmp_path / "machine-lifecycle.md"

    main([str(written)])

    assert written.read_text(encoding="utf-8") == render_page()
