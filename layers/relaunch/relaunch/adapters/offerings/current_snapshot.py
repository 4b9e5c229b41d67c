"""The current snapshot: the refreshed one, completed with bundled data."""

from datetime import datetime, timedelta

from relaunch.adapters.offerings.bundled import bundled_snapshot
from relaunch.core.offerings.snapshot import OfferingsSnapshot
from relaunch.ports import DecisionLog, PortError, SnapshotSource

# The snapshot is refreshed at most once an hour.
_MAX_AGE = timedelta(minutes=15)


class CurrentSnapshot:
    """Loads the refreshed snapshot of a region, and caches it for 15 minutes."""

    def __init__(self, store: SnapshotSource, region: str, log: DecisionLog) -> None:
        self._store = store
        self._region = region
        self._log = log
        self._loaded: tuple[datetime, OfferingsSnapshot] | None = None

    def at(self, now: datetime) -> OfferingsSnapshot:
        """Return the snapshot without outdated parts.

        If it cannot be loaded, log that and return the one that was loaded before, or the bundled data if none was.
        """
        if self._loaded is None or now - self._loaded[0] >= _MAX_AGE:
            self._loaded = (now, self._load())
        return self._loaded[1].as_of(now)

    def _load(self) -> OfferingsSnapshot:
        bundled = bundled_snapshot(self._region)
        try:
            stored = self._store.load_snapshot()
        except PortError as error:
            if self._loaded is not None:
                self._log.decided("offerings-kept", reason=str(error))
                return self._loaded[1]
            self._log.decided("offerings-from-bundle", reason=str(error))
            return bundled
        if stored is None or stored.region != self._region:
            return bundled
        return stored.filled_from(bundled)
