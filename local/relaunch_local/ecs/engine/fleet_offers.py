"""The overrides of a fleet with what they name, and the order in which EC2 Fleet tries them.

Source: "Use allocation strategies to determine how EC2 Fleet or Spot Fleet fulfills Spot and On-Demand capacity".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relaunch_local.ecs.engine.launch_templates import LaunchTemplates
from relaunch_local.ecs.engine.pools import Place
from relaunch_local.ecs.engine.settings import DEFAULT_IMAGE_ID, LaunchTemplateVersion, Purchase
from relaunch_local.ecs.errors import EcsError
from relaunch_local.ecs.rules.fleet import FleetOverride, FleetRequest, FleetTarget


@dataclass(frozen=True, slots=True)
class Offer:
    """An override of a request: where it would launch which instance."""

    override: FleetOverride
    template_id: str
    version: int
    template: LaunchTemplateVersion
    place: Place
    market: str = ""
    """Its `ec2:InstanceMarketType`: empty for its purchase option, or `capacity-block`."""

    @property
    def image_parameter(self) -> str:
        """The Systems Manager parameter that names the image of the override, else of the template; empty if none."""
        _, prefix, name = self._image.partition("resolve:ssm:")
        return name if prefix else ""

    @property
    def image_id(self) -> str:
        """The image of the override, else of the template; every parameter names the default image."""
        return DEFAULT_IMAGE_ID if self.image_parameter else self._image

    @property
    def _image(self) -> str:
        return str(self.override.members.get("ImageId", self.template.image_id))

    @property
    def priority(self) -> float | None:
        """The priority, of which 0 is the highest."""
        return self.override.members.get("Priority")


def offers_of(fleet: FleetRequest, templates: LaunchTemplates, subnets: Mapping[str, str]) -> list[Offer]:
    """Return the offers of a request; `subnets` has the zone of each subnet.

    Raises:
        EcsError: an unknown launch template; InvalidFleetConfig for two overrides of one type in one zone, which EC2
            does not take, or a subnet that is not in the override's zone.
    """
    # EC2 describes an instance in a reservation as on-demand.
    purchase = Purchase.ON_DEMAND if fleet.reservation_id else Purchase(fleet.market)
    offers = [offer_of(override, purchase, templates, subnets) for override in fleet.overrides]
    pairs = [(offer.place.instance_type, offer.place.zone) for offer in offers if offer.place.zone]
    for instance_type, zone in pairs:
        if pairs.count((instance_type, zone)) > 1:
            message = f"The fleet configuration contains duplicate instance pools: {instance_type} in {zone}."
            raise EcsError("InvalidFleetConfig", message)
    return offers


def offer_of(
    override: FleetOverride, purchase: Purchase, templates: LaunchTemplates, subnets: Mapping[str, str]
) -> Offer:
    """Return the offer of an override; `subnets` has the zone of each subnet.

    Raises:
        EcsError: an unknown launch template; InvalidFleetConfig for a subnet that is not in the override's zone.
    """
    template, number, version = templates.find(override.template)
    members = override.members
    zone = subnets.get(members["SubnetId"], "")
    wanted = members.get("AvailabilityZone", zone)
    if zone and wanted != zone:
        raise EcsError("InvalidFleetConfig", f"The subnet {members['SubnetId']} is in {zone}, not in {wanted}.")
    place = Place(members["InstanceType"], wanted, members["SubnetId"], purchase)
    return Offer(override, template.template_id, number, version, place)


def in_order(
    offers: Sequence[Offer],
    strategy: str,
    price_of: Callable[[Place], float | None],
    expects_capacity: Callable[[Place], bool],
) -> list[Offer]:
    """Return the offers as the strategy orders them; equal ones keep their order, what is unknown comes last."""

    def scarce(offer: Offer) -> bool:
        return not expects_capacity(offer.place)

    def price(offer: Offer) -> tuple[bool, float]:
        return _unset_last(price_of(offer.place))

    keys: dict[str, Callable[[Offer], Any]] = {
        "lowest-price": price,
        "diversified": lambda _offer: 0,
        "prioritized": lambda offer: _unset_last(offer.priority),
        "capacity-optimized": scarce,
        "capacity-optimized-prioritized": lambda offer: (scarce(offer), _unset_last(offer.priority)),
        "price-capacity-optimized": lambda offer: (scarce(offer), price(offer)),
    }
    return sorted(offers, key=keys[strategy])


def choices_of(offers: Sequence[Offer], target: FleetTarget) -> list[list[Offer]]:
    """Return the offers among which a fleet may be spread, the first choice first.

    A fleet of one type, or in one zone, is launched in the offers of one choice alone.
    """
    choices: dict[tuple[str, str], list[Offer]] = {}
    for offer in offers:
        instance_type = offer.place.instance_type if target.is_of_one_type else ""
        zone = offer.place.zone if target.is_in_one_zone else ""
        choices.setdefault((instance_type, zone), []).append(offer)
    return [*choices.values()]


def _unset_last(value: float | None) -> tuple[bool, float]:
    return value is None, value or 0.0
