"""EC2 Fleet: CreateFleet of the type `instant`, which launches instances or says why it did not."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from relaunch_local.ecs.engine.clusters import Clusters
from relaunch_local.ecs.engine.ec2_permissions import Ec2Permissions
from relaunch_local.ecs.engine.fleet_offers import Offer, choices_of, in_order, offers_of
from relaunch_local.ecs.engine.fleet_tokens import FleetTokens
from relaunch_local.ecs.engine.instances import BOOT_ATTRIBUTE, Instances, LaunchSpecification
from relaunch_local.ecs.engine.launch_templates import LaunchTemplates
from relaunch_local.ecs.engine.model import Cluster, FleetMember, Instance, JsonObject, StateReason
from relaunch_local.ecs.engine.pools import HostFault, Place, Pools, Room, message_of
from relaunch_local.ecs.engine.region import Region
from relaunch_local.ecs.engine.reservations import FULL, CapacityReservations
from relaunch_local.ecs.engine.settings import FleetSettings, HostPlan, Purchase
from relaunch_local.ecs.errors import EcsError
from relaunch_local.ecs.rules.fleet import FleetRequest, parse_create_fleet
from relaunch_local.ecs.rules.limits import RequestLimits

MACHINE_TAG = "relaunch:machine"
MACHINE_ATTRIBUTE = "relaunch.machine"
"""The attribute that user data makes of the tag MACHINE_TAG."""
GROUP_TAG = "relaunch:group"
"""The tag with the group of machines that were launched together."""
GROUP_ATTRIBUTE = "relaunch.group"
_NAMED_BY_TAGS = {MACHINE_TAG: MACHINE_ATTRIBUTE, GROUP_TAG: GROUP_ATTRIBUTE}
NEURON_ATTRIBUTE = "relaunch.neuron-devices"
"""The attribute with the number of Neuron devices, which the agent does not count: user data sets it."""


@dataclass(frozen=True, slots=True)
class FleetFault:
    """How a call of CreateFleet, which succeeds with HTTP 200, goes wrong."""

    code: str = ""
    """The error code of overrides that are refused, though there is capacity."""
    overrides: int | None = None
    """How many of those that are tried are refused with the code; None: all."""
    is_empty: bool = False
    """Whether the answer has neither instances nor errors, whatever was launched."""
    launched: int | None = None
    """How many are launched at most of those that EC2 has, also below the minimum; None: all that are asked for."""
    beside: str = ""
    """The code of an error that each override has beside all its instances (osbuild/osbuild-composer#4507)."""
    and_code: str = ""
    """The code of another error of each override that is refused: UnfulfillableCapacity comes beside the true one
    (aws/karpenter-provider-aws#5666)."""

    def codes_beside(self, room: Room) -> list[str]:
        """Return the codes of the errors of an override that is tried."""
        codes = [room.code, self.and_code] if room.code else [self.beside]
        return [code for code in codes if code]

    def cut(self, rooms: list[tuple[Offer, Room]]) -> list[tuple[Offer, Room]]:
        """Return what is launched of what could be."""
        if self.launched is None:
            return rooms
        left = self.launched
        cut: list[tuple[Offer, Room]] = []
        for offer, room in rooms:
            number = min(room.instances, left)
            left -= number
            code = room.code or ("InsufficientInstanceCapacity" if number < room.instances else "")
            cut.append((offer, Room(number, code)))
        return cut

    def code_of(self, number: int) -> str:
        """Return the code that refuses the override tried as this one, from 0; empty if it is not refused."""
        return self.code if self.overrides is None or number < self.overrides else ""


@dataclass(slots=True)
class Fleets:
    """CreateFleet, and what its instances are like."""

    region: Region
    instances: Instances
    clusters: Clusters
    limits: RequestLimits
    settings: FleetSettings
    pools: Pools
    templates: LaunchTemplates
    tokens: FleetTokens
    reservations: CapacityReservations
    permissions: Ec2Permissions | None = None
    faults: deque[FleetFault] = field(default_factory=deque)
    """The faults of the next calls that launch."""
    plans: deque[HostPlan] = field(default_factory=deque)
    """The plans of the next instances, before those of the settings."""

    def create(self, request: JsonObject, access_key: str = "") -> JsonObject:
        """CreateFleet.

        Raises:
            EcsError: the request is invalid or not allowed as a whole; launches that fail are in the answer.
        """
        fleet = parse_create_fleet(request)
        offers = offers_of(fleet, self.templates, self.pools.subnets)
        if self.permissions is not None:
            templates = sorted({offer.template_id for offer in offers})
            subnets = sorted({offer.place.subnet_id for offer in offers} - {""})
            named = fleet.reservation_id
            self.permissions.check_create_fleet(access_key, fleet.tags, templates, subnets, named)
            parameters = sorted({offer.image_parameter for offer in offers} - {""})
            self.permissions.check_image_parameters(access_key, parameters)
        if request.get("DryRun"):
            raise EcsError("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
        if fleet.reservation_id:
            self.reservations.find(fleet.reservation_id)
        answer = self.tokens.replay(request)
        if answer is None:
            answer = self._launch(fleet, offers, access_key)
            self.tokens.remember(request, answer)
        return answer

    def _launch(self, fleet: FleetRequest, offers: list[Offer], access_key: str) -> JsonObject:
        fault = self.faults.popleft() if self.faults else FleetFault()
        fleet_id = f"fleet-{self.region.ids.uuid()}"
        total = fleet.target.total
        ordered = in_order(offers, fleet.strategy, self._price, lambda place: self.pools.expects_capacity(place, total))
        rooms = self._rooms(fleet, ordered, fault, access_key)
        answer: JsonObject = {"FleetId": fleet_id, "Errors": [], "Instances": []}
        for offer, room in rooms:
            if room.instances:
                member = FleetMember(
                    fleet_id,
                    f"{fleet_id}-{len(answer['Instances'])}",
                    offer.template.instance_profile_arn,
                    # Whether it has one is decided by its own plan.
                    has_watchdog=False,
                )
                tags = {**tags_of(offer, fleet.tags).get("instance", {}), "aws:ec2:fleet-id": fleet_id}
                launched = self.launch(offer, room.instances, tags, member, fleet.reservation_id, access_key)
                answer["Instances"].append(_launched(offer, launched))
            answer["Errors"] += [_error(offer, code) for code in fault.codes_beside(room)]
        return {"FleetId": fleet_id, "Errors": [], "Instances": []} if fault.is_empty else answer

    def _rooms(
        self, fleet: FleetRequest, offers: list[Offer], fault: FleetFault, access_key: str
    ) -> list[tuple[Offer, Room]]:
        """Return what is launched in each offer that is tried, and the error codes of the others.

        If the minimum is not reached nothing is, and each override has its error. That of an override which was not
        tried is not documented: here it is UnfulfillableCapacity.
        """
        target = fleet.target
        rooms: list[tuple[Offer, Room]] = []
        for choice in choices_of(offers, target)[: self.settings.choices_tried]:
            found = self._rooms_in(fleet, choice, fault, access_key)
            if sum(room.instances for _, room in found) >= max(target.minimum, 1):
                return fault.cut(found)
            rooms += found
        if not target.minimum or fault.launched is not None:
            return fault.cut(rooms)
        tried = [offer for offer, _ in rooms]
        others = [(offer, Room(0, "UnfulfillableCapacity")) for offer in offers if offer not in tried]
        return [*((offer, replace(room, instances=0)) for offer, room in rooms), *others]

    def _rooms_in(
        self, fleet: FleetRequest, offers: list[Offer], fault: FleetFault, access_key: str
    ) -> list[tuple[Offer, Room]]:
        left = fleet.target.total
        rooms: list[tuple[Offer, Room]] = []
        for number, offer in enumerate(offers):
            if not left:
                break
            code = fault.code_of(number)
            room = Room(0, code) if code else self._room(fleet, offer, left, access_key)
            rooms.append((offer, room))
            left -= room.instances
        return rooms

    def _room(self, fleet: FleetRequest, offer: Offer, wanted: int, access_key: str) -> Room:
        """Return how many the fleet launches for the offer by one RunInstances; raises its error code if set so."""
        if not self.limits.may_run_instances():
            if self.settings.raises_throttling:
                raise EcsError("RequestLimitExceeded", "Request limit exceeded.")
            return Room(0, "RequestLimitExceeded")
        if self.permissions is not None and not self.permissions.may_run(
            access_key, offer, tags_of(offer, fleet.tags), fleet.reservation_id
        ):
            return Room(0, "UnauthorizedOperation")
        if offer.place.purchase is Purchase.ON_DEMAND and offer.template.tags.get("spot-instances-request"):
            # "You cannot specify tags for Spot instances requests if there are no Spot instances requests being
            # created by the request." (github.com/aws/karpenter-provider-aws/issues/5850)
            return Room(0, "InvalidParameterValue")
        return self.room_for(offer, wanted, fleet.reservation_id, fleet.reservation_type)

    def room_for(self, offer: Offer, wanted: int, reservation_id: str, reservation_type: str) -> Room:
        """Return how many instances an offer has room for, in a reservation if one is named.

        Raises:
            EcsError: the code of a reservation that refuses the launch, if such refusals are set to fail calls.
        """
        place = offer.place
        if not reservation_id:
            room = self.pools.room_for(place, wanted)
        else:
            reservation = self.reservations.find(reservation_id)
            code = self.reservations.refusal_of(reservation, reservation_type, place)
            if code is not None and self.settings.raises_reservation_errors:
                raise EcsError(code, message_of(code, place))
            free = self.reservations.available(reservation)
            room = Room(0, code) if code else self.pools.room_in_reservation(place, wanted, (free, FULL))
        allowed = self.limits.launches_left(room.instances)
        return room if allowed >= room.instances else Room(allowed, "RequestLimitExceeded")

    def launch(
        self,
        offer: Offer,
        count: int,
        tags: Mapping[str, str],
        member: FleetMember,
        reservation_id: str,
        access_key: str,
    ) -> list[Instance]:
        """Launch so many instances for an offer, which has room for them; each has a host plan of its own."""
        self.limits.take_launches(count)
        launched = [self._instance(offer, tags, member, reservation_id, access_key) for _ in range(count)]
        for instance in launched:
            instance.launched_with = launched[0].instance_id
        return launched

    def _price(self, place: Place) -> float | None:
        return self.region.price_of(place.instance_type, place.zone, place.purchase)

    def _instance(
        self, offer: Offer, own_tags: Mapping[str, str], member: FleetMember, reservation_id: str, access_key: str
    ) -> Instance:
        place = offer.place
        template = offer.template
        own_plan = self.settings.plan_of(place.instance_type, place.zone, place.purchase)
        host = self.plans.popleft() if self.plans else own_plan
        fault = self.pools.host_faults.get((place.instance_type, place.purchase, place.zone))
        if fault is HostFault.NEVER_JOINS:
            host = replace(host, joins=False)
        cluster = self._cluster(template.cluster if template.has_user_data else "default")
        tags = {
            **own_tags,
            "aws:ec2launchtemplate:id": offer.template_id,
            "aws:ec2launchtemplate:version": str(offer.version),
        }
        spec = LaunchSpecification(
            instance_type=place.instance_type,
            purchase=place.purchase,
            zone=place.zone,
            cluster=cluster or Cluster(self.region.arns.cluster(template.cluster), template.cluster),
            image_id=offer.image_id,
            attributes=self._attributes(offer, host, tags),
            subnet_id=place.subnet_id,
            reservation_id=reservation_id,
            fleet=replace(member, has_watchdog=template.has_user_data and host.runs_user_data),
            tags=tags,
            # An agent cannot register with a cluster that does not exist.
            host=host if cluster else replace(host, joins=False),
        )
        instance = self.instances.launch(spec)
        lacks_key = self.permissions is not None and not self.permissions.may_use_disk_key(access_key, offer)
        if lacks_key or fault is HostFault.LAUNCH_ERROR:
            self.instances.terminate(instance, StateReason.LAUNCH_ERROR)
        return instance

    def _attributes(self, offer: Offer, host: HostPlan, tags: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        if not offer.template.has_user_data:
            return ()
        devices = self.region.shapes[offer.place.instance_type].neuron_devices
        counted = {NEURON_ATTRIBUTE: str(devices)} if devices and host.has_device_attribute else {}
        # The user data reads the tags from instance metadata.
        named = {name: tags[tag] for tag, name in _NAMED_BY_TAGS.items() if tag in tags}
        # With its times once it registers.
        boot = {BOOT_ATTRIBUTE: ""} if offer.template.reports_boot else {}
        return tuple({**offer.template.attributes, **counted, **named, **boot}.items())

    def _cluster(self, name: str) -> Cluster | None:
        """Return the cluster of ECS_CLUSTER, None if there is none; the agent makes `default`."""
        if name == "default":
            self.clusters.create({})
        return self.clusters.clusters.get(name)


def tags_of(offer: Offer, requested: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Return the tags of what is launched, by resource type: those of the template and of the request together."""
    kinds = {*offer.template.tags, *requested} - {"fleet", "spot-instances-request"}
    return {kind: {**offer.template.tags.get(kind, {}), **requested.get(kind, {})} for kind in sorted(kinds)}


def _launched(offer: Offer, instances: list[Instance]) -> JsonObject:
    """Return an entry of `Instances`, which has all that were launched in a pool."""
    first = instances[0]
    return {
        "LaunchTemplateAndOverrides": offer.override.view,
        "Lifecycle": first.purchase.value,
        "InstanceIds": [instance.instance_id for instance in instances],
        "InstanceType": first.instance_type,
        "AvailabilityZone": first.zone,
        "SubnetId": first.subnet_id,
    }


def _error(offer: Offer, code: str) -> JsonObject:
    return {
        "LaunchTemplateAndOverrides": offer.override.view,
        "Lifecycle": offer.place.purchase.value,
        "ErrorCode": code,
        "ErrorMessage": message_of(code, offer.place),
    }
