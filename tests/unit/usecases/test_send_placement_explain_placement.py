"""What a share of a GPU that found no room is told of the cards, in the job's timeline."""

import pytest

from fakes.builders import make_definition, make_failed_placement
from fakes.story import Story
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import LaunchRefused
from relaunch.core.selection.gpu_share import GpuDevice
from relaunch.ports import PermanentError, TransientError

FULL = make_failed_placement("RESOURCE:GPU")
SHARE = AcceleratorRequirement(gpu=GpuRequirement(memory_mib=2_048, compute_percent=25))
CROWDED = GpuDevice("GPU-1", "i-1", "NVIDIA_MPS", 15_360, 1_024, 3)


def placing(*outcomes, accelerator=SHARE) -> tuple[Story, str]:
    story = Story(make_definition(accelerator=accelerator))
    story.tasks.outcomes.extend(outcomes)
    story.tasks.gpus = [CROWDED]
    return story, story.submit()


def failures(story: Story, job_id: str) -> list[str]:
    return [line for line in story.timeline(job_id).splitlines() if line.startswith("placement failed")]


def test_the_timeline_says_which_card_had_how_much_left():
    story, job_id = placing(FULL)

    story.settle()

    assert failures(story, job_id) == [
        "placement failed: the cluster placed nothing: RESOURCE:GPU; 2,048 MiB of one GPU are asked for; "
        "GPU-1 of i-1: 1,024 of 15,360 MiB left, shared by 3 containers"
    ]
    assert story.attempt(job_id).closed_placements[0].outcome == "the cluster placed nothing: RESOURCE:GPU"


def test_room_that_came_in_between_is_said():
    story, job_id = placing(FULL)
    story.tasks.gpus = [GpuDevice("GPU-1", "i-1", "IDLE", 15_360, 15_360, 0)]

    story.settle()

    assert failures(story, job_id) == [
        "placement failed: the cluster placed nothing: RESOURCE:GPU; a GPU has room by now"
    ]


@pytest.mark.parametrize("error", [TransientError("throttled"), PermanentError("not authorized")], ids=str)
def test_a_look_that_fails_changes_nothing_of_what_came_of_the_launch(error):
    story, job_id = placing(FULL)
    story.tasks.gpus = error

    story.settle()

    assert failures(story, job_id) == ["placement failed: the cluster placed nothing: RESOURCE:GPU"]
    assert story.job(job_id).state is JobState.LAUNCHING
    assert ("gpus-unknown", {"job_id": job_id, "reason": str(error)}) in story.log.lines


@pytest.mark.parametrize(
    ("outcome", "accelerator"),
    [
        pytest.param(make_failed_placement("RESOURCE:MEMORY"), SHARE, id="another resource"),
        pytest.param(FULL, AcceleratorRequirement(gpu=GpuRequirement()), id="a whole GPU"),
        pytest.param(LaunchRefused("ClientException: RESOURCE:GPU"), SHARE, id="a refusal"),
        pytest.param(None, SHARE, id="a task that was placed"),
    ],
)
def test_cards_are_looked_at_only_when_a_share_found_no_room(outcome, accelerator):
    story, _ = placing(*([outcome] if outcome else []), accelerator=accelerator)
    story.tasks.gpus = AssertionError("nobody needs to look")

    story.settle()

    assert len(story.tasks.requests) >= 1
