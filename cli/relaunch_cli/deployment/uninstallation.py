"""Removes a deployment: lets nothing start any more, ends what runs, deletes the stacks, and says what is kept."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from relaunch.usecases.cancel_job import cancel_job
from relaunch_cli.deployment.capacity_providers import PROVIDER_NAME, ProviderStacks, find_provider_stacks
from relaunch_cli.deployment.change_set import ChangeSets, read_stack
from relaunch_cli.deployment.findings import Stack
from relaunch_cli.deployment.github_stacks import find_github_stacks
from relaunch_cli.deployment.provider_groups import ProviderGroup
from relaunch_cli.deployment.receivers import close_receivers
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.stack_events import StackEvents, progress_line
from relaunch_cli.deployment.training_roles import find_role_stacks

if TYPE_CHECKING:
    from relaunch.ports import Dependencies, UploadRules

_POLL_SECONDS = 5.0
# The stop time-out of tasks and the end of their machines, with time to spare.
_LONGEST_DRAIN_SECONDS = 900.0
_LONGEST_DELETION_SECONDS = 3_600.0
_MOST = 1_000


@dataclass(frozen=True)
class Uninstallation:
    """Removes the stacks of one application; `tell` prints a line."""

    stack: str
    clients: Callable[[str], Any]
    tell: Callable[[str], None]
    sleep: Callable[[float], None]

    def find_stacks(self) -> Sequence[Stack]:
        """Return the stacks that exist, in the order in which they can be deleted.

        Raises:
            ClientError, BotoCoreError: a call failed.
        """
        stacks = self.clients("cloudformation")
        # Providers first: what they pay for ends with them, and nothing else does that.
        found = list(find_provider_stacks(self.stack, stacks))
        names = (self.stack, f"{self.stack}-machines", f"{self.stack}-training")
        found += [each for name in names if (each := read_stack(name, stacks)) is not None]
        found += find_role_stacks(self.stack, stacks)
        found += find_github_stacks(self.stack, stacks)
        return found

    def end_application(self, found: Iterable[Stack], deps: "Dependencies", rules: "UploadRules") -> None:
        """End all that an application runs, and delete the stacks of its capacity providers among `found`.

        Raises:
            RefusedError: something still runs, or a stack could not be deleted.
            PermanentError, TransientError, ClientError, BotoCoreError: a call failed.
        """
        self.close()
        self.drain(deps)
        # Whoever ends a removal while machines of providers end, and deploys again, still has the rules.
        self.delete([each for each in found if PROVIDER_NAME in each.parameters])
        self.remove_rules(rules)

    def close(self) -> None:
        """Let nothing start a job any more: GitHub and callers are answered that they are throttled.

        Raises:
            ClientError, BotoCoreError: a call failed.
        """
        close_receivers(self.stack, self.clients("lambda"), self.clients("cloudformation"))
        self.tell("no event starts a job any more; `relaunch deploy` changes that again")

    def drain(self, deps: "Dependencies") -> None:
        """Cancel the open jobs, and wait until they and their machines are gone.

        Raises:
            RefusedError: something still runs; nothing was deleted.
            PermanentError, TransientError: a call failed.
        """
        cancelled: set[str] = set()
        self._wait(lambda: self._cancel(deps, cancelled), _LONGEST_DRAIN_SECONDS)

    def remove_rules(self, rules: "UploadRules") -> None:
        """Remove the rules of triggers, which are not those of the stack.

        Raises:
            PermanentError, TransientError: a call failed.
        """
        for rule in rules.list_rules():
            rules.remove_rule(rule.name)
            self.tell(f"removed the rule {rule.name}")

    def delete(self, found: Iterable[Stack]) -> None:
        """Delete the stacks one after the other.

        Raises:
            RefusedError: CloudFormation could not delete one; those before it are gone.
            ClientError, BotoCoreError: a call failed.
        """
        stacks = self.clients("cloudformation")
        for each in found:
            self.tell(f"deleting the stack {each.name}")
            if provider := each.parameters.get(PROVIDER_NAME):
                self._end_provider(provider, each.parameters["ClusterName"])
            # Events and status of a stack that is gone are found by its ID alone.
            stack_id = stacks.describe_stacks(StackName=each.name)["Stacks"][0]["StackId"]
            events = StackEvents(stacks, stack_id)
            stacks.delete_stack(StackName=each.name)
            status = self._end_of_deletion(stack_id, events)
            if status != "DELETE_COMPLETE":
                why = events.first_failure or "see its events"
                raise RefusedError(f"the stack {each.name} was not deleted ({status}): {why}; then run this again")

    def _end_provider(self, provider: str, cluster: str) -> None:
        """Take a provider off its cluster, and end its machines.

        CloudFormation deletes no group with machines that are protected from scale-in, as those of ECS are
        (github.com/aws/aws-cdk/issues/18179): it waits for them until it gives up.

        Raises:
            RefusedError: the provider is in use, or a machine is still there; nothing more was deleted.
            ClientError, BotoCoreError: a call failed.
        """
        # First of all, so that ECS scales the group no more; and ECS deletes no provider that a cluster has.
        change_sets = ChangeSets(self.clients("cloudformation"), bool, self.tell)
        ProviderStacks(self.stack, "", self.clients("ecs"), change_sets, self.sleep).associate(cluster, (), (provider,))
        group = ProviderGroup(provider, self.clients("autoscaling"), self.clients("ec2"))
        self._wait(group.end, _LONGEST_DRAIN_SECONDS, "see the console of EC2 Auto Scaling")

    def _end_of_deletion(self, stack_id: str, events: StackEvents) -> str:
        ends: list[str] = []

        def follow() -> Sequence[str]:
            for line in filter(None, map(progress_line, events.read())):
                self.tell(line)
            stack = read_stack(stack_id, self.clients("cloudformation"))
            status = stack.status if stack else "DELETE_COMPLETE"
            ends.append(status)
            return ["its deletion"] if status.endswith("_IN_PROGRESS") else []

        self._wait(follow, _LONGEST_DELETION_SECONDS)
        return ends[-1]

    def _cancel(self, deps: "Dependencies", cancelled: set[str]) -> Sequence[str]:
        """Cancel the open jobs that are not yet, also those that people submit meanwhile; return what is left."""
        jobs = deps.jobs.load_open(_MOST)
        for job_id in jobs:
            if job_id not in cancelled:
                cancel_job(job_id, "the stack is being removed", deps)
                self.tell(f"cancelled {job_id}")
                cancelled.add(job_id)
        machines = deps.machines.load_living(_MOST)
        return [*(f"job {each}" for each in jobs), *(f"machine {each}" for each in machines)]

    def _wait(
        self,
        what_is_left: Callable[[], Sequence[str]],
        longest: float,
        where: str = "see `relaunch ps` and `relaunch machines`",
    ) -> None:
        waited = 0.0
        last = 0
        while left := what_is_left():
            if waited >= longest:
                shown = ", ".join(left[:5]) + (f" and {len(left) - 5} others" if len(left) > 5 else "")
                raise RefusedError(
                    f"after {longest / 60:.0f} minutes there still is {shown}: nothing more was deleted; {where}, then "
                    "run this again"
                )
            if len(left) != last:
                self.tell(f"waiting for {len(left)}: {left[0]}{' …' if len(left) > 1 else ''}")
                last = len(left)
            self.sleep(_POLL_SECONDS)
            waited += _POLL_SECONDS


def is_complete(application: Stack) -> bool:
    """Return whether the application works, so that it can end its jobs and machines before it is deleted."""
    return bool(application.outputs) and not application.status.startswith(("DELETE_", "ROLLBACK_"))
