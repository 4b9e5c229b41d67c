from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.builders import NOW, make_container, make_definition, make_instance_type, make_offering, make_revision
from relaunch.adapters.offerings.bundled import bundled_snapshot, load_catalogue
from relaunch.adapters.offerings.regional import OwnMachines, RegionalOfferings
from relaunch.core.definitions.accelerator import (
    AcceleratorRequirement,
    GpuRequirement,
    NeuronPurpose,
    NeuronRequirement,
    PurchaseOption,
    PurchasePolicy,
)
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import NOTHING, FleetOverride, FleetRequest, Resources
from relaunch.core.machines.request import MAX_OVERRIDES, build_request, capacity_of, needs, on_demand_prices
from relaunch.core.machines.settings import LaunchTemplate, MachineSettings
from relaunch.core.offerings.instance_types import AmiKind, InstanceType, ami_kind
from relaunch.core.offerings.offering import Offering
from relaunch.core.selection.expected_cost import WorkAhead, cost_of
from relaunch.core.selection.offering_filters import SelectionLimits
from relaunch.core.selection.selection import Selection, select
from relaunch.core.selection.speeds import Speed, SpeedBasis
from unit.core.selection.offered import A10G, FOUR_A10G, INFERENTIA2, T4, needing, needing_gpu, needing_neuron

ON_DEMAND, SPOT = PurchaseOption.ON_DEMAND, PurchaseOption.SPOT
GPU, NEURON = LaunchTemplate("lt-0a", "7"), LaunchTemplate("lt-0b", "12")
ZONES = ("us-east-1a", "us-east-1b")
SETTINGS = MachineSettings(
    stack="relaunch",
    subnets={zone: f"subnet-{zone[-1]}" for zone in ZONES},
    launch_templates={AmiKind.GPU: GPU, AmiKind.NEURON: NEURON},
    disk_gib=100,
)
LIMITS = MachineLimits(price_tolerance=0.25)
IMAGE = f"111122223333.dkr.ecr.us-east-1.amazonaws.com/trainer@sha256:{'0' * 64}"


def own(
    machine: InstanceType = A10G, purchase: PurchaseOption = SPOT, zone: str = "us-east-1a", usd: float | None = 0.4
) -> Offering:
    offering = make_offering(machine, purchase, zone=zone, capacity_provider=None, is_own_machine=True)
    return replace(offering, price_usd_per_hour=usd)


def selection_of(*kept: Offering, work: WorkAhead | None = None) -> Selection:
    return Selection(kept, (), (), work)


def requested(
    *kept: Offering,
    work: WorkAhead | None = None,
    image: str = IMAGE,
    limits: MachineLimits = LIMITS,
    subnets: MachineSettings = SETTINGS,
) -> FleetRequest | None:
    return build_request(selection_of(*kept, work=work), "m-1", "resnet-1f2e", "resnet", subnets, limits, image=image)


def chosen_from(*kept: Offering, work: WorkAhead | None = None) -> list[str]:
    request = requested(*kept, work=work)
    assert request is not None
    return [str(each.offering) for each in request.overrides]


def test_a_request_says_all_that_create_fleet_needs() -> None:
    assert requested(own()) == FleetRequest(
        client_token="relaunch-m-1",
        purchase=SPOT,
        launch_template_id="lt-0a",
        launch_template_version="7",
        overrides=(
            FleetOverride(
                offering=own().key,
                subnet_id="subnet-a",
                usd_per_hour=0.4,
                capacity=Resources(cpu_units=4096, memory_mib=15_472, gpus=1.0),
            ),
        ),
        tags={
            "relaunch:stack": "relaunch",
            "relaunch:machine": "m-1",
            "relaunch:job": "resnet-1f2e",
            "relaunch:definition": "resnet",
            "relaunch:image": IMAGE,
        },
    )


def test_tags_of_the_account_are_beside_those_that_find_the_machine_again_and_never_instead() -> None:
    settings = replace(SETTINGS, tags={"team": "vision", "relaunch:stack": "other"})
    request = requested(own(), subnets=settings)

    assert request is not None
    assert request.tags["team"] == "vision"
    assert request.tags["relaunch:stack"] == "relaunch"


@pytest.mark.parametrize(
    "image", [pytest.param("", id="unknown"), "trainer:latest", f"{'r' * 200}@sha256:{'0' * 64}"], ids=len
)
def test_an_image_that_is_not_known_by_digest_or_too_long_for_a_tag_is_not_told(image: str) -> None:
    request = requested(own(), image=image)

    assert request is not None
    assert "relaunch:image" not in request.tags


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param((), id="nothing was kept"),
        pytest.param((make_offering(),), id="a capacity provider"),
        pytest.param((replace(own(), is_own_machine=False),), id="a zone of a region that is planned for"),
        pytest.param((own(zone="us-east-1f"),), id="no subnet in the zone"),
        pytest.param((own(INFERENTIA2),), id="no launch template"),
        pytest.param((own(replace(A10G, accelerator_manufacturer="AMD")),), id="no AMI"),
    ],
)
def test_nothing_is_requested_for_what_cannot_be_started(kept: tuple[Offering, ...]) -> None:
    only_gpu = replace(SETTINGS, launch_templates={AmiKind.GPU: GPU})

    assert requested(*kept, subnets=only_gpu) is None


def test_what_costs_about_as_much_as_the_best_stands_in_for_it() -> None:
    assert chosen_from(
        own(T4, usd=0.40),
        own(T4, zone="us-east-1b", usd=0.44),
        own(A10G, usd=0.50),
        own(A10G, zone="us-east-1b", usd=0.51),
    ) == ["g4dn.xlarge spot us-east-1a", "g4dn.xlarge spot us-east-1b", "g5.xlarge spot us-east-1a"]


def test_costs_compare_if_the_work_is_known() -> None:
    calm = replace(own(T4, usd=0.5), interruptions_per_hour=0.0)
    wild = replace(own(A10G, usd=0.4), interruptions_per_hour=0.3)
    a_day = WorkAhead(timedelta(hours=24), has_checkpoint=False)

    assert chosen_from(calm, wild, work=a_day) == ["g4dn.xlarge spot us-east-1a"]
    assert chosen_from(calm, wild) == ["g4dn.xlarge spot us-east-1a", "g5.xlarge spot us-east-1a"]


def test_of_unequal_speeds_the_same_price_is_not_the_same_cost() -> None:
    speeds = {"A10G": Speed(1.0, 1.0, SpeedBasis.MEASURED), "T4": Speed(0.25, 1.0, SpeedBasis.PEAKS)}
    work = WorkAhead(timedelta(hours=24), has_checkpoint=True, speed_of=lambda each: speeds[each.accelerator_model])

    assert chosen_from(own(A10G), own(T4), work=work) == ["g5.xlarge spot us-east-1a"]
    assert len(chosen_from(own(A10G), own(T4, usd=0.1), work=work)) == 2, "a quarter of the price, four times as long"


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(own(purchase=ON_DEMAND), id="the other purchase option"),
        pytest.param(own(INFERENTIA2), id="another launch template"),
        pytest.param(own(T4, zone="us-east-1f"), id="a zone without a subnet"),
        pytest.param(make_offering(T4), id="a capacity provider"),
        pytest.param(own(), id="the same type in the same zone"),
    ],
)
def test_only_what_one_request_may_have_stands_in_for_the_best(other: Offering) -> None:
    assert chosen_from(own(), other) == ["g5.xlarge spot us-east-1a"]


def test_the_first_that_can_be_started_counts_and_what_costs_less_stands_in_too() -> None:
    provider, doubted = make_offering(), own(zone="us-east-1b", usd=0.3)

    assert chosen_from(provider, own(usd=0.4), doubted) == ["g5.xlarge spot us-east-1a", "g5.xlarge spot us-east-1b"]


def test_with_an_unknown_price_only_the_same_type_compares() -> None:
    unknown = {"price_usd_per_hour": None, "on_demand_usd_per_hour": None}
    a10g = [replace(own(zone=zone), **unknown) for zone in ZONES]
    t4 = replace(own(T4), **unknown)

    assert chosen_from(a10g[0], t4, a10g[1]) == ["g5.xlarge spot us-east-1a", "g5.xlarge spot us-east-1b"]
    request = requested(a10g[0])
    assert request is not None
    assert request.usd_per_hour == 0.0


def test_what_is_never_expected_to_finish_is_requested_by_its_type_alone() -> None:
    endless = WorkAhead(timedelta(days=90), has_checkpoint=False)
    wild = [replace(own(zone=zone), interruptions_per_hour=0.3) for zone in ZONES]

    assert chosen_from(wild[0], own(T4), wild[1], work=endless) == [
        "g5.xlarge spot us-east-1a",
        "g5.xlarge spot us-east-1b",
    ]


def test_an_unknown_spot_price_counts_as_its_upper_limit() -> None:
    request = requested(own(usd=None))

    assert request is not None
    assert request.usd_per_hour == 1.0


@pytest.mark.parametrize(
    ("kept", "priorities"),
    [
        pytest.param([own(T4, ON_DEMAND, usd=0.5), own(A10G, ON_DEMAND, usd=0.6)], [0, 0], id="EC2's order is ours"),
        pytest.param([own(T4, ON_DEMAND, usd=0.6), own(A10G, ON_DEMAND, usd=0.5)], [0, 1], id="ours is another"),
        pytest.param([own(T4, SPOT, usd=0.6), own(A10G, SPOT, usd=0.5)], [0, 0], id="spot: EC2 knows the capacity"),
    ],
)
def test_priorities_are_for_an_order_on_demand_that_is_not_that_of_prices(kept, priorities) -> None:
    request = requested(*kept)

    assert [each.priority for each in request.overrides] == priorities


def test_a_request_has_at_most_sixty_overrides_the_best_ones() -> None:
    kept = [own(make_instance_type(f"g{number}.xlarge"), usd=0.4 + number / 1000) for number in range(70)]

    names = chosen_from(*kept)

    assert (len(names), names[-1]) == (MAX_OVERRIDES, "g59.xlarge spot us-east-1a")


HALF = GpuRequirement(memory_mib=10_299, compute_percent=10)
"""Half of the memory of an A10G that can be shared."""


@pytest.mark.parametrize(
    ("definition", "revision", "machine", "expected"),
    [
        pytest.param(
            needing_gpu(count=1), make_revision(), A10G, Resources(3072, 12_288, 1.0), id="a whole GPU of one"
        ),
        pytest.param(
            needing_gpu(count=2),
            make_revision(vcpus=2.5, containers=(make_container(vcpus=0.3), make_container(name="b", vcpus=0.3))),
            FOUR_A10G,
            Resources(2560, 24_576, 3.0),
            id="those of another container too",
        ),
        pytest.param(needing(gpu=HALF), make_revision(), A10G, Resources(3072, 12_288, 0.5), id="a share, by memory"),
        pytest.param(
            needing(gpu=replace(HALF, compute_percent=75)),
            make_revision(),
            A10G,
            Resources(3072, 12_288, 0.75),
            id="a share, by compute",
        ),
        pytest.param(
            needing(gpu=HALF),
            make_revision(containers=(make_container(), make_container(name="b", gpu_count=0, gpu_share_mib=5_150))),
            A10G,
            Resources(6144, 24_576, 0.75),
            id="with that of another container",
        ),
        pytest.param(
            needing(gpu=replace(HALF, memory_mib=99_999)),
            make_revision(),
            A10G,
            Resources(3072, 12_288, 1.0),
            id="never more than one GPU",
        ),
        pytest.param(
            needing(gpu=HALF),
            make_revision(),
            INFERENTIA2,
            Resources(3072, 12_288, 1.0),
            id="a GPU of unknown memory is taken whole",
        ),
        pytest.param(
            needing(instance_types=("g6f.xlarge",)),
            make_revision(containers=(make_container(gpu_count=0, gpu_partition=0.25),)),
            A10G,
            Resources(3072, 12_288, 0.25),
            id="a part of a GPU",
        ),
        pytest.param(
            needing_neuron(devices=1),
            make_revision(containers=(make_container(gpu_count=0),)),
            INFERENTIA2,
            Resources(3072, 12_288, 0.0, 1),
            id="one Neuron device of several",
        ),
        pytest.param(
            needing_neuron(cores=4),
            make_revision(containers=(make_container(gpu_count=0),)),
            INFERENTIA2,
            Resources(3072, 12_288, 0.0, 6),
            id="several Neuron devices are all",
        ),
        pytest.param(
            needing(instance_types=("inf2.24xlarge",)),
            make_revision(containers=(make_container(gpu_count=0),), vcpus=0.0, memory_mib=0),
            INFERENTIA2,
            Resources(3072, 12_288),
            id="no accelerator",
        ),
    ],
)
def test_an_attempt_takes_what_its_containers_need(definition, revision, machine, expected) -> None:
    taken = needs(definition, revision, machine)

    assert replace(taken, gpus=round(taken.gpus, 3)) == expected


def test_a_machine_offers_what_the_agent_registers() -> None:
    assert capacity_of(INFERENTIA2) == Resources(96 * 1024, 377_231, 0.0, 6)
    assert capacity_of(FOUR_A10G).gpus == 4.0


SNAPSHOT = bundled_snapshot("us-east-1")
REGION = RegionalOfferings(SNAPSHOT, OwnMachines(frozenset(ZONES), 100)).offerings(NOW)
# Spot prices are not bundled.
OFFERED = [
    replace(each, price_usd_per_hour=round(each.on_demand_usd_per_hour * (0.3 + number % 50 / 100), 4))
    if each.purchase is SPOT and each.on_demand_usd_per_hour
    else each
    for number, each in enumerate(REGION)
]
accelerators = st.one_of(
    st.builds(
        AcceleratorRequirement,
        gpu=st.builds(
            GpuRequirement,
            count=st.sampled_from((1, 1, 2, 8)),
            memory_mib=st.sampled_from((None, 16 * 1024, 40 * 1024)),
        ),
    ),
    st.builds(
        AcceleratorRequirement,
        gpu=st.builds(
            GpuRequirement, memory_mib=st.sampled_from((512, 20_000)), compute_percent=st.sampled_from((1, 60, 100))
        ),
    ),
    st.builds(
        AcceleratorRequirement,
        neuron=st.builds(
            NeuronRequirement, devices=st.sampled_from((1, 2, 16)), purpose=st.sampled_from(NeuronPurpose)
        ),
    ),
    st.just(AcceleratorRequirement(instance_types=("g5.xlarge", "trn1.2xlarge", "inf2.xlarge", "g4dn.xlarge"))),
)
definitions = st.builds(
    make_definition,
    accelerator=accelerators,
    purchase=st.sampled_from(PurchasePolicy),
    max_price_usd_per_hour=st.sampled_from((None, 1.0, 4.0)),
    estimated_duration=st.sampled_from((None, timedelta(minutes=20), timedelta(hours=30))),
    checkpoint_uri=st.sampled_from((None, "s3://acme-checkpoints/resnet/")),
)
revisions = st.builds(
    make_revision,
    containers=st.just((make_container(gpu_count=0, memory_mib=4_000),)),
    vcpus=st.sampled_from((1.0, 3.5, 8.0)),
    memory_mib=st.sampled_from((2_000, 15_000)),
)


@settings(deadline=None, max_examples=120)
@given(definitions, revisions, st.sampled_from((0.0, 0.15, 1.0)), st.integers(1, 5))
def test_a_request_is_for_what_selection_kept_and_always_the_same(definition, revision, tolerance, gap) -> None:
    selection = select(definition, revision, OFFERED[::gap], {}, NOW, SelectionLimits(max_price_usd_per_hour=40.0))
    limits = MachineLimits(price_tolerance=tolerance)

    request = build_request(selection, "m-1", "resnet-1f2e", "resnet", SETTINGS, limits)

    assert request == build_request(selection, "m-1", "resnet-1f2e", "resnet", SETTINGS, limits)
    assert (request is None) is (not selection.kept)
    if request is None:
        return
    kept = {each.key: each for each in selection.kept}
    chosen = [kept[each.offering] for each in request.overrides]
    assert chosen[0] == selection.kept[0]
    assert 1 <= len(chosen) == len({(each.instance_type.name, each.zone) for each in chosen}) <= MAX_OVERRIDES
    assert len({each.purchase for each in chosen}) == len({ami_kind(each.instance_type) for each in chosen}) == 1
    assert all(each.subnet_id == SETTINGS.subnets[each.offering.zone] for each in request.overrides)
    cap = definition.max_price_usd_per_hour or 40.0
    assert all(0 < each.usd_per_hour <= cap for each in request.overrides)
    cost = cost_of(selection.work)
    costs = [cost(each) or each.expected_usd_per_hour for each in chosen]
    assert costs == sorted(costs)
    assert costs[-1] <= costs[0] * (1 + tolerance) + 1e-9 or costs[0] == float("inf")
    for each in request.overrides:
        taken = needs(definition, revision, load_catalogue()[each.offering.instance_type])
        assert taken.cpu_units > 0
        assert each.capacity.holds(taken)
        assert not NOTHING.holds(taken)


def test_the_on_demand_prices_of_a_request_are_those_of_its_types_that_are_known() -> None:
    request = requested(own())
    assert request is not None
    kept = [replace(own(), on_demand_usd_per_hour=1.006), replace(own(), on_demand_usd_per_hour=None)]
    other = replace(own(), instance_type=replace(own().instance_type, name="g6.xlarge"), on_demand_usd_per_hour=0.8)

    assert on_demand_prices(request, [*kept, other]) == {own().instance_type.name: 1.006}
    assert on_demand_prices(request, kept[1:]) == {}
