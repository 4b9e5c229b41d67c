"""Service Quotas as a new account has them: nothing of EC2's accelerators until AWS grants it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TARGET_PREFIX = "ServiceQuotasV20190624."


@dataclass
class NewAccountQuotas:
    """Answers what a deployment asks; a request stays pending."""

    requested: dict[str, float] = field(default_factory=dict)

    def call(self, action: str, parameters: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        """Return the HTTP status and the answer to an action of Service Quotas."""
        if action == "GetServiceQuota":
            return 200, {"Quota": {"ServiceCode": "ec2", "QuotaCode": parameters["QuotaCode"], "Value": 0.0}}
        if action == "RequestServiceQuotaIncrease":
            if parameters["QuotaCode"] in self.requested:
                return 400, {"__type": "ResourceAlreadyExistsException", "message": "There is an open request."}
            self.requested[parameters["QuotaCode"]] = parameters["DesiredValue"]
            return 200, {"RequestedQuota": {"Status": "PENDING", "QuotaCode": parameters["QuotaCode"]}}
        if action == "ListRequestedServiceQuotaChangeHistory":
            rows = [{"QuotaCode": code, "DesiredValue": vcpus} for code, vcpus in self.requested.items()]
            return 200, {"RequestedQuotas": rows if parameters["Status"] == "PENDING" else []}
        return 400, {"__type": "UnknownOperationException", "message": f"{action} is not served here."}
