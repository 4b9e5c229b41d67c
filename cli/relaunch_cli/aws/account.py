"""The account and region that a deployment is made in, with the caller's own credentials."""

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from relaunch_cli import exit_codes
from relaunch_cli.aws.regions import check_partition, tell_region
from relaunch_cli.errors import REGION_HINT, CommandError

if TYPE_CHECKING:
    import boto3


class AwsAccount:
    """Makes clients of the region in use, or of a session."""

    def __init__(self, session: "boto3.Session | None" = None) -> None:
        self._given = session

    @cached_property
    def _session(self) -> "boto3.Session":
        if self._given is not None:
            return self._given

        # boto3 itself reads AWS_DEFAULT_REGION and the profile only.
        session = boto3.Session(region_name=os.environ.get("AWS_REGION") or None)
        if not session.region_name:
            raise CommandError("no AWS region is set", REGION_HINT, exit_codes.REFUSED)
        check_partition(session.region_name, session)
        tell_region(session)
        return session

    @property
    def region(self) -> str:
        """The name of the region.

        Raises:
            CommandError: there is none, or it is in a partition that is not supported.
        """
        return str(self._session.region_name)

    @cached_property
    def id(self) -> str:
        """The number of the account.

        Raises:
            ClientError, BotoCoreError: no credentials, or AWS does not accept them.
        """
        return str(self.client("sts").get_caller_identity()["Account"])

    def client(self, service: str) -> Any:
        """Return a client, which tries again what was throttled or not answered."""
        config = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 4})
        make: Any = self._session.client
        return make(service, config=config)
