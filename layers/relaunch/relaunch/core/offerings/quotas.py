"""EC2 quotas on accelerated instances: in vCPUs, by group of families, separate for spot and on-demand.

Sources: "Amazon EC2 service quotas" (Amazon EC2 Instance Types) and "Spot Instance quotas" (EC2 User Guide) for groups
and codes, which `aws service-quotas list-service-quotas --service-code ec2` shows. If AWS does not know a code, the
quota is unknown and rejects nothing. P6 on spot has no code here: AWS's table names no group for it, and a wrong one
would reject what AWS grants. What is reserved has none here: EC2 checked its quotas when it was reserved.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.records import dataclass


@dataclass(frozen=True, slots=True)
class Quota:
    """A quota as named in the Service Quotas console."""

    code: str
    name: str

    def __str__(self) -> str:
        """Return the name and the code, as the console shows them."""
        return f'"{self.name}" ({self.code})'


@dataclass(frozen=True, slots=True)
class QuotaUsage:
    """The vCPUs of a quota, and how many of them the instances of open jobs use."""

    vcpus: float
    used_vcpus: float = 0.0


Quotas = Mapping[str, QuotaUsage]
"""Quotas by code."""

NO_QUOTAS: Quotas = MappingProxyType({})

_SPOT = PurchaseOption.SPOT
_ON_DEMAND = PurchaseOption.ON_DEMAND
_QUOTAS = MappingProxyType(
    {
        ("g", _ON_DEMAND): Quota("L-DB2E81BA", "Running On-Demand G and VT instances"),
        ("g", _SPOT): Quota("L-3819A6DF", "All G and VT Spot Instance Requests"),
        ("p", _ON_DEMAND): Quota("L-417A185B", "Running On-Demand P instances"),
        ("p", _SPOT): Quota("L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests"),
        ("p5", _SPOT): Quota("L-C4BD4855", "All P5 Spot Instance Requests"),
        ("trn", _ON_DEMAND): Quota("L-2C3B7624", "Running On-Demand Trn instances"),
        ("trn", _SPOT): Quota("L-6B0D517C", "All Trn Spot Instance Requests"),
        ("inf", _ON_DEMAND): Quota("L-1945791B", "Running On-Demand Inf instances"),
        ("inf", _SPOT): Quota("L-B5D1601B", "All Inf Spot Instance Requests"),
    }
)

ALL_QUOTAS = tuple(_QUOTAS.values())
"""All known quotas."""
QUOTA_CODES = tuple(sorted({quota.code for quota in ALL_QUOTAS}))
"""Their codes."""


# The last generations of P of the two spot quotas.
_LAST_OLD_P = 4
_P5 = 5
_FAMILY = re.compile(r"(?P<letters>[a-z]+)(?P<generation>[0-9]+)")


def quota_of(instance_type: str, purchase: PurchaseOption) -> Quota | None:
    """Return the quota that applies to an instance type, None if unknown.

    The letters before the generation number determine the group: `g` in `g6e.xlarge`, `trn` in `trn2.48xlarge`; `gr`
    counts as `g`.
    """
    family = _FAMILY.match(instance_type)
    if family is None:
        return None
    letters = family["letters"]
    generation = int(family["generation"])
    if letters == "p" and purchase is _SPOT and generation > _LAST_OLD_P:
        return _QUOTAS[("p5", _SPOT)] if generation == _P5 else None
    return _QUOTAS.get(("g" if letters == "gr" else letters, purchase))
