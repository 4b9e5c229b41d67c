import pytest

from fakes.builders import make_definition
from relaunch.core.definitions.definition import GithubTrigger, S3Trigger, find_overlaps


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
