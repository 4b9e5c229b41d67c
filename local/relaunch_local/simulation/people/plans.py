"""Plans of jobs in a region that sells a dozen instance types: what each job needs, against what the types have.

The figures of the types are those of EC2 (DescribeInstanceTypes, as the catalogue has them), the prices are drawn. What
fits is found apart from the application, well away from what ECS and the kernel keep of an instance.
"""

import math
import random
from collections.abc import Set
from dataclasses import dataclass, replace
from datetime import datetime

from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.accelerator import (
    AcceleratorRequirement,
    GpuRequirement,
    NeuronRequirement,
    PurchaseOption,
    PurchasePolicy,
)
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.offering_key import OfferingKey
from relaunch.core.offerings.quotas import QuotaUsage
from relaunch.core.revisions.revision import ContainerRequirement, Revision
from relaunch.core.selection.selection import Selection
from relaunch.usecases.load_offerings import AvailableOfferings
from relaunch.usecases.plan_jobs import plan_on
from relaunch_local.simulation.checks.record import Check

_TYPES = (
    *("g4dn.xlarge", "g4dn.12xlarge", "g5.xlarge", "g5.12xlarge", "g6.xlarge", "g6e.2xlarge", "g5g.xlarge"),
    *("p3.2xlarge", "p4d.24xlarge", "trn1.2xlarge", "trn1.32xlarge", "inf2.xlarge"),
)
_ZONE = "us-east-1a"
# The usual cap of a stack (MaxPricePerHour), and how much cheaper than on-demand spot must be (MaxSpotRatio).
_MAX_PRICE = 40.0
_MAX_SPOT_RATIO = 0.9
_MIB_PER_GIB = 1024
_MOST = 3
_QUOTA_SHARE = 0.2
_SPOT = PurchaseOption.SPOT
_ON_DEMAND = PurchaseOption.ON_DEMAND
# "Amazon EC2 service quotas" (Amazon EC2 Instance Types): the vCPUs of these families together, by purchase option.
QUOTAS = {
    ("g", _SPOT): "L-3819A6DF",
    ("g", _ON_DEMAND): "L-DB2E81BA",
    ("p", _SPOT): "L-7212CCBC",
    ("p", _ON_DEMAND): "L-417A185B",
    ("trn", _SPOT): "L-6B0D517C",
    ("trn", _ON_DEMAND): "L-2C3B7624",
}


@dataclass(frozen=True)
class Wanted:
    """What a job needs of its machine, in the words of EC2; 0, and empty: nothing."""

    gpus: int
    gpu_gib: int
    models: tuple[str, ...]
    capability: tuple[int, int] | None
    neuron_devices: int
    vcpus: int
    memory_gib: int
    instance_types: tuple[str, ...]
    purchase: PurchasePolicy
    max_price: float | None

    def fits(self, machine: InstanceType) -> bool:
        """Return whether an instance has what is needed."""
        has_gpus = machine.gpu_count >= self.gpus and machine.gpu_memory_mib >= 0.9 * self.gpu_gib * _MIB_PER_GIB
        has_gpus = has_gpus and (self.capability is None or (machine.compute_capability or (0, 0)) >= self.capability)
        # Inferentia trains nothing.
        has_devices = not self.neuron_devices or (
            machine.neuron_devices >= self.neuron_devices and machine.accelerator_model.startswith("Trainium")
        )
        has_room = machine.vcpus >= self.vcpus and machine.memory_mib >= 1.25 * self.memory_gib * _MIB_PER_GIB
        is_named = not self.instance_types or machine.name in self.instance_types
        is_model = not self.models or machine.accelerator_model in self.models
        is_alike = machine.architecture == "x86_64"
        return has_gpus and has_devices and has_room and is_named and is_model and is_alike

    def buys(self, offering: Offering) -> bool:
        """Return whether an offering is bought in the right way, and cheap enough."""
        price = offering.price_usd_per_hour or 0.0
        cap = min(_MAX_PRICE, self.max_price if self.max_price is not None else _MAX_PRICE)
        is_worth_it = offering.purchase is _ON_DEMAND or (
            price <= _MAX_SPOT_RATIO * (offering.on_demand_usd_per_hour or 0.0)
        )
        return offering.purchase in self.purchase.options and price <= cap and is_worth_it


def ask_for_plans(check: Check, dice: random.Random, now: datetime) -> None:
    """Check the plans of some jobs for what a region sells."""
    quotas = {key: dice.choice((4, 16, 64)) for key in QUOTAS if dice.random() < _QUOTA_SHARE}
    usage = {QUOTAS[key]: QuotaUsage(vcpus) for key, vcpus in quotas.items()}
    drawn = draw_offerings(dice, now)
    limits = replace(StackLimits().selection, quotas=usage)
    available = AvailableOfferings(now, tuple(drawn), {}, limits)
    granted = {each.key for each in drawn if each.instance_type.vcpus <= quotas.get(group_of(each), math.inf)}
    for _ in range(_MOST):
        wanted = _draw(dice)
        try:
            plan = plan_on(available, *asked_for(wanted, dice))
            notices = plan.notices
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody gets a plan
            plan = None
            notices = (repr(error),)
        is_given = plan is not None and plan.selection is not None
        check("who plans a job gets a plan", is_given, f"{wanted}: {notices}")
        if plan is not None and plan.selection is not None:
            expected = {each.key for each in drawn if wanted.fits(each.instance_type) and wanted.buys(each)} & granted
            message = f"{wanted}: {plan.problem}, quotas {quotas}"
            _check(check, plan.selection, expected, {each.key for each in drawn}, message)
            mute = [each for each in notices if not each or "None" in each]
            check("a plan says why with all that it says", not mute, f"{wanted}: {mute}")


def draw_offerings(dice: random.Random, now: datetime) -> list[Offering]:
    """Return what the region sells on spot and on demand, at drawn prices."""
    catalogue = load_catalogue()
    offerings = []
    for name in _TYPES:
        on_demand = round(dice.uniform(0.4, 50.0), 3)
        spot = round(on_demand * dice.choice((0.3, 0.5, 0.7, 0.95)), 3)
        for purchase, price in ((_SPOT, spot), (_ON_DEMAND, on_demand)):
            offerings.append(Offering(catalogue[name], purchase, _ZONE, price, now, on_demand, is_own_machine=True))
    return offerings


def _draw(dice: random.Random) -> Wanted:
    is_neuron = dice.random() < 0.2
    return Wanted(
        gpus=0 if is_neuron else dice.choice((1, 1, 2, 4, 8)),
        gpu_gib=0 if is_neuron else dice.choice((0, 0, 16, 24, 40)),
        models=() if is_neuron else dice.choice(((), (), ("A10G",), ("T4", "L4"))),
        capability=None if is_neuron else dice.choice((None, None, (8, 0))),
        neuron_devices=dice.choice((1, 16)) if is_neuron else 0,
        vcpus=dice.choice((1, 4, 16)),
        memory_gib=dice.choice((1, 8, 100)),
        instance_types=dice.choice(((), (), (), ("g5.xlarge", "g6.xlarge", "trn1.2xlarge"))),
        purchase=dice.choice((PurchasePolicy.SPOT, PurchasePolicy.ON_DEMAND, PurchasePolicy.SPOT_THEN_ON_DEMAND)),
        max_price=dice.choice((None, None, 2.0, 10.0)),
    )


def asked_for(wanted: Wanted, dice: random.Random) -> tuple[JobDefinition, Revision]:
    """Return the definition and the revision of a job that needs this."""
    each_mib = wanted.gpu_gib * _MIB_PER_GIB or None
    gpu = GpuRequirement(wanted.gpus, each_mib, wanted.models, compute_capability=wanted.capability)
    neuron = NeuronRequirement(devices=wanted.neuron_devices) if wanted.neuron_devices else None
    definition = JobDefinition(
        name="asked",
        task_definition="asked",
        accelerator=AcceleratorRequirement(
            gpu=gpu if wanted.gpus else None, neuron=neuron, instance_types=wanted.instance_types
        ),
        command=dice.choice(((), ("torchrun", "train.py"))),
        purchase=wanted.purchase,
        max_price_usd_per_hour=wanted.max_price,
    )
    memory_mib = wanted.memory_gib * _MIB_PER_GIB
    container = ContainerRequirement("main", "acme/asked:1", wanted.gpus, memory_mib, wanted.vcpus, is_essential=True)
    arn = "arn:aws:ecs:us-east-1:123456789012:task-definition/asked:1"
    return definition, Revision(arn, "asked", 1, (container,), vcpus=wanted.vcpus, memory_mib=memory_mib)


def group_of(offering: Offering) -> tuple[str, PurchaseOption]:
    """Return the families whose quota an offering takes, by their letters, and its purchase option."""
    family = offering.instance_type.name.partition(".")[0]
    letters = next(each for each in ("trn", "inf", "g", "p") if family.startswith(each))
    return letters, offering.purchase


def _check(check: Check, found: Selection, expected: Set[OfferingKey], on_sale: Set[OfferingKey], message: str) -> None:
    kept = {each.key for each in found.kept}
    difference = f"{message}: {sorted(map(str, kept - expected))} too much, {sorted(map(str, expected - kept))} missing"
    check("a plan has what fits a job and may be bought, and nothing else", kept == expected, difference)
    rejected = {each.offering.key: each.rejection.reason for each in found.rejected}
    is_whole = kept.isdisjoint(rejected) and kept | rejected.keys() == on_sale
    check("a plan has everything that is on sale once", is_whole, f"{message}: {len(kept)} and {len(rejected)}")
    mute = [str(key) for key, reason in rejected.items() if not reason or "None" in reason]
    check("a plan says why with all that it says", not mute, f"{message}: {mute}")
    prices = [each.price_usd_per_hour or 0.0 for each in found.kept]
    check("a plan begins with what is cheapest", prices == sorted(prices), f"{message}: {prices}")
