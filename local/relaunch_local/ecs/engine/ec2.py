"""The EC2 actions that Relaunch calls, in botocore's shapes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from relaunch_local.ecs.engine.instances import VPC_ID, Instances, subnet_of
from relaunch_local.ecs.engine.model import Instance, JsonObject
from relaunch_local.ecs.engine.region import Region
from relaunch_local.ecs.engine.settings import InstanceShape, Purchase, SpotPrice
from relaunch_local.ecs.errors import EcsError

_STATE_CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48}
_PRODUCT = "Linux/UNIX"


@dataclass(slots=True)
class Ec2Actions:
    """The EC2 actions of a region; prices and offerings are given."""

    region: Region
    instances: Instances
    spot_prices: Sequence[SpotPrice] = ()
    offerings: Mapping[str, Iterable[str]] = field(default_factory=dict)
    """The instance types offered in each zone."""

    def call(self, action: str, request: JsonObject) -> JsonObject:
        """Call an action; raises EcsError with EC2's error codes."""
        actions = {
            "DescribeSpotPriceHistory": self.describe_spot_price_history,
            "DescribeInstances": self.describe_instances,
            "DescribeInstanceTypeOfferings": self.describe_instance_type_offerings,
            "DescribeInstanceTypes": self.describe_instance_types,
            "DescribeAvailabilityZones": self.describe_availability_zones,
        }
        if action not in actions:
            raise EcsError("InvalidAction", f"The action {action} is not valid for this web service.")
        return actions[action](request)

    def describe_spot_price_history(self, request: JsonObject) -> JsonObject:
        """DescribeSpotPriceHistory: the price at StartTime and every later change."""
        products = request.get("ProductDescriptions") or [_PRODUCT]
        filters = _filters(request)
        types = request.get("InstanceTypes") or filters.get("instance-type")
        zone = request.get("AvailabilityZone")
        zones = [zone] if zone else filters.get("availability-zone")
        history: list[JsonObject] = [
            {
                "AvailabilityZone": price.zone,
                "InstanceType": price.instance_type,
                "ProductDescription": _PRODUCT,
                "SpotPrice": f"{price.price_usd_per_hour:.6f}",
                "Timestamp": price.since or self.region.clock.now() - timedelta(hours=1),
            }
            for price in self._in_force(request)
            if _admits(types, price.instance_type)
            and _admits(zones, price.zone)
            and any(product.startswith(_PRODUCT) for product in products)
        ]
        history.sort(key=lambda row: row["Timestamp"], reverse=True)
        return _page("SpotPriceHistory", history, request)

    def _in_force(self, request: JsonObject) -> Iterable[SpotPrice]:
        start, end = request.get("StartTime"), request.get("EndTime")
        newest: dict[tuple[str, str], SpotPrice] = {}
        for price in sorted(self.spot_prices, key=lambda each: each.since.timestamp() if each.since else float("inf")):
            if end is not None and price.since is not None and price.since > end:
                continue
            if start is not None and (price.since is None or price.since <= start):
                newest[price.instance_type, price.zone] = price
            else:
                yield price
        yield from newest.values()

    def describe_instances(self, request: JsonObject) -> JsonObject:
        """DescribeInstances, by id or by the filters for state, type, zone and lifecycle."""
        ids = request.get("InstanceIds")
        missing = [each for each in ids or () if each not in self.instances.by_id]
        if missing:
            raise EcsError(
                "InvalidInstanceID.NotFound",
                f"The instance ID{'s' if len(missing) > 1 else ''} '{', '.join(missing)}' do not exist",
            )
        filters = _filters(request)
        instances = [self.instances.by_id[each] for each in ids] if ids else self.instances.by_id.values()
        reservations = [
            {
                "ReservationId": f"r-{instance.instance_id[2:]}",
                "OwnerId": self.region.arns.account,
                "Instances": [_description(instance)],
            }
            for instance in instances
            if all(_instance_property(instance, name) in values for name, values in filters.items())
        ]
        return _page("Reservations", reservations, request)

    def describe_instance_type_offerings(self, request: JsonObject) -> JsonObject:
        """DescribeInstanceTypeOfferings, per region or per availability zone."""
        location_type = request.get("LocationType", "region")
        filters = _filters(request)
        pairs = {(name, zone) for zone, names in self.offerings.items() for name in names}
        if location_type == "region":
            pairs = {(name, self.region.arns.region) for name, _ in pairs}
        rows = [
            {"InstanceType": name, "LocationType": location_type, "Location": location}
            for name, location in sorted(pairs)
            if _admits(filters.get("instance-type"), name) and _admits(filters.get("location"), location)
        ]
        return _page("InstanceTypeOfferings", rows, request)

    def describe_instance_types(self, request: JsonObject) -> JsonObject:
        """DescribeInstanceTypes, of the simulator's instance types."""
        names = request.get("InstanceTypes") or sorted(self.region.shapes)
        unknown = [name for name in names if name not in self.region.shapes]
        if unknown:
            raise EcsError(
                "InvalidInstanceType", f"The following supplied instance types do not exist: [{', '.join(unknown)}]"
            )
        rows = [_instance_type(name, self.region.shapes[name]) for name in names]
        return _page("InstanceTypes", rows, request)

    def describe_availability_zones(self, request: JsonObject) -> JsonObject:
        """DescribeAvailabilityZones, of the zones with offerings."""
        same = {"State": "available", "RegionName": self.region.arns.region, "ZoneType": "availability-zone"}
        named = request.get("ZoneNames") or sorted(self.offerings)
        return {"AvailabilityZones": [{"ZoneName": zone, **same} for zone in named]}


def _filters(request: JsonObject) -> dict[str, list[str]]:
    return {each["Name"]: each["Values"] for each in request.get("Filters", ())}


def _admits(wanted: Iterable[str] | None, value: str) -> bool:
    return wanted is None or value in wanted


def _page(name: str, rows: list[Any], request: JsonObject) -> JsonObject:
    start, size = int(request.get("NextToken") or 0), int(request.get("MaxResults") or 1_000)
    page: JsonObject = {name: rows[start : start + size]}
    return {**page, "NextToken": str(start + size)} if start + size < len(rows) else page


def _description(instance: Instance) -> JsonObject:
    state = instance.state.value
    description = {
        "InstanceId": instance.instance_id,
        "ImageId": instance.image_id,
        "InstanceType": instance.instance_type,
        "State": {"Code": _STATE_CODES[state], "Name": state},
        "Placement": {"AvailabilityZone": instance.zone, "Tenancy": "default"},
        "LaunchTime": instance.launched_at,
        "Architecture": instance.shape.architecture,
        "VpcId": VPC_ID,
        "SubnetId": subnet_of(instance.zone),
        "Tags": [],
    }
    return {**description, "InstanceLifecycle": "spot"} if instance.purchase is Purchase.SPOT else description


def _instance_property(instance: Instance, name: str) -> str:
    properties = {
        "instance-state-name": instance.state.value,
        "instance-type": instance.instance_type,
        "availability-zone": instance.zone,
        "instance-id": instance.instance_id,
        "instance-lifecycle": "spot" if instance.purchase is Purchase.SPOT else "",
    }
    if name not in properties:
        raise EcsError("InvalidParameterValue", f"The filter '{name}' is invalid")
    return properties[name]


def _instance_type(name: str, shape: InstanceShape) -> JsonObject:
    row: JsonObject = {
        "InstanceType": name,
        "SupportedUsageClasses": ["on-demand", "spot"],
        "ProcessorInfo": {"SupportedArchitectures": [shape.architecture]},
        "VCpuInfo": {"DefaultVCpus": shape.vcpus},
        "MemoryInfo": {"SizeInMiB": shape.memory_mib},
    }
    if shape.gpus:
        gpu = {
            "Name": shape.gpu_name,
            "Manufacturer": "NVIDIA",
            "Count": shape.gpus,
            "MemoryInfo": {"SizeInMiB": shape.gpu_memory_mib},
        }
        row["GpuInfo"] = {"Gpus": [gpu], "TotalGpuMemoryInMiB": shape.gpus * shape.gpu_memory_mib}
    return row
