"""Spot placement scores (GetSpotPlacementScores; "Spot placement score", EC2 User Guide).

A score is for a set of alternative instance types, and is always low for fewer than three. EC2 limits the number of new
configurations per account in 24 hours: those for a region stay the same as long as the stack's spot types, subnets and
launch templates and the region's types do.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from relaunch.adapters.aws.errors import AwsError, aws_errors, readable_answer
from relaunch.core.offerings.offering import MIN_TYPES
from relaunch.ports import Clock, DecisionLog, TransientError

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

MAX_AGE = timedelta(hours=1)
_NO_SCORES: Mapping[str, int] = MappingProxyType({})


class Ec2RegionScores:
    """Implements RegionScoreSource."""

    def __init__(self, client: "EC2Client", region: str) -> None:
        self._client = client
        self._region = region

    def region_score(self, instance_types: Sequence[str], vcpus: int) -> int | None:
        doing = f"requesting the placement score of {', '.join(instance_types)}"
        with aws_errors(doing), readable_answer(doing):
            answer = self._client.get_spot_placement_scores(
                InstanceTypes=instance_types,
                TargetCapacity=vcpus,
                TargetCapacityUnitType="vcpu",
                SingleAvailabilityZone=False,
                RegionNames=[self._region],
            )
            return next((each["Score"] for each in answer["SpotPlacementScores"]), None)


class Ec2ZoneScores:
    """Implements ZoneScoreSource; caches a response, also a failed one, for an hour."""

    def __init__(self, client: "EC2Client", region: str, clock: Clock, log: DecisionLog) -> None:
        self._client = client
        self._region = region
        self._clock = clock
        self._log = log
        self._kept: dict[frozenset[str], tuple[datetime, Mapping[str, int]]] = {}
        self._zone_names: Mapping[str, str] = {}

    def zone_scores(self, instance_types: Iterable[str]) -> Mapping[str, int]:
        wanted = frozenset(instance_types)
        if len(wanted) < MIN_TYPES:
            return _NO_SCORES
        now = self._clock.now()
        if wanted not in self._kept or now - self._kept[wanted][0] >= MAX_AGE:
            self._kept[wanted] = (now, self._ask(wanted))
        return self._kept[wanted][1]

    def _ask(self, wanted: frozenset[str]) -> Mapping[str, int]:
        try:
            # Scores have zone IDs (use1-az4), whose names differ between accounts.
            self._zone_names = self._zone_names or self._ask_zone_names()
            pages = self._client.get_paginator("get_spot_placement_scores").paginate(
                InstanceTypes=sorted(wanted),
                TargetCapacity=1,
                TargetCapacityUnitType="units",
                SingleAvailabilityZone=True,
                RegionNames=[self._region],
            )
            scores: list[Any] = [score for page in pages for score in page["SpotPlacementScores"]]
            names = self._zone_names
            with readable_answer("reading placement scores"):
                return {names[zone]: each["Score"] for each in scores if (zone := each["AvailabilityZoneId"]) in names}
        except (*AwsError, TransientError) as error:
            self._log.decided("placement-scores-unknown", reason=str(error))
            return _NO_SCORES

    def _ask_zone_names(self) -> Mapping[str, str]:
        zones = self._client.describe_availability_zones()["AvailabilityZones"]
        return {zone["ZoneId"]: zone["ZoneName"] for zone in zones}
