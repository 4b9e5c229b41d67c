import signal

import pytest

from fakes.action_services import FakeTime
from relaunch_action.errors import ActionError, UnavailableError
from relaunch_action.retries import ATTEMPTS, Cancellation


class Service:
    """Answers "yes" after some failures."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.count = 0

    def ask(self) -> str:
        self.count += 1
        if self.failures:
            raise self.failures.pop(0)
        return "yes"


def outages(count: int) -> list[UnavailableError]:
    return [UnavailableError(str(number)) for number in range(count)]


def test_pauses_grow_until_there_is_an_answer() -> None:
    time, service = FakeTime(), Service(*outages(ATTEMPTS - 1))

    assert time.patience().insist(service.ask) == "yes"
    assert time.seconds == pytest.approx(1 + 2 + 4 + 8 + 16)


def test_after_the_last_attempt_its_error_is_told() -> None:
    service = Service(*outages(ATTEMPTS))

    with pytest.raises(UnavailableError, match=str(ATTEMPTS - 1)):
        FakeTime().patience().insist(service.ask)

    assert service.count == ATTEMPTS


def test_a_refusal_is_not_asked_again() -> None:
    service = Service(ActionError("no"))

    with pytest.raises(ActionError, match="no"):
        FakeTime().patience().insist(service.ask)

    assert service.count == 1


def test_a_cancelled_workflow_ends_a_pause_and_is_asked_once_more() -> None:
    cancellation = Cancellation()
    time = FakeTime(lambda seconds: cancellation.request() if seconds > 0.5 else None)
    service = Service(*outages(ATTEMPTS))

    with pytest.raises(UnavailableError):
        time.patience(cancellation).insist(service.ask)

    assert service.count == 2
    assert time.seconds < 1


def test_a_pause_lasts_as_long_as_it_is_asked_for() -> None:
    time = FakeTime()

    time.patience().pause(2.5)

    assert time.seconds == pytest.approx(2.5)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_both_signals_of_the_runner_are_noticed(number: signal.Signals) -> None:
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    cancellation = Cancellation()
    try:
        cancellation.watch()
        assert not cancellation.is_requested
        signal.raise_signal(number)
        assert cancellation.is_requested
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
