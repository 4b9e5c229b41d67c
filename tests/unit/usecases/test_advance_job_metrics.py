"""Whole lives of jobs, as the metrics see them."""

from datetime import timedelta
from unittest.mock import patch

import pytest

from fakes.story import MINUTE, machine, push
from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.ports import TransientError
from relaunch.usecases.submit_job import submit_event


def test_an_interrupted_job_is_measured_from_its_event_to_its_end(story):
    job_id = story.submit()
    story.clock.advance(timedelta(seconds=3))
    story.deliver()
    story.run(job_id, machine(1))
    story.clock.advance(60 * MINUTE)
    story.warn(machine(1).instance_id)
    story.clock.advance(MINUTE)
    story.end(job_id, 0)
    story.settle()
    story.clock.advance(4 * MINUTE)
    story.run(job_id, machine(2))
    story.clock.advance(60 * MINUTE)
    story.end(job_id, 0)

    assert story.metrics.values(Metric.JOBS_ACCEPTED) == [1]
    assert story.metrics.values(Metric.EVENT_TO_RUN_TASK) == [3]
    assert story.metrics.values(Metric.TASKS_LAUNCHED) == [1, 1]
    assert story.metrics.values(Metric.WARNING_TO_STOP) == [0]
    assert story.metrics.values(Metric.INTERRUPTION_TO_RUNNING) == [300]
    assert [each.label for each in story.metrics.of(Metric.STOPS)] == ["interruption", "success"]
    assert story.metrics.of(Metric.JOBS_ENDED) == [MetricDatum(Metric.JOBS_ENDED, label="SUCCEEDED")]


def test_a_job_that_is_interrupted_again_before_it_runs_is_timed_from_the_first_time(story, running_id):
    story.clock.advance(60 * MINUTE)
    story.lose_host(running_id)
    story.settle()
    story.clock.advance(5 * MINUTE)
    story.lose_host(running_id)
    story.settle()
    story.clock.advance(5 * MINUTE)
    story.run(running_id, machine(3))

    assert story.metrics.values(Metric.INTERRUPTION_TO_RUNNING) == [600]


def test_an_event_that_comes_twice_is_accepted_once(story):
    submit_event(push(), story.deps)
    submit_event(push(), story.deps)

    assert story.metrics.values(Metric.JOBS_ACCEPTED) == [1]
    assert story.metrics.of(Metric.EVENTS_IGNORED) == []


def test_an_event_that_starts_nothing_is_ignored(story):
    submit_event(push(repository="acme/other"), story.deps)

    assert story.metrics.recorded == [MetricDatum(Metric.EVENTS_IGNORED)]


def test_what_could_not_be_saved_is_not_counted(story):
    job_id = story.submit()
    story.metrics.recorded.clear()
    story.jobs.fail_next(TransientError("throttled"))

    with pytest.raises(TransientError):
        story.deliver()

    assert story.job(job_id).attempt is None
    assert story.metrics.recorded == []


def test_a_stop_that_failed_is_timed_when_it_is_done(story, running_id):
    throttled = patch.object(story.tasks, "stop", side_effect=TransientError("throttled"))
    with throttled, pytest.raises(TransientError):
        story.warn(machine().instance_id)
    assert story.metrics.values(Metric.WARNING_TO_STOP) == []

    story.clock.advance(timedelta(seconds=20))
    story.warn(machine().instance_id)

    assert story.metrics.values(Metric.WARNING_TO_STOP) == [20]
    assert story.job(running_id).current_attempt.warned_at is not None
