import pytest

from fakes.fleet_region import FleetRegion, override
from relaunch_local.ecs import Purchase
from relaunch_local.ecs.engine.pools import family_of


@pytest.mark.parametrize(
    ("purchase", "code"),
    [(Purchase.SPOT, "MaxSpotInstanceCountExceeded"), (Purchase.ON_DEMAND, "VcpuLimitExceeded")],
)
def test_the_vcpu_quota_of_a_family_counts_all_its_types_under_one_purchase_option(
    purchase: Purchase, code: str
) -> None:
    region = FleetRegion(vcpu_quotas={("G and VT", purchase): 52})
    other = next(each for each in Purchase if each is not purchase)
    region.launch(market=other.value)
    big = region.launch(override("g5.12xlarge"), market=purchase.value)
    region.launch(market=purchase.value)

    assert region.refused(market=purchase.value) == [code]
    assert region.create(override("inf2.24xlarge"), market=purchase.value)["Instances"]
    region.simulator.terminate(big)
    region.clock.advance(64)
    assert region.refused(market=purchase.value) == [code]
    region.clock.advance(1)
    assert region.create(market=purchase.value)["Instances"]


def test_a_quota_of_0_admits_nothing() -> None:
    region = FleetRegion(vcpu_quotas={("G and VT", Purchase.ON_DEMAND): 0})

    assert region.refused() == ["VcpuLimitExceeded"]


def test_a_subnet_runs_out_of_addresses() -> None:
    region = FleetRegion()
    region.simulator.fleets.pools.addresses["subnet-a"] = 1
    first = region.launch()

    assert region.refused() == ["InsufficientFreeAddressesInSubnet"]
    assert region.create(override(subnet="subnet-a2"))["Instances"]
    region.simulator.terminate(first)
    region.clock.advance(65)
    assert region.create()["Instances"]


@pytest.mark.parametrize("zone", [None, "us-east-1a"])
def test_a_pool_may_refuse_for_any_reason_until_it_does_not(zone: str | None) -> None:
    region = FleetRegion()
    refusals = region.simulator.fleets.pools.refusals
    refusals["g5.xlarge", Purchase.SPOT, zone] = "Unsupported"
    region.launch()

    assert region.refused(market="spot") == ["Unsupported"]
    assert bool(region.create(override(subnet="subnet-b"), market="spot")["Instances"]) is bool(zone)
    refusals.clear()
    assert region.create(market="spot")["Instances"]


@pytest.mark.parametrize(
    ("instance_type", "family"),
    [
        ("g6e.xlarge", "G and VT"), ("gr6.4xlarge", "G and VT"), ("vt1.3xlarge", "G and VT"), ("p5.48xlarge", "P"),
        ("trn1n.32xlarge", "Trn"), ("inf2.xlarge", "Inf"), ("m7g.large", "Standard"), ("i4g.large", "Standard"),
        ("dl1.24xlarge", "DL"), ("x2idn.metal", "X"), ("u-3tb1.56xlarge", "High memory"),
    ],
)  # fmt: skip
def test_families_are_those_of_the_quotas(instance_type: str, family: str) -> None:
    assert family_of(instance_type) == family
