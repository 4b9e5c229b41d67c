"""An AWS account in process that has everything jobs need, for a test to break.

moto has it, but for what moto does not know: quotas of EC2, Lambda's concurrency and the consoles of instances are
answered here, in the shape of the service's own model. So are spot prices: moto has one of every type in every zone,
and writing and reading all of them takes as long as everything else that the doctor does. `denied` are the calls that
the caller may not make.
"""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from botocore.validate import ParamValidator

from fakes.account_session import shared_session
from fakes.aws import REGION, create_jobs_table
from fakes.cli_session import STACK_OUTPUTS, create_stack
from fakes.moto_state import MotoState
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement
from relaunch.core.definitions.definition import ImageTrigger, JobDefinition, S3Trigger
from relaunch.core.definitions.ownership import Owner
from relaunch.usecases.arrange_upload_rules import widen_upload_rules
from relaunch_cli.account_readers.diagnosis import StackAccess
from relaunch_cli.aws.connection import AwsConnection

ACCOUNT = "123456789012"
TRUST = {"Effect": "Allow", "Principal": {"Service": "ecs-tasks.amazonaws.com"}, "Action": "sts:AssumeRole"}
CONTAINER: Mapping[str, Any] = {
    "name": "main",
    "image": "public.example.com/trainer:1",
    "memory": 8192,
    "cpu": 2048,
    "command": ["python", "-m", "train"],
    "resourceRequirements": [{"type": "GPU", "value": "1"}],
}
# Of the stack, by logical ID, with their inline policies.
ROLES: Mapping[str, tuple[str, ...]] = {
    "SubmitJobRole": ("SubmitJob", "AskForMachines"),
    "RefreshOfferingsRole": ("RefreshOfferings",),
}
READING = ("Describe", "Get", "List", "Head", "Query")
"""What the names of operations begin with that change nothing."""
_USER_DATA = "#!/bin/bash\nreadonly ACCELERATOR=gpu CLUSTER=relaunch\n"
JOINED_CONSOLE = (
    "[   12.3] cloud-init[1720]: Cloud-init v. 22.2.2 finished at Mon, 23 Nov 2026 10:00:12 +0000.\n"
    "[  OK  ] Started ecs.service - Amazon Elastic Container Service - container agent.\n"
)


class _Connection(AwsConnection):
    def __init__(self, bed: "AccountBed") -> None:
        super().__init__("relaunch")
        self.__dict__["_session"] = bed.session
        self._bed = bed

    @property
    def access(self) -> StackAccess:
        """The access, at a time after the launch of any instance."""
        found = super().access
        return replace(found, deps=replace(found.deps, clock=_LaterClock(self._bed.later)))


class _LaterClock:
    def __init__(self, later: timedelta) -> None:
        self._later = later

    def now(self) -> datetime:
        return datetime.now(UTC) + self._later


class AccountBed:
    """A whole account, in moto, which must be active; each attribute can be broken before the doctor looks."""

    def __init__(self) -> None:
        self.session: Any = shared_session()
        self.session.bed = self
        self._is_changed = False
        self._set_answers()
        self._build()
        self._is_changed = False
        self._made = {name: self.__dict__[name] for name in self.__dict__.keys() - {"session"}}
        self._moto = MotoState()

    def restore(self) -> None:
        """Make it whole again: every attribute, and moto where a call has changed that."""
        if self._is_changed:
            self._moto.restore()
        self.__dict__.update(self._made)
        self.outputs = dict(self.outputs)
        self._set_answers()

    def _set_answers(self) -> None:
        self.denied: set[str] = set()
        self.denies_all = False
        self.throttled: set[str] = set()
        self.failures: dict[str, Exception] = {}
        self.quotas = {"L-DB2E81BA": 64.0, "L-3819A6DF": 64.0, "L-417A185B": 0.0, "L-7212CCBC": 0.0, "L-C4BD4855": 0.0}
        self.requested: dict[str, tuple[str, float]] = {}
        self.concurrency = (1000, 970)
        self.reserved: dict[str, int | None] = {"ObserveCapacityFunction": 10, "GithubWebhookFunction": 20}
        self.consoles: dict[str, str] = {}
        # moto takes EventBridgeConfiguration, and answers a configuration without it.
        self.notifications: dict[str, dict[str, Any]] = {"acme-data": {"EventBridgeConfiguration": {}}}
        # moto's instances are launched at the time of the wall clock.
        self.later = timedelta(hours=1)
        self.calls: list[str] = []
        self.connect()

    def client(self, service: str) -> Any:
        """Return a client of the account's owner."""
        return self.session.client(service)

    def __getattr__(self, service: str) -> Any:
        """Return a client: `bed.ec2`."""
        if service.startswith("_"):
            raise AttributeError(service)
        return self.client(service)

    def answer(self, model: Any, params: Mapping[str, Any]) -> Any:
        """Answer what moto does not know, and refuse what is denied; None leaves it to moto."""
        service = model.service_model.service_id.hyphenize()
        call = f"{service}:{model.name}"
        self.calls.append(call)
        self._is_changed = self._is_changed or not model.name.startswith(READING)
        if call in self.failures:
            raise self.failures[call]
        if call in self.throttled:
            return _refusal(400, "ThrottlingException", "Rate exceeded")
        if call in self.denied or (self.denies_all and call != "sts:GetCallerIdentity"):
            return _refusal(403, "AccessDeniedException", f"not authorized to perform: {call}")
        known: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "service-quotas:GetServiceQuota": self._quota,
            "service-quotas:ListRequestedServiceQuotaChangeHistory": self._requests,
            "lambda:GetAccountSettings": self._settings,
            "lambda:GetFunctionConcurrency": self._function_concurrency,
            "cloudformation:DescribeStackResource": self._resource,
            "cloudformation:ListStackResources": self._resources,
            "ec2:GetConsoleOutput": self._console,
            "ec2:DescribeSpotPriceHistory": self._spot_prices,
            "s3:GetBucketNotificationConfiguration": self._notifications,
        }
        if call not in known:
            return None
        answer = known[call](params)
        if answer is None or isinstance(answer, tuple):
            return answer
        report = ParamValidator().validate(answer, model.output_shape)
        assert not report.has_errors(), report.generate_report()
        return SimpleNamespace(status_code=200, headers={}), {**answer, "ResponseMetadata": {"HTTPStatusCode": 200}}

    def _quota(self, params: Mapping[str, Any]) -> Any:
        body = json.loads(params["body"])
        if body["ServiceCode"] != "ec2" or body["QuotaCode"] not in self.quotas:
            return _refusal(400, "NoSuchResourceException", "no such quota")
        return {"Quota": {"QuotaCode": body["QuotaCode"], "Value": self.quotas[body["QuotaCode"]]}}

    def _requests(self, params: Mapping[str, Any]) -> Any:
        wanted = json.loads(params["body"])["Status"]
        found = [
            {"QuotaCode": code, "DesiredValue": desired, "Status": status}
            for code, (status, desired) in self.requested.items()
            if status == wanted
        ]
        return {"RequestedQuotas": found}

    def _settings(self, params: Mapping[str, Any]) -> Any:
        names = ("ConcurrentExecutions", "UnreservedConcurrentExecutions")
        return {"AccountLimit": dict(zip(names, self.concurrency, strict=True))}

    def _resource(self, params: Mapping[str, Any]) -> Any:
        name = params["body"]["LogicalResourceId"]
        if name not in (*self.reserved, "JobApiFunction", "SubmitJobFunction"):
            return _refusal(400, "ValidationError", f"Resource {name} does not exist")
        return {
            "StackResourceDetail": {
                "LogicalResourceId": name,
                "PhysicalResourceId": f"relaunch-{name}",
                "ResourceType": "AWS::Lambda::Function",
                "LastUpdatedTimestamp": 1700000000,
                "ResourceStatus": "CREATE_COMPLETE",
            }
        }

    def _resources(self, _: Mapping[str, Any]) -> Any:
        found = [
            {
                "LogicalResourceId": logical_id,
                "PhysicalResourceId": f"relaunch-{logical_id}",
                "ResourceType": "AWS::IAM::Role" if logical_id in ROLES else "AWS::IAM::Policy",
                "LastUpdatedTimestamp": 1700000000,
                "ResourceStatus": "CREATE_COMPLETE",
            }
            for logical_id in (*ROLES, "AskForMachinesPolicy")
        ]
        return {"StackResourceSummaries": found}

    def _function_concurrency(self, params: Mapping[str, Any]) -> Any:
        reserved = self.reserved.get(params["url_path"].split("/")[-2].removeprefix("relaunch-"))
        return {} if reserved is None else {"ReservedConcurrentExecutions": reserved}

    def _console(self, params: Mapping[str, Any]) -> Any:
        instance = params["body"]["InstanceId"]
        output = base64.b64encode(self.consoles.get(instance, "").encode()).decode()
        return {"InstanceId": instance, "Output": output}

    def _spot_prices(self, params: Mapping[str, Any]) -> Any:
        price = {"InstanceType": "g5.xlarge", "SpotPrice": "0.4", "Timestamp": datetime.now(UTC)}
        return {"SpotPriceHistory": [price | {"AvailabilityZone": f"{REGION}{zone}"} for zone in "abc"]}

    def _notifications(self, params: Mapping[str, Any]) -> Any:
        return self.notifications.get(urlsplit(params["url"]).netloc.partition(".")[0])

    def _build(self) -> None:
        self._build_roles()
        self._build_network()
        self._build_machines()
        self._build_cluster()
        self._build_buckets()
        queue = self.sqs.create_queue(QueueName="intake-dead")["QueueUrl"]
        self.dead_letters = queue
        self.outputs = {
            **STACK_OUTPUTS,
            "CapacityProviders": "g5=g5.xlarge/on-demand",
            "StackName": "relaunch",
            "MachinesQueueUrl": queue,
            "MachineSubnets": f"us-east-1a={self.subnet}",
            "MachineLaunchTemplates": f"gpu={self.template}:1",
            "MachineInstanceRoleArn": f"arn:aws:iam::{ACCOUNT}:role/relaunch/machines",
            "MachineDiskGiB": "100",
            "MachineWarmMinutes": "0",
            "MachineRegistrationMinutes": "8",
            "MachineStartOnRebalance": "false",
            "MachineTaskStop": "at-warning",
            "MaxMachines": "20",
            "MaxMachinesPricePerHour": "none",
            "CheckpointBuckets": "acme-checkpoints",
            "UploadRulePrefix": "relaunch-relaunch-",
            "UploadsQueueArn": f"arn:aws:sqs:us-east-1:{ACCOUNT}:uploads",
            "IntakeDeadLetterQueueArn": f"arn:aws:sqs:us-east-1:{ACCOUNT}:intake-dead",
            "IntakeDeadLetterQueueUrl": queue,
        }
        create_jobs_table(self.dynamodb, "jobs")
        create_stack("relaunch", self.outputs)
        self.definition = JobDefinition(
            name="resnet",
            task_definition="relaunch-trainer",
            accelerator=AcceleratorRequirement(gpu=GpuRequirement(count=1)),
            container="main",
            triggers=(S3Trigger("acme-data", "in/"), ImageTrigger("relaunch/trainer", "{sha}")),
            checkpoint_uri="s3://acme-checkpoints/resnet/",
        )
        self.save(self.definition)
        rules = self.connection.upload_rules
        widen_upload_rules([self.definition], rules, lambda seconds: None)

    def create_other_stack(self) -> None:
        """Create a stack of another application under the name, and connect to it."""
        create_stack("relaunch", {})
        self.connect()

    def connect(self) -> None:
        """Connect anew, as another command does: nothing that was read is kept."""
        self.connection = _Connection(self)

    def save(self, definition: JobDefinition) -> None:
        """Register a definition in place of the one of its name."""
        store = self.connection.deps.definitions
        before = {each.definition.name: each for each in store.list_registered()}.get(definition.name)
        store.save_definition(definition, Owner("", "relaunch.yaml", "ada"), version=before.version if before else 0)

    def _build_roles(self) -> None:
        for service in ("ecs", "spot"):
            self.iam.create_service_linked_role(AWSServiceName=f"{service}.amazonaws.com")
        for name in ("task", "execution", "machines"):
            self.create_role(name)
        for logical_id in ROLES:
            self.create_role(f"relaunch-{logical_id}", "/", Principal={"Service": "lambda.amazonaws.com"})
        for logical_id, policy in ((role, each) for role, policies in ROLES.items() for each in policies):
            self.put_policy(logical_id, policy)
        self.iam.create_instance_profile(InstanceProfileName="machines", Path="/relaunch/")
        self.iam.add_role_to_instance_profile(InstanceProfileName="machines", RoleName="machines")

    def create_role(self, name: str, path: str = "/relaunch/", **statement: Any) -> str:
        """Create a role that tasks may assume, unless the statement says otherwise, and return its ARN."""
        policy = json.dumps({"Version": "2012-10-17", "Statement": [{**TRUST, **statement}]})
        made = self.iam.create_role(RoleName=name, Path=path, AssumeRolePolicyDocument=policy)
        return str(made["Role"]["Arn"])

    def put_policy(self, logical_id: str, name: str) -> None:
        """Add an inline policy to a role of the stack."""
        allow = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
        self.iam.put_role_policy(RoleName=f"relaunch-{logical_id}", PolicyName=name, PolicyDocument=policy)

    def _build_network(self) -> None:
        subnets = self.ec2.describe_subnets()["Subnets"]
        chosen = next(each for each in subnets if each["AvailabilityZone"] == "us-east-1a")
        self.subnet, self.vpc = chosen["SubnetId"], chosen["VpcId"]
        tables = self.ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [self.vpc]}])["RouteTables"]
        self.route_table = tables[0]["RouteTableId"]
        self.gateway = self.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        self.ec2.attach_internet_gateway(InternetGatewayId=self.gateway, VpcId=self.vpc)
        self.ec2.create_route(RouteTableId=self.route_table, DestinationCidrBlock="0.0.0.0/0", GatewayId=self.gateway)

    def _build_machines(self) -> None:
        self.image = self.ec2.register_image(Name="ecs-optimized", Architecture="x86_64")["ImageId"]
        self.ssm.put_parameter(Name="/acme/ami", Value=self.image, Type="String")
        self.template = self.create_template("machines", ImageId="resolve:ssm:/acme/ami")

    def create_template(self, name: str, **data: Any) -> str:
        """Create a launch template and return its ID."""
        made = self.ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
        return str(made["LaunchTemplate"]["LaunchTemplateId"])

    def _build_cluster(self) -> None:
        provider = self.create_template("g5", ImageId=self.image, InstanceType="g5.xlarge")
        self.autoscaling.create_auto_scaling_group(
            AutoScalingGroupName="g5",
            MinSize=0,
            MaxSize=4,
            DesiredCapacity=0,
            AvailabilityZones=["us-east-1a"],
            LaunchTemplate={"LaunchTemplateId": provider, "Version": "1"},
            NewInstancesProtectedFromScaleIn=True,
        )
        self.create_provider()
        self.ecs.create_cluster(clusterName="relaunch", capacityProviders=["g5"])
        self.register()

    def create_provider(self, **settings: Any) -> None:
        """Create the capacity provider g5."""
        groups = self.autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"]
        self.ecs.create_capacity_provider(
            name="g5",
            autoScalingGroupProvider={
                "autoScalingGroupArn": groups[0]["AutoScalingGroupARN"],
                "managedScaling": {"status": "ENABLED"},
                "managedTerminationProtection": "ENABLED",
                **settings,
            },
        )

    def register(self, task_role: str = "task", execution_role: str = "execution", **container: Any) -> None:
        """Register a revision with these roles, by name or ARN, and with changes of its container."""
        arns = [
            name if name.startswith("arn:") else f"arn:aws:iam::{ACCOUNT}:role/relaunch/{name}"
            for name in (task_role, execution_role)
        ]
        self.ecs.register_task_definition(
            family="relaunch-trainer",
            containerDefinitions=[{**CONTAINER, **container}],
            taskRoleArn=arns[0],
            executionRoleArn=arns[1],
        )

    def _build_buckets(self) -> None:
        for name in ("acme-checkpoints", "acme-data"):
            self.s3.create_bucket(Bucket=name)
        self.ecr.create_repository(repositoryName="relaunch/trainer")

    def run_instance(self, console: str = "", user_data: str = _USER_DATA, *, has_profile: bool = True) -> str:
        """Run a machine of the stack, which never joins, and return its ID."""
        profile = {"IamInstanceProfile": {"Name": "machines"}} if has_profile else {}
        answer = self.ec2.run_instances(
            ImageId=self.image,
            InstanceType="g5.xlarge",
            MinCount=1,
            MaxCount=1,
            UserData=user_data,
            **profile,
            NetworkInterfaces=[{"DeviceIndex": 0, "SubnetId": self.subnet, "AssociatePublicIpAddress": True}],
            TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "relaunch:stack", "Value": "relaunch"}]}],
        )
        instance = str(answer["Instances"][0]["InstanceId"])
        self.consoles[instance] = console
        return instance


def _refusal(status: int, code: str, message: str) -> tuple[Any, dict[str, Any]]:
    error = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return SimpleNamespace(status_code=status, headers={}, raw=None), error
