"""The behaviour of ImageSource: the fake and the adapter."""

import json
from collections.abc import Iterator

import pytest

from fakes.aws import Faults, aws_in_process, make_client, refusal, refuse
from fakes.sources import EVERY_PLATFORM, FakeImages
from relaunch.adapters.aws.ecr_images import EcrImages
from relaunch.ports import ImageSource, PermanentError, TransientError

MEDIA_TYPE = "application/vnd.oci.image.index.v1+json"
PLATFORMS = [dict(zip(("os", "architecture"), name.split("/"), strict=True)) for name in EVERY_PLATFORM]
INDEX = {"schemaVersion": 2, "manifests": [{"digest": "sha256:5e07", "platform": each} for each in PLATFORMS]}


@pytest.fixture(params=["in memory", "ECR"])
def images(request: pytest.FixtureRequest) -> Iterator[ImageSource]:
    """Images: team/trainer has the tag 5e07, for several platforms, and team/empty none."""
    if request.param == "in memory":
        yield FakeImages(("team/trainer", "5e07"))
        return
    with aws_in_process():
        client = make_client("ecr")
        client.create_repository(repositoryName="team/trainer")
        client.create_repository(repositoryName="team/empty")
        client.put_image(
            repositoryName="team/trainer",
            imageManifest=json.dumps(INDEX),
            imageManifestMediaType=MEDIA_TYPE,
            imageTag="5e07",
        )
        yield EcrImages(client)


def test_a_pushed_image_has_a_digest_and_always_the_same(images: ImageSource) -> None:
    found = images.find_image("team/trainer", "5e07")

    assert found is not None
    assert found.digest.startswith("sha256:")
    assert len(found.digest) == len("sha256:") + 64
    assert images.find_image("team/trainer", "5e07") == found


def test_an_image_tells_its_platforms_by_tag_and_by_digest(images: ImageSource) -> None:
    found = images.find_image("team/trainer", "5e07")

    assert found is not None
    assert (found.platforms, found.unknown) == (("linux/amd64", "linux/arm64"), "")
    assert images.find_image("team/trainer", found.digest) == found


@pytest.mark.parametrize("reference", ["5e08", "sha256:" + "5e" * 32])
def test_what_is_not_there_is_not_found(images: ImageSource, reference: str) -> None:
    assert images.find_image("team/trainer", reference) is None
    assert images.find_image("team/empty", "5e07") is None


def test_a_repository_that_is_not_there_yet_has_no_image(images: ImageSource) -> None:
    assert images.find_image("team/future", "5e07") is None


def test_a_registry_without_an_answer_is_transient() -> None:
    with aws_in_process():
        client = make_client("ecr")
        client.create_repository(repositoryName="team/trainer")
        Faults(client, "ecr", "BatchGetImage").before = 1
        with pytest.raises(TransientError, match="team/trainer:5e07"):
            EcrImages(client).find_image("team/trainer", "5e07")


def test_a_registry_that_may_not_be_read_is_permanent_and_not_taken_for_empty() -> None:
    with aws_in_process():
        client = make_client("ecr")
        Faults(client, "ecr", "BatchGetImage").on_send = refuse(refusal("AccessDeniedException"))
        with pytest.raises(PermanentError, match="AccessDenied"):
            EcrImages(client).find_image("team/trainer", "5e07")
