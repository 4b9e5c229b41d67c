"""What machines are launched with, and what that lets them do: infrastructure/machines.yaml as deployed (moto)."""

import re
from pathlib import Path
from typing import Any

import pytest

from architecture.conftest import Template, as_list
from architecture.role_policies import RolePolicies
from architecture.test_edge_template import read
from architecture.test_template_machines import ON
from fakes.aws import make_client
from fakes.machines_stack import KINDS, MachinesStack, deploy_machines
from fakes.repository import REPOSITORY
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.offerings.instance_types import AmiKind, AmiSystem, ami_parameter

each_kind = pytest.mark.parametrize("kind", KINDS)
# Service Authorization Reference: these actions name no resource.
ACTIONS_WITHOUT_RESOURCE = {"ecs:DiscoverPollEndpoint", "ecr:GetAuthorizationToken"}
ACCOUNT = "123456789012"


@pytest.fixture(scope="module")
def machines() -> MachinesStack:
    return deploy_machines()


@pytest.fixture(scope="module")
def written() -> Any:
    return read("infrastructure/machines.yaml")


def actions_of(machines: MachinesStack) -> set[str]:
    return {action for statement in machines.statements for action in as_list(statement["Action"])}


def resources_for(machines: MachinesStack, action: str) -> list[str]:
    return [
        resource
        for statement in machines.statements
        if action in as_list(statement["Action"])
        for resource in as_list(statement["Resource"])
    ]


@each_kind
def test_the_image_is_the_one_that_ecs_recommends_at_the_launch(machines: MachinesStack, kind: str) -> None:
    parameter = ami_parameter(AmiKind(kind), AmiSystem.AMAZON_LINUX_2023)

    assert machines.launch_templates[kind]["ImageId"] == f"resolve:ssm:{parameter}/image_id"


@each_kind
def test_what_is_shut_down_is_terminated_with_its_volumes(machines: MachinesStack, kind: str) -> None:
    template = machines.launch_templates[kind]

    assert template["InstanceInitiatedShutdownBehavior"] == "terminate"
    assert [volume["DeviceName"] for volume in template["BlockDeviceMappings"]] == ["/dev/xvda"]
    for volume in template["BlockDeviceMappings"]:
        assert volume["Ebs"] == {
            "VolumeType": "gp3",
            "VolumeSize": 100,
            "Throughput": 250,
            "Iops": 3000,
            "Encrypted": True,
            # Of the account's default nothing is known: it may be one that nobody here may use.
            "KmsKeyId": "alias/aws/ebs",
            "DeleteOnTermination": True,
        }


@each_kind
def test_metadata_takes_a_token_stays_on_the_machine_and_has_its_tags(machines: MachinesStack, kind: str) -> None:
    assert machines.launch_templates[kind]["MetadataOptions"] == {
        "HttpEndpoint": "enabled",
        "HttpTokens": "required",
        "HttpPutResponseHopLimit": 1,
        "InstanceMetadataTags": "enabled",
    }


@each_kind
def test_nothing_is_said_that_a_request_says_and_there_is_no_key(machines: MachinesStack, kind: str) -> None:
    # A subnet, market options or a tag for a spot request would hold for requests that they must not hold for.
    assert set(machines.launch_templates[kind]) == {
        "ImageId",
        "IamInstanceProfile",
        "SecurityGroupIds",
        "InstanceInitiatedShutdownBehavior",
        "MetadataOptions",
        "BlockDeviceMappings",
        "UserData",
    }
    assert machines.launch_templates[kind]["IamInstanceProfile"] == {"Arn": machines.outputs["InstanceProfileArn"]}


def test_the_two_templates_differ_in_image_and_accelerator_only(machines: MachinesStack) -> None:
    gpu, neuron = ({**machines.launch_templates[kind], "UserData": machines.user_data(kind)} for kind in KINDS)

    assert {key for key in gpu if gpu[key] != neuron[key]} == {"ImageId", "UserData"}
    assert gpu["UserData"].replace("ACCELERATOR=gpu", "ACCELERATOR=neuron", 1) == neuron["UserData"]


def test_nothing_gets_in(machines: MachinesStack, written: Any) -> None:
    assert machines.security_group["IpPermissions"] == []
    for kind in KINDS:
        assert machines.launch_templates[kind]["SecurityGroupIds"] == [machines.outputs["SecurityGroupId"]]
    # Rules of another resource would count, too: one lets machines of the same group in, if that is asked for.
    rules = {name: each for name, each in written["Resources"].items() if "Ingress" in each["Type"]}
    assert {name: each["Condition"] for name, each in rules.items()} == {"NodesIngress": "NodesMeet"}
    own = rules["NodesIngress"]["Properties"]
    assert own["SourceSecurityGroupId"] == own["GroupId"]
    assert written["Parameters"]["NodesMeet"]["Default"] == "off"
    assert {resource["Type"] for resource in written["Resources"].values()} == {
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::IAM::Role",
        "AWS::IAM::InstanceProfile",
        "AWS::EC2::LaunchTemplate",
    }


def test_the_role_is_for_instances_alone(machines: MachinesStack) -> None:
    assert machines.role["AssumeRolePolicyDocument"]["Statement"] == [
        {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ]
    assert machines.role["Path"] == "/relaunch/"
    assert f":instance-profile{machines.role['Path']}" in machines.outputs["InstanceProfileArn"]


def test_a_machine_may_be_a_node_of_its_cluster_and_pull_images_and_nothing_else(machines: MachinesStack) -> None:
    assert actions_of(machines) == {
        "ecs:DiscoverPollEndpoint",
        "ecs:RegisterContainerInstance",
        "ecs:Poll",
        "ecs:StartTelemetrySession",
        "ecs:SubmitAttachmentStateChanges",
        "ecs:SubmitContainerStateChange",
        "ecs:SubmitTaskStateChange",
        "ecr:GetAuthorizationToken",
        "ecr:BatchCheckLayerAvailability",
        "ecr:BatchGetImage",
        "ecr:GetDownloadUrlForLayer",
    }
    assert {statement["Effect"] for statement in machines.statements} == {"Allow"}


def test_it_registers_with_one_cluster_and_polls_for_its_instances_only(machines: MachinesStack) -> None:
    ecs = f"arn:aws:ecs:us-east-1:{ACCOUNT}"
    for action in actions_of(machines) - ACTIONS_WITHOUT_RESOURCE:
        if action in {"ecs:Poll", "ecs:StartTelemetrySession"}:
            assert resources_for(machines, action) == [f"{ecs}:container-instance/training/*"]
        elif action.startswith("ecs:"):
            assert resources_for(machines, action) == [f"{ecs}:cluster/training"]


def test_all_resources_are_allowed_only_where_aws_knows_none(machines: MachinesStack) -> None:
    for statement in machines.statements:
        if "*" in as_list(statement["Resource"]):
            assert set(as_list(statement["Action"])) <= ACTIONS_WITHOUT_RESOURCE


def test_images_come_from_the_repositories_of_the_account_or_those_that_are_named(machines: MachinesStack) -> None:
    named = f"arn:aws:ecr:us-east-1:{ACCOUNT}:repository/vision"
    other = "arn:aws:ecr:us-east-1:210987654321:repository/base"
    with_names = deploy_machines((("ImageRepositories", f"{named},{other}"),))

    assert resources_for(machines, "ecr:BatchGetImage") == [f"arn:aws:ecr:us-east-1:{ACCOUNT}:repository/*"]
    assert resources_for(with_names, "ecr:BatchGetImage") == [named, other]


def test_parameters_reach_machines() -> None:
    machines = deploy_machines(
        (
            *(("ClusterName", "vision_2"), ("DiskGiB", "250"), ("IdleMinutes", "45"), ("RegistrationMinutes", "30")),
            *(("GpuImageId", "ami-0123456789abcdef0"), ("DiskThroughput", "1000"), ("DiskIops", "4000")),
        )
    )

    assert machines.user_data("gpu").startswith(
        "#!/bin/bash\nreadonly ACCELERATOR=gpu CLUSTER=vision_2 INSTANCE_STORE=on\n"
        "readonly IDLE_MINUTES=45 REGISTRATION_MINUTES=30\n"
    )
    assert machines.launch_templates["gpu"]["ImageId"] == "ami-0123456789abcdef0"
    for kind in KINDS:
        volume = machines.launch_templates[kind]["BlockDeviceMappings"][0]["Ebs"]
        assert (volume["VolumeSize"], volume["Throughput"], volume["Iops"]) == (250, 1000, 4000)


@pytest.mark.parametrize(
    ("parameter", "member"), [pytest.param("DiskThroughput", "Throughput"), pytest.param("DiskIops", "Iops")]
)
def test_a_disk_has_the_range_that_ec2_documents(written: Any, parameter: str, member: str) -> None:
    shapes = make_client("ec2").meta.service_model
    documented = shapes.shape_for("LaunchTemplateEbsBlockDeviceRequest").members[member].documentation
    declared = written["Parameters"][parameter]

    for bound in (declared["MinValue"], declared["MaxValue"]):
        assert re.search(rf"\b{bound:,}\b", documented), documented


@pytest.mark.parametrize(
    "parameter",
    [
        pytest.param(("InstanceStore", "off"), id="it-is-off"),
        pytest.param(
            ("DiskKmsKeyArn", f"arn:aws:kms:us-east-1:{ACCOUNT}:key/0f0f"), id="data-is-encrypted-by-a-key-of-ones-own"
        ),
    ],
)
def test_the_instance_store_is_left_alone(parameter: tuple[str, str]) -> None:
    machines = deploy_machines((("ClusterName", "training"), parameter))

    for kind in KINDS:
        assert "INSTANCE_STORE=off\n" in machines.user_data(kind)


@pytest.mark.parametrize("parameter", ["GpuImageId", "NeuronImageId"])
@pytest.mark.parametrize(
    ("image", "is_taken"),
    [
        pytest.param("ami-0123456789abcdef0", True, id="an-image-of-ones-own"),
        pytest.param(
            "resolve:ssm:/aws/service/ecs/optimized-ami/amazon-linux-2/gpu/recommended/image_id", True, id="ecs"
        ),
        pytest.param("resolve:ssm:/acme/images/gpu", False, id="a-parameter-of-ones-own"),
        pytest.param("resolve:ssm:/aws/service/ami-amazon-linux-latest/al2023", False, id="of-another-service"),
    ],
)
def test_an_image_is_taken_if_the_application_may_read_its_parameter(
    written: Any, template: Template, parameter: str, image: str, *, is_taken: bool
) -> None:
    pattern = written["Parameters"][parameter]["AllowedPattern"]
    name = image.removeprefix("resolve:ssm:")
    owner = "" if name.startswith("/aws/") else ACCOUNT
    requesting = RolePolicies(template, "RequestMachineRole", **ON)
    may_read = requesting.allows("ssm:GetParameters", f"arn:aws:ssm:us-east-1:{owner}:parameter{name}")

    assert (re.fullmatch(pattern, image) is not None) is is_taken
    assert is_taken is (may_read or name.startswith("ami-"))


def test_the_cluster_has_the_names_that_the_application_takes(written: Any, template: Template) -> None:
    cluster, other = written["Parameters"]["ClusterName"], template.parameters["ClusterName"]

    assert (cluster["AllowedPattern"], cluster["Default"]) == (other["AllowedPattern"], other["Default"])


def test_outputs_are_what_the_application_takes(machines: MachinesStack) -> None:
    gpu, neuron = (
        f"{kind.lower()}={machines.outputs[f'{kind}LaunchTemplateId']}:{machines.outputs[f'{kind}LaunchTemplateVersion']}"
        for kind in ("Gpu", "Neuron")
    )

    assert machines.outputs["MachineLaunchTemplates"] == f"{gpu},{neuron}"
    assert machines.outputs["MachineInstanceRoleArn"] == machines.role["Arn"]
    assert machines.outputs["MachineDiskGiB"] == "100"


def test_versions_are_numbers_that_follow_updates(written: Any) -> None:
    for kind in ("Gpu", "Neuron"):
        assert (
            written["Outputs"][f"{kind}LaunchTemplateVersion"]["Value"] == f"{kind}LaunchTemplate.LatestVersionNumber"
        )
        assert f"${{{kind}LaunchTemplate.LatestVersionNumber}}" in written["Outputs"]["MachineLaunchTemplates"]["Value"]


def test_relaunch_ends_a_machine_before_the_machine_ends_itself(written: Any) -> None:
    idle, registration = (written["Parameters"][f"{each}Minutes"]["Default"] for each in ("Idle", "Registration"))
    limits = MachineLimits()

    assert idle * 60 >= limits.warm_time.total_seconds() + 600
    assert registration * 60 > limits.registration_deadline.total_seconds()


@pytest.mark.parametrize("template", sorted((REPOSITORY / "infrastructure").glob("*.yaml")), ids=lambda each: each.name)
def test_a_template_can_be_deployed_from_a_file(template: Path) -> None:
    # "Template body size: 51,200 bytes" of CreateChangeSet without S3 (CloudFormation quotas).
    assert template.stat().st_size <= 51_200
