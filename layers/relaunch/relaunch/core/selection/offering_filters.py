"""Filters on offerings: network mode, disk, purchase option, quota, reservation, image, price and recent failures."""

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta

from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.capacity_memory import find_failures
from relaunch.core.offerings.instance_types import AmiKind, InstanceType, ami_kind, ami_rejection, missing_ami
from relaunch.core.offerings.managed_instances import managed_rejection
from relaunch.core.offerings.offering import GP3_USD_PER_GIB_MONTH, CapacityMemory, Offering
from relaunch.core.offerings.peaks import Peaks
from relaunch.core.offerings.quotas import NO_QUOTAS, Quotas, quota_of
from relaunch.core.offerings.reservations import TAKEN_BEFORE_END, WARNED_BEFORE_END
from relaunch.core.records import dataclass
from relaunch.core.selection.expected_cost import CHECKPOINT_INTERVAL, NO_PEAKS, START_OVERHEAD, WorkAhead, derive_work
from relaunch.core.selection.instance_type_filters import find_unsatisfied
from relaunch.core.selection.neuron_devices import NETWORK_MODES, requires_neuron
from relaunch.core.selection.rejection import Rejection
from relaunch.core.selection.requirements import Requirements, fills_instance
from relaunch.core.selection.speeds import NO_RATES, Rates

DEFAULT_MAX_PRICE_USD_PER_HOUR = 40.0
OWN_PRICE_CAP = "the job's max_price_per_hour"
"""How a rejection names the cap of the definition."""
"""The stack's price cap if nobody sets one (MaxPricePerHour in template.yaml): a protection against surprise bills."""

_NONE = timedelta(0)
# When other jobs release vCPUs is not known.
_QUOTA_POLL_INTERVAL = timedelta(minutes=5)
# Nor when an instance of a reservation is free again, or somebody extends it.
_RESERVATION_POLL_INTERVAL = timedelta(minutes=5)
# A machine that starts once EC2 has announced the end of its Capacity Block is never warned, and what was trained there
# is lost: an estimate may be wrong, and is used up by a job that takes longer.
_LEAST_IN_RESERVATION = START_OVERHEAD + WARNED_BEFORE_END - TAKEN_BEFORE_END


@dataclass(frozen=True, slots=True)
class SelectionLimits:
    """The limits of the stack and the account, the price of disks in the region, and the peaks of accelerators.

    `max_price_usd_per_hour` is the stack's price cap, None for no cap. `max_spot_ratio` is the highest acceptable spot
    price as a fraction of the on-demand price. `has_subnets` is whether the stack has subnets, which tasks of network
    mode awsvpc need. `quotas` are the known quotas of the account by code; an unknown one rejects nothing.
    `machine_kinds` are the kinds of AMI that the stack has a launch template with for machines of our own. `peaks` are
    the published peaks of accelerators by model, `rates` what jobs of the definition have shown.
    """

    max_price_usd_per_hour: float | None = DEFAULT_MAX_PRICE_USD_PER_HOUR
    max_spot_ratio: float = 0.9
    has_subnets: bool = True
    quotas: Quotas = field(default_factory=lambda: NO_QUOTAS)
    gp3_usd_per_gib_month: float = GP3_USD_PER_GIB_MONTH
    machine_kinds: frozenset[AmiKind] = frozenset(AmiKind)
    peaks: Mapping[str, Peaks] = field(default_factory=lambda: NO_PEAKS)
    rates: Rates = field(default_factory=lambda: NO_RATES)


@dataclass(frozen=True, slots=True)
class PriceCap:
    """A price cap; `owner` is whose it is and its name. `is_given` is false for the default, which nobody gave."""

    usd_per_hour: float
    owner: str
    is_given: bool = True

    def __str__(self) -> str:
        """Return `the stack's MaxPricePerHour is 40 USD, its default`."""
        return f"{self.owner} is {self.usd_per_hour:.4g} USD{'' if self.is_given else ', its default'}"


@dataclass(frozen=True, slots=True)
class OfferingCriteria:
    """The input of the filters on offerings; `price_caps` are the definition's and the stack's, the lower one first.

    `work` is that of the job, None if its duration is unknown. Of its `nodes` it needs `machines` at once: fewer where
    it keeps some.
    """

    required: Requirements
    policy: PurchasePolicy
    purchase_options: frozenset[PurchaseOption]
    price_caps: tuple[PriceCap, ...]
    network_mode: str
    requires_neuron: bool
    disk_gib: int
    memory: CapacityMemory
    now: datetime
    limits: SelectionLimits
    work: WorkAhead | None
    nodes: int = 1
    machines: int = 1


def derive_criteria(  # noqa: PLR0913 - all that a selection depends on
    definition: JobDefinition,
    required: Requirements,
    memory: CapacityMemory,
    now: datetime,
    limits: SelectionLimits,
    *,
    left: float = 1.0,
    ran: timedelta = _NONE,
    machines: int | None = None,
) -> OfferingCriteria:
    """Return the criteria for all offerings of one selection, for a job of which this share of the work is left.

    Its tasks have run for so long: what counts for `max_runtime`. It needs so many `machines`, by default all.
    """
    work = derive_work(definition, limits.gp3_usd_per_gib_month, required, limits.peaks, limits.rates)
    return OfferingCriteria(
        required=required,
        policy=definition.purchase,
        purchase_options=definition.purchase.options,
        price_caps=_price_caps(definition.max_price_usd_per_hour, limits.max_price_usd_per_hour),
        network_mode=required.network_mode,
        requires_neuron=requires_neuron(required),
        disk_gib=definition.disk_gib or 0,
        memory=memory,
        now=now,
        limits=limits,
        work=None if work is None else replace(work, left=left, runtime_left=definition.max_runtime - ran),
        nodes=definition.nodes,
        machines=definition.nodes if machines is None else machines,
    )


def _least_reserved_time(work: WorkAhead | None, machine: InstanceType) -> timedelta:
    """Return how long a job must run so that something is left of it: to its end, or to a checkpoint if it has some."""
    speed = None if work is None else work.speed_of(machine)
    if work is None or speed is None:
        return START_OVERHEAD + CHECKPOINT_INTERVAL
    duration = work.at_speed(speed.slow).duration_left
    least = START_OVERHEAD + (min(CHECKPOINT_INTERVAL, duration) if work.has_checkpoint else duration)
    return max(least, _LEAST_IN_RESERVATION)


def _price_caps(own: float | None, stack: float | None) -> tuple[PriceCap, ...]:
    caps = [] if own is None else [PriceCap(own, OWN_PRICE_CAP)]
    if stack is not None:
        caps.append(PriceCap(stack, "the stack's MaxPricePerHour", stack != DEFAULT_MAX_PRICE_USD_PER_HOUR))
    return tuple(sorted(caps, key=lambda cap: cap.usd_per_hour))


_MANAGED_MODES = ("awsvpc", "host")

OfferingFilter = Callable[[OfferingCriteria, Offering], Rejection | None]


def check_network_mode(criteria: OfferingCriteria, offering: Offering) -> Rejection | None:
    """Reject offerings that cannot run the revision's network mode, or cannot keep Neuron devices disjoint in it.

    Managed Instances support the network modes awsvpc and host only ("Amazon ECS Managed Instances").
    """
    mode = criteria.network_mode
    if mode == "awsvpc" and not criteria.limits.has_subnets:
        return Rejection("the task definition's network mode is awsvpc, and the stack has no subnets (SubnetIds)")
    if mode and offering.is_managed and mode not in _MANAGED_MODES:
        return Rejection(f"Managed Instances take network mode awsvpc or host, and the task definition's is {mode}")
    if mode and criteria.requires_neuron and not offering.is_managed and mode not in NETWORK_MODES:
        reason = (
            f"ECS does not count Neuron devices, and tasks of network mode {mode} take no ports of the machine, which "
            "would keep them apart: use bridge or host, or a capacity provider of Managed Instances"
        )
        return Rejection(reason)
    return None


def check_nodes(criteria: OfferingCriteria, offering: Offering) -> Rejection | None:
    """Reject what several nodes cannot have all or none of: only machines of our own are requested together."""
    if criteria.nodes == 1 or offering.is_own_machine:
        return None
    return Rejection(f"a job of {criteria.nodes} nodes runs on machines that Relaunch starts itself")


def check_disk(criteria: OfferingCriteria, offering: Offering) -> Rejection | None:
    """Reject offerings whose disk is known to be smaller than required."""
    if offering.disk_gib is None or offering.disk_gib >= criteria.disk_gib:
        return None
    reason = f"its disk has {offering.disk_gib:,} GiB; {criteria.disk_gib:,} are asked for"
    return Rejection(reason, 1 - offering.disk_gib / criteria.disk_gib)


def check_purchase(criteria: OfferingCriteria, offering: Offering) -> Rejection | None:
    """Reject purchase options that the definition does not allow."""
    if offering.purchase in criteria.purchase_options:
        return None
    return Rejection(f"the job's purchase is {criteria.policy}")


def check_quota(criteria: OfferingCriteria, offering: Offering) -> Rejection | None:
    """Reject offerings that exceed the account's quota, alone or together with the instances of other jobs.

    The usage of other jobs only counts for types that one task fills: a task that shares an instance may be placed on a
    running one, which needs no more of the quota. Machines that the job keeps are among those that are used.
    """
    if not criteria.limits.quotas:
        return None
    quota = quota_of(offering.instance_type.name, offering.purchase)
    usage = criteria.limits.quotas.get(quota.code) if quota else None
    if quota is None or usage is None:
        return None
    vcpus = offering.instance_type.vcpus
    is_too_large = vcpus * criteria.nodes > usage.vcpus
    count = criteria.nodes if is_too_large else criteria.machines
    needed = vcpus * count
    has = f"it has {vcpus} vCPU" if count == 1 else f"{count} of it have {needed} vCPU"
    if is_too_large:
        reason = f"{has} and the account's quota is {usage.vcpus:g}: ask AWS for more of {quota}"
        return Rejection(reason, 1 - usage.vcpus / needed)
    if needed + usage.used_vcpus <= usage.vcpus or not _fills(criteria, offering.instance_type):
        return None
    others = f"other jobs use {usage.used_vcpus:g} of the quota's {usage.vcpus:g}"
    reason = f"{has} and {others}: wait for them, or ask AWS for more of {quota}"
    retry_at = criteria.now + _QUOTA_POLL_INTERVAL
    return Rejection(reason, 1 - (usage.vcpus - usage.used_vcpus) / needed, is_permanent=False, retry_at=retry_at)


def _fills(criteria: OfferingCriteria, machine: InstanceType) -> bool:
    return criteria.nodes > 1 or fills_instance(criteria.required, machine)


def check_managed(criteria: OfferingCriteria, offering: Offering) -> Rejection | None:
    """Reject types that Managed Instances do not run, and all others for a task definition that is for those alone."""
    if offering.is_managed:
        reason = managed_rejection(offering.instance_type.name)
        return Rejection(reason) if reason else None
    return Rejection("the task definition is for Managed Instances only") if criteria.required.is_managed_only else None


def check_placement_constraints(criteria: OfferingCriteria, offering: Offering) -> Rejection | None:
    """Reject what the task definition's own placement constraints rule out."""
    return find_unsatisfied(criteria.required.placement_constraints, offering)


def check_usage_class(_criteria: OfferingCriteria, offering: Offering) -> Rejection | None:
    """Reject purchase options that EC2 does not sell the type by, unless the user brought a capacity provider for it.

    Source: SupportedUsageClasses of DescribeInstanceTypes (EC2 API Reference).
    """
    classes = offering.instance_type.usage_classes
    is_reserved = offering.purchase is PurchaseOption.RESERVED
    if offering.capacity_provider is not None or is_reserved or not classes or offering.purchase in classes:
        return None
    return Rejection(f"EC2 sells it as {' and '.join(classes)} only")


def check_reservation(criteria: OfferingCriteria, offering: Offering) -> Rejection | None:
    """Reject reservations that cannot be used, are not active, have too few free instances, or end too soon."""
    reservation = offering.reservation
    now = criteria.now
    if reservation is None:
        return _check_end(criteria, offering)
    if reservation.obstacle or reservation.is_over:
        return Rejection(f"{reservation} {reservation.obstacle or f'is {reservation.state}'}")
    if too_small := reservation.describe_size(criteria.machines):
        return Rejection(too_small)
    again_at = now + _RESERVATION_POLL_INTERVAL
    if not reservation.is_active:
        starts_at = reservation.starts_at
        start = f", and starts {starts_at:%Y-%m-%d %H:%M} UTC" if starts_at else ""
        reason = f"{reservation} is {reservation.state}{start}"
        return Rejection(reason, is_permanent=False, retry_at=max(starts_at or again_at, again_at))
    if too_short := _check_left(criteria, offering, reservation.usable_until, str(reservation)):
        return too_short
    reason = reservation.describe_lack(criteria.machines)
    if not reservation.is_launchable:
        reason = f"EC2 launches nothing into {reservation} now: its launch status is unlaunchable"
    return Rejection(reason, is_permanent=False, retry_at=again_at) if reason else None


def _check_end(criteria: OfferingCriteria, offering: Offering) -> Rejection | None:
    """Reject what a capacity provider has reserved once it ends, as a Capacity Block does, which others outlast."""
    ends_at = offering.reserved_until
    if ends_at is None:
        return None
    what = "what its capacity provider has reserved"
    if ends_at <= criteria.now:
        return Rejection(f"{what} ended at {ends_at:%Y-%m-%d %H:%M} UTC, as CapacityProviders says")
    return _check_left(criteria, offering, ends_at - TAKEN_BEFORE_END, what)


def _check_left(criteria: OfferingCriteria, offering: Offering, until: datetime | None, what: str) -> Rejection | None:
    least = _least_reserved_time(criteria.work, offering.instance_type)
    if until is None or until - criteria.now >= least:
        return None
    minutes = least // timedelta(minutes=1)
    reason = f"{what} is usable until {until:%Y-%m-%d %H:%M} UTC; the job needs {minutes} minutes of it"
    return Rejection(reason, is_permanent=False, retry_at=criteria.now + _RESERVATION_POLL_INTERVAL)


def check_ami(criteria: OfferingCriteria, offering: Offering) -> Rejection | None:
    """Reject types that no image with ECS is published for, unless the user brought a capacity provider for it.

    Machines of our own have the images of the stack's launch templates.
    """
    if offering.capacity_provider is not None:
        return None
    machine = offering.instance_type
    reason = missing_ami(machine, offering.zone)
    if offering.is_own_machine:
        reason = reason or ami_rejection(machine) or _missing_template(criteria, machine)
    return Rejection(reason) if reason else None


def _missing_template(criteria: OfferingCriteria, machine: InstanceType) -> str:
    # The agent registered no GPU of such a type (aws/amazon-ecs-agent#4786, open), so that no task could be placed.
    # ECS's GPU image has NVIDIA's GRID driver, which they need, since version 20260323 (aws/amazon-ecs-ami#653), and
    # the agent lists what NVML does; nobody has reported that it registers them since, and g6f.large needs user data of
    # its own for tasks (README of aws/amazon-ecs-ami).
    if machine.is_fractional:
        return (
            f"it has {machine.gpu_partition_size:g} of a GPU, which the ECS agent of machines that Relaunch starts "
            "itself is not known to register: name a capacity provider for it (CapacityProviders)"
        )
    kind = ami_kind(machine)
    if kind in criteria.limits.machine_kinds:
        return ""
    return f"the stack has no launch template for machines with {kind} images (MachineLaunchTemplates)"


def check_price_cap(criteria: OfferingCriteria, offering: Offering) -> Rejection | None:
    """Reject offerings above a price cap of the definition or the stack; permanent for on-demand prices.

    Without any price only a cap that somebody gave rejects. Of spot without a price only the upper limit is known.
    """
    price = offering.expected_usd_per_hour
    caps = criteria.price_caps
    is_permanent = offering.purchase is PurchaseOption.ON_DEMAND
    if price is None:
        given = next((cap for cap in caps if cap.is_given), None)
        return Rejection(f"its price is not known, and {given}", is_permanent=is_permanent) if given else None
    if not caps or price <= caps[0].usd_per_hour:
        return None
    costs = f"it costs {price:.4g} USD per hour"
    if offering.price_usd_per_hour is None:
        costs = f"its spot price is not known, and may be up to {price:.4g} USD per hour, the on-demand price"
    return Rejection(f"{costs}; {caps[0]}", 1 - caps[0].usd_per_hour / price, is_permanent)


def check_spot_ratio(criteria: OfferingCriteria, offering: Offering) -> Rejection | None:
    """Reject spot offerings above `max_spot_ratio`; an unknown price is accepted."""
    ratio = offering.spot_ratio
    limit = criteria.limits.max_spot_ratio
    if ratio is None or ratio <= limit:
        return None
    reason = (
        f"spot costs {ratio:.0%} of the on-demand price; above {limit:.0%} (MaxSpotRatio) it is not worth being "
        "interrupted"
    )
    return Rejection(reason, 1 - limit / ratio, is_permanent=False)


def check_bare_metal(criteria: OfferingCriteria, offering: Offering) -> Rejection | None:
    """Reject bare metal types that the definition does not name, and no capacity provider of the stack has.

    It can take 20 minutes from the state running until one is available over the network ("Amazon EC2 bare metal
    instances", EC2 User Guide), all of them paid.
    """
    machine = offering.instance_type
    is_asked_for = machine.name in criteria.required.instance_types
    if is_asked_for or not machine.is_bare_metal or offering.capacity_provider is not None:
        return None
    return Rejection("it is bare metal, which takes more than 20 minutes to start: only a job that names it gets it")


def check_capacity_memory(criteria: OfferingCriteria, offering: Offering) -> Rejection | None:
    """Reject what a recent launch of any job found no capacity for, or no room in a quota or a subnet."""
    if not criteria.memory:
        return None
    failures = [failure for failure in find_failures(offering, criteria.memory) if failure.is_avoided(criteria.now)]
    if not failures:
        return None
    failure = max(failures, key=lambda each: each.until)
    reason = f"{failure.reason} at {failure.at:%H:%M} UTC; avoided until {failure.until:%H:%M} UTC"
    if failure.is_queue:
        reason += ", or until one of them is free"
    return Rejection(reason, is_permanent=False, retry_at=failure.until, is_unready=failure.is_unready)


# Their result is the same for all offerings of a group (OfferingGroup).
GROUP_FILTERS: tuple[tuple[str, OfferingFilter], ...] = (
    ("network-mode", check_network_mode),
    ("nodes", check_nodes),
    ("managed-instances", check_managed),
    ("disk", check_disk),
    ("purchase", check_purchase),
    ("quota", check_quota),
)
OFFERING_FILTERS: tuple[tuple[str, OfferingFilter], ...] = (
    ("placement-constraints", check_placement_constraints),
    ("bare-metal", check_bare_metal),
    ("usage-class", check_usage_class),
    ("reservation", check_reservation),
    ("ami", check_ami),
    ("price-cap", check_price_cap),
    ("spot-ratio", check_spot_ratio),
    ("capacity-memory", check_capacity_memory),
)
