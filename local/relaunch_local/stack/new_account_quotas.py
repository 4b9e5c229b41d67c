"""Service Quotas of a new account: none of EC2's accelerators and few functions at once, until AWS grants them."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

TARGET_PREFIX = "ServiceQuotasV20190624."


# By the code of the quota: Lambda's concurrent executions ("Lambda quotas"). Those of EC2's accelerators are 0.
_DEFAULTS: Mapping[str, float] = {"L-B99A9384": 1000.0}
_OF_NEW_ACCOUNTS: Mapping[str, float] = {"L-B99A9384": 10.0}
# AWS takes from minutes to days.
_GRANTED_AFTER_SECONDS = 20.0


@dataclass
class NewAccountQuotas:
    """Answers what a deployment asks; a request is pending for some seconds, and then granted.

    `clock` returns seconds.
    """

    clock: Callable[[], float] = time.monotonic
    requested: dict[str, tuple[float, float]] = field(default_factory=dict)
    """What is requested (of EC2 in vCPUs), and when it is granted, by the code of the quota."""

    def call(self, action: str, parameters: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        """Return the HTTP status and the answer to an action of Service Quotas."""
        code = parameters.get("QuotaCode", "")
        service = parameters.get("ServiceCode", "ec2")
        if action == "GetServiceQuota":
            return 200, {"Quota": {"ServiceCode": service, "QuotaCode": code, "Value": self._value(code)}}
        if action == "RequestServiceQuotaIncrease":
            return self._request(code, parameters["DesiredValue"])
        if action == "ListRequestedServiceQuotaChangeHistory":
            pending = [
                {"QuotaCode": each, "DesiredValue": row[0]}
                for each, row in self.requested.items()
                if self._is_pending(each)
            ]
            return 200, {"RequestedQuotas": pending if parameters["Status"] == "PENDING" else []}
        return 400, {"__type": "UnknownOperationException", "message": f"{action} is not served here."}

    def _request(self, code: str, value: float) -> tuple[int, Mapping[str, Any]]:
        """Take a request; the default counts also where the account has less (users' reports of both messages)."""
        for name, least in (("default", _DEFAULTS.get(code, 0.0)), ("current", self._value(code))):
            if value <= least:
                message = f"You must provide a quota value greater than the {name} quota value of {least}"
                return 400, {"__type": "IllegalArgumentException", "message": message}
        if code in self.requested and self._is_pending(code):
            return 400, {"__type": "ResourceAlreadyExistsException", "message": "There is an open request."}
        self.requested[code] = value, self.clock() + _GRANTED_AFTER_SECONDS
        return 200, {"RequestedQuota": {"Status": "PENDING", "QuotaCode": code}}

    def _value(self, code: str) -> float:
        if code in self.requested and not self._is_pending(code):
            return self.requested[code][0]
        return _OF_NEW_ACCOUNTS.get(code, 0.0)

    def _is_pending(self, code: str) -> bool:
        return self.clock() < self.requested[code][1]
