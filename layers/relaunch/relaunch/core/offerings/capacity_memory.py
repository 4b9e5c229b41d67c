"""The capacity memory: how long all jobs avoid an offering after a launch found no capacity (exponential backoff).

An interruption is no such failure: it says that one instance was taken, not that the next one cannot be had, and with
many jobs there is always a recent one. It counts for the interruption rate instead (core.offerings.spot_runs).

Each consecutive failure doubles the time, up to `LONGEST`; each `FORGOTTEN_AFTER` without one reduces their number by
one. For comparison: Karpenter retries a pool three minutes after each failure; a circuit breaker of one hour would not
use a pool whose capacity is back at once. What several offerings share (core.offerings.capacity_scopes) is avoided as
long as each failure says: it changes with what the stack itself runs, and when somebody asked AWS for more.

A machine of our own that did not become ready was paid for, so its offering is avoided for four times as long with each
failure, not twice. Where several in a row did not, whatever their offerings, they share a cause: image, launch template
or network. All offerings with that image are avoided then: for 15 minutes, an hour, then six hours. So are all for the
tasks of a revision of which the cluster placed none on several machines that were bought for them. A machine that
becomes ready, or takes such a task, ends that, and the failures do not count any more (`sound`).

An instance that arrives late ends the avoidance, but the failures still count: a registration does not show that a task
can run there.

A capacity provider whose machines run other tasks of the stack is a queue, no failure: it is avoided until
one of them is free, and for QUEUE_AVOIDED at most, so that jobs with another offering take that. A group never exceeds
its maximum size ("Automatically manage Amazon ECS capacity with cluster auto scaling").
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.offerings.capacity_scopes import is_counted, is_scope
from relaunch.core.offerings.offering import CapacityFailure, CapacityMemory

LONGEST = timedelta(hours=4)
FORGOTTEN_AFTER = timedelta(hours=2)
QUEUE_AVOIDED = timedelta(minutes=15)
"""After this time a group whose machines run other tasks is asked for another one again: its maximum size may have been
raised, or not have been reached."""
# Launches that were sent before the first failure was known, and duplicate messages, are one event.
SAME_EVENT = timedelta(minutes=5)
# Doubling ends at LONGEST long before this.
_MAX_CONSECUTIVE_FAILURES = 8
# One that did not become ready may be chance, and so may be two.
_UNREADY_BY_CHANCE = 2
# No longer than a quarter of the day for which a job that never trained is held back: it is tried again until its end.
_UNREADY_AVOIDED = (timedelta(minutes=15), timedelta(hours=1), timedelta(hours=6))


def remember(before: CapacityFailure | None, failure: CapacityFailure) -> CapacityFailure:
    """Return the failure to store for an offering, given the stored one (`before`) and a new one.

    `failure.until` is the end of the avoidance for a first failure. Failures within SAME_EVENT of each other, in any
    order, count as one, unless the avoidance was over, or the offering reopened, in between. The end of the avoidance
    never becomes earlier. A failure that is refuted already (`reopened`) is not remembered again.
    """
    if before is None:
        return failure
    if failure.is_queue:
        return _of_queue(before, failure)
    if is_counted(failure.offering) or is_scope(failure.offering):
        add = _of_cause if is_counted(failure.offering) else _of_scope
        return add(before, failure)
    if before.is_refuted and failure.at < before.until:
        return before
    later = max(before, failure, key=lambda each: each.at)
    is_same_event = abs(failure.at - before.at) < SAME_EVENT and failure.at < before.until
    if is_same_event and not before.is_refuted and not before.is_queue:
        return replace(later, consecutive_failures=before.consecutive_failures, until=max(before.until, failure.until))
    consecutive_failures = min(remaining_failures(before, failure.at) + 1, _MAX_CONSECUTIVE_FAILURES)
    growth = 4 if failure.is_unready else 2
    avoided_for = min((failure.until - failure.at) * growth ** (consecutive_failures - 1), LONGEST)
    until = failure.at + max(avoided_for, failure.until - failure.at)
    return replace(later, consecutive_failures=consecutive_failures, until=max(before.until, until))


def queued(failure: CapacityFailure) -> CapacityFailure:
    """Return the failure of a launch by a capacity provider whose machines run other tasks of the stack."""
    reason = f"the machines of capacity provider {failure.capacity_provider} run other tasks"
    return replace(failure, reason=reason, until=failure.at + QUEUE_AVOIDED, consecutive_failures=0, is_queue=True)


def _of_queue(before: CapacityFailure, failure: CapacityFailure) -> CapacityFailure:
    """Return the failure to store after one of a queue: the one before it if that still holds or was refuted since."""
    if before.until > failure.until or (before.is_refuted and failure.at < before.until):
        return before
    return replace(failure, consecutive_failures=remaining_failures(before, failure.at))


def _of_cause(before: CapacityFailure, failure: CapacityFailure) -> CapacityFailure:
    """Return the failure with those before it; while the image is avoided only late ones fail.

    What is remembered again after a lost answer is the same machine, and no second one.
    """
    is_same_machine = bool(failure.machine_id) and failure.machine_id == before.machine_id
    if failure.at < before.until or is_same_machine:
        return before
    count = min(remaining_failures(before, failure.at) + 1, _MAX_CONSECUTIVE_FAILURES)
    step = count - _UNREADY_BY_CHANCE - 1
    avoided_for = _UNREADY_AVOIDED[min(step, len(_UNREADY_AVOIDED) - 1)] if step >= 0 else timedelta(0)
    return replace(failure, consecutive_failures=count, until=failure.at + avoided_for)


def sound(failure: CapacityFailure, at: datetime) -> CapacityFailure:
    """Return the failure after a machine became ready at `at`: nobody avoids the offering, and none counts any more."""
    return replace(failure, until=at, is_refuted=True, consecutive_failures=0)


def _of_scope(before: CapacityFailure, failure: CapacityFailure) -> CapacityFailure:
    """Return the later failure; if the earlier one was not over, until the end and for the vCPUs of both."""
    earlier, later = sorted((before, failure), key=lambda each: each.at)
    if earlier.until <= later.at:
        return later
    return replace(later, until=max(earlier.until, later.until), vcpus=min(earlier.vcpus, later.vcpus))


def reopened(failure: CapacityFailure, at: datetime) -> CapacityFailure:
    """Return the failure as refuted at `at`: no job avoids the offering, but a next failure still counts from there."""
    return replace(failure, until=at, is_refuted=True)


def with_own(memory: CapacityMemory, own: Iterable[CapacityFailure]) -> CapacityMemory:
    """Return the memory for one job, with the failures of its own; of two for an offering the longer avoidance."""
    merged = dict(memory)
    for failure in own:
        known = merged.get(failure.key)
        if known is None or known.until < failure.until:
            merged[failure.key] = failure
    return merged


def remaining_failures(failure: CapacityFailure, now: datetime) -> int:
    """Return the consecutive failures that still count: one less for each FORGOTTEN_AFTER since the avoidance ended."""
    quiet = max(now - failure.until, timedelta(0))
    return max(failure.consecutive_failures - quiet // FORGOTTEN_AFTER, 0)


def forgotten_at(failure: CapacityFailure) -> datetime:
    """Return when no failure counts any more."""
    return failure.until + failure.consecutive_failures * FORGOTTEN_AFTER
