"""Deploys a stack by a change set, which is shown and confirmed first; a stack without changes is left alone."""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from relaunch_cli import exit_codes
from relaunch_cli.deployment.findings import Stack
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.stack_events import StackEvents, progress_line

_POLL_SECONDS = 3.0
# A launch template takes seconds, an instance profile half a minute.
_LONGEST_POLLS = 300
_REVIEW = "REVIEW_IN_PROGRESS"
NEVER_MADE = "ROLLBACK_COMPLETE"
"""The status of a stack whose first deployment failed: it has nothing, and can only be deleted."""
_BROKEN = ("ROLLBACK_FAILED", "CREATE_FAILED", "DELETE_FAILED")
_NO_CHANGE = ("didn't contain changes", "No updates are to be performed")


@dataclass(frozen=True)
class ChangeSets:
    """Deploys by change sets; `confirm` asks whoever deploys, `tell` prints a line."""

    stacks: Any
    confirm: Callable[[str], bool]
    tell: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep
    asks_for_new: bool = True
    """Whether the making of a new stack is confirmed too; not if whoever deploys has seen what it makes."""

    def deploy(self, name: str, template: str, parameters: Mapping[str, str], before: Stack | None) -> Stack:
        """Deploy the template with these parameters and no others; return the stack after that.

        Raises:
            RefusedError: the change was not confirmed, the stack cannot be changed now, or the deployment failed.
            ClientError, BotoCoreError: a call failed.
        """
        if before is not None and before.status == NEVER_MADE:
            self.remove(name)
            before = None
        is_new = before is None or before.status == _REVIEW
        if before is not None and not is_new:
            check_status(before)
        change_set = self._create(name, template, parameters, is_new=is_new)
        try:
            changes = self._describe(name, change_set)
            self._confirm(name, changes, parameters, is_asked=self.asks_for_new or not is_new)
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
            raise _deleted(name)
        return after

    def remove(self, name: str) -> None:
        """Delete a stack that was never made, and wait for its end.

        Raises:
            RefusedError: it was not deleted.
            ClientError, BotoCoreError: a call failed.
        """
        self.tell(f"{name}: deleting what is left of a first deployment that failed")
        # A stack that is gone is found by its ID alone.
        stack_id = self.stacks.describe_stacks(StackName=name)["Stacks"][0]["StackId"]
        self.stacks.delete_stack(StackName=name)

        def status() -> str:
            found = read_stack(stack_id, self.stacks)
            return "DELETE_COMPLETE" if found is None else found.status

        end = self._poll(status, lambda found: not found.endswith("_IN_PROGRESS"), f"the deletion of {name}")
        if end != "DELETE_COMPLETE":
            raise RefusedError(f"the stack {name} was not deleted ({end}): see its events, then deploy again")

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
            reasons = "; ".join((reason, *self._failures(name, change_set)))
            raise RefusedError(f"CloudFormation refuses the stack {name}: {reasons}")
        changes = list(answer["Changes"])
        while answer.get("NextToken"):
            answer = self.stacks.describe_change_set(
                StackName=name, ChangeSetName=change_set, NextToken=answer["NextToken"]
            )
            changes += answer["Changes"]
        return changes

    def _failures(self, name: str, change_set: str) -> Sequence[str]:
        """Return what CloudFormation found before it would change anything, as a name that something else has already.

        Its reason for the change set names the call alone ("Validate stack deployments", AWS CloudFormation User
        Guide).
        """
        try:
            answer = self.stacks.describe_events(
                StackName=name, ChangeSetName=change_set, Filters={"FailedEvents": True}
            )
        except ClientError:
            return ()
        found = {
            f"{each.get('LogicalResourceId', name)}: {text}": None
            for each in answer.get("OperationEvents", ())
            if (text := each.get("ValidationStatusReason") or each.get("ResourceStatusReason"))
        }
        return list(found)

    def _confirm(
        self, name: str, changes: Sequence[Mapping[str, Any]], parameters: Mapping[str, str], *, is_asked: bool
    ) -> None:
        """Show changes, of which there may be none, and ask whether to make them.

        Raises:
            RefusedError: the answer is no.
        """
        if not changes or not is_asked:
            return
        self.tell(f"{name}: {', '.join(f'{key}={value}' for key, value in parameters.items())}")
        for each in (change.get("ResourceChange", {}) for change in changes):
            if each:
                replaced = ", which replaces it" if each.get("Replacement") == "True" else ""
                self.tell(f"  {each['Action']} {each['LogicalResourceId']} ({each['ResourceType']}){replaced}")
        if not self.confirm(f"Deploy the stack {name}?"):
            raise RefusedError(f"the changes of {name} were not confirmed: nothing was deployed", exit_codes.CANCELLED)

    def _execute(self, name: str, change_set: str) -> None:
        events = StackEvents(self.stacks, name)
        self.stacks.execute_change_set(
            StackName=name,
            ChangeSetName=change_set,
            ClientRequestToken=change_set,
            # Buckets that a failed deployment made hold nothing, and the next one would make others.
            RetainExceptOnCreate=True,
        )
        status = self._poll(lambda: self._follow(name, change_set, events), bool, f"the stack {name}")
        if status not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
            raise RefusedError(
                f"the stack {name} was not deployed ({status}): {events.first_failure or 'see its events'}"
            )

    def _follow(self, name: str, token: str, events: StackEvents) -> str:
        """Tell what was done since the last time; return the status that the deployment ended with, empty before that.

        The status of the stack itself is that of before for a moment; events have the token of the deployment.
        """
        end = ""
        for event in events.read():
            if line := progress_line(event):
                self.tell(line)
            is_own = event["LogicalResourceId"] == name and event.get("ClientRequestToken") == token
            if is_own and not event["ResourceStatus"].endswith("_IN_PROGRESS"):
                end = event["ResourceStatus"]
        if not events.is_there:
            raise _deleted(name)
        return end

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
    return stack_of(name, found)


def list_stacks(stacks: Any) -> Iterator[Stack]:
    """Yield all stacks of the region.

    Raises:
        ClientError, BotoCoreError: a call failed.
    """
    token: Mapping[str, str] = {}
    while True:
        answer = stacks.describe_stacks(**token)
        yield from (stack_of(each["StackName"], each) for each in answer["Stacks"])
        if not answer.get("NextToken"):
            return
        token = {"NextToken": answer["NextToken"]}


def stack_of(name: str, found: Mapping[str, Any]) -> Stack:
    """Return a stack as DescribeStacks answers it."""
    return Stack(
        name,
        found["StackStatus"],
        {each["ParameterKey"]: each["ParameterValue"] for each in found.get("Parameters", [])},
        {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", [])},
    )


def _deleted(name: str) -> RefusedError:
    return RefusedError(f"the stack {name} was deleted meanwhile: deploy again")


def check_status(stack: Stack) -> None:
    """Check that a stack can be updated now.

    Raises:
        RefusedError: it cannot; the message has the command that helps.
    """
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
