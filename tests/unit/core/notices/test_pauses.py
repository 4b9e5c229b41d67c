"""For how long a receiver is left alone."""

from datetime import timedelta

from fakes.builders import NOW
from relaunch.core.notices.pauses import ALERTED_AFTER, LONGEST, LONGEST_ASKED, SHORTEST, may_alert, next_pause_end


def test_a_pause_is_half_as_long_again_as_the_receiver_was_away_within_bounds() -> None:
    assert next_pause_end(NOW, NOW, None) == NOW + SHORTEST
    assert next_pause_end(NOW - timedelta(minutes=10), NOW, None) == NOW + timedelta(minutes=5)
    assert next_pause_end(NOW - timedelta(hours=6), NOW, None) == NOW + LONGEST


def test_what_the_receiver_asks_for_is_kept_within_bounds() -> None:
    assert next_pause_end(NOW, NOW, NOW + timedelta(seconds=7)) == NOW + timedelta(seconds=7)
    assert next_pause_end(NOW, NOW, NOW - timedelta(days=1)) == NOW + timedelta(seconds=1)
    assert next_pause_end(NOW, NOW, NOW + timedelta(days=365)) == NOW + LONGEST_ASKED


def test_somebody_is_alerted_after_an_hour() -> None:
    assert not may_alert(NOW, NOW + ALERTED_AFTER - timedelta(seconds=1))
    assert may_alert(NOW, NOW + ALERTED_AFTER)
