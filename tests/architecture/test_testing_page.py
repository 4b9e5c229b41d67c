"""docs/testing.md names tests that are there."""

import re

import pytest

from fakes.repository import REPOSITORY

PAGE = (REPOSITORY / "docs" / "testing.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(\w[\w/]*\.py)::(test_\w+)`", PAGE)


def test_the_page_names_a_test_for_every_promise() -> None:
    rows = [line for line in PAGE.splitlines() if "::" in line]

    assert len(NAMED) == len(rows) > 20


@pytest.mark.parametrize(("path", "name"), NAMED, ids=[name for _, name in NAMED])
def test_a_named_test_is_there(path: str, name: str) -> None:
    assert f"def {name}(" in (REPOSITORY / "tests" / path).read_text(encoding="utf-8")
