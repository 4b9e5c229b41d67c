"""What the role of launch_attempt may run, register and pass: the template's policy, as IAM would evaluate it."""

import json
import re

import pytest
from botocore.exceptions import ClientError

from architecture.conftest import Template
from architecture.role_policies import RolePolicies
from fakes.simulated_region import SimulatedRegion
from relaunch.kubernetes_settings import read_pod_grants
from relaunch_cli.deployment.launch_policies import characters_of_launch_policies
from relaunch_local.iam.policies import PolicyAuthorizer
from relaunch_local.templates.physical import physical_values

DEFINITION = "arn:aws:ecs:us-east-1:111122223333:task-definition"
ROLE = "arn:aws:iam::111122223333:role"
HASH = "0123456789abcdef"
_POD_NAMES = {"kubernetes_images": "images", "kubernetes_service_accounts": "accounts"} | {
    name: name for name in ("gpu_model_label", "spot_label", "on_demand_label")
}


class Launching(RolePolicies):
    """What LaunchAttemptRole allows with these parameters."""

    def __init__(self, template: Template, **parameters: str) -> None:
        super().__init__(template, "LaunchAttemptRole", **parameters)

    def runs(self, family: str) -> bool:
        cluster = "arn:aws:ecs:us-east-1:111122223333:cluster/relaunch"
        return self.allows("ecs:RunTask", f"{DEFINITION}/{family}:3", ecs__cluster=cluster)

    def registers(self, family: str) -> bool:
        may_tag = self.allows("ecs:TagResource", f"{DEFINITION}/{family}:*", ecs__CreateAction="RegisterTaskDefinition")
        may_register = self.allows("ecs:RegisterTaskDefinition", f"{DEFINITION}/{family}:*")
        assert may_tag == may_register
        return may_register

    def passes(self, role: str) -> bool:
        return self.allows("iam:PassRole", f"{ROLE}/{role}", iam__PassedToService="ecs-tasks.amazonaws.com")


@pytest.mark.parametrize(
    ("families", "runs", "not_runs", "registers", "not_registers"),
    [
        pytest.param(
            "relaunch-*",
            ["relaunch-a", f"relaunch-a--{HASH}"],
            ["payroll", f"payroll--{HASH}", "relaunch"],
            [f"relaunch-a--{HASH}"],
            ["relaunch-a", "relaunch-a--b", f"payroll--{HASH}"],
            id="the default",
        ),
        pytest.param(
            "bert,vision-*,gpt",
            ["bert", f"bert--{HASH}", "vision-a", f"vision-a--{HASH}", "gpt", f"gpt--{HASH}"],
            ["bert-large", "bert--large", f"bert-large--{HASH}", "vision", "gpt2", "*"],
            [f"bert--{HASH}", f"vision-a--{HASH}", f"gpt--{HASH}"],
            ["bert", "vision-a", "gpt", f"bert-large--{HASH}", f"gpt2--{HASH}"],
            id="several",
        ),
        pytest.param("any", ["payroll", f"payroll--{HASH}"], [], [f"payroll--{HASH}"], ["payroll"], id="any"),
    ],
)
def test_only_the_allowed_families_and_their_derived_ones(
    template: Template,
    families: str,
    runs: list[str],
    not_runs: list[str],
    registers: list[str],
    not_registers: list[str],
) -> None:
    role = Launching(template, ClusterName="relaunch", TaskDefinitionFamilies=families)

    assert [each for each in runs if not role.runs(each)] == []
    assert [each for each in not_runs if role.runs(each)] == []
    assert [each for each in registers if not role.registers(each)] == []
    assert [each for each in not_registers if role.registers(each)] == []


def test_only_roles_under_the_path(template: Template) -> None:
    usual, team = Launching(template), Launching(template, TaskRolePath="relaunch/vision/")

    assert [usual.passes(each) for each in ("relaunch/a", "relaunch/vision/a", "admin", "relaunchx/a")] == [
        *(True, True),
        *(False, False),
    ]
    assert [team.passes(each) for each in ("relaunch/vision/a", "relaunch/a", "relaunch/speech/a")] == [
        True,
        *(False, False),
    ]


def test_ecs_denies_the_role_another_family(template: Template) -> None:
    policies = Launching(template, ClusterName="c").documents
    root = {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    region = SimulatedRegion(authorize=PolicyAuthorizer({"AKIATEST": policies, "ROOT": [root]}))
    region.provider()
    container = {"name": "m", "image": "i", "memory": 64}
    for family in ("relaunch-train", "payroll"):
        region.simulator.definitions.register(
            {"family": family, "containerDefinitions": [container]}, registered_by="somebody"
        )

    assert region.run("g5-spot", taskDefinition="relaunch-train")["tasks"]
    with pytest.raises(ClientError, match=r"AccessDenied.*ecs:RunTask.*payroll:1"):
        region.run("g5-spot", taskDefinition="payroll")
    with pytest.raises(ClientError, match=r"AccessDenied.*ecs:RegisterTaskDefinition"):
        region.register(f"payroll--{HASH}")


@pytest.mark.parametrize(
    ("families", "is_taken"),
    [
        *(("relaunch-*", True), ("any", True), ("bert", True), ("bert,vision-*", True), ("f" * 237, True)),
        *(("*", False), ("bert,*", False), ("", False), ("a*b", False), ("a,,b", False), ("a, b", False)),
        *(("a**", False), ("f" * 238, False), ("a/b", False), ("arn:aws:ecs:*", False)),
    ],
)
def test_a_bare_asterisk_is_not_taken(template: Template, families: str, *, is_taken: bool) -> None:
    parameter = template.parameters["TaskDefinitionFamilies"]

    assert parameter["Default"] == "relaunch-*"
    assert (re.fullmatch(parameter["AllowedPattern"], families) is not None) is is_taken


@pytest.mark.parametrize(
    ("path", "is_taken"),
    [
        *(("relaunch/", True), ("relaunch/vision/", True), ("a.b_c/", True)),
        *(("relaunch", False), ("/relaunch/", False), ("", False), ("/", False), ("*/", False), ("a//", False)),
    ],
)
def test_a_role_path_ends_with_a_slash(template: Template, path: str, *, is_taken: bool) -> None:
    parameter = template.parameters["TaskRolePath"]

    assert parameter["Default"] == "relaunch/"
    assert (re.fullmatch(parameter["AllowedPattern"], path) is not None) is is_taken


@pytest.mark.parametrize(
    ("images", "is_taken"),
    [
        *(("any", True), ("registry.example.com/team/*", True), ("localhost:5000/a,docker.io/acme/*", True)),
        *(("*", False), ("", False), ("acme/*", False), ("registry.example.com*", False), ("a.b/c,", False)),
        *(("any,a.b/c", False), ("registry.example.com/*", True), ("registry.example.com/", False)),
    ],
)
def test_images_are_named_with_their_whole_registry(template: Template, images: str, *, is_taken: bool) -> None:
    parameter = template.parameters["KubernetesImages"]

    assert parameter["Default"] == "any"
    assert (re.fullmatch(parameter["AllowedPattern"], images) is not None) is is_taken
    assert not is_taken or read_pod_grants({"images": images}, _POD_NAMES)


@pytest.mark.parametrize(
    ("accounts", "is_taken"),
    [
        *(("", True), ("trainer", True), ("train-*,default", True), ("a.b", True)),
        *(("*", False), ("a,", False), ("Trainer", False), ("a*b", False)),
    ],
)
def test_no_service_account_is_allowed_unless_it_is_named(template: Template, accounts: str, *, is_taken: bool) -> None:
    parameter = template.parameters["KubernetesServiceAccounts"]

    assert parameter["Default"] == ""
    assert (re.fullmatch(parameter["AllowedPattern"], accounts) is not None) is is_taken
    assert not is_taken or read_pod_grants({"accounts": accounts}, _POD_NAMES)


def test_functions_and_the_command_are_told(template: Template) -> None:
    told = template.functions["SubmitJobFunction"]["Environment"]["Variables"]

    variables = {"TaskDefinitionFamilies": "FAMILIES", "TaskRolePath": "PATH"}
    for name, variable in {**variables, "KubernetesImages": "IMAGES", "KubernetesServiceAccounts": "ACCOUNTS"}.items():
        assert template.outputs[name]["Value"] == {"Ref": name}
        assert {"Ref": name} in [value for key, value in told.items() if key.endswith(variable)]


@pytest.mark.parametrize("stack", ["relaunch", "s" * 60])
@pytest.mark.parametrize("families", ["relaunch-*", ",".join(f"team-{number}-trainer" for number in range(25))])
@pytest.mark.parametrize("buckets", ["", "acme-checkpoints,acme-data,acme-models"])
def test_a_deployment_knows_about_how_long_these_policies_are(
    template: Template, stack: str, families: str, buckets: str
) -> None:
    given = {"TaskDefinitionFamilies": families, "CheckpointBuckets": buckets, "ClusterName": "training"}
    clusters = {"EksClusterName": "training", "AckClusterId": "c" * 33, "AcsClusterId": "c" * 33}
    names = {each: f"{stack}-{each}-ABCDEFGHIJKLM" for each in template.resources}
    values = physical_values(template, "111122223333", "ap-southeast-1", names) | {"AWS::StackName": stack}
    documents = RolePolicies(template, "LaunchAttemptRole", **values, **given, **clusters).documents

    characters = sum(len(json.dumps(each, separators=(",", ":"))) for each in documents)

    assert 0 <= characters_of_launch_policies(stack, given) - characters < 900
