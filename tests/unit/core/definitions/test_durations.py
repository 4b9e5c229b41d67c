from datetime import timedelta

import pytest

from relaunch.core.definitions.durations import write_duration, write_minutes


@pytest.mark.parametrize(
    ("seconds", "text", "to_the_minute"),
    [(0, "0s", "0m"), (29, "29s", "0m"), (90, "1m30s", "2m"), (5400, "1h30m", "1h30m"), (129_600, "36h", "36h")],
)
def test_a_duration_is_written_as_in_a_definition(seconds, text, to_the_minute):
    duration = timedelta(seconds=seconds)

    assert (write_duration(duration), write_minutes(duration)) == (text, to_the_minute)
