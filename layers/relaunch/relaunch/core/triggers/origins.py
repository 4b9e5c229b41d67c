"""The origins that the triggers of a job definition watch, how events find definitions, and where two overlap."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import assert_never

from relaunch.core.definitions.definition import (
    GithubTrigger,
    ImageTrigger,
    JobDefinition,
    S3Trigger,
    Trigger,
    TriggerSource,
)


def trigger_origins(definition: JobDefinition) -> frozenset[tuple[TriggerSource, str]]:
    """Return the (source, name) of every trigger, as `trigger_keys` derives them from events."""
    return frozenset(_origin(trigger) for trigger in definition.triggers)


def image_repositories(definition: JobDefinition) -> frozenset[str]:
    """Return the repositories whose images triggers pin: jobs may run newer images than the current ones."""
    return frozenset(repository for repository, _ in watched_images(definition))


def watched_images(definition: JobDefinition) -> Iterator[tuple[str, str]]:
    """Yield the repository of each image that a trigger watches or waits for, with the pattern of its tag."""
    for trigger in definition.triggers:
        image = trigger.wait_for_image if isinstance(trigger, GithubTrigger) else trigger
        if image is not None and not isinstance(image, S3Trigger):
            yield image.repository, image.tag


def _origin(trigger: Trigger) -> tuple[TriggerSource, str]:
    match trigger:
        case GithubTrigger():
            # Repository names are case-insensitive on GitHub.
            return TriggerSource.GITHUB, trigger.repository.lower()
        case S3Trigger():
            return TriggerSource.S3, trigger.bucket
        case ImageTrigger():
            return TriggerSource.IMAGE, trigger.repository
        case _:
            assert_never(trigger)


@dataclass(frozen=True, slots=True)
class Overlap:
    """An S3 trigger of the definition `watcher` that matches checkpoints of the definition `writer`.

    `trigger_index` is the zero-based index among the triggers of `watcher`.
    """

    watcher: str
    trigger_index: int
    trigger: S3Trigger
    writer: str
    checkpoint_uri: str

    def __str__(self) -> str:
        """Describe the overlap."""
        watched = f"s3://{self.trigger.bucket}/{self.trigger.prefix}"
        checkpoints = "its own checkpoints" if self.watcher == self.writer else f"the checkpoints of `{self.writer}`"
        return (
            f"the trigger on {watched} overlaps {checkpoints} under {self.checkpoint_uri}: "
            "every checkpoint would start another job"
        )


def find_overlaps(definitions: Iterable[JobDefinition]) -> list[Overlap]:
    """Return every pair of an S3 trigger and a checkpoint prefix that have keys in common.

    The suffix of a trigger is ignored: a training may write objects of any name under its checkpoint prefix.
    """
    known = list(definitions)
    return [
        Overlap(watcher.name, index, trigger, writer.name, writer.checkpoint_uri)
        for watcher in known
        for index, trigger in enumerate(watcher.triggers)
        if isinstance(trigger, S3Trigger)
        for writer in known
        if writer.checkpoint_uri and _overlaps(trigger, writer.checkpoint_uri)
    ]


def _overlaps(trigger: S3Trigger, checkpoint_uri: str) -> bool:
    bucket, _, prefix = checkpoint_uri.removeprefix("s3://").partition("/")
    if bucket != trigger.bucket:
        return False
    return trigger.prefix.startswith(prefix) or prefix.startswith(trigger.prefix)
