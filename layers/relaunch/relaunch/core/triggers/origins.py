"""The origins that the triggers of a job definition watch, by which events find definitions."""

from collections.abc import Iterator
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
