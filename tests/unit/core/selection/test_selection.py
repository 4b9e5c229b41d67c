import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fakes.builders import (
    NOW,
    make_capacity_failure,
    make_container,
    make_definition,
    make_instance_type,
    make_offering,
    make_offering_key,
    make_revision,
)
from relaunch.core.definitions.accelerator import (
    AcceleratorRequirement,
    GpuRequirement,
    Interconnect,
    NeuronRequirement,
    PurchaseOption,
    PurchasePolicy,
)
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import CapacityMemory, Offering
from relaunch.core.offerings.quotas import QuotaUsage
from relaunch.core.revisions.images import with_platforms
from relaunch.core.revisions.revision import Revision
from relaunch.core.selection.offering_filters import SelectionLimits
from relaunch.core.selection.offering_table import OfferingTable
from relaunch.core.selection.rows import explain_rows
from relaunch.core.selection.selection import FILTER_NAMES, Selection, explain_rejection, select

ON_DEMAND, SPOT = PurchaseOption.ON_DEMAND, PurchaseOption.SPOT
A10G = make_instance_type("g5.xlarge", compute_capability=(8, 6))
FOUR_A10G = make_instance_type(
    "g5.12xlarge", gpu_count=4, logical_gpu_count=4, vcpus=48, memory_mib=196_608, accelerator_model="A10G"
)
T4 = make_instance_type("g4dn.xlarge", accelerator_model="T4", gpu_memory_mib=16_384, compute_capability=(7, 5))
ARM = make_instance_type("g5g.xlarge", accelerator_model="T4g", gpu_memory_mib=16_384, architecture="arm64")
EIGHTH = make_instance_type(
    "g6f.xlarge", accelerator_model="L4", gpu_count=0, gpu_partition_size=0.125, gpu_memory_mib=2_861
)
AMD = make_instance_type("g4ad.xlarge", accelerator_manufacturer="AMD", accelerator_model="Radeon Pro V520")
UNKNOWN = make_instance_type("c5.large", accelerator_manufacturer="", accelerator_model="", logical_gpu_count=0)
INFERENTIA2 = make_instance_type(
    "inf2.24xlarge",
    accelerator_manufacturer="AWS",
    accelerator_model="Inferentia2",
    gpu_count=0,
    logical_gpu_count=0,
    gpu_memory_mib=0,
    neuron_devices=6,
    neuron_cores_per_device=2,
    neuron_memory_mib=32_768,
    vcpus=96,
    memory_mib=393_216,
)


def needing(**fields: Any) -> JobDefinition:
    return make_definition(accelerator=AcceleratorRequirement(**fields))


def needing_gpu(**fields: Any) -> JobDefinition:
    return needing(gpu=GpuRequirement(**fields))


ONE_GPU = needing_gpu(count=1)
REVISION = make_revision()
NEURON_REVISION = make_revision(containers=(make_container(gpu_count=0),))


def selected(
    definition: JobDefinition,
    *offerings: Offering,
    revision: Revision | None = REVISION,
    memory: CapacityMemory | None = None,
    **limits: Any,
) -> Selection:
    known = {} if memory is None else memory
    return select(definition, revision, offerings, known, NOW, SelectionLimits(**limits))


def offered(machine: InstanceType, purchase: PurchaseOption = ON_DEMAND, **fields: Any) -> Offering:
    return make_offering(machine, purchase, **fields)


@pytest.mark.parametrize(
    ("definition", "revision", "machine", "filter_name", "reason"),
    [
        pytest.param(ONE_GPU, REVISION, AMD, "manufacturer", "AMD Radeon Pro V520", id="another maker"),
        pytest.param(ONE_GPU, REVISION, UNKNOWN, "manufacturer", "not in the catalogue", id="an unknown type"),
        pytest.param(
            needing(instance_types=("g4dn.xlarge",)), REVISION, A10G, "allow-list", "(g4dn.xlarge)", id="not listed"
        ),
        pytest.param(
            needing(gpu=GpuRequirement(), instance_types=("g4dn.xlarge",)),
            REVISION,
            A10G,
            "allow-list",
            "not among",
            id="a list beside a requirement narrows it",
        ),
        pytest.param(ONE_GPU, REVISION, INFERENTIA2, "accelerator", "no NVIDIA GPU", id="Neuron for GPU"),
        pytest.param(
            needing(neuron=NeuronRequirement(devices=1)),
            NEURON_REVISION,
            A10G,
            "accelerator",
            "no Neuron device",
            id="GPU for Neuron",
        ),
        pytest.param(needing_gpu(count=2), REVISION, A10G, "count", "it has 1 GPU; 2 are asked for", id="too few"),
        pytest.param(ONE_GPU, REVISION, EIGHTH, "count", "0.125 of a GPU", id="a part of a GPU"),
        pytest.param(
            needing(instance_types=("inf2.24xlarge",)),
            REVISION,
            INFERENTIA2,
            "count",
            "no GPUs; 1 are",
            id="the revision asks for a GPU the listed type does not have",
        ),
        pytest.param(
            ONE_GPU,
            make_revision(containers=(make_container(), make_container(name="second", gpu_count=4))),
            FOUR_A10G,
            "count",
            "it has 4 GPUs; 5 are asked for",
            id="too few for all containers together",
        ),
        pytest.param(
            needing_gpu(models=("L4", "L40S")), REVISION, A10G, "model", "asked for is L4 or L40S", id="another model"
        ),
        pytest.param(
            needing_gpu(memory_mib=24 * 1024),
            REVISION,
            T4,
            "memory-per-card",
            "its GPU has 16 GiB of memory; 24 GiB are asked for",
            id="too little memory on the card",
        ),
        pytest.param(
            needing(neuron=NeuronRequirement(devices=12)),
            NEURON_REVISION,
            INFERENTIA2,
            "neuron",
            "it has 6 Neuron devices; 12 are asked for",
            id="too few devices",
        ),
        pytest.param(
            needing(neuron=NeuronRequirement(cores=16)),
            NEURON_REVISION,
            INFERENTIA2,
            "neuron",
            "it has 12 NeuronCores; 16 are asked for",
            id="too few cores",
        ),
        pytest.param(
            ONE_GPU,
            make_revision(vcpus=4.5),
            A10G,
            "vcpu",
            "it has 4 vCPU; the task reserves 4.5",
            id="vcpu",
        ),
        pytest.param(
            ONE_GPU,
            make_revision(memory_mib=16_384),
            A10G,
            "memory",
            "about 15,472 of its 16,384 MiB are left for tasks",
            id="all of the memory, of which the kernel keeps some",
        ),
        pytest.param(ONE_GPU, REVISION, ARM, "architecture", "its processor is arm64", id="x86 on ARM"),
        pytest.param(
            ONE_GPU, make_revision(architecture="ARM64"), A10G, "architecture", "is for ARM64", id="ARM on x86"
        ),
        pytest.param(
            ONE_GPU,
            with_platforms(REVISION, {"main": ("linux/arm64", "windows/amd64")}),
            A10G,
            "image",
            "its processor is x86_64; the image of container main is for linux/arm64 and windows/amd64: build it "
            "for linux/amd64, or have the task definition (cpuArchitecture) and the job ask for machines of its "
            "architecture",
            id="an image for ARM on x86",
        ),
        pytest.param(
            ONE_GPU,
            with_platforms(make_revision(architecture="ARM64"), {"main": ("linux/amd64",)}),
            ARM,
            "image",
            "its processor is arm64; the image of container main is for linux/amd64: build it for linux/arm64,",
            id="an image for x86 on ARM",
        ),
        pytest.param(
            ONE_GPU,
            with_platforms(
                make_revision(
                    containers=(make_container(), make_container(name="side", gpu_count=0, vcpus=0.5, memory_mib=512))
                ),
                {"main": ("linux/amd64",), "side": ("linux/arm64",)},
            ),
            A10G,
            "image",
            "the image of container side is for linux/arm64",
            id="a second image for ARM on x86",
        ),
        pytest.param(
            needing_gpu(compute_capability=(8, 0)),
            REVISION,
            T4,
            "compute-capability",
            "its T4 has compute capability 7.5; 8.0 is asked for",
            id="no bf16",
        ),
        pytest.param(
            needing_gpu(compute_capability=(8, 0)),
            REVISION,
            replace(A10G, compute_capability=None),
            "compute-capability",
            "of its A10G is not known",
            id="a GPU of unknown compute capability",
        ),
        pytest.param(
            needing_gpu(memory_mib=2_048, compute_percent=30, compute_capability=(8, 0)),
            REVISION,
            T4,
            "compute-capability",
            "7.5; 8.0",
            id="a share of a GPU without bf16",
        ),
        pytest.param(needing_gpu(interconnect=Interconnect.EFA), REVISION, A10G, "interconnect", "(EFA)", id="no EFA"),
        pytest.param(
            needing_gpu(interconnect=Interconnect.NVLINK), REVISION, FOUR_A10G, "interconnect", "NVLink", id="no NVLink"
        ),
        pytest.param(
            ONE_GPU,
            make_revision(containers=(make_container(host_ports=(8080, 51_679)),)),
            A10G,
            "ports",
            "takes host port 51679, which the ECS agent has on every machine",
            id="a port of the ECS agent",
        ),
        pytest.param(
            ONE_GPU,
            make_revision(containers=(make_container(host_ports=(22,)),)),
            A10G,
            "ports",
            "SSH",
            id="SSH's port",
        ),
        pytest.param(
            ONE_GPU,
            make_revision(
                containers=(make_container(host_ports=(8080,)), make_container(name="second", host_ports=(80, 8080)))
            ),
            A10G,
            "count",
            "1 GPU; 2",
            id="the first filter that rejects is named",
        ),
        pytest.param(
            ONE_GPU,
            make_revision(
                containers=(
                    make_container(host_ports=(8080,)),
                    make_container(name="metrics", gpu_count=0, memory_mib=0, vcpus=0, host_ports=(80, 8080)),
                )
            ),
            A10G,
            "ports",
            "takes host port 8080 twice",
            id="a port that two containers take",
        ),
    ],
)
def test_a_machine_that_lacks_something_is_rejected_for_good_and_told_why(
    definition: JobDefinition, revision: Revision, machine: InstanceType, filter_name: str, reason: str
) -> None:
    selection = selected(definition, offered(machine), revision=revision)

    (rejected,) = selection.rejected
    assert (selection.kept, rejected.filter_name) == ((), filter_name)
    assert reason in rejected.rejection.reason
    assert selection.is_permanent
    assert selection.last_filter == filter_name


@pytest.mark.parametrize(
    ("definition", "revision", "machine"),
    [
        pytest.param(needing_gpu(memory_mib=24 * 1024), REVISION, A10G, id="24 GiB, of which 22,888 MiB are reported"),
        pytest.param(needing_gpu(models=("a10g",)), REVISION, A10G, id="a model in lower case"),
        pytest.param(needing_gpu(count=3), REVISION, FOUR_A10G, id="more GPUs than asked for"),
        pytest.param(needing(instance_types=("G5.xlarge",)), REVISION, A10G, id="a type listed in upper case"),
        pytest.param(
            needing(instance_types=("g6f.xlarge",)), NEURON_REVISION, EIGHTH, id="a listed fraction, no GPU asked for"
        ),
        pytest.param(
            needing(neuron=NeuronRequirement(devices=1)), NEURON_REVISION, INFERENTIA2, id="one device of six"
        ),
        pytest.param(
            needing(neuron=NeuronRequirement(devices=4)), NEURON_REVISION, INFERENTIA2, id="the whole machine"
        ),
        pytest.param(needing(neuron=NeuronRequirement(cores=12)), NEURON_REVISION, INFERENTIA2, id="all its cores"),
        pytest.param(ONE_GPU, make_revision(architecture="ARM64"), ARM, id="ARM on ARM"),
        *(
            pytest.param(
                ONE_GPU, with_platforms(revision, {"main": platforms}), machine, id=f"an image for {platforms[0]}"
            )
            for revision, platforms, machine in (
                (REVISION, ("linux/amd64",), A10G),
                (REVISION, ("linux/arm64", "linux/amd64"), A10G),
                (REVISION, ("linux/386",), A10G),
                (make_revision(architecture="ARM64"), ("linux/arm64",), ARM),
                (make_revision(architecture="ARM64"), ("linux/arm",), ARM),
                (make_revision(architecture=""), ("plan9/amd64",), replace(A10G, architecture="riscv64")),
            )
        ),
        pytest.param(needing_gpu(compute_capability=(8, 6)), REVISION, A10G, id="exactly the compute capability"),
        pytest.param(
            needing_gpu(interconnect=Interconnect.EFA),
            REVISION,
            replace(A10G, efa_interfaces=1),
            id="one EFA interface",
        ),
        pytest.param(
            needing_gpu(interconnect=Interconnect.NVLINK), REVISION, replace(A10G, has_nvlink=True), id="NVLink"
        ),
        pytest.param(
            ONE_GPU, make_revision(containers=(make_container(host_ports=(80, 8080)),)), A10G, id="ports of its own"
        ),
        pytest.param(ONE_GPU, None, ARM, id="no revision yet, so no architecture"),
    ],
)
def test_a_machine_that_has_what_is_asked_is_kept(
    definition: JobDefinition, revision: Revision | None, machine: InstanceType
) -> None:
    offering = offered(machine)

    assert selected(definition, offering, revision=revision).kept == (offering,)


def test_awsvpc_needs_subnets() -> None:
    awsvpc = make_revision(network_mode="awsvpc")

    without = selected(ONE_GPU, offered(A10G), revision=awsvpc, has_subnets=False)
    bridged = selected(ONE_GPU, offered(A10G), has_subnets=False)

    assert (without.last_filter, without.is_permanent) == ("network-mode", True)
    assert "SubnetIds" in without.rejected[0].rejection.reason
    assert selected(ONE_GPU, offered(A10G), revision=awsvpc, has_subnets=True).kept
    assert bridged.kept


def test_a_disk_that_is_known_to_be_too_small_is_rejected_and_one_that_is_not_known_is_not() -> None:
    small, enough = offered(A10G, SPOT, disk_gib=100), offered(A10G, disk_gib=200)
    unknown = offered(A10G, capacity_provider="unknown")

    selection = selected(replace(ONE_GPU, disk_gib=200), small, enough, unknown)

    assert set(selection.kept) == {enough, unknown}
    (rejected,) = selection.rejected
    assert (rejected.offering, rejected.filter_name) == (small, "disk")
    assert rejected.rejection.reason == "its disk has 100 GiB; 200 are asked for"
    assert selected(ONE_GPU, small).kept
    assert selected(replace(ONE_GPU, disk_gib=200), small).is_permanent


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        (PurchasePolicy.SPOT, [SPOT]),
        (PurchasePolicy.ON_DEMAND, [ON_DEMAND]),
        (PurchasePolicy.SPOT_THEN_ON_DEMAND, [SPOT, ON_DEMAND]),
    ],
)
def test_only_allowed_purchase_options_are_kept(policy: PurchasePolicy, kept: list[PurchaseOption]) -> None:
    definition = replace(ONE_GPU, purchase=policy)

    selection = selected(definition, offered(A10G, ON_DEMAND), offered(A10G, SPOT))

    assert [offering.purchase for offering in selection.kept] == kept


def test_the_lower_of_the_two_price_caps_holds_and_is_named() -> None:
    offering = offered(A10G, price_usd_per_hour=1.0)

    by_definition = selected(replace(ONE_GPU, max_price_usd_per_hour=0.5), offering)
    by_stack = selected(replace(ONE_GPU, max_price_usd_per_hour=9.0), offering, max_price_usd_per_hour=0.7)

    assert "1 USD per hour; the job's cap is 0.5" in by_definition.rejected[0].rejection.reason
    assert "the stack's cap is 0.7" in by_stack.rejected[0].rejection.reason
    assert selected(replace(ONE_GPU, max_price_usd_per_hour=1.0), offering).kept


def test_a_dear_spot_price_may_fall_but_an_on_demand_price_does_not() -> None:
    capped = replace(ONE_GPU, max_price_usd_per_hour=0.3)

    spot = selected(capped, offered(A10G, SPOT, price_usd_per_hour=0.4))
    on_demand = selected(capped, offered(A10G, ON_DEMAND))

    assert (spot.last_filter, spot.is_permanent, spot.retry_at) == ("price-cap", False, None)
    assert (on_demand.last_filter, on_demand.is_permanent) == ("price-cap", True)


def test_an_offering_without_any_price_cannot_keep_a_cap() -> None:
    selection = selected(ONE_GPU, offered(A10G, price_usd_per_hour=None, on_demand_usd_per_hour=None))

    assert "not known" in selection.rejected[0].rejection.reason
    assert selection.last_filter == "price-cap"


def test_spot_that_is_hardly_cheaper_is_rejected_until_its_price_falls() -> None:
    dear = offered(A10G, SPOT, price_usd_per_hour=0.95)
    just_cheap_enough = offered(A10G, SPOT, price_usd_per_hour=0.9)

    selection = selected(ONE_GPU, dear)

    assert (selection.last_filter, selection.is_permanent) == ("spot-ratio", False)
    assert "95% of the on-demand price" in selection.rejected[0].rejection.reason
    assert selected(ONE_GPU, just_cheap_enough).kept
    assert selected(ONE_GPU, dear, max_spot_ratio=1.0).kept


def test_spot_without_a_known_price_is_reckoned_at_the_on_demand_price_and_ranks_after_it() -> None:
    unpriced = offered(A10G, SPOT, price_usd_per_hour=None)
    dearer = offered(T4, ON_DEMAND, price_usd_per_hour=1.5)

    selection = selected(ONE_GPU, dearer, unpriced, offered(A10G, ON_DEMAND))

    assert [each.expected_usd_per_hour for each in selection.kept] == [1.0, 1.0, 1.5]
    assert [each.price_usd_per_hour for each in selection.kept] == [1.0, None, 1.5]


def test_what_failed_lately_is_avoided_until_its_time_is_over() -> None:
    failure = make_capacity_failure(reason="interrupted")
    memory = {failure.offering: failure}
    spot, on_demand = offered(A10G, SPOT), offered(A10G, ON_DEMAND)

    now = selected(ONE_GPU, spot, on_demand, memory=memory)
    later = select(ONE_GPU, REVISION, (spot,), memory, failure.until, SelectionLimits())

    assert now.kept == (on_demand,)
    assert "interrupted at 09:26 UTC; avoided until 09:56 UTC" in now.rejected[0].rejection.reason
    assert later.kept == (spot,)


def test_a_failure_without_a_zone_counts_for_every_zone_and_one_with_a_zone_only_there() -> None:
    anywhere = make_capacity_failure()
    here = make_capacity_failure(offering=make_offering_key(zone="us-east-1a"))
    zones = [offered(A10G, SPOT, zone=zone) for zone in ("us-east-1a", "us-east-1b")]

    assert not selected(ONE_GPU, *zones, memory={anywhere.offering: anywhere}).kept
    assert selected(ONE_GPU, *zones, memory={here.offering: here}).kept == (zones[1],)
    assert selected(ONE_GPU, offered(A10G, SPOT), memory={here.offering: here}).kept


def test_the_next_try_is_when_the_memory_first_lets_an_offering_go() -> None:
    soon = make_capacity_failure(until=NOW + timedelta(minutes=5))
    late = make_capacity_failure(offering=make_offering_key("g4dn.xlarge"))

    selection = selected(
        ONE_GPU, offered(A10G, SPOT), offered(T4, SPOT), memory={soon.offering: soon, late.offering: late}
    )

    assert (selection.retry_at, selection.is_permanent) == (soon.until, False)
    with_another = selected(ONE_GPU, offered(A10G, SPOT), offered(T4), memory={soon.offering: soon})
    assert (len(with_another.kept), len(with_another.rejected), with_another.retry_at) == (1, 1, None)
    assert selection.last_filter == "capacity-memory"


def test_one_offering_worth_waiting_for_keeps_a_job_waiting() -> None:
    failure = make_capacity_failure()

    selection = selected(
        needing_gpu(memory_mib=24 * 1024),
        offered(T4),
        offered(A10G, SPOT),
        memory={failure.offering: failure},
    )

    assert not selection.is_permanent
    assert explain_rejection(selection).startswith("nothing is available right now: capacity-memory removed the last")


def test_equal_prices_are_ordered_by_zones_then_by_name() -> None:
    two_zones = [offered(T4, zone=zone) for zone in ("us-east-1a", "us-east-1b")]
    named = offered(FOUR_A10G, zones=("us-east-1a", "us-east-1b", "us-east-1c"))
    one_zone = [offered(make_instance_type(name), zone="us-east-1a") for name in ("g6.xlarge", "g5.xlarge")]

    selection = selected(ONE_GPU, *one_zone, *two_zones, named)

    assert [str(offering.key) for offering in selection.kept] == [
        "g5.12xlarge on-demand",
        "g4dn.xlarge on-demand us-east-1a",
        "g4dn.xlarge on-demand us-east-1b",
        "g5.xlarge on-demand us-east-1a",
        "g6.xlarge on-demand us-east-1a",
    ]


def test_of_equal_prices_a_type_that_is_offered_in_more_zones_is_first() -> None:
    twice = [offered(make_instance_type("g6.xlarge"), zone=zone) for zone in ("us-east-1a", "us-east-1b")]
    once = offered(make_instance_type("g5.xlarge"), zone="us-east-1a")

    assert selected(ONE_GPU, once, *twice).kept == (*twice, once)


def test_of_equal_offerings_the_one_without_a_zone_then_the_first_provider_by_name_comes_first() -> None:
    unnamed, first, second = (offered(A10G, capacity_provider=name) for name in (None, "A", "B"))
    zoned = offered(A10G, zone="A", capacity_provider="A")

    assert selected(ONE_GPU, zoned, second, first, unnamed).kept == (unnamed, first, second, zoned)


def test_with_an_estimated_duration_the_order_is_that_of_expected_cost() -> None:
    a_day = replace(ONE_GPU, estimated_duration=timedelta(hours=24))
    no_checkpoint = replace(a_day, checkpoint_uri=None)
    spot, on_demand = offered(A10G, SPOT), offered(A10G, ON_DEMAND)

    assert selected(a_day, on_demand, spot).kept == (spot, on_demand)
    assert selected(no_checkpoint, on_demand, spot).kept == (on_demand, spot)
    assert selected(replace(no_checkpoint, estimated_duration=None), on_demand, spot).kept == (spot, on_demand)


def test_a_calmer_market_may_be_dearer() -> None:
    definition = replace(ONE_GPU, estimated_duration=timedelta(hours=10), checkpoint_uri=None)
    cheap = offered(A10G, SPOT, price_usd_per_hour=0.40, interruptions_per_hour=0.1)
    calm = offered(T4, SPOT, price_usd_per_hour=0.45, interruptions_per_hour=0.01)

    selection = selected(definition, cheap, calm)

    assert selection.kept == (calm, cheap)
    costs = [row["expected_cost_usd"] for row in explain_rows(selection)]
    assert costs == [pytest.approx(4.90, abs=0.05), pytest.approx(7.12, abs=0.05)]


def test_of_two_zones_of_one_type_the_dearer_but_calmer_one_may_be_chosen() -> None:
    definition = replace(ONE_GPU, estimated_duration=timedelta(hours=10), checkpoint_uri=None)
    wild = offered(A10G, SPOT, zone="us-east-1a", price_usd_per_hour=0.40, interruptions_per_hour=0.2)
    calm = offered(A10G, SPOT, zone="us-east-1b", price_usd_per_hour=0.45, interruptions_per_hour=0.01)

    selection = selected(definition, wild, calm)

    assert selection.chosen == calm
    assert selection.kept == (calm, wild)


def test_of_equal_prices_the_one_with_better_odds_is_first() -> None:
    likely, unlikely, unknown = (
        offered(make_instance_type(name), SPOT, placement_score=score)
        for name, score in (("g6.xlarge", 9), ("g5.xlarge", 2), ("g5.2xlarge", None))
    )

    assert selected(ONE_GPU, unlikely, unknown, likely).kept == (likely, unlikely, unknown)


def test_unknown_odds_count_as_the_worst() -> None:
    unknown, worst = (
        offered(make_instance_type(name), SPOT, placement_score=score)
        for name, score in (("g5.2xlarge", None), ("g5.xlarge", 1))
    )

    assert selected(ONE_GPU, unknown, worst).kept == (unknown, worst)


def test_a_dearer_machine_of_a_market_with_better_odds_is_expected_to_cost_less() -> None:
    hours = replace(ONE_GPU, estimated_duration=timedelta(hours=10), checkpoint_uri="s3://acme-checkpoints/resnet/")
    scarce = offered(A10G, SPOT, price_usd_per_hour=0.400, placement_score=1)
    ample = offered(make_instance_type("g6.xlarge"), SPOT, price_usd_per_hour=0.405, placement_score=10)

    assert selected(hours, scarce, ample).kept == (ample, scarce)
    assert selected(ONE_GPU, scarce, ample).kept == (scarce, ample)


def test_the_price_of_disks_in_the_region_counts_in_the_cost() -> None:
    work = replace(ONE_GPU, estimated_duration=timedelta(hours=10), disk_gib=730, checkpoint_uri=None)
    usual, dear = (selected(work, offered(A10G, SPOT), **prices) for prices in ({}, {"gp3_usd_per_gib_month": 0.16}))

    costs = [explain_rows(each)[0]["expected_cost_usd"] for each in (usual, dear)]
    assert costs == [pytest.approx(each) for each in (costs[0], costs[0] * 0.56 / 0.48)]


def test_of_a_table_that_was_made_elsewhere_the_first_is_the_chosen_one() -> None:
    first, second = offered(A10G, SPOT), offered(A10G, ON_DEMAND)

    assert Selection((first, second), (), ()).chosen == first
    assert Selection((), (), ()).chosen is None


def test_a_quota_smaller_than_the_machine_rejects_it_for_good_and_is_named() -> None:
    selection = selected(ONE_GPU, offered(FOUR_A10G, SPOT), quotas={"L-3819A6DF": QuotaUsage(32)})

    assert (selection.last_filter, selection.is_permanent) == ("quota", True)
    assert selection.rejected[0].rejection.reason == (
        "it has 48 vCPU and the account's quota is 32: ask AWS for more of "
        '"All G and VT Spot Instance Requests" (L-3819A6DF)'
    )


def test_a_quota_that_other_jobs_use_up_is_worth_waiting_for() -> None:
    full = {"L-3819A6DF": QuotaUsage(8, used_vcpus=6)}

    selection = selected(ONE_GPU, offered(A10G, SPOT), quotas=full)

    assert (selection.last_filter, selection.is_permanent) == ("quota", False)
    assert selection.retry_at == NOW + timedelta(minutes=5)
    assert "it has 4 vCPU and other jobs use 6 of the quota's 8" in selection.rejected[0].rejection.reason


@pytest.mark.parametrize(
    ("offering", "quotas"),
    [
        pytest.param(offered(A10G, SPOT), {}, id="unknown"),
        pytest.param(offered(A10G, SPOT), {"L-3819A6DF": QuotaUsage(4)}, id="just enough"),
        pytest.param(offered(A10G, SPOT), {"L-3819A6DF": QuotaUsage(8, 4)}, id="just enough beside others"),
        pytest.param(offered(A10G, ON_DEMAND), {"L-3819A6DF": QuotaUsage(0)}, id="that of the other purchase option"),
        pytest.param(
            offered(FOUR_A10G, SPOT), {"L-3819A6DF": QuotaUsage(48, 48)}, id="used by machines with room for this task"
        ),
        pytest.param(
            offered(make_instance_type("x5.xlarge"), SPOT), {"L-3819A6DF": QuotaUsage(0)}, id="a family without one"
        ),
    ],
)
def test_a_quota_that_is_large_enough_or_unknown_rejects_nothing(
    offering: Offering, quotas: dict[str, QuotaUsage]
) -> None:
    assert selected(ONE_GPU, offering, quotas=quotas).kept == (offering,)


def test_a_table_of_offerings_can_be_selected_from_again_and_again() -> None:
    offerings = (offered(A10G, ON_DEMAND), offered(T4), offered(A10G, SPOT))
    table = OfferingTable(offerings)

    first, second = (
        select(needing_gpu(memory_mib=gib * 1024), REVISION, table, {}, NOW, SelectionLimits()) for gib in (24, 16)
    )

    assert table == offerings
    assert first == selected(needing_gpu(memory_mib=24 * 1024), *offerings)
    assert second == selected(needing_gpu(memory_mib=16 * 1024), *offerings)


def test_the_table_is_that_of_the_moment_of_selection() -> None:
    failure = make_capacity_failure()
    memory = {failure.offering: failure}

    selection = selected(ONE_GPU, offered(A10G, SPOT), memory=memory)
    memory.clear()

    assert (selection.kept, selection.last_filter) == ((), "capacity-memory")


def test_the_counts_tell_what_each_filter_left() -> None:
    selection = selected(needing_gpu(memory_mib=24 * 1024), offered(AMD), offered(T4), offered(A10G))

    assert tuple(name for name, _, _ in selection.filter_counts) == FILTER_NAMES
    assert [count for count in selection.filter_counts if count[1] != count[2]] == [
        ("manufacturer", 3, 2),
        ("memory-per-card", 2, 1),
    ]
    assert selection.last_filter is None
    assert explain_rejection(selection) == ""


def test_the_sentence_names_the_last_filter_and_the_nearest_miss() -> None:
    selection = selected(needing_gpu(memory_mib=80 * 1024), offered(AMD), offered(T4), offered(A10G))

    assert explain_rejection(selection) == (
        "nothing satisfies this job: memory-per-card removed the last 2 of 3 offerings; the nearest was "
        "g5.xlarge on-demand: its GPU has 22,888 MiB of memory; 80 GiB are asked for"
    )


def test_of_equally_near_misses_the_cheapest_is_named() -> None:
    dear = offered(make_instance_type("g5.2xlarge"), price_usd_per_hour=1.2)

    selection = selected(needing_gpu(count=8), dear, offered(A10G))

    assert "the nearest was g5.xlarge on-demand" in explain_rejection(selection)


def test_a_stack_without_offerings_is_said_to_have_none() -> None:
    selection = selected(ONE_GPU)

    assert selection.is_permanent
    assert selection.last_filter is None
    assert explain_rejection(selection) == (
        "there is no offering at all: the stack names no capacity providers (CapacityProviders)"
    )


def test_one_offering_alone_is_not_counted() -> None:
    assert explain_rejection(selected(ONE_GPU, offered(AMD))) == (
        "nothing satisfies this job: manufacturer removed the last offering; the nearest was g4ad.xlarge on-demand: "
        "its accelerator is AMD Radeon Pro V520; only NVIDIA GPUs and AWS Neuron devices are used"
    )


def test_rows_are_json_with_the_chosen_first_and_the_furthest_rejected_next() -> None:
    spot = offered(A10G, SPOT)
    selection = selected(needing_gpu(memory_mib=24 * 1024), offered(AMD), offered(T4), spot, offered(A10G))

    rows = explain_rows(selection)

    assert json.loads(json.dumps(rows)) == list(rows)
    assert [(row["rank"], row["instance_type"], row["filter"]) for row in rows] == [
        (1, "g5.xlarge", None),
        (2, "g5.xlarge", None),
        (None, "g4dn.xlarge", "memory-per-card"),
        (None, "g4ad.xlarge", "manufacturer"),
    ]
    assert rows[0] == {
        "rank": 1,
        "instance_type": "g5.xlarge",
        "purchase": "spot",
        "zone": None,
        "zones": [],
        "capacity_provider": "g5-xlarge-spot",
        "accelerator": "A10G",
        "accelerator_count": 1,
        "accelerator_memory_mib": 22_888,
        "vcpus": 4,
        "memory_mib": 16_384,
        "price_usd_per_hour": 0.4,
        "expected_usd_per_hour": 0.4,
        "price_at": "2026-03-14T09:21:53+00:00",
        "on_demand_usd_per_hour": 1.0,
        "saving": 0.6,
        "expected_cost_usd": None,
        "interruptions_per_hour": 0.1,
        "placement_score": None,
        "verdict": "kept",
        "filter": None,
        "reason": "",
        "is_permanent": None,
    }
    (rejected,) = selected(needing_gpu(memory_mib=24 * 1024), offered(T4)).rejected
    assert rows[2] == explain_rows(selected(ONE_GPU, offered(T4)))[0] | {
        "rank": None,
        "verdict": "rejected",
        "filter": "memory-per-card",
        "reason": rejected.rejection.reason,
        "is_permanent": True,
    }


def test_what_a_rejected_offering_would_cost_is_told_and_nothing_where_it_would_never_finish() -> None:
    hours = replace(needing_gpu(memory_mib=24 * 1024), estimated_duration=timedelta(hours=1), checkpoint_uri=None)
    ages = replace(ONE_GPU, estimated_duration=timedelta(hours=9_999), checkpoint_uri=None)

    (rejected,) = explain_rows(selected(hours, offered(T4)))
    (hopeless,) = explain_rows(selected(ages, offered(A10G, SPOT)))

    assert rejected["expected_cost_usd"] == pytest.approx(1 + 8 / 60 + 0.25)
    assert (hopeless["verdict"], hopeless["expected_cost_usd"]) == ("kept", None)
