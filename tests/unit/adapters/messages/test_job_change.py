import json
from dataclasses import replace

import jsonschema

from fakes.builders import make_job, make_running_attempt, make_running_job
from fakes.repository import REPOSITORY
from relaunch.adapters.messages.job_change import published_schema, read_detail, write_detail
from relaunch.core.lifecycle.change_events import SCHEMA_VERSION, event_of
from relaunch.core.lifecycle.job_changes import as_created

JOBS = (make_job(), make_running_job(attempt=make_running_attempt()))


def test_the_published_schema_is_that_of_the_events() -> None:
    published = json.loads((REPOSITORY / "docs" / "events.schema.json").read_text(encoding="utf-8"))

    assert published == published_schema(), (
        "write it: python -m relaunch.adapters.messages.job_change docs/events.schema.json"
    )
    assert published["version"] == SCHEMA_VERSION


def test_an_event_keeps_the_schema_and_is_read_as_it_was() -> None:
    for job in JOBS:
        event = event_of(job, as_created(job, "accepted").outbox.unsent[0])
        detail = write_detail(event)

        jsonschema.validate(json.loads(detail), dict(published_schema()))
        assert read_detail(detail) == event
        assert "null" not in detail


def test_an_event_that_is_made_again_is_the_same() -> None:
    job = JOBS[1]
    change = as_created(job, "accepted").outbox.unsent[0]
    later = replace(job, reason="something else", version=job.version + 9)

    assert write_detail(event_of(job, change)) == write_detail(event_of(later, change))
