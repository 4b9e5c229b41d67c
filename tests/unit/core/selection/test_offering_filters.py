"""Each filter on offerings: its rejections, whether they are permanent, and its limits."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fakes.builders import (
    NOW,
    make_capacity_failure,
    make_definition,
    make_instance_type,
    make_offering,
    make_offering_key,
)
from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from relaunch.core.offerings.quotas import QuotaUsage, quota_of
from relaunch.core.selection.offering_filters import (
    OfferingCriteria,
    OfferingFilter,
    SelectionLimits,
    check_capacity_memory,
    check_disk,
    check_network_mode,
    check_price_cap,
    check_purchase,
    check_quota,
    check_spot_ratio,
    derive_criteria,
)
from relaunch.core.selection.rejection import Rejection
from relaunch.core.selection.requirements import Requirements

SPOT, ON_DEMAND = make_offering(), make_offering(purchase=PurchaseOption.ON_DEMAND)
MANAGED = make_offering(is_managed=True)
QUOTA = quota_of("g5.xlarge", PurchaseOption.SPOT)
assert QUOTA is not None
FULL = Requirements(gpu_count=1)
"""Requirements that leave no room for a second such task on an instance with one GPU."""


def criteria(
    required: Requirements = FULL, memory: Any = None, limits: SelectionLimits | None = None, **definition: Any
) -> OfferingCriteria:
    return derive_criteria(make_definition(**definition), required, memory or {}, NOW, limits or SelectionLimits())


def quota_limits(vcpus: float, used_vcpus: float = 0.0) -> SelectionLimits:
    assert QUOTA is not None
    return SelectionLimits(quotas={QUOTA.code: QuotaUsage(vcpus, used_vcpus)})


def rejected(check: OfferingFilter, given: OfferingCriteria, offering: Any, rejection: Rejection, name: str) -> Any:
    return pytest.param(check, given, offering, rejection, id=name)


@pytest.mark.parametrize(
    ("check", "given", "offering", "rejection"),
    [
        rejected(
            check_network_mode,
            criteria(Requirements(network_mode="awsvpc"), limits=SelectionLimits(has_subnets=False)),
            SPOT,
            Rejection("the task definition's network mode is awsvpc, and the stack has no subnets (SubnetIds)"),
            "awsvpc without subnets",
        ),
        rejected(
            check_network_mode,
            criteria(Requirements(network_mode="bridge")),
            MANAGED,
            Rejection("Managed Instances take network mode awsvpc or host, and the task definition's is bridge"),
            "bridge on Managed Instances",
        ),
        rejected(
            check_network_mode,
            criteria(Requirements(network_mode="awsvpc", neuron_devices=1)),
            SPOT,
            Rejection(
                "ECS does not count Neuron devices, and tasks of network mode awsvpc take no ports of the machine, "
                "which would keep them apart: use bridge or host, or a capacity provider of Managed Instances"
            ),
            "Neuron devices that no ports keep apart",
        ),
        rejected(
            check_disk,
            criteria(disk_gib=2_000),
            make_offering(disk_gib=1_000),
            Rejection("its disk has 1,000 GiB; 2,000 are asked for", 0.5),
            "half the disk",
        ),
        rejected(
            check_purchase,
            criteria(purchase=PurchasePolicy.ON_DEMAND),
            SPOT,
            Rejection("the job's purchase is on-demand"),
            "spot where on-demand is asked for",
        ),
        rejected(
            check_quota,
            criteria(limits=quota_limits(2.0)),
            SPOT,
            Rejection(f"it has 4 vCPU and the account's quota is 2: ask AWS for more of {QUOTA}", 0.5),
            "a machine larger than the quota",
        ),
        rejected(
            check_quota,
            criteria(limits=quota_limits(8.0, 6.0)),
            SPOT,
            Rejection(
                f"it has 4 vCPU and other jobs use 6 of the quota's 8: wait for them, or ask AWS for more of {QUOTA}",
                0.5,
                is_permanent=False,
                retry_at=NOW + timedelta(minutes=5),
            ),
            "a quota that others use",
        ),
        rejected(
            check_price_cap,
            criteria(),
            make_offering(price_usd_per_hour=None, on_demand_usd_per_hour=None),
            Rejection("its price is not known, so no price cap can be kept", is_permanent=False),
            "spot of unknown price",
        ),
        rejected(
            check_price_cap,
            criteria(),
            make_offering(purchase=PurchaseOption.ON_DEMAND, price_usd_per_hour=None, on_demand_usd_per_hour=None),
            Rejection("its price is not known, so no price cap can be kept"),
            "on-demand of unknown price",
        ),
        rejected(
            check_price_cap,
            criteria(max_price_usd_per_hour=0.5),
            ON_DEMAND,
            Rejection("it costs 1 USD per hour; the job's cap is 0.5", 0.5),
            "on-demand above the job's cap",
        ),
        rejected(
            check_price_cap,
            criteria(limits=SelectionLimits(max_price_usd_per_hour=0.2)),
            SPOT,
            Rejection("it costs 0.4 USD per hour; the stack's cap is 0.2", 0.5, is_permanent=False),
            "spot above the stack's cap",
        ),
        rejected(
            check_spot_ratio,
            criteria(limits=SelectionLimits(max_spot_ratio=0.48)),
            make_offering(price_usd_per_hour=0.96),
            Rejection(
                "spot costs 96% of the on-demand price; above 48% (MaxSpotRatio) it is not worth being interrupted",
                0.5,
                is_permanent=False,
            ),
            "spot that is hardly cheaper",
        ),
        rejected(
            check_capacity_memory,
            criteria(memory={make_offering_key(): make_capacity_failure()}),
            SPOT,
            Rejection(
                "interrupted at 09:26 UTC; avoided until 09:56 UTC",
                is_permanent=False,
                retry_at=NOW + timedelta(minutes=30),
            ),
            "what failed lately",
        ),
    ],
)
def test_an_offering_is_rejected_in_words_and_told_whether_waiting_helps(
    check: OfferingFilter, given: OfferingCriteria, offering: Any, rejection: Rejection
) -> None:
    found = check(given, offering)

    assert found is not None
    assert found.shortfall == pytest.approx(rejection.shortfall)
    assert replace(found, shortfall=rejection.shortfall) == rejection


@pytest.mark.parametrize(
    ("check", "given", "offering"),
    [
        pytest.param(check_network_mode, criteria(Requirements(network_mode="awsvpc")), SPOT, id="awsvpc with subnets"),
        pytest.param(
            check_network_mode,
            criteria(Requirements(network_mode="bridge"), limits=SelectionLimits(has_subnets=False)),
            SPOT,
            id="bridge without subnets",
        ),
        pytest.param(check_network_mode, criteria(Requirements(network_mode="awsvpc")), MANAGED, id="awsvpc, managed"),
        pytest.param(check_network_mode, criteria(Requirements(network_mode="host")), MANAGED, id="host, managed"),
        pytest.param(check_network_mode, criteria(Requirements()), MANAGED, id="a revision that is not known yet"),
        pytest.param(
            check_network_mode, criteria(Requirements(neuron_devices=1)), SPOT, id="Neuron, revision not known yet"
        ),
        pytest.param(
            check_network_mode,
            criteria(Requirements(network_mode="awsvpc", neuron_devices=1)),
            MANAGED,
            id="Neuron, managed",
        ),
        pytest.param(
            check_network_mode,
            criteria(Requirements(network_mode="bridge", neuron_devices=1)),
            SPOT,
            id="Neuron with ports",
        ),
        pytest.param(check_disk, criteria(disk_gib=200), make_offering(disk_gib=200), id="exactly the disk"),
        pytest.param(check_disk, criteria(disk_gib=None), make_offering(disk_gib=0), id="no disk asked for"),
        pytest.param(check_disk, criteria(disk_gib=200), SPOT, id="a disk that nobody knows"),
        pytest.param(check_quota, criteria(limits=quota_limits(4.0)), SPOT, id="all of the quota"),
        pytest.param(check_quota, criteria(limits=quota_limits(8.0, 4.0)), SPOT, id="the rest of the quota"),
        pytest.param(
            check_quota,
            criteria(Requirements(), limits=quota_limits(8.0, 6.0)),
            SPOT,
            id="a machine that may be up already",
        ),
        pytest.param(check_quota, criteria(limits=quota_limits(2.0)), ON_DEMAND, id="a quota that is not known"),
        pytest.param(
            check_quota,
            criteria(limits=quota_limits(2.0)),
            make_offering(make_instance_type("m9.xlarge")),
            id="a family without a quota of its own",
        ),
        pytest.param(check_price_cap, criteria(max_price_usd_per_hour=0.4), SPOT, id="exactly the cap"),
        pytest.param(
            check_spot_ratio, criteria(limits=SelectionLimits(max_spot_ratio=0.4)), SPOT, id="exactly the ratio"
        ),
        pytest.param(check_spot_ratio, criteria(), make_offering(price_usd_per_hour=None), id="spot of unknown price"),
        pytest.param(
            check_capacity_memory,
            criteria(memory={make_offering_key(): make_capacity_failure(until=NOW)}),
            SPOT,
            id="what is let go just now",
        ),
        pytest.param(
            check_capacity_memory,
            criteria(memory={make_offering_key("g6.xlarge"): make_capacity_failure()}),
            SPOT,
            id="what failed on another type",
        ),
        pytest.param(
            check_capacity_memory,
            criteria(memory={make_offering_key(): make_capacity_failure()}),
            ON_DEMAND,
            id="what failed as spot",
        ),
    ],
)
def test_an_offering_that_just_meets_the_terms_is_kept(
    check: OfferingFilter, given: OfferingCriteria, offering: Any
) -> None:
    assert check(given, offering) is None


def test_terms_are_those_of_the_definition() -> None:
    given = criteria(purchase=PurchasePolicy.ON_DEMAND, disk_gib=200)

    assert (given.policy, given.disk_gib) == (PurchasePolicy.ON_DEMAND, 200)
    assert given.purchase_options == frozenset({PurchaseOption.ON_DEMAND})
    assert criteria(disk_gib=None).disk_gib == 0


def test_of_several_failures_the_one_that_lasts_longest_is_told() -> None:
    here = make_capacity_failure(reason="no capacity in the zone", until=NOW + timedelta(minutes=15))
    everywhere = make_capacity_failure(reason="no capacity at all", until=NOW + timedelta(minutes=20))
    memory = {make_offering_key(zone="us-east-1a"): here, make_offering_key(): everywhere}

    found = check_capacity_memory(criteria(memory=memory), make_offering(zone="us-east-1a"))

    assert found == Rejection(
        "no capacity at all at 09:26 UTC; avoided until 09:46 UTC", is_permanent=False, retry_at=everywhere.until
    )


@pytest.mark.parametrize(
    ("own", "stack", "cap", "owner"),
    [(None, 2.0, 2.0, "stack"), (1.0, 2.0, 1.0, "job"), (2.0, 2.0, 2.0, "job"), (3.0, 2.0, 2.0, "stack")],
)
def test_the_lower_price_cap_holds_and_its_owner_is_known(
    own: float | None, stack: float, cap: float, owner: str
) -> None:
    given = criteria(max_price_usd_per_hour=own, limits=SelectionLimits(max_price_usd_per_hour=stack))

    assert (given.price_cap, given.price_cap_owner) == (cap, owner)
