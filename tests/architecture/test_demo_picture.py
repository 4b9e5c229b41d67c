"""The picture at the top of README.md shows the demo as it is."""

import re
from functools import cache
from itertools import pairwise
from xml.etree import ElementTree

import typer

from fakes.repository import REPOSITORY
from relaunch.core.jobs.state import JobState
from relaunch_cli.app import app

PICTURE = REPOSITORY / "docs" / "demo.svg"
DEMO = REPOSITORY / "local" / "relaunch_local" / "demo"
SVG = "{http://www.w3.org/2000/svg}"


@cache
def texts() -> list[str]:
    root = ElementTree.fromstring(PICTURE.read_text(encoding="utf-8"))  # noqa: S314 - it is our own
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def test_readme_begins_with_it_and_says_what_it_shows():
    before_first_section = (REPOSITORY / "README.md").read_text(encoding="utf-8").partition("\n## ")[0]

    (described,) = re.findall(r"!\[([^\]]+)\]\(docs/demo\.svg\)", before_first_section)
    assert len(described) > 40


def test_it_is_small_and_runs_nothing():
    picture = PICTURE.read_text(encoding="utf-8")

    assert len(picture) < 100_000
    assert not re.search(r"<script|<foreignObject|href=|url\(|\son\w+=", picture)


def test_its_headings_are_those_of_the_demo():
    source = "".join(file.read_text(encoding="utf-8") for file in DEMO.glob("*.py"))
    headings = [title for number, title in pairwise(texts()) if re.fullmatch(r"\d", number) and " " in title]

    assert len(headings) >= 7
    assert [each for each in headings if f'"{each}"' not in source] == []


def test_its_commands_and_states_exist():
    shown = " ".join(texts())
    commands = typer.main.get_command(app)

    named = set(re.findall(r"relaunch (?!is |that )([a-z]+) ", shown))
    assert named
    assert named <= set(getattr(commands, "commands", {}))
    assert set(re.findall(r"\b[A-Z]{6,}\b", shown)) & set(JobState) >= {JobState.RUNNING}
