"""Machines of our own: the parameters that turn them on, and what the roles of the template may do with EC2 then."""

import re
from collections.abc import Mapping

import pytest

from architecture.conftest import Template, as_list
from architecture.role_policies import Resolver, RolePolicies
from fakes.repository import FUNCTIONS
from relaunch.setting_values import InvalidSettingsError
from relaunch.settings import Settings

ON = {
    "MachineSubnets": "us-east-1a=subnet-0a1,us-east-1b=subnet-0b2",
    "MachineLaunchTemplates": "gpu=lt-0a1b:7,neuron=lt-0c2d:3",
    "MachineInstanceRoleArn": "arn:aws:iam::111122223333:role/relaunch/machines",
}
OFF = {"CapacityProviders": "g5=g5.xlarge/spot"}
NEEDED = tuple(ON)
EC2 = "arn:aws:ec2:us-east-1:111122223333"
OUR_TEMPLATE = f"{EC2}:launch-template/lt-0a1b"
TAG = {"aws__RequestTag/relaunch__stack": "relaunch"}
INSTANCE = {
    **TAG,
    "ec2__MetadataHttpTokens": "required",
    "ec2__LaunchTemplate": OUR_TEMPLATE,
    "ec2__InstanceProfile": "arn:aws:iam::111122223333:instance-profile/relaunch/machines",
}
ENDING = ["RequestMachineFunction", "ReconcileFunction"]
# Whoever saves a job may have to let its machine go, which others then end.
ASKING = {
    *ENDING,
    "SubmitJobFunction",
    "JobApiFunction",
    "LaunchAttemptFunction",
    "ObserveCapacityFunction",
    "ObserveTaskFunction",
}
WITH_MACHINES = {"ec2:TerminateInstances", "ecs:DeregisterContainerInstance"}


@pytest.fixture(scope="module")
def requesting(template: Template) -> RolePolicies:
    return RolePolicies(template, "RequestMachineRole", **ON)


def without(context: Mapping[str, str], key: str, **changed: str) -> dict[str, str]:
    return {name: value for name, value in context.items() if name != key} | changed


class TestParameters:
    @pytest.mark.parametrize(
        ("given", "failing"),
        [
            pytest.param({"CapacityProviders": "g5=g5.xlarge/spot"}, [], id="capacity providers"),
            pytest.param(ON, [], id="machines"),
            pytest.param({**ON, "CapacityProviders": "g5=g5.xlarge/spot"}, [], id="both"),
            pytest.param({}, ["JobsNeedMachines"], id="neither"),
            *(
                pytest.param(
                    {
                        "CapacityProviders": "g5=g5.xlarge/spot",
                        **{name: ON[name] for name in NEEDED if name != missing},
                    },
                    ["MachinesNeedAllThree"],
                    id=f"without {missing}",
                )
                for missing in NEEDED
            ),
        ],
    )
    def test_what_machines_need_is_asked_for_before_anything_is_made(
        self, template: Template, given: dict[str, str], failing: list[str]
    ) -> None:
        resolver = Resolver(template, **given)
        failed = {
            name: assertion["AssertDescription"]
            for name, assertions in template.assertions.items()
            for assertion in assertions
            if not resolver.resolve(assertion["Assert"])
        }

        assert list(failed) == failing
        assert all(name in text for name, text in failed.items() for name in ("MachineSubnets",))

    @pytest.mark.parametrize(("notices", "failing"), [("on", False), ("off", True)])
    def test_a_token_for_commit_statuses_needs_notices(self, template: Template, notices: str, failing: bool) -> None:
        resolver = Resolver(template, Notices=notices, GithubStatusTokenSecretArn="arn:aws:secretsmanager:…:secret:a")
        ((assertion,),) = [each for name, each in template.assertions.items() if name.startswith("CommitStatuses")]

        assert (not resolver.resolve(assertion["Assert"])) == failing

    def test_rules_use_only_functions_that_cloudformation_evaluates_in_rules(self, template: Template) -> None:
        # "Rule-specific intrinsic functions", AWS CloudFormation User Guide.
        used = set(re.findall(r"'(Fn::\w+)'", str(template.assertions)))

        assert used <= {"Fn::And", "Fn::Or", "Fn::Not", "Fn::Equals"}

    @pytest.mark.parametrize(
        ("name", "value", "is_taken"),
        [
            *(("MachineSubnets", each, True) for each in ("", "us-east-1a=subnet-0a1", ON["MachineSubnets"])),
            ("MachineSubnets", "us-west-2-lax-1a=subnet-0123456789abcdef0", True),
            *(
                ("MachineSubnets", each, False)
                for each in ("subnet-0a1", "us-east-1a=vpc-0a1", "us-east-1a:subnet-0a1")
            ),
            *(("MachineLaunchTemplates", each, True) for each in ("", "gpu=lt-0a1b:7", ON["MachineLaunchTemplates"])),
            *(("MachineLaunchTemplates", each, False) for each in ("lt-0a1b:7", "gpu=lt-0a1b", "gpu=lt-0a1b:$Latest")),
            *(("MachineLaunchTemplates", each, False) for each in ("gpu=lt-0a1b:$Default", "cpu=lt-0a1b:1")),
            ("MachineInstanceRoleArn", ON["MachineInstanceRoleArn"], True),
            *(
                ("MachineInstanceRoleArn", each, False)
                for each in ("machines", "*", "arn:aws:iam::111122223333:role/*")
            ),
            *(("MaxMachinesPricePerHour", each, True) for each in ("none", "100", "0.5", "99.5")),
            *(("MaxMachinesPricePerHour", each, False) for each in ("", "0", "0.0", "-1", "many")),
        ],
    )
    def test_take_what_the_settings_can_read(
        self, template: Template, name: str, value: str, *, is_taken: bool
    ) -> None:
        assert (re.fullmatch(template.parameters[name]["AllowedPattern"], value) is not None) is is_taken
        environment = read_environment(template, {**ON, "CapacityProviders": "g5=g5.xlarge/spot", name: value})
        if is_taken and value:
            Settings.from_environment(environment)
        elif not is_taken:
            with pytest.raises(InvalidSettingsError):
                Settings.from_environment(environment)

    def test_functions_and_the_command_are_told_the_same(self, template: Template) -> None:
        values = Resolver(template, **ON)
        outputs = {
            name: each["Value"] for name, each in template.outputs.items() if values.holds(each.get("Condition"))
        }

        told = Settings.from_environment(read_environment(template, ON))
        read = Settings.from_stack_outputs(values.resolve(outputs))

        assert told.machines == read.machines
        assert told.limits == read.limits
        assert (told.machines.stack, told.machines.queue_url) == ("relaunch", "MachinesQueue")
        assert told.machines.is_on

    def test_machines_are_off_unless_they_are_asked_for(self, template: Template) -> None:
        providers = {"CapacityProviders": "g5=g5.xlarge/spot"}
        off = Settings.from_environment(read_environment(template, providers))

        assert not off.machines.is_on
        assert not Resolver(template, **providers).holds("HasMachines")
        # An output must not be empty.
        assert {template.outputs[name].get("Condition") for name in NEEDED} == {"HasMachines"}


def read_environment(template: Template, parameters: Mapping[str, str]) -> dict[str, str]:
    variables = template.functions["ReconcileFunction"]["Environment"]["Variables"]
    resolved = Resolver(template, **parameters).resolve(variables)
    return {name: str(value) for name, value in resolved.items()}


class TestOff:
    @pytest.mark.parametrize("function", FUNCTIONS)
    def test_no_function_may_launch_anything(self, template: Template, function: str) -> None:
        policies = RolePolicies(template, function.replace("Function", "Role"), **OFF)
        statements = [each for document in policies.documents for each in document["Statement"]]
        actions = {action for each in statements for action in as_list(each["Action"])}

        assert (
            actions & {"ec2:CreateFleet", "ec2:RunInstances", "ec2:CreateTags", "ssm:GetParameter", "ssm:GetParameters"}
            == set()
        )

    @pytest.mark.parametrize("function", ENDING)
    def test_what_lives_is_still_ended(self, template: Template, function: str) -> None:
        policies = RolePolicies(template, function.replace("Function", "Role"), **OFF)
        cluster = "arn:aws:ecs:us-east-1:111122223333:cluster/relaunch"
        ours = {"ec2__ResourceTag/relaunch__stack": "relaunch"}

        assert policies.allows("ec2:TerminateInstances", f"{EC2}:instance/i-0a1b2c3d4e5f60718", **ours)
        assert policies.allows("ec2:DescribeInstances", "*")
        assert policies.allows("ecs:DeregisterContainerInstance", cluster)

    def test_the_queue_is_polled_and_all_that_ask_it_still_may(self, template: Template) -> None:
        assert template.sources["RequestMachineFunctionMachines"].get("Enabled", True) is True
        for function in ASKING:
            policies = RolePolicies(template, function.replace("Function", "Role"), **OFF)
            assert policies.allows("sqs:SendMessage", "MachinesQueue.Arn")


class TestRequesting:
    def test_only_request_machine_may_launch(self, template: Template) -> None:
        for action in (
            "ec2:CreateFleet",
            "ec2:RunInstances",
            "ec2:CreateTags",
            "ssm:GetParameter",
            "ssm:GetParameters",
        ):
            assert list(template.allowing(action)) == ["RequestMachineFunction"]

    @pytest.mark.parametrize("function", FUNCTIONS)
    def test_nobody_may_create_roles_or_change_a_running_instance(self, template: Template, function: str) -> None:
        allowed = {
            "ec2:CreateFleet", "ec2:RunInstances", "ec2:CreateTags", "ec2:TerminateInstances", "ec2:DescribeInstances",
            "ec2:DescribeInstanceStatus", "ec2:DescribeSpotInstanceRequests", "ec2:DescribeSpotPriceHistory",
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeInstanceTypeOfferings",
            "ec2:GetSpotPlacementScores", "ec2:DescribeCapacityReservations", "iam:PassRole",
        }  # fmt: skip
        actions = {action for each in template.statements_of(function) for action in as_list(each["Action"])}

        assert {action for action in actions if action.startswith(("ec2:", "iam:"))} <= allowed

    @pytest.mark.parametrize("action", ["ec2:CreateFleet", "ec2:RunInstances"])
    @pytest.mark.parametrize("resource", ["launch-template/lt-0a1b", "launch-template/lt-0c2d", "subnet/subnet-0b2"])
    def test_by_our_templates_into_our_subnets(self, requesting: RolePolicies, action: str, resource: str) -> None:
        assert requesting.allows(action, f"{EC2}:{resource}")

    @pytest.mark.parametrize("action", ["ec2:CreateFleet", "ec2:RunInstances"])
    @pytest.mark.parametrize(
        "resource",
        [
            "launch-template/lt-0a1b2",
            "launch-template/lt-0",
            "subnet/subnet-0a",
            "subnet/subnet-0b22",
            "subnet/subnet-",
        ],
    )
    def test_by_no_other_template_into_no_other_subnet(
        self, requesting: RolePolicies, action: str, resource: str
    ) -> None:
        assert not requesting.allows(action, f"{EC2}:{resource}")

    def test_a_fleet_has_the_tag_of_the_stack(self, requesting: RolePolicies) -> None:
        for resource in ("fleet/*", "instance/*", "volume/*"):
            assert requesting.allows("ec2:CreateFleet", f"{EC2}:{resource}", **TAG)
            assert not requesting.allows("ec2:CreateFleet", f"{EC2}:{resource}")
            foreign = {"aws__RequestTag/relaunch__stack": "relaunch-2"}
            assert not requesting.allows("ec2:CreateFleet", f"{EC2}:{resource}", **foreign)

    @pytest.mark.parametrize(
        ("key", "other"),
        [
            ("aws__RequestTag/relaunch__stack", "relaunch-2"),
            ("ec2__MetadataHttpTokens", "optional"),
            ("ec2__LaunchTemplate", f"{EC2}:launch-template/lt-0a1b2"),
            ("ec2__InstanceProfile", "arn:aws:iam::444455556666:instance-profile/relaunch/machines"),
        ],
    )
    def test_an_instance_is_as_our_templates_make_it(self, requesting: RolePolicies, key: str, other: str) -> None:
        instance = f"{EC2}:instance/*"

        assert requesting.allows("ec2:RunInstances", instance, **INSTANCE)
        assert not requesting.allows("ec2:RunInstances", instance, **without(INSTANCE, key))
        assert not requesting.allows("ec2:RunInstances", instance, **{**INSTANCE, key: other})

    def test_its_image_is_amazons_or_our_own_and_its_security_group_the_templates(
        self, requesting: RolePolicies
    ) -> None:
        image, group = "arn:aws:ec2:us-east-1::image/ami-0a1", f"{EC2}:security-group/sg-0a1"

        assert requesting.allows("ec2:RunInstances", image, ec2__Owner="amazon")
        assert requesting.allows("ec2:RunInstances", image, ec2__Owner="111122223333")
        assert not requesting.allows("ec2:RunInstances", image, ec2__Owner="444455556666")
        assert not requesting.allows("ec2:RunInstances", image)
        assert requesting.allows("ec2:RunInstances", group, ec2__IsLaunchTemplateResource="true")
        assert not requesting.allows("ec2:RunInstances", group, ec2__IsLaunchTemplateResource="false")
        assert not requesting.allows("ec2:RunInstances", group)

    @pytest.mark.parametrize("resource", ["network-interface/*", "volume/*", "spot-instances-request/*"])
    def test_what_else_a_launch_makes_is_allowed(self, requesting: RolePolicies, resource: str) -> None:
        assert requesting.allows("ec2:RunInstances", f"{EC2}:{resource}", **TAG)

    @pytest.mark.parametrize("resource", ["capacity-reservation/*", "key-pair/*", "snapshot/*", "placement-group/*"])
    def test_what_no_launch_of_ours_uses_is_not(self, requesting: RolePolicies, resource: str) -> None:
        assert not requesting.allows("ec2:RunInstances", f"{EC2}:{resource}", **INSTANCE)

    def test_tags_are_given_only_to_what_is_made(self, requesting: RolePolicies) -> None:
        for resource in ("fleet/*", "instance/*", "volume/*"):
            for made_by in ("CreateFleet", "RunInstances"):
                assert requesting.allows("ec2:CreateTags", f"{EC2}:{resource}", ec2__CreateAction=made_by, **TAG)
            assert not requesting.allows("ec2:CreateTags", f"{EC2}:{resource}", **TAG)
        assert not requesting.allows("ec2:CreateTags", f"{EC2}:instance/i-0a1", ec2__CreateAction="RunInstances")

    @pytest.mark.parametrize(
        ("role", "service", "is_allowed"),
        [
            ("relaunch/machines", "ec2.amazonaws.com", True),
            ("relaunch/machines", "ecs-tasks.amazonaws.com", False),
            ("relaunch/machines2", "ec2.amazonaws.com", False),
            ("admin", "ec2.amazonaws.com", False),
        ],
    )
    def test_one_role_is_passed_to_ec2_alone(
        self, requesting: RolePolicies, role: str, service: str, *, is_allowed: bool
    ) -> None:
        arn = f"arn:aws:iam::111122223333:role/{role}"

        assert requesting.allows("iam:PassRole", arn, iam__PassedToService=service) is is_allowed

    def test_launching_passes_no_role_to_machines(self, template: Template) -> None:
        launching = RolePolicies(template, "LaunchAttemptRole", **ON)

        assert not launching.allows(
            "iam:PassRole", ON["MachineInstanceRoleArn"], iam__PassedToService="ec2.amazonaws.com"
        )

    def test_only_the_parameters_of_public_images_are_read(self, requesting: RolePolicies) -> None:
        parameter = "/aws/service/ecs/optimized-ami/amazon-linux-2023/gpu/recommended/image_id"

        for action in ("ssm:GetParameter", "ssm:GetParameters"):
            assert requesting.allows(action, f"arn:aws:ssm:us-east-1::parameter{parameter}")
            assert not requesting.allows(action, "arn:aws:ssm:us-east-1:111122223333:parameter/password")


class TestEnding:
    def test_two_functions_may_end_machines_and_the_others_ask_them(self, template: Template) -> None:
        for action in WITH_MACHINES:
            assert list(template.allowing(action)) == ENDING
        assert {name for name in FUNCTIONS if "MachinesQueue" in template.named_for("sqs:SendMessage", name)} == ASKING

    @pytest.mark.parametrize("function", ENDING)
    def test_only_machines_of_this_stack_are_ended(self, template: Template, function: str) -> None:
        policies = RolePolicies(template, function.replace("Function", "Role"), **ON)
        instance = f"{EC2}:instance/i-0a1b2c3d4e5f60718"

        ours, foreign = ({"ec2__ResourceTag/relaunch__stack": stack} for stack in ("relaunch", "relaunch-2"))
        assert policies.allows("ec2:TerminateInstances", instance, **ours)
        assert not policies.allows("ec2:TerminateInstances", instance, **foreign)
        # An instance that ended an hour ago has no tags.
        assert not policies.allows("ec2:TerminateInstances", instance)

    def test_only_from_our_cluster_are_they_removed(self, template: Template) -> None:
        policies = RolePolicies(template, "ReconcileRole", **ON)
        cluster = "arn:aws:ecs:us-east-1:111122223333:cluster"

        assert policies.allows("ecs:DeregisterContainerInstance", f"{cluster}/relaunch")
        assert not policies.allows("ecs:DeregisterContainerInstance", f"{cluster}/other")

    def test_tasks_may_be_run_on_them_as_on_any_machine_of_the_cluster(self, template: Template) -> None:
        # The launch type and the constraint on the instance are no part of the permission.
        launching = RolePolicies(template, "LaunchAttemptRole", **ON)
        definition = "arn:aws:ecs:us-east-1:111122223333:task-definition/relaunch-train:3"
        ours, other = (f"arn:aws:ecs:us-east-1:111122223333:cluster/{name}" for name in ("relaunch", "other"))

        assert launching.allows("ecs:RunTask", definition, ecs__cluster=ours)
        assert not launching.allows("ecs:RunTask", definition, ecs__cluster=other)


def test_requests_of_machines_stay_near_the_rate_of_runinstances(template: Template) -> None:
    # 2 per second; a request makes about one call of RunInstances per second while it lasts.
    (source,) = (
        each for each in template.sources.values() if each["EventSourceArn"]["Fn::GetAtt"][0] == "MachinesQueue"
    )

    assert source["ScalingConfig"]["MaximumConcurrency"] == 2
    assert source["BatchSize"] == 1
    assert "ReservedConcurrentExecutions" not in template.functions["RequestMachineFunction"]
