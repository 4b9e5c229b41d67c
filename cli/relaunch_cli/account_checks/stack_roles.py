"""The roles that the stacks made: what somebody attached to them, took from them, or changed, beside the templates.

What the templates give a role is known here by its logical ID; tests hold that to the templates. What an inline policy
of the templates says is CloudFormation's to compare (`aws cloudformation detect-stack-drift`).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relaunch.core.checks import Check, is_ok, problem, unknown

_FUNCTIONS = (
    *("GithubWebhook", "SubmitJob", "JobApi", "PlanApi", "LaunchAttempt", "RequestMachine"),
    *("ObserveCapacity", "ObserveTask", "Reconcile", "RefreshOfferings", "SendNotices"),
)
_WITHOUT_JOBS = ("GithubWebhook", "PlanApi", "RefreshOfferings", "SendNotices")
OWN_POLICIES: Mapping[str, frozenset[str]] = {
    **{f"{name}Role": frozenset({name}) for name in _FUNCTIONS},
    "SchedulesRole": frozenset({"Schedules"}),
    "TaskRole": frozenset({"train"}),
    "ExecutionRole": frozenset({"start"}),
    "ReaderRole": frozenset({"read"}),
    "OperatorRole": frozenset({"read", "operate"}),
    "SubmitRole": frozenset({"submit"}),
    "PlanRole": frozenset({"plan"}),
    "InstanceRole": frozenset({"machine"}),
}
"""The names of the inline policies that a role has of its own."""
ATTACHED_POLICIES: Mapping[str, tuple[str, frozenset[str]]] = {
    "RequestMachinePolicy": ("LaunchMachines", frozenset({"RequestMachineRole"})),
    "AskForMachinesPolicy": (
        "AskForMachines",
        frozenset(f"{name}Role" for name in _FUNCTIONS if name not in _WITHOUT_JOBS),
    ),
    "SendJobChangesPolicy": (
        "SendJobChanges",
        frozenset(
            f"{name}Role"
            for name in ("SubmitJob", "JobApi", "LaunchAttempt", "ObserveCapacity", "ObserveTask", "Reconcile")
        ),
    ),
    "SendBudgetReportsPolicy": ("SendBudgetReports", frozenset({"LaunchAttemptRole", "ReconcileRole"})),
    "EndMachinesPolicy": ("EndMachines", frozenset({"RequestMachineRole", "ReconcileRole"})),
    "ReadCheckpointsPolicy": ("ReadCheckpoints", frozenset({"LaunchAttemptRole", "ReconcileRole"})),
    "KubernetesPolicy": (
        "Kubernetes",
        frozenset({"SubmitJobRole", "JobApiRole", "LaunchAttemptRole", "ReconcileRole"}),
    ),
}
"""By logical ID: policies that are resources of their own, with their names, and the roles that have them."""
_OF_TASKS = ("TaskRole", "ExecutionRole")
_OF_PEOPLE = ("ReaderRole", "OperatorRole")
_OF_GITHUB = ("SubmitRole", "PlanRole")
_GITHUB = "token.actions.githubusercontent.com"
NAME = "roles"


@dataclass(frozen=True, slots=True)
class StackFacts:
    """A stack: its ARN, its parameters, and the logical IDs of its policies that are resources of their own."""

    arn: str
    parameters: Mapping[str, str]
    policies: frozenset[str]


@dataclass(frozen=True, slots=True)
class RoleFacts:
    """A role as IAM has it: `managed` are ARNs, `inline` names, and `boundary` is an ARN, empty if it has none."""

    logical_id: str
    name: str
    managed: Sequence[str]
    inline: Sequence[str]
    trust: Mapping[str, Any]
    boundary: str
    stack: StackFacts


def check_roles(roles: Iterable[RoleFacts]) -> Iterator[Check]:
    """Check the roles of all stacks of a deployment: one check for each that differs, or one for all."""
    roles = tuple(roles)
    boundary = _boundary_of(roles)
    found = [check for each in roles for check in _check_role(each, boundary)]
    if found or not roles:
        yield from found
        return
    yield is_ok(NAME, f"{len(roles)} roles have what the templates give them, and nothing else")


def _boundary_of(roles: Sequence[RoleFacts]) -> str:
    """Return the permissions boundary that most of the roles have which have one; the templates give none."""
    found = [each.boundary for each in roles if each.boundary]
    return max(sorted(set(found)), key=found.count, default="")


def _check_role(role: RoleFacts, boundary: str) -> Iterator[Check]:
    name = f"role {role.logical_id}"
    if role.logical_id not in OWN_POLICIES:
        yield unknown(name, "this release has no such role: the stack is of another one", "relaunch deploy")
        return
    for arn in role.managed:
        command = f"aws iam detach-role-policy --role-name {role.name} --policy-arn {arn}"
        yield problem(name, f"the managed policy {arn} is attached, and is not the template's", command)
    expected_policies = _expected_policies(role)
    for added in sorted(set(role.inline) - expected_policies):
        command = f"aws iam delete-role-policy --role-name {role.name} --policy-name {added}"
        yield problem(name, f"the inline policy {added} was added, and is not the template's", command)
    for missing in sorted(expected_policies - set(role.inline)):
        stack = role.stack.arn.split("/")[1]
        text = (
            f"the template's inline policy {missing} is gone: what it allows is denied, and no deployment restores it"
        )
        shown = f"aws cloudformation get-template --stack-name {stack} --template-stage Processed"
        command = f"aws iam put-role-policy --role-name {role.name} --policy-name {missing}, with what `{shown}` says"
        yield problem(name, text, command)
    expected = expected_trust(role.logical_id, role.stack)
    if _normal(role.trust) != _normal(expected):
        command = f"aws iam update-assume-role-policy --role-name {role.name} --policy-document"
        text = "its trust policy is not the template's: others may assume it, or those who should may not"
        yield problem(name, text, f"{command} '{json.dumps(expected, separators=(',', ':'))}'")
    if boundary and role.boundary != boundary:
        has = f"has the permissions boundary {role.boundary}" if role.boundary else "has no permissions boundary"
        command = f"aws iam put-role-permissions-boundary --role-name {role.name} --permissions-boundary {boundary}"
        yield problem(name, f"it {has}, and other roles of the stacks have {boundary}", command)


def _expected_policies(role: RoleFacts) -> frozenset[str]:
    attached = {
        name
        for logical_id, (name, roles) in ATTACHED_POLICIES.items()
        if logical_id in role.stack.policies and role.logical_id in roles
    }
    return OWN_POLICIES[role.logical_id] | attached


def expected_trust(logical_id: str, stack: StackFacts) -> Mapping[str, Any]:
    """Return the trust policy that the template gives a role."""
    partition, region, account = (stack.arn.split(":")[place] for place in (1, 3, 4))
    statement: dict[str, Any] = {"Effect": "Allow", "Principal": {}, "Action": "sts:AssumeRole"}
    if logical_id in _OF_PEOPLE:
        statement["Principal"] = {"AWS": f"arn:{partition}:iam::{account}:root"}
    elif logical_id in _OF_TASKS:
        statement["Principal"] = {"Service": "ecs-tasks.amazonaws.com"}
        statement["Condition"] = {
            "ArnLike": {"aws:SourceArn": f"arn:{partition}:ecs:{region}:{account}:*"},
            "StringEquals": {"aws:SourceAccount": account},
        }
    elif logical_id == "SchedulesRole":
        group = f"schedule-group/{stack.arn.split('/')[1]}-Schedules-*"
        statement["Principal"] = {"Service": "scheduler.amazonaws.com"}
        statement["Condition"] = {
            "ArnLike": {"aws:SourceArn": f"arn:{partition}:scheduler:{region}:{account}:{group}"},
            "StringEquals": {"aws:SourceAccount": account},
        }
    elif logical_id in _OF_GITHUB:
        statement["Principal"] = {"Federated": stack.parameters.get("GitHubOidcProviderArn", "")}
        statement["Action"] = "sts:AssumeRoleWithWebIdentity"
        statement["Condition"] = {"StringEquals": _workflows(stack.parameters, logical_id)}
    else:
        service = "ec2" if logical_id == "InstanceRole" else "lambda"
        statement["Principal"] = {"Service": f"{service}.amazonaws.com"}
    return {"Version": "2012-10-17", "Statement": [statement]}


def _workflows(parameters: Mapping[str, str], logical_id: str) -> dict[str, Any]:
    repository = parameters.get("GitHubRepository", "")
    owner, _, name = repository.partition("/")
    owner_id, repository_id = (parameters.get(each, "") for each in ("GitHubOwnerId", "GitHubRepositoryId"))
    environment = parameters.get("GitHubEnvironment", "")
    place = f"environment:{environment}" if environment else f"ref:{parameters.get('GitHubRef', '')}"
    place = "pull_request" if logical_id == "PlanRole" else place
    subjects = [f"repo:{repository}:{place}"]
    if owner_id and repository_id:
        subjects.append(f"repo:{owner}@{owner_id}/{name}@{repository_id}:{place}")
    keys: dict[str, Any] = {f"{_GITHUB}:aud": "sts.amazonaws.com", f"{_GITHUB}:sub": subjects}
    return {**keys, f"{_GITHUB}:repository_id": repository_id} if repository_id else keys


def _normal(value: Any) -> Any:
    """Return a part of a policy as it is compared: a single value is a list, whose order does not count."""
    if isinstance(value, Mapping):
        return {name: _normal(each) for name, each in value.items() if name not in ("Sid", "Version")}
    if isinstance(value, list):
        return sorted((_normal(each) for each in value), key=str) if len(value) != 1 else _normal(value[0])
    return value
