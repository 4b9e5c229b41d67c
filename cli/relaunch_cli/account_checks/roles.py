"""The roles of task definitions, and the service-linked roles of the account."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from relaunch.core.checks import Check, is_ok, problem
from relaunch.core.revisions.revision import Revision, TaskDefinitionGrants

_TASKS = "ecs-tasks.amazonaws.com"
_TRUST = (
    '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ecs-tasks.amazonaws.com"},'
    '"Action":"sts:AssumeRole"}]}'
)


def roles_of(revision: Revision) -> Iterator[tuple[str, str]]:
    """Yield the roles that a revision names, as (`task role` or `execution role`, ARN)."""
    if revision.task_role_arn:
        yield "task role", revision.task_role_arn
    if revision.execution_role_arn:
        yield "execution role", revision.execution_role_arn


def check_task_role(
    definition: str, kind: str, arn: str, grants: TaskDefinitionGrants, trust: Mapping[str, Any] | None
) -> Check:
    """Check that the stack may pass a role, that it exists, and that tasks may assume it; `trust` is its policy."""
    name = f"{definition}: {kind}"
    path = arn.partition(":role/")[2]
    role = arn.rpartition("/")[2]
    if not path.startswith(grants.role_path):
        text = f"{arn} is not under /{grants.role_path}, the only path that the stack may pass roles of (TaskRolePath)"
        create = f"aws iam create-role --path /{grants.role_path} --role-name {role} --assume-role-policy-document"
        return problem(name, text, f"{create} '{_TRUST}', and name it in the task definition")
    if trust is None:
        create = f"aws iam create-role --path /{path.rpartition('/')[0]}/ --role-name {role}"
        return problem(name, f"{arn} does not exist", f"{create} --assume-role-policy-document '{_TRUST}'")
    if not trusts_tasks(trust):
        update = f"aws iam update-assume-role-policy --role-name {role} --policy-document"
        return problem(name, f"{arn} does not trust {_TASKS}: no task can start with it", f"{update} '{_TRUST}'")
    return is_ok(name, arn)


def read_policy(document: Any) -> Mapping[str, Any]:
    """Return a policy that IAM answers, decoded or not; one that is not JSON allows nothing."""
    if isinstance(document, Mapping):
        return document
    try:
        policy = json.loads(unquote(str(document)))
    except ValueError:
        return {}
    return policy if isinstance(policy, dict) else {}


def trusts_tasks(policy: Mapping[str, Any]) -> bool:
    """Return whether a trust policy lets tasks of ECS assume the role; its conditions are not evaluated."""
    statements = _listed(policy.get("Statement"))
    return any(_lets_tasks_in(each) for each in statements if isinstance(each, Mapping))


def _lets_tasks_in(statement: Mapping[str, Any]) -> bool:
    principal = statement.get("Principal")
    services = _listed(principal.get("Service")) if isinstance(principal, Mapping) else []
    actions = {str(action).lower() for action in _listed(statement.get("Action"))}
    is_allowed = statement.get("Effect") == "Allow"
    return is_allowed and _TASKS in services and not actions.isdisjoint({"sts:assumerole", "sts:*", "*"})


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def check_service_role(service: str, *, is_there: bool) -> Check:
    """Check the service-linked role of a service, such as `spot.amazonaws.com`."""
    name = f"service-linked role of {service}"
    if is_there:
        return is_ok(name, "it exists")
    without = "no spot machine can start" if service.startswith("spot") else "ECS cannot work in the account"
    create = f"aws iam create-service-linked-role --aws-service-name {service}"
    return problem(name, f"it does not exist: {without}", f"relaunch deploy, which makes it, or\n{create}")
