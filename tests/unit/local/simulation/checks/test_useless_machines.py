"""Whether a pool is tried with one machine at a time: by what EC2 launched there, and ECS placed."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fakes.builders import make_job
from fakes.machines import machine
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.core.machines.settings import GROUP_TAG, JOB_TAG
from relaunch_local.ecs import Clock, Purchase
from relaunch_local.ecs.engine.model import Instance, InstanceState, StateReason
from relaunch_local.simulation.checks.useless_machines import UselessMachines

MINUTE = timedelta(minutes=1)
POOL = ("g4dn.xlarge", "spot", "us-east-1b")


class Pool:
    """Machines that are launched in one pool, each a minute after the other."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.hosts: dict[str, Any] = {}
        hosts = cast("dict[str, Instance]", self.hosts)
        self.machines: dict[str, Machine] = {}
        self.checks = UselessMachines(self.clock, lambda *_: None, {}, hosts, {}, (), (), self.machines)

    def launch(
        self,
        name: str,
        *,
        is_alive: bool = True,
        zone: str = POOL[2],
        warned: bool = False,
        group: str = "",
        ended_for: StateReason | None = None,
    ) -> None:
        self.clock.advance_to(self.clock.now() + MINUTE)
        self.hosts[name] = SimpleNamespace(
            instance_id=name,
            instance_type=POOL[0],
            purchase=Purchase.SPOT,
            reservation_id="",
            zone=zone,
            launched_at=self.clock.now(),
            tags={JOB_TAG: "resnet-1", **({GROUP_TAG: group} if group else {})},
            arn=f"arn:{name}",
            is_alive=is_alive,
            state=InstanceState.RUNNING if is_alive else InstanceState.TERMINATED,
            state_reason=ended_for,
            registered_at=None,
            ended_at=None if is_alive else self.clock.now() + MINUTE / 2,
        )
        if warned:
            detail = {"instance-id": name}
            self.checks.observe({"detail-type": "EC2 Spot Instance Interruption Warning", "detail": detail})

    def place(self, name: str) -> None:
        detail = {
            "taskArn": f"arn:task-{name}",
            "taskDefinitionArn": "arn/trainer:1",
            "containerInstanceArn": f"arn:{name}",
            "startedBy": "resnet-1/1",
            "startedAt": "now",
            "lastStatus": "RUNNING",
        }
        self.checks.observe({"detail-type": "ECS Task State Change", "detail": detail})
        self.clock.advance_to(self.clock.now() + 2 * MINUTE)


@pytest.fixture
def pool() -> Pool:
    return Pool()


def test_a_pool_is_held_back_while_a_machine_starts_after_one_that_took_no_task(pool: Pool) -> None:
    pool.launch("i-1", is_alive=False)
    assert not pool.checks.is_held_back(*POOL)

    pool.launch("i-2")
    assert pool.checks.is_held_back(*POOL)
    assert not pool.checks.is_held_back(POOL[0], POOL[1], "us-east-1a")

    pool.place("i-2")
    assert not pool.checks.is_held_back(*POOL)


def test_a_pool_is_held_back_for_hours_after_several_machines_that_took_no_task(pool: Pool) -> None:
    for number in range(8):
        assert not pool.checks.is_held_back(*POOL)
        pool.launch(f"i-{number}", is_alive=False)
    assert pool.checks.is_held_back(*POOL)

    pool.clock.advance_to(pool.clock.now() + 6 * timedelta(hours=1))
    assert not pool.checks.is_held_back(*POOL)


@pytest.mark.parametrize(
    ("state", "is_alone"), [(MachineState.REQUESTED, True), (MachineState.STARTING, False), (MachineState.GONE, False)]
)
def test_a_pool_is_held_back_while_a_machine_is_requested_there(
    pool: Pool, state: MachineState, *, is_alone: bool
) -> None:
    requested = machine(state)
    first = requested.request.overrides[0]
    key = replace(first.offering, instance_type=POOL[0], purchase=PurchaseOption.SPOT, zone=POOL[2])
    request = replace(requested.request, overrides=(replace(first, offering=key),))
    pool.machines["m-1"] = replace(requested, request=request)
    assert not pool.checks.is_held_back(*POOL)

    pool.launch("i-1", is_alive=False)

    assert pool.checks.is_held_back(*POOL) is is_alone


def test_a_machine_that_shows_nothing_within_an_hour_is_not_waited_for(pool: Pool) -> None:
    pool.launch("i-1", is_alive=False)
    pool.launch("i-2")
    pool.clock.advance_to(pool.clock.now() + 60 * MINUTE)

    assert not pool.checks.is_held_back(*POOL)


def test_a_machine_that_ec2_took_back_says_nothing_of_its_pool(pool: Pool) -> None:
    pool.launch("i-1", is_alive=False, warned=True)
    pool.launch("i-2")

    assert not pool.checks.is_held_back(*POOL)


def test_a_machine_that_aws_retires_says_nothing_of_its_pool(pool: Pool) -> None:
    pool.launch("i-1", is_alive=False)
    pool.checks.observe({"detail-type": "AWS Health Event", "resources": ["i-1"], "detail": {}})
    pool.launch("i-2")

    assert not pool.checks.is_held_back(*POOL)


def test_a_machine_that_had_ended_before_ec2_took_another_one_of_its_group_says_what_it_did(pool: Pool) -> None:
    pool.launch("i-1", is_alive=False, group="m-1")
    pool.launch("i-2", is_alive=False, group="m-1", warned=True)
    pool.launch("i-3")

    assert pool.checks.is_held_back(*POOL)


@pytest.mark.parametrize("warned", [True, False])
def test_machines_that_are_ended_for_one_of_their_group_which_ec2_took_back_say_nothing_either(
    pool: Pool, warned: bool
) -> None:
    pool.launch("i-1", is_alive=False, group="m-1", warned=warned)
    pool.launch("i-2", is_alive=False, group="m-1")
    pool.launch("i-3")

    assert pool.checks.is_held_back(*POOL) is not warned


def test_a_group_that_was_late_before_ec2_took_a_machine_of_it_holds_its_pool_back(pool: Pool) -> None:
    pool.launch("i-1", is_alive=False, group="m-1")
    pool.launch("i-2", is_alive=False, group="m-1")
    for name in ("i-1", "i-2"):
        pool.hosts[name].ended_at = pool.clock.now() + 4 * MINUTE
    pool.clock.advance_to(pool.clock.now() + 3 * MINUTE)
    pool.checks.observe({"detail-type": "EC2 Spot Instance Interruption Warning", "detail": {"instance-id": "i-2"}})
    pool.launch("i-3")

    assert pool.checks.is_held_back(*POOL)


@pytest.mark.parametrize(
    ("ended_for", "counts"),
    [
        (StateReason.USER_INITIATED, True),
        (StateReason.SPOT_TERMINATION, False),
    ],
)
def test_a_job_had_no_machine_of_use_though_somebody_ended_them_unless_that_was_ec2(
    pool: Pool, ended_for: StateReason, *, counts: bool
) -> None:
    job = replace(make_job(), job_id="resnet-1", accepted_at=pool.clock.now())
    for number in range(3):
        pool.launch(f"i-{number}", is_alive=False, ended_for=ended_for)

    assert pool.checks.had_none_of_use(job, pool.clock.now()) is counts
    assert not pool.checks.had_none_of_use(job, job.accepted_at)


def test_a_job_that_never_had_one_waits_since_another_job_had_one_of_no_use(pool: Pool) -> None:
    pool.launch("i-0", is_alive=False)
    pool.hosts["i-0"].tags[JOB_TAG] = "other"
    job = replace(make_job(), job_id="resnet-1", accepted_at=pool.clock.now())
    for number in range(1, 4):
        pool.launch(f"i-{number}", is_alive=False)

    assert pool.checks.had_none_of_use(job, job.accepted_at)
    pool.place("i-2")
    assert not pool.checks.had_none_of_use(job, job.accepted_at)
