import re
from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import make_container, make_definition, make_instance_type, make_offering, make_revision
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.offering import Offering
from relaunch.core.revisions.revision import Revision
from relaunch.core.selection.notices import find_notices
from unit.core.selection.offered import (
    A10G,
    ARM,
    EIGHTH,
    NO_GPU_REVISION,
    needing,
    needing_gpu,
    needing_neuron,
    revision_of,
    selected,
)

G5_ALONE = needing(instance_types=("g5.xlarge",))
INF2_ALONE = needing(instance_types=("inf2.xlarge",))
INFERENTIA = make_instance_type(
    "inf2.xlarge",
    accelerator_manufacturer="AWS",
    accelerator_model="Inferentia2",
    gpu_count=0,
    logical_gpu_count=0,
    neuron_devices=1,
    neuron_cores_per_device=2,
)


def notices_of(definition: JobDefinition, revision: Revision | None, *offerings: Offering) -> tuple[str, ...]:
    selection = selected(definition, *(offerings or (make_offering(),)), revision=revision)
    return find_notices(definition, revision, selection)


def test_gpus_that_nobody_asked_for_and_are_paid_all_the_same_are_told_of():
    machine = make_instance_type("p4d.24xlarge", gpu_count=8, logical_gpu_count=8)

    (notice,) = notices_of(needing_gpu(), None, make_offering(machine))

    assert notice.startswith("7 of the 8 GPUs of p4d.24xlarge are left to other jobs, or idle")
    assert notices_of(needing_gpu(count=8), None, make_offering(machine)) == ()


@pytest.mark.parametrize(
    ("machine", "asked", "words"),
    [
        pytest.param("trn1.32xlarge", {"devices": 1}, "", id="one of sixteen"),
        pytest.param("trn1.32xlarge", {"devices": 16}, "", id="all"),
        pytest.param("trn1.32xlarge", {"devices": 3}, "gets all 16 of trn1.32xlarge, .* 32 cores, and not 6$", id="3"),
        pytest.param("trn1.32xlarge", {"cores": 24}, "gets all 16 of trn1.32xlarge, .* 32 cores, and not 24$", id="12"),
        pytest.param("trn1.32xlarge", {"devices": 4}, "gets all 16 of trn1.32xlarge, and pays for them$", id="4"),
        pytest.param("trn2.48xlarge", {"devices": 3}, "gets all 16 of trn2.48xlarge, and pays for them$", id="trn2"),
        pytest.param("trn2.48xlarge", {"cores": 64}, "", id="all cores that programs see"),
        pytest.param(
            "trn2.3xlarge", {"cores": 8}, "see 4 NeuronCores of trn2.3xlarge, .*for 8: set NEURON_LOGICAL_NC", id="LNC"
        ),
    ],
)
def test_neuron_devices_that_a_job_has_not_asked_for_and_cores_that_it_does_not_see_are_named(machine, asked, words):
    notices = notices_of(needing_neuron(**asked), None, make_offering(load_catalogue()[machine]))

    assert len(notices) == (1 if words else 0)
    assert not words or re.search(words, notices[0])


FOUR = make_instance_type("g4dn.12xlarge", gpu_count=4, logical_gpu_count=4)


@pytest.mark.parametrize(
    ("definition", "containers", "gpus"),
    [
        pytest.param(needing_gpu(count=4), (make_container(),), 4, id="the job asks for them"),
        pytest.param(needing(instance_types=("g4dn.12xlarge",)), (make_container(gpu_count=4),), 4, id="the revision"),
        pytest.param(needing_gpu(count=4), (make_container(has_shared_memory=True),), 0, id="it has more"),
        pytest.param(needing_gpu(count=4), (make_container(name="a"), make_container(name="b")), 0, id="unclear"),
    ],
)
def test_several_gpus_with_the_usual_shared_memory_are_noted(definition, containers, gpus):
    notices = notices_of(replace(definition, container=None), make_revision(containers=containers), make_offering(FOUR))

    found = [each for each in notices if "`linuxParameters.sharedMemorySize` of the container main" in each]
    assert len(found) == bool(gpus)
    assert all(each.startswith(f"processes on {gpus} GPUs share /dev/shm") for each in found)


def test_an_ordinary_job_needs_no_notice():
    assert notices_of(make_definition(), make_revision()) == ()


@pytest.mark.parametrize(
    ("definition", "offering", "words"),
    [
        pytest.param(G5_ALONE, make_offering("g5.xlarge"), "g5.xlarge has a GPU", id="a GPU"),
        pytest.param(INF2_ALONE, make_offering(INFERENTIA), "inf2.xlarge has a Neuron device", id="Neuron"),
    ],
)
def test_a_machine_whose_accelerator_nobody_asks_for_is_warned_of(definition, offering, words):
    (notice,) = notices_of(definition, NO_GPU_REVISION, offering)

    assert notice == (
        f"{words} that no container asks for, so that none can use it: "
        "add `gpu` or `neuron` to `accelerator`, or choose a machine without"
    )


@pytest.mark.parametrize("named", [("P5.48xlarge", "g5.xlarge", "trn1.2xlarge"), ("p5.48xlarge", "trn1.2xlarge")])
def test_instance_types_that_nothing_offers_are_named_also_where_another_one_is_chosen(named):
    definition = needing(instance_types=named)

    notice = "offered nowhere here, so that no job gets it: p5.48xlarge and trn1.2xlarge (relaunch plan --explain TYPE)"
    assert notices_of(definition, None, make_offering("g5.xlarge")) == (notice,)
    assert notices_of(definition, None, *map(make_offering, ("g5.xlarge", "p5.48xlarge", "trn1.2xlarge"))) == ()


def test_an_unknown_price_is_told():
    definition = replace(make_definition(), purchase=PurchasePolicy.ON_DEMAND)
    unpriced = make_offering(purchase=PurchaseOption.ON_DEMAND, price_usd_per_hour=None, on_demand_usd_per_hour=None)

    (notice,) = notices_of(definition, make_revision(), unpriced)

    assert notice == (
        "the price of g5.xlarge on-demand is not known: `max_price_per_hour` rules out what has no known price"
    )


def test_where_only_bottlerocket_has_an_image_the_plan_of_a_region_says_so():
    for_arm = make_revision(architecture="ARM64")
    definition = replace(needing_gpu(count=1), purchase=PurchasePolicy.ON_DEMAND)
    brought = make_offering(ARM, PurchaseOption.ON_DEMAND)

    (notice,) = notices_of(definition, for_arm, replace(brought, capacity_provider=None, zone="us-east-1a"))

    assert notice.startswith(
        "g5g.xlarge: ECS-optimized GPU images are for x86_64 only; for arm64 Bottlerocket has one:"
    )
    assert notices_of(definition, for_arm, brought) == ()


@pytest.mark.parametrize(
    ("definition", "revision", "machine"),
    [
        pytest.param(G5_ALONE, make_revision(), A10G, id="by the revision"),
        pytest.param(make_definition(), NO_GPU_REVISION, A10G, id="by the definition"),
        pytest.param(needing_neuron(devices=1), NO_GPU_REVISION, INFERENTIA, id="Neuron by the definition"),
        pytest.param(needing_neuron(cores=2), NO_GPU_REVISION, INFERENTIA, id="Neuron cores by the definition"),
        pytest.param(
            INF2_ALONE,
            revision_of(make_container(gpu_count=0, neuron_devices=("/dev/neuron0",))),
            INFERENTIA,
            id="Neuron by the revision",
        ),
        pytest.param(
            G5_ALONE,
            revision_of(make_container(gpu_count=0, gpu_share_mib=2_048)),
            A10G,
            id="a share by the revision",
        ),
        pytest.param(G5_ALONE, None, A10G, id="no revision known"),
    ],
)
def test_an_accelerator_that_somebody_asks_for_is_not(definition, revision, machine):
    assert notices_of(definition, revision, make_offering(machine)) == ()


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        pytest.param({"checkpoint_uri": None}, 1, id="work that is likely lost"),
        pytest.param({}, 0, id="with checkpoints"),
        pytest.param({"checkpoint_uri": None, "estimated_duration": timedelta(hours=6)}, 0, id="short work"),
    ],
)
def test_work_that_spot_will_likely_lose_is_warned_of(fields, count):
    definition = replace(make_definition(estimated_duration=timedelta(hours=12)), **fields)

    notices = notices_of(definition, make_revision())

    assert len(notices) == count
    assert set(notices) <= {
        "g5.xlarge spot is expected to be interrupted 1.2 times in the time the work takes, "
        "which starts over each time: give a `checkpoint`"
    }


@pytest.mark.parametrize(("interruptions_per_hour", "count"), [(0.7, 1), (0.69, 0)])
def test_work_is_likely_lost_once_an_interruption_is_as_likely_as_none(interruptions_per_hour, count):
    definition = make_definition(estimated_duration=timedelta(hours=1), checkpoint_uri=None)
    offering = make_offering(interruptions_per_hour=interruptions_per_hour)

    assert len(notices_of(definition, make_revision(), offering)) == count


@pytest.mark.parametrize(
    ("fields", "begins"),
    [
        ({"total_steps": 9, "deadline": timedelta(hours=9)}, "`deadline` counts from the first checkpoint on, "),
        ({"total_steps": 9, "patience": timedelta(hours=9)}, "`patience` counts from the first checkpoint on, "),
        ({"total_steps": 9, "deadline": timedelta(hours=9), "estimated_duration": timedelta(hours=1)}, None),
        ({"total_steps": 9}, None),
    ],
)
def test_a_limit_that_means_nothing_before_the_first_checkpoint_is_told(fields, begins):
    notices = notices_of(make_definition(**fields), make_revision())

    assert [each.startswith(begins or "-") for each in notices] == ([True] if begins else [])


UNBOUNDED = (
    "every interruption of a spot instance starts this job from its beginning, and without `estimated_duration` "
    "it is not known how often that is to be expected: give a `checkpoint`, an `estimated_duration`, "
    "or `purchase: on-demand`"
)
ON_DEMAND = make_offering(purchase=PurchaseOption.ON_DEMAND, price_usd_per_hour=0.2)


@pytest.mark.parametrize(
    ("fields", "offerings", "notices"),
    [
        pytest.param({}, [make_offering()], (UNBOUNDED,), id="spot"),
        pytest.param({"purchase": PurchasePolicy.SPOT}, [make_offering()], (UNBOUNDED,), id="spot alone"),
        pytest.param({}, [ON_DEMAND, make_offering()], (UNBOUNDED,), id="spot as the second choice"),
        pytest.param({}, [ON_DEMAND], (), id="no spot to be had"),
        pytest.param({"purchase": PurchasePolicy.ON_DEMAND}, [ON_DEMAND, make_offering()], (), id="on-demand"),
        pytest.param({"checkpoint_uri": "s3://acme-checkpoints/resnet/"}, [make_offering()], (), id="checkpoints"),
        pytest.param({"estimated_duration": timedelta(hours=1)}, [make_offering()], (), id="known to be short"),
    ],
)
def test_work_of_unknown_duration_that_each_interruption_loses_is_warned_of(fields, offerings, notices):
    definition = replace(make_definition(checkpoint_uri=None, estimated_duration=None), **fields)

    assert notices_of(definition, make_revision(), *offerings) == notices


def test_what_the_machine_and_what_the_definition_brings_are_both_noticed():
    share = needing_gpu(memory_mib=2_048, compute_percent=50)
    definition = replace(share, checkpoint_uri=None, estimated_duration=timedelta(hours=12))
    by_definition = find_notices(definition, None, None)

    notices = notices_of(definition, NO_GPU_REVISION)

    assert by_definition
    assert notices[:-1] == by_definition
    assert "give a `checkpoint`" in notices[-1]


def test_on_demand_loses_no_work():
    hours = timedelta(hours=90)
    definition = make_definition(estimated_duration=hours, checkpoint_uri=None, max_runtime=hours)

    assert notices_of(definition, make_revision(), make_offering(purchase=PurchaseOption.ON_DEMAND)) == ()


def test_work_that_may_outlast_its_run_time_wherever_it_runs_is_noted():
    definition = make_definition(estimated_duration=timedelta(hours=50), max_runtime=timedelta(hours=48))

    (notice,) = notices_of(definition, make_revision(), make_offering(purchase=PurchaseOption.ON_DEMAND))

    assert notice == (
        "`max_runtime` may end this job before it is done, after 48h: on g5.xlarge on-demand the work takes some 50h, "
        "and nothing that satisfies it ends in time; raise it"
    )
    longer = replace(definition, max_runtime=timedelta(hours=50))
    assert notices_of(longer, make_revision(), make_offering(purchase=PurchaseOption.ON_DEMAND)) == ()


def test_a_disk_that_nobody_can_check_is_said_to_be_so():
    machine = make_instance_type(nvme_gb=250)

    (notice,) = notices_of(make_definition(disk_gib=200), make_revision(), make_offering(machine))

    assert notice == (
        "`disk` only counts in the cost, for CapacityProviders does not say the disk of g5-xlarge-spot: "
        "make sure that its launch template gives its machines 200 GiB (g5.xlarge also has 250 GB of local disks)"
    )
    (without_local_disks,) = notices_of(make_definition(disk_gib=200), make_revision(), make_offering())
    assert without_local_disks.endswith("its machines 200 GiB")
    assert not notices_of(make_definition(disk_gib=200), make_revision(), make_offering(capacity_provider=None))
    assert not notices_of(make_definition(disk_gib=200), make_revision(), make_offering(disk_gib=200))


def test_where_nothing_is_kept_only_the_definition_is_noticed():
    share = needing_gpu(memory_mib=999_999, compute_percent=50)

    notices = notices_of(replace(share, disk_gib=200), make_revision())

    assert notices == find_notices(share, None, None)
    assert len(notices) == 3


SMALL = make_instance_type("g4dn.xlarge", gpu_memory_mib=1_000)


def own(instance_type=A10G, zone="us-east-1a", **fields):
    fields = {"capacity_provider": None, "is_own_machine": True, "zone": zone, "disk_gib": 100, **fields}
    return make_offering(instance_type, **fields)


@pytest.mark.parametrize(
    ("definition", "offerings", "words"),
    [
        pytest.param(
            make_definition(disk_gib=200),
            (own(), own(zone="us-east-1b"), own(SMALL)),
            "g5.xlarge spot us-east-1a: its disk has 100 GiB; 200 are asked for",
            id="disk",
        ),
        pytest.param(
            make_definition(),
            (own(EIGHTH),),
            "g6f.xlarge spot us-east-1a: ",
            id="type",
        ),
    ],
)
def test_a_definition_that_only_capacity_providers_can_run_is_warned_of(definition, offerings, words):
    provider = make_offering("g6.xlarge", disk_gib=500)

    (notice,) = notices_of(definition, make_revision(), provider, *offerings)

    begin = "only capacity providers can run it, never a machine of the stack's own: the nearest was "
    assert notice.startswith(begin + words)


@pytest.mark.parametrize(
    "offerings",
    [
        pytest.param((own(), own(SMALL)), id="one is kept"),
        pytest.param((own(price_usd_per_hour=50.0, on_demand_usd_per_hour=100.0),), id="it is too expensive now"),
        pytest.param((), id="machines are off"),
    ],
)
def test_one_that_may_get_a_machine_of_the_stacks_own_is_not(offerings):
    provider = make_offering("g6.xlarge", price_usd_per_hour=0.3)

    assert notices_of(make_definition(), make_revision(), provider, *offerings) == ()


@pytest.mark.parametrize(
    ("revision", "words"),
    [
        pytest.param(make_revision(), "torchrun kills its workers 85 s after SIGTERM", id="its stop timeout is known"),
        pytest.param(None, "torchrun kills its workers 30 s after SIGTERM", id="it is not"),
    ],
)
def test_the_workers_of_torchrun_have_the_time_that_their_version_of_torch_gives_them(revision, words):
    (notice,) = notices_of(make_definition(command=("torchrun", "train.py")), revision)

    assert notice.startswith(words)
    assert "2.12" in notice


def test_a_stop_timeout_that_torchrun_does_not_exceed_needs_no_notice():
    revision = make_revision(containers=(make_container(stop_timeout_seconds=30),))

    assert notices_of(make_definition(command=("torchrun", "train.py")), revision) == ()


def test_the_fee_and_the_lifetime_of_managed_instances_are_named():
    (notice,) = notices_of(needing_gpu(), None, make_offering(A10G, capacity_provider="mi", is_managed=True))

    assert "mi has ECS Managed Instances, for which AWS bills 7.8% of the on-demand price" in notice
    long = replace(needing_gpu(), max_runtime=timedelta(days=14))
    (_, lifetime) = notices_of(long, None, make_offering(A10G, capacity_provider="mi", is_managed=True))
    assert "replaces an instance of mi after 14 days" in lifetime
