"""EC2 for the tests of MachineSource: one with FakeMachineSource, one with Ec2Fleet and the ECS simulator.

Both have the types and subnets of `request_for`, and are controlled by a test in the same way.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any

import boto3
from botocore.config import Config

from fakes.fleet import MACHINE_ID, STACK, FakeMachineSource, make_fleet_request, make_override
from fakes.fleet_region import PRICES, FleetRegion
from relaunch.adapters.aws.ec2.fleet import Ec2Fleet
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.events import InstanceLaunched, RefusalKind
from relaunch.core.machines.machine import FleetOverride, FleetRequest
from relaunch.core.offerings.offering import OfferingKey
from relaunch.core.offerings.reservations import Reservation
from relaunch.ports import MachineSource
from relaunch_local.ecs import EcsServer, Fault, FaultMoment, FleetFault, HostPlan, Purchase
from relaunch_local.ecs.engine.reservations import CapacityReservation
from relaunch_local.iam.permission import Permission
from relaunch_local.request_guard.guard import RequestGuard

SPOT, ON_DEMAND = PurchaseOption.SPOT, PurchaseOption.ON_DEMAND
_SUBNETS = {"us-east-1a": "subnet-a", "us-east-1b": "subnet-b"}
_HOUR = 3600


def override_of(
    instance_type: str = "g5.xlarge",
    zone: str = "us-east-1a",
    purchase: PurchaseOption = SPOT,
    priority: int = 0,
) -> FleetOverride:
    """Return an override that EC2 can launch: g5.xlarge in us-east-1a or 1b (cheaper), g5.12xlarge in 1a."""
    return make_override(
        instance_type,
        zone,
        purchase,
        subnet_id=_SUBNETS[zone],
        usd_per_hour=PRICES[instance_type, zone],
        priority=priority,
    )


def request_for(*overrides: FleetOverride, machine_id: str = MACHINE_ID, **fields: Any) -> FleetRequest:
    """Return the request of a machine; without overrides, for g5.xlarge spot in us-east-1a."""
    return make_fleet_request(
        *(overrides or (override_of(),)),
        machine_id=machine_id,
        launch_template_id="lt-1",
        launch_template_version="2",
        **fields,
    )


def request_in(reservation: Reservation, size: int) -> FleetRequest:
    """Return the request for so many machines in a reservation of g5.xlarge in us-east-1a."""
    return request_for(override_of(purchase=PurchaseOption.RESERVED), reservation=reservation, size=size)


class FakeEc2:
    """EC2 with FakeMachineSource; `source` is tested."""

    def __init__(self) -> None:
        self._fake = FakeMachineSource()
        self.source: MachineSource = self._fake

    @property
    def launch_count(self) -> int:
        """How many instances were launched for us."""
        return len(self._fake.instances)

    def settle(self) -> None:
        """Let EC2 show what was launched, and end what is ending."""
        self._fake.hidden.clear()

    def launch_unseen(self) -> str:
        """Send `request_for()`; EC2 does not show the instance until it settles. Return its ID."""
        answer = self.source.request(request_for())
        assert isinstance(answer, InstanceLaunched)
        self._fake.hidden.add(answer.instance_id)
        return answer.instance_id

    def empty(self, offering: OfferingKey) -> None:
        """Let there be no capacity for an offering."""
        self._fake.refused[offering] = (RefusalKind.NO_CAPACITY, "InsufficientInstanceCapacity")

    def forbid_launch(self) -> None:
        """Let the permission to launch an instance be missing for the next request, which is `request_for()`."""
        self._fake.refused[request_for().overrides[0].offering] = (RefusalKind.NOT_PERMITTED, "UnauthorizedOperation")

    def reserve(self, reservation: Reservation) -> None:
        """Let a reservation have as many free instances as it says."""
        self._fake.free[reservation.reservation_id] = reservation.available

    def throttle(self) -> None:
        """Throttle the next launch."""
        self._fake.throttled = 1

    def lose_answer(self) -> None:
        """Lose the answer to the next launch, which takes effect."""
        self._fake.lost = 1

    def empty_answer(self) -> None:
        """Answer the next CreateFleet, which takes effect, with nothing."""
        self._fake.lost = 1

    def interrupt(self, instance_id: str) -> None:
        """Take a spot instance away."""
        self._fake.end(instance_id, "Server.SpotInstanceTermination: Spot instance termination")

    def forget(self, instance_id: str) -> None:
        """Let it be more than an hour since an instance was terminated."""
        del self._fake.instances[instance_id]

    def launch_foreign(self) -> str:
        """Launch an instance without our tags, which we may not end; return its ID."""
        instance = self._fake.new_instance(OfferingKey("g5.xlarge", "us-east-1a", ON_DEMAND))
        self._fake.foreign[instance.instance_id] = instance
        return instance.instance_id


class SimulatedEc2:
    """EC2 with Ec2Fleet and the simulator on a virtual clock; a test controls it as it does FakeEc2."""

    def __init__(self, region: FleetRegion, client: Any) -> None:
        self._region = region
        self._foreign: set[str] = set()
        self.source: MachineSource = Ec2Fleet(client, client, STACK)

    @property
    def launch_count(self) -> int:
        return len(self._region.simulator.instances.bill) - len(self._foreign)

    def settle(self) -> None:
        self._advance(10 * 60)

    def launch_unseen(self) -> str:
        self._region.simulator.fleets.plans.append(HostPlan(visibility=60))
        answer = self.source.request(request_for())
        assert isinstance(answer, InstanceLaunched)
        return answer.instance_id

    def empty(self, offering: OfferingKey) -> None:
        purchase = Purchase(offering.purchase.value)
        self._region.simulator.set_capacity(offering.instance_type, purchase, 0, zone=offering.zone)

    def forbid_launch(self) -> None:
        self._region.simulator.fleets.faults.append(FleetFault("UnauthorizedOperation"))

    def reserve(self, reservation: Reservation) -> None:
        now = self._region.clock.now()
        known = CapacityReservation(
            reservation.reservation_id,
            reservation.instance_type,
            reservation.zone,
            reservation.available,
            reservation.type.value,
            starts_at=now,
            ends_at=now + timedelta(days=1),
        )
        with self._region.clock.lock:
            self._region.simulator.reservations.add(known)

    def throttle(self) -> None:
        self._fail(Fault(FaultMoment.THROTTLE))

    def lose_answer(self) -> None:
        self._fail(Fault(FaultMoment.AFTER, drop_connection=True))

    def empty_answer(self) -> None:
        self._region.simulator.fleets.faults.append(FleetFault(is_empty=True))

    def interrupt(self, instance_id: str) -> None:
        with self._region.clock.lock:
            self._region.simulator.interrupt(instance_id)
        self.settle()

    def forget(self, instance_id: str) -> None:
        self._advance(2 * _HOUR)

    def launch_foreign(self) -> str:
        with self._region.clock.lock:
            instance_id = self._region.launch()
        self._foreign.add(instance_id)
        return instance_id

    def _fail(self, fault: Fault) -> None:
        for action in ("CreateFleet", "RunInstances"):
            self._region.simulator.faults.fail_next(action, 1, fault)

    def _advance(self, seconds: float) -> None:
        with self._region.clock.lock:
            self._region.clock.advance(seconds)


Ec2 = FakeEc2 | SimulatedEc2


@contextmanager
def simulated_ec2(*, over_http: bool) -> Iterator[SimulatedEc2]:
    """Create EC2 on the simulator, called by boto3 over HTTP or in process; it ends instances with our tag only."""
    region = FleetRegion(authorize=_is_allowed)
    if not over_http:
        yield SimulatedEc2(region, region.ec2)
        return
    with closing(EcsServer(region.simulator, RequestGuard({"testing": "testing"}.get))) as server:
        server.start()
        client = boto3.client(
            "ec2",
            endpoint_url=server.url,
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            config=Config(retries={"mode": "standard", "total_max_attempts": 1}),
        )
        yield SimulatedEc2(region, client)


def _is_allowed(permission: Permission) -> bool:
    is_ours = permission.context.get("aws:ResourceTag/relaunch:stack") == STACK
    return is_ours or permission.action != "ec2:TerminateInstances"
