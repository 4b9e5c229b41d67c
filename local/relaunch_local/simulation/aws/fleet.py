"""EC2 as calls about machines of our own see it: refusals, partial and empty answers, faulty hosts, late reads."""

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol

from botocore.exceptions import ClientError

from relaunch.adapters.aws.errors import error_code
from relaunch.core.machines.settings import MACHINE_TAG
from relaunch_local.ecs import Clock, EcsError, EcsSimulator, Event, InProcessClient
from relaunch_local.ecs.api.in_process import client_error_of
from relaunch_local.ecs.engine.fleet import GROUP_TAG, FleetFault
from relaunch_local.ecs.engine.model import Instance
from relaunch_local.ecs.engine.settings import HostPlan
from relaunch_local.simulation.aws.calls import CallErrors
from relaunch_local.simulation.aws.clients import disconnected, timed_out
from relaunch_local.simulation.aws.group_faults import GroupLaunchFaults
from relaunch_local.simulation.chance import Chance

REFUSALS = (
    "InsufficientInstanceCapacity",
    "InsufficientInstanceCapacity",
    "UnfulfillableCapacity",
    "Unsupported",
    "SpotMaxPriceTooLow",
    "ReservationCapacityExceeded",
    "InsufficientFreeAddressesInSubnet",
    "MaxSpotInstanceCountExceeded",
    "VcpuLimitExceeded",
    "InstanceLimitExceeded",
    "VolumeLimitExceeded",
    "MaxFleetCountExceeded",
    "InvalidFleetConfiguration",
    "InvalidAMIID.NotFound",
    "UnauthorizedOperation",
    "UnauthorizedOperation",
    "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
    "RequestLimitExceeded",
    "RequestLimitExceeded",
    "InternalError",
    "TheSpanishInquisition",
)
"""The codes in `Errors`; the last one is documented nowhere."""
_RAISED = (
    "InvalidFleetConfig",
    "InvalidParameterValue",
    "InvalidLaunchTemplateId.NotFound",
    "UnauthorizedOperation",
    "SsmAccessDenied",
    "MaxFleetCountExceeded",
    "PendingVerification",
    "Blocked",
    "IdempotentParameterMismatch",
    "RequestLimitExceeded",
    "Unavailable",
    "InternalError",
)
_RAISED_BY_RUN_INSTANCES = (
    "InsufficientInstanceCapacity",
    "InsufficientReservedInstanceCapacity",
    "InsufficientFreeAddressesInSubnet",
    "ReservationCapacityExceeded",
    "InvalidCapacityReservationState",
    "InvalidCapacityReservationState.PendingActivation",
    "InvalidParameterValue",
    "IdempotentParameterMismatch",
    "UnauthorizedOperation",
    "RequestLimitExceeded",
    "Unavailable",
    "InternalError",
)
_SSM_ERRORS = {"call-denied": "SsmAccessDenied", "call-throttled": "RequestLimitExceeded"}
# From the launch to the registration: half within 90 s, 95 % within 180 s.
_MEDIAN_SECONDS = 90.0
_SPREAD = math.log(2) / 1.645
_LONGEST_SECONDS = 400.0
# What DescribeInstances says may be this old.
_BEHIND = timedelta(minutes=1)
# How often EC2 refuses a whole call.
REFUSED_SHARE = 0.04
# How often EC2 says that it launched nothing, and has.
UNTRUE_SHARE = 0.03
# Shorter than the five minutes that EC2's documentation has callers wait.
_LONGEST_UNKNOWN_SECONDS = 200.0


def ec2_error(code: str, action: str) -> Exception:
    """Return an error of EC2 as botocore raises it."""
    return client_error_of(EcsError(code, f"injected into {action}"), action)


EC2_ERRORS = CallErrors(
    refused=partial(ec2_error, "InternalError"),
    throttled=partial(ec2_error, "RequestLimitExceeded"),
    unanswered=timed_out,
    disconnected=disconnected,
    denied=partial(ec2_error, "UnauthorizedOperation"),
)


class FleetWatcher(Protocol):
    """Whoever is told what machines of our own are asked of EC2, and what it answers."""

    def fleet_asked(self, machine_id: str) -> None:
        """Note that EC2 is asked for the instance of a machine."""
        ...

    def fleet_refused(self, machine_id: str, pool: tuple[str, str] | None, code: str) -> None:
        """Note a refusal of a type in a zone; None: of the whole request."""
        ...

    def fleet_misled(self, machine_id: str) -> None:
        """Note that EC2 says it launched nothing, and has."""
        ...

    def termination_asked(self, instance_id: str) -> None:
        """Note a TerminateInstances."""
        ...

    def termination_ignored(self, instance_id: str) -> None:
        """Note that EC2 says it ends an instance, and does not."""
        ...


@dataclass(slots=True)
class FaultyEc2:
    """EC2's actions on machines; every other action is the simulator's."""

    _client: InProcessClient
    _simulator: EcsSimulator
    _clock: Clock
    _chance: Chance
    _watcher: FleetWatcher
    _states: dict[str, tuple[datetime, str, str]] = field(default_factory=dict)
    """By instance: when its state changed last, and the states before and since."""
    _unknown_until: dict[str, datetime] = field(default_factory=dict)
    obeys: Callable[[Instance], bool] = lambda _host: True
    """Returns whether EC2 ends an instance that it is told to end."""
    are_reservations_unreadable: Callable[[], bool] = lambda: False
    """Returns whether EC2 answers questions about capacity reservations with an error of its own."""
    image_fault: Callable[[], str] = lambda: ""
    """Returns the fault that EC2 meets when it reads the parameter of an AMI, empty for none."""
    group_faults: Mapping[str, float] = field(default_factory=dict)
    """How often what happens to the launch of several machines (group_faults.py)."""
    given_hosts: deque[HostPlan] = field(default_factory=deque)
    """What the next instances are like; those after them are drawn."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Delegate every other action."""
        method: Callable[..., Any] = getattr(self._client, name)
        return method

    def observe(self, event: Event) -> None:
        """Keep an instance's previous state, for answers that lag behind."""
        if event["detail-type"] == "EC2 Instance State-change Notification":
            instance_id = event["detail"]["instance-id"]
            state = event["detail"]["state"]
            before = self._states[instance_id][2] if instance_id in self._states else ""
            self._states[instance_id] = (self._clock.now(), before, state)

    def create_fleet(self, **parameters: Any) -> Any:
        """CreateFleet."""
        machine_id = _machine_of(parameters)
        note = machine_id[-6:]
        count = int(parameters["TargetCapacitySpecification"]["TotalTargetCapacity"])
        self._watcher.fleet_asked(machine_id)
        self._read_image(machine_id)
        fleets = self._simulator.fleets
        if self._chance.strikes("fleet-call-refused", REFUSED_SHARE, note=note):
            code = self._chance.stream("fleets").choice(_RAISED)
            self._watcher.fleet_refused(machine_id, None, code)
            raise ec2_error(code, "CreateFleet")
        if (fault := self._fault_of_launch(count, note)) is not None:
            fleets.faults.append(fault)
        wanted = parameters["LaunchTemplateConfigs"][0]["Overrides"][0]["InstanceType"]
        fleets.plans.extend(self._plans(count, wanted, note))
        try:
            answer = self._launch(machine_id, parameters)
        finally:
            # The answer to a known client token is repeated, and launches nothing.
            fleets.faults.clear()
            fleets.plans.clear()
        if answer["Instances"] and self._chance.strikes("fleet-answer-untrue", UNTRUE_SHARE, note=note):
            # EC2 says that it launched nothing, and has: no call with the client token follows. Only a sweep finds it.
            self._watcher.fleet_misled(machine_id)
            answer = {**answer, "Instances": [], "Errors": [*answer["Errors"], _no_stock(answer["Instances"][0])]}
        for error in answer["Errors"]:
            override = error["LaunchTemplateAndOverrides"]["Overrides"]
            pool = (override["InstanceType"], override["AvailabilityZone"])
            self._watcher.fleet_refused(machine_id, pool, error["ErrorCode"])
        return answer

    def _fault_of_launch(self, count: int, note: str) -> FleetFault | None:
        dice = self._chance.stream("fleets")
        if self._chance.strikes("fleet-launch-refused", 0.12, note=note):
            # Some of the overrides, so that an instance is launched beside the errors, or all.
            return FleetFault(dice.choice(REFUSALS), overrides=dice.choice((None, 1, 1, 2)))
        if self._chance.strikes("fleet-answer-empty", 0.03, note=note):
            return FleetFault(is_empty=True)
        return self._groups().answer(count, note)

    def run_instances(self, **parameters: Any) -> Any:
        """RunInstances, which several machines in one reservation are launched by."""
        group_id = _machine_of(parameters)
        note = group_id[-6:]
        self._watcher.fleet_asked(group_id)
        self._read_image(group_id, "RunInstances")
        if self._chance.strikes("run-instances-refused", REFUSED_SHARE, note=note):
            code = self._chance.stream("fleets/run-instances").choice(_RAISED_BY_RUN_INSTANCES)
            self._watcher.fleet_refused(group_id, None, code)
            raise ec2_error(code, "RunInstances")
        fleets = self._simulator.fleets
        count = int(parameters["MaxCount"])
        if (part := self._groups().part(count, note)) is not None:
            fleets.faults.append(part)
        fleets.plans.extend(self._plans(count, parameters["InstanceType"], note))
        try:
            return self._client.run_instances(**parameters)
        except ClientError as error:
            self._watcher.fleet_refused(group_id, None, error_code(error))
            raise
        finally:
            fleets.faults.clear()
            fleets.plans.clear()

    def _groups(self) -> GroupLaunchFaults:
        return GroupLaunchFaults(self._chance, self.group_faults)

    def _plans(self, count: int, instance_type: str, note: str) -> list[HostPlan]:
        """Draw what the instances of one launch are like."""
        shape = self._simulator.region.shapes.get(instance_type)
        return self._groups().plans([self.plan(note) for _ in range(count)], shape, note)

    def _launch(self, machine_id: str, parameters: Mapping[str, Any]) -> Any:
        try:
            return self._client.create_fleet(**parameters)
        except ClientError as error:
            self._watcher.fleet_refused(machine_id, None, error_code(error))
            raise

    def _read_image(self, machine_id: str, action: str = "CreateFleet") -> None:
        """Read the parameter that names the AMI; raise what EC2 says while Systems Manager is away.

        Nobody documents that. SsmAccessDenied is what it says without the permission; that a caller need not know of an
        outage of SSM in particular is an assumption.
        """
        fault = self.image_fault()
        if fault:
            code = _SSM_ERRORS.get(fault, "InternalError")
            self._watcher.fleet_refused(machine_id, None, code)
            raise ec2_error(code, action)

    def describe_instances(self, **parameters: Any) -> Any:
        """DescribeInstances: the state may be that of a minute ago; for some minutes EC2 may not know an instance."""
        for instance_id in parameters.get("InstanceIds", ()):
            if self._is_unknown(instance_id):
                message = f"The instance ID '{instance_id}' does not exist"
                raise client_error_of(EcsError("InvalidInstanceID.NotFound", message), "DescribeInstances")
        answer = self._client.describe_instances(**parameters)
        for reservation in answer["Reservations"]:
            for instance in reservation["Instances"]:
                self._age(instance)
        return answer

    def describe_capacity_reservations(self, **parameters: Any) -> Any:
        """DescribeCapacityReservations."""
        if self.are_reservations_unreadable():
            raise ec2_error("InternalError", "DescribeCapacityReservations")
        return self._client.describe_capacity_reservations(**parameters)

    def terminate_instances(self, **parameters: Any) -> Any:
        """TerminateInstances: it answers success for those too that it does not end."""
        ignored: list[str] = []
        for instance_id in parameters["InstanceIds"]:
            self._watcher.termination_asked(instance_id)
            host = self._simulator.instances.known(instance_id)
            if host is not None and host.is_alive and not self.obeys(host):
                self._watcher.termination_ignored(instance_id)
                ignored.append(instance_id)
        left = [each for each in parameters["InstanceIds"] if each not in ignored]
        answer = self._client.terminate_instances(InstanceIds=left) if left else {"TerminatingInstances": []}
        ending = [{"InstanceId": each, "CurrentState": {"Code": 32, "Name": "shutting-down"}} for each in ignored]
        return {**answer, "TerminatingInstances": [*answer["TerminatingInstances"], *ending]}

    def _is_unknown(self, instance_id: str) -> bool:
        now = self._clock.now()
        if instance_id not in self._unknown_until and self._chance.strikes("instance-unknown", 0.02, note=instance_id):
            seconds = self._chance.stream("unknown-instances").uniform(10.0, _LONGEST_UNKNOWN_SECONDS)
            self._unknown_until[instance_id] = now + timedelta(seconds=seconds)
        return now < self._unknown_until.get(instance_id, now)

    def _age(self, instance: dict[str, Any]) -> None:
        changed_at, before, _ = self._states.get(instance["InstanceId"], (None, "", ""))
        is_fresh = before and changed_at is not None and self._clock.now() - changed_at < _BEHIND
        if is_fresh and self._chance.strikes("instances-behind", 0.3, note=instance["InstanceId"]):
            instance["State"] = {**instance["State"], "Name": before}
            # It is there as soon as the instance ends.
            if before not in {"shutting-down", "stopping"}:
                instance.pop("StateTransitionReason", None)

    def plan(self, note: str) -> HostPlan:
        """Draw what the next instance is like, unless that is given."""
        if self.given_hosts:
            return self.given_hosts.popleft()
        dice = self._chance.stream("hosts")
        seconds = min(dice.lognormvariate(math.log(_MEDIAN_SECONDS), _SPREAD), _LONGEST_SECONDS)
        plan: dict[str, Any] = {
            "boot": seconds * 0.3,
            "registration": seconds * 0.7,
            "visibility": dice.uniform(0.0, 5.0),
            "shutdown": dice.uniform(20.0, 330.0),
        }
        plan |= self._agent_plan(note)
        for kind, share, change in _HOST_FAULTS:
            if self._chance.strikes(kind, share, note=note):
                plan |= change(dice)
                break
        return HostPlan(**plan)

    def _agent_plan(self, note: str) -> dict[str, Any]:
        """Draw how the agent connects: "several times per hour", and not always as soon as it has registered."""
        dice = self._chance.stream("agents")
        plan = dict[str, Any]()
        if self._chance.strikes("agent-connects-late", 0.2, note=note):
            plan["connects_after"] = dice.uniform(1.0, 90.0)
        if self._chance.strikes("agent-reconnects", 0.25, note=note):
            plan |= {"disconnects_every": dice.uniform(300.0, 1_200.0), "disconnected_for": dice.uniform(1.0, 60.0)}
        return plan


def _no_stock(launched: Mapping[str, Any]) -> dict[str, Any]:
    overrides = {key: launched[key] for key in ("InstanceType", "AvailabilityZone", "SubnetId")}
    return {
        "LaunchTemplateAndOverrides": {"Overrides": overrides},
        "Lifecycle": launched["Lifecycle"],
        "ErrorCode": "InsufficientInstanceCapacity",
        "ErrorMessage": "We currently do not have sufficient capacity.",
    }


def _machine_of(parameters: Mapping[str, Any]) -> str:
    """Return the machine, or the group of machines, that a launch is for."""
    tagged = {each["ResourceType"]: each["Tags"] for each in parameters.get("TagSpecifications", ())}
    named = {tag["Key"]: str(tag["Value"]) for tag in tagged.get("instance", ())}
    return named.get(MACHINE_TAG) or named.get(GROUP_TAG, "")


_HOST_FAULTS: tuple[tuple[str, float, Callable[[Any], Mapping[str, Any]]], ...] = (
    ("host-invisible-for-long", 0.05, lambda dice: {"visibility": dice.uniform(20.0, 60.0)}),
    ("host-never-joins", 0.04, lambda _dice: {"joins": False}),
    ("host-without-user-data", 0.03, lambda _dice: {"runs_user_data": False}),
    ("host-late", 0.04, lambda dice: {"registration": dice.uniform(200.0, 900.0)}),
    ("host-without-gpus", 0.03, lambda _dice: {"gpus": 0}),
    ("host-gpus-late", 0.05, lambda dice: {"gpus": 0, "other_gpus_after": dice.uniform(5.0, 300.0)}),
    (
        "host-disconnects",
        0.06,
        lambda dice: {"disconnects_every": dice.uniform(120.0, 3_600.0), "disconnected_for": dice.uniform(5.0, 600.0)},
    ),
)
"""What goes wrong on an instance, and how often: the kind, the share of instances, and the change of its plan."""
