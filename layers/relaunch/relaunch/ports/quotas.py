"""Service Quotas."""

from collections.abc import Iterable, Mapping
from typing import Protocol


class QuotaSource(Protocol):
    """The account's quotas."""

    def vcpu_quotas(self, codes: Iterable[str]) -> Mapping[str, float]:
        """Return code → vCPU that may run at once; a quota that the region does not have is not there.

        Raises:
            PermanentError: the caller may not ask.
            TransientError: throttled or unreachable.
        """
        ...
