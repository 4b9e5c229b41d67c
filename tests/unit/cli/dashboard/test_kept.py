"""What was read is kept for seconds."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from fakes.clock import FakeClock
from relaunch_cli.dashboard.kept import MOST, Kept


class Reads:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.kept = Kept(self.clock.now)
        self.count = 0

    def get(self, key: str = "a", version: int | None = None) -> int:
        return self.kept.get(key, 5.0, self.load, version)

    def load(self) -> int:
        self.count += 1
        return self.count


def test_it_is_read_again_after_its_seconds_or_when_something_was_changed() -> None:
    reads = Reads()

    assert [reads.get(), reads.get()] == [1, 1]
    reads.clock.advance(5)
    assert reads.get() == 2
    reads.kept.forget()
    assert reads.get() == 3


def test_of_several_versions_the_newest_is_kept() -> None:
    reads = Reads()

    assert [reads.get(version=each) for each in (1, 1, 2, 2, 1)] == [1, 1, 2, 2, 3]
    assert len(reads.kept._reads) == 1


def test_a_clock_that_was_set_back_makes_nothing_last() -> None:
    reads = Reads()
    reads.get()
    reads.clock.advance(timedelta(hours=-1))

    assert reads.get() == 2


def test_an_error_is_not_kept() -> None:
    reads = Reads()
    with pytest.raises(ZeroDivisionError):
        reads.kept.get("a", 5.0, lambda: 1 // 0)

    assert reads.get() == 1


def test_no_more_is_kept_than_the_limit() -> None:
    reads = Reads()
    for number in range(MOST + 10):
        reads.get(str(number))

    assert len(reads.kept._reads) == MOST


def test_one_thread_reads_for_all_that_ask_at_once() -> None:
    reads = Reads()
    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(lambda _: reads.get(), range(100)))

    assert (found, reads.count) == ({1}, 1)


def test_a_slow_read_keeps_no_other_one_waiting_and_what_was_changed_since_is_read_anew() -> None:
    reads = Reads()
    began = threading.Event()
    goes_on = threading.Event()

    def load_slowly() -> int:
        began.set()
        assert goes_on.wait(60)
        return 0

    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(reads.kept.get, "a", 5.0, load_slowly)
        assert began.wait(60)
        assert reads.get("b") == 1
        reads.kept.forget()
        goes_on.set()
        assert slow.result() == 0
    assert reads.get("a") == 2
