"""The sources of events that a stack may leave out."""

from collections.abc import Iterator, Mapping, Sequence

from relaunch.core.checks import Check, is_ok, problem
from relaunch.core.definitions.definition import (
    EventBridgeTrigger,
    GithubTrigger,
    JobDefinition,
    S3Trigger,
    ScheduleTrigger,
    Trigger,
)

# A source, the output that a stack with it has, the parameter that turns it on, and what it is.
_SOURCES: tuple[tuple[type[Trigger], str, str, str], ...] = (
    (GithubTrigger, "WebhookUrl", "Webhook", "events of GitHub"),
    (S3Trigger, "UploadsQueueArn", "Uploads", "uploads"),
    # The queue alone has also a stack of an earlier release, whose function does not know these messages.
    (EventBridgeTrigger, "ScheduleGroupName", "Uploads", "events of EventBridge"),
    (ScheduleTrigger, "ScheduleGroupName", "Uploads", "schedules"),
)


def check_sources(definitions: Sequence[JobDefinition], outputs: Mapping[str, str]) -> Iterator[Check]:
    """Check that the stack has the sources that triggers watch."""
    triggers = [trigger for each in definitions for trigger in each.triggers]
    for kind, output, parameter, what in _SOURCES:
        if not any(isinstance(trigger, kind) for trigger in triggers):
            continue
        if outputs.get(output):
            yield is_ok(what, "the stack takes them")
        else:
            text = "a trigger watches them, and the stack was deployed without"
            yield problem(what, text, f"relaunch deploy {parameter}=on")
