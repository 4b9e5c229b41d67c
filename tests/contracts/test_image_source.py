"""What every ImageSource does: the fake as well as the adapter."""

from collections.abc import Iterator

import pytest

from fakes.aws import Faults, aws_in_process, make_client, refusal, refuse
from fakes.sources import FakeImages
from relaunch.adapters.aws.ecr_images import EcrImages
from relaunch.ports import ImageSource, PermanentError, TransientError

MEDIA_TYPE = "application/vnd.docker.distribution.manifest.v2+json"
MANIFEST = '{"schemaVersion": 2, "config": {"digest": "sha256:5e07", "size": 7}, "layers": []}'


@pytest.fixture(params=["in memory", "ECR"])
def images(request: pytest.FixtureRequest) -> Iterator[ImageSource]:
    """Images: team/trainer has the tag 5e07 and team/empty none."""
    if request.param == "in memory":
        yield FakeImages(("team/trainer", "5e07"))
        return
    with aws_in_process():
        client = make_client("ecr")
        client.create_repository(repositoryName="team/trainer")
        client.create_repository(repositoryName="team/empty")
        client.put_image(
            repositoryName="team/trainer", imageManifest=MANIFEST, imageManifestMediaType=MEDIA_TYPE, imageTag="5e07"
        )
        yield EcrImages(client)


def test_a_pushed_image_is_there(images: ImageSource) -> None:
    assert images.has_image("team/trainer", "5e07")


def test_another_tag_or_repository_is_not(images: ImageSource) -> None:
    assert not images.has_image("team/trainer", "5e08")
    assert not images.has_image("team/empty", "5e07")


def test_a_repository_that_is_not_there_yet_has_no_image(images: ImageSource) -> None:
    assert not images.has_image("team/future", "5e07")


def test_a_pushed_image_has_a_digest_and_always_the_same(images: ImageSource) -> None:
    digest = images.digest("team/trainer", "5e07")

    assert digest is not None
    assert digest.startswith("sha256:")
    assert len(digest) == len("sha256:") + 64
    assert images.digest("team/trainer", "5e07") == digest


def test_what_is_not_there_has_no_digest(images: ImageSource) -> None:
    assert images.digest("team/trainer", "5e08") is None
    assert images.digest("team/empty", "5e07") is None
    assert images.digest("team/future", "5e07") is None


def test_the_registry_of_another_account_is_another_one(images: ImageSource) -> None:
    assert images.digest("team/trainer", "5e07", "999900001111") is None


def test_a_registry_without_an_answer_is_transient() -> None:
    with aws_in_process():
        client = make_client("ecr")
        client.create_repository(repositoryName="team/trainer")
        Faults(client, "ecr", "DescribeImages").before = 1
        with pytest.raises(TransientError, match="team/trainer:5e07"):
            EcrImages(client).has_image("team/trainer", "5e07")


def test_a_registry_that_may_not_be_read_is_permanent_and_not_taken_for_empty() -> None:
    with aws_in_process():
        client = make_client("ecr")
        Faults(client, "ecr", "DescribeImages").on_send = refuse(refusal("AccessDeniedException"))
        with pytest.raises(PermanentError, match="AccessDenied"):
            EcrImages(client).has_image("team/trainer", "5e07")
