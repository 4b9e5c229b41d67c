"""The role of request_machine calls the simulated EC2 Fleet, which checks each permission of a launch as EC2 does."""

from datetime import timedelta
from typing import Any

import pytest

from architecture.conftest import Template
from architecture.role_policies import RolePolicies
from fakes.fleet import make_fleet_request, make_override
from fakes.fleet_region import ROLE, FleetRegion
from fakes.reservations import make_block
from relaunch.adapters.aws.ec2.fleet import Ec2Fleet
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.events import FleetAnswer, FleetRefused, InstanceLaunched, RefusalKind
from relaunch.core.machines.settings import MACHINE_TAG, STACK_TAG
from relaunch.core.offerings.reservations import Reservation
from relaunch.ports import Termination
from relaunch_local.ecs.engine.reservations import CapacityReservation
from relaunch_local.iam.policies import PolicyAuthorizer

STACK = "relaunch"
PARAMETERS = {
    "MachineSubnets": "us-east-1a=subnet-a,us-east-1b=subnet-b",
    "MachineLaunchTemplates": "gpu=lt-1:2",
    "MachineInstanceRoleArn": ROLE,
}


class Requesting:
    """EC2 Fleet with the permissions of request_machine; `answer` is that to a request in subnet-a."""

    def __init__(self, template: Template, stack: str = STACK, **parameters: str) -> None:
        policies = RolePolicies(template, "RequestMachineRole", **{**PARAMETERS, **parameters}).documents
        self.region = FleetRegion(authorize=PolicyAuthorizer({"AKIATEST": policies}))
        self.fleet = Ec2Fleet(self.region.ec2, self.region.ec2, stack)
        self._stack = stack

    def answer(self, purchase: PurchaseOption = PurchaseOption.SPOT, **fields: Any) -> FleetAnswer:
        override = make_override("g5.xlarge", "us-east-1a", purchase, subnet_id="subnet-a")
        tags = {STACK_TAG: self._stack, MACHINE_TAG: "m-1"}
        wanted = {"launch_template_id": "lt-1", "launch_template_version": "2", "tags": tags, **fields}
        return self.fleet.request(make_fleet_request(override, machine_id="m-1", **wanted))


def kinds(answer: FleetAnswer) -> set[RefusalKind]:
    assert isinstance(answer, FleetRefused), answer
    return {each.kind for each in answer.refusals}


@pytest.mark.parametrize("purchase", [PurchaseOption.SPOT, PurchaseOption.ON_DEMAND])
def test_a_machine_of_the_stack_is_launched_and_ended(template: Template, purchase: PurchaseOption) -> None:
    requesting = Requesting(template)

    answer = requesting.answer(purchase)

    assert isinstance(answer, InstanceLaunched), answer
    # EC2 shows a new instance up to a minute late.
    requesting.region.clock.advance(60.0)
    assert [each.instance_id for each in requesting.fleet.find("m-1")] == [answer.instance_id]
    assert requesting.fleet.terminate([answer.instance_id]) == {answer.instance_id: Termination.ENDING}


@pytest.mark.parametrize(
    "parameters",
    [
        pytest.param({"MachineLaunchTemplates": "gpu=lt-10:2"}, id="template"),
        pytest.param({"MachineSubnets": "us-east-1b=subnet-b"}, id="subnet"),
        pytest.param({"MachineInstanceRoleArn": f"{ROLE}s"}, id="role"),
        pytest.param({"AWS::StackName": "relaunch-2"}, id="stack"),
    ],
)
def test_what_the_parameters_do_not_name_is_not_permitted(template: Template, parameters: dict[str, str]) -> None:
    assert kinds(Requesting(template, **parameters).answer()) == {RefusalKind.NOT_PERMITTED}


def test_while_machines_are_off_nothing_is_permitted(template: Template) -> None:
    off = dict.fromkeys(PARAMETERS, "")

    assert kinds(Requesting(template, **off).answer()) == {RefusalKind.NOT_PERMITTED}


RESERVATION = "arn:aws:ec2:us-east-1:{account}:capacity-reservation/{name}"
DESCRIBING = "ec2:DescribeCapacityReservations"


def reserve(requesting: Requesting) -> Reservation:
    """Let the region have a block of 3; return it."""
    block = make_block()
    now = requesting.region.clock.now()
    reserved = CapacityReservation(
        block.reservation_id, "g5.xlarge", "us-east-1a", 3, block.type.value, now, now + timedelta(days=1)
    )
    requesting.region.simulator.reservations.add(reserved)
    return block


class TestReservations:
    """What the role of request_machine may launch into reservations, one machine by a fleet and several at once."""

    @pytest.mark.parametrize("size", [1, 3])
    def test_the_role_launches_one_machine_or_several_into_a_reservation_and_ends_them(
        self, template: Template, size: int
    ) -> None:
        requesting = Requesting(template, CapacityReservations=make_block().reservation_id)

        answer = requesting.answer(PurchaseOption.RESERVED, reservation=reserve(requesting), size=size)

        assert isinstance(answer, InstanceLaunched), answer
        requesting.region.clock.advance(60.0)
        ids = [answer.instance_id, *answer.others]
        assert requesting.fleet.terminate(ids) == dict.fromkeys(ids, Termination.ENDING)

    @pytest.mark.parametrize("size", [1, 3])
    @pytest.mark.parametrize(
        "parameters",
        [
            pytest.param({"CapacityReservations": "cr-0a"}, id="another reservation"),
            pytest.param({"MachineSubnets": "us-east-1b=subnet-b"}, id="subnet"),
            pytest.param({"MachineLaunchTemplates": "gpu=lt-10:2"}, id="template"),
            pytest.param({"MachineInstanceRoleArn": f"{ROLE}s"}, id="role"),
            pytest.param({"AWS::StackName": "relaunch-2"}, id="stack"),
        ],
    )
    def test_what_the_parameters_do_not_name_is_not_permitted_there(
        self, template: Template, size: int, parameters: dict[str, str]
    ) -> None:
        named = {"CapacityReservations": make_block().reservation_id, **parameters}
        requesting = Requesting(template, **named)

        answer = requesting.answer(PurchaseOption.RESERVED, reservation=reserve(requesting), size=size)

        assert kinds(answer) == {RefusalKind.NOT_PERMITTED}

    @pytest.mark.parametrize("action", ["ec2:CreateFleet", "ec2:RunInstances"])
    def test_machines_are_launched_into_those_of_the_stack_alone(self, template: Template, action: str) -> None:
        parameters = {**PARAMETERS, "CapacityReservations": "cr-0a,cr-0b"}
        policies = RolePolicies(template, "RequestMachineRole", **parameters)

        # Another account may share one.
        for name in ("cr-0a", "cr-0b"):
            assert policies.allows(action, RESERVATION.format(account="111122223333", name=name))
            assert policies.allows(action, RESERVATION.format(account="444455556666", name=name))
        assert not policies.allows(action, RESERVATION.format(account="111122223333", name="cr-0c"))

    def test_only_who_selects_may_read_them(self, template: Template) -> None:
        parameters = {**PARAMETERS, "CapacityReservations": "cr-0a"}

        assert RolePolicies(template, "LaunchAttemptRole", **parameters).allows(DESCRIBING, "*")
        assert RolePolicies(template, "JobApiRole", **parameters).allows(DESCRIBING, "*")
        assert not RolePolicies(template, "RequestMachineRole", **parameters).allows(DESCRIBING, "*")

    def test_a_stack_without_any_may_neither_read_nor_use_them(self, template: Template) -> None:
        without = {**PARAMETERS, "CapacityReservations": ""}
        requesting = RolePolicies(template, "RequestMachineRole", **without)

        assert not RolePolicies(template, "LaunchAttemptRole", **without).allows(DESCRIBING, "*")
        assert not RolePolicies(template, "JobApiRole", **without).allows(DESCRIBING, "*")
        for name in ("cr-0a", ""):
            assert not requesting.allows("ec2:RunInstances", RESERVATION.format(account="111122223333", name=name))
