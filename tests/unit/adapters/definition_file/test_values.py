"""Parsing and formatting of sizes and durations."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.adapters.definition_file.values import parse_disk_gib, parse_duration, parse_size_mib
from relaunch.core.definitions.durations import write_duration


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("16GiB", 16384),
        ("22888MiB", 22888),
        ("1.5GiB", 1536),
        ("2TiB", 2 * 1024 * 1024),
        ("16 GiB", 16384),
        ("2.3GiB", 2356),
        ("0.1GiB", 103),
    ],
)
def test_sizes_are_read_as_mib(text, mib):
    assert parse_size_mib(text) == mib


@pytest.mark.parametrize(("text", "gib"), [("200GiB", 200), ("2048MiB", 2), ("1TiB", 1024)])
def test_disks_are_read_as_gib(text, gib):
    assert parse_disk_gib(text) == gib


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("20h", timedelta(hours=20)),
        ("30m", timedelta(minutes=30)),
        ("1h30m", timedelta(minutes=90)),
        ("2d", timedelta(days=2)),
        ("45s", timedelta(seconds=45)),
        ("1d2h3m4s", timedelta(days=1, hours=2, minutes=3, seconds=4)),
    ],
)
def test_durations_are_read(text, duration):
    assert parse_duration(text) == duration


@pytest.mark.parametrize("text", ["", "h", "1m1h", "-1h", "1.5h", "1H", "an hour", "1:30"])
def test_other_texts_are_no_durations(text):
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@given(st.integers(min_value=1, max_value=30 * 86400))
def test_a_written_duration_is_read_as_the_same(seconds):
    duration = timedelta(seconds=seconds)

    assert parse_duration(write_duration(duration)) == duration
