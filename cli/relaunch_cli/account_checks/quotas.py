"""The vCPU quotas of EC2 against the smallest machine that a job may run on."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from relaunch.core.checks import Check, is_ok, problem, unknown
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.quotas import Quota, quota_of
from relaunch.core.selection.selection import Selection
from relaunch_cli.deployment.findings import request_command

_NAME = "vCPU quotas"
_GRANT = "grant servicequotas:GetServiceQuota"


@dataclass(frozen=True, slots=True)
class Need:
    """The smallest machine of each quota that a job of a definition may run on with one purchase option.

    `machines` are (instance type, vCPUs); None stands for types whose quota is not known. A job runs on `nodes` of
    them at once.
    """

    definition: str
    purchase: PurchaseOption
    machines: Mapping[Quota | None, tuple[str, int]]
    nodes: int = 1

    def vcpus_of(self, quota: Quota | None) -> int:
        """Return the vCPUs of this quota that a job needs at least."""
        return self.machines[quota][1] * self.nodes


@dataclass(frozen=True, slots=True)
class GrantedQuotas:
    """The vCPUs by the code of the quota, and those of open requests; a quota that could not be read has none."""

    vcpus: Mapping[str, float] = field(default_factory=dict)
    requested: Mapping[str, float] = field(default_factory=dict)


def find_needs(definition: str, selection: Selection, nodes: int = 1) -> tuple[Need, ...]:
    """Return what a definition with so many nodes needs.

    That is by the offerings that were kept, and those that are rejected but for a time.
    What was rejected by its quota counts too: the selection has the quotas of the last refresh.
    """
    passing = [each.offering for each in selection.rejected if each.filter_name == "quota"]
    passing += [each.offering for each in selection.rejected if not each.rejection.is_permanent]
    smallest: dict[PurchaseOption, dict[Quota | None, tuple[str, int]]] = {}
    for offering in (*selection.kept, *passing):
        machine = offering.instance_type
        quota = quota_of(machine.name, offering.purchase)
        of_purchase = smallest.setdefault(offering.purchase, {})
        if quota not in of_purchase or machine.vcpus < of_purchase[quota][1]:
            of_purchase[quota] = (machine.name, machine.vcpus)
    return tuple(Need(definition, purchase, machines, nodes) for purchase, machines in sorted(smallest.items()))


def check_quotas(needs: Iterable[Need], granted: GrantedQuotas) -> Iterator[Check]:
    """Check that each definition has a machine within a quota, for each purchase option that it may use."""
    needs = tuple(needs)
    if not needs:
        yield is_ok(_NAME, "no registered job definition can use an accelerator of EC2")
        return
    checked: set[str] = set()
    for need in needs:
        known = [quota for quota in need.machines if quota is not None]
        missing = [quota for quota in known if quota.code not in granted.vcpus]
        # Types whose quota is uncertain, as p5 on spot, are seldom all that a definition is meant for.
        if not known or any(_has_room(quota, need, granted) for quota in known):
            continue
        if missing:
            yield from _once(checked, missing[0], unknown(_name(missing[0]), "its value is not known", _GRANT))
            continue
        smallest = min(known, key=need.vcpus_of)
        yield from _once(checked, smallest, _too_small(smallest, need, granted))
    if not checked:
        yield _within(needs)


def _within(needs: Collection[Need]) -> Check:
    names = {need.definition for need in needs}
    compared = {need.definition for need in needs if any(quota is not None for quota in need.machines)}
    others = ", ".join(sorted(names - compared))
    if not compared:
        return is_ok(_NAME, f"that of the machines of {others} is not known, so that nothing was compared")
    whose = f"each of {len(compared)} definitions" if len(compared) > 1 else f"definition {min(compared)}"
    return is_ok(_NAME, f"a machine within them for {whose}" + (f"; that of {others} is not known" if others else ""))


def _once(checked: set[str], quota: Quota, check: Check) -> Iterator[Check]:
    if quota.code not in checked:
        checked.add(quota.code)
        yield check


def _has_room(quota: Quota, need: Need, granted: GrantedQuotas) -> bool:
    return granted.vcpus.get(quota.code, 0.0) >= need.vcpus_of(quota)


def _name(quota: Quota) -> str:
    return f"quota {quota.code}"


def _describe(need: Need, quota: Quota) -> str:
    machine, _ = need.machines[quota]
    smallest = f"{machine}, the smallest machine of {need.definition} ({need.purchase}),"
    return f"{smallest} has" if need.nodes == 1 else f"{need.nodes} of {smallest} have"


def _too_small(quota: Quota, need: Need, granted: GrantedQuotas) -> Check:
    vcpus = need.vcpus_of(quota)
    text = f"{granted.vcpus[quota.code]:g} vCPUs of {quota.name!r}: {_describe(need, quota)} {vcpus}"
    wanted = granted.requested.get(quota.code, 0.0)
    if wanted >= vcpus:
        return problem(_name(quota), f"{text}; {wanted:g} are requested", "wait for AWS, which answers by e-mail")
    if wanted:
        text += f"; {wanted:g} are requested, which is too little"
    return problem(_name(quota), text, request_command(quota, vcpus))
