import json

import pytest

from policy.series import Series, SeriesError, at_gap, read_series, side_by_side

TICK = 1 / 6


def write(folder, content, name="a.json"):
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def test_a_folder_has_one_series_for_each_file(tmp_path):
    write(tmp_path, {"metadata": {"gap_seconds": 600}, "data": [0, 1, 3]}, "b.json")
    write(tmp_path, {"metadata": {"gap_seconds": 1800.0}, "data": [1, 0]})

    assert read_series(tmp_path) == [Series("a", 0.5, (True, False)), Series("b", 1 / 6, (False, True, True))]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[", "has no `metadata.gap_seconds` and `data`"),
        ("[]", "has no `metadata.gap_seconds` and `data`"),
        ({"data": [0, 1]}, "'metadata'"),
        ({"metadata": {"gap_seconds": 0}, "data": [0, 1]}, "`gap_seconds` must be a number above 0, not 0"),
        ({"metadata": {"gap_seconds": "10m"}, "data": [0, 1]}, "not '10m'"),
        ({"metadata": {"gap_seconds": 600}, "data": [0]}, "`data` must list two counts of instances or more"),
        ({"metadata": {"gap_seconds": 600}, "data": [0, -1]}, "`data` must list two counts"),
        ({"metadata": {"gap_seconds": 600}, "data": [0, "1"]}, "`data` must list two counts"),
    ],
)
def test_a_file_that_is_no_series_is_named_with_what_is_wrong(tmp_path, content, problem):
    write(tmp_path, content)

    with pytest.raises(SeriesError, match=r"a\.json") as caught:
        read_series(tmp_path)

    assert problem in str(caught.value)


def test_a_folder_without_series_says_what_they_look_like(tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(SeriesError, match='"gap_seconds": 600'):
            read_series(folder)


def test_for_several_instances_at_once_as_many_have_to_be_there(tmp_path):
    write(tmp_path, {"metadata": {"gap_seconds": 600}, "data": [0, 3, 4, 16]})

    assert read_series(tmp_path, 4) == [Series("a", TICK, (False, False, True, True))]
    assert read_series(tmp_path)[0].available == (False, True, True, True)
    with pytest.raises(SeriesError, match="no series ever has 17 instances at once: their `data` are to be counts"):
        read_series(tmp_path, 17)


def test_pools_together_last_as_long_as_the_shortest_and_have_one_gap():
    first, second = Series("a", TICK, (True, False, False)), Series("b", TICK, (True, True))

    assert side_by_side([first, second]) == [Series("a", TICK, (True, False)), second]
    with pytest.raises(SeriesError, match="one gap, not of 195 s, 600 s"):
        side_by_side([first, Series("b", 195 / 3600, (True, True))])


def test_a_longer_gap_leaves_ticks_out():
    series = Series("a", 1 / 12, (True, False, False, True, True))

    assert at_gap([series], 1 / 6) == [Series("a", 1 / 6, (True, False, True))]
