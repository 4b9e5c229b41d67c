"""What a region offers, for plans before there is a stack (DescribeSpotPriceHistory, EC2 API Reference)."""

from typing import TYPE_CHECKING

from relaunch.adapters.aws.client_config import CLIENT_CONFIG
from relaunch.adapters.aws.ec2.spot_prices import Ec2SpotPrices
from relaunch.adapters.offerings.current_snapshot import CurrentSnapshot
from relaunch.adapters.offerings.regional import CurrentRegionalOfferings
from relaunch.bootstrap import SystemClock
from relaunch.core.offerings.snapshot import OfferingsSnapshot
from relaunch.ports import OfferingSource, SilentLog

if TYPE_CHECKING:
    import boto3


class _NeverRefreshed:
    """Implements SnapshotSource where no stack refreshes one."""

    def load_snapshot(self) -> OfferingsSnapshot | None:
        return None


def offerings_without_stack(session: "boto3.Session") -> OfferingSource:
    """Return each type of the session's region in each of its zones, with the spot prices that EC2 tells now.

    If it tells none, they are not known; on-demand prices are the bundled ones.
    """
    log = SilentLog()
    snapshot = CurrentSnapshot(_NeverRefreshed(), session.region_name or "", log)
    client = session.client("ec2", config=CLIENT_CONFIG)
    return CurrentRegionalOfferings(snapshot, Ec2SpotPrices(client, SystemClock()), log)
