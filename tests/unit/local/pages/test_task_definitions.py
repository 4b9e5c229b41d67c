from fakes.repository import REPOSITORY
from relaunch.core.task_definitions.verdicts import MEMBERS
from relaunch_local.pages.task_definitions import main, render_page

PAGE = REPOSITORY / "docs" / "task-definitions.md"


def test_the_page_is_that_of_the_verdicts():
    assert PAGE.read_text(encoding="utf-8") == render_page(), (
        "write it anew: python -m relaunch_local.pages.task_definitions docs/task-definitions.md"
    )


def test_every_member_is_named_once_with_why():
    rows = [line for line in render_page().splitlines() if line.startswith("| `")]

    for member in MEMBERS:
        (row,) = (row for row in rows if f"`{member.path}`" in row)
        assert row.endswith(f"| {member.why} |")


def test_the_command_writes_the_page(tmp_path):
    page = tmp_path / "task-definitions.md"

    main([str(page)])

    assert page.read_text(encoding="utf-8") == render_page()
