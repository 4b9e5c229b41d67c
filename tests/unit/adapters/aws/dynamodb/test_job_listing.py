"""Summaries and tasks as they are stored: what a newer release wrote is a temporary error."""

import json
from dataclasses import replace

import pytest

from fakes.builders import NOW, make_job, make_offering_key, make_running_job
from relaunch.adapters.aws.dynamodb import job_items
from relaunch.adapters.aws.dynamodb.job_listing import read_summary
from relaunch.adapters.aws.dynamodb.job_runs import read_runs
from relaunch.core.jobs.cost import summarize_job
from relaunch.core.jobs.state import NotedProgress, RunningTask, Waiting, WaitReason
from relaunch.ports import TransientError

FULL = replace(
    summarize_job(make_running_job()),
    waiting=Waiting(WaitReason.SLOT, NOW, "others", NOW, "resnet"),
    offering=make_offering_key(),
    running=RunningTask(NOW, 1.5),
    ended_at=NOW,
    state_since=NOW,
    noted=NotedProgress(120, NOW, 2, 200, 0.5, NOW, 600.0, 3.5, NOW, (600.0, 601.5), 0.25),
)


def item_of(**changes: object) -> dict[str, dict[str, str]]:
    stored = json.loads(job_items._SUMMARY.dump_json(FULL)) | changes
    return {"pk": {"S": "JOB#resnet-1"}, "sk": {"S": "JOB"}, "summary": {"S": json.dumps(stored)}}


def test_a_summary_is_read_as_it_was_written_without_what_a_newer_release_added():
    assert read_summary(item_of(new_field={"a": [1]})) == FULL


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "FROZEN"},
        {"state": None},
        {"accepted_at": "soon"},
        {"accepted_at": 5},
        {"reason": ["a"]},
        {"waiting": {"reason": "weather", "since": "2026-11-28T20:00:00Z", "detail": ""}},
        {"waiting": "slot"},
        {"noted": {"step": 120, "at": "soon", "attempt": 1}},
        {"noted": {"step": 120, "at": "2026-11-28T20:00:00Z", "attempt": 1, "gaps_seconds": ["long"]}},
        {"offering": {"instance_type": "g5.xlarge"}},
    ],
)
def test_a_summary_that_cannot_be_read_may_be_that_of_a_newer_release(changes):
    with pytest.raises(TransientError, match=r"^JOB#resnet-1 JOB cannot be read, a newer release"):
        read_summary(item_of(**changes))


@pytest.mark.parametrize("body", ["{}", "[]", "not JSON", '{"definition": 1, "revision": {"containers": []}}'])
def test_tasks_that_cannot_be_read_may_be_those_of_a_newer_release(body):
    item = job_items.job_item(make_job(wake_at=NOW), "a write") | {"body": {"S": body}}

    with pytest.raises(TransientError, match="a newer release may have written it"):
        read_runs([item])
