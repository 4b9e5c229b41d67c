"""Files that the docs name are there."""

import re

import pytest

from fakes.repository import REPOSITORY

PAGES = sorted([*(REPOSITORY / "docs").glob("*.md"), REPOSITORY / "README.md", REPOSITORY / "examples" / "README.md"])
PATH = re.compile(r"`((?:layers|functions|cli|local|tests|docs|events|examples|benchmarks|catalogue)/[\w./-]*)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_names_is_there(page):
    named = set(PATH.findall(page.read_text(encoding="utf-8")))

    assert {path for path in named if not (REPOSITORY / path).exists()} == set()


def test_the_pages_that_go_file_by_file_name_files():
    for name in ("push.md", "extending.md"):
        assert len(PATH.findall((REPOSITORY / "docs" / name).read_text(encoding="utf-8"))) > 20
