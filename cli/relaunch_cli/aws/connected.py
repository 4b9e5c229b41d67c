"""What commands need of a connection to a deployed stack; only type checkers import it."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from relaunch.core.checks import Check
    from relaunch.core.definitions.definition import JobDefinition
    from relaunch.ports import DeadLetters, Dependencies, JobListing, OfferingSource, Schedules, UploadRules
    from relaunch_cli.account_readers.diagnosis import StackAccess
    from relaunch_cli.aws.account import AwsAccount
    from relaunch_cli.aws.ami_source import AmiSource
    from relaunch_cli.aws.local_world import LocalControls
    from relaunch_cli.aws.notices import StackNotices
    from relaunch_cli.aws.webhook_secret import WebhookSecretStore
    from relaunch_cli.job_logs import LogSource, PodLogSource


class Connection(Protocol):
    """What commands need from the outside; tests have a connection of their own."""

    @property
    def deps(self) -> "Dependencies":
        """Return the dependencies of the stack's use cases.

        Raises:
            CommandError: it is not a stack of Relaunch.
            NotConnectedError: there is no such stack, no region, or no credentials.
        """

    @property
    def all_types(self) -> "Dependencies":
        """Return the same dependencies with every instance type of the region on offer: for planning only.

        Raises:
            CommandError: as `deps`.
        """

    @property
    def without_stack(self) -> "OfferingSource":
        """Return what the region in use offers, for planning where there is no stack."""
        ...

    @property
    def jobs(self) -> "JobListing":
        """Return the list of the stack's jobs, which takes less time to import than `deps`.

        Raises:
            CommandError: as `deps`.
        """
        ...

    def now(self) -> datetime:
        """Return the current time, aware, in UTC."""
        ...

    @property
    def logs(self) -> "LogSource":
        """Return the source of the logs of tasks on ECS."""

    @property
    def pod_logs(self) -> "PodLogSource":
        """Return the source of the logs of tasks on Kubernetes, by the caller's kubeconfig.

        Raises:
            CommandError: as `deps`.
        """
        ...

    def amis(self, region: str) -> "AmiSource":
        """Return the source of a region's recommended images; empty: the region in use.

        Raises:
            CommandError: there is no such region.
        """

    @property
    def dead_letters(self) -> "DeadLetters":
        """Return the stack's dead-letter queues.

        Raises:
            CommandError: as `deps`.
        """

    @property
    def caller(self) -> str:
        """Return the ARN of whose credentials these are, as core.definitions.ownership.caller_of has it.

        GetCallerIdentity needs no permission (API reference of AWS STS).
        """

    @property
    def upload_rules(self) -> "UploadRules":
        """Return the rules of EventBridge that send uploads to the stack.

        Raises:
            CommandError: as `deps`.
        """
        ...

    @property
    def schedules(self) -> "Schedules":
        """Return the schedules of EventBridge Scheduler that start jobs.

        Raises:
            CommandError: as `deps`.
        """
        ...

    @property
    def webhook(self) -> "WebhookSecretStore":
        """Return where the secrets of the webhook are stored.

        Raises:
            CommandError: as `deps`.
        """
        ...

    @property
    def notices(self) -> "StackNotices":
        """Return the receivers of notices; raises CommandError as `deps`, or if the stack sends none."""
        ...

    @property
    def account(self) -> "AwsAccount":
        """Return the account and the region in use.

        Raises:
            NotConnectedError: no region is set.
        """

    @property
    def access(self) -> "StackAccess":
        """Return what the checks of an account need of the stack.

        Raises:
            CommandError: as `deps`.
        """
        ...

    @property
    def local_world(self) -> "LocalControls":
        """Return the controls of the local world."""
        ...

    def check_watched(self, definitions: "Sequence[JobDefinition]") -> "Sequence[Check]":
        """Check that what the triggers of definitions watch is there, and tells of itself; as `doctor` does."""
        ...

    def pause(self, seconds: float) -> None:
        """Sleep between two polls."""
