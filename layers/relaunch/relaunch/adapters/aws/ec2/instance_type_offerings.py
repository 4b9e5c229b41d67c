"""The zones of instance types (DescribeInstanceTypeOfferings, EC2 API Reference)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from relaunch.adapters.aws.errors import aws_errors

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

# The maximum of DescribeInstanceTypeOfferings.
_PAGE_SIZE = 1000


class Ec2InstanceTypeOfferings:
    """Implements ZoneSource; zone names are those of the caller's account."""

    def __init__(self, client: "EC2Client") -> None:
        self._client = client

    def zones(self, instance_types: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        wanted = frozenset(instance_types)
        found: dict[str, list[str]] = defaultdict(list)
        with aws_errors("asking EC2 for the zones of instance types"):
            # All types are read: a filter takes at most 200 values.
            pages = self._client.get_paginator("describe_instance_type_offerings").paginate(
                LocationType="availability-zone", PaginationConfig={"PageSize": _PAGE_SIZE}
            )
            for page in pages:
                for offering in page["InstanceTypeOfferings"]:
                    if offering["InstanceType"] in wanted:
                        found[offering["InstanceType"]].append(offering["Location"])
        return {name: tuple(sorted(zones)) for name, zones in sorted(found.items())}
