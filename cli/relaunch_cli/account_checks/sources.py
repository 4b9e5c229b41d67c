"""The sources of events that a stack may leave out."""

from collections.abc import Iterator, Mapping, Sequence

from relaunch.core.checks import Check, is_ok, problem
from relaunch.core.definitions.definition import (
    EventBridgeTrigger,
    GithubTrigger,
    JobDefinition,
    S3Trigger,
    ScheduleTrigger,
    SnsTrigger,
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
    yield from _check_topics(triggers, outputs)


def _check_topics(triggers: Sequence[Trigger], outputs: Mapping[str, str]) -> Iterator[Check]:
    """Check that the queue takes the topics, and say how they are subscribed, which the command may not read."""
    watched = sorted({trigger.topic for trigger in triggers if isinstance(trigger, SnsTrigger)})
    known = outputs.get("SnsTopicArns", "").split(",")
    of_notices = outputs.get("NoticeTopicArns", "").split(",")
    for topic in watched:
        what = f"SNS topic {topic}"
        if topic not in known:
            wanted = ",".join(each for each in (*known, topic) if each)
            text = "a trigger watches it, and the stack was deployed without"
            yield problem(what, text, f"relaunch deploy SnsTopicArns={wanted}")
        elif topic in of_notices:
            text = "the stack sends notices to it, and its messages start no jobs, which would go on without end"
            yield problem(what, text, "watch another topic, or take it out of NoticeTopicArns")
        else:
            command = f"aws sns subscribe --topic-arn {topic} --protocol sqs --notification-endpoint"
            yield is_ok(what, f"its messages start jobs once it is subscribed: {command} {outputs['SnsQueueArn']}")
