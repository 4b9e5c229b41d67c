"""A stack whose functions are made by the real bootstrap, and whose every call is evaluated by the function's role."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from fakes.aws import create_jobs_table
from fakes.fleet_region import PROFILE, ROLE, FleetRegion
from relaunch import bootstrap, delivery_bootstrap
from relaunch.adapters.aws.dynamodb.snapshot_item import DynamoDbSnapshots
from relaunch.adapters.aws.dynamodb.stores import DynamoDbStores
from relaunch.adapters.aws.sigv4 import AwsClient
from relaunch.entrypoints.function import FunctionDependencies
from relaunch.ports.deliveries import DeliveryDependencies
from relaunch_local.ecs import InProcessClient, LaunchTemplate, LaunchTemplateVersion
from relaunch_local.ecs.api.in_process import operation_name
from relaunch_local.iam.calls import CalledAccount, CallPermissions
from relaunch_local.iam.permission import Permission
from relaunch_local.iam.policies import PolicyAuthorizer
from relaunch_local.iam.reference import is_without_key
from relaunch_local.templates.document import TemplateDocument, read_template, read_yaml
from relaunch_local.templates.physical import physical_values
from relaunch_local.templates.resolver import Resolver
from relaunch_local.templates.roles import policies_of_role, roles_of_functions

ACCOUNT, REGION, CLUSTER = "111122223333", "us-east-1", "c"
SUFFIX = "1A2B3C4D5E6F"
TABLE = f"relaunch-JobsTable-{SUFFIX}"
CHECKPOINTS = "acme-checkpoints"
CHECKPOINT_KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/0a1b2c3d"
DISK_KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/d15c0000"
RESERVATION = "cr-0b10c0b10c0b10c00"
FAMILY = "trainer"
_VERSION = LaunchTemplateVersion(
    cluster=CLUSTER,
    image_id="resolve:ssm:/aws/service/ecs/optimized-ami/amazon-linux-2023/gpu/recommended/image_id",
    instance_profile_arn=PROFILE,
    instance_role_arn=ROLE,
    disk_key_arn=DISK_KEY,
)
TEMPLATE = LaunchTemplate("lt-1", "hosts", (_VERSION, _VERSION))
PARAMETERS = {
    "ClusterName": CLUSTER,
    "CapacityProviders": "g5-spot=g5.xlarge/spot",
    "CapacityReservations": RESERVATION,
    "MachineSubnets": "us-east-1a=subnet-a,us-east-1b=subnet-b",
    "MachineLaunchTemplates": "gpu=lt-1:2,neuron=lt-1:2",
    "MachineInstanceRoleArn": ROLE,
    "MachineDiskKeyArn": DISK_KEY,
    "CheckpointBuckets": CHECKPOINTS,
    "CheckpointKeyArns": CHECKPOINT_KEY,
    "EksClusterName": "ml",
    "AckKubeconfigSecretArn": f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:ack-AbCdEf",
    "AcsKubeconfigSecretArn": f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:acs-AbCdEf",
    "KubernetesNamespace": "training",
    "TaskDefinitionFamilies": FAMILY,
    "Notices": "on",
    "GithubStatusTokenSecretArn": f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:github-statuses-AbCdEf",
    "NoticeTopicArns": f"arn:aws:sns:{REGION}:{ACCOUNT}:training",
    "SnsTopicArns": f"arn:aws:sns:{REGION}:{ACCOUNT}:features",
    "GithubTokenSecretArn": f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:github-AbCdEf",
}
"""Everything that a stack can have is on."""

TRAINING = "infrastructure/training.yaml"
PEOPLE = {
    "ApplicationStack": "relaunch",
    "CheckpointBucket": CHECKPOINTS,
    "CheckpointKeyArns": CHECKPOINT_KEY,
    "ClusterName": CLUSTER,
    "DataBucket": "acme-datasets",
    "RepositoryName": "trainer",
    "Zone1": "us-east-1a",
}
"""The parameters of the stack with the roles of people."""

Answer = Callable[..., Any]


class RoleWorld:
    """`used` are the permissions that calls of functions required, each with its function as access key."""

    def __init__(self, **parameters: str) -> None:
        template = read_template()
        # CloudFormation names what has no name: stack, logical ID, and what tells it from others.
        made = (*template.of_type("SQS::Queue"), "JobsTable")
        names = {name: f"relaunch-{name}-{SUFFIX}" for name in made}
        values = physical_values(template, ACCOUNT, REGION, names) | {"AWS::StackName": "relaunch"} | PARAMETERS
        self.resolver = Resolver(template, **(values | parameters))
        self.policies = self._policies_of_people()
        self._names: dict[str, str] = {}
        self._variables: dict[str, Mapping[str, Any]] = {}
        self._read_functions(template)
        self.used: list[Permission] = []
        self.refused: list[Permission] = []
        self.sent: list[tuple[str, str]] = []
        """Queue and body of each message that was sent."""
        self.is_throttled = False
        """Whether DynamoDB throttles every call."""
        self.answers: dict[tuple[str, str], Answer] = {}
        """What answers a call of a service that neither moto nor the simulator plays."""
        self._authorize = PolicyAuthorizer(self.policies, is_without_key)
        self._calls = CallPermissions(CalledAccount(ACCOUNT, REGION, {CHECKPOINTS: CHECKPOINT_KEY}))
        self.region = FleetRegion(authorize=self.authorize, launch_templates=[TEMPLATE])
        self._dynamodb: Any = boto3.client("dynamodb", region_name=REGION)
        with suppress(ClientError):
            self._dynamodb.delete_table(TableName=TABLE)
        create_jobs_table(self._dynamodb, TABLE)
        self.stores = DynamoDbStores(self._dynamodb, TABLE)
        self.snapshots = DynamoDbSnapshots(self._dynamodb, TABLE)

    def _read_functions(self, template: TemplateDocument) -> None:
        shared = read_yaml("template.yaml")["Globals"]["Function"]["Environment"]["Variables"]
        for logical_id, role in roles_of_functions(template).items():
            own = template.resources[logical_id]["Properties"].get("Environment", {}).get("Variables", {})
            name = self._names[logical_id] = own["POWERTOOLS_SERVICE_NAME"]
            self.policies[name] = policies_of_role(template, role, self.resolver)
            self._variables[name] = self.resolver.resolve({**shared, **own})

    def _policies_of_people(self) -> dict[str, list[Mapping[str, Any]]]:
        template = read_template(TRAINING)
        values = physical_values(template, ACCOUNT, REGION) | PEOPLE
        resolver = Resolver(template, **values)
        return {role: policies_of_role(template, role, resolver) for role in ("ReaderRole", "OperatorRole")}

    def outputs(self) -> dict[str, str]:
        """Return the outputs of the stack, as whoever may describe it reads them."""
        found = read_yaml("template.yaml")["Outputs"]
        return {
            name: str(self.resolver.resolve(each["Value"]))
            for name, each in found.items()
            if self.resolver.holds(each.get("Condition"))
        }

    def session(self, caller: str) -> Any:
        """Return what stands for a session of boto3 with the credentials of a function or a role of people."""
        return SimpleNamespace(
            region_name=REGION,
            client=lambda service, **_: _Client(self, caller, service),
            get_available_regions=lambda *_, **__: [REGION],
            get_partition_for_region=lambda _region: "aws",
            # Nothing is kept for a caller without an access key.
            get_credentials=lambda: None,
        )

    def authorize(self, permission: Permission) -> bool:
        """Note and evaluate a permission; who is no function may do everything.

        Functions may survive a refusal, so the stories fail by `refused`.
        """
        if permission.access_key not in self.policies:
            return True
        self.used.append(permission)
        is_allowed = self._authorize(permission)
        if not is_allowed:
            self.refused.append(permission)
        return is_allowed

    def check_call(self, function: str, service: str, operation: str, parameters: Mapping[str, Any]) -> None:
        """Evaluate a call of a function; raises botocore's error of a call that is refused."""
        for permission in self._calls.required(function, service, operation, parameters):
            if not self.authorize(permission):
                raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, operation)

    @contextmanager
    def function(self, name: str) -> Iterator[FunctionDependencies]:
        """The dependencies of a function, as its bootstrap makes them from its environment."""
        with self._environment(name):
            yield bootstrap.function()

    @contextmanager
    def refreshing(self) -> Iterator[Any]:
        """The dependencies of refresh_offerings."""
        with self._environment("refresh_offerings"):
            yield bootstrap.refresh_dependencies()

    @contextmanager
    def sweeping(self, api_url: str, webhook_url: str) -> Iterator[DeliveryDependencies]:
        """The dependencies of refresh_offerings for a sweep of failed deliveries at an API of GitHub."""
        given = {"RELAUNCH_GITHUB_API_URL": api_url, "RELAUNCH_WEBHOOK_URL": webhook_url}
        with self._environment("refresh_offerings", given):
            yield delivery_bootstrap.delivery_dependencies()

    @contextmanager
    def webhook(self) -> Iterator[AwsClient]:
        """The client of github_webhook, which uses no SDK."""
        client = AwsClient({"AWS_REGION": REGION})

        def call(operation: str, parameters: Mapping[str, str]) -> Mapping[str, object]:
            service = {"GetSecretValue": "secretsmanager", "SendMessage": "sqs"}[operation]
            self.check_call("github_webhook", service, operation, parameters)
            return {}

        with pytest.MonkeyPatch.context() as seam:
            seam.setattr(client, "_call", call)
            yield client

    def name_of(self, logical_id: str) -> str:
        """Return the name of a function, which it calls itself in logs and metrics."""
        return self._names[logical_id]

    def give(self, function: str, **variables: str) -> None:
        """Give a function other values of its environment variables."""
        self._variables[function] = {**self._variables[function], **variables}

    def variable(self, function: str, name: str) -> str:
        """Return an environment variable of a function."""
        return str(self._variables[function][name])

    @contextmanager
    def _environment(self, name: str, given: Mapping[str, str] | None = None) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as seam:
            for variable, value in {**self._variables[name], **(given or {})}.items():
                seam.setenv(variable, str(value))
            for module in (bootstrap, delivery_bootstrap):
                clients = bootstrap.Clients(self.session(name).client, REGION)
                seam.setattr(module, "environment_clients", lambda clients=clients: clients)
                seam.setattr(module, "SystemClock", lambda: self.region.clock)
            for made in (bootstrap.function, bootstrap.refresh_dependencies):
                made.cache_clear()
            yield
            for made in (bootstrap.function, bootstrap.refresh_dependencies):
                made.cache_clear()

    def answer(self, function: str, service: str, method: str, parameters: dict[str, Any]) -> Any:
        """Answer a call of a function."""
        operation = operation_name(method)
        if service in ("ecs", "ec2") and (service, operation) not in self.answers:
            return getattr(InProcessClient(self.region.simulator, service, access_key=function), method)(**parameters)
        if service in ("ecs", "ec2"):
            self.authorize(Permission(function, f"{service}:{operation}", "*"))
        else:
            self.check_call(function, service, operation, parameters)
        if service == "sqs":
            return self._queue(operation, parameters)
        if service == "dynamodb" and self.is_throttled:
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}, operation)
        if service == "dynamodb":
            return getattr(self._dynamodb, method)(**parameters)
        return self.answers[service, operation](**parameters)

    def _queue(self, operation: str, parameters: Mapping[str, Any]) -> Any:
        if operation == "SendMessage":
            queue = parameters["QueueUrl"].removesuffix(f"-{SUFFIX}").rpartition("-")[2]
            self.sent.append((queue, parameters["MessageBody"]))
        counts = dict.fromkeys(parameters.get("AttributeNames", ()), "0")
        return {"MessageId": "m", "Successful": [], "Failed": [], "Attributes": counts}


class _Client:
    """A client of boto3, as far as functions use one."""

    meta = SimpleNamespace(endpoint_url="")

    def __init__(self, world: RoleWorld, function: str, service: str) -> None:
        self._world = world
        self._function = function
        self._service = service

    def __getattr__(self, method: str) -> Answer:
        return lambda **parameters: self._world.answer(self._function, self._service, method, parameters)

    def get_paginator(self, method: str) -> Any:
        def paginate(**parameters: Any) -> Iterator[Any]:
            parameters.pop("PaginationConfig", None)
            yield getattr(self, method)(**parameters)

        return SimpleNamespace(paginate=paginate)


_ids = itertools.count(1)


def unique(prefix: str) -> str:
    """Return a name that no other call returns."""
    return f"{prefix}-{next(_ids)}"


def of_function(used: list[Permission], function: str) -> list[Permission]:
    """Return the permissions of a function, each once."""
    found: dict[Any, Permission] = {}
    for each in used:
        if each.access_key == function:
            found.setdefault((each.action, each.resource, tuple(sorted(each.context.items(), key=str))), each)
    return [replace(each) for each in found.values()]
