"""Machines of our own: requests with sensible values, and fakes of EC2 Fleet and of the machines queue."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from fakes.builders import NOW
from relaunch.adapters.aws.ec2.create_fleet import check_limits
from relaunch.adapters.aws.ec2.fleet import NOT_SENT
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
from relaunch.core.machines.machine import FleetOverride, FleetRequest, Resources, client_token_of, machine_id_of
from relaunch.core.machines.settings import JOB_TAG, MACHINE_TAG, STACK_TAG
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

    `refused` has the refusals by offering. `throttled` and `lost` are the numbers of the next requests that are
    throttled, and whose answer is lost after they took effect. `foreign` are instances of others, `hidden` the IDs of
    those that EC2 does not show yet, `impaired` of those whose status checks fail, asked for `status_checks` times. Of
    several instances `missing` are not launched. `free` is how many instances a reservation has, if not enough.
    """

    def __init__(self, stack: str = STACK) -> None:
        self.refused: dict[OfferingKey, tuple[RefusalKind, str]] = {}
        self.throttled = 0
        self.lost = 0
        self.missing = 0
        self.free: dict[str, int] = {}
        self.instances: dict[str, InstanceObservation] = {}
        self.foreign: dict[str, InstanceObservation] = {}
        self.hidden: set[str] = set()
        self.impaired: set[str] = set()
        self.status_checks = 0
        self.spot_history: list[tuple[datetime, float]] = []
        self.requests: list[FleetRequest] = []
        self._stack = stack
        self._launch_count = 0
        self._answers: dict[str, tuple[FleetRequest, FleetAnswer]] = {}

    def request(self, request: FleetRequest) -> FleetAnswer:
        violations = check_limits(request, self._stack)
        if violations:
            return FleetRefused((Refusal(RefusalKind.CONFIGURATION, NOT_SENT, "; ".join(violations)),))
        self.requests.append(request)
        if self.throttled:
            self.throttled -= 1
            return FleetDeferred("RequestLimitExceeded: Request limit exceeded.")
        if request.client_token not in self._answers:
            self._answers[request.client_token] = (request, self._launch(request))
        first, answer = self._answers[request.client_token]
        if first != request:
            return FleetUncertain("IdempotentParameterMismatch: the token was that of another request")
        if self.lost:
            self.lost -= 1
            return FleetUncertain("no answer to CreateFleet: time-out")
        return answer

    def _launch(self, request: FleetRequest) -> FleetAnswer:
        reserved = request.reservation
        if reserved is not None and self.free.get(reserved.reservation_id, request.size) < request.size:
            return FleetRefused((Refusal(RefusalKind.PRICE, "ReservationCapacityExceeded"),), is_raised=True)
        refusals: list[Refusal] = []
        for offering in _in_order(request):
            if offering not in self.refused:
                count = request.size - self.missing
                first, *others = [self.new_instance(offering, request.tags[MACHINE_TAG]) for _ in range(count)]
                self.instances |= {each.instance_id: each for each in (first, *others)}
                rest = tuple(each.instance_id for each in others)
                return InstanceLaunched(first.instance_id, offering, tuple(refusals), others=rest)
            kind, code = self.refused[offering]
            refusals.append(Refusal(kind, code, "so it is", offering))
        return FleetRefused(tuple(refusals))

    def new_instance(self, offering: OfferingKey, machine_id: str = "") -> InstanceObservation:
        """Return a running instance with an ID of its own."""
        self._launch_count += 1
        return InstanceObservation(f"i-{self._launch_count:017x}", InstanceState.RUNNING, machine_id, offering, NOW)

    def find(self, machine_id: str) -> list[InstanceObservation]:
        return [each for each in self._shown() if each.machine_id == machine_id]

    def describe(self, instance_ids: Sequence[str]) -> Mapping[str, InstanceObservation | None]:
        known = {**self.foreign, **{each.instance_id: each for each in self._shown()}}
        return {each: known.get(each) for each in instance_ids}

    def find_impaired(self, instance_ids: Sequence[str]) -> frozenset[str]:
        self.status_checks += 1
        return frozenset(each for each in instance_ids if each in self.impaired)

    def spot_prices(self, offering: OfferingKey, since: datetime) -> list[tuple[datetime, float]]:
        return [each for each in self.spot_history if each[0] >= since]

    def list_instances(self) -> Iterator[Sequence[InstanceObservation]]:
        yield [each for each in self._shown() if each.state is not InstanceState.TERMINATED]

    def _shown(self) -> list[InstanceObservation]:
        return [each for each in self.instances.values() if each.instance_id not in self.hidden]

    def terminate(self, instance_ids: Sequence[str]) -> Mapping[str, Termination]:
        return {each: self._terminate(each) for each in instance_ids}

    def _terminate(self, instance_id: str) -> Termination:
        if instance_id in self.foreign:
            return Termination.REFUSED
        if instance_id not in self.instances or instance_id in self.hidden:
            return Termination.ABSENT
        self.end(instance_id, "Client.UserInitiatedShutdown: User initiated shutdown")
        return Termination.ENDING

    def end(self, instance_id: str, reason: str) -> None:
        """Terminate an instance, for a reason as EC2 gives it, unless it has ended already."""
        instance = self.instances[instance_id]
        if instance.state is not InstanceState.TERMINATED:
            self.instances[instance_id] = replace(instance, state=InstanceState.TERMINATED, state_reason=reason)


def _in_order(request: FleetRequest) -> list[OfferingKey]:
    """Return the offerings as EC2 tries them, cheapest first; on-demand by their priority before that."""
    is_spot = request.purchase is PurchaseOption.SPOT
    ordered = sorted(request.overrides, key=lambda each: (0 if is_spot else each.priority, each.usd_per_hour))
    return [each.offering for each in ordered]


class FakeMachineQueue:
    """Implements MachineQueue: `requested` lists (machine id, delay in seconds) in order."""

    def __init__(self) -> None:
        self.requested: list[tuple[str, int]] = []

    def request_calls(self, machine_id: str, delay_seconds: int = 0) -> None:
        self.requested.append((machine_id, min(max(delay_seconds, 0), MAX_DELAY_SECONDS)))
