"""docs/extending.md has the files that mypy names for a new target, source of triggers, receiver of notices or filter.

A copy of the sources gets a made-up one of each, mypy runs on it once, and each of its errors names one of them.
"""

import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from fakes.repository import REPOSITORY

pytestmark = pytest.mark.slow

CORE = Path("layers/relaunch/relaunch/core")
SOURCES = ("layers/relaunch/relaunch", "cli/relaunch_cli")
# In a file of the core: the beginning of a line, and what is put before it.
MADE_UP = {
    ("definitions/targets.py", '    ACS = "acs"'): '    MADE_UP = "made-up"\n',
    ("definitions/definition.py", '    IMAGE = "image"'): '    MADE_UP = "made-up"\n',
    ("definitions/definition.py", "Trigger = "): "@dataclass(frozen=True)\nclass MadeUpTrigger:\n    bucket: str\n\n\n",
    ("definitions/definition.py", "GithubTrigger | "): "MadeUpTrigger | ",
    ("triggers/events.py", "WatchedEvent = "): (
        "@dataclass(frozen=True)\nclass MadeUpEvent:\n    identity: str\n    happened_at: datetime | None = None\n\n\n"
    ),
    ("triggers/events.py", "GithubEvent | ObjectCreated"): "MadeUpEvent | ",
    ("selection/instance_type_filters.py", "TYPE_FILTERS: "): (
        "def check_made_up(_required: Requirements, machine: InstanceType) -> Rejection | None:\n"
        '    return None if machine.vcpus else Rejection("it is made up")\n\n\n'
    ),
    ("selection/instance_type_filters.py", '    ("manufacturer", '): '    ("made-up", check_made_up),\n',
    ("../adapters/notices/configuration.py", '"slack", "teams"'): '"made-up", ',
}
# The types of what is installed, which have nothing made up, take mypy four times as long as the sources.
WITHOUT_PACKAGES = (
    *("--no-site-packages", "--ignore-missing-imports", "--no-warn-unused-ignores", "--no-warn-return-any"),
    *("--allow-subclassing-any", "--allow-untyped-decorators"),
    # Of classes and variables whose types are not known.
    *("--disable-error-code=call-arg", "--disable-error-code=valid-type"),
)
# What an error is about, by the word that it has.
WORDS = {
    "Target.MADE_UP": "target",
    "TriggerSource.MADE_UP": "trigger",
    "MadeUpTrigger": "trigger",
    "MadeUpEvent": "trigger",
    "made_up": "filter",
    "'made-up'": "receiver",
}
SECTIONS = [
    ("target", "A new target"),
    ("trigger", "A new source of triggers"),
    ("receiver", "A new kind of receiver of notices"),
    ("filter", "A new filter"),
]


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Return the files that mypy names, by what is made up; an error about nothing of it stands by its text."""
    copy = tmp_path_factory.mktemp("copy")
    for source in SOURCES:
        shutil.copytree(REPOSITORY / source, copy / source, ignore=shutil.ignore_patterns("__pycache__", "*.json"))
    for (name, line), inserted in MADE_UP.items():
        file = copy / CORE / name
        text = file.read_text(encoding="utf-8")
        assert text.count(line) == 1, f"{name} has {text.count(line)} times {line}"
        file.write_text(text.replace(line, inserted + line), encoding="utf-8")
    # What is the same as at the last time is not looked at again: three quarters of what it takes.
    kept = REPOSITORY / ".mypy_cache" / "extending"
    command = [sys.executable, "-m", "mypy", "--config-file", REPOSITORY / "pyproject.toml", "--no-pretty"]
    output = subprocess.run(
        [*command, "--cache-dir", kept, *WITHOUT_PACKAGES, *SOURCES],
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    found = defaultdict(set)
    for file, text in re.findall(r"^(\S+\.py):\d+: error: (.*)$", output, re.MULTILINE):
        found[next((kind for word, kind in WORDS.items() if word in text), text)].add(file)
    return dict(found)


def rows_of(section: str) -> set[str]:
    """Return the files of a section of the page that mypy names."""
    page = (REPOSITORY / "docs" / "extending.md").read_text(encoding="utf-8")
    rows = page.partition(f"## {section}\n")[2].partition("\n## ")[0].splitlines()
    return {file for row in rows if row.endswith("| mypy |") for file in re.findall(r"`([^`]+)`", row.split("|")[1])}


@pytest.mark.parametrize(("kind", "section"), SECTIONS)
def test_the_page_has_the_files_that_mypy_names(named: dict[str, set[str]], kind: str, section: str) -> None:
    assert named.get(kind, set()) == rows_of(section)


def test_mypy_names_no_file_for_another_reason(named: dict[str, set[str]]) -> None:
    assert set(named) == {"target", "trigger", "receiver"}
