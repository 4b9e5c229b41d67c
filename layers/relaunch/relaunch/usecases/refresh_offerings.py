"""Refresh the snapshot of the offerings of the region."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.core.offerings.offering import score_questions
from relaunch.core.offerings.quotas import QUOTA_CODES
from relaunch.core.offerings.snapshot import OfferingsSnapshot, Origin, SnapshotPart, offered_types, unknown_types
from relaunch.ports import PermanentError, RefreshDependencies, TransientError

# A refresh runs every hour and is retried twice if parts failed; parts that are fresh are skipped. Quotas and spot
# placement scores change within a day, other parts rarely.
_AN_HOUR = timedelta(minutes=50)
_A_DAY = timedelta(hours=23)


def refresh_offerings(deps: RefreshDependencies) -> dict[str, str]:
    """Refresh the parts that are due and return their outcomes; a part that fails keeps its content and age.

    Raises:
        TransientError: a part failed temporarily; the other parts are saved.
        Exception: a response has an unexpected form; the other parts are saved.
    """
    now = deps.clock.now()
    snapshot = _load(deps)
    outcomes: dict[str, str] = {}
    errors: dict[str, Exception] = {}
    for part, (source, fresh_for, fetch) in _FETCHES.items():
        origin = snapshot.origins.get(part)
        if origin is not None and now - origin.at < fresh_for:
            outcomes[part.label] = "fresh"
            continue
        try:
            content = fetch(deps, snapshot)
        except Exception as error:  # noqa: BLE001 - raised below, after the other parts
            outcomes[part.label] = f"kept: {error}"
            deps.log.decided("refresh-failed", part=part.label, reason=str(error))
            deps.metrics.record(MetricDatum(Metric.REFRESHES_FAILED))
            errors[part.label] = error
        else:
            snapshot = snapshot.with_part(part, content, Origin(source, now))
            outcomes[part.label] = "refreshed"
    deps.snapshots.save_snapshot(snapshot)
    deps.log.decided("offerings-refreshed", region=deps.region, outcomes=outcomes)
    _raise_worst(errors)
    return outcomes


def _raise_worst(errors: Mapping[str, Exception]) -> None:
    for error in errors.values():
        if not isinstance(error, TransientError | PermanentError):
            raise error
    transient = [label for label, error in errors.items() if isinstance(error, TransientError)]
    if transient:
        raise TransientError(f"not refreshed: {', '.join(transient)}")


def _load(deps: RefreshDependencies) -> OfferingsSnapshot:
    """Load the last snapshot; an empty one if there is none, or it is unreadable or of another region."""
    try:
        stored = deps.snapshots.load_snapshot()
    except PermanentError as error:
        deps.log.decided("snapshot-unreadable", reason=str(error))
        stored = None
    return stored if stored is not None and stored.region == deps.region else OfferingsSnapshot(deps.region)


def _fetch_types(deps: RefreshDependencies, _snapshot: OfferingsSnapshot) -> Any:
    described = deps.instance_types.instance_types()
    if not described:
        raise TransientError(f"EC2 describes no instance type with an accelerator in {deps.region}")
    return unknown_types(described, deps.catalogue)


def _fetch_zones(deps: RefreshDependencies, snapshot: OfferingsSnapshot) -> Any:
    return deps.zones.zones([*deps.catalogue, *snapshot.instance_types])


def _fetch_on_demand_prices(deps: RefreshDependencies, snapshot: OfferingsSnapshot) -> Any:
    # The Price List includes types that no zone offers any more.
    return deps.price_list.on_demand_prices(offered_types(snapshot, deps.catalogue))


def _fetch_disk_price(deps: RefreshDependencies, _snapshot: OfferingsSnapshot) -> Any:
    return deps.price_list.gp3_price()


def _fetch_spot_prices(deps: RefreshDependencies, snapshot: OfferingsSnapshot) -> Any:
    # EC2 may reject the whole request for an unknown type: only types that the region offers are named.
    if SnapshotPart.ZONES not in snapshot.origins:
        raise TransientError("the types that the region offers are not known")
    prices: dict[str, dict[str, float]] = {}
    for (name, zone), (price, _) in deps.spot_prices.spot_prices(snapshot.zones).items():
        prices.setdefault(name, {})[zone] = price
    return prices


def _fetch_quotas(deps: RefreshDependencies, _snapshot: OfferingsSnapshot) -> Any:
    return deps.quotas.vcpu_quotas(QUOTA_CODES)


def _fetch_placement_scores(deps: RefreshDependencies, snapshot: OfferingsSnapshot) -> Any:
    """Return the score of each spot type; a request that EC2 rejects does not affect the other types."""
    known = {**deps.catalogue, **snapshot.instance_types}
    scores: dict[str, int] = {}
    rejection = None
    for asked in score_questions(
        deps.spot_types, _own_spot_types(deps, snapshot), known, offered_types(snapshot, known)
    ):
        try:
            score = deps.region_scores.region_score(asked.sizes, asked.vcpus)
        except PermanentError as error:
            deps.log.decided("placement-score-refused", instance_type=asked.name, reason=str(error))
            rejection = error
        else:
            scores |= dict.fromkeys(asked.about, score) if score is not None else {}
    if rejection is not None and not scores:
        raise rejection
    return scores


def _own_spot_types(deps: RefreshDependencies, snapshot: OfferingsSnapshot) -> Iterator[str]:
    """Yield the types that machines of our own may have on spot."""
    for name, machine in {**deps.catalogue, **snapshot.instance_types}.items():
        is_on_spot = not machine.usage_classes or PurchaseOption.SPOT in machine.usage_classes
        if is_on_spot and deps.machine_settings.may_start(machine, snapshot.zones.get(name, ())):
            yield name


# In this order, because later parts are requested for the types of earlier ones.
_FETCHES: dict[SnapshotPart, tuple[str, timedelta, Callable[[RefreshDependencies, OfferingsSnapshot], Any]]] = {
    SnapshotPart.INSTANCE_TYPES: ("EC2", _A_DAY, _fetch_types),
    SnapshotPart.ZONES: ("EC2", _A_DAY, _fetch_zones),
    SnapshotPart.ON_DEMAND_PRICES: ("AWS Price List", _A_DAY, _fetch_on_demand_prices),
    SnapshotPart.DISK_PRICE: ("AWS Price List", _A_DAY, _fetch_disk_price),
    SnapshotPart.SPOT_PRICES: ("EC2", _A_DAY, _fetch_spot_prices),
    SnapshotPart.QUOTAS: ("Service Quotas", _AN_HOUR, _fetch_quotas),
    SnapshotPart.PLACEMENT_SCORES: ("EC2", _AN_HOUR, _fetch_placement_scores),
}
