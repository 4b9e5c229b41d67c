"""The quotas of EC2 that decide which accelerators can start at all: new accounts have 0 for most of them."""

from collections.abc import Iterable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from relaunch.adapters.aws.service_quotas import Ec2Quotas
from relaunch.core.offerings.quotas import QUOTA_CODES, Quota
from relaunch.ports import PermanentError, TransientError
from relaunch_cli.deployment.findings import REQUESTED_VCPUS, QuotaRequests, QuotaState, request_command

_OPEN = ("PENDING", "CASE_OPENED")


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
        return QuotaState(unread=f"the quotas of EC2 cannot be read ({str(error).splitlines()[0]})")
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
            refused.append(f"{quota} could not be requested ({str(error).splitlines()[0]}): {request_command(quota)}")
        else:
            made.append(quota.code)
    return QuotaRequests(made, refused)
