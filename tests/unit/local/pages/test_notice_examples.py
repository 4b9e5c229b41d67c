from pathlib import Path

from fakes.repository import REPOSITORY
from relaunch.core.notices.notice import Subscription
from relaunch_local.pages.notice_examples import main, render_page

PAGE = REPOSITORY / "docs" / "notice-examples.md"


def test_the_page_is_that_of_the_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_page(), (
        "write it again: python -m relaunch_local.pages.notice_examples docs/notice-examples.md"
    )


def test_it_has_every_kind_that_a_receiver_gets_by_default() -> None:
    page = render_page()

    assert all(f"### `{kind}`" in page for kind in Subscription(name="any").kinds)


def test_the_page_is_written(tmp_path: Path) -> None:
    main([str(tmp_path / "examples.md")])

    assert (tmp_path / "examples.md").read_text(encoding="utf-8") == render_page()
