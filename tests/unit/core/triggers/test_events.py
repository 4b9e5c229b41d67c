from dataclasses import replace
from datetime import UTC, datetime

import pytest

from relaunch.core.triggers.events import DirectRequest, happened_at, trigger_keys
from unit.core.triggers.matched import IMAGE, PUSH, UPLOAD


@pytest.mark.parametrize(
    ("event", "source", "name"),
    [
        (replace(PUSH, repository="Acme/Vision"), "github", "acme/vision"),
        (UPLOAD, "s3", "acme-datasets"),
        (IMAGE, "image", "trainer"),
    ],
)
def test_who_watches_an_origin_is_found_by_its_source_and_name(event, source, name):
    assert trigger_keys(event) == (source, name)


def test_a_request_happened_when_it_was_asked_for_and_other_events_when_their_source_says():
    first, second = datetime(2026, 3, 14, tzinfo=UTC), datetime(2026, 3, 15, tzinfo=UTC)

    assert happened_at(DirectRequest("api:1", "resnet", requested_at=first)) == first
    assert happened_at(replace(UPLOAD, happened_at=second)) == second
    assert happened_at(DirectRequest("api:1", "resnet")) is None
