"""What EC2 refuses a machine of our own for, and what that says of a capacity provider."""

from dataclasses import replace

import pytest

from fakes.builders import make_offering
from fakes.machine_story import FIRST_TIER, G6_DEMAND
from relaunch.core.machines.events import RefusalKind

NO_CAPACITY = (RefusalKind.NO_CAPACITY, "InsufficientInstanceCapacity")


@pytest.fixture
def both_ways(machines):
    """Return a story with a capacity provider beside machines of our own: g6 on spot, before g6 on demand."""
    provider = make_offering("g6.xlarge", price_usd_per_hour=0.5, offered_zones=("us-east-1b",))
    machines.offerings.available += (provider,)
    return machines


def test_what_ec2_has_in_no_zone_is_not_asked_of_a_capacity_provider_either(both_ways):
    both_ways.fleet.refused = dict.fromkeys(FIRST_TIER, NO_CAPACITY)

    job_id = both_ways.start()
    both_ways.settle_all()

    assert both_ways.machine(job_id).offering == G6_DEMAND


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (RefusalKind.SUBNET_FULL, "InsufficientFreeAddressesInSubnet"),
        (RefusalKind.NO_SPOT_ROLE, "AuthFailure.ServiceLinkedRoleCreationNotPermitted"),
        (RefusalKind.PRICE, "SpotMaxPriceTooLow"),
        (RefusalKind.UNKNOWN, "Mystery"),
    ],
)
def test_what_ec2_refuses_for_another_reason_a_capacity_provider_may_have(both_ways, kind, code):
    both_ways.fleet.refused = dict.fromkeys(FIRST_TIER, (kind, code))

    job_id = both_ways.start()
    both_ways.settle_all()

    assert both_ways.job(job_id).current_attempt.placement.capacity_provider == "g6-xlarge-spot"


def test_a_shortage_in_one_of_its_zones_leaves_a_capacity_provider_open(both_ways):
    *own, provider = both_ways.offerings.available
    both_ways.offerings.available = (*own, replace(provider, offered_zones=("us-east-1a", "us-east-1b")))
    both_ways.fleet.refused = dict.fromkeys(FIRST_TIER, NO_CAPACITY)

    job_id = both_ways.start()
    both_ways.settle_all()

    assert both_ways.job(job_id).current_attempt.placement.capacity_provider == "g6-xlarge-spot"
