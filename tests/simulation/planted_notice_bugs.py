"""Bugs in notices and in the statuses of commits, which the simulation must find."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from relaunch.adapters.github import commit_statuses
from relaunch.adapters.github.commit_statuses import GithubCommitStatuses
from relaunch.adapters.notices import receivers, standard_webhook
from relaunch.adapters.notices.configuration import ReceiverConfiguration
from relaunch.core.jobs.job import Job
from relaunch.core.lifecycle.change_events import JobStateChange, event_of
from relaunch.core.notices import commit_status, decision, text
from relaunch.core.notices.decision import kind_of
from relaunch.core.notices.notice import Notice, Subscription
from relaunch.core.notices.record import NoticeRecord
from relaunch.core.notices.status_report import StatusReport
from relaunch.usecases import send_notices as sending
from relaunch.usecases.send_changes import ChangeSender
from relaunch_local.simulation.notices import github
from simulation.broken_parts import changed, replaced
from simulation.planted_bugs import PlantedBug


def _signed_without_time(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda key, message_id, timestamp, body: (
        original(key, message_id, timestamp * 0, body) | {"webhook-timestamp": str(timestamp)}
    )


def _an_hour_before(original: Callable[..., str]) -> Callable[..., str]:
    return lambda at: original(at - timedelta(hours=1))


def _any_kind(_original: object) -> Callable[..., bool]:
    return lambda event, subscription: subscription.wants_states or kind_of(event) is not None


def _for_all(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda text: original(text).model_copy(update={"is_for_all": True})


def _newest_whenever_it_comes(original: Callable[..., NoticeRecord]) -> Callable[..., NoticeRecord]:
    def note(event: JobStateChange, *rest: Any) -> NoticeRecord:
        noted = original(event, *rest)
        said = event.sequence - 1 if event.sequence < noted.said else noted.said
        return replace(noted, noted=event.sequence, said=said)

    return note


def _only_released(_original: object) -> Callable[..., None]:
    return lambda turn, _notice, _thread: turn._release()


def _without_thread(original: Callable[..., NoticeRecord]) -> Callable[..., NoticeRecord]:
    return lambda notice, record, now, _thread="": original(notice, record, now)


def _after_a_minute(original: Callable[..., Subscription]) -> Callable[..., Subscription]:
    return lambda *given: replace(original(*given), waits_after=timedelta(minutes=1))


def _after_a_second(_original: object) -> Callable[..., Any]:
    return lambda _statuses, _budget, now, _asked: now + timedelta(seconds=1)


def _delivered_at_once(original: Callable[..., Any]) -> Callable[..., Any]:
    def send(sender: ChangeSender, job: Job) -> Any:
        deps: Any = sender._deps
        for change in job.outbox.unsent:
            event = event_of(job, change)
            notice = Notice(kind=kind_of(event), event=event)
            found: Sequence[Any] = deps.receivers.receivers_for(event) if notice.kind else ()
            for each in found:
                each.deliver(notice, "")
        return original(sender, job)

    return send


NOTICE_BUGS = (
    PlantedBug(
        "notice-signed-without-its-time",
        "what signs a request to an endpoint leaves out its time",
        replaced(standard_webhook, "sign", _signed_without_time),
        "a receiver can read and verify what it gets",
    ),
    PlantedBug(
        "notice-names-another-time",
        "a message says that the job changed an hour before",
        replaced(text, "write_time", _an_hour_before),
        "a notice says what an event said",
    ),
    PlantedBug(
        "notice-of-any-kind",
        "a receiver is sent each kind of notice",
        replaced(decision, "is_wanted", _any_kind),
        "a receiver gets only what it is asked for",
    ),
    PlantedBug(
        "notice-to-who-is-not-named",
        "a receiver that only gets notices of definitions which name it gets all",
        replaced(receivers, "read_configuration", _for_all),
        "a receiver gets only what it is asked for",
    ),
    PlantedBug(
        "late-event-is-said",
        "an event that comes late is said after those that followed it",
        replaced(decision, "_note", _newest_whenever_it_comes),
        "no notice is older than the one before it",
    ),
    PlantedBug(
        "notice-not-noted",
        "what was delivered is not noted",
        replaced(sending._Turn, "_keep", _only_released),
        "a notice comes twice only where its sender could not save that",
    ),
    PlantedBug(
        "thread-forgotten",
        "the first message of a job is forgotten",
        replaced(sending, "after", _without_thread),
        "notices of a job are in one thread",
    ),
    PlantedBug(
        "interruptions-said-one-by-one",
        "notices between are not put together",
        changed(decision, WINDOW=timedelta(0)),
        "notices between come a quarter of an hour apart",
        within=80,
    ),
    PlantedBug(
        "wait-said-after-a-minute",
        "a job is said to wait too long after a minute",
        replaced(ReceiverConfiguration, "subscription", _after_a_minute),
        "no job is said to wait too long before it does",
    ),
    PlantedBug(
        "notice-given-up-early",
        "a notice is given up after half an hour",
        changed(decision, KEPT=timedelta(minutes=30)),
        "the end of every job reaches who is asked to get it",
    ),
    PlantedBug(
        "wait-not-said",
        "no wait is ever too long",
        changed(decision, _begins_wait=lambda _event: False),
        "a job that waits too long is said to",
        first=50,
    ),
    PlantedBug(
        "notice-never-given-up",
        "a receiver that never takes anything is tried for months",
        changed(decision, KEPT=timedelta(days=90)),
        "every event is settled for every receiver in the end",
        first=137,
    ),
    PlantedBug(
        "job-tells-its-receivers",
        "whoever saves a job delivers its notices before it goes on",
        replaced(ChangeSender, "send", _delivered_at_once),
        "no function that advances jobs calls a receiver",
    ),
    PlantedBug(
        "status-refused-is-given-up",
        "a status that GitHub refuses for a missing right is given up at once",
        changed(commit_statuses, _MENDABLE=frozenset()),
        "a commit shows how its newest job ended",
        first=63,
    ),
    PlantedBug(
        "missing-right-said-each-time",
        "that a repository lacks the right is said whenever GitHub refuses a status for it",
        changed(StatusReport, is_said=lambda _report, _repository, _reason, _now: False),
        "that a repository lacks a right is said once a day",
        first=10,
    ),
    PlantedBug(
        "refused-repository-is-asked-on",
        "each status of a repository that lacks the right is tried for itself",
        changed(StatusReport, barred_until=lambda _report, _repository: None),
        "a repository without the right is tried every ten minutes",
        first=10,
    ),
    PlantedBug(
        "status-of-another-context",
        "a status has another context",
        changed(commit_status, CONTEXT_PREFIX="training/"),
        "no other commit has a status",
    ),
    PlantedBug(
        "limit-of-github-forgotten",
        "GitHub is asked again after a second, whatever pause it asks for",
        replaced(GithubCommitStatuses, "_note_limited", _after_a_second),
        "GitHub is left alone for as long as it asks",
        world=changed(github, _SHARES={"status-limited": 0.4}),
        first=10,
    ),
)
