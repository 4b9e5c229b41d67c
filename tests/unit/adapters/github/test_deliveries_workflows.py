"""Which workflow a run or a dispatch is of."""

import json
from dataclasses import replace
from typing import Any

import pytest

from fakes.webhook import load_event
from relaunch.adapters.github.payload_trimming import trim_payload
from relaunch.adapters.messages.intake import parse_intake_message
from relaunch.core.definitions.definition import GithubTrigger
from relaunch.core.triggers.events import GithubEvent, WorkflowRun, list_github_obstacles

RUN = load_event("github.workflow_run.completed")
FILE = ".github/workflows/image.yml"


def parse_event(event: str, payload: Any) -> GithubEvent:
    message = {"source": "github", "event": event, "delivery": "guid-1", "body_sha256": "ab", "payload": payload}
    (parsed,) = parse_intake_message(json.dumps(message))
    assert isinstance(parsed, GithubEvent)
    return parsed


def read_run(payload: Any) -> WorkflowRun:
    event = parse_event("workflow_run", payload)
    assert isinstance(event, WorkflowRun)
    assert event == parse_event("workflow_run", trim_payload(payload))
    return event


def with_run(workflow: Any = None, **run: Any) -> Any:
    return {**RUN, "workflow_run": {**RUN["workflow_run"], **run}, "workflow": workflow}


def obstacles(event: GithubEvent, *workflows: str, **filters: Any) -> list[str]:
    return list(
        list_github_obstacles(GithubTrigger(event.repository, event.name, workflows=workflows, **filters), event)
    )


@pytest.mark.parametrize("head", [None, {"full_name": "mallory/vision"}])
def test_a_workflow_run_of_a_fork_is_seen_even_when_the_fork_is_gone(head: Any) -> None:
    assert read_run(with_run(head_repository=head)).is_fork


def test_another_attempt_of_a_workflow_run_is_another_event() -> None:
    assert read_run(with_run(run_attempt=2)).identity != read_run(RUN).identity


@pytest.mark.parametrize("named", ["Build image", FILE, "image.yml"])
def test_a_workflow_with_a_title_for_its_runs_is_known_by_its_name_and_its_file(named: str) -> None:
    assert RUN["workflow_run"]["name"] == RUN["workflow_run"]["display_title"] != RUN["workflow"]["name"]
    assert obstacles(read_run(RUN), named) == []


def test_the_title_of_a_run_is_no_workflow_whatever_it_says() -> None:
    run = {**RUN, "workflow_run": {**RUN["workflow_run"], "name": "Release"}}

    assert obstacles(read_run(run), "Release") == [f"the workflow Build image ({FILE}) is not Release"]


@pytest.mark.parametrize(
    ("workflow", "name", "path", "expected"),
    [
        pytest.param({"name": "", "path": FILE}, "title", None, (FILE, FILE), id="no-name"),
        pytest.param({"name": "CI"}, "title", f"{FILE}@main", ("CI", FILE), id="path-of-the-run-alone"),
        pytest.param({}, "title", FILE, (FILE, FILE), id="neither"),
        pytest.param(None, "CI", FILE, ("CI", FILE), id="no-workflow"),
        pytest.param(None, "", FILE, (FILE, FILE), id="no-workflow-and-no-name"),
        pytest.param(None, "CI", f"{FILE}@refs/heads/a@b", ("CI", FILE), id="with-a-branch"),
        pytest.param(None, "CI", "acme/ci/a@b.yaml@v1", ("CI", "acme/ci/a@b.yaml"), id="at"),
        pytest.param(None, "CI", None, ("CI", ""), id="no-path"),
        pytest.param(None, None, None, ("", ""), id="nothing"),
    ],
)
def test_what_a_payload_lacks_is_taken_from_elsewhere_in_it(
    workflow: Any, name: str | None, path: str | None, expected: tuple[str, str]
) -> None:
    event = read_run(with_run(workflow, name=name, path=path))

    assert (event.workflow, event.path) == expected


def test_a_run_without_branch_and_conclusion_is_read() -> None:
    event = read_run(with_run(head_branch=None, conclusion=None))

    assert (event.ref, event.conclusion) == ("", "")


def test_what_the_previous_release_left_in_the_queue_names_its_workflow() -> None:
    trimmed = trim_payload(RUN)

    # It kept `workflow` whole.
    assert parse_event("workflow_run", {**trimmed, "workflow": RUN["workflow"]}) == read_run(RUN)


@pytest.mark.parametrize("named", ["test", ".github/workflows/test.yml", "test.yml"])
def test_octokits_run_without_a_name_starts_what_watches_its_workflow(named: str) -> None:
    payload = load_event("octokit/workflow_run.completed.2")
    assert payload["workflow_run"]["name"] == ""

    assert obstacles(read_run(payload), named, run_events=("repository_dispatch",)) == []


def test_octokits_oldest_run_has_the_file_in_its_workflow_alone() -> None:
    event = read_run(load_event("octokit/workflow_run.completed.1"))

    finished = replace(event, conclusion="success", is_fork=False)
    assert obstacles(finished, "syntax.yml") == obstacles(finished, "Manually triggered workflow") == []


@pytest.mark.parametrize("named", ["hello-world-workflow.yml", ".github/workflows/hello-world-workflow.yml"])
@pytest.mark.parametrize("number", [1, 2])
def test_octokits_dispatch_names_the_file_alone(named: str, number: int) -> None:
    event = parse_event("workflow_dispatch", load_event(f"octokit/workflow_dispatch.{number}"))

    assert obstacles(event, named) == []
    assert obstacles(event, "Hello world") == [
        "the workflow .github/workflows/hello-world-workflow.yml is not Hello world"
    ]
