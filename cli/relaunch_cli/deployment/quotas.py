"""The quotas of EC2 that decide which accelerators can start at all: new accounts have 0 for most of them."""

from collections.abc import Iterable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from relaunch.adapters.aws.service_quotas import Ec2Quotas
from relaunch.core.offerings.quotas import QUOTA_CODES, Quota
from relaunch.ports import PermanentError, TransientError
from relaunch_cli.deployment.findings import REQUESTED_VCPUS, QuotaRequests, QuotaState, request_command
from relaunch_cli.errors import explain_error

_OPEN = ("PENDING", "CASE_OPENED")
# Of `make local`, which has no quotas that could keep anything from starting.
_NOT_SERVED = "UnknownOperationException"


def read_quotas(quotas: Any) -> QuotaState:
    """Read the quotas of the region, and the open requests for them; what cannot be read is told."""
    try:
        vcpus = Ec2Quotas(quotas).vcpu_quotas(QUOTA_CODES)
        requested = {
            each["QuotaCode"]: float(each["DesiredValue"])
            for status in _OPEN
            for page in quotas.get_paginator("list_requested_service_quota_change_history").paginate(
                ServiceCode="ec2", Status=status
            )
            for each in page["RequestedQuotas"]
        }
    except (ClientError, BotoCoreError, PermanentError, TransientError) as error:
        if _NOT_SERVED in str(error):
            return QuotaState()
        return QuotaState(unread=f"the quotas of EC2 cannot be read ({_describe(error)})")
    return QuotaState(vcpus, requested)


def request_quotas(wanted: Iterable[Quota], quotas: Any) -> QuotaRequests:
    """Request the quotas. A request that AWS refuses does not end a deployment."""
    made = []
    refused = []
    for quota in wanted:
        vcpus = REQUESTED_VCPUS[quota.code]
        try:
            quotas.request_service_quota_increase(ServiceCode="ec2", QuotaCode=quota.code, DesiredValue=float(vcpus))
        except (ClientError, BotoCoreError) as error:
            refused.append(f"{quota} could not be requested ({_describe(error)}): {request_command(quota)}")
        else:
            made.append(quota.code)
    return QuotaRequests(made, refused)


def _describe(error: Exception) -> str:
    explained = explain_error(error)
    return explained.message if explained else str(error)
