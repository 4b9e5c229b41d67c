"""Images that jobs hold are read often enough for a registry that archives what nobody pulls."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fakes.builders import NOW
from fakes.sources import FakeImages
from fakes.story import Story, push
from relaunch.core.revisions.images import FoundImage
from relaunch.ports import Clock, TransientError
from relaunch.usecases.keep_images import is_reading_due, keep_images

DAY = timedelta(days=1)
UNUSED_DAYS = 60


class ArchivingImages(FakeImages):
    """A registry that archives each image that was not pulled for 60 days; BatchGetImage is a pull."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock
        self.pulled: dict[str, datetime] = {}

    def find_image(self, repository: str, reference: str, account: str | None = None) -> FoundImage | None:
        found = super().find_image(repository, reference, account)
        if found is not None:
            self.pulled[found.digest] = self.clock.now()
        return found

    @property
    def archived(self) -> int:
        return sum(at < self.clock.now() - UNUSED_DAYS * DAY for at in self.pulled.values())


@pytest.fixture
def story() -> Story:
    story = Story()
    story.images = ArchivingImages(story.clock)
    story.deps = replace(story.deps, images=story.images)
    return story


def test_what_an_open_job_holds_is_never_archived(story: Story):
    images = story.images
    assert isinstance(images, ArchivingImages)
    job_id = story.launch()
    read = []
    for _ in range(20):
        story.clock.advance(7 * DAY)
        assert images.archived == 0
        read.append(keep_images(story.deps))

    assert read == [0] * 4 + [1] * 16
    story.end(job_id)
    for _ in range(UNUSED_DAYS + 1):
        story.clock.advance(DAY)
        assert keep_images(story.deps) == 0
    assert images.archived == 1


def test_an_image_that_cannot_be_read_is_read_again_and_keeps_no_other(story: Story):
    story.submit(push("1" * 40))
    story.clock.advance(40 * DAY)
    story.images.failure = TransientError("ThrottlingException")

    assert [keep_images(story.deps), keep_images(story.deps)] == [0, 1]
    assert "image not read" in story.log.decisions
    assert keep_images(story.deps, lambda: False) == 0


def test_it_is_done_once_a_week():
    minutes = (NOW + timedelta(minutes=minute) for minute in range(7 * 1440))

    assert sum(map(is_reading_due, minutes)) == 1
