"""The EC2 actions of prices, offerings, instance types and zones, in botocore's shapes."""

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from relaunch_local.ecs.engine.ec2_listing import admits, filters_of, page_of
from relaunch_local.ecs.engine.model import JsonObject
from relaunch_local.ecs.engine.region import Region
from relaunch_local.ecs.engine.settings import InstanceShape, SpotPrice
from relaunch_local.ecs.errors import EcsError

_PRODUCT = "Linux/UNIX"


@dataclass(slots=True)
class Ec2Offerings:
    """What a region offers; prices and offerings are given."""

    region: Region
    spot_prices: Sequence[SpotPrice] = ()
    offerings: Mapping[str, Iterable[str]] = field(default_factory=dict)
    """The instance types offered in each zone."""

    def describe_spot_price_history(self, request: JsonObject) -> JsonObject:
        """DescribeSpotPriceHistory: the price at StartTime and every later change."""
        products = request.get("ProductDescriptions") or [_PRODUCT]
        filters = filters_of(request)
        types = request.get("InstanceTypes") or filters.get("instance-type")
        zone = request.get("AvailabilityZone")
        zones = [zone] if zone else filters.get("availability-zone")
        # The price that holds at StartTime has the time of its change, which was before.
        first = min(self.region.clock.now(), request.get("StartTime") or self.region.clock.now()) - timedelta(hours=1)
        history: list[JsonObject] = [
            {
                "AvailabilityZone": price.zone,
                "InstanceType": price.instance_type,
                "ProductDescription": _PRODUCT,
                "SpotPrice": f"{price.price_usd_per_hour:.6f}",
                "Timestamp": price.since or first,
            }
            for price in self._in_force(request)
            if admits(types, price.instance_type)
            and admits(zones, price.zone)
            and any(product.startswith(_PRODUCT) for product in products)
        ]
        history.sort(key=lambda row: row["Timestamp"], reverse=True)
        return page_of("SpotPriceHistory", history, request)

    def _in_force(self, request: JsonObject) -> Iterable[SpotPrice]:
        start = request.get("StartTime")
        end = request.get("EndTime")
        newest: dict[tuple[str, str], SpotPrice] = {}
        for price in sorted(self.spot_prices, key=lambda each: each.since.timestamp() if each.since else float("-inf")):
            if end is not None and price.since is not None and price.since > end:
                continue
            if start is not None and (price.since is None or price.since <= start):
                newest[price.instance_type, price.zone] = price
            else:
                yield price
        yield from newest.values()

    def describe_instance_type_offerings(self, request: JsonObject) -> JsonObject:
        """DescribeInstanceTypeOfferings, per region or per availability zone."""
        location_type = request.get("LocationType", "region")
        filters = filters_of(request)
        pairs = {(name, zone) for zone, names in self.offerings.items() for name in names}
        if location_type == "region":
            pairs = {(name, self.region.arns.region) for name, _ in pairs}
        rows = [
            {"InstanceType": name, "LocationType": location_type, "Location": location}
            for name, location in sorted(pairs)
            if admits(filters.get("instance-type"), name) and admits(filters.get("location"), location)
        ]
        return page_of("InstanceTypeOfferings", rows, request)

    def describe_instance_types(self, request: JsonObject) -> JsonObject:
        """DescribeInstanceTypes, of the simulator's instance types."""
        names = request.get("InstanceTypes") or sorted(self.region.shapes)
        unknown = [name for name in names if name not in self.region.shapes]
        if unknown:
            raise EcsError(
                "InvalidInstanceType", f"The following supplied instance types do not exist: [{', '.join(unknown)}]"
            )
        rows = [_instance_type(name, self.region.shapes[name]) for name in names]
        return page_of("InstanceTypes", rows, request)

    def describe_availability_zones(self, request: JsonObject) -> JsonObject:
        """DescribeAvailabilityZones, of the zones with offerings."""
        same = {"State": "available", "RegionName": self.region.arns.region, "ZoneType": "availability-zone"}
        named = request.get("ZoneNames") or sorted(self.offerings)
        return {"AvailabilityZones": [{"ZoneName": zone, "ZoneId": zone_id(zone), **same} for zone in named]}


def zone_id(zone: str) -> str:
    """Return the ID of a zone, of the form `use1-az4` for us-east-1d.

    In an account of AWS the letters of zones are shuffled; here they are not ("Availability Zone IDs", AWS RAM User
    Guide).
    """
    area, direction, number = zone[:-1].split("-")
    short = "".join(word[0] for word in re.findall("north|south|east|west|central", direction))
    return f"{area}{short}{number}-az{string.ascii_lowercase.index(zone[-1]) + 1}"


def _instance_type(name: str, shape: InstanceShape) -> JsonObject:
    row: JsonObject = {
        "InstanceType": name,
        "SupportedUsageClasses": ["on-demand", "spot"],
        "ProcessorInfo": {"SupportedArchitectures": [shape.architecture]},
        "VCpuInfo": {"DefaultVCpus": shape.vcpus},
        "MemoryInfo": {"SizeInMiB": shape.memory_mib},
        "NetworkInfo": {"NetworkPerformance": "Up to 10 Gigabit", "EfaSupported": False},
        "BareMetal": False,
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
