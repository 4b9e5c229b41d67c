"""Progress of a stack: each event once, over pages, from a moment on."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from relaunch_cli.deployment.stack_events import StackEvents, progress_line


class PagedEvents:
    """CloudFormation's events of one stack, newest first, two a page; None: there is no such stack."""

    def __init__(self, *events: dict[str, Any]) -> None:
        self.events: list[dict[str, Any]] | None = list(events)

    def describe_stack_events(self, **request: Any) -> dict[str, Any]:
        if self.events is None:
            raise ClientError(
                {"Error": {"Code": "ValidationError", "Message": "does not exist"}}, "DescribeStackEvents"
            )
        newest_first = self.events[::-1]
        start = int(request.get("NextToken", "0"))
        more = {"NextToken": str(start + 2)} if start + 2 < len(newest_first) else {}
        return {"StackEvents": newest_first[start : start + 2], **more}


def event(number: int, status: str, reason: str = "", kind: str = "AWS::SQS::Queue") -> dict[str, Any]:
    made = {"EventId": str(number), "LogicalResourceId": f"R{number}", "ResourceType": kind, "ResourceStatus": status}
    return made | ({"ResourceStatusReason": reason} if reason else {})


def test_each_new_event_is_read_once_and_in_order() -> None:
    stacks = PagedEvents(*(event(each, "CREATE_COMPLETE") for each in range(5)))
    events = StackEvents(stacks, "relaunch")
    assert events.read() == []
    assert stacks.events is not None
    stacks.events += [event(each, "CREATE_COMPLETE") for each in range(5, 10)]

    assert [each["EventId"] for each in events.read()] == ["5", "6", "7", "8", "9"]
    assert events.read() == []


def test_the_first_failure_after_the_beginning_is_the_one_that_counts() -> None:
    stacks = PagedEvents(event(0, "CREATE_FAILED", "long ago"))
    events = StackEvents(stacks, "relaunch")
    assert events.first_failure == ""
    assert stacks.events is not None
    stacks.events += [event(1, "CREATE_FAILED", "no such role"), event(2, "CREATE_FAILED", "cancelled")]
    events.read()

    assert events.first_failure == "R1: no such role"


def test_a_stack_that_is_not_there_yet_has_no_events() -> None:
    stacks = PagedEvents()
    stacks.events = None
    events = StackEvents(stacks, "relaunch")

    assert (events.read(), events.is_there) == ([], False)
    stacks.events = [event(1, "CREATE_COMPLETE")]
    assert len(events.read()) == 1
    assert events.is_there


def test_other_errors_are_not_taken_for_it() -> None:
    class Throttled:
        def describe_stack_events(self, **_request: Any) -> None:
            raise ClientError({"Error": {"Code": "Throttling", "Message": "slow"}}, "DescribeStackEvents")

    with pytest.raises(ClientError, match="Throttling"):
        StackEvents(Throttled(), "relaunch")


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (event(1, "CREATE_IN_PROGRESS"), ""),
        (event(1, "UPDATE_COMPLETE"), "  UPDATE_COMPLETE R1 (AWS::SQS::Queue)"),
        (event(1, "DELETE_SKIPPED"), "  DELETE_SKIPPED R1 (AWS::SQS::Queue)"),
        (event(1, "CREATE_FAILED", "denied"), "  CREATE_FAILED R1 (AWS::SQS::Queue): denied"),
        (event(1, "CREATE_COMPLETE", kind="AWS::CloudFormation::Stack"), ""),
    ],
    ids=["in-progress", "done", "kept", "failed", "the-stack"],
)
def test_only_ends_are_told(found: dict[str, Any], line: str) -> None:
    assert progress_line(found) == line
