"""Reads what an account has once: service-linked roles, Lambda's concurrency and the quotas of EC2."""

from collections.abc import Iterable, Iterator
from functools import partial

from relaunch.core.checks import Check, unknown
from relaunch_cli.account_checks.concurrency import check_concurrency
from relaunch_cli.account_checks.quotas import GrantedQuotas, Need, check_quotas
from relaunch_cli.account_checks.roles import check_service_role
from relaunch_cli.account_readers.calls import AccountCalls, UnreadError, known
from relaunch_cli.deployment.account_roles import SERVICES
from relaunch_cli.deployment.concurrency import RESERVATIONS, Account
from relaunch_cli.deployment.receivers import OPENED

_NO_QUOTA = "NoSuchResourceException"
_OPEN = ("PENDING", "CASE_OPENED")
# CloudFormation says ValidationError for a resource that does not exist (DescribeStackResource, "Errors").
_NOT_THERE = ("ValidationError", "ResourceNotFoundException")


def check_service_roles(calls: AccountCalls) -> Iterator[Check]:
    """Check the service-linked roles; EC2 Fleet of the type `instant` needs none of its own."""
    for service in SERVICES:
        yield known(f"service-linked role of {service}", partial(_check_role, service, calls))


def _check_role(service: str, calls: AccountCalls) -> Check:
    roles = calls.list("iam", "list_roles", "Roles", PathPrefix=f"/aws-service-role/{service}/")
    return check_service_role(service, is_there=bool(roles))


def check_lambda(stack: str, calls: AccountCalls) -> Iterator[Check]:
    """Check Lambda's concurrency.

    Raises:
        UnreadError: it cannot be read.
    """
    limits = calls.call("lambda", "get_account_settings").get("AccountLimit", {})
    limit = limits.get("ConcurrentExecutions")
    unreserved = limits.get("UnreservedConcurrentExecutions")
    if not isinstance(limit, int) or not isinstance(unreserved, int):
        raise UnreadError("lambda:GetAccountSettings answers no limits", "try again")
    functions = (*(each.function for each in RESERVATIONS), *OPENED)
    found = {each: _reserved(each, stack, calls) for each in dict.fromkeys(functions)}
    reserved = {each.parameter: max(amount, 0) for each in RESERVATIONS
                if (amount := found[each.function]) is not None}  # fmt: skip
    # A stack may have no webhook; where no function is found, there is no stack yet.
    reserved = reserved or {each.parameter: 0 for each in RESERVATIONS}
    closed = [each for each in OPENED if found[each] == 0]
    yield check_concurrency(Account(limit, unreserved), reserved, closed)


def _reserved(function: str, stack: str, calls: AccountCalls) -> int | None:
    """Return what a function has reserved, -1 if nothing is; None if the stack has no such function."""
    found = calls.call(
        "cloudformation",
        "describe_stack_resource",
        *_NOT_THERE,
        StackName=stack,
        LogicalResourceId=function,
    )
    name = found["StackResourceDetail"].get("PhysicalResourceId") if found else ""
    if not name:
        return None
    answer = calls.call("lambda", "get_function_concurrency", *_NOT_THERE, FunctionName=name) or {}
    return int(answer.get("ReservedConcurrentExecutions", -1))


def check_ec2_quotas(needs: Iterable[Need], calls: AccountCalls) -> Iterator[Check]:
    """Check the quotas that definitions need, and only those.

    Raises:
        UnreadError: a quota cannot be read.
    """
    needs = tuple(needs)
    codes = sorted({quota.code for need in needs for quota in need.machines if quota is not None})
    vcpus = {}
    for code in codes:
        answer = calls.call("service-quotas", "get_service_quota", _NO_QUOTA, ServiceCode="ec2", QuotaCode=code)
        if answer is not None:
            vcpus[code] = float(answer["Quota"]["Value"])
    requested: dict[str, float] = {}
    try:
        requested = _read_requests(calls) if codes else {}
    except UnreadError as error:
        yield unknown("requests for quotas", error.reason, error.to_do)
    yield from check_quotas(needs, GrantedQuotas(vcpus, requested))


def _read_requests(calls: AccountCalls) -> dict[str, float]:
    operation = "list_requested_service_quota_change_history"
    return {
        each["QuotaCode"]: float(each["DesiredValue"])
        for status in _OPEN
        for each in calls.list("service-quotas", operation, "RequestedQuotas", ServiceCode="ec2", Status=status)
    }
