"""Which messages are one event: redeliveries, second webhooks and duplicates are, the same thing done again is not."""

import json
from typing import Any

import pytest

from fakes.busy_stack import BusyStack
from fakes.webhook import load_event, make_delivery
from relaunch.core.triggers.dispatch_rate import MAX_STARTS_PER_HOUR

PUSH = load_event("github.push")
TAG = {**PUSH, "ref": "refs/tags/v1", "before": "0" * 40, "created": True, "commits": []}
RELEASE = load_event("github.release.published")
RUN = load_event("github.workflow_run.completed")
DISPATCH = load_event("github.workflow_dispatch")
REPOSITORY_DISPATCH = load_event("github.repository_dispatch")
UPLOAD = load_event("aws.s3.object-created")
IMAGE = load_event("aws.ecr.image-action")


def with_fields(document: Any, name: str, **fields: Any) -> Any:
    return {**document, name: {**document[name], **fields}}


def uploaded(**fields: Any) -> Any:
    return {**UPLOAD, "detail": with_fields(UPLOAD["detail"], "object", **fields)}


def pushed(push: Any, pushed_at: int) -> Any:
    return with_fields(push, "repository", pushed_at=pushed_at)


@pytest.mark.parametrize(
    ("first", "copy", "again"),
    [
        pytest.param(
            make_delivery("push", pushed(PUSH, 1_793_709_041), "guid-1"),
            make_delivery("push", pushed(PUSH, 1_793_709_041), "guid-2"),
            make_delivery("push", pushed(PUSH, 1_793_709_161), "guid-3"),
            id="push-after-its-revert",
        ),
        pytest.param(
            make_delivery("push", pushed(TAG, 1_793_709_041), "guid-1"),
            make_delivery("push", pushed(TAG, 1_793_709_041), "guid-2"),
            make_delivery("push", pushed(TAG, 1_793_709_161), "guid-3"),
            id="tag-after-its-deletion",
        ),
        pytest.param(
            make_delivery("release", RELEASE, "guid-1"),
            make_delivery("release", RELEASE, "guid-2"),
            make_delivery("release", with_fields(RELEASE, "release", published_at="2026-11-04T09:00:00Z"), "guid-3"),
            id="release-after-a-draft",
        ),
        pytest.param(
            make_delivery("workflow_run", RUN, "guid-1"),
            make_delivery("workflow_run", RUN, "guid-2"),
            make_delivery("workflow_run", with_fields(RUN, "workflow_run", run_attempt=2), "guid-3"),
            id="workflow-run",
        ),
        *(
            pytest.param(
                make_delivery(event, payload, "guid-1"),
                make_delivery(event, payload, "guid-1"),
                make_delivery(event, payload, "guid-2"),
                id=event,
            )
            for event, payload in (("workflow_dispatch", DISPATCH), ("repository_dispatch", REPOSITORY_DISPATCH))
        ),
        pytest.param(
            UPLOAD,
            load_event("s3.notification"),
            uploaded(sequencer="006909A2FC3B1E5D99", etag="0" * 32),
            id="upload-with-other-content",
        ),
        pytest.param(UPLOAD, UPLOAD, uploaded(sequencer="006909A2FC3B1E5D99"), id="upload-with-the-same-content"),
        pytest.param(
            IMAGE,
            {**IMAGE, "id": "the same news, sent twice by ECR"},
            {**IMAGE, "id": "later", "time": "2026-11-03T13:00:00Z"},
            id="image-whose-tag-had-moved",
        ),
    ],
)
def test_a_copy_of_an_event_starts_nothing_and_its_repetition_a_job(first: Any, copy: Any, again: Any) -> None:
    stack = BusyStack()

    assert stack.functions.deliver("submit_job", json.dumps(first), json.dumps(first), json.dumps(copy)) == []
    (job_id,) = stack.started
    assert stack.functions.deliver("submit_job", json.dumps(again), json.dumps(copy), json.dumps(again)) == []

    assert len(stack.started) == 2
    assert job_id in stack.started
    assert stack.functions.dead_letters.letters == []


def without_time(push: Any) -> Any:
    repository = {name: value for name, value in push["repository"].items() if name != "pushed_at"}
    return {**push, "repository": repository}


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        pytest.param("push", without_time(PUSH), id="push"),
        pytest.param("release", with_fields(RELEASE, "release", published_at=None), id="release"),
    ],
)
def test_a_body_without_a_time_starts_one_job_whatever_its_delivery_id(event: str, payload: Any) -> None:
    stack = BusyStack()
    replays = [json.dumps(make_delivery(event, payload, f"invented-{number}")) for number in range(10)]

    assert stack.functions.deliver("submit_job", *replays) == []

    assert len(stack.started) == 1


@pytest.mark.parametrize(
    ("event", "payload"), [("workflow_dispatch", DISPATCH), ("repository_dispatch", REPOSITORY_DISPATCH)]
)
def test_a_dispatch_that_is_replayed_under_invented_delivery_ids_starts_a_few_jobs_only(
    event: str, payload: Any
) -> None:
    stack = BusyStack()
    replays = [json.dumps(make_delivery(event, payload, f"invented-{number}")) for number in range(10)]

    # SQS delivers each twice.
    for message in replays:
        assert stack.functions.deliver("submit_job", message, message) == []

    assert len(stack.started) == MAX_STARTS_PER_HOUR
