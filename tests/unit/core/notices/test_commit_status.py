from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fakes.commit_changes import SHA, make_change, with_commit
from relaunch.core.jobs.changes import ChangedPart
from relaunch.core.jobs.state import CostBasis, JobState, WaitReason
from relaunch.core.lifecycle.change_events import EventCost, EventMachine
from relaunch.core.notices.commit_status import (
    MAX_DESCRIPTION,
    CommitState,
    CommitStatus,
    ShownChange,
    commit_status_of,
)

SPOT = EventMachine(instance_type="g5.xlarge", purchase="spot", zone="us-east-1a")
CHANGE = make_change()


def status_of(**fields: Any) -> CommitStatus:
    status = commit_status_of(replace(CHANGE, **fields))
    assert status is not None
    return status


def test_a_job_that_a_push_started_has_a_status_of_its_definition_on_the_commit() -> None:
    assert commit_status_of(CHANGE) == CommitStatus(
        "acme/vision", SHA, CommitState.PENDING, "relaunch/resnet", "queued · resnet-1f2e3d4c"
    )


@pytest.mark.parametrize(
    ("fields", "state", "description"),
    [
        pytest.param({"waiting_for": None}, "pending", "queued", id="before-a-reason"),
        pytest.param({"attempt": 1}, "pending", "queued for attempt 2", id="after-an-attempt"),
        pytest.param({"waiting_for": WaitReason.SLOT}, "pending", "waits for a free slot", id="slot"),
        pytest.param(
            {"waiting_for": WaitReason.CAPACITY, "reason": "no g5.xlarge in\n us-east-1"},
            "pending",
            "waits for capacity: no g5.xlarge in us-east-1",
            id="capacity",
        ),
        pytest.param(
            {"waiting_for": WaitReason.CAPACITY, "reason": ""}, "pending", "waits for capacity", id="no-reason"
        ),
        pytest.param(
            {"state": JobState.LAUNCHING, "attempt": 1, "machine": SPOT},
            "pending",
            "starting on g5.xlarge spot",
            id="launching",
        ),
        pytest.param(
            {"state": JobState.RUNNING, "attempt": 2, "machine": SPOT},
            "pending",
            "running on g5.xlarge spot, attempt 2",
            id="running",
        ),
        pytest.param(
            {"state": JobState.RUNNING, "attempt": 1, "machine": SPOT, "changed": (ChangedPart.WARNING,)},
            "pending",
            "running on g5.xlarge spot; EC2 takes the machine away",
            id="warned",
        ),
        pytest.param(
            {"state": JobState.RUNNING, "target": "acs", "changed": (ChangedPart.WARNING,)},
            "pending",
            "running; ACS takes the pod away",
            id="warned-on-a-cluster",
        ),
        pytest.param(
            {"state": JobState.RUNNING, "machine": EventMachine(node="cn-beijing.i-1")}, "pending", "running", id="node"
        ),
        pytest.param(
            {"state": JobState.RUNNING, "machine": EventMachine(instance_type="ack", purchase="on-demand")},
            "pending",
            "running on ack",
            id="a cluster where a job chooses no purchase option",
        ),
        pytest.param({"state": JobState.RUNNING}, "pending", "running", id="nowhere"),
        pytest.param({"state": JobState.STOPPING, "reason": "stopping"}, "pending", "stopping", id="stopping"),
        pytest.param({"state": JobState.SUCCEEDED}, "success", "succeeded, 0.65 USD", id="succeeded"),
        pytest.param(
            {"state": JobState.SUCCEEDED, "cost": EventCost(usd=2, basis=CostBasis.LIMIT)},
            "success",
            "succeeded, at most 2.00 USD",
            id="cost-limit",
        ),
        pytest.param(
            {"state": JobState.SUCCEEDED, "cost": EventCost(usd=0, basis=CostBasis.UNKNOWN)},
            "success",
            "succeeded, cost unknown",
            id="no-price-at-all",
        ),
        pytest.param(
            {"state": JobState.SUCCEEDED, "cost": EventCost(usd=2, basis=CostBasis.UNKNOWN)},
            "success",
            "succeeded, 2.00 USD and what has no price",
            id="cost-unknown",
        ),
        pytest.param(
            {"state": JobState.FAILED, "state_before": JobState.STOPPING, "reason": "exit code 1"},
            "failure",
            "failed: exit code 1 (0.65 USD)",
            id="failed",
        ),
        pytest.param(
            {"state": JobState.FAILED, "state_before": JobState.WAITING, "reason": "no type has 9 GPUs"},
            "error",
            "given up: no type has 9 GPUs (0.65 USD)",
            id="refused",
        ),
        pytest.param(
            {"state": JobState.TIMED_OUT, "reason": "its deadline is over"},
            "failure",
            "out of time: its deadline is over (0.65 USD)",
            id="timed-out",
        ),
        pytest.param(
            {"state": JobState.CANCELLED, "reason": "alice"}, "error", "cancelled: alice (0.65 USD)", id="cancelled"
        ),
    ],
)
def test_each_state_is_shown(fields: dict[str, Any], state: str, description: str) -> None:
    status = status_of(**fields)

    assert (status.state.value, status.description) == (state, f"{description} · resnet-1f2e3d4c")


@pytest.mark.parametrize("reason", WaitReason)
def test_each_wait_is_pending_and_says_what_for(reason: WaitReason) -> None:
    status = status_of(waiting_for=reason)

    assert status.state is CommitState.PENDING
    assert status.description.startswith(("waits for ", "queued"))


@pytest.mark.parametrize("state", JobState)
@pytest.mark.parametrize("reason", ["", "x", "é" * 1_000])
def test_no_description_is_longer_than_github_takes_and_all_name_the_job(state: JobState, reason: str) -> None:
    name = "n" * 48
    job_id = f"{name}-1f2e3d4c"
    machine = EventMachine(instance_type="t" * 100, purchase="on-demand")
    changed = (ChangedPart.WARNING,)

    status = status_of(
        definition=name, job_id=job_id, state=state, reason=reason, waiting_for=None, machine=machine, changed=changed
    )

    assert len(status.description) <= MAX_DESCRIPTION
    assert status.description.endswith(job_id)
    assert status.context == f"relaunch/{name}"


@pytest.mark.parametrize(
    "variables",
    [
        pytest.param({}, id="no-commit"),
        pytest.param({"RELAUNCH_GIT_SHA": SHA, "RELAUNCH_IMAGE_REPOSITORY": "acme/vision"}, id="image"),
        pytest.param({"RELAUNCH_GIT_REPOSITORY": "acme/vision"}, id="dispatch"),
        pytest.param({"RELAUNCH_GIT_REPOSITORY": "acme/vision", "RELAUNCH_GIT_SHA": "0" * 40}, id="deleted"),
        pytest.param({"RELAUNCH_GIT_REPOSITORY": "acme/vision", "RELAUNCH_GIT_SHA": "main"}, id="branch"),
        pytest.param({"RELAUNCH_GIT_REPOSITORY": "acme/vision", "RELAUNCH_GIT_SHA": f"{SHA}/.."}, id="path"),
        pytest.param({"RELAUNCH_GIT_REPOSITORY": "acme/..", "RELAUNCH_GIT_SHA": SHA}, id="folder"),
        pytest.param({"RELAUNCH_GIT_REPOSITORY": "acme/vision/hooks", "RELAUNCH_GIT_SHA": SHA}, id="deeper"),
        pytest.param({"RELAUNCH_GIT_REPOSITORY": "acme/vision?x", "RELAUNCH_GIT_SHA": SHA}, id="query"),
    ],
)
def test_without_a_commit_at_github_there_is_no_status(variables: dict[str, str]) -> None:
    assert commit_status_of(with_commit(CHANGE, **variables)) is None


def test_of_two_jobs_of_one_commit_the_later_change_is_shown() -> None:
    shown = ShownChange("resnet-1f2e3d4c", CHANGE.time)
    earlier = CHANGE.time - timedelta(seconds=1)

    assert shown.is_followed_by(make_change(time=earlier, sequence=2))
    assert shown.is_followed_by(make_change(job_id="resnet-2", time=CHANGE.time))
    assert not shown.is_followed_by(make_change(job_id="resnet-2", time=earlier))


def test_a_commit_of_a_repository_with_sha_256_has_one() -> None:
    status = commit_status_of(with_commit(CHANGE, RELAUNCH_GIT_REPOSITORY="acme/vision", RELAUNCH_GIT_SHA="a1" * 32))

    assert status is not None
    assert status.sha == "a1" * 32


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        (
            "AccessDenied: User: arn:aws:sts::111122223333:assumed-role/launch/x is not authorized",
            "AccessDenied: User: … is not authorized",
        ),
        ("no checkpoint at s3://acme-secret/resnet/ yet", "no checkpoint at … yet"),
        ("111122223333.dkr.ecr.us-east-1.amazonaws.com/acme:1 is missing", "… is missing"),
        ("arn:aws-cn:ecs:cn-north-1:111122223333:task/x in 111122223333", "… in …"),
        ("exit code 137 after 1234567 steps", "exit code 137 after 1234567 steps"),
    ],
)
def test_what_an_account_has_is_not_shown_to_the_readers_of_a_repository(reason: str, shown: str) -> None:
    status = status_of(state=JobState.FAILED, state_before=JobState.RUNNING, reason=reason)

    assert status.description == f"failed: {shown} (0.65 USD) · resnet-1f2e3d4c"


def test_a_request_of_another_job_is_under_way_until_it_can_no_longer_be_taken() -> None:
    sent = ShownChange("another-job", CHANGE.time, CHANGE.time)

    assert sent.under_way_until(CHANGE) == CHANGE.time + timedelta(seconds=45)
    assert ShownChange(CHANGE.job_id, CHANGE.time, CHANGE.time).under_way_until(CHANGE) is None
    assert ShownChange("another-job", CHANGE.time).under_way_until(CHANGE) is None
