from fakes.repository import REPOSITORY
from relaunch.core.task_definitions import host_access
from relaunch.core.task_definitions.verdicts import MEMBERS
from relaunch_local.pages.task_definitions import main, render_page

PAGE = REPOSITORY / "docs" / "task-definitions.md"


def test_the_page_is_that_of_the_verdicts():
    assert PAGE.read_text(encoding="utf-8") == render_page(), (
        "write it anew: python -m relaunch_local.pages.task_definitions docs/task-definitions.md"
    )


def test_every_member_is_named_once_with_why():
    verdicts = render_page().partition("\n## Read: ")[2]
    rows = [line for line in verdicts.splitlines() if line.startswith("| `")]

    for member in MEMBERS:
        (row,) = (row for row in rows if f"`{member.path}`" in row)
        assert row.endswith(f"| {member.why} |")


def test_what_gives_a_container_its_machine_has_a_table_of_its_own():
    table = render_page().partition("\n## Refused unless")[2].partition("\n## ")[0]

    for path, values, _ in host_access.MEMBERS:
        assert f"| `{path}` | {values} |" in table


def test_the_command_writes_the_page(tmp_path):
    page = tmp_path / "task-definitions.md"

    main([str(page)])

    assert page.read_text(encoding="utf-8") == render_page()
