"""The step against the real function job_api: what it starts, follows, cancels and tells."""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fakes.action_services import ROLE, FakeServices, FakeTime, action_inputs, lost, runner_environment
from fakes.busy_stack import BusyStack
from relaunch.usecases.cancel_job import cancel_job
from relaunch_action.http_requests import Response
from relaunch_action.inputs import VARIABLE
from relaunch_action.retries import ATTEMPTS, Cancellation
from relaunch_action.run import run
from relaunch_action.workflow_commands import Runner

JOB = {"job_id": "resnet-1", "definition": "resnet", "state": "RUNNING", "is_final": False, "reason": ""}


class Workflow:
    """Runs steps as a runner does: each with files of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.services = FakeServices()
        self.cancellation = Cancellation()
        self.then: Callable[[float], None] = lambda _: None
        self.attempt = 1
        self.log = ""
        self.outputs: dict[str, str] = {}
        self.summary = ""

    def run(self, **given: Any) -> int:
        """Run a step; return its exit code."""
        given = {"role_to_assume": ROLE, **given}
        files = {name: self.folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        environment = runner_environment(GITHUB_RUN_ATTEMPT=str(self.attempt), **{n: str(f) for n, f in files.items()})
        written = io.StringIO()
        variables = {**environment, VARIABLE: action_inputs(**given)[VARIABLE]}
        patience = FakeTime(self.then).patience(self.cancellation)
        code = run(variables, Runner(variables, written), self.services.send, patience)
        self.log, self.summary = written.getvalue(), files["GITHUB_STEP_SUMMARY"].read_text()
        found = re.findall(r"^(\S+)<<(\S+)\n(.*?)\n\2\n", files["GITHUB_OUTPUT"].read_text(), re.DOTALL | re.MULTILINE)
        self.outputs = {name: value for name, _, value in found}
        return code

    @property
    def errors(self) -> list[str]:
        """Return the annotations of the last step."""
        return [line for line in self.log.splitlines() if line.startswith("::error")]

    def asked(self, action: str) -> list[dict[str, Any]]:
        """Return the requests of an action."""
        return [each for each in self.services.asked if each["action"] == action]


@pytest.fixture
def workflow(tmp_path: Path) -> Workflow:
    return Workflow(tmp_path)


def told(**changes: Any) -> Response:
    """Return job_api's answer about a job."""
    return Response(200, json.dumps({"job": {**JOB, **changes}}).encode())


def ended(state: str, **changes: Any) -> Response:
    return told(state=state, is_final=True, **changes)


def end_job(stack: BusyStack, job_id: str) -> None:
    """Cancel a job that has not been launched: it ends at once."""
    cancel_job(job_id, "not needed", stack.functions.deps)


def test_a_step_starts_a_job_and_does_not_wait(workflow: Workflow) -> None:
    assert workflow.run(inputs='{"learning_rate": 0.5}') == 0

    (job_id,) = workflow.services.stack.started
    assert (workflow.outputs["job-id"], workflow.outputs["is-new"]) == (job_id, "true")
    assert workflow.outputs["state"] == "WAITING"
    assert workflow.services.stack.jobs.job(job_id).inputs["learning_rate"] == "0.5"
    assert f"relaunch: started job {job_id}" in workflow.log
    assert job_id in workflow.summary
    assert workflow.asked("show") == []


def test_a_step_that_is_repeated_in_a_run_starts_no_second_job(workflow: Workflow) -> None:
    workflow.run()
    first = workflow.outputs["job-id"]

    assert workflow.run() == 0

    assert (workflow.outputs["job-id"], workflow.outputs["is-new"]) == (first, "false")
    assert len(workflow.services.stack.started) == 1


def test_a_rerun_starts_no_second_job_while_there_is_one(workflow: Workflow) -> None:
    workflow.run()

    for attempt in (2, 3):
        workflow.attempt = attempt
        assert workflow.run() == 0

    assert len(workflow.services.stack.started) == 1


def test_a_rerun_after_a_failed_job_starts_another_one_and_the_next_finds_that(workflow: Workflow) -> None:
    workflow.run()
    end_job(workflow.services.stack, workflow.outputs["job-id"])
    assert workflow.run() == 1

    found = []
    for attempt in (2, 2, 3):
        workflow.attempt = attempt
        assert workflow.run() == 0
        found.append((workflow.outputs["job-id"], workflow.outputs["is-new"]))

    assert len(workflow.services.stack.started) == 2
    assert found == [(found[0][0], "true"), (found[0][0], "false"), (found[0][0], "false")]


def test_a_rerun_of_a_run_that_succeeded_starts_nothing(workflow: Workflow) -> None:
    workflow.attempt = 3
    workflow.services.answers = [ended("SUCCEEDED")]

    assert workflow.run(wait="true") == 0

    assert len(workflow.services.asked) == 1
    assert workflow.outputs["state"] == "SUCCEEDED"


def test_a_key_that_is_given_is_the_only_one(workflow: Workflow) -> None:
    workflow.attempt = 4
    workflow.services.answers = [ended("FAILED", reason="exit code 1")]

    assert workflow.run(idempotency_key="nightly") == 1

    assert [each["idempotency_key"] for each in workflow.services.asked] == ["nightly"]
    assert "image_tag" not in workflow.services.asked[0]
    assert "FAILED (exit code 1)" in workflow.errors[0]


def test_the_image_of_the_commit_is_passed_on(workflow: Workflow) -> None:
    workflow.services.answers = [ended("SUCCEEDED")]

    assert workflow.run(image_tag="4b1d8e6") == 0

    assert [each["image_tag"] for each in workflow.services.asked] == ["4b1d8e6"]


def test_a_step_waits_and_logs_what_changes(workflow: Workflow) -> None:
    workflow.services.answers = [
        told(state="WAITING"),
        told(state="WAITING"),
        told(attempt=1, offering="g5.xlarge spot"),
        told(attempt=1, offering="g5.xlarge spot"),
        ended("SUCCEEDED", attempt=1, offering="g5.xlarge spot", cost_usd=0.25),
    ]

    assert workflow.run(wait="true") == 0

    lines = [line for line in workflow.log.splitlines() if line.startswith("relaunch: job")]
    assert [line.split(": ", 2)[2] for line in lines] == [
        "WAITING",
        "RUNNING, attempt 1 on g5.xlarge spot",
        "SUCCEEDED, attempt 1 on g5.xlarge spot",
    ]
    assert (workflow.outputs["state"], workflow.outputs["cost-usd"]) == ("SUCCEEDED", "0.25")
    assert workflow.errors == []


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED", "TIMED_OUT", "DREAMT"])
def test_a_job_that_does_not_succeed_fails_the_step_with_its_reason(workflow: Workflow, state: str) -> None:
    workflow.services.answers = [told(), ended(state, reason="exit code 1\n::add-path::/tmp")]

    assert workflow.run(wait="true") == 1

    (error,) = workflow.errors
    assert f"{state} (exit code 1 ::add-path::/tmp)" in error
    assert workflow.outputs["state"] == state
    assert not [line for line in workflow.log.splitlines() if line.startswith("::add-path")]


def test_an_outage_while_it_waits_is_waited_for(workflow: Workflow) -> None:
    workflow.services.answers = [told(), *lost(ATTEMPTS), told(), ended("SUCCEEDED")]

    assert workflow.run(wait="true") == 0

    assert "relaunch: job_api did not answer: timed out; the job goes on" in workflow.log


def test_a_wait_that_is_too_short_says_how_to_go_on(workflow: Workflow) -> None:
    workflow.services.answers = [told() for _ in range(100)]

    assert workflow.run(wait="true", wait_timeout_minutes="3") == 1

    assert "has not ended within 3 minutes, and goes on: re-run" in workflow.errors[0]
    assert workflow.outputs["job-id"] == "resnet-1"
    # Each 5 seconds.
    assert len(workflow.asked("show")) == 36


def test_a_submission_that_is_never_answered_says_that_a_rerun_finds_it(workflow: Workflow) -> None:
    workflow.services.late_answers.extend(lost(ATTEMPTS))

    assert workflow.run() == 1
    assert "whether a job was started is not known: re-run" in workflow.errors[0]

    workflow.attempt = 2
    assert workflow.run() == 0
    assert workflow.services.stack.started == [workflow.outputs["job-id"]]


def cancel_after(workflow: Workflow, seconds: float) -> None:
    workflow.then = lambda now: workflow.cancellation.request() if now >= seconds else None


def test_a_cancelled_workflow_cancels_its_job_if_that_is_asked(workflow: Workflow) -> None:
    cancel_after(workflow, 12.0)

    assert workflow.run(wait="true", cancel_with_workflow="true") == 1

    (job_id,) = workflow.services.stack.started
    assert workflow.services.stack.jobs.job(job_id).state == "CANCELLED"
    (asked,) = workflow.asked("cancel")
    assert asked["reason"] == "its workflow was cancelled: https://github.com/acme/vision/actions/runs/1658821493"
    assert "the workflow was cancelled, and the job with it" in workflow.errors[0]
    assert workflow.outputs["state"] == "CANCELLED"


def test_else_its_job_goes_on(workflow: Workflow) -> None:
    cancel_after(workflow, 12.0)

    assert workflow.run(wait="true") == 1

    (job_id,) = workflow.services.stack.started
    assert workflow.services.stack.jobs.job(job_id).state == "WAITING"
    assert workflow.asked("cancel") == []
    assert "goes on (input cancel-with-workflow)" in workflow.errors[0]
    assert workflow.outputs["job-id"] == job_id


def test_a_workflow_that_is_cancelled_while_it_submits_cancels_the_job(workflow: Workflow) -> None:
    workflow.services.on_ask = lambda asked: workflow.cancellation.request() if asked["action"] == "submit" else None
    workflow.services.late_answers = [*lost(1)]

    assert workflow.run(cancel_with_workflow="true") == 1

    (job_id,) = workflow.services.stack.started
    assert workflow.services.stack.jobs.job(job_id).state == "CANCELLED"


def test_a_cancellation_that_fails_says_how_to_cancel_by_hand(workflow: Workflow) -> None:
    workflow.services.answers = [told(), told(), told(), *lost(2)]
    cancel_after(workflow, 12.0)

    assert workflow.run(wait="true", cancel_with_workflow="true") == 1

    assert "but not the job: job_api did not answer: timed out; run `relaunch cancel resnet-1`" in workflow.errors[0]


def test_a_job_that_ended_before_its_workflow_was_cancelled_is_judged_by_its_end(workflow: Workflow) -> None:
    workflow.services.on_ask = lambda _: workflow.cancellation.request()
    workflow.services.answers = [ended("SUCCEEDED")]

    assert workflow.run(wait="true", cancel_with_workflow="true") == 0


def test_a_dry_run_writes_a_plan_into_the_summary_and_starts_nothing(workflow: Workflow) -> None:
    assert workflow.run(dry_run="true", wait="true", inputs='{"learning_rate": "1"}') == 0

    assert workflow.services.stack.started == []
    assert "plan of resnet, nothing was started" in workflow.summary
    assert workflow.outputs["offering"] == "g5.xlarge spot"
    assert "a job of resnet would run on g5.xlarge spot" in workflow.log


@pytest.mark.parametrize("dry_run", ["true", "false"])
def test_an_input_that_is_not_declared_fails_the_step_and_starts_nothing(workflow: Workflow, dry_run: str) -> None:
    assert workflow.run(dry_run=dry_run, inputs='{"learning": "1"}') == 1

    assert workflow.services.stack.started == []
    assert "input 'learning' is not declared in the job definition" in workflow.errors[0]


@pytest.mark.parametrize(
    ("plan", "code", "words"),
    [
        (
            {"problem": "none"},
            1,
            "::error title=Relaunch::a job of resnet cannot run: none",
        ),
        ({"rejection": "all are shut"}, 0, "::warning title=Relaunch::a job of resnet would wait: all are shut"),
        ({}, 0, "relaunch: a job of resnet would run on its cluster"),
        ({"notices": ["a\n::error::b"]}, 0, "relaunch: a ::error::b"),
        ({"offerings": ["x"], "problem": 5}, 0, "relaunch: a job of resnet would run on its cluster"),
    ],
)
def test_a_plan_says_what_would_become_of_a_job(
    workflow: Workflow, plan: dict[str, Any], code: int, words: str
) -> None:
    workflow.services.answers = [Response(200, json.dumps({"plan": plan}).encode())]

    assert workflow.run(dry_run="true") == code

    assert words in workflow.log.splitlines()


def test_a_refusal_fails_the_step_with_what_to_do(workflow: Workflow) -> None:
    assert workflow.run(definition="resnt") == 1

    assert workflow.errors == [
        "::error title=Relaunch::UnknownDefinition: there is no job definition 'resnt'; did you mean resnet?"
    ]


def test_wrong_inputs_call_nobody(workflow: Workflow) -> None:
    assert workflow.run(wait="maybe") == 1

    assert "the input wait is 'maybe'" in workflow.errors[0]
    assert workflow.services.asked == workflow.services.assumed == []
