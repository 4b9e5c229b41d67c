"""EC2 Fleet: CreateFleet of the type `instant`, which launches one instance or says why it did not."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from relaunch_local.ecs.engine.clusters import Clusters
from relaunch_local.ecs.engine.ec2_permissions import Ec2Permissions
from relaunch_local.ecs.engine.fleet_offers import Offer, in_order, offers_of
from relaunch_local.ecs.engine.fleet_tokens import FleetTokens
from relaunch_local.ecs.engine.instances import BOOT_ATTRIBUTE, Instances, LaunchSpecification
from relaunch_local.ecs.engine.launch_templates import LaunchTemplates
from relaunch_local.ecs.engine.model import Cluster, FleetMember, Instance, JsonObject, StateReason
from relaunch_local.ecs.engine.pools import HostFault, Place, Pools, message_of
from relaunch_local.ecs.engine.region import Region
from relaunch_local.ecs.engine.reservations import CapacityReservations
from relaunch_local.ecs.engine.settings import FleetSettings, HostPlan, Purchase
from relaunch_local.ecs.errors import EcsError
from relaunch_local.ecs.rules.fleet import FleetRequest, parse_create_fleet
from relaunch_local.ecs.rules.limits import RequestLimits

MACHINE_TAG = "relaunch:machine"
MACHINE_ATTRIBUTE = "relaunch.machine"
"""The attribute that user data makes of the tag MACHINE_TAG."""
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
        fleet_uuid = self.region.ids.uuid()
        answer: JsonObject = {"FleetId": f"fleet-{fleet_uuid}", "Errors": [], "Instances": []}
        ordered = in_order(offers, fleet.strategy, self._price, self.pools.expects_capacity)
        for number, offer in enumerate(ordered):
            code = fault.code_of(number) or self._refusal(fleet, offer, access_key)
            if not code:
                instance = self._instance(fleet, offer, fleet_uuid, access_key)
                answer["Instances"].append(_launched(offer, instance))
                break
            answer["Errors"].append(_error(offer, code))
        return {"FleetId": answer["FleetId"], "Errors": [], "Instances": []} if fault.is_empty else answer

    def _refusal(self, fleet: FleetRequest, offer: Offer, access_key: str) -> str | None:
        """Return the error code of the launch that the fleet tries for the offer; raises it if set so."""
        if not self.limits.may_run_instances():
            if self.settings.raises_throttling:
                raise EcsError("RequestLimitExceeded", "Request limit exceeded.")
            return "RequestLimitExceeded"
        if self.permissions is not None and not self.permissions.may_run(
            access_key, offer, _tags(fleet, offer), fleet.reservation_id
        ):
            return "UnauthorizedOperation"
        if offer.place.purchase is Purchase.ON_DEMAND and offer.template.tags.get("spot-instances-request"):
            # "You cannot specify tags for Spot instances requests if there are no Spot instances requests being
            # created by the request." (github.com/aws/karpenter-provider-aws/issues/5850)
            return "InvalidParameterValue"
        refusal = self._refusal_by_stock(fleet, offer.place)
        if refusal is None and not self.limits.may_launch_instance():
            return "RequestLimitExceeded"
        return refusal

    def _refusal_by_stock(self, fleet: FleetRequest, place: Place) -> str | None:
        if not fleet.reservation_id:
            return self.pools.refusal_of(place)
        reservation = self.reservations.find(fleet.reservation_id)
        code = self.reservations.refusal_of(reservation, fleet.reservation_type, place)
        if code is not None and self.settings.raises_reservation_errors:
            raise EcsError(code, message_of(code, place))
        return code or self.pools.refusal_of_reserved(place)

    def _price(self, place: Place) -> float | None:
        return self.region.price_of(place.instance_type, place.zone, place.purchase)

    def _instance(self, fleet: FleetRequest, offer: Offer, fleet_uuid: str, access_key: str) -> Instance:
        place = offer.place
        template = offer.template
        own_plan = self.settings.plan_of(place.instance_type, place.zone, place.purchase)
        host = self.plans.popleft() if self.plans else own_plan
        fault = self.pools.host_faults.get((place.instance_type, place.purchase, place.zone))
        if fault is HostFault.NEVER_JOINS:
            host = replace(host, joins=False)
        cluster = self._cluster(template.cluster if template.has_user_data else "default")
        has_watchdog = template.has_user_data and host.runs_user_data
        tags = {
            **_tags(fleet, offer).get("instance", {}),
            "aws:ec2:fleet-id": f"fleet-{fleet_uuid}",
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
            reservation_id=fleet.reservation_id,
            fleet=FleetMember(
                f"fleet-{fleet_uuid}", f"fleet-{fleet_uuid}-0", template.instance_profile_arn, has_watchdog
            ),
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
        # The user data reads the tag from instance metadata.
        named = {MACHINE_ATTRIBUTE: tags[MACHINE_TAG]} if MACHINE_TAG in tags else {}
        # With its times once it registers.
        boot = {BOOT_ATTRIBUTE: ""} if offer.template.reports_boot else {}
        return tuple({**offer.template.attributes, **counted, **named, **boot}.items())

    def _cluster(self, name: str) -> Cluster | None:
        """Return the cluster of ECS_CLUSTER, None if there is none; the agent makes `default`."""
        if name == "default":
            self.clusters.create({})
        return self.clusters.clusters.get(name)


def _tags(fleet: FleetRequest, offer: Offer) -> dict[str, dict[str, str]]:
    """Return the tags of what is launched, by resource type: those of the template and of the request together."""
    kinds = {*offer.template.tags, *fleet.tags} - {"fleet", "spot-instances-request"}
    return {kind: {**offer.template.tags.get(kind, {}), **fleet.tags.get(kind, {})} for kind in sorted(kinds)}


def _launched(offer: Offer, instance: Instance) -> JsonObject:
    return {
        "LaunchTemplateAndOverrides": offer.override.view,
        "Lifecycle": instance.purchase.value,
        "InstanceIds": [instance.instance_id],
        "InstanceType": instance.instance_type,
        "AvailabilityZone": instance.zone,
        "SubnetId": instance.subnet_id,
    }


def _error(offer: Offer, code: str) -> JsonObject:
    return {
        "LaunchTemplateAndOverrides": offer.override.view,
        "Lifecycle": offer.place.purchase.value,
        "ErrorCode": code,
        "ErrorMessage": message_of(code, offer.place),
    }
