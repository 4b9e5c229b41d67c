"""When the collector of cycles rests, and from when it looks again."""

import gc
from collections.abc import Iterator

import pytest

from relaunch import collector

USUAL = 700


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


def test_after_the_first_event_the_collector_looks_at_what_is_new_and_no_more_at_what_there_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collector, "_USUAL", (USUAL, 10, 10))
    gc.unfreeze()
    gc.set_threshold(collector.RESTING)

    collector.wake()

    assert gc.get_threshold() == (USUAL, 10, 10)
    frozen = gc.get_freeze_count()
    assert frozen > 0
    later = [[number] for number in range(1000)]

    collector.wake()

    assert len(later) == 1000
    assert gc.get_freeze_count() <= frozen
