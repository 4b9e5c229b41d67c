"""amis."""

from relaunch.core.offerings.instance_types import AmiKind
from relaunch.ports import PermanentError, TransientError


def test_both_kinds_of_images_are_shown_with_their_parameters(relaunch):
    result = relaunch("amis", columns=120)

    assert "ami-gpu" in result.stdout
    assert "1.107.0" in result.stdout
    assert "DRIVER" not in result.stdout
    assert "neuron: /aws/service/ecs/optimized-ami/amazon-linux-2023/neuron/recommended" in result.stdout
    assert result.stderr == ""


def test_types_decide_which_kinds_are_shown(relaunch):
    document = relaunch("amis", "trn1.2xlarge", "inf2.xlarge", "--json").document

    assert [each["kind"] for each in document["images"]] == ["neuron"]
    assert document["misfits"] == {}


def test_amazon_linux_2_is_shown_when_asked_for_with_its_end(relaunch):
    result = relaunch("amis", "--amazon-linux-2", "--json")

    assert [each["parameter"].split("/")[-2] for each in result.document["images"]] == ["gpu", "inf"]
    assert "end of life" in result.stderr


def test_a_region_is_that_of_the_images(relaunch):
    (gpu,) = relaunch("amis", "g5.xlarge", "--region", "eu-west-1", "--json").document["images"]

    assert (gpu["region"], gpu["image_id"]) == ("eu-west-1", "ami-gpu")


def test_types_that_the_images_do_not_run_on_are_named(relaunch):
    result = relaunch("amis", "p2.xlarge", "g5g.xlarge")

    assert "p2.xlarge: its K80 needs an NVIDIA driver of the 470 branch" in result.stderr
    assert "g5g.xlarge: ECS-optimized GPU images are for x86_64 only; for arm64 Bottlerocket has one" in result.stderr


def test_types_with_no_image_at_all_show_none(relaunch):
    result = relaunch("amis", "g4ad.xlarge", "--json")

    assert result.document["images"] == []
    assert "AMD Radeon Pro V520" in result.stderr


def test_without_an_answer_of_ssm_the_parameters_are_shown_and_how_to_use_them(relaunch, session):
    session.recommended_amis.failure = TransientError("SSM cannot be reached")

    result = relaunch("amis")

    assert result.exit_code == 5
    assert "amazon-linux-2023/gpu/recommended" in result.stdout
    assert "SSM does not answer now; a launch template that refers to the parameter" in result.stderr


def test_a_region_without_an_image_ends_with_3(relaunch, session):
    session.recommended_amis.missing = {AmiKind.NEURON}

    result = relaunch("amis", "--region", "me-south-1")

    assert result.exit_code == 3
    assert "neuron: ECS publishes Neuron images in 17 regions, and me-south-1 is none of them" in result.stderr


def test_denied_access_is_not_an_outage(relaunch, session):
    session.recommended_amis.failure = PermanentError("reading the recommended images: AccessDenied")

    assert relaunch("amis").exit_code == 5
