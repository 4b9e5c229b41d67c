"""Authorizes every call of a function by the function's role in the template, as AWS does."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any

from botocore.exceptions import ClientError

from relaunch.adapters.aws.errors import aws_errors
from relaunch.core.machines.settings import MachineSettings
from relaunch_local.ecs.api.in_process import operation_name
from relaunch_local.iam.calls import CalledAccount, CallPermissions
from relaunch_local.iam.permission import ContextValue, Permission
from relaunch_local.iam.policies import PolicyAuthorizer, PolicyDocument
from relaunch_local.iam.reference import is_without_key
from relaunch_local.simulation.aws.runtime import Runtime
from relaunch_local.simulation.aws.store_calls import LEADING_KEYS, STORE_CALLS
from relaunch_local.simulation.aws.template import ACCOUNT, CLUSTER, REGION, STACK
from relaunch_local.simulation.machine_scenario import INSTANCE_ROLE
from relaunch_local.simulation.scenario import CHECKPOINTS
from relaunch_local.templates.document import read_template
from relaunch_local.templates.physical import physical_values
from relaunch_local.templates.resolver import Resolver
from relaunch_local.templates.roles import policies_of_role, roles_of_functions

TABLE = "jobs"
GITHUB_TOKEN = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:github-AbCdEf"
COMMAND = "the command"
"""The name of what runs with the identity of its user instead of a function's role."""

Key = tuple[str, str, str, tuple[tuple[str, ContextValue], ...]]


@dataclass
class FunctionAuthorization:
    """Decides whether the function that runs may make a call; what runs outside of functions may do everything."""

    _runtime: Runtime
    _authorize: Callable[[Key], bool]
    _on_refused: Callable[[Permission], None]
    used: dict[Key, Permission] = field(default_factory=dict)
    """Every permission that was asked for; the access key is the function's name."""
    _decided: dict[Key, bool] = field(default_factory=dict)
    _granted: set[tuple[str, str, str]] = field(default_factory=set)
    """By function and port: the methods of a store that may be called."""
    _calls: CallPermissions = field(default_factory=lambda: CallPermissions(CalledAccount(ACCOUNT, REGION)))

    def __call__(self, permission: Permission) -> bool:
        """Return whether the running function has a permission; the simulators of ECS and EC2 ask so."""
        invocation = self._runtime.current
        if invocation is None or invocation.function == COMMAND:
            return True
        context = tuple(sorted(permission.context.items(), key=str))
        key = (invocation.function, permission.action, permission.resource, context)
        if key not in self.used:
            self.used[key] = replace(permission, access_key=invocation.function)
            self._decided[key] = self._authorize(key)
        if not self._decided[key]:
            self._on_refused(self.used[key])
        return self._decided[key]

    def check_call(self, service: str, operation: str, parameters: Mapping[str, Any]) -> None:
        """Check a call of an SDK; raises botocore's error of a call that is refused."""
        for permission in self._calls.required("", service, operation, parameters):
            self._demand(permission, operation)

    def check_store(self, port: str, method: str) -> None:
        """Check the calls of DynamoDB that a method of a store makes; raises the adapter's error of a refused call."""
        invocation = self._runtime.current
        if invocation is None or (invocation.function, port, method) in self._granted:
            return
        with aws_errors(f"{port}.{method}"):
            for operation, index in sorted(STORE_CALLS[port, method]):
                resource = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{TABLE}" + (f"/index/{index}" if index else "")
                leading = LEADING_KEYS.get((port, method))
                context = {"dynamodb:LeadingKeys": (leading,)} if leading else {}
                self._demand(Permission("", f"dynamodb:{operation}", resource, context), operation)
        self._granted.add((invocation.function, port, method))

    def _demand(self, permission: Permission, operation: str) -> None:
        if not self(permission):
            message = f"User is not authorized to perform: {permission.action} on resource: {permission.resource}"
            answer: Any = {
                "Error": {"Code": "AccessDeniedException", "Message": message},
                "ResponseMetadata": {"HTTPStatusCode": 400},
            }
            raise ClientError(answer, operation)


@dataclass(frozen=True, slots=True)
class AuthorizedClient:
    """Delegates each method of a client to another one if the running function may call it."""

    _service: str
    _client: Any
    _authorization: FunctionAuthorization

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return the method of an action."""
        method = getattr(self._client, name)

        def call(**parameters: Any) -> Any:
            self._authorization.check_call(self._service, operation_name(name), parameters)
            return method(**parameters)

        return call


@dataclass(frozen=True, slots=True)
class AuthorizedStore:
    """Delegates each method of a store to another one if the running function may make its calls."""

    _port: str
    _store: Any
    _authorization: FunctionAuthorization

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a method of the port."""
        method = getattr(self._store, name)

        def call(*arguments: Any, **named: Any) -> Any:
            self._authorization.check_store(self._port, name)
            return method(*arguments, **named)

        return call


def authorize_functions(
    runtime: Runtime, machines: MachineSettings, granted: Mapping[str, str], on_refused: Callable[[Permission], None]
) -> FunctionAuthorization:
    """Return what authorizes the functions of a stack with these machines.

    `granted` are parameters of the template; `on_refused` is told of each refusal.
    """
    versions = machines.launch_templates.items()
    templates = ",".join(f"{kind}={each.template_id}:{each.version}" for kind, each in versions)
    subnets = ",".join(f"{zone}={subnet}" for zone, subnet in machines.subnets.items())
    return FunctionAuthorization(runtime, _authorizer(subnets, templates, tuple(granted.items())), on_refused)


@cache
def _authorizer(subnets: str, templates: str, granted: tuple[tuple[str, str], ...]) -> Callable[[Key], bool]:
    authorize = PolicyAuthorizer(dict(_policies(subnets, templates, dict(granted))), is_without_key)

    # Most are asked for in every run.
    @lru_cache(maxsize=10_000)
    def decide(key: Key) -> bool:
        function, action, resource, context = key
        return authorize(Permission(function, action, resource, dict(context)))

    return decide


def _policies(subnets: str, templates: str, granted: Mapping[str, str]) -> Iterator[tuple[str, list[PolicyDocument]]]:
    template = read_template()
    values = physical_values(template, ACCOUNT, REGION, {"JobsTable": TABLE})
    parameters = {
        "ClusterName": CLUSTER,
        "AWS::StackName": STACK,
        "CheckpointBuckets": CHECKPOINTS,
        "MachineSubnets": subnets,
        "MachineLaunchTemplates": templates,
        "MachineInstanceRoleArn": INSTANCE_ROLE if subnets else "",
        "GithubTokenSecretArn": GITHUB_TOKEN,
        **granted,
    }
    resolver = Resolver(template, **(values | parameters))
    for function, role in roles_of_functions(template).items():
        variables = template.resources[function]["Properties"]["Environment"]["Variables"]
        yield variables["POWERTOOLS_SERVICE_NAME"], policies_of_role(template, role, resolver)
