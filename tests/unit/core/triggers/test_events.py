from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fakes.builders import NOW
from relaunch.core.triggers.events import (
    DirectRequest,
    ObjectCreated,
    Push,
    Release,
    ScheduledTime,
    happened_at,
    ordered_at,
    trigger_keys,
)
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


class TestOrder:
    """The time that orders the jobs of a concurrency group."""

    EARLIER = NOW - timedelta(hours=1)

    def test_a_push_is_ordered_by_when_it_was_pushed(self):
        push = Push(identity="1", repository="acme/vision", happened_at=NOW)
        assert ordered_at(replace(push, pushed_at=self.EARLIER)) == self.EARLIER
        assert ordered_at(push) == NOW

    def test_a_schedule_is_ordered_by_its_time(self):
        assert ordered_at(ScheduledTime("1", "key", self.EARLIER, happened_at=NOW)) == self.EARLIER

    def test_a_request_is_ordered_by_its_acceptance(self):
        assert ordered_at(DirectRequest("1", "resnet", requested_at=self.EARLIER)) is None

    def test_others_are_ordered_by_when_they_happened_as_far_as_that_is_known(self):
        assert ordered_at(ObjectCreated("1", "b", "k", happened_at=self.EARLIER)) == self.EARLIER
        assert ordered_at(Release(identity="1", repository="acme/vision", action="published")) is None
