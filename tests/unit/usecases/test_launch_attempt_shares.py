"""The story of a share of a GPU: MPS where that is cheapest, a part of a GPU where isolation is asked for."""

from fakes.builders import make_definition, make_failed_placement, make_instance_type, make_offering
from fakes.story import Story
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, Isolation
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import GpuPartition, GpuShare, LaunchUncertain
from relaunch.core.selection.gpu_share import GpuDevice

T4 = make_instance_type("g4dn.xlarge", accelerator_model="T4", gpu_memory_mib=16_384)
QUARTER = make_instance_type(
    "g6f.2xlarge", accelerator_model="L4", gpu_count=0, gpu_partition_size=0.25, gpu_memory_mib=5_722
)


def sharing(isolation=Isolation.BEST_EFFORT, *, t4: float = 0.16, quarter: float = 0.20) -> Story:
    gpu = GpuRequirement(memory_mib=2_048, compute_percent=25, isolation=isolation)
    story = Story(make_definition(accelerator=AcceleratorRequirement(gpu=gpu)))
    story.offerings.available = (
        make_offering(T4, price_usd_per_hour=t4),
        make_offering(QUARTER, price_usd_per_hour=quarter),
    )
    return story


def asked(story: Story) -> list[tuple[str, object]]:
    return [(request.capacity_provider, request.accelerators) for request in story.tasks.requests]


def test_the_cheaper_of_a_shared_card_and_a_part_of_one_is_taken():
    shared, part = sharing(), sharing(quarter=0.10)
    shared.launch()
    part.launch()

    assert asked(shared) == [("g4dn-xlarge-spot", GpuShare(2_048, 25))]
    assert asked(part) == [("g6f-2xlarge-spot", GpuPartition(0.25))]


def test_an_isolated_share_takes_the_part_whatever_it_costs():
    story = sharing(Isolation.REQUIRED, quarter=0.45)

    job_id = story.launch()

    assert asked(story) == [("g6f-2xlarge-spot", GpuPartition(0.25))]
    assert story.job(job_id).state is JobState.RUNNING


def test_no_room_on_any_card_leads_to_the_part_of_a_gpu_and_the_timeline_tells_why():
    story = sharing()
    story.tasks.outcomes.append(make_failed_placement("RESOURCE:GPU"))
    story.tasks.gpus = [GpuDevice("GPU-1", "i-1", "NVIDIA_MPS", 15_360, 1_024, 7)]
    job_id = story.submit()

    story.settle()

    assert asked(story) == [("g4dn-xlarge-spot", GpuShare(2_048, 25)), ("g6f-2xlarge-spot", GpuPartition(0.25))]
    assert "1,024 of 15,360 MiB left, shared by 7 containers" in story.timeline(job_id)


def test_the_same_share_is_sent_again_when_an_answer_got_lost():
    story = sharing(quarter=0.10)
    story.tasks.outcomes.append(LaunchUncertain("no answer to RunTask"))
    job_id = story.submit()

    story.deliver()
    # Prices have changed since: the placement is sent unchanged.
    story.offerings.available = (make_offering(T4, price_usd_per_hour=0.01),)
    story.settle()

    first, second = story.tasks.requests
    assert first == second
    assert first.accelerators == GpuPartition(0.25)
    assert len(story.tasks.tasks) == 1
    assert story.job(job_id).current_attempt.placement.gpu_partition_size == 0.25
