from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.builders import NOW
from relaunch.core.triggers.failed_deliveries import (
    ASKED_FOR,
    MAX_PER_PASS,
    DeliveryAttempt,
    SweepDecision,
    SweepProgress,
    decide_redeliveries,
    start_progress,
)

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
PASS = 30 * MINUTE


def attempt(number: int, guid: str, before: timedelta, status_code: int = 503) -> DeliveryAttempt:
    return DeliveryAttempt(number, guid, NOW - before, status_code)


def decide(*attempts: DeliveryAttempt, progress: SweepProgress | None = None, has_all: bool = True) -> SweepDecision:
    return decide_redeliveries(attempts, progress or start_progress(NOW), NOW, has_all=has_all)


@pytest.mark.parametrize("status_code", [0, 302, 400, 401, 403, 404, 408, 413, 429, 500, 502, 503, 504])
def test_a_delivery_that_was_not_accepted_is_asked_for_again(status_code: int) -> None:
    failed = attempt(1, "a", MINUTE, status_code)

    assert decide(failed).redeliver == (failed,)


@pytest.mark.parametrize("status_code", [200, 202, 299])
def test_a_delivery_that_was_accepted_once_is_in_the_queue_for_good(status_code: int) -> None:
    decision = decide(attempt(1, "a", HOUR), attempt(2, "a", 50 * MINUTE, status_code), attempt(3, "a", MINUTE))

    assert (decision.redeliver, decision.lost) == ((), ())


def test_the_newest_attempt_is_named_and_the_oldest_delivery_comes_first() -> None:
    newest = attempt(3, "a", 61 * MINUTE)
    other = attempt(2, "b", 100 * MINUTE)

    assert decide(newest, attempt(1, "a", 110 * MINUTE), other, newest).redeliver == (newest, other)


def test_of_two_attempts_at_once_the_later_one_is_named() -> None:
    assert [each.attempt_id for each in decide(attempt(8, "a", HOUR), attempt(9, "a", HOUR)).redeliver] == [9]


def test_the_cap_of_a_pass_leaves_the_newest_deliveries_for_the_next_one() -> None:
    failed = [attempt(number, f"guid-{number}", timedelta(seconds=1000 - number)) for number in range(MAX_PER_PASS + 7)]

    decision = decide(*failed)

    assert decision.redeliver == tuple(failed[:MAX_PER_PASS])
    assert decision.postponed == 7


def sweep(answer: Callable[[datetime], int], until: timedelta) -> tuple[list[DeliveryAttempt], int]:
    """Sweep one delivery every half hour; return its attempts, and how often it was reported as lost."""
    attempts = [DeliveryAttempt(1, "a", NOW, answer(NOW))]
    progress = start_progress(NOW)
    lost = 0
    now = NOW
    while now < NOW + until:
        now += PASS
        kept = [each for each in attempts if each.delivered_at > now - timedelta(days=3)]
        decision = decide_redeliveries(kept, progress, now, has_all=True)
        progress = decision.progress
        lost += len(decision.lost)
        at = now + timedelta(seconds=2)
        attempts += [DeliveryAttempt(len(attempts) + 1, "a", at, answer(at)) for _ in decision.redeliver]
    return attempts, lost


@pytest.mark.parametrize("minutes", [1, 29, 60, 180, 600, 60 * 48])
def test_after_an_outage_a_delivery_comes_back_within_half_an_hour_or_a_quarter_of_its_age(minutes: int) -> None:
    over_at = NOW + minutes * MINUTE

    attempts, lost = sweep(lambda at: 202 if at >= over_at else 503, ASKED_FOR + HOUR)

    assert attempts[-1].status_code == 202
    assert attempts[-1].delivered_at - over_at <= max(PASS, (over_at - NOW) / 4 + PASS)
    assert lost == 0


def test_an_outage_of_three_days_costs_some_twenty_calls_and_the_delivery_is_reported_as_lost_once() -> None:
    attempts, lost = sweep(lambda _: 0, ASKED_FOR + 5 * HOUR)

    assert 15 <= len(attempts) <= 25
    assert lost == 1


def test_what_the_webhook_refuses_is_tried_three_times_more_and_reported_as_lost_once() -> None:
    attempts, lost = sweep(lambda _: 401, ASKED_FOR)

    assert (len(attempts), lost) == (4, 1)


def test_answers_of_an_outage_are_no_tries() -> None:
    attempts, lost = sweep(lambda at: 503 if at < NOW + 3 * HOUR else 401, ASKED_FOR)

    refused = [each for each in attempts if each.status_code == 401]
    assert (len(refused), lost) == (4, 1)


def test_a_webhook_that_was_never_swept_tells_nothing_of_before() -> None:
    decision = decide(attempt(1, "a", ASKED_FOR + MINUTE))

    assert decision == SweepDecision((), 0, (), SweepProgress(NOW - HOUR))


def test_what_is_lost_is_not_asked_for_from_the_attempts_that_are_still_listed() -> None:
    progress = SweepProgress(NOW - 2 * HOUR, frozenset({"a", "z"}))

    decision = decide(attempt(1, "a", 3 * HOUR), attempt(2, "a", HOUR), attempt(3, "b", 3 * HOUR), progress=progress)

    assert decision == SweepDecision((), 0, (), SweepProgress(NOW - HOUR, frozenset({"a"})))


def test_the_progress_stops_at_the_oldest_delivery_that_is_not_settled() -> None:
    oldest = attempt(1, "a", 5 * HOUR)

    decision = decide(oldest, attempt(2, "b", 2 * HOUR), attempt(3, "c", 6 * HOUR, 202))

    assert decision.progress == SweepProgress(oldest.delivered_at)


def test_the_progress_leaves_an_hour_for_deliveries_that_are_listed_late() -> None:
    assert decide(attempt(1, "a", MINUTE)).progress.settled_until == NOW - HOUR


def test_the_progress_stays_if_older_attempts_were_not_listed() -> None:
    progress = SweepProgress(NOW - 9 * HOUR, frozenset({"z"}))
    refused = [attempt(number, "b", number * MINUTE, 401) for number in range(4)]

    decision = decide(attempt(9, "a", HOUR), *refused, progress=progress, has_all=False)

    assert decision.progress == SweepProgress(NOW - 9 * HOUR, frozenset({"b", "z"}))
    assert [each.guid for each in decision.redeliver] == ["a"]


@given(
    st.lists(
        st.builds(
            attempt,
            st.integers(1, 50),
            st.sampled_from("abc"),
            st.timedeltas(timedelta(0), timedelta(days=4)),
            st.sampled_from([0, 202, 401, 503]),
        )
    )
)
def test_nothing_is_asked_for_twice_or_after_it_was_accepted_and_the_progress_never_goes_back(
    attempts: list[DeliveryAttempt],
) -> None:
    progress = SweepProgress(NOW - 2 * HOUR)

    decision = decide(*attempts, progress=progress)

    guids = [each.guid for each in decision.redeliver]
    assert len(set(guids)) == len(guids)
    seen = [each for each in attempts if each.delivered_at >= progress.settled_until]
    assert not {each.guid for each in seen if each.is_accepted} & {*guids, *decision.lost}
    assert not set(guids) & set(decision.lost)
    assert progress.settled_until <= decision.progress.settled_until <= NOW - HOUR
