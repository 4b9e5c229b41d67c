import queue
from datetime import timedelta

from relaunch_local.ecs import Clock, WallClock


def test_timers_fire_in_the_order_of_their_times_and_then_of_their_making() -> None:
    clock, fired = Clock(), list[str]()
    clock.call_later(2, lambda: fired.append("late"))
    clock.call_later(1, lambda: fired.append("first"))
    clock.call_later(1, lambda: fired.append("second"))

    clock.advance(1)
    assert fired == ["first", "second"]
    clock.advance(1)
    assert fired == ["first", "second", "late"]


def test_a_timer_fires_at_its_due_time_and_may_set_another() -> None:
    clock, seen = Clock(), list[float]()
    start = clock.now()

    def again() -> None:
        seen.append((clock.now() - start) / timedelta(seconds=1))
        clock.call_later(3, again)

    clock.call_later(3, again)
    clock.advance(10)

    assert seen == [3, 6, 9]
    assert clock.now() - start == timedelta(seconds=10)


def test_a_cancelled_timer_does_not_fire() -> None:
    clock, fired = Clock(), list[str]()
    timer = clock.call_later(1, lambda: fired.append("never"))
    timer.cancel()
    timer.cancel()

    clock.advance(2)

    assert fired == []
    assert clock.next_due_at() is None


def test_running_until_something_holds_stops_at_the_timer_that_made_it_hold() -> None:
    clock, fired = Clock(), list[int]()
    for seconds in (1, 2, 3):
        clock.call_later(seconds, lambda seconds=seconds: fired.append(seconds))  # type: ignore[misc]

    assert clock.run_until(lambda: len(fired) == 2)
    assert fired == [1, 2]
    assert not clock.run_until(lambda: len(fired) == 4)
    assert not clock.run_until(lambda: False, limit_seconds=0)


def test_speed_divides_delays() -> None:
    clock, fired = Clock(speed=20), list[str]()
    clock.call_later(60, lambda: fired.append("x"))

    clock.advance(2.9)
    assert fired == []
    clock.advance(0.1)
    assert fired == ["x"]


def test_a_wall_clock_fires_by_itself_also_what_is_set_meanwhile() -> None:
    clock, fired = WallClock(speed=1_000), queue.Queue[str]()
    clock.call_later(30, lambda: fired.put("early"))
    clock.start()
    clock.call_later(40, lambda: fired.put("late"))

    assert [fired.get(timeout=300), fired.get(timeout=300)] == ["early", "late"]
    clock.stop()
    clock.call_later(0, lambda: fired.put("after the end"))
    assert fired.empty()
