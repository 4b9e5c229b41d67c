from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fakes.builders import NOW, make_capacity_failure, make_instance_type, make_offering, make_offering_key
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.capacity_memory import (
    find_failures,
    image_scope,
    is_scope,
    placement_scope,
    purchase_scope,
    quota_scope,
    refused_placements,
    zone_scope,
)
from relaunch.core.offerings.instance_types import AmiKind
from relaunch.core.offerings.offering import CapacityFailure, Offering, OfferingKey

ON_DEMAND, SPOT = PurchaseOption.ON_DEMAND, PurchaseOption.SPOT
LARGE = make_instance_type("g5.48xlarge", vcpus=192)
OWN = make_offering(zone="us-east-1a", capacity_provider=None, is_own_machine=True)
ELSEWHERE = make_offering(zone="us-east-1b", capacity_provider=None, is_own_machine=True)
OWN_ON_DEMAND = make_offering("g5.xlarge", ON_DEMAND, zone="us-east-1a", capacity_provider=None, is_own_machine=True)
OWN_LARGE = make_offering(LARGE, zone="us-east-1a", capacity_provider=None, is_own_machine=True)
OWN_P5 = make_offering("p5en.48xlarge", zone="us-east-1b", capacity_provider=None, is_own_machine=True)
OF_PROVIDER = make_offering()
OF_REGION = make_offering(zone="us-east-1a", capacity_provider=None)
ALL = (OWN, ELSEWHERE, OWN_ON_DEMAND, OWN_LARGE, OWN_P5, OF_PROVIDER, OF_REGION)


@pytest.mark.parametrize(
    ("key", "vcpus", "concerned"),
    [
        pytest.param(OWN.key, 0, [OWN, OF_REGION], id="one type in one zone"),
        pytest.param(make_offering_key(), 0, [OF_PROVIDER, OF_REGION], id="a capacity provider's type in any zone"),
        pytest.param(zone_scope("us-east-1a", SPOT), 0, [OWN, OWN_LARGE], id="the subnet of a zone"),
        pytest.param(zone_scope("us-east-1a", ON_DEMAND), 0, [OWN_ON_DEMAND], id="the same, on demand"),
        pytest.param(purchase_scope(SPOT), 0, [OWN, ELSEWHERE, OWN_LARGE, OWN_P5], id="all of spot"),
        pytest.param(
            quota_scope("g6.xlarge", SPOT), 0, [OWN, ELSEWHERE, OWN_LARGE, OF_PROVIDER, OF_REGION], id="a quota"
        ),
        pytest.param(quota_scope("g6.xlarge", SPOT), 192, [OWN_LARGE], id="a quota, for a large instance"),
        pytest.param(quota_scope("g4dn.xlarge", ON_DEMAND), 4, [OWN_ON_DEMAND], id="the same, on demand"),
        pytest.param(quota_scope("p5.4xlarge", SPOT), 0, [OWN_P5], id="the quota of another family"),
        pytest.param(quota_scope("p6-b200.48xlarge", SPOT), 0, [], id="a family whose quota is not known"),
    ],
)
def test_a_failure_is_about_all_that_share_what_failed(key: OfferingKey, vcpus: int, concerned: list[Offering]) -> None:
    failure = make_capacity_failure(offering=key, vcpus=vcpus)

    assert [each for each in ALL if find_failures(each, {key: failure})] == concerned


def test_all_failures_about_an_offering_are_found() -> None:
    keys = (OWN.key, quota_scope("g5.xlarge", SPOT), zone_scope("us-east-1a", SPOT), purchase_scope(SPOT))
    memory = {key: make_capacity_failure(offering=key, until=NOW + timedelta(hours=1)) for key in keys}

    assert find_failures(OWN, memory) == list(memory.values())


def test_no_instance_type_is_taken_for_a_scope() -> None:
    scopes = [zone_scope("us-east-1a", SPOT), purchase_scope(SPOT)]
    scopes += [quota_scope(name, purchase) for name in load_catalogue() for purchase in PurchaseOption]

    assert all(is_scope(scope) for scope in scopes)
    assert not any(is_scope(OfferingKey(name, None, SPOT)) for name in load_catalogue())
    assert str(quota_scope("g5.xlarge", SPOT)) == "quota:L-3819A6DF spot"
    assert str(zone_scope("us-east-1a", SPOT)) == "any-type spot us-east-1a"


ZONES = ("us-east-1a", "us-east-1b")
PROVIDER = make_offering(offered_zones=ZONES)
HALF_AN_HOUR = timedelta(minutes=30)


def shortages(*zones: str, purchase: PurchaseOption = SPOT, **fields: Any) -> dict[OfferingKey, CapacityFailure]:
    """Return a memory in which EC2 answered that it has no capacity in these zones, later for each of them."""
    keys = [make_offering_key(zone=zone, purchase=purchase) for zone in zones]
    usual = {"reason": "EC2 has no capacity for it (InsufficientInstanceCapacity)", "is_shortage": True}
    return {
        key: make_capacity_failure(offering=key, until=NOW + HALF_AN_HOUR * (number + 1), **(usual | fields))
        for number, key in enumerate(keys)
    }


def test_a_capacity_provider_is_avoided_while_ec2_has_its_type_in_none_of_the_zones() -> None:
    (failure,) = find_failures(PROVIDER, shortages(*ZONES))

    assert (failure.offering, failure.until) == (PROVIDER.key, NOW + HALF_AN_HOUR)
    assert failure.reason == (
        "EC2 has no capacity for it (InsufficientInstanceCapacity), in none of us-east-1a, us-east-1b"
    )


@pytest.mark.parametrize(
    ("offering", "memory"),
    [
        pytest.param(PROVIDER, shortages("us-east-1a"), id="another zone may have some"),
        pytest.param(PROVIDER, shortages("us-east-1a", "us-east-1f"), id="the same, beside a zone that is not offered"),
        pytest.param(PROVIDER, shortages(*ZONES, purchase=ON_DEMAND), id="the other purchase option"),
        pytest.param(PROVIDER, shortages(*ZONES, is_shortage=False), id="other reasons than capacity"),
        pytest.param(
            PROVIDER,
            shortages("us-east-1a") | shortages("us-east-1b", is_shortage=False),
            id="another reason in one of the zones",
        ),
        pytest.param(make_offering(), shortages(*ZONES), id="it is not known where the type is offered"),
        pytest.param(make_offering("g6.xlarge", offered_zones=ZONES), shortages(*ZONES), id="another type"),
        pytest.param(
            replace(OF_REGION, zone="us-east-1f", offered_zones=ZONES), shortages(*ZONES), id="no capacity provider"
        ),
    ],
)
def test_a_capacity_provider_is_not_avoided_for_less(
    offering: Offering, memory: dict[OfferingKey, CapacityFailure]
) -> None:
    assert find_failures(offering, memory) == []


def test_a_shortage_of_machines_on_demand_is_one_of_a_capacity_provider_on_demand() -> None:
    on_demand = make_offering(purchase=ON_DEMAND, offered_zones=ZONES)

    assert len(find_failures(on_demand, shortages(*ZONES, purchase=ON_DEMAND))) == 1


def test_what_the_cluster_places_nowhere_is_kept_from_all_machines_of_our_own():
    arn = "arn:aws:ecs:us-east-1:111122223333:task-definition/trainer:7"
    failure = CapacityFailure(placement_scope(arn), "refused", NOW, NOW + timedelta(minutes=15), is_unready=True)

    found = refused_placements(arn, {failure.offering: failure})

    assert [each.offering for each in found] == [purchase_scope(SPOT), purchase_scope(ON_DEMAND)]
    assert {each.until for each in found} == {failure.until}
    assert refused_placements(f"{arn}1", {failure.offering: failure}) == ()


def test_an_image_is_that_of_all_machines_of_our_own_of_its_kind_and_of_no_capacity_provider():
    failure = CapacityFailure(image_scope(AmiKind.GPU), "not ready", NOW, NOW + timedelta(minutes=15), is_unready=True)
    memory = {failure.offering: failure}

    assert [find_failures(each, memory) for each in (OWN, ELSEWHERE, OWN_ON_DEMAND)] == [[failure]] * 3
    assert find_failures(make_offering(), memory) == []
    assert find_failures(OWN, {image_scope(AmiKind.NEURON): failure}) == []
