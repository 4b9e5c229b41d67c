"""What `apply` refuses between definitions and against the task definition."""

import pytest

from fakes.builders import make_container, make_definition, make_revision
from relaunch.core.accelerator import AcceleratorRequirement, GpuRequirement
from relaunch.core.definition import GithubTrigger, S3Trigger
from relaunch.core.definition_rules import container_problem, find_overlaps


@pytest.mark.parametrize(
    ("bucket", "prefix", "checkpoint_uri", "overlaps"),
    [
        pytest.param("b", "resnet/", "s3://b/resnet/", True, id="same"),
        pytest.param("b", "", "s3://b/resnet/", True, id="whole-bucket"),
        pytest.param("b", "res", "s3://b/resnet/", True, id="trigger-is-prefix-of-checkpoint"),
        pytest.param("b", "resnet/x/", "s3://b/resnet/", True, id="checkpoint-is-prefix-of-trigger"),
        pytest.param("b", "anything", "s3://b/", True, id="checkpoint-is-the-whole-bucket"),
        pytest.param("b", "resnet2/", "s3://b/resnet/", False, id="siblings"),
        pytest.param("b", "images/", "s3://b/resnet/", False, id="apart"),
        pytest.param("bb", "resnet/", "s3://b/resnet/", False, id="another-bucket"),
        pytest.param("b", "resnet/", None, False, id="no-checkpoint"),
    ],
)
def test_a_trigger_overlaps_a_checkpoint_when_one_prefix_begins_with_the_other(
    bucket, prefix, checkpoint_uri, overlaps
):
    definition = make_definition(triggers=(S3Trigger(bucket, prefix, ".manifest"),), checkpoint_uri=checkpoint_uri)

    assert bool(find_overlaps([definition])) == overlaps


def test_overlaps_are_found_across_definitions_and_say_which_trigger():
    push = GithubTrigger("acme/vision", "push")
    watcher = make_definition(name="watcher", triggers=(push, S3Trigger("b", "w/")), checkpoint_uri=None)
    writer = make_definition(name="writer", triggers=(), checkpoint_uri="s3://b/w/")

    (overlap,) = find_overlaps([watcher, writer])

    assert (overlap.watcher, overlap.trigger_index, overlap.writer) == ("watcher", 1, "writer")
    assert str(overlap) == (
        "the trigger on s3://b/w/ overlaps the checkpoints of `writer` under s3://b/w/: "
        "every checkpoint would start another job"
    )


def test_an_overlap_with_its_own_checkpoints_says_so():
    (overlap,) = find_overlaps([make_definition(triggers=(S3Trigger("b"),), checkpoint_uri="s3://b/c/")])

    assert "overlaps its own checkpoints" in str(overlap)


MAIN, SIDECAR = make_container(), make_container(name="sidecar")


@pytest.mark.parametrize(
    ("container", "containers", "problem"),
    [
        pytest.param(None, (MAIN,), None, id="the-only-one"),
        pytest.param("main", (MAIN, SIDECAR), None, id="named"),
        pytest.param(
            None,
            (MAIN, SIDECAR),
            "trainer:7 has several containers: say which one counts with `container`: main, sidecar",
            id="several",
        ),
        pytest.param("mian", (MAIN,), "trainer:7 has no container `mian`: it has main", id="unknown"),
    ],
)
def test_the_container_must_be_known_and_needed_with_several(container, containers, problem):
    definition = make_definition(container=container)

    assert container_problem(definition, make_revision(containers=containers)) == problem


@pytest.mark.parametrize("container", ["main", None], ids=["named", "the-only-one"])
def test_a_definition_that_asks_for_a_share_of_several_cards_is_refused(container):
    gpu = GpuRequirement(count=2, memory_mib=2_048, compute_percent=30)
    definition = make_definition(container=container, accelerator=AcceleratorRequirement(gpu=gpu))

    problem = container_problem(definition, make_revision(containers=(MAIN,)))

    assert problem == "trainer:7: a share is of one GPU: leave `count` out, or ask for 2 whole ones"


def test_another_container_must_ask_for_gpus_the_same_way():
    gpu = GpuRequirement(memory_mib=2_048, compute_percent=30)
    definition = make_definition(container="main", accelerator=AcceleratorRequirement(gpu=gpu))

    for containers in ((MAIN, SIDECAR), (SIDECAR, MAIN)):
        assert container_problem(definition, make_revision(containers=containers)) == (
            "trainer:7: container `sidecar` asks for whole GPUs, the job for a share: ECS takes one kind in a task"
        )


def test_a_container_that_is_not_there_is_told_which_there_are():
    assert container_problem(make_definition(container="train"), make_revision(containers=(MAIN, SIDECAR))) == (
        "trainer:7 has no container `train`: it has main, sidecar"
    )
