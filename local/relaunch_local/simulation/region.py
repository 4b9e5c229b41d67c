"""The offerings of a region as AWS answers them: zones, prices, quotas and placement scores of a scenario."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relaunch_local.ecs import InProcessClient
from relaunch_local.ecs.engine.ec2 import zone_id
from relaunch_local.iam.permission import Permission
from relaunch_local.simulation.aws.clients import client_error
from relaunch_local.simulation.aws.template import REGION
from relaunch_local.simulation.scenario import ZONES, Scenario

_GP3_USD = 0.08
_NO_SCORE_SHARE = 0.1


def zones_of(scenario: Scenario) -> Mapping[str, Sequence[str]]:
    """Return the zones of each type: those of machines of our own, or of the capacity providers if there are none."""
    machines = scenario.machines
    if machines.types:
        return dict.fromkeys(machines.types, machines.zones)
    return {each.instance_type: ZONES for each in scenario.providers}


@dataclass(frozen=True, slots=True)
class ModelEc2:
    """EC2 as refresh_offerings asks it; the simulator, which authorizes its own actions, has types and spot prices."""

    _scenario: Scenario
    _ec2: InProcessClient
    _authorize: Callable[[Permission], bool]
    _dice: random.Random

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Delegate every other action."""
        method: Callable[..., Any] = getattr(self._ec2, name)
        return method

    def describe_instance_type_offerings(self, **_parameters: Any) -> Any:
        """DescribeInstanceTypeOfferings, of all types in all zones."""
        self._demand("DescribeInstanceTypeOfferings")
        pairs = [(name, zone) for name, zones in zones_of(self._scenario).items() for zone in zones]
        rows = [{"InstanceType": name, "Location": zone} for name, zone in sorted(pairs)]
        return {"InstanceTypeOfferings": rows}

    def get_spot_placement_scores(self, **parameters: Any) -> Any:
        """GetSpotPlacementScores of the region or its zones, which change with the market; at times there is none."""
        self._demand("GetSpotPlacementScores")
        if self._dice.random() < _NO_SCORE_SHARE:
            return {"SpotPlacementScores": []}
        ids = [zone_id(zone) for zone in ZONES] if parameters["SingleAvailabilityZone"] else [""]
        scores = [{"Region": REGION, "AvailabilityZoneId": name, "Score": self._dice.randint(1, 10)} for name in ids]
        return {"SpotPlacementScores": scores}

    def describe_availability_zones(self, **_parameters: Any) -> Any:
        """DescribeAvailabilityZones."""
        return {"AvailabilityZones": [{"ZoneId": zone_id(zone), "ZoneName": zone} for zone in ZONES]}

    def _demand(self, action: str) -> None:
        if not self._authorize(Permission("", f"ec2:{action}", "*")):
            raise client_error("UnauthorizedOperation", action)


@dataclass(frozen=True, slots=True)
class ModelPrices:
    """The Price List and Service Quotas."""

    _scenario: Scenario

    def get_products(self, **parameters: Any) -> Any:
        """GetProducts: one product for each type with a price, or gp3 volumes."""
        wanted = {each["Field"]: each["Value"] for each in parameters["Filters"]}
        if "volumeApiName" in wanted:
            return {"PriceList": [_product({}, _GP3_USD)]}
        prices = self._scenario.on_demand_usd_per_hour if wanted.get("tenancy") == "Shared" else {}
        return {"PriceList": [_product({"instanceType": name}, price) for name, price in sorted(prices.items())]}

    def get_service_quota(self, **_parameters: Any) -> Any:
        """GetServiceQuota."""
        return {"Quota": {"Value": float(self._scenario.machines.vcpu_quota)}}


def _product(attributes: Mapping[str, str], usd: float) -> str:
    dimension = {"unit": "Hrs", "pricePerUnit": {"USD": f"{usd:.10f}"}}
    terms = {"OnDemand": {"offer": {"priceDimensions": {"rate": dimension}}}}
    return json.dumps({"product": {"attributes": attributes}, "terms": terms})
