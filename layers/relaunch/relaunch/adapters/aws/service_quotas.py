"""EC2's vCPU quotas of the account, from Service Quotas' GetServiceQuota (Service Quotas API Reference)."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from relaunch.adapters.aws.errors import AwsError, error_code
from relaunch.ports import Clock, DecisionLog

# A quota changes when AWS grants a request.
MAX_AGE = timedelta(hours=1)
# A quota that cannot be read must not slow every launch down.
PAUSE_AFTER_FAILURE = timedelta(minutes=15)


class Ec2Quotas:
    """Implements QuotaSource; keeps quotas for an hour of this container's life."""

    def __init__(self, client: Any, clock: Clock, log: DecisionLog) -> None:
        self._client = client
        self._clock = clock
        self._log = log
        self._kept: dict[str, tuple[datetime, float | None]] = {}
        self._failed_at: datetime | None = None

    def vcpu_quotas(self, codes: Iterable[str]) -> Mapping[str, float]:
        now = self._clock.now()
        found = {}
        for code in sorted(codes):
            vcpus = self._quota(code, now)
            if vcpus is not None:
                found[code] = vcpus
        return found

    def _quota(self, code: str, now: datetime) -> float | None:
        if code in self._kept and now - self._kept[code][0] < MAX_AGE:
            return self._kept[code][1]
        if self._failed_at is not None and now - self._failed_at < PAUSE_AFTER_FAILURE:
            return None
        vcpus: float | None = None
        try:
            vcpus = self._client.get_service_quota(ServiceCode="ec2", QuotaCode=code)["Quota"]["Value"]
        except AwsError as error:
            self._log.decided("quota-unknown", code=code, reason=str(error))
            if error_code(error) != "NoSuchResourceException":
                self._failed_at = now
                return None
        self._kept[code] = (now, vcpus)
        return vcpus
