from dataclasses import replace
from typing import Any

import pytest
import yaml

from fakes.repository import REPOSITORY
from relaunch_cli.repository_setup.definition_text import definition_text
from relaunch_cli.repository_setup.training import Training
from relaunch_cli.repository_setup.watched_paths import WATCHED_PATHS
from relaunch_cli.repository_setup.workflow_text import plan_workflow_text, workflow_text
from unit.cli.repository_setup.trainings import STACK

ACTION = f"acme/relaunch@{'0' * 40}"


def written(action: str = "", *, is_large: bool = False, **stack: str) -> Any:
    return yaml.safe_load(workflow_text(Training("vision"), replace(STACK, **stack), action, is_large=is_large))


def steps_of(workflow: Any) -> list[Any]:
    steps: list[Any] = workflow["jobs"]["train"]["steps"]
    return steps


def test_a_push_to_the_branch_that_is_let_in_builds_the_image_of_its_commit():
    workflow = written(github_ref="refs/heads/1.0")
    build = steps_of(workflow)[-1]

    # YAML 1.1 reads the key `on` as true.
    assert workflow[True] == {"push": {"branches": ["1.0"], "paths": list(WATCHED_PATHS)}}
    assert workflow["permissions"] == {}
    assert workflow["jobs"]["train"]["permissions"] == {"contents": "read", "id-token": "write"}
    names = {"NAME": "relaunch/trainer", "REPOSITORY": STACK.repository_uri, "TRAINING": "vision"}
    assert build["env"] == {**names, "BUILDX_NO_DEFAULT_ATTESTATIONS": 1}
    assert "if" not in build
    assert 'tag="$TRAINING-$GITHUB_SHA"' in build["run"]
    assert "${REPOSITORY%%/*}" in build["run"]
    assert "${{" not in build["run"]


def test_actions_are_pinned_to_commits():
    used = [step["uses"] for step in steps_of(written(ACTION)) if "uses" in step]

    assert len(used) == 3
    assert all(len(each.partition("@")[2]) == 40 for each in used)


def test_a_tag_and_an_environment_are_let_in_as_the_role_says():
    workflow = written(github_ref="refs/tags/v1", github_environment="@prod")

    assert workflow[True] == {"push": {"tags": ["v1"]}}
    assert workflow["jobs"]["train"]["environment"] == "@prod"


def test_a_dispatch_starts_a_job_with_its_inputs_and_the_image_of_its_commit():
    workflow = written(ACTION)
    submit = steps_of(workflow)[-1]

    assert "workflow_dispatch" in workflow[True]
    assert submit["if"] == "github.event_name == 'workflow_dispatch'"
    assert submit["with"] == {
        "url": STACK.job_api_url,
        "role-to-assume": STACK.submit_role_arn,
        "definition": "vision",
        "image-tag": "vision-${{ github.sha }}",
        "inputs": "${{ toJSON(inputs) }}",
    }


def test_a_dispatch_builds_no_image_that_would_start_a_job_of_its_own():
    with_webhook = workflow_text(Training("vision", has_webhook=True), STACK, ACTION, is_large=False)

    assert steps_of(written(ACTION))[-2]["if"] == "github.event_name == 'push'"
    assert "if" not in steps_of(yaml.safe_load(with_webhook))[-2]


@pytest.mark.parametrize("is_large", [False, True])
def test_room_is_made_for_a_large_base_image_only(is_large):
    names = [step.get("name") for step in steps_of(written(is_large=is_large))]

    assert ("Make room for the base image" in names) == is_large


def test_with_the_webhook_the_pushes_that_build_an_image_are_those_whose_jobs_wait_for_one():
    training = Training("vision", has_webhook=True)

    workflow = yaml.safe_load(workflow_text(training, STACK, "", is_large=False))
    definition = yaml.safe_load(definition_text(training, "relaunch-vision", "acme/vision", STACK))

    (trigger,) = definition["jobs"]["vision"][True]
    assert workflow[True]["push"]["paths"] == trigger["github"]["paths"] == list(WATCHED_PATHS)
    assert workflow[True]["push"]["branches"] == trigger["github"]["branches"] == ["main"]


@pytest.mark.parametrize(
    ("action", "group"),
    [
        ("", "train-${{ github.ref }}"),
        (ACTION, "train-${{ github.event_name == 'workflow_dispatch' && github.run_id || github.ref }}"),
    ],
)
def test_pushes_to_a_branch_are_built_one_after_the_other_and_none_is_cut_off(action, group):
    concurrency = written(action)["jobs"]["train"]["concurrency"]

    assert concurrency == {"group": group, "cancel-in-progress": False}


def test_a_pull_request_that_changes_the_definition_is_planned_by_a_role_that_can_do_nothing_else():
    workflow = yaml.safe_load(plan_workflow_text(STACK, ACTION))
    job = workflow["jobs"]["plan"]

    assert workflow[True] == {"pull_request": {"paths": ["relaunch.yaml"]}}
    assert workflow["permissions"] == {}
    assert workflow["concurrency"]["cancel-in-progress"] is True
    assert job["permissions"] == {"contents": "read", "id-token": "write", "pull-requests": "write"}
    assert "environment" not in job
    (step,) = job["steps"]
    assert step["uses"] == ACTION
    assert step["with"] == {
        "mode": "plan",
        "url": STACK.plan_api_url,
        "role-to-assume": STACK.plan_role_arn,
        "definition-file": "relaunch.yaml",
    }
    assert set(step["with"]) <= set(yaml.safe_load((REPOSITORY / "action.yml").read_text())["inputs"])


def test_the_examples_are_what_is_written():
    """`make workflows` checks it as it checks our own."""
    example = REPOSITORY / "examples" / "workflows" / "train.yml"

    assert example.read_text() == workflow_text(Training("vision"), STACK, ACTION, is_large=True)
    assert example.with_name("plan.yml").read_text() == plan_workflow_text(STACK, ACTION)
