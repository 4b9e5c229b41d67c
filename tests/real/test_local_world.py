"""In the local world functions respond, permissions are enforced, and events are delivered."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml

from fakes.github_runner import GithubRunner, create_role, running_services
from fakes.webhook import make_request, post, sign
from relaunch.adapters.definition_file.parser import parse_definitions
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.bootstrap import make_dependencies
from relaunch.core.definitions.ownership import Owner
from relaunch.settings import Settings
from relaunch.usecases.register_definitions import compare_definitions, register_definitions
from relaunch_local.attack.requests import Call
from relaunch_local.ecs import EcsError, Purchase
from relaunch_local.repository import REPOSITORY
from relaunch_local.request_guard.credentials import function_access_key
from relaunch_local.stack.account import CHECKPOINTS, DATASETS
from relaunch_local.stack.emulator import ACCOUNT, REGION, RUNNER
from relaunch_local.stack.forwarder import EmulatorTargets
from relaunch_local.stack.local_world import LocalWorld
from relaunch_local.stack.training_cluster import LAUNCH_TEMPLATES, SUBNETS, ZONES, launch_templates

# At a queue, each of 20 seconds.
LOOKS = 15


def invoke(world: LocalWorld, function: str, event: object) -> tuple[str | None, Any]:
    """Return the kind of error, if any, and the response of the function."""
    answer = world.client("lambda").invoke(
        FunctionName=world.deployment.resources[function], Payload=json.dumps(event).encode()
    )
    return answer.get("FunctionError"), json.loads(answer["Payload"].read())


def content_of(path: Path) -> bytes:
    """Return what is in a file; nothing if it is none, or its process has ended."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def access_key(world: LocalWorld, function: str) -> str:
    configuration = world.client("lambda").get_function_configuration(FunctionName=world.deployment.resources[function])
    return function_access_key(configuration["FunctionArn"], configuration["Role"])


def fleet(*, stack: str = "relaunch", template_id: str = LAUNCH_TEMPLATES["gpu"], version: str = "2") -> dict[str, Any]:
    """Return a request of a machine, as request_machine sends it."""
    tags = [{"Key": "relaunch:stack", "Value": stack}, {"Key": "relaunch:machine", "Value": "m-1"}]
    override = {"InstanceType": "g5.xlarge", "SubnetId": SUBNETS[ZONES[0]], "AvailabilityZone": ZONES[0]}
    return {
        "Type": "instant",
        "ClientToken": f"{stack}-{template_id}-{version}",
        "TargetCapacitySpecification": {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {"LaunchTemplateId": template_id, "Version": version},
                "Overrides": [override],
            }
        ],
        "TagSpecifications": [{"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume", "fleet")],
    }


class TestFunctions:
    @pytest.mark.parametrize("queue", ["Intake", "Attempts", "Machines", "Warnings", "TaskChanges"])
    def test_a_message_that_nobody_can_read_goes_to_the_dead_letter_queue_with_its_reason(
        self, world: LocalWorld, queue: str
    ) -> None:
        sqs, outputs = world.client("sqs"), world.deployment.outputs

        sqs.send_message(QueueUrl=outputs[f"{queue}QueueUrl"], MessageBody="not JSON at all")
        received = (
            sqs.receive_message(
                QueueUrl=outputs[f"{queue}DeadLetterQueueUrl"], WaitTimeSeconds=20, MessageAttributeNames=["All"]
            ).get("Messages", [])
            for _ in range(LOOKS)
        )
        (message,) = next(filter(None, received), [])
        sqs.delete_message(QueueUrl=outputs[f"{queue}DeadLetterQueueUrl"], ReceiptHandle=message["ReceiptHandle"])

        assert message["Body"] == "not JSON at all"
        assert set(message["MessageAttributes"]) == {"reason", "first_seen"}

    def test_reconcile_answers_its_schedule(self, world: LocalWorld) -> None:
        error, _ = invoke(world, "ReconcileFunction", {"source": "aws.events", "detail-type": "Scheduled Event"})

        assert error is None

    def test_job_api_says_what_it_does_not_understand(self, world: LocalWorld) -> None:
        error, answer = invoke(world, "JobApiFunction", {"action": "dance"})

        assert error is None
        assert "error" in answer

    def test_the_webhook_takes_what_is_signed_and_refuses_the_rest(self, world: LocalWorld) -> None:
        body = json.dumps({"zen": "Keep it logically awesome."}).encode()
        url, secret = world.deployment.webhook_url, world.deployment.webhook_secret
        of_other_bytes = {"x-hub-signature-256": sign(body + b" ", secret)}

        assert post(url, make_request(body, event="ping", secret=secret)) in {200, 202}
        assert post(url, make_request(body, of_other_bytes, event="ping")) == 401

    def test_the_webhooks_secret_has_no_brace_that_would_make_it_json(self, world: LocalWorld) -> None:
        assert len(world.deployment.webhook_secret) == 48
        assert world.deployment.webhook_secret.isalnum()


@pytest.mark.refused
class TestPermissions:
    def test_a_role_may_read_its_own_queue_and_not_another(self, world: LocalWorld) -> None:
        iam, sqs = world.client("iam"), world.client("sqs")
        urls = [world.deployment.outputs[f"{queue}QueueUrl"] for queue in ("Attempts", "Intake")]
        answers = (sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"]) for url in urls)
        own, other = (answer["Attributes"]["QueueArn"] for answer in answers)
        role = iam.get_role(RoleName=world.deployment.resources["LaunchAttemptRole"])["Role"]["Arn"]

        decisions = {
            arn: iam.simulate_principal_policy(
                PolicySourceArn=role, ActionNames=["sqs:ReceiveMessage"], ResourceArns=[arn]
            )["EvaluationResults"][0]["EvalDecision"]
            for arn in (own, other)
        }

        assert decisions == {own: "allowed", other: "implicitDeny"}

    def test_ecs_knows_each_function_by_its_credentials_and_holds_it_to_its_policy(self, world: LocalWorld) -> None:
        listing = {"cluster": "relaunch"}
        with world.simulator.clock.lock:
            allowed = world.simulator.call("ListTasks", listing, access_key=access_key(world, "LaunchAttemptFunction"))
            with pytest.raises(EcsError, match="not authorized to perform: ecs:ListTasks"):
                world.simulator.call("ListTasks", listing, access_key=access_key(world, "SubmitJobFunction"))
            with pytest.raises(EcsError, match="not authorized"):
                world.simulator.call("ListTasks", listing, access_key="AKIANOBODY")

        assert allowed["taskArns"] == []

    def test_the_deployed_role_runs_no_family_and_passes_no_role_but_those_of_the_parameters(
        self, world: LocalWorld
    ) -> None:
        key = access_key(world, "LaunchAttemptFunction")
        container = {"name": "main", "image": "i", "memory": 64}
        payroll = {"family": "payroll", "containerDefinitions": [container]}
        derived = {"family": "payroll--0123456789abcdef", "containerDefinitions": [container]}
        admin = {
            "family": "relaunch-admin--0123456789abcdef",
            "containerDefinitions": [container],
            "taskRoleArn": "arn:aws:iam::111122223333:role/admin",
        }
        with world.simulator.clock.lock:
            world.simulator.call("RegisterTaskDefinition", payroll, access_key=world.emulator.root.access_key_id)
            with pytest.raises(EcsError, match=r"not authorized to perform: ecs:RunTask .*task-definition/payroll:1"):
                world.simulator.call("RunTask", {"cluster": "relaunch", "taskDefinition": "payroll"}, access_key=key)
            with pytest.raises(EcsError, match="not authorized to perform: ecs:RegisterTaskDefinition"):
                world.simulator.call("RegisterTaskDefinition", derived, access_key=key)
            with pytest.raises(EcsError, match=r"not authorized to perform: iam:PassRole .*role/admin"):
                world.simulator.call("RegisterTaskDefinition", admin, access_key=key)

    def test_the_deployed_role_passes_no_role_to_machines_but_that_of_the_parameters(self, world: LocalWorld) -> None:
        key = access_key(world, "RequestMachineFunction")
        (gpu, _) = launch_templates()
        foreign = replace(
            gpu,
            template_id="lt-0a1b2c3d4e5f6071a",
            versions=(replace(gpu.versions[1], instance_role_arn="arn:aws:iam::111122223333:role/admin"),),
        )
        with world.simulator.clock.lock:
            with pytest.raises(EcsError, match=r"not authorized to perform: ec2:CreateFleet"):
                world.simulator.call_ec2("CreateFleet", fleet(), access_key=access_key(world, "LaunchAttemptFunction"))
            with pytest.raises(EcsError, match=r"ec2:CreateFleet on resource: \S+:fleet/"):
                world.simulator.call_ec2("CreateFleet", fleet(stack="another"), access_key=key)
            world.simulator.fleets.templates.put(foreign)
            with pytest.raises(
                EcsError, match=r"ec2:CreateFleet on resource: \S+:launch-template/lt-0a1b2c3d4e5f6071a"
            ):
                world.simulator.call_ec2(
                    "CreateFleet", fleet(template_id=foreign.template_id, version="1"), access_key=key
                )
            world.simulator.fleets.templates.put(replace(foreign, template_id=gpu.template_id, name=gpu.name))
            answer = world.simulator.call_ec2("CreateFleet", fleet(version="1"), access_key=key)
            world.simulator.fleets.templates.put(gpu)

        assert answer["Instances"] == []
        assert [each["ErrorCode"] for each in answer["Errors"]] == ["UnauthorizedOperation"]

    def test_only_instances_of_the_stack_may_be_terminated(self, world: LocalWorld) -> None:
        with world.simulator.clock.lock:
            other = world.simulator.launch_instance("g5.xlarge", Purchase.ON_DEMAND, ZONES[0], cluster="relaunch")
            for function in ("RequestMachineFunction", "ReconcileFunction"):
                with pytest.raises(EcsError, match=r"not authorized to perform: ec2:TerminateInstances"):
                    world.simulator.call_ec2(
                        "TerminateInstances", {"InstanceIds": [other]}, access_key=access_key(world, function)
                    )
            world.simulator.terminate(other)


class TestEvents:
    @pytest.mark.parametrize(
        ("detail_type", "detail", "rule"),
        [
            (
                "ECS Task State Change",
                {"clusterArn": "arn:aws:ecs:eu-central-1:111122223333:cluster/relaunch"},
                "TaskStateRule",
            ),
            ("ECS Task State Change", {"clusterArn": "arn:aws:ecs:eu-central-1:111122223333:cluster/other"}, None),
            (
                "ECS Container Instance State Change",
                {
                    "clusterArn": "arn:aws:ecs:eu-central-1:111122223333:cluster/relaunch",
                    "status": "ACTIVE",
                    "agentConnected": True,
                    "runningTasksCount": 0,
                },
                "MachineStateRule",
            ),
            (
                "ECS Container Instance State Change",
                {
                    "clusterArn": "arn:aws:ecs:eu-central-1:111122223333:cluster/relaunch",
                    "status": "DRAINING",
                    "agentConnected": True,
                    "attributes": [{"name": "ecs.ami-id"}, {"name": "relaunch.machine", "value": "m-1"}],
                },
                "MachineClosedRule",
            ),
            ("EC2 Spot Instance Interruption Warning", {"instance-id": "i-0"}, "SpotWarningRule"),
            ("EC2 Capacity Reservation Instance Interruption Warning", {"instance-id": "i-0"}, "SpotWarningRule"),
            (
                "Capacity Block Reservation Expiration Warning",
                {"capacity-reservation-id": "cr-0", "end-date": ""},
                "SpotWarningRule",
            ),
            ("EC2 Instance State-change Notification", {"state": "terminated"}, "InstanceStateRule"),
            ("EC2 Instance State-change Notification", {"state": "running"}, None),
        ],
    )
    def test_the_emulators_rules_decide_where_an_event_goes(
        self, world: LocalWorld, detail_type: str, detail: dict[str, Any], rule: str | None
    ) -> None:
        event = {
            "version": "0",
            "id": "6a7e8feb-b491-4cf7-a9f1-bf3703467718",
            "detail-type": detail_type,
            "source": "aws.ecs" if detail_type.startswith("ECS") else "aws.ec2",
            "account": "111122223333",
            "time": "2026-01-01T00:00:00Z",
            "region": "eu-central-1",
            "resources": [],
            "detail": detail,
        }

        matching = EmulatorTargets(world.emulator).matching_rules(event)

        assert matching == ([world.deployment.resources[rule]] if rule else [])


class TestAccount:
    def test_uploads_are_told_to_eventbridge(self, world: LocalWorld) -> None:
        s3 = world.client("s3")

        assert "EventBridgeConfiguration" in s3.get_bucket_notification_configuration(Bucket=DATASETS)
        assert "EventBridgeConfiguration" not in s3.get_bucket_notification_configuration(Bucket=CHECKPOINTS)

    def test_the_newest_active_revision_is_neither_the_last_registered_nor_the_last_by_name(
        self, world: LocalWorld
    ) -> None:
        ecs = world.client("ecs")

        assert ecs.describe_task_definition(taskDefinition="relaunch-trainer")["taskDefinition"]["revision"] == 11
        assert (
            ecs.describe_task_definition(taskDefinition="relaunch-trainer:12")["taskDefinition"]["status"] == "INACTIVE"
        )
        assert (
            ecs.describe_task_definition(taskDefinition="relaunch-trainer-nightly")["taskDefinition"]["revision"] == 1
        )


class TestGuard:
    def test_the_simulator_takes_signed_requests_only(self, world: LocalWorld) -> None:
        call = Call(f"{world.simulator_url}/_relaunch/state", "GET")

        assert call.send().status == 403
        assert call.sign(world.emulator.root, "ecs").send().status == 200
        assert call.sign(world.emulator.root, "ecs").add(Origin="null").send().status == 403

    def test_functions_get_through_to_ecs_with_their_own_credentials(self, world: LocalWorld) -> None:
        assert invoke(world, "ReconcileFunction", {"source": "aws.events", "detail-type": "Scheduled Event"})[0] is None

        with world.simulator.clock.lock:
            callers = {each.access_key for each in world.simulator.requests if each.outcome[0] == "ok"}
        assert access_key(world, "ReconcileFunction") in callers

    def test_the_secret_is_on_no_command_line_and_in_no_file(self, world: LocalWorld) -> None:
        secret = world.emulator.root.secret_access_key.encode()
        files = {path: content_of(path) for path in world.emulator_log.parent.rglob("*")}
        commands = [content_of(path) for path in Path("/proc").glob("[0-9]*/cmdline")]

        assert any(RUNNER.encode() in each for each in commands)
        assert not any(secret in each for each in commands)
        assert world.emulator.endpoint_url.encode() in files[world.emulator_log]
        assert [path for path, content in files.items() if secret in content] == []


class TestGithubAction:
    """The steps of action.yml, run as a runner does, call job_api by its URL with the role of their OIDC token."""

    @pytest.fixture(scope="class")
    @staticmethod
    def role(world: LocalWorld) -> str:
        function = world.client("lambda").get_function_configuration(
            FunctionName=world.deployment.resources["JobApiFunction"]
        )
        return create_role(world.emulator, function["FunctionArn"])

    @pytest.fixture
    def inputs(self, world: LocalWorld, role: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
        """Register a definition; return the inputs for it."""
        for name, value in world.environment().items():
            monkeypatch.setenv(name, value)
        deps = make_dependencies(Settings.from_stack_outputs(world.deployment.outputs), boto3.Session())
        example = yaml.safe_load((REPOSITORY / "examples" / "relaunch.yaml").read_text())["jobs"]["demo"]
        # The parser of YAML 1.1 takes the key `on` for a boolean.
        definition = {key: value for key, value in example.items() if key is not True}
        text = yaml.safe_dump({"jobs": {"action": definition | {"environment": {"TRAIN_STEPS": "20"}}}})
        owner = Owner("", "action.yaml", f"arn:aws:iam::{ACCOUNT}:root")
        definitions = parse_definitions(text, "action.yaml", load_catalogue())
        register_definitions(compare_definitions(definitions, deps.definitions.list_registered(), owner), owner, deps)
        url = world.deployment.job_api_url
        return {"url": url, "aws-region": REGION, "definition": "action", "role-to-assume": role}

    def test_a_dry_run_puts_the_plan_into_the_summary(
        self, world: LocalWorld, inputs: dict[str, str], tmp_path: Path
    ) -> None:
        with running_services(world.emulator) as services:
            planned = GithubRunner(tmp_path, services).use({**inputs, "dry-run": "true"})

        assert (planned.exit_code, planned.outputs["job-id"]) == (0, ""), planned.log
        assert "plan of action, nothing was started" in planned.files["GITHUB_STEP_SUMMARY"]
        assert planned.outputs["offering"] in planned.files["GITHUB_STEP_SUMMARY"]

    def test_a_workflow_starts_and_awaits_a_training_and_its_rerun_finds_it(
        self, world: LocalWorld, inputs: dict[str, str], tmp_path: Path
    ) -> None:
        with running_services(world.emulator) as services:
            runner = GithubRunner(tmp_path, services)
            trained = runner.use({**inputs, "wait": "true", "inputs": '{"learning_rate": 0.1}'})
            again = runner.use({**inputs, "wait": "true", "inputs": '{"learning_rate": 0.1}'}, attempt=2)

        assert trained.exit_code == 0, trained.log
        assert (trained.outputs["state"], trained.outputs["is-new"]) == ("SUCCEEDED", "true")
        assert ": SUCCEEDED, attempt 1 on " in trained.log
        assert (again.exit_code, again.outputs["is-new"]) == (0, "false"), again.log
        assert again.outputs["job-id"] == trained.outputs["job-id"]

    @pytest.mark.usefixtures("held")
    def test_a_cancelled_workflow_cancels_its_job(
        self, world: LocalWorld, inputs: dict[str, str], tmp_path: Path
    ) -> None:
        asked = {**inputs, "wait": "true", "cancel-with-workflow": "true", "idempotency-key": "cancelled"}
        with running_services(world.emulator) as services:
            runner = GithubRunner(tmp_path, services)
            cancelled = runner.use(asked, cancel_when=lambda line: f"job {inputs['definition']}-" in line)

        assert cancelled.exit_code == 1
        (error,) = cancelled.errors
        assert "the workflow was cancelled, and the job with it" in error
        assert cancelled.outputs["state"] in {"CANCELLED", "STOPPING"}

    def test_a_branch_that_the_role_does_not_trust_starts_nothing(
        self, world: LocalWorld, inputs: dict[str, str], tmp_path: Path
    ) -> None:
        with running_services(world.emulator, "repo:acme@1234/vision@5678:ref:refs/heads/other") as services:
            refused = GithubRunner(tmp_path, services).use(inputs)

        assert refused.exit_code == 1
        assert "AccessDenied" in refused.errors[0]
        assert "sub repo:acme@1234/vision@5678:ref:refs/heads/other" in refused.errors[0]

    def test_an_unsigned_request_is_refused(self, world: LocalWorld, inputs: dict[str, str]) -> None:
        assert Call(inputs["url"], body=b'{"action": "submit", "definition": "action"}').send().status == 403
