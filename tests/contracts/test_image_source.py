"""The behaviour of ImageSource: the fake and the adapter."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from fakes.aws import Faults, aws_in_process, make_client, refusal, refuse
from fakes.sources import EVERY_PLATFORM, FakeImages
from relaunch.adapters.aws.ecr_images import EcrImages
from relaunch.ports import ImageSource, PermanentError, TransientError

PLATFORMS = [dict(zip(("os", "architecture"), name.split("/"), strict=True)) for name in EVERY_PLATFORM]
INDEX = {"schemaVersion": 2, "manifests": [{"digest": "sha256:5e07", "platform": each} for each in PLATFORMS]}


@pytest.fixture
def ecr() -> Iterator[Any]:
    with aws_in_process():
        client = make_client("ecr")
        client.create_repository(repositoryName="team/trainer")
        yield client


@pytest.fixture(params=["in memory", "ECR"])
def images(request: pytest.FixtureRequest) -> ImageSource:
    """Images: team/trainer has the tag 5e07, for several platforms, and team/empty none."""
    if request.param == "in memory":
        return FakeImages(("team/trainer", "5e07"))
    ecr = request.getfixturevalue("ecr")
    ecr.create_repository(repositoryName="team/empty")
    media_type = "application/vnd.oci.image.index.v1+json"
    image = {"imageTag": "5e07", "imageManifest": json.dumps(INDEX), "imageManifestMediaType": media_type}
    ecr.put_image(repositoryName="team/trainer", **image)
    return EcrImages(ecr)


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


def test_a_registry_without_an_answer_is_transient(ecr: Any) -> None:
    Faults(ecr, "ecr", "BatchGetImage").before = 1
    with pytest.raises(TransientError, match="team/trainer:5e07"):
        EcrImages(ecr).find_image("team/trainer", "5e07")


def test_a_registry_that_may_not_be_read_is_permanent_and_not_taken_for_empty(ecr: Any) -> None:
    Faults(ecr, "ecr", "BatchGetImage").on_send = refuse(refusal("AccessDeniedException"))
    with pytest.raises(PermanentError, match="AccessDenied"):
        EcrImages(ecr).find_image("team/trainer", "5e07")
