import re
from pathlib import Path

import pytest

from fakes.repository import REPOSITORY
from relaunch_local.pages import architecture
from relaunch_local.pages.architecture import BEGIN, END, main, render, write

PAGE = REPOSITORY / "docs" / "architecture.md"


@pytest.fixture(scope="module")
def rendered() -> str:
    return render()


def test_the_page_is_that_of_the_code(rendered: str) -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page[page.index(BEGIN) : page.index(END) + len(END)] == rendered, (
        "write it anew: python -m relaunch_local.pages.architecture docs/architecture.md"
    )


def test_every_package_says_what_lives_there_and_is_listed(rendered: str) -> None:
    rows = dict(re.findall(r"^\| `([\w.]+)` \| (.*?) \|", rendered, re.MULTILINE))

    for root in ("layers/relaunch/relaunch", "cli/relaunch_cli", "local/relaunch_local"):
        for init in (REPOSITORY / root).rglob("__init__.py"):
            package = ".".join(init.parent.relative_to((REPOSITORY / root).parent).parts)
            assert rows[package].endswith(".")


def test_an_arrow_is_an_import_that_no_other_arrow_implies(rendered: str) -> None:
    arrows = re.findall(r"^  (\S+) --> (\S+)$", rendered, re.MULTILINE)

    assert ("core.lifecycle", "core.launches") in arrows
    assert ("core.launches", "core.jobs") in arrows
    assert ("core.lifecycle", "core.jobs") not in arrows


def test_the_command_writes_the_page(tmp_path: Path, rendered: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(architecture, "render", lambda: rendered)
    written = tmp_path / "architecture.md"
    written.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")

    main([str(written)])

    assert written.read_text(encoding="utf-8") == f"before\n{rendered}\nafter\n"


def test_a_page_without_its_markers_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "architecture.md"
    page.write_text("no markers", encoding="utf-8")

    with pytest.raises(ValueError, match="markers"):
        write(page)
    assert page.read_text(encoding="utf-8") == "no markers"
