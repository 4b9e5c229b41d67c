"""The account's vCPU quotas of EC2 (GetServiceQuota, Service Quotas API Reference)."""

from collections.abc import Iterable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from relaunch.adapters.aws.errors import aws_errors, error_code, readable_answer


class Ec2Quotas:
    """Implements QuotaSource."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def vcpu_quotas(self, codes: Iterable[str]) -> Mapping[str, float]:
        doing = "reading the account's quotas"
        with aws_errors(doing), readable_answer(doing):
            return {code: vcpus for code in codes if (vcpus := self._quota(code)) is not None}

    def _quota(self, code: str) -> float | None:
        try:
            vcpus: float = self._client.get_service_quota(ServiceCode="ec2", QuotaCode=code)["Quota"]["Value"]
        except ClientError as error:
            if error_code(error) == "NoSuchResourceException":
                return None
            raise
        return vcpus
