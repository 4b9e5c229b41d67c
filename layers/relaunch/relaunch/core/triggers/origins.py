"""The origins that a job definition's triggers watch: under these the definition is found when an event comes."""

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
    """Return the repositories whose images triggers bring: jobs of the definition may run others than there are now."""
    waits = (each.wait_for_image for each in definition.triggers if isinstance(each, GithubTrigger))
    images = (each for each in definition.triggers if isinstance(each, ImageTrigger))
    return frozenset(each.repository for each in (*waits, *images) if each is not None)


def _origin(trigger: Trigger) -> tuple[TriggerSource, str]:
    if isinstance(trigger, GithubTrigger):
        # GitHub compares names of repositories without regard to case.
        return TriggerSource.GITHUB, trigger.repository.lower()
    if isinstance(trigger, S3Trigger):
        return TriggerSource.S3, trigger.bucket
    return TriggerSource.IMAGE, trigger.repository
