"""The request of a machine of our own to EC2, from what selection kept, and the resources of an attempt on it.

Source: CreateFleet (EC2 API Reference). It takes each pair of instance type and zone only once in a request, and one
subnet per zone; requests with too many overrides fail ("EC2 Fleet quotas", EC2 User Guide).
"""

import math
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import FleetOverride, FleetRequest, Resources, client_token_of
from relaunch.core.machines.settings import (
    DEFINITION_TAG,
    IMAGE_TAG,
    JOB_TAG,
    MACHINE_TAG,
    STACK_TAG,
    LaunchTemplate,
    MachineSettings,
)
from relaunch.core.offerings.instance_types import InstanceType, ami_kind
from relaunch.core.offerings.offering import Offering, OfferingKey
from relaunch.core.revisions.revision import Revision
from relaunch.core.selection.expected_cost import order_cost_of
from relaunch.core.selection.gpu_share import USABLE_MEMORY_FRACTION, ShareRequirement
from relaunch.core.selection.neuron_devices import claims_all_devices, requires_neuron
from relaunch.core.selection.requirements import Requirements, derive_requirements, usable_memory_mib
from relaunch.core.selection.selection import Selection

MAX_OVERRIDES = 60
"""As many as Karpenter sends; CreateFleet fails with larger bodies (aws/karpenter-provider-aws#5776)."""
# "Tag restrictions" (EC2 User Guide).
_MAX_TAG_LENGTH = 256


def build_request(  # noqa: PLR0913 - all that a request is made of
    selection: Selection,
    machine_id: str,
    job_id: str,
    definition: str,
    settings: MachineSettings,
    limits: MachineLimits,
    *,
    image: str = "",
    kept: Sequence[Offering] | None = None,
    doubted: Container[OfferingKey] = (),
    gang_size: int = 0,
) -> FleetRequest | None:
    """Return the request for the best machine of our own; None if selection kept none that can be started.

    The request has the offerings with the same purchase option and launch template whose expected cost, or without an
    estimated duration price, is at most `limits.price_tolerance` above that of the best one; of reservations it has the
    best one alone. EC2 chooses among them; on demand in the order of selection, where that is not the order of prices.
    `kept` are those of its offerings that may be requested now, None for all.
    Of `doubted` pools none is asked for beside others, and no other beside it (core.machines.starts). For `gang_size`
    machines of a gang it has the best one alone, as EC2 launches all or none only of one type, or in one zone.
    `image` is the image to pull while the machine starts; it is only given to the machine if it has a digest.
    """
    candidates = list(_candidates(selection.kept if kept is None else kept, settings, gang_size or 1))
    if not candidates:
        return None
    alike = _comparable(candidates, selection, limits.price_tolerance)[:MAX_OVERRIDES]
    chosen = [each for each in alike if each.offering.key not in doubted] or alike[:1]
    chosen = candidates[:1] if gang_size else chosen
    best = chosen[0]
    return FleetRequest(
        client_token=client_token_of(machine_id),
        purchase=best.offering.purchase,
        launch_template_id=best.template.template_id,
        launch_template_version=best.template.version,
        overrides=_overrides(chosen),
        tags={**settings.tags, **_tags(settings.stack, machine_id, job_id, definition, image)},
        reservation=best.offering.reservation,
    )


def on_demand_prices(request: FleetRequest, kept: Iterable[Offering]) -> dict[str, float]:
    """Return the on-demand prices of the instance types of a request, as far as they are known."""
    names = {each.offering.instance_type for each in request.overrides}
    of_kept = ((each.instance_type.name, each.on_demand_usd_per_hour) for each in kept)
    return {name: usd for name, usd in of_kept if usd and name in names}


def capacity_of(machine: InstanceType) -> Resources:
    """Return what the ECS agent registers of an instance type, as far as is known before it does."""
    return Resources(
        cpu_units=machine.vcpus * 1024,
        memory_mib=usable_memory_mib(machine.memory_mib),
        gpus=float(machine.gpu_count),
        neuron_devices=machine.neuron_devices,
    )


def needs(definition: JobDefinition, revision: Revision, machine: InstanceType) -> Resources:
    """Return what an attempt takes of a machine of this type.

    A share of a GPU counts as the larger of its fractions of memory and compute. The ports of the task are not counted:
    ECS refuses to place two tasks with the same host port on one machine.
    """
    required = derive_requirements(definition, revision)
    return Resources(
        cpu_units=math.ceil(required.vcpus * 1024),
        memory_mib=required.memory_mib,
        gpus=_fraction(required.share, machine) if required.share else float(required.gpu_count),
        neuron_devices=_neuron_devices(required, machine),
    )


class _Candidate(NamedTuple):
    offering: Offering
    subnet_id: str
    template: LaunchTemplate


def _candidates(kept: Iterable[Offering], settings: MachineSettings, count: int) -> Iterator[_Candidate]:
    """Yield the machines of our own that have a subnet, a launch template and, if reserved, so many free instances."""
    for offering in kept:
        subnet_id = settings.subnets.get(offering.zone or "")
        kind = ami_kind(offering.instance_type)
        template = settings.launch_templates.get(kind) if kind else None
        is_full = offering.reservation is not None and offering.reservation.available < count
        if offering.is_own_machine and subnet_id and template and not is_full:
            yield _Candidate(offering, subnet_id, template)


def _comparable(candidates: Sequence[_Candidate], selection: Selection, tolerance: float) -> list[_Candidate]:
    """Return those that may stand in for the first one, in order; each type once in each zone."""
    best = candidates[0]
    if best.offering.purchase is PurchaseOption.RESERVED:
        return [best]
    costs = order_cost_of(selection.work, selection.kept)

    def cost(offering: Offering) -> float:
        usd = offering.expected_usd_per_hour if selection.work is None else costs(offering)
        return math.inf if usd is None else usd

    limit = cost(best.offering) * (1 + tolerance)
    alike: dict[OfferingKey, _Candidate] = {}
    for each in candidates:
        is_of_type = each.offering.instance_type.name == best.offering.instance_type.name
        # Nothing but its own type compares with a price that is not known, or with work that is expected never to end.
        is_near = cost(each.offering) <= limit if math.isfinite(limit) else is_of_type
        if is_near and each.offering.purchase is best.offering.purchase and each.template == best.template:
            alike.setdefault(each.offering.key, each)
    return list(alike.values())


def _overrides(chosen: Sequence[_Candidate]) -> tuple[FleetOverride, ...]:
    """Return the overrides; with priorities for on-demand, if the order is not that of prices, which EC2 follows."""
    prices = [each.offering.expected_usd_per_hour or 0.0 for each in chosen]
    is_by_price = all(price <= following for price, following in pairwise(prices))
    has_priorities = chosen[0].offering.purchase is PurchaseOption.ON_DEMAND and not is_by_price
    return tuple(
        FleetOverride(
            offering=each.offering.key,
            subnet_id=each.subnet_id,
            usd_per_hour=price,
            capacity=capacity_of(each.offering.instance_type),
            priority=place if has_priorities else 0,
        )
        for place, (each, price) in enumerate(zip(chosen, prices, strict=True))
    )


def _tags(stack: str, machine_id: str, job_id: str, definition: str, image: str) -> dict[str, str]:
    tags = {STACK_TAG: stack, MACHINE_TAG: machine_id, JOB_TAG: job_id, DEFINITION_TAG: definition}
    if "@sha256:" in image and len(image) <= _MAX_TAG_LENGTH:
        tags[IMAGE_TAG] = image
    return tags


def _fraction(share: ShareRequirement, machine: InstanceType) -> float:
    """Return the share as a fraction of one GPU of the type, at most a whole one."""
    usable_mib = machine.gpu_memory_mib * USABLE_MEMORY_FRACTION
    memory = (share.memory_mib + share.other_containers_mib) / usable_mib if usable_mib else 1.0
    return min(max(memory, share.compute_percent / 100, share.partition), 1.0)


def _neuron_devices(required: Requirements, machine: InstanceType) -> int:
    """Return the number of devices: one, or all, because ECS does not count them."""
    if not requires_neuron(required):
        return 0
    return machine.neuron_devices if claims_all_devices(required, machine) else 1
