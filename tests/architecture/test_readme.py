"""README.md is read in two minutes, says how far Relaunch has come, and agrees with `relaunch deploy`."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from fakes.repository import REPOSITORY
from relaunch.adapters.definition_file.models import DEFAULT_MAX_RUNTIME
from relaunch.adapters.definition_file.values import parse_duration
from relaunch_cli.deployment.findings import AccountRoles, QuotaState, Survey
from relaunch_cli.views.deployment import render_survey

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
CHANGELOG = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
LINK = re.compile(r"\]\(([^)#]+)")
# Parts of other pages, and tables that are generated; the pages that they belong to lead to them.
ELSEWHERE = {
    *("extending", "machine-lifecycle", "notice-examples", "plan-comment", "push", "simulated-areas"),
    "task-definitions",
}


def deployment() -> str:
    """What `relaunch deploy` shows for a new account."""
    plan = Survey(
        stack="relaunch",
        account="111122223333",
        region="us-east-1",
        given={"Webhook": "off", "Uploads": "off"},
        training=None,
        has_machines=True,
        before={},
        roles=AccountRoles(missing=(), github_provider_arn=""),
        quotas=QuotaState(),
    )
    console = Console(file=io.StringIO(), width=200)
    with console.capture() as capture:
        console.print(render_survey(plan))
    return " ".join(capture.get().split())


def test_it_is_read_in_two_minutes():
    assert len(README.splitlines()) <= 110


def test_it_says_at_the_top_that_it_never_ran_on_an_account():
    top = README.partition("\n## ")[0]

    assert "Simulated in full, never run on a real account yet" in top
    assert "docs/unverified.md" in top


def test_it_says_that_a_training_is_stopped_where_nobody_says_how_long_it_takes():
    (default,) = re.findall("after ([0-9]+h) where nothing is said", README)

    assert parse_duration(default) == DEFAULT_MAX_RUNTIME


def test_its_numbers_are_those_of_a_deployment():
    said = deployment()
    ((functions, queues),) = re.findall(r"(\w+) functions, (\w+) queues\s", README)
    (usd,) = re.findall(r"for ([0-9.]+) USD a\s+month", README)

    assert f"{functions} functions, {queues} queues, a table" in said
    assert re.search(rf"in all \(list prices of [^)]+\) {re.escape(usd)} ", said)


def test_it_leads_to_every_page():
    linked = {Path(path).stem for path in LINK.findall(README) if path.startswith("docs/")}
    pages = {path.stem for path in (REPOSITORY / "docs").glob("*.md")}

    assert pages - linked == ELSEWHERE


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_what_it_links_to_is_there(text):
    paths = {path for path in LINK.findall(text) if "://" not in path}

    assert paths
    assert {path for path in paths if not (REPOSITORY / path).exists()} == set()


def test_the_targets_that_contributors_call_exist():
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")

    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", CONTRIBUTING, re.MULTILINE)) <= set(
        re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)
    )


def test_the_changelog_has_the_version_that_is_installed():
    (version,) = re.findall(r'^version = "([^"]+)"', (REPOSITORY / "pyproject.toml").read_text(), re.MULTILINE)

    assert re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d{{2}}-\d{{2}}$", CHANGELOG, re.MULTILINE)
    assert CHANGELOG.index("## [Unreleased]") < CHANGELOG.index(f"## [{version}]")
