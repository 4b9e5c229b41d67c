import pytest

from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.offerings.instance_types import (
    NEURON_REGIONS,
    AmiKind,
    AmiSystem,
    ami_absence,
    ami_kind,
    ami_parameter,
    ami_rejection,
    missing_ami,
    system_notice,
)

PREFIX = "/aws/service/ecs/optimized-ami"


@pytest.mark.parametrize(
    ("kind", "system", "name"),
    [
        (AmiKind.GPU, AmiSystem.AMAZON_LINUX_2023, "amazon-linux-2023/gpu"),
        (AmiKind.NEURON, AmiSystem.AMAZON_LINUX_2023, "amazon-linux-2023/neuron"),
        (AmiKind.GPU, AmiSystem.AMAZON_LINUX_2, "amazon-linux-2/gpu"),
        (AmiKind.NEURON, AmiSystem.AMAZON_LINUX_2, "amazon-linux-2/inf"),
    ],
)
def test_the_parameter_has_the_name_that_ecs_documents(kind: AmiKind, system: AmiSystem, name: str) -> None:
    assert ami_parameter(kind, system) == f"{PREFIX}/{name}/recommended"


def test_every_type_that_jobs_can_use_needs_one_kind_of_image() -> None:
    kinds = {name: ami_kind(row) for name, row in load_catalogue().items()}

    neuron = {name for name, kind in kinds.items() if kind is AmiKind.NEURON}
    none = {name for name, kind in kinds.items() if kind is None}
    trainium = {"trn1", "trn1n", "trn2", "trn2u", "trn3", "trn3pd98"}
    assert {name.partition(".")[0] for name in neuron} == {"inf1", "inf2", *trainium}
    assert {name.partition(".")[0] for name in none} == {"dl1", "dl2q", "g4ad"}


def test_what_the_recommended_images_do_not_run_on_is_known() -> None:
    misfits = {name.partition(".")[0] for name, row in load_catalogue().items() if ami_rejection(row)}

    assert misfits == {"dl1", "dl2q", "g4ad", "g2", "p2", "g5g", "g7", "p6e-gb200"}
    assert ami_rejection(load_catalogue()["p2.xlarge"]) == (
        "its K80 needs an NVIDIA driver of the 470 branch or older, and ECS's GPU images "
        "have had newer ones since release 20230912: build an image of your own"
    )
    # Its GPU is another one, which the 580 branch knows.
    assert not ami_rejection(load_catalogue()["g7e.2xlarge"])
    assert "needs an NVIDIA driver of the 595 branch or newer" in ami_rejection(load_catalogue()["g7.2xlarge"])
    assert ami_rejection(load_catalogue()["g5g.xlarge"]) == (
        "ECS-optimized GPU images are for x86_64 only; for arm64 Bottlerocket has one: "
        "/aws/service/bottlerocket/aws-ecs-2-nvidia/arm64/latest/image_id"
    )
    assert "Habana Gaudi" in ami_rejection(load_catalogue()["dl1.24xlarge"])


@pytest.mark.parametrize(
    ("name", "zone", "words"),
    [
        ("p2.xlarge", "us-east-1a", "needs an NVIDIA driver of the 470 branch"),
        ("g5.xlarge", "us-east-1a", ""),
        ("g5g.xlarge", "us-east-1a", ""),
        ("trn1.2xlarge", "us-east-1-bos-1a", ""),
        ("trn2.48xlarge", "ap-south-2a", "17 regions, and ap-south-2 is none of them"),
        ("trn2.48xlarge", None, ""),
    ],
)
def test_what_no_image_is_published_for_is_known(name: str, zone: str | None, words: str) -> None:
    missing = missing_ami(load_catalogue()[name], zone)

    assert words in missing
    assert bool(missing) == bool(words)


def test_a_region_without_a_parameter_is_explained() -> None:
    assert "me-south-1 is none of them" in ami_absence(AmiKind.NEURON, "me-south-1")
    assert ami_absence(AmiKind.NEURON, "eu-west-1") == "SSM has no such parameter in eu-west-1"
    assert ami_absence(AmiKind.GPU, "me-south-1") == "SSM has no such parameter in me-south-1"


def test_the_developer_guide_lists_17_regions_with_neuron_images() -> None:
    # Virginia, Ohio, N. California, Oregon; Mumbai, Osaka, Seoul, Tokyo, Singapore, Sydney; Canada; Frankfurt, Ireland,
    # London, Paris, Stockholm; São Paulo.
    north_america = {"us-east-1", "us-east-2", "us-west-1", "us-west-2", "ca-central-1"}
    asia = {f"ap-northeast-{number}" for number in (1, 2, 3)} | {"ap-south-1", "ap-southeast-1", "ap-southeast-2"}
    europe = {"eu-central-1", "eu-west-1", "eu-west-2", "eu-west-3", "eu-north-1"}

    assert north_america | asia | europe | {"sa-east-1"} == NEURON_REGIONS
    assert len(NEURON_REGIONS) == 17


def test_an_old_system_says_since_when_it_gets_no_updates() -> None:
    assert system_notice(AmiSystem.AMAZON_LINUX_2) == (
        "ECS-optimized Amazon Linux 2 reached its end of life on 30 June 2026: it gets no more updates"
    )
    assert system_notice(AmiSystem.AMAZON_LINUX_2023) == ""
