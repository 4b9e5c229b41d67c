"""A region whose offerings are refreshed, and what AWS says of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from fakes.builders import NOW, make_instance_type
from fakes.clock import FakeClock
from fakes.sources import FakeSnapshots, FakeSpotPrices, ListLog
from relaunch.core.machines.settings import MachineSettings
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.snapshot import OfferingsSnapshot, Origin, SnapshotPart
from relaunch.ports import PermanentError, RefreshDependencies
from relaunch.usecases.refresh_offerings import refresh_offerings

G5, NEW = make_instance_type("g5.xlarge"), make_instance_type("g9.xlarge")
LARGE_G5 = [make_instance_type(f"g5.{size}xlarge", vcpus=4 * size) for size in (2, 48)]
CATALOGUE = {row.name: row for row in (G5, *LARGE_G5, make_instance_type("p2.xlarge"))}
ZONES = {name: ("us-east-1a",) for name in CATALOGUE if name != "p2.xlarge"} | {
    "g5.xlarge": ("us-east-1a", "us-east-1b"),
    "g9.xlarge": ("us-east-1a",),
}
SIZES = ("g5.2xlarge", "g5.48xlarge", "g5.xlarge")
LONG_AGO = Origin("AWS", NOW - timedelta(days=2))
OLD = (
    OfferingsSnapshot("us-east-1")
    .with_part(SnapshotPart.INSTANCE_TYPES, {}, LONG_AGO)
    .with_part(SnapshotPart.ZONES, {"g5.xlarge": ("us-east-1f",)}, LONG_AGO)
    .with_part(SnapshotPart.ON_DEMAND_PRICES, {"g5.xlarge": 7.0}, LONG_AGO)
    .with_part(SnapshotPart.DISK_PRICE, 0.7, LONG_AGO)
    .with_part(SnapshotPart.SPOT_PRICES, {"g5.xlarge": {"us-east-1f": 0.7}}, LONG_AGO)
    .with_part(SnapshotPart.QUOTAS, {"L-3819A6DF": 4.0}, LONG_AGO)
    .with_part(SnapshotPart.PLACEMENT_SCORES, {"g5.xlarge": 1}, LONG_AGO)
)


@dataclass
class FakeAws:
    """Implements the sources of instance types, zones, list prices, quotas and scores; `failures` by name of a method.

    `refused` are numbers of vCPUs without a spot placement score.
    """

    described: dict[str, InstanceType] = field(default_factory=lambda: {"g5.xlarge": G5, "g9.xlarge": NEW})
    failures: dict[str, Exception] = field(default_factory=dict)
    asked: dict[str, list[str]] = field(default_factory=dict)
    scores: dict[int, int | None] = field(default_factory=lambda: {4: 8, 192: 2})
    refused: set[int] = field(default_factory=set)
    questions: list[tuple[tuple[str, ...], int]] = field(default_factory=list)

    def instance_types(self) -> Mapping[str, InstanceType]:
        self._call("instance_types")
        return self.described

    def zones(self, instance_types: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        self._call("zones", instance_types)
        return ZONES

    def on_demand_prices(self, instance_types: Iterable[str]) -> Mapping[str, float]:
        self._call("on_demand_prices", instance_types)
        return {"g5.xlarge": 1.0, "g9.xlarge": 2.0}

    def gp3_price(self) -> float:
        self._call("gp3_price")
        return 0.08

    def vcpu_quotas(self, codes: Iterable[str]) -> Mapping[str, float]:
        self._call("vcpu_quotas", codes)
        return {"L-3819A6DF": 64.0}

    def region_score(self, instance_types: Sequence[str], vcpus: int) -> int | None:
        self._call("region_score", instance_types)
        self.questions.append((tuple(instance_types), vcpus))
        if vcpus in self.refused:
            raise PermanentError("MaxConfigLimitExceeded")
        return self.scores[vcpus]

    def _call(self, method: str, instance_types: Iterable[str] = ()) -> None:
        self.asked[method] = sorted(instance_types)
        if method in self.failures:
            raise self.failures[method]


class Region:
    """A region whose offerings are refreshed for a stack with these types on spot."""

    def __init__(self, stored: OfferingsSnapshot | None = None, *spot_types: str) -> None:
        self.spot_types = frozenset(spot_types or ("g5.xlarge",))
        self.machine_settings = MachineSettings()
        self.aws, self.snapshots, self.clock, self.log = FakeAws(), FakeSnapshots(stored), FakeClock(), ListLog()
        self.spot_prices = FakeSpotPrices({("g5.xlarge", "us-east-1a"): 0.4, ("g9.xlarge", "us-east-1a"): 0.9})

    def refresh(self) -> dict[str, str]:
        return refresh_offerings(
            RefreshDependencies(
                region="us-east-1",
                catalogue=CATALOGUE,
                spot_types=self.spot_types,
                machine_settings=self.machine_settings,
                instance_types=self.aws,
                zones=self.aws,
                price_list=self.aws,
                spot_prices=self.spot_prices,
                region_scores=self.aws,
                quotas=self.aws,
                snapshots=self.snapshots,
                clock=self.clock,
                log=self.log,
            )
        )

    @property
    def stored(self) -> OfferingsSnapshot:
        assert self.snapshots.stored is not None
        return self.snapshots.stored
