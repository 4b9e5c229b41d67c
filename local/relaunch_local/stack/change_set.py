"""Deploys a stack by a change set, which is shown and confirmed first; a stack without changes is left alone."""

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from relaunch_local.stack.machine_parameters import RefusedError

_POLL_SECONDS = 3.0
# A launch template takes seconds, an instance profile half a minute.
_LONGEST_POLLS = 300
_REVIEW = "REVIEW_IN_PROGRESS"
_BROKEN = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED", "DELETE_FAILED")
_NO_CHANGE = ("didn't contain changes", "No updates are to be performed")


@dataclass(frozen=True)
class Stack:
    """A stack of CloudFormation as it is now."""

    name: str
    status: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ChangeSets:
    """Deploys by change sets; `confirm` asks whoever deploys, `tell` prints a line."""

    stacks: Any
    confirm: Callable[[str], bool]
    tell: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep

    def deploy(self, name: str, template: str, parameters: Mapping[str, str], before: Stack | None) -> Stack:
        """Deploy the template with these parameters and no others; return the stack after that.

        Raises:
            RefusedError: the change was not confirmed, the stack cannot be changed now, or the deployment failed.
            ClientError, BotoCoreError: a call failed.
        """
        is_new = before is None or before.status == _REVIEW
        if before is not None and not is_new:
            _check_status(before)
        change_set = self._create(name, template, parameters, is_new=is_new)
        try:
            changes = self._describe(name, change_set)
            self._confirm(name, changes, parameters)
        except RefusedError:
            self._discard(name, change_set, is_made_for_it=before is None)
            raise
        if changes:
            self._execute(name, change_set)
        else:
            self._discard(name, change_set, is_made_for_it=False)
            self.tell(f"{name}: no change")
        after = read_stack(name, self.stacks)
        if after is None:
            raise RefusedError(f"the stack {name} was deleted meanwhile: deploy again")
        return after

    def _create(self, name: str, template: str, parameters: Mapping[str, str], *, is_new: bool) -> str:
        change_set = f"relaunch-{uuid.uuid4().hex[:12]}"
        self.stacks.create_change_set(
            StackName=name,
            ChangeSetName=change_set,
            ChangeSetType="CREATE" if is_new else "UPDATE",
            # With the same token a call that is sent twice makes one change set.
            ClientToken=change_set,
            TemplateBody=template,
            Capabilities=["CAPABILITY_IAM"],
            Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
        )
        return change_set

    def _describe(self, name: str, change_set: str) -> list[Mapping[str, Any]]:
        """Return the changes of resources and outputs, of which there may be none.

        Raises:
            RefusedError: CloudFormation refuses the template or its parameters.
        """
        answer = self._poll(
            lambda: self.stacks.describe_change_set(StackName=name, ChangeSetName=change_set),
            lambda found: found["Status"] in ("CREATE_COMPLETE", "FAILED"),
            f"the change set of {name}",
        )
        reason = answer.get("StatusReason", "")
        if answer["Status"] == "FAILED":
            if any(text in reason for text in _NO_CHANGE):
                return []
            raise RefusedError(f"CloudFormation refuses the stack {name}: {reason}")
        changes = list(answer["Changes"])
        while answer.get("NextToken"):
            answer = self.stacks.describe_change_set(
                StackName=name, ChangeSetName=change_set, NextToken=answer["NextToken"]
            )
            changes += answer["Changes"]
        return changes

    def _confirm(self, name: str, changes: Sequence[Mapping[str, Any]], parameters: Mapping[str, str]) -> None:
        """Show changes, of which there may be none, and ask whether to make them.

        Raises:
            RefusedError: the answer is no.
        """
        if not changes:
            return
        self.tell(f"{name}: {', '.join(f'{key}={value}' for key, value in parameters.items())}")
        for each in (change.get("ResourceChange", {}) for change in changes):
            if each:
                replaced = ", which replaces it" if each.get("Replacement") == "True" else ""
                self.tell(f"  {each['Action']} {each['LogicalResourceId']} ({each['ResourceType']}){replaced}")
        if not self.confirm(f"Deploy the stack {name}? [y/N] "):
            raise RefusedError(f"the changes of {name} were not confirmed: nothing was deployed")

    def _execute(self, name: str, change_set: str) -> None:
        self.stacks.execute_change_set(StackName=name, ChangeSetName=change_set, ClientRequestToken=change_set)

        def own_events() -> list[Mapping[str, Any]]:
            # The status of the stack is that of before for a moment; events have the token of the deployment.
            events = self.stacks.describe_stack_events(StackName=name)["StackEvents"]
            return [each for each in events if each.get("ClientRequestToken") == change_set]

        events = self._poll(own_events, lambda found: _end_of(name, found) is not None, f"the stack {name}")
        status = _end_of(name, events)
        if status not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
            # Newest first; what fails after the first failure was mostly cancelled.
            failures = [each for each in reversed(events) if each["ResourceStatus"].endswith("_FAILED")]
            reason = next((f"{each['LogicalResourceId']}: {each.get('ResourceStatusReason')}" for each in failures), "")
            raise RefusedError(f"the stack {name} was not deployed ({status}): {reason or 'see its events'}")

    def _discard(self, name: str, change_set: str, *, is_made_for_it: bool) -> None:
        self.stacks.delete_change_set(StackName=name, ChangeSetName=change_set)
        if is_made_for_it:
            # A stack that has never had more than this change set.
            self.stacks.delete_stack(StackName=name)

    def _poll(self, read: Callable[[], Any], is_done: Callable[[Any], bool], what: str) -> Any:
        for _ in range(_LONGEST_POLLS):
            found = read()
            if is_done(found):
                return found
            self.sleep(_POLL_SECONDS)
        minutes = int(_LONGEST_POLLS * _POLL_SECONDS / 60)
        raise RefusedError(f"{what} is not done after {minutes} minutes: see CloudFormation, then deploy again")


def read_stack(name: str, stacks: Any) -> Stack | None:
    """Return a stack, None if there is none.

    Raises:
        ClientError, BotoCoreError: the call failed.
    """
    try:
        found = stacks.describe_stacks(StackName=name)["Stacks"][0]
    except ClientError as error:
        # CloudFormation has no code of its own for it.
        if error.response["Error"]["Code"] == "ValidationError" and "does not exist" in str(error):
            return None
        raise
    return Stack(
        name,
        found["StackStatus"],
        {each["ParameterKey"]: each["ParameterValue"] for each in found.get("Parameters", [])},
        {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", [])},
    )


def _end_of(name: str, events: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the status that a deployment ended with, None while it goes on."""
    of_stack = (each["ResourceStatus"] for each in events if each["LogicalResourceId"] == name)
    return next((status for status in of_stack if not status.endswith("_IN_PROGRESS")), None)


def _check_status(stack: Stack) -> None:
    if stack.status in _BROKEN:
        raise RefusedError(
            f"the stack {stack.name} cannot be updated ({stack.status}): delete it, `aws cloudformation delete-stack "
            f"--stack-name {stack.name}`, and deploy again"
        )
    if stack.status.endswith("_IN_PROGRESS"):
        raise RefusedError(f"the stack {stack.name} is being changed ({stack.status}): deploy again when that is over")
    if stack.status == "UPDATE_ROLLBACK_FAILED":
        raise RefusedError(
            f"the stack {stack.name} cannot be updated ({stack.status}): `aws cloudformation continue-update-rollback "
            f"--stack-name {stack.name}`, then deploy again"
        )
