"""Capacity reservations of the account, or shared with it (DescribeCapacityReservations, EC2 API Reference)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from relaunch.adapters.aws.ec2.instances import ask_about_each
from relaunch.adapters.aws.errors import readable_answer
from relaunch.core.offerings.reservations import Reservation, ReservationType
from relaunch.ports import Clock, TransientError

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import CapacityReservationTypeDef

MAX_AGE = timedelta(seconds=30)
"""How long an answer is used again: the jobs of one batch, which are launched after each other, share it."""

_ABSENT = dict.fromkeys(("InvalidCapacityReservationId.NotFound", "InvalidCapacityReservationId.Malformed"))
# "CapacityReservation" (API Reference): `launchStatus`, only supported for UltraServers.
_UNLAUNCHABLE = "unlaunchable"
_LINUX = "Linux/UNIX"


class Ec2Reservations:
    """Implements ReservationSource."""

    def __init__(self, client: "EC2Client", clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._kept: tuple[datetime, Sequence[str], tuple[Reservation, ...]] | None = None

    def reservations(self, reservation_ids: Sequence[str]) -> tuple[Reservation, ...]:
        now = self._clock.now()
        if not reservation_ids:
            return ()
        if self._kept is not None and self._kept[1] == reservation_ids and now - self._kept[0] < MAX_AGE:
            return self._kept[2]
        try:
            with readable_answer("reading reservations"):
                described = ask_about_each(reservation_ids, self._describe, _ABSENT)
        except (BotoCoreError, ClientError) as error:
            raise TransientError(f"reservations {', '.join(reservation_ids)} cannot be read: {error}") from error
        found = tuple(each for each in described.values() if each is not None)
        self._kept = (now, reservation_ids, found)
        return found

    def _describe(self, reservation_ids: list[str]) -> Mapping[str, Reservation | None]:
        found = {each["CapacityReservationId"]: _reservation(each) for each in self._entries(reservation_ids)}
        return {each: found.get(each) for each in reservation_ids}

    def _entries(self, reservation_ids: list[str]) -> "Iterator[CapacityReservationTypeDef]":
        call: Callable[..., Any] = self._client.describe_capacity_reservations
        token: str | None = None
        while True:
            page = call(CapacityReservationIds=reservation_ids, **({"NextToken": token} if token else {}))
            yield from page["CapacityReservations"]
            previous, token = token, page.get("NextToken")
            if not token:
                return
            if token == previous:
                raise TransientError("EC2 answered a page with the token of that page")


def _reservation(entry: "CapacityReservationTypeDef") -> Reservation:
    is_block = entry.get("ReservationType") == ReservationType.CAPACITY_BLOCK.value
    return Reservation(
        reservation_id=entry["CapacityReservationId"],
        type=ReservationType.CAPACITY_BLOCK if is_block else ReservationType.ON_DEMAND,
        instance_type=entry["InstanceType"],
        zone=entry["AvailabilityZone"],
        state=entry["State"],
        total=entry.get("TotalInstanceCount", 0),
        available=entry.get("AvailableInstanceCount", 0),
        starts_at=_utc(entry.get("StartDate")),
        ends_at=_utc(entry.get("EndDate")),
        obstacle=_obstacle(entry),
        is_launchable=entry.get("LaunchStatus") != _UNLAUNCHABLE,
    )


def _obstacle(entry: "CapacityReservationTypeDef") -> str:
    """Return why no machine of a stack can be launched into the reservation; the machines run Linux."""
    platform = entry.get("InstancePlatform", _LINUX)
    tenancy = entry.get("Tenancy", "default")
    if platform != _LINUX:
        return f"is for {platform}, and machines run Linux"
    if tenancy != "default":
        return f"has tenancy {tenancy}, and machines have default"
    return "may be taken back within two minutes, which is not supported" if entry.get("Interruptible") else ""


def _utc(at: datetime | None) -> datetime | None:
    return at.astimezone(UTC) if at else None
