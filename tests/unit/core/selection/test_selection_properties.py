"""Selection from the bundled catalogue, compared with an independent, slow implementation of the filters."""

import math
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.builders import NOW, make_container, make_definition, make_revision
from fakes.slow_checker import is_good
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.accelerator import (
    AcceleratorRequirement,
    GpuRequirement,
    Interconnect,
    Isolation,
    NeuronPurpose,
    NeuronRequirement,
    PurchaseOption,
    PurchasePolicy,
)
from relaunch.core.offerings.capacity_memory import purchase_scope, quota_scope, zone_scope
from relaunch.core.offerings.instance_types import AmiKind
from relaunch.core.offerings.offering import CapacityFailure, CapacityMemory, Offering, OfferingKey
from relaunch.core.offerings.quotas import QuotaUsage
from relaunch.core.selection.expected_cost import cost_of
from relaunch.core.selection.offering_filters import SelectionLimits
from relaunch.core.selection.offering_table import OfferingTable
from relaunch.core.selection.selection import Selection, explain_rejection, explain_rows, select

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
    compute_capability=st.sampled_from((None, None, None, (7, 5), (8, 0), (12, 0))),
    interconnect=st.sampled_from((None, None, None, *Interconnect)),
)
shares = st.builds(
    GpuRequirement,
    memory_mib=st.sampled_from((512, 2_861, 15_000, 40_000)),
    compute_percent=st.sampled_from((1, 12, 13, 50, 100)),
    isolation=st.sampled_from(Isolation),
    models=st.sampled_from(((), ("L4",))),
)
neurons = st.one_of(
    st.builds(NeuronRequirement, devices=st.sampled_from((1, 4, 16)), purpose=st.sampled_from(NeuronPurpose)),
    st.builds(
        NeuronRequirement, cores=st.sampled_from((1, 4, 8, 30)), models=st.sampled_from(((), ("Trainium", "Trainium2")))
    ),
)
some_types = st.integers(1, 4).map(lambda gap: tuple(NAMES[::gap]))
accelerators = st.one_of(
    st.builds(AcceleratorRequirement, gpu=gpus),
    st.builds(AcceleratorRequirement, gpu=shares),
    st.builds(AcceleratorRequirement, gpu=gpus, instance_types=some_types),
    st.builds(AcceleratorRequirement, neuron=neurons),
    st.builds(AcceleratorRequirement, instance_types=some_types),
)
definitions = st.builds(
    make_definition,
    accelerator=accelerators,
    purchase=st.sampled_from(PurchasePolicy),
    max_price_usd_per_hour=st.sampled_from((None, None, 0.4, 9.0, 60.0)),
    estimated_duration=st.sampled_from((None, timedelta(minutes=20), timedelta(hours=9), timedelta(days=30))),
    checkpoint_uri=st.sampled_from((None, "s3://acme-checkpoints/resnet/")),
    disk_gib=st.sampled_from((None, 500)),
)
containers = st.builds(
    make_container,
    name=st.sampled_from(("main", "metrics")),
    gpu_count=st.sampled_from((0, 0, 1, 2)),
    memory_mib=st.sampled_from((0, 4_000, 15_000, 30_000)),
    vcpus=st.sampled_from((0.0, 1.0, 4.0)),
    neuron_devices=st.sampled_from(((), (), ("/dev/neuron0",), ("/dev/neuron0", "/dev/neuron3"))),
    host_ports=st.sampled_from(((), (), (), (80,), (80, 81), (22, 8080))),
    platforms=st.sampled_from(
        ((), (), ("linux/amd64",), ("linux/arm64",), ("linux/arm64", "linux/386"), ("linux/arm",))
    ),
)
revisions = st.builds(
    make_revision,
    containers=st.lists(containers, min_size=1, max_size=2, unique_by=lambda each: each.name).map(tuple),
    memory_mib=st.sampled_from((0, 16_000, 31_000, 500_000)),
    vcpus=st.sampled_from((0.0, 2.0, 16.0, 40.0)),
    architecture=st.sampled_from(("X86_64", "X86_64", "ARM64")),
    network_mode=st.sampled_from(("bridge", "bridge", "host", "awsvpc", "none")),
)
RATES = (None, 0.002, 0.3)
SCORES = (None, 1, 9)
DISKS = (None, 300, 500)
ROWS_PER_TYPE = 3

offering_values = st.builds(
    Offering,
    instance_type=st.sampled_from(TYPES),
    purchase=st.sampled_from(PurchaseOption),
    zone=st.sampled_from(ZONES),
    price_usd_per_hour=st.sampled_from(PRICES),
    on_demand_usd_per_hour=st.sampled_from(ON_DEMAND_PRICES),
    interruptions_per_hour=st.sampled_from(RATES),
    placement_score=st.sampled_from(SCORES),
    is_managed=st.booleans(),
    disk_gib=st.sampled_from(DISKS),
    is_own_machine=st.booleans(),
).map(lambda offering: offering if offering.zone else replace(offering, is_own_machine=False))


def offer_types(steps: tuple[int, int, int, int], gap: int) -> list[Offering]:
    """Offer each or every so-manieth type in some zones.

    A few numbers decide on what terms: drawing each offering by itself would be slow.
    """
    options, zones, prices, on_demand_prices = steps
    return [
        Offering(
            instance_type=row,
            purchase=list(PurchaseOption)[(index * options + nth // 2) % 2],
            zone=ZONES[(index * zones + nth) % len(ZONES)],
            price_usd_per_hour=PRICES[(index + nth) * prices % len(PRICES)],
            on_demand_usd_per_hour=ON_DEMAND_PRICES[index * on_demand_prices % len(ON_DEMAND_PRICES)],
            interruptions_per_hour=RATES[(index * options + nth * prices) % len(RATES)],
            placement_score=SCORES[(index * prices + nth) % len(SCORES)],
            is_managed=(index * zones + nth) % 5 == 0,
            disk_gib=DISKS[(index * zones + nth * prices) % len(DISKS)],
            is_own_machine=(index * zones + nth) % 4 != 0 and (index + options) % 2 == 0,
        )
        for index, row in enumerate(TYPES[::gap])
        for nth in range(ROWS_PER_TYPE)
    ]


offering_lists = st.builds(offer_types, st.tuples(*[st.integers(1, 30)] * 4), st.sampled_from((1, 3, 20, 70)))


def remember_some(steps: tuple[int, int, int]) -> CapacityMemory:
    """Remember a failure for every so-manieth type, in one zone or without, over already or not."""
    gap, zones, ages = steps
    memory = {}
    for index, name in enumerate(NAMES[::gap]):
        key = OfferingKey(name, ZONES[index * zones % len(ZONES)], list(PurchaseOption)[index % 2])
        until = NOW + timedelta(minutes=index * ages % 7 - 2)
        memory[key] = CapacityFailure(key, "interrupted", NOW - timedelta(hours=1), until)
    for index, key in enumerate(SCOPES[:: gap + zones]):
        until = NOW + timedelta(minutes=index * ages % 3 - 1)
        memory[key] = CapacityFailure(key, "no room", NOW - timedelta(hours=1), until, vcpus=48 * (index % 2))
    return memory


SCOPES = (
    quota_scope("g5.xlarge", PurchaseOption.ON_DEMAND),
    zone_scope("us-east-1b", PurchaseOption.SPOT),
    quota_scope("p5en.48xlarge", PurchaseOption.SPOT),
    zone_scope("us-east-1a", PurchaseOption.ON_DEMAND),
    quota_scope("g5.xlarge", PurchaseOption.SPOT),
    purchase_scope(PurchaseOption.SPOT),
    quota_scope("trn1.2xlarge", PurchaseOption.ON_DEMAND),
)


memories = st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)).map(remember_some)
limit_values = st.builds(
    SelectionLimits,
    max_price_usd_per_hour=st.sampled_from((1.0, 40.0, None)),
    max_spot_ratio=st.sampled_from((0.5, 0.9)),
    has_subnets=st.booleans(),
    machine_kinds=st.sampled_from((frozenset(AmiKind), frozenset(AmiKind), frozenset({AmiKind.GPU}))),
    quotas=st.dictionaries(
        st.sampled_from(("L-3819A6DF", "L-DB2E81BA", "L-7212CCBC", "L-C4BD4855", "L-6B0D517C", "L-1945791B")),
        st.builds(QuotaUsage, st.sampled_from((0, 8, 48, 200)), st.sampled_from((0, 4, 150))),
    ),
)
asked = st.tuples(
    definitions,
    st.one_of(st.none(), revisions, revisions, revisions),
    offering_lists,
    memories,
    st.just(NOW),
    limit_values,
)
# The machine the tests run on may be slow: no deadline.
steady = settings(deadline=None, max_examples=60)


@settings(steady, max_examples=200)
@given(asked)
def test_what_is_kept_is_exactly_what_a_slow_checker_finds_good(arguments):
    definition, revision, offerings, memory, _, limits = arguments

    selection = select(*arguments)

    good = {each.key for each in offerings if is_good(each, definition, revision, memory, limits)}
    assert {each.key for each in selection.kept} == good


@steady
@given(asked)
def test_kept_and_rejected_partition_what_was_offered(arguments):
    selection = select(*arguments)

    together = [*selection.kept, *(rejection.offering for rejection in selection.rejected)]
    assert len(together) == len(arguments[2])
    assert {each.key for each in together} == {each.key for each in arguments[2]}


@steady
@given(asked, st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_the_order_of_the_offerings(arguments, random):
    definition, revision, offerings, memory, now, limits = arguments
    shuffled = random.sample(offerings, len(offerings))

    assert select(definition, revision, shuffled, memory, now, limits) == select(*arguments)


@steady
@given(asked, offering_values)
def test_another_offering_never_makes_the_choice_dearer(arguments, another):
    definition, revision, offerings, memory, now, limits = arguments
    fewer = [offering for offering in offerings if offering.key != another.key]

    before = select(definition, revision, fewer, memory, now, limits)
    after = select(definition, revision, [*fewer, another], memory, now, limits)

    assert measure(after, after.chosen) <= measure(before, before.chosen)


@steady
@given(asked)
def test_what_is_kept_is_ordered_by_expected_cost_or_else_by_price(arguments):
    selection = select(*arguments)

    metrics = [measure(selection, offering) for offering in selection.kept]
    assert metrics == sorted(metrics)


@steady
@given(asked)
def test_the_choice_is_the_first_of_what_is_kept(arguments):
    chosen = select(*arguments).chosen

    assert chosen == next(iter(select(*arguments).kept), None)


G5 = load_catalogue()["g5.xlarge"]
one_type = st.lists(
    offering_values.map(lambda offering: replace(offering, instance_type=G5)),
    max_size=8,
    unique_by=lambda offering: offering.key,
)
on_g5 = definitions.map(
    lambda definition: replace(definition, accelerator=AcceleratorRequirement(instance_types=(G5.name,)))
)


@settings(steady, max_examples=300)
@given(on_g5, one_type, memories, limit_values)
def test_of_one_type_too_the_choice_is_the_first_of_what_is_kept(definition, offerings, memory, limits):
    selection = select(definition, None, offerings, memory, NOW, limits)
    chosen, kept = selection.chosen, selection.kept

    assert chosen == next(iter(kept), None)
    assert measure(selection, chosen) == min((measure(selection, each) for each in kept), default=math.inf)


@steady
@given(asked)
def test_the_order_is_total(arguments):
    table = OfferingTable(arguments[2])

    assert len({table.rank(offering) for offering in table}) == len(table)


@steady
@given(asked)
def test_with_checkpoints_and_equal_rates_the_cheapest_is_chosen(arguments):
    definition, revision, offerings, *rest = arguments
    steady_work = replace(definition, checkpoint_uri="s3://acme-checkpoints/resnet/", disk_gib=None)
    equal = [
        replace(offering, interruptions_per_hour=0.0, placement_score=None)
        for offering in offerings
        if offering.purchase is PurchaseOption.SPOT
    ]

    by_cost = select(replace(steady_work, estimated_duration=timedelta(hours=9)), revision, equal, *rest)
    by_price = select(replace(steady_work, estimated_duration=None), revision, equal, *rest)

    assert by_cost.kept == by_price.kept


@steady
@given(asked)
def test_counts_rows_and_verdict_agree_with_the_selection(arguments):
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


def measure(selection: Selection, offering: Offering | None) -> float:
    """Return what the order goes by: the expected cost, or else the price."""
    if offering is None:
        return math.inf
    price = offering.expected_usd_per_hour or math.inf
    cost = cost_of(selection.work)(offering)
    return price if cost is None else cost
