"""Where a retry resumes from, in words."""

import pytest

from relaunch.core.jobs.trigger_facts import ResumePoint


@pytest.mark.parametrize(
    ("step", "attempt", "words"),
    [
        (None, None, "checkpoint below s3://b/p/x-1/"),
        (300, None, "checkpoint of step 300 below s3://b/p/x-1/"),
        (0, 2, "checkpoint of step 0 of attempt 2 below s3://b/p/x-1/"),
        (None, 2, "checkpoint of attempt 2 below s3://b/p/x-1/"),
    ],
)
def test_a_point_says_what_is_looked_for(step, attempt, words):
    point = ResumePoint("x-1", "s3://b/p/", step, attempt)

    assert str(point) == words
    assert point.is_chosen is (words != "checkpoint below s3://b/p/x-1/")
