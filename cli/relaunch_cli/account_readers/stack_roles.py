"""Reads the roles that the stacks of a deployment made, as IAM has them now."""

from collections.abc import Iterator, Mapping
from typing import Any

from relaunch.core.checks import Check, unknown
from relaunch_cli.account_checks.roles import read_policy
from relaunch_cli.account_checks.stack_roles import RoleFacts, StackFacts, check_roles
from relaunch_cli.account_readers.calls import AccountCalls, UnreadError
from relaunch_cli.account_readers.ecs import read_stack
from relaunch_cli.deployment.change_set import stack_of
from relaunch_cli.deployment.github_stacks import is_github_stack

OF_REPOSITORIES = "roles of repositories at GitHub"
_ENDS = ("", "-training", "-machines")
_ROLE = "AWS::IAM::Role"
_POLICY = "AWS::IAM::Policy"


def check_stack_roles(stack: str, calls: AccountCalls) -> Iterator[Check]:
    """Check the roles of the application, of what trainings need, of machines and of repositories on GitHub.

    A stack that is not there has none.

    Raises:
        UnreadError: something of them cannot be read.
    """
    names = [f"{stack}{end}" for end in _ENDS]
    unread = None
    try:
        names += _find_github_stacks(stack, calls)
    except UnreadError as error:
        # To look through all stacks is more than to read those of the deployment.
        unread = error
    yield from check_roles([role for name in names for role in _read_roles(name, calls)])
    if unread is not None:
        yield unknown(OF_REPOSITORIES, unread.reason, f"{unread.to_do}, for all stacks, which takes ListStacks too")


def _find_github_stacks(stack: str, calls: AccountCalls) -> Iterator[str]:
    for each in calls.list("cloudformation", "describe_stacks", "Stacks"):
        found = stack_of(str(each["StackName"]), each)
        if is_github_stack(found, stack):
            yield found.name


def _read_roles(name: str, calls: AccountCalls) -> Iterator[RoleFacts]:
    described = read_stack(name, calls)
    if described is None:
        return
    resources = calls.list("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=name)
    there = [each for each in resources if each["ResourceStatus"] != "DELETE_COMPLETE"]
    parameters = {each["ParameterKey"]: each["ParameterValue"] for each in described.get("Parameters", [])}
    policies = frozenset(each["LogicalResourceId"] for each in there if each["ResourceType"] == _POLICY)
    facts = StackFacts(str(described["StackId"]), parameters, policies)
    for each in there:
        physical = str(each.get("PhysicalResourceId", ""))
        if each["ResourceType"] == _ROLE and physical:
            yield _read_role(str(each["LogicalResourceId"]), physical, facts, calls)


def _read_role(logical_id: str, name: str, stack: StackFacts, calls: AccountCalls) -> RoleFacts:
    role: Mapping[str, Any] = calls.call("iam", "get_role", RoleName=name)["Role"]
    managed = calls.list("iam", "list_attached_role_policies", "AttachedPolicies", RoleName=name)
    return RoleFacts(
        logical_id,
        name,
        [str(each["PolicyArn"]) for each in managed],
        calls.list("iam", "list_role_policies", "PolicyNames", RoleName=name),
        read_policy(role["AssumeRolePolicyDocument"]),
        str(role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn", "")),
        stack,
    )
