"""The stack of infrastructure/machines.yaml, deployed in process (moto), and what its machines are launched with."""

import ast
import base64
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from fakes.aws import aws_in_process, make_client
from fakes.repository import REPOSITORY

TEMPLATE = REPOSITORY / "infrastructure" / "machines.yaml"
KINDS = ("gpu", "neuron")


@dataclass(frozen=True)
class MachinesStack:
    """What the stack made; `launch_templates` is the data of each kind's template, as EC2 has it."""

    outputs: Mapping[str, str]
    launch_templates: Mapping[str, Mapping[str, Any]]
    security_group: Mapping[str, Any]
    role: Mapping[str, Any]
    statements: list[dict[str, Any]]

    def user_data(self, kind: str) -> str:
        """The text that an instance of the kind gets."""
        return base64.b64decode(self.launch_templates[kind]["UserData"], validate=True).decode()


@cache
def deploy_machines(parameters: tuple[tuple[str, str], ...] = (("ClusterName", "training"),)) -> MachinesStack:
    """Deploy the template, as it is in the repository, with these parameters and a VPC."""
    with aws_in_process():
        ec2, iam, stacks = (make_client(service) for service in ("ec2", "iam", "cloudformation"))
        given = {"VpcId": ec2.describe_vpcs()["Vpcs"][0]["VpcId"], **dict(parameters)}
        stacks.create_stack(
            StackName="machines",
            TemplateBody=TEMPLATE.read_text(encoding="utf-8"),
            Capabilities=["CAPABILITY_IAM"],
            Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in given.items()],
        )
        (stack,) = stacks.describe_stacks(StackName="machines")["Stacks"]
        outputs = {each["OutputKey"]: each["OutputValue"] for each in stack["Outputs"]}
        role = iam.get_role(RoleName=outputs["MachineInstanceRoleArn"].rpartition("/")[2])["Role"]
        (policy,) = iam.list_role_policies(RoleName=role["RoleName"])["PolicyNames"]
        document = iam.get_role_policy(RoleName=role["RoleName"], PolicyName=policy)["PolicyDocument"]
        # moto keeps a policy of a stack as what Python prints of it.
        statements = (ast.literal_eval(document) if isinstance(document, str) else document)["Statement"]
        groups = ec2.describe_security_groups(GroupIds=[outputs["SecurityGroupId"]])["SecurityGroups"]
        return MachinesStack(
            outputs=outputs,
            launch_templates={kind: launch_template(ec2, outputs, kind) for kind in KINDS},
            security_group=groups[0],
            role=role,
            statements=statements,
        )


def launch_template(ec2: Any, outputs: Mapping[str, str], kind: str) -> Mapping[str, Any]:
    """Return the data of the version that the output MachineLaunchTemplates names for a kind."""
    template, _, version = dict(each.split("=") for each in outputs["MachineLaunchTemplates"].split(","))[
        kind
    ].partition(":")
    found = ec2.describe_launch_template_versions(LaunchTemplateId=template, Versions=[version])
    data: Mapping[str, Any] = found["LaunchTemplateVersions"][0]["LaunchTemplateData"]
    return data
