"""The origins that the triggers of a job definition watch, by which events find definitions."""

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
    waits = (each.wait_for_image for each in definition.triggers if isinstance(each, GithubTrigger))
    images = (each for each in definition.triggers if isinstance(each, ImageTrigger))
    return frozenset(each.repository for each in (*waits, *images) if each is not None)


def _origin(trigger: Trigger) -> tuple[TriggerSource, str]:
    if isinstance(trigger, GithubTrigger):
        # Repository names are case-insensitive on GitHub.
        return TriggerSource.GITHUB, trigger.repository.lower()
    if isinstance(trigger, S3Trigger):
        return TriggerSource.S3, trigger.bucket
    return TriggerSource.IMAGE, trigger.repository
