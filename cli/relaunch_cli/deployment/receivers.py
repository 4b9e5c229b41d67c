"""The functions that receive what starts jobs: a removal closes them, and the next deployment opens them again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

RECEIVING = ("GithubWebhookFunction", "JobApiFunction", "SubmitJobFunction")
# What somebody may have throttled beside these: without it no training is stopped at a spot warning.
OPENED = (*RECEIVING, "ObserveCapacityFunction")
# CloudFormation says ValidationError for a resource that does not exist (DescribeStackResource, "Errors").
_NOT_THERE = "ValidationError"


def close_receivers(stack: str, functions: Any, stacks: Any) -> None:
    """Let nothing start a job any more; `functions` is a client of Lambda, `stacks` one of CloudFormation.

    GitHub and callers are answered that they are throttled, whatever the account has reserved ("Configuring reserved
    concurrency for a function", AWS Lambda Developer Guide).

    Raises:
        ClientError, BotoCoreError: a call failed.
    """
    for _, name in _find(RECEIVING, stack, stacks):
        functions.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)


def open_receivers(
    stack: str, reserved: Mapping[str, int], functions: Any, stacks: Any, tell: Callable[[str], None]
) -> None:
    """Open what a removal has closed that did not come to its end, and what somebody throttled.

    `reserved` is what functions have by their template. CloudFormation puts nothing right that was changed outside of
    it while its template says the same ("Detect unmanaged configuration changes to stacks and resources with drift
    detection", AWS CloudFormation User Guide). What cannot be read or opened is said: the deployment itself is done.
    """
    try:
        for logical_id, name in _find(OPENED, stack, stacks):
            if functions.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions") != 0:
                continue
            if amount := reserved.get(logical_id, 0):
                functions.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=amount)
            else:
                functions.delete_function_concurrency(FunctionName=name)
            tell(f"opened {logical_id}, whose reserved concurrency was 0, so that it never ran")
    except (BotoCoreError, ClientError) as error:
        tell(
            "whether a function has a reserved concurrency of 0, and never runs, is not known "
            f"({str(error).splitlines()[0]}): `relaunch doctor` says so, and another deployment opens them"
        )


def _find(functions: Sequence[str], stack: str, stacks: Any) -> Iterator[tuple[str, str]]:
    """Find the functions of a stack: one without a webhook has two."""
    for logical_id in functions:
        try:
            found = stacks.describe_stack_resource(StackName=stack, LogicalResourceId=logical_id)
        except ClientError as error:
            if error.response["Error"]["Code"] == _NOT_THERE:
                continue
            raise
        if name := found["StackResourceDetail"].get("PhysicalResourceId"):
            yield logical_id, name
