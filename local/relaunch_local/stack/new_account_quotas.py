"""Service Quotas as a new account has them: nothing of EC2's accelerators until AWS grants it."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

TARGET_PREFIX = "ServiceQuotasV20190624."


# AWS takes from minutes to days.
_GRANTED_AFTER_SECONDS = 20.0


@dataclass
class NewAccountQuotas:
    """Answers what a deployment asks; a request is pending for some seconds, and then granted.

    `clock` returns seconds.
    """

    clock: Callable[[], float] = time.monotonic
    requested: dict[str, tuple[float, float]] = field(default_factory=dict)
    """The vCPUs that are requested, and when they are granted, by the code of the quota."""

    def call(self, action: str, parameters: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        """Return the HTTP status and the answer to an action of Service Quotas."""
        code = parameters.get("QuotaCode", "")
        if action == "GetServiceQuota":
            value = self.requested[code][0] if code in self.requested and not self._is_pending(code) else 0.0
            return 200, {"Quota": {"ServiceCode": "ec2", "QuotaCode": code, "Value": value}}
        if action == "RequestServiceQuotaIncrease":
            if code in self.requested and self._is_pending(code):
                return 400, {"__type": "ResourceAlreadyExistsException", "message": "There is an open request."}
            self.requested[code] = parameters["DesiredValue"], self.clock() + _GRANTED_AFTER_SECONDS
            return 200, {"RequestedQuota": {"Status": "PENDING", "QuotaCode": code}}
        if action == "ListRequestedServiceQuotaChangeHistory":
            pending = [
                {"QuotaCode": each, "DesiredValue": row[0]}
                for each, row in self.requested.items()
                if self._is_pending(each)
            ]
            return 200, {"RequestedQuotas": pending if parameters["Status"] == "PENDING" else []}
        return 400, {"__type": "UnknownOperationException", "message": f"{action} is not served here."}

    def _is_pending(self, code: str) -> bool:
        return self.clock() < self.requested[code][1]
