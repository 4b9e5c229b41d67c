"""What a training says in its manifest: whatever that is, what can be used is kept and the rest is left out."""

import json
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from relaunch.core.jobs.reported import MAX_METRICS, MAX_POINTS, Reported, SeriesPoint, read_reported, thin

AT = 1_767_323_045


def read(text: str) -> Reported:
    return read_reported(json.loads(text))


def test_what_a_training_says_is_read():
    said = read(
        '{"loss": 0.25, "metrics": {"eval/f1": 1, "lr": 1e-5}, "total_steps": 200, "save_seconds": 3.5,'
        ' "saved_at": "2026-01-02T03:04:05+00:00", "series": [[0, 1767323000, null], [10, 1767323045, 0.5]]}'
    )

    assert said == Reported(
        loss=0.25,
        metrics={"eval/f1": 1.0, "lr": 1e-5},
        total_steps=200,
        save_seconds=3.5,
        written_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        series=(SeriesPoint(0, AT - 45), SeriesPoint(10, AT, 0.5)),
    )


@pytest.mark.parametrize("value", ["NaN", "1e400", "1" + "0" * 400, '"low"', "true", "[1]", "null"])
def test_a_number_that_is_none_takes_nothing_else_with_it(value):
    said = read(f'{{"loss": {value}, "save_seconds": {value}, "metrics": {{"a": {value}, "b": 2}}, "total_steps": 7}}')

    assert (said.loss, said.save_seconds, said.metrics, said.total_steps) == (None, None, {"b": 2.0}, 7)


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "true", "1" + "0" * 30, '"200"'])
def test_a_number_of_steps_is_whole_and_positive(value):
    assert read(f'{{"total_steps": {value}}}').total_steps is None


@pytest.mark.parametrize(
    ("key", "name", "values"),
    [
        ("total_steps", "total_steps", [1, 10**18]),
        ("save_seconds", "save_seconds", [0.0, 0.5, 86_400.0]),
        ("saved_at", "written_at", ["2000-01-01T00:00:00+00:00", "2200-01-01T00:00:00+00:00"]),
    ],
)
def test_the_least_and_the_most_that_can_be_are_kept(key, name, values):
    for value in values:
        kept = getattr(read_reported({key: value}), name)
        assert (kept.isoformat() if isinstance(value, str) else kept) == value


@pytest.mark.parametrize("value", ["-1", "86401"])
def test_a_save_takes_no_less_than_nothing_and_no_more_than_a_day(value):
    assert read(f'{{"save_seconds": {value}}}').save_seconds is None


@pytest.mark.parametrize(
    "value", ['"2026-01-02T03:04:05"', '"0001-01-01T00:00:00+14:00"', '"now"', "5", '"9999-12-31T23:59:59-14:00"']
)
def test_a_time_has_its_offset_and_is_near(value):
    assert read(f'{{"saved_at": {value}}}').written_at is None


def test_metrics_have_names_and_are_not_more_than_anybody_looks_at():
    many = {f"m{number}": number for number in range(MAX_METRICS + 5)}
    assert list(read_reported({"metrics": {"\x1b[2J": 1, "a" * 81: 1, "": 1, **many}}).metrics) == list(many)[:50]
    assert read_reported({"metrics": [1]}).metrics == {}


def test_points_that_are_none_or_out_of_order_are_left_out():
    ends = [[0, 946_684_800, None], [1, 946_684_800, None], [2, 7_258_118_400, None]]
    assert read_reported({"series": ends}).series == tuple(SeriesPoint(step, at) for step, at, _ in ends)
    good = [[10, AT, 0.5], [20, AT + 10, None]]
    bad = [[15, AT + 20, 1], [30, AT, 1], [20, AT + 10, 9], 7, [30, AT], [-1, AT, 1], [30, 12, 1], [30, "now", 1]]

    assert read_reported({"series": [*good, *bad]}).series == (SeriesPoint(10, AT, 0.5), SeriesPoint(20, AT + 10))
    assert read_reported({"series": {"10": AT}}).series == ()


def test_a_series_that_is_too_long_is_thinned_evenly():
    points = [SeriesPoint(step, AT + step) for step in range(10_000)]

    kept = thin(points)

    assert len(kept) == MAX_POINTS
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    assert {after.step - before.step for before, after in pairwise(kept)} == {10, 11}
    assert thin(points[:5]) == tuple(points[:5])
