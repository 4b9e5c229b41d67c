"""action.yml, its page and its code agree, and the workflows run nothing that can change under them."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from architecture.conftest import REPOSITORY

ACTION = REPOSITORY / "action.yml"
CODE = REPOSITORY / "action" / "relaunch_action"
PAGE = (REPOSITORY / "docs" / "github-action.md").read_text(encoding="utf-8")
DOCS = sorted((REPOSITORY / "docs").glob("*.md"))
WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
# `runs.using` in the action.yml of each commit that is named anywhere, also in what `relaunch init` writes. Hosted
# runners have no Node 20 any more ("Deprecation of Node 20 on GitHub Actions runners", GitHub Changelog, 2025-09-19).
RUNTIMES = {
    "actions/attest-build-provenance@977bb373ede98d70efdf65b84cb5f73e068dcc2a": "composite",
    "actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8": "node24",
    "actions/setup-python@e797f83bcb11b83ae66e0230d6156d7c80228e7c": "node24",
    "aws-actions/configure-aws-credentials@e6de054238d6b7531b4efff3b6587d9aade6a06c": "node24",
}


def load(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return content


def texts_of(module: str) -> set[str]:
    """Return the text constants of a module of the action."""
    tree = ast.parse((CODE / f"{module}.py").read_text(encoding="utf-8"))
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def rows_of(heading: str) -> set[str]:
    """Return the names in code in the first cells of the table with this heading."""
    table = PAGE.split(f"\n{heading}", 1)[1].split("\n\n", 1)[0]
    cells = (line.split("|")[1] for line in table.splitlines()[2:])
    return {name for cell in cells for name in re.findall(r"`([\w-]+)`", cell)}


def test_the_page_and_the_code_have_the_inputs_of_action_yml() -> None:
    inputs = set(load(ACTION)["inputs"])

    assert rows_of("| input |") == inputs
    assert inputs <= texts_of("inputs")


def test_the_page_and_the_code_have_the_outputs_of_action_yml() -> None:
    outputs = load(ACTION)["outputs"]

    assert rows_of("| output |") == set(outputs)
    assert set(outputs) <= texts_of("step")
    assert {each["value"] for each in outputs.values()} == {
        f"${{{{ steps.relaunch.outputs.{name} }}}}" for name in outputs
    }


def test_the_action_runs_one_script_that_no_expression_is_part_of() -> None:
    (step,) = load(ACTION)["runs"]["steps"]

    assert step["run"] == 'exec python3 -I "$GITHUB_ACTION_PATH/action"'
    assert step["env"] == {"RELAUNCH_ACTION_INPUTS": "${{ toJSON(inputs) }}"}
    assert (REPOSITORY / "action" / "__main__.py").exists()


def test_there_are_workflows() -> None:
    assert [file.stem for file in WORKFLOWS] == ["checks", "release"]


@pytest.mark.parametrize("file", [ACTION, *WORKFLOWS], ids=lambda file: file.name)
def test_every_action_that_is_used_is_pinned_to_a_commit_with_its_tag(file: Path) -> None:
    used = re.findall(r"^\s*(?:- )?uses: (.*)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)

    assert [each for each in used if not PINNED.fullmatch(each) and not each.startswith("./")] == []


def test_every_action_of_others_runs_on_a_runtime_that_runners_have() -> None:
    examples = (REPOSITORY / "examples" / "workflows").glob("*.yml")
    written_by = REPOSITORY / "cli" / "relaunch_cli" / "repository_setup" / "workflow_text.py"
    texts = [file.read_text(encoding="utf-8") for file in (*WORKFLOWS, *examples, written_by, *DOCS)]
    used = {each for text in texts for each in re.findall(r"(?:aws-)?actions/[\w-]+@[0-9a-f]{40}", text)}

    assert used == set(RUNTIMES)
    assert set(RUNTIMES.values()) <= {"composite", "node24"}


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_grants_nothing_but_what_a_job_asks_for(file: Path) -> None:
    workflow = load(file)

    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert job["permissions"]
        checkouts = [each for each in job.get("steps", []) if each.get("uses", "").startswith("actions/checkout@")]
        assert all(each["with"]["persist-credentials"] is False for each in checkouts)


def test_the_checks_are_all_gates_and_the_release_waits_for_them() -> None:
    checks, release = (load(file)["jobs"] for file in WORKFLOWS)

    assert checks["checks"]["steps"][-2:] == [{"run": ".ci/run"}, {"run": "make checkov"}]
    assert release["release"]["needs"] == "checks"
    assert release["checks"]["uses"].startswith("./.github/workflows/checks.yml")
