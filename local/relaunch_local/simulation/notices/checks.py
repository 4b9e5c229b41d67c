"""Checks of what receivers of notices got, against the events that EventBridge took, and what each was asked for.

Nothing that the application stores of its notices is looked at.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.jobs.job import Job
from relaunch_local.ecs import Clock
from relaunch_local.simulation.checks.record import Check
from relaunch_local.simulation.notice_plans import ReceiverPlan, Service
from relaunch_local.simulation.notices.receipts import Receipt
from relaunch_local.simulation.notices.stories import (
    Detail,
    attempt_of,
    begins_wait,
    ends_wait,
    kind_of,
    minute_of,
    time_of,
)

SENDER = "send_notices"
"""The only function that may call a receiver."""
READABLE = "a receiver can read and verify what it gets"
# What docs/notices.md promises of interruptions.
_WINDOW = timedelta(minutes=15)
# The clocks of two functions differ by up to six seconds, and a call takes part of one.
_CLOCK_SKEW = timedelta(seconds=8)
# What a function has to save of a delivery it has saved by then, or its call of DynamoDB has failed.
_SAVED_WITHIN = timedelta(seconds=40)
# EventBridge may deliver an hour late, and a failed call is made again within a quarter.
_LATEST = timedelta(minutes=80)
_WAITS = "waits-too-long"


@dataclass
class NoticeChecks:
    """Knows what each receiver got; `stories` has the events of each job by their sequence, as they are taken."""

    _clock: Clock
    _check: Check
    _jobs: Mapping[str, Job]
    _definitions: Mapping[str, JobDefinition]
    _failed_at: Mapping[str, Sequence[datetime]]
    _outage_time: Callable[[datetime, datetime], timedelta]
    stories: dict[str, dict[int, Detail]] = field(default_factory=lambda: defaultdict(dict))
    _taken_at: dict[tuple[str, int], datetime] = field(default_factory=dict)
    receipts: dict[tuple[str, str], list[Receipt]] = field(default_factory=lambda: defaultdict(list))
    """By receiver and job."""
    _least: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    """The least sequence that the newest notice may have had."""
    _deleted: set[tuple[str, str]] = field(default_factory=set)
    """Receivers, and messages of theirs that a person deleted."""

    def event_taken(self, detail: Detail) -> None:
        """Note an event that EventBridge took."""
        self.stories[detail["job_id"]].setdefault(detail["sequence"], detail)
        self._taken_at.setdefault((detail["job_id"], detail["sequence"]), self._clock.now())

    def called(self, plan: ReceiverPlan, function: str) -> None:
        """Check who calls a receiver: whoever waits for its answer is held up by it."""
        is_allowed = function == SENDER
        self._check("no function that advances jobs calls a receiver", is_allowed, f"{function} calls {plan.name}")

    def unreadable(self, plan: ReceiverPlan, text: str) -> None:
        """Fail a message that is no notice, or whose signature is wrong."""
        self._check(READABLE, not text, f"{plan.name}: {text[:200]}")

    def thread_deleted(self, plan: ReceiverPlan, ts: str) -> None:
        """Note that a person deleted the first message of a thread."""
        self._deleted.add((plan.name, ts))

    def received(self, plan: ReceiverPlan, receipt: Receipt) -> None:
        """Check a message that a receiver takes."""
        check = self._check
        check(READABLE, bool(receipt.job_id), plan.name)
        about = f"{plan.name} of {receipt.job_id}: {receipt.kind} {receipt.sequence or receipt.minute}"
        candidates = self._candidates(receipt)
        check("a notice says what an event said", bool(candidates) and self._is_counted(receipt), about)
        check("a receiver gets only what it is asked for", receipt.kind in self._asked(plan, receipt.job_id), about)
        if not candidates:
            return
        place = (plan.name, receipt.job_id)
        least = self._least[place]
        check("no notice is older than the one before it", max(candidates) >= least, f"{about} after {least}")
        self._least[place] = max(least, min(candidates))
        before = self.receipts[place]
        if plan.service is Service.SLACK:
            self._check_thread(plan, receipt, before, about)
        if plan.service is not Service.SNS:
            # Of SNS nobody knows whether its client, or the function, sent it again.
            known = sum(_name(each) == _name(receipt) and self._is_known(each) for each in before)
            # Words are the same of two tries of an attempt that stopped within a minute before they had started.
            is_allowed = known < len(candidates)
            check("a notice comes twice only where its sender could not save that", is_allowed, about)
        self._check_pause(receipt, before, about)
        if receipt.kind == _WAITS:
            began_at = max(time_of(candidates[each]) for each in candidates)
            has_waited = self._clock.now() - began_at >= timedelta(minutes=plan.waits_after_minutes) - _CLOCK_SKEW
            check("no job is said to wait too long before it does", has_waited, about)
        before.append(receipt)

    def _candidates(self, receipt: Receipt) -> dict[int, Detail]:
        """Return the events that a notice may be about: the one it names, or all that it may have in mind."""
        story = self.stories[receipt.job_id]
        if receipt.sequence:
            known = story.get(receipt.sequence)
            story = {receipt.sequence: known} if known is not None and known == receipt.detail else {}
        return {number: each for number, each in story.items() if _is_about(receipt, each)}

    def _is_counted(self, receipt: Receipt) -> bool:
        story = self.stories[receipt.job_id].values()
        return receipt.interruptions <= sum(kind_of(each) == "interrupted" for each in story)

    def _asked(self, plan: ReceiverPlan, job_id: str) -> frozenset[str]:
        job = self._jobs.get(job_id)
        definition = self._definitions.get(job.definition.name) if job is not None else None
        return plan.kinds_for(definition) if definition is not None else frozenset()

    def _check_thread(self, plan: ReceiverPlan, receipt: Receipt, before: Sequence[Receipt], about: str) -> None:
        """Check that a notice is put under the first one of its job, unless nobody knows that one, or it is gone."""
        roots = [each for each in before if not each.thread]
        if receipt.thread:
            is_own = receipt.thread in {each.ts for each in roots}
        else:
            is_own = not any(self._is_known(each) and (plan.name, each.ts) not in self._deleted for each in roots)
        self._check("notices of a job are in one thread", is_own, about)

    def _check_pause(self, receipt: Receipt, before: Sequence[Receipt], about: str) -> None:
        if not _is_between(receipt) or any(_name(each) == _name(receipt) for each in before):
            return
        known = [each.at for each in before if _is_between(each) and self._is_known(each)]
        is_late = not known or receipt.at - max(known) >= _WINDOW - _CLOCK_SKEW
        self._check("notices between come a quarter of an hour apart", is_late, f"{about} {known[-1:]}")

    def _is_known(self, receipt: Receipt) -> bool:
        """Return whether who sent it must have saved that: it got the answer, lived on, and DynamoDB took its calls."""
        invocation = receipt.invocation
        if not receipt.is_answered or invocation is None or invocation.kill_reason:
            return False
        until = receipt.at + _SAVED_WITHIN
        failed = (at for name, times in self._failed_at.items() if name.startswith("dynamodb:") for at in times)
        return not any(receipt.at <= at <= until for at in failed)

    def check_end(self, plans: Iterable[ReceiverPlan], lost: frozenset[str]) -> None:
        """Check that every receiver that lives has what it is asked for; of the `lost` events functions died."""
        for plan in plans:
            for job_id, story in self.stories.items():
                if not plan.is_dead:
                    self._check_last(plan, job_id, story, lost)
                    self._check_waits(plan, job_id, story, lost)

    def _check_last(self, plan: ReceiverPlan, job_id: str, story: Mapping[int, Detail], lost: frozenset[str]) -> None:
        wanted = [number for number, each in story.items() if kind_of(each) in self._asked(plan, job_id)]
        if not wanted or f"{job_id}:{max(wanted)}" in lost:
            return
        last = max(wanted)
        has_it = any(last in self._candidates(each) for each in self.receipts[plan.name, job_id] if each.kind != _WAITS)
        message = f"{plan.name}: {job_id}:{last} {kind_of(story[last])}"
        self._check("the end of every job reaches who is asked to get it", has_it, message)

    def _check_waits(self, plan: ReceiverPlan, job_id: str, story: Mapping[int, Detail], lost: frozenset[str]) -> None:
        """Check that a long wait was said, by a receiver that was there all the time."""
        if _WAITS not in self._asked(plan, job_id) or plan.absences:
            return
        after = timedelta(minutes=plan.waits_after_minutes)
        for number, begin in story.items():
            ends = [time_of(each) for later, each in story.items() if later > number and ends_wait(each)]
            if not begins_wait(begin) or not ends or f"{job_id}:{number}" in lost:
                continue
            due = max(time_of(begin) + after, self._taken_at[job_id, number])
            if min(ends) - due <= _LATEST + self._outage_time(time_of(begin), min(ends)):
                continue
            got = self.receipts[plan.name, job_id]
            is_said = any(number in self._candidates(each) for each in got if each.kind == _WAITS)
            self._check("a job that waits too long is said to", is_said, f"{plan.name}: {job_id}:{number}")


def _is_about(receipt: Receipt, detail: Detail) -> bool:
    is_kind = begins_wait(detail) if receipt.kind == _WAITS else kind_of(detail) == receipt.kind
    return is_kind and minute_of(detail) == receipt.minute and attempt_of(detail) == receipt.attempt


def _is_between(receipt: Receipt) -> bool:
    return receipt.kind == "interrupted" or receipt.is_again


def _name(receipt: Receipt) -> tuple[str, str, int]:
    """Return what is the same for a notice that comes again. A job can start and fail twice within a minute."""
    return receipt.message_id or receipt.kind, receipt.minute, receipt.attempt
