import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from relaunch_local.stack.forwarder import DeliveryFaults, EventForwarder


class RecordingTargets:
    """Records delivered events; delivery of `failing` events raises an error."""

    def __init__(self, failing: frozenset[str] = frozenset()) -> None:
        self.delivered: list[str] = []
        self._failing = failing

    def deliver(self, event: Mapping[str, Any]) -> None:
        if event["id"] in self._failing:
            raise EndpointConnectionError(endpoint_url="http://127.0.0.1")
        self.delivered.append(event["id"])


def forward(targets: RecordingTargets, delivery_faults: DeliveryFaults, count: int = 20) -> list[str]:
    with closing(EventForwarder(targets, delivery_faults)) as forwarder:
        for number in range(count):
            forwarder.publish({"id": str(number), "detail-type": "test"})
    return targets.delivered


def test_events_arrive_once_and_in_order_when_nothing_is_disordered() -> None:
    assert forward(RecordingTargets(), DeliveryFaults()) == [str(number) for number in range(20)]


def test_duplicated_events_arrive_twice() -> None:
    delivered = Counter(forward(RecordingTargets(), DeliveryFaults(duplicated=1.0)))

    assert set(delivered.values()) == {2}
    assert len(delivered) == 20


class TimerOfTheEnd(threading.Timer):
    """A timer that fires when it is waited for: after all that is published before."""

    def start(self) -> None:
        """Wait to be joined."""

    def join(self, timeout: float | None = None) -> None:
        assert timeout is None
        self.function(*self.args, **self.kwargs)


def test_reordered_events_all_arrive_but_after_later_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "Timer", TimerOfTheEnd)
    in_order = [str(number) for number in range(20)]

    delivered = forward(RecordingTargets(), DeliveryFaults(reordered=0.5, seed=7))

    assert sorted(delivered) == sorted(in_order)
    assert delivered != in_order


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_seed_duplicates_the_same_events(seed: int) -> None:
    delivery_faults = DeliveryFaults(duplicated=0.3, seed=seed)

    assert forward(RecordingTargets(), delivery_faults) == forward(RecordingTargets(), delivery_faults)


def test_an_event_that_cannot_be_delivered_does_not_stop_the_others() -> None:
    assert forward(RecordingTargets(frozenset({"1"})), DeliveryFaults(), count=3) == ["0", "2"]


def test_publishing_does_not_wait_for_the_delivery() -> None:
    released = threading.Event()

    class SlowTargets(RecordingTargets):
        def deliver(self, event: Mapping[str, Any]) -> None:
            released.wait()
            super().deliver(event)

    targets = SlowTargets()
    with closing(EventForwarder(targets)) as forwarder:
        forwarder.publish({"id": "0", "detail-type": "test"})
        delivered_before = list(targets.delivered)
        released.set()

    assert delivered_before == []
    assert targets.delivered == ["0"]
