"""What EC2's refusals of a request teach all jobs, and what the refused job does next.

Sources: "Error codes for the Amazon EC2 API" (EC2 API Reference) for the meaning of the codes, and Karpenter's provider
for AWS, which tries a pool without capacity again after three minutes.
"""

import zlib
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.events import FleetRefused, InstanceLaunched, Refusal, RefusalKind
from relaunch.core.machines.machine import Consequence, FleetOverride, FleetRequest
from relaunch.core.offerings.capacity_memory import purchase_scope, quota_scope, remember, zone_scope
from relaunch.core.offerings.offering import CapacityFailure, OfferingKey
from relaunch.core.offerings.quotas import quota_of
from relaunch.core.records import dataclass

POOL_AVOIDED = timedelta(minutes=3)
SUBNET_AVOIDED = timedelta(minutes=10)
QUOTA_AVOIDED = timedelta(minutes=15)
SPOT_AVOIDED = timedelta(minutes=30)

# A refusal of one type in one zone; an unknown code too, else the same request would follow at once.
_OF_POOL = MappingProxyType(
    {
        RefusalKind.NO_CAPACITY: "EC2 has no capacity for it",
        RefusalKind.UNSUPPORTED: "EC2 does not offer it in this zone now",
        RefusalKind.PRICE: "EC2 does not sell it at the price, or from the reservation",
        RefusalKind.UNKNOWN: "EC2 refuses it, by a code that is not known here",
    }
)
# Nothing that another offering would change: somebody has to do something first.
_TO_DO = MappingProxyType(
    {
        RefusalKind.NOT_PERMITTED: (
            "a permission is missing: grant it to the role of the function request_machine, as template.yaml does"
        ),
        RefusalKind.CONFIGURATION: (
            "the launch template, a subnet or the request is wrong: check MachineLaunchTemplates and MachineSubnets"
        ),
        RefusalKind.ACCOUNT_LIMIT: (
            "a limit of the account, or its state, stops all requests: see Service Quotas, mail from AWS, and whether "
            "it is on AWS's Free plan, which has no accelerators"
        ),
    }
)
_ALERTING = frozenset({*_TO_DO, RefusalKind.NO_SPOT_ROLE, RefusalKind.SUBNET_FULL, RefusalKind.UNKNOWN})
_NO_SPOT_ROLE = (
    "the account has no service-linked role for spot: create it once, by "
    "`aws iam create-service-linked-role --aws-service-name spot.amazonaws.com`"
)
_SILENCE = Refusal(RefusalKind.NO_CAPACITY, "no instance and no error")
# Messages of EC2 about permissions have kilobytes of encoded context.
_MESSAGE_LENGTH = 200
_NAMED = 3


# The jitter adds a half, and SQS delays a message by 15 minutes at most.
_MEAN_DELAYS = MappingProxyType(
    {
        Consequence.NEXT: (timedelta(0), timedelta(0)),
        Consequence.AGAIN: (timedelta(seconds=4), timedelta(minutes=1)),
        Consequence.PAUSE: (timedelta(minutes=1), timedelta(minutes=10)),
    }
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the refused job does, why and what to do about it in words, and whether somebody should be alerted."""

    consequence: Consequence
    reason: str
    is_alert: bool = False


def find_failures(
    request: FleetRequest, answer: InstanceLaunched | FleetRefused, at: datetime
) -> tuple[CapacityFailure, ...]:
    """Return the failures to remember, one for each offering or scope.

    A refusal that EC2 does not echo an override for is about all of them, or about unknown ones if an instance was
    launched. Throttling, permissions, configuration and limits of the account say nothing about capacity.
    """
    launched = answer.offering if isinstance(answer, InstanceLaunched) else None
    refusals = answer.refusals or (() if launched else (_SILENCE,))
    found: dict[OfferingKey, CapacityFailure] = {}
    for refusal in refusals:
        for failure in _failures_of(refusal, _concerned(request, refusal, launched), at):
            found[failure.offering] = remember(found.get(failure.offering), failure)
    return tuple(found.values())


def judge(request: FleetRequest, refusals: Sequence[Refusal]) -> Verdict:
    """Return what a job does whose request launched nothing; no refusals are like a lack of capacity."""
    given = tuple(refusals) or (_SILENCE,)
    kinds = {each.kind for each in given}
    if kinds & _TO_DO.keys():
        consequence = Consequence.PAUSE
    elif RefusalKind.THROTTLED in kinds:
        consequence = Consequence.AGAIN
    else:
        consequence = Consequence.NEXT
    # A type that is offered in no zone of the request may be misspelled, or gone.
    is_alert = bool(kinds & _ALERTING) or kinds == {RefusalKind.UNSUPPORTED}
    return Verdict(consequence, "; ".join(_describe(request, given)), is_alert)


def delay_before(consequence: Consequence, waited: timedelta, job_id: str) -> timedelta:
    """Return how long a job waits before it selects again, in whole seconds.

    It grows with the time that the job has `waited` for the same reason, and has jitter: a half to three halves of the
    mean, different for each job.
    """
    least, most = _MEAN_DELAYS[consequence]
    mean = min(max(waited, least), most)
    jitter = zlib.crc32(f"{job_id} {int(waited.total_seconds())}".encode()) / 2**32
    return timedelta(seconds=round((mean * (0.5 + jitter)).total_seconds()))


def _concerned(request: FleetRequest, refusal: Refusal, launched: OfferingKey | None) -> tuple[FleetOverride, ...]:
    """Return the overrides that a refusal is about."""
    others = tuple(each for each in request.overrides if each.offering != launched)
    echo = refusal.offering
    if echo is None:
        return () if launched else others
    named = tuple(
        each
        for each in others
        if each.offering.instance_type == echo.instance_type and echo.zone in (None, each.offering.zone)
    )
    return named or (() if launched else others)


def _failures_of(refusal: Refusal, overrides: Sequence[FleetOverride], at: datetime) -> Iterator[CapacityFailure]:
    # Where EC2 says nothing, nothing is known of its capacity.
    is_shortage = refusal.kind is RefusalKind.NO_CAPACITY and refusal != _SILENCE
    for override in overrides:
        reason = _reason(refusal, override)
        for key, avoided_for, vcpus in _scopes(refusal.kind, override):
            yield CapacityFailure(key, reason, at, at + avoided_for, vcpus=vcpus, is_shortage=is_shortage)


def _scopes(kind: RefusalKind, override: FleetOverride) -> Iterator[tuple[OfferingKey, timedelta, int]]:
    """Yield what is avoided, for how long, and the least number of vCPUs that is avoided."""
    key = override.offering
    if kind in _OF_POOL:
        yield key, POOL_AVOIDED, 0
    elif kind is RefusalKind.QUOTA:
        yield quota_scope(key.instance_type, key.purchase), QUOTA_AVOIDED, override.capacity.cpu_units // 1024
    elif kind is RefusalKind.SUBNET_FULL:
        for purchase in (PurchaseOption.SPOT, PurchaseOption.ON_DEMAND):
            yield zone_scope(key.zone or "", purchase), SUBNET_AVOIDED, 0
    elif kind is RefusalKind.NO_SPOT_ROLE:
        yield purchase_scope(PurchaseOption.SPOT), SPOT_AVOIDED, 0


def _reason(refusal: Refusal, override: FleetOverride) -> str:
    kind = refusal.kind
    code = refusal.code
    if kind in _OF_POOL:
        return f"{_OF_POOL[kind]} ({code})"
    if kind in _TO_DO:
        message = f": {refusal.message[:_MESSAGE_LENGTH]}" if refusal.message else ""
        return f"{_TO_DO[kind]} ({code}{message})"
    if kind is RefusalKind.QUOTA:
        return _quota_reason(code, override.offering)
    if kind is RefusalKind.SUBNET_FULL:
        zone = override.offering.zone
        return f"the subnet of {zone} has no free address ({code}): free some, or name a larger one (MachineSubnets)"
    return _NO_SPOT_ROLE if kind is RefusalKind.NO_SPOT_ROLE else f"EC2 takes no more requests now ({code})"


def _quota_reason(code: str, offering: OfferingKey) -> str:
    quota = quota_of(offering.instance_type, offering.purchase)
    if quota is None:
        family = offering.instance_type.partition(".")[0]
        return f"the account's vCPU quota for {family} {offering.purchase} is used up ({code}): ask AWS for more of it"
    return (
        f"the account's quota {quota} is used up ({code}): ask for more, by `aws service-quotas "
        f"request-service-quota-increase --service-code ec2 --quota-code {quota.code} --desired-value <vCPUs>`"
    )


def _describe(request: FleetRequest, refusals: Sequence[Refusal]) -> Iterator[str]:
    """Yield each reason once, with the offerings it is about if it is about single ones."""
    about: dict[str, dict[str, None]] = {}
    for refusal in refusals:
        for override in _concerned(request, refusal, None):
            names = about.setdefault(_reason(refusal, override), {})
            if refusal.kind in _OF_POOL:
                names[str(override.offering)] = None
    for reason, names in about.items():
        shown = [*names][:_NAMED]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield f"{reason}: {', '.join(shown)}{more}" if names else reason
