"""What is asked for by messages is done in time, but for the time in which no function begins."""

from datetime import timedelta
from functools import partial

import pytest

from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.message_times import MessageTimes
from relaunch_local.simulation.aws.outages import LAMBDA, SQS, Kind, Outage, Outages
from relaunch_local.simulation.aws.sqs import Message
from relaunch_local.simulation.chance import Chance


@pytest.mark.parametrize(("service", "is_late"), [(LAMBDA, False), (SQS, True)])
def test_only_an_outage_of_lambda_excuses_a_message_that_no_try_excuses(service: str, is_late: bool) -> None:
    clock = Clock()
    outages = Outages(clock, Chance(1, clock.now), (Outage(service, 10.0, 900.0, Kind.REFUSED),))
    violated: list[str] = []

    def check(name: str, holds: bool, message: str) -> None:
        del message
        violated.extend([] if holds else [name])

    times = MessageTimes(clock, check, partial(outages.time_within, only=LAMBDA))
    message = Message("MachinesQueue", 1, "body", clock.now())
    times.failed("request_machine", message, clock.now(), RuntimeError("a race was lost"))
    clock.advance(timedelta(seconds=1_000).total_seconds())
    times.handled("request_machine", message)

    assert bool(violated) is is_late


def test_nobody_waits_for_a_message_that_is_delivered_once_more_after_it_was_handled() -> None:
    clock = Clock()
    violated: list[str] = []
    times = MessageTimes(clock, lambda name, holds, _message: violated.extend([] if holds else [name]))
    message = Message("AttemptsQueue", 2, "body", clock.now(), origin=1)
    times.handled("launch_attempt", message)
    times.failed("launch_attempt", message, clock.now(), RuntimeError("a race was lost"))
    clock.advance(timedelta(seconds=1_000).total_seconds())

    times.handled("launch_attempt", Message("AttemptsQueue", 1, "body", clock.now(), origin=1))

    assert violated == []
