import pytest

from fakes.builders import make_container, make_revision
from relaunch.core.revisions.images import (
    EcrImage,
    FoundImage,
    describe_pin,
    held_images,
    parse_ecr_image,
    plan_pins,
    with_platforms,
)

HOME = "111122223333.dkr.ecr.us-east-1.amazonaws.com"
DIGEST = "sha256:" + "5e" * 32
BOTH = ("linux/amd64", "linux/arm64")


def revision_of(*images: str):
    names = ["main", "side", "third"]
    containers = [make_container(name=name, image=image) for name, image in zip(names, images, strict=False)]
    return make_revision(containers=tuple(containers))


@pytest.mark.parametrize(
    ("name", "repository", "tag", "digest"),
    [
        (f"{HOME}/trainer", "trainer", "latest", ""),
        (f"{HOME}/team/vision/trainer:5e07", "team/vision/trainer", "5e07", ""),
        (f"{HOME}/trainer@{DIGEST}", "trainer", "latest", DIGEST),
        (f"{HOME}/trainer:5e07@{DIGEST}", "trainer", "5e07", DIGEST),
    ],
)
def test_an_image_in_ecr_is_read_with_its_parts(name, repository, tag, digest):
    image = parse_ecr_image(name)

    assert image == EcrImage(HOME, "111122223333", "us-east-1", repository, tag, digest)


@pytest.mark.parametrize(
    ("registry", "region"),
    [
        ("111122223333.dkr.ecr-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("111122223333.dkr.ecr.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("111122223333.dkr-ecr.eu-central-1.on.aws", "eu-central-1"),
    ],
)
def test_every_kind_of_registry_host_is_known(registry, region):
    image = parse_ecr_image(f"{registry}/trainer:1")

    assert image is not None
    assert (image.registry, image.region) == (registry, region)
    assert image.at(DIGEST) == f"{registry}/trainer@{DIGEST}"


@pytest.mark.parametrize("name", ["python:3.11", "public.ecr.aws/docker/library/python:3.11", "ghcr.io/acme/x", HOME])
def test_what_is_in_no_private_registry_of_ecr_is_none(name):
    assert parse_ecr_image(name) is None


def test_images_in_ecr_are_to_be_looked_up_and_the_others_say_why_not():
    pins, notes = plan_pins(revision_of(f"{HOME}/trainer:latest", "busybox:1", f"{HOME}/proxy@{DIGEST}"))

    assert [(pin.container, str(pin.image), pin.image.digest, pin.is_own, pin.is_awaited) for pin in pins] == [
        ("main", "trainer:latest", "", True, False),
        ("third", "proxy:latest", DIGEST, True, False),
    ]
    assert notes == ("side keeps busybox:1, which is not in ECR",)


def test_an_image_of_another_account_is_not_ours_and_one_of_another_region_is_left_alone():
    other = HOME.replace("1111", "9999")
    far = HOME.replace("us-east-1", "eu-west-1")
    pins, notes = plan_pins(revision_of(f"{other}/trainer:1", f"{far}/trainer:1"))

    assert [(pin.container, pin.is_own, pin.image.account) for pin in pins] == [("main", False, "999922223333")]
    assert notes == (f"side keeps {far}/trainer:1, which is in another region",)


def test_what_the_trigger_is_about_replaces_every_image_of_its_repository_also_one_by_digest():
    pins, notes = plan_pins(revision_of(f"{HOME}/trainer:latest", f"{HOME}/trainer@{DIGEST}"), ("trainer", "5e07"))

    assert [(pin.container, str(pin.image), pin.image.digest, pin.is_own, pin.is_awaited) for pin in pins] == [
        ("main", "trainer:5e07", "", True, True),
        ("side", "trainer:5e07", "", True, True),
    ]
    assert notes == ()


def test_what_the_trigger_is_about_replaces_nothing_of_another_account():
    other = HOME.replace("1111", "9999")
    pins, notes = plan_pins(revision_of(f"{other}/trainer:latest"), ("trainer", "5e07"))

    assert [(str(pin.image), pin.is_awaited) for pin in pins] == [("trainer:latest", False)]
    assert notes == ("no container runs an image of trainer: trainer:5e07 is only waited for",)


@pytest.mark.parametrize(
    ("name", "found", "said"),
    [
        (
            "trainer",
            FoundImage(DIGEST, BOTH),
            "main runs trainer:latest (sha256:5e5e5e5e5e5e) for linux/amd64 and linux/arm64",
        ),
        (
            "trainer:1",
            FoundImage(DIGEST, (), "it names none"),
            "main runs trainer:1 (sha256:5e5e5e5e5e5e), whose platform is not known: it names none",
        ),
        ("trainer:1", FoundImage("", (), "which is secret"), f"main keeps {HOME}/trainer:1, which is secret"),
        (f"trainer@{DIGEST}", FoundImage(DIGEST, ("linux/arm64",)), "main names trainer by digest for linux/arm64"),
        (
            f"trainer@{DIGEST}",
            FoundImage("", (), "ECR: throttled"),
            "main names trainer by digest, whose platform is not known: ECR: throttled",
        ),
    ],
)
def test_people_see_tag_and_the_beginning_of_the_digest_and_platforms(name, found, said):
    ((pin,), _) = plan_pins(revision_of(f"{HOME}/{name}"))

    assert describe_pin(pin, found) == said


def test_what_is_known_of_images_goes_to_their_containers_and_leaves_the_others_alone():
    before = with_platforms(
        revision_of("busybox", "busybox", "busybox"), {"main": ("linux/386",), "side": ("linux/arm",)}
    )

    after = with_platforms(before, {"side": (), "third": BOTH, "gone": BOTH})

    assert [each.platforms for each in before.containers] == [("linux/386",), ("linux/arm",), ()]
    assert [each.platforms for each in after.containers] == [("linux/386",), (), BOTH]
    assert with_platforms(after, {"main": (), "third": ()}) == revision_of("busybox", "busybox", "busybox")


def test_what_a_job_holds_is_what_its_containers_run_by_digest_in_the_registry_of_the_account():
    revision = revision_of(
        f"{HOME}/trainer:latest", f"{HOME}/proxy:v1", f"999999999999.dkr.ecr.us-east-1.amazonaws.com/a@{DIGEST}"
    )

    assert held_images(revision, {}) == frozenset()
    assert held_images(revision, {"main": f"{HOME}/trainer@{DIGEST}"}) == {("trainer", DIGEST)}
