"""Each filter on offerings: its rejections, whether they are permanent, and its limits."""

from dataclasses import replace
from datetime import timedelta

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
from relaunch.core.offerings.capacity_memory import quota_scope, zone_scope
from relaunch.core.offerings.instance_types import AmiKind, ami_rejection
from relaunch.core.offerings.quotas import QuotaUsage, quota_of
from relaunch.core.selection.offering_filters import GROUP_FILTERS, OFFERING_FILTERS, SelectionLimits, derive_criteria
from relaunch.core.selection.rejection import Rejection
from relaunch.core.selection.requirements import Requirements
from unit.core.selection.offered import ARM, EIGHTH, TRAINIUM

FILTERS = dict((*GROUP_FILTERS, *OFFERING_FILTERS))
SPOT, ON_DEMAND = make_offering(), make_offering(purchase=PurchaseOption.ON_DEMAND)
MANAGED = make_offering(is_managed=True)
UNPRICED = {"price_usd_per_hour": None, "on_demand_usd_per_hour": None}
OWN = {"capacity_provider": None, "zone": "us-east-1a", "is_own_machine": True}
OLD = make_instance_type("p2.xlarge", accelerator_model="K80")
METAL = make_instance_type("g4dn.metal", is_bare_metal=True)
BLOCKS_ONLY = make_instance_type(usage_classes=("capacity-block",))
QUOTA = quota_of("g5.xlarge", PurchaseOption.SPOT)
UNCAPPED = SelectionLimits(max_price_usd_per_hour=None)
NO_SUBNETS = SelectionLimits(has_subnets=False)
FAILED_LATELY = {make_offering_key(): make_capacity_failure()}
FULL = Requirements(gpu_count=1)
"""Requirements that leave no room for a second such task on an instance with one GPU."""

NAMED = Requirements(gpu_count=1, instance_types=("g4dn.metal",))
SKEW = timedelta(milliseconds=20)


def criteria(required=FULL, memory=None, limits=None, **definition):
    return derive_criteria(make_definition(**definition), required, memory or {}, NOW, limits or SelectionLimits())


def quota_limits(vcpus, used_vcpus=0.0):
    return SelectionLimits(quotas={QUOTA.code: QuotaUsage(vcpus, used_vcpus)})


def rejected(name, filter_name, rejection, offering=SPOT, **terms):
    return pytest.param(filter_name, criteria(**terms), offering, rejection, id=name)


def kept(name, filter_name, offering=SPOT, **terms):
    return pytest.param(filter_name, criteria(**terms), offering, id=name)


@pytest.mark.parametrize(
    ("filter_name", "given", "offering", "rejection"),
    [
        rejected(
            "bare metal that nobody named",
            "bare-metal",
            Rejection("it is bare metal, which takes more than 20 minutes to start: only a job that names it gets it"),
            make_offering(METAL, **OWN),
        ),
        rejected(
            "awsvpc without subnets",
            "network-mode",
            Rejection("the task definition's network mode is awsvpc, and the stack has no subnets (SubnetIds)"),
            required=Requirements(network_mode="awsvpc"),
            limits=NO_SUBNETS,
        ),
        rejected(
            "bridge on Managed Instances",
            "network-mode",
            Rejection("Managed Instances take network mode awsvpc or host, and the task definition's is bridge"),
            MANAGED,
            required=Requirements(network_mode="bridge"),
        ),
        rejected(
            "Neuron devices that no ports keep apart",
            "network-mode",
            Rejection(
                "ECS does not count Neuron devices, and tasks of network mode awsvpc take no ports of the machine, "
                "which would keep them apart: use bridge or host, or a capacity provider of Managed Instances"
            ),
            required=Requirements(network_mode="awsvpc", neuron_devices=1),
        ),
        rejected(
            "half the disk",
            "disk",
            Rejection("its disk has 1,000 GiB; 2,000 are asked for", 0.5),
            make_offering(disk_gib=1_000),
            disk_gib=2_000,
        ),
        rejected(
            "spot where on-demand is asked for",
            "purchase",
            Rejection("the job's purchase is on-demand"),
            purchase=PurchasePolicy.ON_DEMAND,
        ),
        rejected(
            "a machine larger than the quota",
            "quota",
            Rejection(f"it has 4 vCPU and the account's quota is 2: ask AWS for more of {QUOTA}", 0.5),
            limits=quota_limits(2.0),
        ),
        rejected(
            "a quota that others use",
            "quota",
            Rejection(
                f"it has 4 vCPU and other jobs use 6 of the quota's 8: wait for them, or ask AWS for more of {QUOTA}",
                0.5,
                is_permanent=False,
                retry_at=NOW + timedelta(minutes=5),
            ),
            limits=quota_limits(8.0, 6.0),
        ),
        rejected(
            "spot of a type that is sold in capacity blocks only",
            "usage-class",
            Rejection("EC2 sells it as capacity-block only"),
            make_offering(BLOCKS_ONLY, capacity_provider=None),
        ),
        rejected(
            "spot of a type that is sold otherwise",
            "usage-class",
            Rejection("EC2 sells it as on-demand and capacity-block only"),
            make_offering(make_instance_type(usage_classes=("on-demand", "capacity-block")), capacity_provider=None),
        ),
        rejected(
            "a type that no image is published for",
            "ami",
            Rejection(ami_rejection(OLD)),
            make_offering(OLD, capacity_provider=None),
        ),
        rejected(
            "Neuron where no image is published for it",
            "ami",
            Rejection("ECS publishes Neuron images in 17 regions, and ap-south-2 is none of them"),
            make_offering(TRAINIUM, capacity_provider=None, zone="ap-south-2a"),
        ),
        rejected(
            "arm64 as a machine of our own",
            "ami",
            Rejection(ami_rejection(ARM)),
            make_offering(ARM, **OWN),
        ),
        rejected(
            "a part of a GPU as a machine of our own",
            "ami",
            Rejection(
                "it has 0.125 of a GPU, which the ECS agent of machines that Relaunch starts itself is not known to "
                "register: "
                "name a capacity provider for it (CapacityProviders)"
            ),
            make_offering(EIGHTH, **OWN),
        ),
        rejected(
            "Neuron without a launch template for it",
            "ami",
            Rejection("the stack has no launch template for machines with neuron images (MachineLaunchTemplates)"),
            make_offering(TRAINIUM, **OWN),
            limits=SelectionLimits(machine_kinds=frozenset({AmiKind.GPU})),
        ),
        rejected(
            "spot of unknown price",
            "price-cap",
            Rejection("its price is not known, and the job's max_price_per_hour is 9 USD", is_permanent=False),
            make_offering(**UNPRICED),
            max_price_usd_per_hour=9.0,
        ),
        rejected(
            "on-demand of unknown price",
            "price-cap",
            Rejection("its price is not known, and the stack's MaxPricePerHour is 60 USD"),
            make_offering(purchase=PurchaseOption.ON_DEMAND, **UNPRICED),
            limits=SelectionLimits(max_price_usd_per_hour=60.0),
        ),
        rejected(
            "unknown price under the higher one of two caps, which somebody gave",
            "price-cap",
            Rejection("its price is not known, and the job's max_price_per_hour is 90 USD", is_permanent=False),
            make_offering(**UNPRICED),
            max_price_usd_per_hour=90.0,
        ),
        rejected(
            "spot of which only the upper limit is known",
            "price-cap",
            Rejection(
                "its spot price is not known, and may be up to 1 USD per hour, the on-demand price; "
                "the job's max_price_per_hour is 0.5 USD",
                0.5,
                is_permanent=False,
            ),
            make_offering(price_usd_per_hour=None),
            max_price_usd_per_hour=0.5,
        ),
        rejected(
            "on-demand above the default cap",
            "price-cap",
            Rejection("it costs 80 USD per hour; the stack's MaxPricePerHour is 40 USD, its default", 0.5),
            make_offering("p5.48xlarge", PurchaseOption.ON_DEMAND, price_usd_per_hour=80.0),
        ),
        rejected(
            "on-demand above the job's cap",
            "price-cap",
            Rejection("it costs 1 USD per hour; the job's max_price_per_hour is 0.5 USD", 0.5),
            ON_DEMAND,
            max_price_usd_per_hour=0.5,
        ),
        rejected(
            "spot above the stack's cap",
            "price-cap",
            Rejection("it costs 0.4 USD per hour; the stack's MaxPricePerHour is 0.2 USD", 0.5, is_permanent=False),
            limits=SelectionLimits(max_price_usd_per_hour=0.2),
        ),
        rejected(
            "spot that is hardly cheaper",
            "spot-ratio",
            Rejection(
                "spot costs 96% of the on-demand price; above 48% (MaxSpotRatio) it is not worth being interrupted",
                0.5,
                is_permanent=False,
            ),
            make_offering(price_usd_per_hour=0.96),
            limits=SelectionLimits(max_spot_ratio=0.48),
        ),
        rejected(
            "what failed lately",
            "capacity-memory",
            Rejection(
                "interrupted at 09:26 UTC; avoided until 09:56 UTC",
                is_permanent=False,
                retry_at=NOW + timedelta(minutes=30),
            ),
            memory=FAILED_LATELY,
        ),
        rejected(
            "what has no room in a subnet, and longer none in a quota",
            "capacity-memory",
            Rejection(
                "the quota is used up at 09:26 UTC; avoided until 09:41 UTC",
                is_permanent=False,
                retry_at=NOW + timedelta(minutes=15),
            ),
            make_offering(**OWN),
            memory={
                each.offering: each
                for each in (
                    make_capacity_failure(offering=zone_scope("us-east-1a", PurchaseOption.SPOT), until=NOW),
                    make_capacity_failure(
                        offering=quota_scope("g5.xlarge", PurchaseOption.SPOT),
                        reason="the quota is used up",
                        until=NOW + timedelta(minutes=15),
                        vcpus=4,
                    ),
                )
            },
        ),
    ],
)
def test_an_offering_is_rejected_in_words_and_told_whether_waiting_helps(filter_name, given, offering, rejection):
    found = FILTERS[filter_name](given, offering)

    assert found is not None
    assert found.shortfall == pytest.approx(rejection.shortfall)
    assert replace(found, shortfall=rejection.shortfall) == rejection


@pytest.mark.parametrize(
    ("filter_name", "given", "offering"),
    [
        kept("awsvpc with subnets", "network-mode", required=Requirements(network_mode="awsvpc")),
        kept("bridge without subnets", "network-mode", required=Requirements(network_mode="bridge"), limits=NO_SUBNETS),
        kept("awsvpc, managed", "network-mode", MANAGED, required=Requirements(network_mode="awsvpc")),
        kept("host, managed", "network-mode", MANAGED, required=Requirements(network_mode="host")),
        kept("a revision that is not known yet", "network-mode", MANAGED, required=Requirements()),
        kept("Neuron, revision not known yet", "network-mode", required=Requirements(neuron_devices=1)),
        kept(
            "Neuron, managed", "network-mode", MANAGED, required=Requirements(network_mode="awsvpc", neuron_devices=1)
        ),
        kept("Neuron with ports", "network-mode", required=Requirements(network_mode="bridge", neuron_devices=1)),
        kept("bare metal that the job names", "bare-metal", make_offering(METAL, **OWN), required=NAMED),
        kept("bare metal of a provider", "bare-metal", make_offering(METAL)),
        kept("no bare metal", "bare-metal", make_offering(**OWN)),
        kept("exactly the disk", "disk", make_offering(disk_gib=200), disk_gib=200),
        kept("no disk asked for", "disk", make_offering(disk_gib=0), disk_gib=None),
        kept("a disk that nobody knows", "disk", disk_gib=200),
        kept("all of the quota", "quota", limits=quota_limits(4.0)),
        kept("the rest of the quota", "quota", limits=quota_limits(8.0, 4.0)),
        kept("a machine that may be up already", "quota", required=Requirements(), limits=quota_limits(8.0, 6.0)),
        kept("a quota that is not known", "quota", ON_DEMAND, limits=quota_limits(2.0)),
        kept(
            "a family without a quota of its own",
            "quota",
            make_offering(make_instance_type("m9.xlarge")),
            limits=quota_limits(2.0),
        ),
        kept("an image of the user's own", "ami", make_offering(OLD)),
        kept("an image for Neuron", "ami", make_offering(TRAINIUM, capacity_provider=None, zone="us-east-1-bos-1a")),
        kept("Neuron in an unknown region", "ami", make_offering(TRAINIUM, capacity_provider=None)),
        kept("an image for GPUs", "ami", make_offering(capacity_provider=None)),
        kept("Bottlerocket", "ami", make_offering(ARM, capacity_provider=None)),
        kept("a GPU as a machine of our own", "ami", make_offering(**OWN)),
        kept("Neuron as a machine of our own", "ami", make_offering(TRAINIUM, **OWN)),
        kept("a part of a GPU of a provider", "ami", make_offering(EIGHTH)),
        kept(
            "a machine of our own whose type a provider could not start",
            "capacity-memory",
            make_offering(**OWN),
            memory=FAILED_LATELY,
        ),
        kept("a provider of a capacity block", "usage-class", make_offering(BLOCKS_ONLY)),
        kept("unknown usage classes", "usage-class", make_offering(capacity_provider=None)),
        kept(
            "spot of a type that is sold as spot",
            "usage-class",
            make_offering(make_instance_type(usage_classes=("on-demand", "spot")), capacity_provider=None),
        ),
        kept("unknown price, and a cap that nobody gave", "price-cap", make_offering(**UNPRICED)),
        kept("unknown price, no cap", "price-cap", make_offering(**UNPRICED), limits=UNCAPPED),
        kept("any price, no cap", "price-cap", make_offering(price_usd_per_hour=99.0), limits=UNCAPPED),
        kept("exactly the cap", "price-cap", max_price_usd_per_hour=0.4),
        kept("exactly the ratio", "spot-ratio", limits=SelectionLimits(max_spot_ratio=0.4)),
        kept("spot of unknown price", "spot-ratio", make_offering(price_usd_per_hour=None)),
        kept(
            "what is let go just now", "capacity-memory", memory={make_offering_key(): make_capacity_failure(until=NOW)}
        ),
        kept(
            "what was let go at once, by a clock that is ahead",
            "capacity-memory",
            memory={make_offering_key(): make_capacity_failure(at=NOW + SKEW, until=NOW + SKEW)},
        ),
        kept(
            "what failed on another type",
            "capacity-memory",
            memory={make_offering_key("g6.xlarge"): make_capacity_failure()},
        ),
        kept("what failed as spot", "capacity-memory", ON_DEMAND, memory=FAILED_LATELY),
    ],
)
def test_an_offering_that_just_meets_the_terms_is_kept(filter_name, given, offering):
    assert FILTERS[filter_name](given, offering) is None


def test_terms_are_those_of_the_definition():
    given = criteria(purchase=PurchasePolicy.ON_DEMAND, disk_gib=200)

    assert (given.policy, given.disk_gib) == (PurchasePolicy.ON_DEMAND, 200)
    assert given.purchase_options == frozenset({PurchaseOption.ON_DEMAND})
    assert criteria(disk_gib=None).disk_gib == 0


def test_of_several_failures_the_one_that_lasts_longest_is_told():
    here = make_capacity_failure(reason="no capacity in the zone", until=NOW + timedelta(minutes=15))
    everywhere = make_capacity_failure(reason="no capacity at all", until=NOW + timedelta(minutes=20))
    memory = {make_offering_key(zone="us-east-1a"): here, make_offering_key(): everywhere}

    found = FILTERS["capacity-memory"](criteria(memory=memory), make_offering(zone="us-east-1a"))

    assert found == Rejection(
        "no capacity at all at 09:26 UTC; avoided until 09:46 UTC", is_permanent=False, retry_at=everywhere.until
    )


@pytest.mark.parametrize(
    ("own", "stack", "caps"),
    [
        (None, None, []),
        (None, 2.0, ["the stack's MaxPricePerHour is 2 USD"]),
        (None, 40.0, ["the stack's MaxPricePerHour is 40 USD, its default"]),
        (1.0, None, ["the job's max_price_per_hour is 1 USD"]),
        (2.0, 2.0, ["the job's max_price_per_hour is 2 USD", "the stack's MaxPricePerHour is 2 USD"]),
        (3.0, 2.0, ["the stack's MaxPricePerHour is 2 USD", "the job's max_price_per_hour is 3 USD"]),
    ],
)
def test_the_lower_price_cap_comes_first_and_its_owner_is_named(own, stack, caps):
    given = criteria(max_price_usd_per_hour=own, limits=SelectionLimits(max_price_usd_per_hour=stack))

    assert [str(cap) for cap in given.price_caps] == caps


def test_a_provider_whose_machines_are_taken_is_waited_for_until_one_is_free():
    taken = make_capacity_failure(
        reason="the machines run other tasks", until=NOW + timedelta(minutes=15), capacity_provider="g5", is_queue=True
    )

    found = FILTERS["capacity-memory"](criteria(memory={taken.key: taken}), make_offering(capacity_provider="g5"))

    reason = "the machines run other tasks at 09:26 UTC; avoided until 09:41 UTC, or until one of them is free"
    assert found == Rejection(reason, is_permanent=False, retry_at=taken.until)
