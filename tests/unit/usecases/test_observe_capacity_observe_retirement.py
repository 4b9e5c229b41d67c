"""AWS announces that it retires instances: their jobs move before that, with a handover."""

import json
from datetime import timedelta

import pytest

from fakes.machine_story import MachineStory
from fakes.webhook import load_event
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.instance_events import InstancesRetiring
from relaunch.core.machines.limits import TaskStop
from relaunch.core.machines.machine import MachineState
from relaunch.entrypoints.warnings import handle_message
from relaunch.ports import TransientError
from relaunch.usecases.observe_capacity import observe_retirement

WEEKS = timedelta(days=14)


@pytest.fixture
def story() -> MachineStory:
    return MachineStory(task_stop=TaskStop.WHEN_NEXT_READY)


def announce(story: MachineStory, instance_id: str, *, ahead: timedelta = WEEKS) -> None:
    """Deliver the event of AWS Health."""
    text = json.dumps(load_event("aws.health.instance-retirement")).replace("i-0a1b2c3d4e5f60718", instance_id)
    event = json.loads(text)
    event["time"] = f"{story.now:%Y-%m-%dT%H:%M:%SZ}"
    event["detail"]["startTime"] = f"{story.now + ahead:%a, %d %b %Y %H:%M:%S GMT}"
    handle_message(json.dumps(event), story.deps)


def test_a_job_moves_to_a_machine_that_is_not_retired_and_trains_on_until_that_is_ready(story: MachineStory) -> None:
    job_id = story.train()
    retired = story.machine(job_id)
    left_by = story.now + WEEKS - timedelta(minutes=2)
    announce(story, retired.instance_id or "")
    # The message for the last moment, which a fake queue would deliver with all others.
    story.launches.requested = [(each, delay) for each, delay in story.launches.requested if delay == 0]
    story.settle_all()

    assert story.job(job_id).state is JobState.RUNNING
    following = story.machine(job_id)
    assert following.machine_id != retired.machine_id
    assert f"retirement by AWS, to be left by {left_by:%Y-%m-%d %H:%M} UTC, for" in story.timeline(job_id)
    story.register(following)
    story.settle_all()
    assert story.job(job_id).state is JobState.STOPPING
    story.end(job_id, 143, stop_code="UserInitiated")
    story.settle_all()
    assert story.tasks.requests[-1].instance_id == following.instance_id
    assert story.load(retired.machine_id).state in (MachineState.ENDING, MachineState.GONE)
    assert (story.job(job_id).totals.interruptions, story.job(job_id).totals.failures) == (1, 0)


def test_without_a_next_machine_it_is_stopped_in_time_to_save(story: MachineStory) -> None:
    job_id = story.train()
    announce(story, story.machine(job_id).instance_id or "", ahead=timedelta(hours=1))
    story.launches.requested.clear()

    story.reconcile(timedelta(minutes=55))
    assert story.job(job_id).state is JobState.RUNNING
    story.reconcile(timedelta(minutes=2))
    assert story.job(job_id).state is JobState.STOPPING


def test_an_instance_of_somebody_else_is_none_of_its_business(story: MachineStory) -> None:
    job_id = story.train()
    announce(story, "i-0fff")

    assert story.job(job_id).state is JobState.RUNNING
    assert "retirement" not in story.timeline(job_id)


def test_an_instance_that_cannot_be_warned_keeps_no_other_from_it(
    story: MachineStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = story.train()
    instance_id = story.machine(job_id).instance_id or ""
    load = story.jobs.load_on_instance

    def load_on_instance(wanted: str) -> object:
        if wanted == "i-0fff":
            raise TransientError("reading the table: try again")
        return load(wanted)

    monkeypatch.setattr(story.jobs, "load_on_instance", load_on_instance)
    with pytest.raises(TransientError):
        observe_retirement(InstancesRetiring(("i-0fff", instance_id), story.now, story.now + WEEKS), story.deps)

    assert "retirement by AWS" in story.timeline(job_id)
