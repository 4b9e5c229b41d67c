"""Selection over the bundled catalogue, against a slow checker that shares no code with the filters."""

import math
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.builders import NOW, make_container, make_definition, make_revision
from relaunch.adapters.catalogue import load_catalogue
from relaunch.core.accelerator import (
    AcceleratorRequirement,
    GpuRequirement,
    NeuronRequirement,
    PurchaseOption,
    PurchasePolicy,
)
from relaunch.core.definition import JobDefinition
from relaunch.core.offering import CapacityFailure, CapacityMemory, Offering, OfferingKey
from relaunch.core.revision import Revision
from relaunch.core.selection import Selection, explain_rejection, explain_rows, select
from relaunch.core.terms import SelectionLimits

# Twice; every third of the second time by a maker whose accelerators are not used.
TYPES = sorted(load_catalogue().values(), key=lambda row: row.name)
TYPES += [
    replace(row, name=f"{row.name}-other", accelerator_manufacturer="NVIDIA" if index % 3 else "AMD")
    for index, row in enumerate(TYPES)
    if row.accelerator_manufacturer == "NVIDIA"
]
NAMES = [row.name for row in TYPES]
ZONES = (None, "us-east-1a", "us-east-1b", "us-east-1c")
PRICES = (None, 0.2, 0.45, 0.4, 0.3, 50.0, 0.1)
ON_DEMAND_PRICES = (0.5, 0.9, None, 1.0, 8.0)

gpus = st.builds(
    GpuRequirement,
    count=st.sampled_from((1, 1, 1, 2, 4, 8)),
    memory_mib=st.sampled_from((None, None, 3, 16, 24, 48, 80, 141)).map(lambda gib: gib and gib * 1024),
    models=st.sampled_from(((), (), ("A10G", "l4"), ("T4",), ("rtx pro 6000",))),
)
neurons = st.one_of(
    st.builds(NeuronRequirement, devices=st.sampled_from((1, 4, 16))),
    st.builds(NeuronRequirement, cores=st.sampled_from((1, 4, 8, 30))),
)
some_types = st.integers(1, 4).map(lambda gap: tuple(NAMES[::gap]))
accelerators = st.one_of(
    st.builds(AcceleratorRequirement, gpu=gpus),
    st.builds(AcceleratorRequirement, gpu=gpus, instance_types=some_types),
    st.builds(AcceleratorRequirement, neuron=neurons),
    st.builds(AcceleratorRequirement, instance_types=some_types),
)
definitions = st.builds(
    make_definition,
    accelerator=accelerators,
    purchase=st.sampled_from(PurchasePolicy),
    max_price_usd_per_hour=st.sampled_from((None, None, 0.4, 9.0, 60.0)),
)
containers = st.builds(
    make_container,
    name=st.sampled_from(("main", "metrics")),
    gpu_count=st.sampled_from((0, 0, 1, 2)),
    memory_mib=st.sampled_from((0, 4_000, 15_000, 30_000)),
    vcpus=st.sampled_from((0.0, 1.0, 4.0)),
    neuron_devices=st.sampled_from(((), (), ("/dev/neuron0",), ("/dev/neuron0", "/dev/neuron3"))),
)
revisions = st.builds(
    make_revision,
    containers=st.lists(containers, min_size=1, max_size=2, unique_by=lambda each: each.name).map(tuple),
    memory_mib=st.sampled_from((0, 16_000, 31_000, 500_000)),
    vcpus=st.sampled_from((0.0, 2.0, 16.0, 40.0)),
    architecture=st.sampled_from(("X86_64", "X86_64", "ARM64")),
    network_mode=st.sampled_from(("bridge", "bridge", "awsvpc")),
)
offering_values = st.builds(
    Offering,
    instance_type=st.sampled_from(TYPES),
    purchase=st.sampled_from(PurchaseOption),
    zone=st.sampled_from(ZONES),
    price_usd_per_hour=st.sampled_from(PRICES),
    on_demand_usd_per_hour=st.sampled_from(ON_DEMAND_PRICES),
)


def offer_every_type(steps: tuple[int, int, int, int]) -> list[Offering]:
    """Offer each type once, with terms that a few numbers decide: drawing each one by itself would be slow."""
    options, zones, prices, on_demand_prices = steps
    return [
        Offering(
            instance_type=row,
            purchase=list(PurchaseOption)[index * options % 2],
            zone=ZONES[index * zones % len(ZONES)],
            price_usd_per_hour=PRICES[index * prices % len(PRICES)],
            on_demand_usd_per_hour=ON_DEMAND_PRICES[index * on_demand_prices % len(ON_DEMAND_PRICES)],
        )
        for index, row in enumerate(TYPES)
    ]


offering_lists = st.tuples(*[st.integers(1, 30)] * 4).map(offer_every_type)


def remember_some(steps: tuple[int, int, int]) -> CapacityMemory:
    """Remember a failure for every so-manieth type, in one zone or without, over already or not."""
    gap, zones, ages = steps
    memory = {}
    for index, name in enumerate(NAMES[::gap]):
        key = OfferingKey(name, ZONES[index * zones % len(ZONES)], list(PurchaseOption)[index % 2])
        until = NOW + timedelta(minutes=index * ages % 7 - 2)
        memory[key] = CapacityFailure(key, "interrupted", NOW - timedelta(hours=1), until)
    return memory


memories = st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)).map(remember_some)
limit_values = st.builds(
    SelectionLimits,
    max_price_usd_per_hour=st.sampled_from((1.0, 40.0)),
    max_spot_ratio=st.sampled_from((0.5, 0.9)),
    has_subnets=st.booleans(),
)
asked = st.tuples(
    definitions,
    st.one_of(st.none(), revisions, revisions, revisions),
    offering_lists,
    memories,
    st.just(NOW),
    limit_values,
)
Asked = tuple[JobDefinition, Revision | None, list[Offering], CapacityMemory, datetime, SelectionLimits]
# The machine the tests run on may be slow: no deadline.
steady = settings(deadline=None, max_examples=60)


def satisfies(
    offering: Offering,
    definition: JobDefinition,
    revision: Revision | None,
    memory: CapacityMemory,
    limits: SelectionLimits,
) -> bool:
    """Hold one offering against everything that is asked, plainly."""
    machine, wanted = offering.instance_type, definition.accelerator
    demands = [machine.accelerator_manufacturer in {"NVIDIA", "AWS"}]
    if wanted.instance_types:
        demands.append(machine.name in wanted.instance_types)
    if wanted.gpu:
        demands.append(machine.accelerator_manufacturer == "NVIDIA")
        demands.append(machine.gpu_count >= wanted.gpu.count)
        demands.append(machine.gpu_memory_mib >= 0.93 * (wanted.gpu.memory_mib or 0))
        names = [model.lower().replace(" ", "") for model in wanted.gpu.models]
        demands.append(not names or machine.accelerator_model.lower().replace(" ", "") in names)
    if wanted.neuron:
        demands.append(machine.accelerator_manufacturer == "AWS")
        demands.append(machine.neuron_devices >= (wanted.neuron.devices or 0))
        cores = machine.neuron_devices * machine.neuron_cores_per_device
        demands.append(cores >= (wanted.neuron.cores or 0))
    if revision:
        demands += has_room(offering, definition, revision)
        demands.append(revision.network_mode != "awsvpc" or limits.has_subnets)
    return all(demands) and has_good_terms(offering, definition, memory, limits)


def has_room(offering: Offering, definition: JobDefinition, revision: Revision) -> list[bool]:
    machine = offering.instance_type
    gpu_count = 0
    for container in revision.containers:
        is_counted = definition.accelerator.gpu is not None and container.name == definition.container
        gpu_count += 0 if is_counted else container.gpu_count
    if definition.accelerator.gpu is not None:
        gpu_count += definition.accelerator.gpu.count
    paths = {path for container in revision.containers for path in container.neuron_devices}
    has_paths = paths <= {f"/dev/neuron{number}" for number in range(machine.neuron_devices)}
    left_mib = machine.memory_mib - 256 - math.ceil(machine.memory_mib * 0.04)
    return [
        machine.gpu_count >= gpu_count,
        has_paths,
        machine.vcpus >= revision.vcpus,
        machine.vcpus >= sum(container.vcpus for container in revision.containers),
        left_mib >= revision.memory_mib,
        left_mib >= sum(container.memory_mib for container in revision.containers),
        machine.architecture.upper() == revision.architecture,
    ]


def has_good_terms(
    offering: Offering, definition: JobDefinition, memory: CapacityMemory, limits: SelectionLimits
) -> bool:
    price, on_demand = offering.price_usd_per_hour, offering.on_demand_usd_per_hour
    is_spot = offering.purchase is PurchaseOption.SPOT
    reckoned = on_demand if price is None else price
    caps = [limits.max_price_usd_per_hour, definition.max_price_usd_per_hour or math.inf]
    is_bargain = not is_spot or price is None or on_demand is None or price / on_demand <= limits.max_spot_ratio
    failed = [
        failure
        for key, failure in memory.items()
        if key.instance_type == offering.instance_type.name
        and key.purchase is offering.purchase
        and key.zone in {None, offering.zone}
        and failure.until > NOW
    ]
    is_allowed = str(offering.purchase) in definition.purchase
    return is_allowed and reckoned is not None and reckoned <= min(caps) and is_bargain and not failed


@settings(steady, max_examples=200)
@given(asked)
def test_what_is_kept_is_exactly_what_a_slow_checker_finds_good(arguments: Asked) -> None:
    definition, revision, offerings, memory, _, limits = arguments

    selection = select(*arguments)

    good = {each.key for each in offerings if satisfies(each, definition, revision, memory, limits)}
    assert {each.key for each in selection.kept} == good


@steady
@given(asked)
def test_kept_and_rejected_partition_what_was_offered(arguments: Asked) -> None:
    selection = select(*arguments)

    together = [*selection.kept, *(rejection.offering for rejection in selection.rejected)]
    assert len(together) == len(arguments[2])
    assert {each.key for each in together} == {each.key for each in arguments[2]}


@steady
@given(asked, st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_the_order_of_the_offerings(arguments: Asked, random: Random) -> None:
    definition, revision, offerings, memory, now, limits = arguments
    shuffled = random.sample(offerings, len(offerings))

    assert select(definition, revision, shuffled, memory, now, limits) == select(*arguments)


@steady
@given(asked, offering_values)
def test_another_offering_never_makes_the_choice_dearer(arguments: Asked, another: Offering) -> None:
    definition, revision, offerings, memory, now, limits = arguments
    fewer = [offering for offering in offerings if offering.key != another.key]

    before = select(definition, revision, fewer, memory, now, limits)
    after = select(definition, revision, [*fewer, another], memory, now, limits)

    assert price_of_choice(after) <= price_of_choice(before)


@steady
@given(asked)
def test_what_is_kept_is_ordered_by_expected_price(arguments: Asked) -> None:
    prices = [offering.expected_usd_per_hour or 0 for offering in select(*arguments).kept]

    assert prices == sorted(prices)


@steady
@given(asked)
def test_counts_rows_and_verdict_agree_with_the_selection(arguments: Asked) -> None:
    selection = select(*arguments)

    counts = selection.filter_counts
    assert counts[0][1] == len(arguments[2])
    assert counts[-1][2] == len(selection.kept)
    assert all(before[2] == after[1] for before, after in pairwise(counts))
    assert len(explain_rows(selection)) == len(arguments[2])
    assert bool(explain_rejection(selection)) is not bool(selection.kept)
    if selection.retry_at is not None:
        assert selection.retry_at > NOW
        assert not selection.is_permanent


def price_of_choice(selection: Selection) -> float:
    return (selection.kept[0].expected_usd_per_hour or math.inf) if selection.kept else math.inf
