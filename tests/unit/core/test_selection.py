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
from relaunch.core.accelerator import (
    AcceleratorRequirement,
    GpuRequirement,
    NeuronRequirement,
    PurchaseOption,
    PurchasePolicy,
)
from relaunch.core.catalogue import InstanceType
from relaunch.core.definition import JobDefinition
from relaunch.core.offering import CapacityMemory, Offering
from relaunch.core.revision import Revision
from relaunch.core.selection import FILTER_NAMES, Selection, explain_rejection, explain_rows, select
from relaunch.core.terms import SelectionLimits

ON_DEMAND, SPOT = PurchaseOption.ON_DEMAND, PurchaseOption.SPOT
A10G = make_instance_type("g5.xlarge")
FOUR_A10G = make_instance_type(
    "g5.12xlarge", gpu_count=4, logical_gpu_count=4, vcpus=48, memory_mib=196_608, accelerator_model="A10G"
)
T4 = make_instance_type("g4dn.xlarge", accelerator_model="T4", gpu_memory_mib=16_384)
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
    return select(definition, revision, offerings, memory or {}, NOW, SelectionLimits(**limits))


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
            "it has 4 vCPU; the task definition reserves 4.5",
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
    ],
)
def test_a_machine_that_lacks_something_is_rejected_for_good_and_told_why(
    definition: JobDefinition, revision: Revision, machine: InstanceType, filter_name: str, reason: str
) -> None:
    selection = selected(definition, offered(machine), revision=revision)

    (rejection,) = selection.rejected
    assert (selection.kept, rejection.filter_name) == ((), filter_name)
    assert reason in rejection.reason
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
    assert "SubnetIds" in without.rejected[0].reason
    assert selected(ONE_GPU, offered(A10G), revision=awsvpc, has_subnets=True).kept
    assert bridged.kept


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

    assert "1 USD per hour; the definition's cap is 0.5" in by_definition.rejected[0].reason
    assert "the stack's cap is 0.7" in by_stack.rejected[0].reason
    assert selected(replace(ONE_GPU, max_price_usd_per_hour=1.0), offering).kept


def test_a_dear_spot_price_may_fall_but_an_on_demand_price_does_not() -> None:
    capped = replace(ONE_GPU, max_price_usd_per_hour=0.3)

    spot = selected(capped, offered(A10G, SPOT, price_usd_per_hour=0.4))
    on_demand = selected(capped, offered(A10G, ON_DEMAND))

    assert (spot.last_filter, spot.is_permanent, spot.retry_at) == ("price-cap", False, None)
    assert (on_demand.last_filter, on_demand.is_permanent) == ("price-cap", True)


def test_an_offering_without_any_price_cannot_keep_a_cap() -> None:
    selection = selected(ONE_GPU, offered(A10G, price_usd_per_hour=None, on_demand_usd_per_hour=None))

    assert "not known" in selection.rejected[0].reason
    assert selection.last_filter == "price-cap"


def test_spot_that_is_hardly_cheaper_is_rejected_until_its_price_falls() -> None:
    dear = offered(A10G, SPOT, price_usd_per_hour=0.95)
    just_cheap_enough = offered(A10G, SPOT, price_usd_per_hour=0.9)

    selection = selected(ONE_GPU, dear)

    assert (selection.last_filter, selection.is_permanent) == ("spot-ratio", False)
    assert "95% of the on-demand price" in selection.rejected[0].reason
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
    assert "interrupted at 09:26 UTC; avoided until 09:56 UTC" in now.rejected[0].reason
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
    assert explain_rejection(selection).startswith("nothing is to be had right now: capacity-memory removed the last")


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
    assert "the stack names no capacity providers" in explain_rejection(selection)


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
        "verdict": "kept",
        "filter": None,
        "reason": "",
        "is_permanent": None,
    }
    assert (rows[2]["verdict"], rows[2]["is_permanent"]) == ("rejected", True)
