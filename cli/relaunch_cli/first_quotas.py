"""Quotas of EC2 that the stack has not read yet, as in its first hour: read with the caller's own credentials.

A new account has 0 vCPUs of most of them, which only EC2's answer to the first launch would show.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError

from relaunch.adapters.aws.service_quotas import Ec2Quotas
from relaunch.core.offerings.quotas import quota_of
from relaunch.core.offerings.snapshot import SnapshotPart
from relaunch.core.selection.selection import Selection
from relaunch.ports import PortError
from relaunch.usecases.plan_jobs import Plan

if TYPE_CHECKING:
    from relaunch.ports import Dependencies
    from relaunch_cli.aws.connected import Connection


def with_first_quotas(plans: Sequence[Plan], deps: "Dependencies", connection: "Connection") -> list[Plan]:
    """Return the plans, those with what their quotas lack for which no offering has room in its quota.

    Where the stack knows the quotas, selection has looked at them already. A quota that cannot be read is left out.
    """
    wanted = {code for plan in plans if plan.selection for code in _codes(plan.selection)}
    parts = {each.part for each in deps.offerings.price_origins(deps.clock.now())}
    if not wanted or SnapshotPart.QUOTAS in parts:
        return list(plans)
    vcpus = _read(sorted(wanted), connection)
    return [
        replace(plan, quota_problem=describe_shortage(plan.selection, vcpus, plan.definition.nodes))
        if plan.selection
        else plan
        for plan in plans
    ]


def _read(codes: Sequence[str], connection: "Connection") -> Mapping[str, float]:

    try:
        return Ec2Quotas(connection.account.client("service-quotas")).vcpu_quotas(codes)
    except (PortError, BotoCoreError):
        return {}


def describe_shortage(selection: Selection, vcpus: Mapping[str, float], nodes: int = 1) -> str:
    """Return why nothing of a selection can start for want of a quota; empty if something can, or may.

    A job runs on `nodes` machines at once.
    """
    for each in selection.kept:
        quota = quota_of(each.instance_type.name, each.purchase)
        needed = each.instance_type.vcpus * nodes
        if quota is None or vcpus.get(quota.code, needed) >= needed:
            return ""
    best = selection.chosen
    quota = quota_of(best.instance_type.name, best.purchase) if best else None
    if best is None or quota is None:
        return ""
    name = best.instance_type.name
    has = f"{name} has" if nodes == 1 else f"{nodes} of {name} have"
    return (
        f"the account's quotas let nothing of it start: {has} {best.instance_type.vcpus * nodes} vCPU, "
        f"and {quota} is {vcpus[quota.code]:g}; `relaunch doctor` says what to request"
    )


def _codes(selection: Selection) -> Collection[str]:
    return {quota.code for each in selection.kept if (quota := quota_of(each.instance_type.name, each.purchase))}
