"""The stack a command works on: its world, its logs, and the time between two looks."""

# ruff: noqa: PLC0415 - boto3 and our core are imported where they are needed, so that `relaunch --help` is fast

import os
import time
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from relaunch_cli import exit_codes
from relaunch_cli.failures import CommandError
from relaunch_cli.job_logs import LogSource

if TYPE_CHECKING:
    import boto3

    from relaunch.core.ami import Ami, AmiKind, AmiSystem
    from relaunch.ports import DeadLetters, World


class AmiSource(Protocol):
    """Machine images that ECS recommends, of one region."""

    @property
    def region(self) -> str:
        """Return the region's name."""
        ...

    def recommended(self, kinds: "Iterable[AmiKind]", system: "AmiSystem") -> "list[Ami]":
        """Return an image for each kind; without an id where the region has none.

        Raises:
            PermanentError: the caller may not ask.
            TransientError: throttled or unreachable.
        """
        ...


class Connection(Protocol):
    """What commands need of the outside; tests give their own."""

    @property
    def world(self) -> "World":
        """Return the world of the stack.

        Raises:
            CommandError: there is no such stack, or it is not Relaunch's.
        """
        ...

    @property
    def logs(self) -> LogSource:
        """Return where the trainings' logs are."""
        ...

    def amis(self, region: str) -> AmiSource:
        """Return where a region's recommended images are read; empty: the region that the caller works in.

        Raises:
            CommandError: there is no such region.
        """
        ...

    @property
    def dead_letters(self) -> "DeadLetters":
        """Return the stack's dead-letter queues.

        Raises:
            CommandError: there is no such stack, or it is not Relaunch's.
        """
        ...

    def pause(self, seconds: float) -> None:
        """Let time pass between two looks."""
        ...


class AwsConnection:
    """A deployed stack, with the caller's own credentials."""

    def __init__(self, stack: str) -> None:
        self._stack = stack

    @cached_property
    def _session(self) -> "boto3.Session":
        import boto3

        # boto3 itself reads AWS_DEFAULT_REGION and the profile only.
        return boto3.Session(region_name=os.environ.get("AWS_REGION") or None)

    @cached_property
    def world(self) -> "World":
        from relaunch.bootstrap import make_world
        from relaunch.settings import InvalidSettingsError, Settings

        try:
            settings = Settings.from_stack_outputs(self._outputs())
        except InvalidSettingsError as error:
            hint = "is it a stack of Relaunch, completely deployed, and not older than this command?"
            raise CommandError(f"stack {self._stack!r}: {error}", hint, exit_codes.NOT_FOUND) from error
        return make_world(settings, self._session)

    @cached_property
    def logs(self) -> LogSource:
        from relaunch_cli.cloudwatch import CloudWatchLogs

        return CloudWatchLogs(self._session)

    def amis(self, region: str) -> AmiSource:
        from botocore.exceptions import NoRegionError

        from relaunch.adapters.aws.ami_parameters import SsmAmis
        from relaunch.core.catalogue import nearest_names

        chosen = region or self._session.region_name
        if not chosen:
            raise NoRegionError
        known = [
            name
            for part in ("aws", "aws-cn", "aws-us-gov")
            for name in self._session.get_available_regions("ssm", part)
        ]
        if chosen not in known:
            near = nearest_names(chosen, known)
            hint = f"did you mean {' or '.join(near)}?" if near else ""
            raise CommandError(f"there is no region {chosen!r}", hint)
        return SsmAmis(self._session.client("ssm", region_name=chosen), chosen)

    @cached_property
    def dead_letters(self) -> "DeadLetters":
        from relaunch.bootstrap import make_dead_letters

        found = make_dead_letters(self._outputs(), self._session)
        if not found.queues():
            hint = "is it a stack of Relaunch, completely deployed, and not older than this command?"
            raise CommandError(f"stack {self._stack!r} has no dead-letter queues", hint, exit_codes.NOT_FOUND)
        return found

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def _outputs(self) -> Mapping[str, str]:
        from botocore.config import Config
        from botocore.exceptions import ClientError

        patience = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 2})
        try:
            client = self._session.client("cloudformation", config=patience)
            answer = client.describe_stacks(StackName=self._stack)
        except ClientError as error:
            # CloudFormation answers ValidationError for a stack that is not there (DescribeStacks, "Errors").
            if error.response["Error"]["Code"] != "ValidationError":
                raise
            hint = "name it with --stack or RELAUNCH_STACK, and check AWS_REGION and AWS_PROFILE"
            raise CommandError(
                f"there is no stack {self._stack!r} in {self._session.region_name}", hint, exit_codes.NOT_FOUND
            ) from error
        stack = answer["Stacks"][0]
        return {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", [])}
