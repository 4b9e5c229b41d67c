"""What a deployment reserves of the account's Lambda concurrency, as the account and the stack are now."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from relaunch_cli.deployment.concurrency import RESERVATIONS, Account, Reservation, plan_reservations

# CloudFormation says ValidationError for a stack or a resource that does not exist (DescribeStackResource, "Errors").
_NOT_THERE = frozenset({"ValidationError", "ResourceNotFoundException"})


class UnreadableAccountError(Exception):
    """The account's Lambda limits could not be read."""


def reservations(
    parameters: Mapping[str, str], stack: str, functions: Any, stacks: Any
) -> tuple[Mapping[str, str], Sequence[str]]:
    """Return the parameters to add to these, and what to tell the user; `functions` is a client of Lambda.

    If AWS does not answer, or answers something else, none is added: an existing stack keeps what it has.
    """
    given = _given(parameters)
    if all(each.parameter in given for each in RESERVATIONS):
        return {}, ()
    try:
        account = read_account(functions)
        present = {each.parameter: read_reserved(each, stack, functions, stacks) for each in RESERVATIONS}
    except (BotoCoreError, ClientError, UnreadableAccountError) as error:
        names = " and ".join(each.parameter for each in RESERVATIONS if each.parameter not in given)
        note = (
            f"the Lambda concurrency of the account cannot be read ({str(error).splitlines()[0]}): deploying without a "
            "change of what is reserved; allow lambda:GetAccountSettings, lambda:GetFunctionConcurrency and "
            f"cloudformation:DescribeStackResource, or name {names}"
        )
        return {}, (note,)
    plan = plan_reservations(account, present, given)
    return {name: str(amount) for name, amount in plan.parameters.items()}, plan.notes


def read_account(functions: Any) -> Account:
    """Read the account's limits in the region.

    Raises:
        UnreadableAccountError: the answer has no limits.
        ClientError, BotoCoreError: the call failed.
    """
    limits = functions.get_account_settings().get("AccountLimit", {})
    limit = limits.get("ConcurrentExecutions")
    unreserved = limits.get("UnreservedConcurrentExecutions")
    if not isinstance(limit, int) or not isinstance(unreserved, int):
        raise UnreadableAccountError("GetAccountSettings answers no limits")
    return Account(limit, unreserved)


def read_reserved(reservation: Reservation, stack: str, functions: Any, stacks: Any) -> int:
    """Return what a function of the stack has reserved; 0 if there is no such function yet.

    Raises:
        ClientError, BotoCoreError: a call failed.
    """
    try:
        found = stacks.describe_stack_resource(StackName=stack, LogicalResourceId=reservation.function)
        name = found["StackResourceDetail"].get("PhysicalResourceId")
        if not name:
            return 0
        return int(functions.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions", 0))
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") in _NOT_THERE:
            return 0
        raise


def _given(parameters: Mapping[str, str]) -> dict[str, int]:
    """Return the reservations that the user names; CloudFormation refuses what is no number."""
    named = {each.parameter: parameters[each.parameter] for each in RESERVATIONS if each.parameter in parameters}
    return {name: int(value) if re.fullmatch(r"[0-9]{1,9}", value) else 0 for name, value in named.items()}
