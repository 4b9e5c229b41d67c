"""The role of a single training reaches its own checkpoints, and none of another training of the same stack."""

import pytest

from architecture.conftest import Template
from architecture.role_policies import RolePolicies
from architecture.written_template import written_template
from relaunch_cli.deployment.training_roles import role_parameters

BUCKET = "arn:aws:s3:::acme-checkpoints"
DATA = "arn:aws:s3:::acme-data"
KEY = "arn:aws:kms:us-east-1:111122223333:key/0a1b"
OUTPUTS = {"CheckpointBucketName": "acme-checkpoints", "DataBucketName": "acme-data"}
SAVED = "0a1b/attempt-1/step-0000100/manifest.json"


@pytest.fixture(scope="module")
def template() -> Template:
    return written_template("infrastructure/training-role.yaml")


def role_of(template: Template, training: str, **outputs: str) -> RolePolicies:
    wanted = {"CheckpointKeyArns": KEY}
    return RolePolicies(
        template, "TaskRole", **role_parameters("relaunch", training, wanted, {**OUTPUTS, **outputs}, "")
    )


@pytest.mark.parametrize("action", ["GetObject", "PutObject", "DeleteObject", "AbortMultipartUpload"])
def test_a_training_reads_and_writes_its_own_checkpoints_alone(template: Template, action: str) -> None:
    vision = role_of(template, "vision")

    assert vision.allows(f"s3:{action}", f"{BUCKET}/vision/{SAVED}")
    # Neither those of another training, nor of one whose name begins alike, nor what lies above or beside.
    for other in (f"bert/{SAVED}", f"vision-large/{SAVED}", "vision", "manifest.json", f"a/vision/{SAVED}"):
        assert not vision.allows(f"s3:{action}", f"{BUCKET}/{other}")
    assert role_of(template, "bert").allows(f"s3:{action}", f"{BUCKET}/bert/{SAVED}")


@pytest.mark.parametrize(
    ("prefix", "is_listed"),
    [
        *(("vision/", True), ("vision/0a1b/attempt-1/", True)),
        *(("", False), ("v", False), ("vision", False), ("vision-large/", False), ("bert/", False)),
    ],
)
def test_a_training_lists_its_own_checkpoints_alone(template: Template, prefix: str, *, is_listed: bool) -> None:
    vision = role_of(template, "vision")

    assert vision.allows("s3:ListBucket", BUCKET, s3__prefix=prefix) is is_listed
    assert not vision.allows("s3:ListBucket", BUCKET)


def test_a_training_reads_all_data_and_changes_none(template: Template) -> None:
    vision = role_of(template, "vision")

    assert vision.allows("s3:GetObject", f"{DATA}/images/1.tar")
    assert vision.allows("s3:ListBucket", DATA, s3__prefix="images/")
    for action in ("s3:PutObject", "s3:DeleteObject"):
        assert not vision.allows(action, f"{DATA}/images/1.tar")


def test_data_in_the_bucket_of_checkpoints_opens_no_others(template: Template) -> None:
    vision = role_of(template, "vision", DataBucketName="acme-checkpoints")

    assert vision.allows("s3:GetObject", f"{BUCKET}/vision/{SAVED}")
    assert not vision.allows("s3:GetObject", f"{BUCKET}/bert/{SAVED}")
    assert not vision.allows("s3:ListBucket", BUCKET, s3__prefix="bert/")


def test_keys_are_used_through_s3_alone(template: Template) -> None:
    vision = role_of(template, "vision")

    for action in ("kms:Decrypt", "kms:GenerateDataKey"):
        assert vision.allows(action, KEY, kms__ViaService="s3.us-east-1.amazonaws.com")
        assert not vision.allows(action, KEY)


def test_an_operator_passes_the_roles_of_trainings_of_its_own_application_alone() -> None:
    operator = RolePolicies(written_template("infrastructure/training.yaml"), "OperatorRole", Zone1="us-east-1a")

    def may_pass(path: str) -> bool:
        role = f"arn:aws:iam::111122223333:role{path}relaunch-training-vision-TaskRole-Z1Y2"
        return operator.allows("iam:PassRole", role, iam__PassedToService="ecs-tasks.amazonaws.com")

    for path in ("", "relaunch/vision/"):
        parameters = role_parameters("relaunch", "vision", {}, OUTPUTS, path)
        assert may_pass(parameters["RolePath"])
        assert not may_pass(role_parameters("relaunch-b", "vision", {}, OUTPUTS, path)["RolePath"])
    assert not may_pass("/relaunch/")


def test_an_operator_finds_the_role_of_a_training() -> None:
    operator = RolePolicies(written_template("infrastructure/training.yaml"), "OperatorRole", Zone1="us-east-1a")

    for stack, is_found in (("relaunch-training-vision", True), ("payroll-training-vision", False)):
        arn = f"arn:aws:cloudformation:us-east-1:111122223333:stack/{stack}/0a1b"
        assert operator.allows("cloudformation:DescribeStacks", arn) is is_found
