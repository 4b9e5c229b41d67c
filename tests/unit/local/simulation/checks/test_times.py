"""How long a cancelled job may take: longer only while the host of somebody else does not confirm the stop."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from fakes.builders import make_job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch_local.ecs import Clock
from relaunch_local.ecs.engine.model import Instance
from relaunch_local.simulation.aws.s3 import ObjectStore
from relaunch_local.simulation.checks.facts import TASK_STATE_CHANGE, AccountFacts
from relaunch_local.simulation.checks.invariants import Invariants
from relaunch_local.simulation.checks.times import Times

JOB, TASK, HOST, MINUTE = "resnet-1", "arn:task", "i-1", timedelta(minutes=1)
A_DAY = 24 * 60
OWN_HOSTS = cast("Mapping[str, Instance]", {HOST: None})


def event(kind: str, **detail: Any) -> dict[str, Any]:
    return {"detail-type": kind, "detail": detail}


def broken_by_an_end_after(took: timedelta, *, is_cut_off: bool, own_hosts: Mapping[str, Instance]) -> list[str]:
    """Cancel a job whose host says nothing of its task, and end it after this time; return what is violated."""
    clock = Clock()
    began_at = clock.now()
    facts = AccountFacts(clock, lambda _arn: HOST)
    invariants = Invariants(clock, ObjectStore(), 5, facts)
    words = {"taskArn": TASK, "startedBy": f"{JOB}/1", "lastStatus": "PENDING", "version": 1}
    told = event(TASK_STATE_CHANGE, **words, containerInstanceArn="arn:node")
    facts.observe(told)
    invariants.task_changed(told)
    facts.stop_asked(TASK)
    if is_cut_off:
        facts.observe(event("ECS Container Instance State Change", ec2InstanceId=HOST, agentConnected=False))
    clock.advance_to(began_at + took)
    job = replace(make_job(JOB), state=JobState.CANCELLED, accepted_at=began_at, ended_at=clock.now())
    Times(clock, invariants, facts, StackLimits(), {JOB: began_at}, own_hosts).check(job)
    return invariants.violations


@pytest.mark.parametrize(
    ("minutes", "is_cut_off", "own_hosts", "is_kept"),
    [
        (45, False, {}, True),
        (46, False, {}, False),
        (46, True, {}, True),
        (46, True, OWN_HOSTS, False),
        (A_DAY + 45, True, {}, True),
        (A_DAY + 46, True, {}, False),
    ],
)
def test_a_cancelled_job_ends_in_time(
    minutes: int, *, is_cut_off: bool, own_hosts: Mapping[str, Instance], is_kept: bool
) -> None:
    violations = broken_by_an_end_after(minutes * MINUTE, is_cut_off=is_cut_off, own_hosts=own_hosts)

    assert any("what is cancelled ends in time" in each for each in violations) is not is_kept


@pytest.mark.parametrize(
    ("minutes", "is_cut_off", "own_hosts", "is_kept"),
    [
        (90, False, {}, True),
        (91, False, {}, False),
        (0, True, {}, True),
        (91, True, {}, False),
        (0, True, OWN_HOSTS, False),
    ],
)
def test_an_orphaned_task_stops_in_time_or_is_to_stop_on_a_host_of_others_that_hears_of_nothing(
    minutes: int, *, is_cut_off: bool, own_hosts: Mapping[str, Instance], is_kept: bool
) -> None:
    """The orphan is wanted to stop after these minutes, and has stopped after four hours if its host is cut off."""
    clock = Clock()
    began_at = clock.now()
    facts = AccountFacts(clock, lambda _arn: HOST)
    invariants = Invariants(clock, ObjectStore(), 5, facts)

    def tell(after: timedelta, **words: Any) -> None:
        clock.advance_to(began_at + after)
        detail = {"taskArn": TASK, "startedBy": f"{JOB}/1", "version": 1, "containerInstanceArn": "arn:node", **words}
        facts.observe(event(TASK_STATE_CHANGE, **detail))
        invariants.task_changed(event(TASK_STATE_CHANGE, **detail))

    tell(timedelta(0), lastStatus="RUNNING")
    invariants.orphans[TASK] = began_at
    if is_cut_off:
        facts.observe(event("ECS Container Instance State Change", ec2InstanceId=HOST, agentConnected=False))
    clock.advance_to(began_at + minutes * MINUTE)
    facts.stop_asked(TASK)
    tell(minutes * MINUTE, lastStatus="RUNNING", desiredStatus="STOPPED")
    ends_after = 240 * MINUTE if is_cut_off else minutes * MINUTE
    stopped_at = (began_at + ends_after).isoformat()
    tell(ends_after, lastStatus="STOPPED", desiredStatus="STOPPED", stoppedAt=stopped_at)
    job = replace(make_job(JOB), state=JobState.SUCCEEDED, accepted_at=began_at, ended_at=clock.now())
    Times(clock, invariants, facts, StackLimits(), {}, own_hosts).check(job)
    broken = [each for each in invariants.violations if "an orphaned task stops in time" in each]
    assert (broken == []) is is_kept
