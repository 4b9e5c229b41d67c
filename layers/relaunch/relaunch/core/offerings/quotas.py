"""EC2's quotas on accelerated instances: counted in vCPU, for groups of families, spot and on-demand apart.

Sources: "Amazon EC2 service quotas" and "Spot Instance quotas" (EC2 User Guide) for the groups. The codes are those
that `aws service-quotas list-service-quotas --service-code ec2` shows; they are taken from public listings of 2026, and
a code that AWS does not know leaves its quota unknown, which rejects nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from relaunch.core.definitions.accelerator import PurchaseOption


@dataclass(frozen=True, slots=True)
class Quota:
    """One quota, as the Service Quotas console names it."""

    code: str
    name: str

    def __str__(self) -> str:
        """Write it so that it can be found in the console: name and code."""
        return f'"{self.name}" ({self.code})'


@dataclass(frozen=True, slots=True)
class QuotaRoom:
    """How many vCPU the account may have of a quota, and how many of them machines of our open jobs use."""

    vcpus: float
    used_vcpus: float = 0.0


Quotas = Mapping[str, QuotaRoom]
"""Quotas by code."""

NO_QUOTAS: Quotas = MappingProxyType({})

_SPOT, _ON_DEMAND = PurchaseOption.SPOT, PurchaseOption.ON_DEMAND
_G_ON_DEMAND = Quota("L-DB2E81BA", "Running On-Demand G and VT instances")
_G_SPOT = Quota("L-3819A6DF", "All G and VT Spot Instance Requests")
_QUOTAS = MappingProxyType(
    {
        ("g", _ON_DEMAND): _G_ON_DEMAND,
        ("g", _SPOT): _G_SPOT,
        ("gr", _ON_DEMAND): _G_ON_DEMAND,
        ("gr", _SPOT): _G_SPOT,
        ("p", _ON_DEMAND): Quota("L-417A185B", "Running On-Demand P instances"),
        ("p", _SPOT): Quota("L-7212CCBC", "All P Spot Instance Requests"),
        ("trn", _ON_DEMAND): Quota("L-2C3B7624", "Running On-Demand Trn instances"),
        ("trn", _SPOT): Quota("L-6B0D517C", "All Trn Spot Instance Requests"),
        ("inf", _ON_DEMAND): Quota("L-1945791B", "Running On-Demand Inf instances"),
        ("inf", _SPOT): Quota("L-B5D1601B", "All Inf Spot Instance Requests"),
    }
)

QUOTA_CODES = tuple(sorted({quota.code for quota in _QUOTAS.values()}))
"""The codes of all quotas that are known here."""


def quota_of(instance_type: str, purchase: PurchaseOption) -> Quota | None:
    """Return the quota that a machine of this type counts against, None when it is not known here.

    The letters before the generation's number name the group: `g` of `g6e.xlarge`, `trn` of `trn2.48xlarge`.
    """
    letters = ""
    for letter in instance_type:
        if not letter.isalpha():
            break
        letters += letter
    return _QUOTAS.get((letters, purchase))
