"""The origins that a job definition's triggers watch: under these the definition is found when an event comes."""

from relaunch.core.definition import GithubTrigger, JobDefinition, S3Trigger, Trigger, TriggerSource


def trigger_origins(definition: JobDefinition) -> frozenset[tuple[TriggerSource, str]]:
    """Return the (source, name) of every trigger, as `trigger_keys` derives them from events."""
    return frozenset(_origin(trigger) for trigger in definition.triggers)


def _origin(trigger: Trigger) -> tuple[TriggerSource, str]:
    if isinstance(trigger, GithubTrigger):
        # GitHub compares names of repositories without regard to case.
        return TriggerSource.GITHUB, trigger.repository.lower()
    if isinstance(trigger, S3Trigger):
        return TriggerSource.S3, trigger.bucket
    return TriggerSource.IMAGE, trigger.repository
