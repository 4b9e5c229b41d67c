"""Service Quotas."""

from collections.abc import Iterable, Mapping
from typing import Protocol


class QuotaSource(Protocol):
    """The quotas of the account."""

    def vcpu_quotas(self, codes: Iterable[str]) -> Mapping[str, float]:
        """Return the number of vCPUs by quota code; quotas that the region does not have are missing.

        Raises:
            PermanentError: access is denied.
            TransientError: throttled or unreachable.
        """
        ...
