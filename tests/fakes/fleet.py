"""Machines of our own: requests with sensible values, and fakes of EC2 Fleet and of the machines queue."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fakes.builders import NOW
from relaunch.adapters.aws.ec2.create_fleet import check_limits
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.events import (
    FleetAnswer,
    FleetDeferred,
    FleetRefused,
    FleetUncertain,
    InstanceLaunched,
    InstanceObservation,
    InstanceState,
    Refusal,
    RefusalKind,
)
from relaunch.core.machines.machine import FleetOverride, FleetRequest, client_token_of, machine_id_of
from relaunch.core.machines.resources import Resources
from relaunch.core.machines.tags import JOB_TAG, MACHINE_TAG, STACK_TAG
from relaunch.core.offerings.offering import OfferingKey
from relaunch.ports import Termination

STACK = "relaunch-prod"
MACHINE_ID = machine_id_of("resnet-1f2e3d4c", 1, 1)
MAX_DELAY_SECONDS = 900


def make_override(
    instance_type: str = "g6.xlarge",
    zone: str = "us-east-1a",
    purchase: PurchaseOption = PurchaseOption.SPOT,
    **fields: Any,
) -> FleetOverride:
    """Build an override in the one subnet of its zone."""
    override = FleetOverride(
        OfferingKey(instance_type, zone, purchase), f"subnet-{zone}", 0.5, Resources(4096, 14_000, gpus=1)
    )
    return replace(override, **fields)


def make_fleet_request(*overrides: FleetOverride, machine_id: str = MACHINE_ID, **fields: Any) -> FleetRequest:
    """Build the request of a machine, by default for one override; its purchase option is that of the first one."""
    overrides = overrides or (make_override(),)
    request = FleetRequest(
        client_token=client_token_of(machine_id),
        purchase=overrides[0].offering.purchase,
        launch_template_id="lt-0123456789abcdef0",
        launch_template_version="7",
        overrides=overrides,
        tags={STACK_TAG: STACK, MACHINE_TAG: machine_id, JOB_TAG: "resnet-1f2e3d4c"},
    )
    return replace(request, **fields)


class FakeMachineSource:
    """Implements MachineSource: EC2 with all the capacity there is, except for what `refused` says.

    `refused` has the codes of refusals by offering. `throttled` and `lost` are the numbers of the next requests that
    are throttled, and whose answer is lost after they took effect. `foreign` are instances that may not be ended.
    """

    def __init__(self, stack: str = STACK) -> None:
        self.refused: dict[OfferingKey, tuple[RefusalKind, str]] = {}
        self.throttled = 0
        self.lost = 0
        self.foreign: set[str] = set()
        self.instances: dict[str, InstanceObservation] = {}
        self.requests: list[FleetRequest] = []
        self._stack = stack
        self._answers: dict[str, tuple[FleetRequest, FleetAnswer]] = {}

    def request(self, request: FleetRequest) -> FleetAnswer:
        violations = check_limits(request, self._stack)
        if violations:
            return FleetRefused((Refusal(RefusalKind.CONFIGURATION, "NotSent", "; ".join(violations)),))
        self.requests.append(request)
        if self.throttled:
            self.throttled -= 1
            return FleetDeferred("RequestLimitExceeded: too many requests")
        earlier, answer = self._answers.get(request.client_token) or (request, self._launch(request))
        if earlier != request:
            return FleetUncertain("IdempotentParameterMismatch: the token was that of another request")
        self._answers[request.client_token] = (request, answer)
        if self.lost:
            self.lost -= 1
            return FleetUncertain("no answer to CreateFleet: time-out")
        return answer

    def _launch(self, request: FleetRequest) -> FleetAnswer:
        refusals: list[Refusal] = []
        for offering in (each.offering for each in request.overrides):
            if offering not in self.refused:
                instance_id = f"i-{len(self.instances) + 1:017x}"
                self.instances[instance_id] = InstanceObservation(
                    instance_id, InstanceState.RUNNING, request.tags[MACHINE_TAG], offering, NOW
                )
                return InstanceLaunched(instance_id, offering, tuple(refusals))
            kind, code = self.refused[offering]
            refusals.append(Refusal(kind, code, "so it is", offering))
        return FleetRefused(tuple(refusals))

    def find(self, machine_id: str) -> list[InstanceObservation]:
        return [each for each in self.instances.values() if each.machine_id == machine_id]

    def describe(self, instance_ids: Sequence[str]) -> Mapping[str, InstanceObservation | None]:
        return {each: self.instances.get(each) for each in instance_ids}

    def list_instances(self) -> Iterator[Sequence[InstanceObservation]]:
        yield [each for each in self.instances.values() if each.state is not InstanceState.TERMINATED]

    def terminate(self, instance_ids: Sequence[str]) -> Mapping[str, Termination]:
        return {each: self._terminate(each) for each in instance_ids}

    def _terminate(self, instance_id: str) -> Termination:
        if instance_id in self.foreign:
            return Termination.REFUSED
        if instance_id not in self.instances:
            return Termination.ABSENT
        self.end(instance_id, "Client.UserInitiatedShutdown: User initiated shutdown")
        return Termination.ENDING

    def end(self, instance_id: str, reason: str) -> None:
        """Terminate an instance for a reason of EC2's."""
        instance = self.instances[instance_id]
        if instance.state is not InstanceState.TERMINATED:
            self.instances[instance_id] = replace(instance, state=InstanceState.TERMINATED, state_reason=reason)


class FakeMachineQueue:
    """Implements MachineQueue: `requested` lists (machine id, delay in seconds) in order."""

    def __init__(self) -> None:
        self.requested: list[tuple[str, int]] = []

    def ask_fleet(self, machine_id: str, delay_seconds: int = 0) -> None:
        self.requested.append((machine_id, min(max(delay_seconds, 0), MAX_DELAY_SECONDS)))
