"""When a message that fails for a temporary reason comes back."""

from datetime import timedelta

import pytest

from relaunch.core.messages.retries import retry_seconds


@pytest.mark.parametrize(
    ("failing_for", "spread", "seconds"),
    [
        (timedelta(0), 0, 5),
        (timedelta(0), 24, 29),
        (timedelta(0), 25, 5),
        (timedelta(minutes=1), 0, 35),
        (timedelta(minutes=20), 0, 300),
        (timedelta(hours=5, minutes=59), 24, 324),
        (timedelta(hours=6), 0, 870),
        (timedelta(days=3), 24, 894),
    ],
)
def test_half_of_the_time_it_fails_is_waited_for_again(failing_for: timedelta, spread: int, seconds: int) -> None:
    assert retry_seconds(failing_for, spread) == seconds
