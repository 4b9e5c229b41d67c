"""What CloudFormation does for a stack from a moment on: progress, and why it failed."""

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

_STACK = "AWS::CloudFormation::Stack"
_DONE = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "DELETE_COMPLETE", "DELETE_SKIPPED")


class StackEvents:
    """The events of a stack, by its name or ID, that come after those that it has at first."""

    def __init__(self, stacks: Any, name: str) -> None:
        """Read what there is already.

        Raises:
            ClientError, BotoCoreError: the call failed.
        """
        self._stacks = stacks
        self._name = name
        self._known: set[str] = set()
        self.is_there = True
        """Whether the stack was there the last time; none is before its first event, nor by its name after its end."""
        self.first_failure = ""
        self.read()
        self.first_failure = ""
        """What failed first, and why; what fails later was mostly cancelled. Empty if nothing did."""

    def read(self) -> list[Mapping[str, Any]]:
        """Return the events that were not known, the oldest first.

        Raises:
            ClientError, BotoCoreError: the call failed.
        """
        new = self._new()
        self._known |= {str(each["EventId"]) for each in new}
        # CloudFormation answers the newest first.
        new.reverse()
        failures = (each for each in new if each["ResourceStatus"].endswith("_FAILED"))
        self.first_failure = self.first_failure or next(map(_failure, failures), "")
        return new

    def _new(self) -> list[Mapping[str, Any]]:
        new: list[Mapping[str, Any]] = []
        more: dict[str, str] = {}
        while True:
            try:
                answer = self._stacks.describe_stack_events(StackName=self._name, **more)
            except ClientError as error:
                # CloudFormation has no code of its own for it.
                if error.response["Error"]["Code"] != "ValidationError":
                    raise
                self.is_there = False
                return new
            self.is_there = True
            fresh = [each for each in answer["StackEvents"] if each["EventId"] not in self._known]
            new += fresh
            if len(fresh) < len(answer["StackEvents"]) or not answer.get("NextToken"):
                return new
            more = {"NextToken": answer["NextToken"]}


def progress_line(event: Mapping[str, Any]) -> str:
    """Return what to tell of an event: that a resource is finished, or failed and why; else nothing."""
    status = event["ResourceStatus"]
    is_failure = event["ResourceStatus"].endswith("_FAILED")
    if event["ResourceType"] == _STACK or not (is_failure or status in _DONE):
        return ""
    reason = f": {event['ResourceStatusReason']}" if is_failure and event.get("ResourceStatusReason") else ""
    return f"  {status} {event['LogicalResourceId']} ({event['ResourceType']}){reason}"


def _failure(event: Mapping[str, Any]) -> str:
    return f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason', 'no reason is given')}"
