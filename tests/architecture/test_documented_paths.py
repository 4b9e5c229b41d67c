"""Files that the docs and the template name are there, and so is in the docs what they list in full."""

import re

import pytest

from architecture.conftest import Template
from fakes.repository import REPOSITORY
from relaunch.core.jobs.state import WaitReason

PAGES = sorted([*(REPOSITORY / "docs").glob("*.md"), REPOSITORY / "README.md", REPOSITORY / "examples" / "README.md"])
PATH = re.compile(r"`((?:layers|functions|cli|local|tests|docs|events|examples|benchmarks|catalogue)/[\w./-]*)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_names_is_there(page):
    named = set(PATH.findall(page.read_text(encoding="utf-8")))

    assert {path for path in named if not (REPOSITORY / path).exists()} == set()


def test_the_pages_that_go_file_by_file_name_files():
    for name in ("push.md", "extending.md"):
        assert len(PATH.findall((REPOSITORY / "docs" / name).read_text(encoding="utf-8"))) > 20


def test_every_module_that_a_comment_of_the_template_names_is_there():
    package = REPOSITORY / "layers" / "relaunch" / "relaunch"
    named = set(re.findall(r"\b[\w/]+/\w+\.py\b", (REPOSITORY / "template.yaml").read_text(encoding="utf-8")))

    assert {path for path in named if not (package / path).exists() and not (REPOSITORY / path).exists()} == set()


def test_the_command_page_names_all_that_a_job_may_wait_for():
    page = (REPOSITORY / "docs" / "command.md").read_text(encoding="utf-8")
    line = next(line for line in page.splitlines() if line.startswith("- `waiting`:"))

    assert {reason.value for reason in WaitReason} <= set(re.findall(r"`([\w-]+)`", line))


def test_the_page_of_operations_has_a_row_for_each_alarm_and_counts_those_that_every_stack_has(template: Template):
    page = (REPOSITORY / "docs" / "operations.md").read_text(encoding="utf-8")
    alarms = template.of_type("CloudWatch::Alarm")
    of_every_stack = [name for name in alarms if template.resources[name]["Condition"] == "HasMonitoring"]

    assert set(re.findall(r"^\| `(\w+Alarm)` \|", page, re.MULTILINE)) == set(alarms)
    assert len(of_every_stack) == 16
    assert "\nSixteen, each on one metric," in page
    assert "| CloudWatch alarms | sixteen, two more" in page
