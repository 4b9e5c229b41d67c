"""Regions that Relaunch can be used in."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import UnknownRegionError

from relaunch_cli.errors import REGION_KEY, CommandError, did_you_mean

if TYPE_CHECKING:
    import boto3

# `regionRegex` of the partition `aws` in botocore's partitions.json: to ask botocore takes a third of a client's time.
_OF_PARTITION_AWS = re.compile(r"(us|eu|ap|sa|ca|me|af|il|mx)-\w+-\d+")


def check_region(region: str, session: "boto3.Session") -> None:
    """Check that boto3 knows a region, and that Relaunch can be used there.

    Raises:
        CommandError: it does not; the hint names the nearest regions. Or it is in another partition.
    """
    check_partition(region, session)
    known = session.get_available_regions("ssm")
    if region not in known:
        raise CommandError(f"there is no region {region!r}", did_you_mean(region, known))


def check_partition(region: str, session: "boto3.Session") -> None:
    """Refuse regions of other partitions.

    The Price List answers keys of AWS GovCloud (US) nowhere, and in CNY in China; without prices no choice is right.

    Raises:
        CommandError: the region is in another partition than `aws`.
    """
    if _OF_PARTITION_AWS.fullmatch(region):
        return
    try:
        partition = session.get_partition_for_region(region)
    except UnknownRegionError:
        return
    if partition != "aws":
        text = f"{region} is in the partition {partition}, without prices in USD: Relaunch is not supported there"
        raise CommandError(text, "use a region of the partition aws, for example us-east-1")


def tell_region(session: "boto3.Session") -> None:
    """Note the region of the client in the metadata of each answer, for errors that may come of the region."""
    session.events.register("after-call", _note_region)


def _note_region(parsed: dict[str, Any], context: Mapping[str, Any], **_event: object) -> None:
    parsed.setdefault("ResponseMetadata", {})[REGION_KEY] = context.get("client_region", "")
