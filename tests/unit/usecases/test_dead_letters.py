"""Listing, finding, redriving and dropping messages that were given up."""

from datetime import timedelta

import pytest

from fakes.builders import NOW
from fakes.dead_letters import FakeDeadLetters
from fakes.dependencies import make_dependencies
from fakes.metrics import ListMetrics
from fakes.sources import ListLog
from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.core.messages.dead_letter import DeadLetterMessage
from relaunch.ports import PermanentError, TransientError
from relaunch.usecases.dead_letters import (
    NoSourceQueueError,
    UnknownDeadLetterError,
    drop_dead_letter,
    list_dead_letters,
    measure_dead_letters,
    redrive_all,
    redrive_dead_letter,
    show_dead_letter,
)


@pytest.fixture
def dead() -> FakeDeadLetters:
    return FakeDeadLetters()


def test_all_queues_are_listed_oldest_message_first_and_nothing_stays_hidden(dead):
    for number in range(5):
        dead.add("intake", f"message {number}", NOW - timedelta(minutes=number))
    dead.add("warnings", "a warning")

    listings = {each.queue.name: [message.body for message in each.messages] for each in list_dead_letters(dead)}

    assert listings["intake"] == [f"message {number}" for number in (4, 3, 2, 1, 0)]
    assert (listings["warnings"], listings["reconcile"]) == (["a warning"], [])
    assert dead.hidden == set()


def test_a_listing_goes_no_further_than_its_limit_and_knows_how_many_there_are(dead):
    for number in range(5):
        dead.add("intake", f"message {number}")

    (listing,) = list_dead_letters(dead, "intake", limit=2)

    assert (len(listing.messages), listing.about) == (2, 5)


def test_what_is_in_all_queues_is_one_value_of_one_metric(dead):
    metrics = ListMetrics()
    measure_dead_letters(dead, make_dependencies(metrics=metrics))
    for queue in ("intake", "warnings", "warnings"):
        dead.add(queue, "a message")
    measure_dead_letters(dead, make_dependencies(metrics=metrics))

    assert metrics.recorded == [MetricDatum(Metric.DEAD_LETTERS, 0), MetricDatum(Metric.DEAD_LETTERS, 3)]


@pytest.mark.parametrize("trouble", [TransientError("throttled"), PermanentError("not allowed")])
def test_nothing_is_measured_while_sqs_does_not_say(dead, trouble):
    metrics, log = ListMetrics(), ListLog()
    dead.failure = trouble

    measure_dead_letters(dead, make_dependencies(metrics=metrics, log=log))

    assert metrics.recorded == []
    assert log.lines == [("postponed", {"reason": str(trouble)})]


def test_a_message_is_found_by_how_its_id_begins(dead):
    dead.add("intake", "one")
    wanted = dead.add("warnings", "two")

    assert show_dead_letter(wanted.message_id[:8], dead).body == "two"
    assert dead.hidden == set()


@pytest.mark.parametrize(
    ("wanted", "words"), [("ffff", "no message"), ("", "no message"), ("0000000", "more than one")]
)
def test_an_id_that_is_nobodys_or_several_messages_is_refused_and_nothing_stays_hidden(dead, wanted, words):
    dead.add("intake", "one")
    dead.add("intake", "two")

    with pytest.raises(UnknownDeadLetterError, match=words):
        show_dead_letter(wanted, dead)

    assert dead.hidden == set()


def test_a_name_that_is_no_queues_is_refused_with_the_names_there_are(dead):
    with pytest.raises(UnknownDeadLetterError, match="intake, reconcile"):
        list_dead_letters(dead, "intakes")


def test_a_redriven_message_leaves_the_others_in_place(dead):
    dead.add("intake", "stays")
    wanted = dead.add("intake", "goes")

    redrive_dead_letter(wanted.message_id, dead)

    assert dead.redriven == [("intake", "goes")]
    assert [message.body for message in dead.messages.values()] == ["stays"]
    assert dead.hidden == set()


def test_a_message_of_a_function_without_a_queue_is_not_redriven_and_stays(dead):
    wanted = dead.add("reconcile", "a pass")

    with pytest.raises(NoSourceQueueError):
        redrive_dead_letter(wanted.message_id, dead)

    assert (len(dead.messages), dead.hidden) == (1, set())


def test_all_are_redriven_but_what_has_no_queue_to_go_to(dead):
    for number in range(5):
        dead.add("intake", f"message {number}")
    dead.add("warnings", "a warning")
    dead.add("reconcile", "a pass")
    told: list[DeadLetterMessage] = []

    left = redrive_all(dead, "", NOW, told.append)

    assert len(dead.redriven) == len(told) == 6
    assert [(each.queue.name, each.about) for each in left] == [("reconcile", 1)]


class FailingAgain(FakeDeadLetters):
    """Every redriven message fails again and is back at once, as a new message."""

    def redrive(self, message: DeadLetterMessage) -> None:
        super().redrive(message)
        number = len(self.redriven)
        self.add(message.queue.name, message.body, NOW + timedelta(seconds=1), message_id=f"{number:08x}-again")


def test_messages_that_fail_again_are_not_redriven_for_ever():
    dead = FailingAgain()
    for number in range(3):
        dead.add("intake", f"message {number}")

    redrive_all(dead, "intake", NOW, lambda _letter: None)

    assert len(dead.redriven) == 3
    assert (len(dead.messages), dead.hidden) == (3, set())


def test_a_message_that_could_not_be_sent_stays(dead):
    dead.add("intake", "message")
    dead.failure = TransientError("throttled")

    with pytest.raises(TransientError):
        redrive_all(dead, "", NOW, lambda _letter: None)

    assert len(dead.messages) == 1


def test_a_dropped_message_is_gone_and_only_that_one(dead):
    dead.add("intake", "stays")
    wanted = dead.add("intake", "rubbish")

    drop_dead_letter(wanted, dead)

    assert [message.body for message in dead.messages.values()] == ["stays"]
    with pytest.raises(UnknownDeadLetterError):
        drop_dead_letter(wanted, dead)
