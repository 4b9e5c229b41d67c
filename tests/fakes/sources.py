"""Fakes of what is only asked: revisions, offerings, spot prices, images, checkpoints; and of what is only told."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from fakes.builders import NOW, make_offering, make_revision
from relaunch.adapters.offerings.bundled import load_peaks
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.budgets import BudgetReport
from relaunch.core.jobs.progress import SavedCheckpoint
from relaunch.core.jobs.reported import Reported
from relaunch.core.launches.launch import HostObservation
from relaunch.core.lifecycle.change_events import JobStateChange
from relaunch.core.machines.events import InstanceObservation
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.peaks import Peaks
from relaunch.core.offerings.snapshot import OfferingsSnapshot, Origin, PriceOrigin, SnapshotPart
from relaunch.core.revisions.images import FoundImage
from relaunch.core.revisions.revision import Revision
from relaunch.ports import ANY_OPTION, NoActiveRevisionError, Sent
from relaunch.ports.checkpoints import ignore_unusable

MAX_DELAY_SECONDS = 900
EVERY_PLATFORM = ("linux/amd64", "linux/arm64")


class _FailsOnce:
    """`failure`, when set, is raised once."""

    failure: Exception | None = None

    def _fail_once(self) -> None:
        if self.failure:
            failure, self.failure = self.failure, None
            raise failure


class FakeRevisions(_FailsOnce):
    """Implements RevisionSource; `failure`, when set, is raised once."""

    def __init__(self, *revisions: Revision) -> None:
        self.active = list(revisions or (make_revision(),))
        self.call_count = 0

    def newest_active(self, family: str, since: datetime | None = None) -> Revision:
        self.call_count += 1
        self._fail_once()
        found = [revision for revision in self.active if revision.family == family]
        if not found:
            raise NoActiveRevisionError(f"the family {family} has no ACTIVE revision")
        return max(found, key=lambda revision: revision.revision)


class FakeOfferings:
    """Implements OfferingSource; by default g5.xlarge and g6.xlarge, each spot and on-demand.

    `origins` are those of prices, `refreshed` is the snapshot.
    """

    def __init__(self, *offerings: Offering) -> None:
        self.available: tuple[Offering, ...] = offerings or (
            make_offering("g5.xlarge", PurchaseOption.SPOT, price_usd_per_hour=0.40),
            make_offering("g6.xlarge", PurchaseOption.SPOT, price_usd_per_hour=0.45),
            make_offering("g5.xlarge", PurchaseOption.ON_DEMAND, price_usd_per_hour=1.00),
            make_offering("g6.xlarge", PurchaseOption.ON_DEMAND, price_usd_per_hour=1.10),
        )
        self.origins = (
            PriceOrigin(SnapshotPart.ON_DEMAND_PRICES, Origin("AWS Price List", NOW - timedelta(hours=5))),
            PriceOrigin(SnapshotPart.SPOT_PRICES, Origin("EC2", NOW)),
        )
        self.refreshed = OfferingsSnapshot("us-east-1")
        self.asked: Collection[PurchaseOption] = ()

    def offerings(self, now: datetime, options: Collection[PurchaseOption] = ANY_OPTION) -> tuple[Offering, ...]:
        self.asked = options
        return self.available

    def catalogue(self) -> Mapping[str, InstanceType]:
        return {offering.instance_type.name: offering.instance_type for offering in self.available}

    def peaks(self) -> Mapping[str, Peaks]:
        return load_peaks()

    def price_origins(self, now: datetime) -> tuple[PriceOrigin, ...]:
        return self.origins

    def snapshot(self, now: datetime) -> OfferingsSnapshot:
        return self.refreshed

    def set_price(self, name: str, purchase: PurchaseOption, price_usd_per_hour: float | None) -> None:
        """Change the price of an offering."""
        self.available = tuple(
            replace(offering, price_usd_per_hour=price_usd_per_hour)
            if (offering.instance_type.name, offering.purchase) == (name, purchase)
            else offering
            for offering in self.available
        )


class FakeSpotPrices:
    """Implements SpotPriceSource over a dictionary of (type, zone) → USD per hour."""

    def __init__(self, prices: Mapping[tuple[str, str], float] | None = None) -> None:
        self.prices = dict(prices or {("g5.xlarge", "us-east-1a"): 0.40})
        self.failure: Exception | None = None

    def spot_prices(self, instance_types: Iterable[str]) -> Mapping[tuple[str, str], tuple[float, datetime]]:
        if self.failure:
            raise self.failure
        wanted = set(instance_types)
        return {key: (price, NOW) for key, price in self.prices.items() if key[0] in wanted}


class FakeHosts(_FailsOnce):
    """Implements HostSource: EC2, where instances run but for what `seen` says of them; `failure` is raised once.

    `in_groups` are those that run in the groups of capacity providers.
    """

    def __init__(self) -> None:
        self.seen: dict[str, HostObservation] = {}
        self.asked: list[str] = []
        self.in_groups: list[InstanceObservation] = []

    def look(self, instance_id: str, *, is_spot: bool) -> HostObservation:
        self.asked.append(instance_id)
        self._fail_once()
        host = self.seen.get(instance_id, HostObservation())
        return host if is_spot else replace(host, warnings=frozenset())

    def find_address(self, instance_id: str) -> str:
        self._fail_once()
        return f"10.0.0.{int(instance_id[-2:], 16)}"

    def running_in_groups(self) -> Sequence[InstanceObservation]:
        self._fail_once()
        return self.in_groups


class FakeSnapshots:
    """Implements SnapshotStore over one snapshot; `failure`, as long as it is set, is raised by reading."""

    def __init__(self, stored: OfferingsSnapshot | None = None) -> None:
        self.stored = stored
        self.failure: Exception | None = None
        self.load_count = 0

    def load_snapshot(self) -> OfferingsSnapshot | None:
        self.load_count += 1
        if self.failure:
            raise self.failure
        return self.stored

    def save_snapshot(self, snapshot: OfferingsSnapshot) -> None:
        self.stored = snapshot


class FakeImages(_FailsOnce):
    """Implements ImageSource over a set of (repository, tag), in which the image of `make_container` always is.

    `digests` says what a tag points to, where that matters, `found` also what the image is for, which is anything where
    it does not say; `foreign` has the images of other accounts' registries, by (account, repository, tag). `failure`,
    when set, is raised once.
    """

    def __init__(self, *present: tuple[str, str]) -> None:
        self.present = {("trainer", "latest"), *present}
        self.digests: dict[tuple[str, str], str] = {}
        self.found: dict[tuple[str, str], FoundImage] = {}
        self.foreign: dict[tuple[str, str, str], str] = {}

    def find_image(self, repository: str, reference: str, account: str | None = None) -> FoundImage | None:
        self._fail_once()
        if account is not None:
            digest = self.foreign.get((account, repository, reference))
            return FoundImage(digest, EVERY_PLATFORM) if digest else None
        images = (self._find(*key) for key in {*self.present, *self.found} if key[0] == repository)
        tagged = self._find(repository, reference) if (repository, reference) in {*self.present, *self.found} else None
        return tagged or next((each for each in images if each.digest == reference), None)

    def _find(self, repository: str, tag: str) -> FoundImage:
        digest = self.digests.get((repository, tag)) or image_digest(repository, tag)
        return self.found.get((repository, tag)) or FoundImage(digest, EVERY_PLATFORM)


def image_digest(repository: str, tag: str) -> str:
    """Return the digest that an image has unless a test says otherwise."""
    return f"sha256:{hashlib.sha256(f'{repository}:{tag}'.encode()).hexdigest()}"


class FakeCheckpoints:
    """Implements CheckpointSource: `complete` maps a job's id to the URI of its newest complete checkpoint.

    `refusal`, when set, is raised by every call. All were saved at `saved_at`, after those `earlier`, and say what is
    `reported`. Every search reports `unusable`.
    """

    refusal: Exception | None = None
    saved_at: datetime = NOW
    earlier: tuple[tuple[int, datetime], ...] = ()
    reported = Reported()
    unusable: tuple[str, ...] = ()

    def __init__(self, complete: Mapping[str, str] | None = None) -> None:
        self.complete = dict(complete or {})

    def newest_complete(
        self,
        checkpoint_uri: str,
        job_id: str,
        *,
        step: int | None = None,
        attempt: int | None = None,
        on_unusable: Callable[[str], None] = ignore_unusable,
    ) -> str | None:
        self.probe(checkpoint_uri, job_id)
        for each in self.unusable:
            on_unusable(each)
        found = self.complete.get(job_id)
        chosen = ("" if attempt is None else f"/attempt-{attempt}/", "" if step is None else f"/step-{step:07d}/")
        return found if found is not None and all(part in found for part in chosen) else None

    def newest_saved(
        self,
        checkpoint_uri: str,
        job_id: str,
        *,
        at_most: int | None = None,
        on_unusable: Callable[[str], None] = ignore_unusable,
    ) -> SavedCheckpoint | None:
        del at_most
        uri = self.newest_complete(checkpoint_uri, job_id, on_unusable=on_unusable)
        if uri is None:
            return None
        attempt, step = re.findall(r"/(?:attempt|step)-([0-9]+)", uri)
        return SavedCheckpoint(uri, int(step), int(attempt), self.saved_at, self.earlier, self.reported)

    def probe(self, checkpoint_uri: str, job_id: str) -> None:
        if self.refusal is not None:
            raise self.refusal


class FakeLaunchQueue(_FailsOnce):
    """Implements LaunchQueue: `requested` lists (job id, delay in seconds) in order."""

    def __init__(self) -> None:
        self.requested: list[tuple[str, int]] = []

    def request_launch(self, job_id: str, delay_seconds: int = 0) -> None:
        self._fail_once()
        self.requested.append((job_id, min(max(delay_seconds, 0), MAX_DELAY_SECONDS)))

    def count_requests(self) -> int:
        self._fail_once()
        return len(self.requested)


class FakeJobEvents:
    """Implements JobEvents: `sent` has what was taken; while `answer` is set, that is what becomes of events."""

    def __init__(self) -> None:
        self.sent: list[JobStateChange] = []
        self.budgets: list[BudgetReport] = []
        self.calls = 0
        self.answer: Sent | None = None

    def send(self, events: Sequence[JobStateChange]) -> Sent:
        self.calls += 1
        answer = self.answer or Sent(frozenset(each.sequence for each in events))
        self.sent += [each for each in events if each.sequence in answer.taken]
        return answer

    def send_budget(self, report: BudgetReport) -> str:
        self.budgets.append(report)
        return ""


class ListLog:
    """Implements DecisionLog: `lines` lists (decision, facts) in order."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, object]]] = []

    def decided(self, decision: str, **facts: object) -> None:
        self.lines.append((decision, facts))

    @property
    def decisions(self) -> list[str]:
        """Return the decisions alone."""
        return [decision for decision, _ in self.lines]
