"""What a job says that a machine cost which it came back to after a start there that was refused."""

from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fakes.builders import make_job
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.settings import JOB_TAG
from relaunch_local.ecs import Clock, Purchase
from relaunch_local.ecs.engine.model import BillLine, Instance
from relaunch_local.simulation.checks.facts import TASK_STATE_CHANGE, AccountFacts
from relaunch_local.simulation.checks.useless_cost import UselessCost
from relaunch_local.simulation.checks.useless_machines import UselessMachines

JOB = "resnet-1"
HOST = "i-1"
NODE = "arn:node"
MINUTE = timedelta(minutes=1)
USD_PER_HOUR = 0.6
REFUSED = "CannotPullContainerError: no basic auth credentials"


def make_host(launched_at: datetime) -> Instance:
    host = {
        "instance_id": HOST,
        "arn": NODE,
        "instance_type": "g5.xlarge",
        "purchase": Purchase.ON_DEMAND,
        "reservation_id": "",
        "tags": {JOB_TAG: JOB},
        "launched_at": launched_at,
    }
    return cast("Instance", SimpleNamespace(**host))


def broken_after(first_task: dict[str, str], said_usd: float) -> list[str]:
    """Place a task two minutes after the launch, another one an hour later, which runs; return what is violated."""
    clock = Clock()
    began_at = clock.now()
    host = make_host(began_at)
    line = BillLine(HOST, "g5.xlarge", Purchase.ON_DEMAND, "us-east-1a", began_at, USD_PER_HOUR)
    hosts = {HOST: host}
    bills = {HOST: line}
    broken: list[str] = []

    def check(_name: str, holds: bool, message: str) -> None:
        broken.extend([] if holds else [message])

    machines = UselessMachines(clock, check, {}, hosts, bills, ())
    known = (MachineLimits(), (), {"g5.xlarge": USD_PER_HOUR}, ())
    facts = AccountFacts(clock, lambda _arn: HOST)
    cost = UselessCost(check, bills, *known, facts, {}, {JOB: {}}, machines.tried, {"": {JOB}})
    for number, after, detail in ((1, 2 * MINUTE, first_task), (2, 62 * MINUTE, {"startedAt": "2026-01-01"})):
        clock.advance_to(began_at + after)
        words: dict[str, Any] = {
            "taskArn": f"arn:{number}",
            "taskDefinitionArn": "arn/trainer:1",
            "startedBy": f"{JOB}/1",
            "lastStatus": "RUNNING",
        }
        machines.observe(
            {"detail-type": TASK_STATE_CHANGE, "detail": {**words, **detail, "containerInstanceArn": NODE}}
        )
    line.billing_ended_at = began_at + timedelta(hours=2)
    job = make_job(JOB)
    job = replace(job, machines=replace(job.machines, useless_usd=said_usd))
    cost.check_jobs({JOB: job}, hosts.values(), machines.tasks_on)
    return broken


@pytest.mark.parametrize(
    ("first_task", "said_usd", "is_kept"),
    [
        ({"stoppedReason": REFUSED}, USD_PER_HOUR * 2 / 60, True),
        ({"stoppedReason": REFUSED}, USD_PER_HOUR * 78 / 60, False),
        ({"stoppedReason": "Essential container in task exited"}, USD_PER_HOUR * 2 / 60, False),
        ({"startedAt": "2026-01-01"}, 0.0, True),
    ],
)
def test_what_a_machine_cost_until_a_job_came_back_to_it(
    first_task: dict[str, str], said_usd: float, *, is_kept: bool
) -> None:
    assert (broken_after(first_task, said_usd) == []) is is_kept
