"""S3 triggers that overlap checkpoint prefixes: every checkpoint would start a job. `apply` refuses them."""

from collections.abc import Iterable
from dataclasses import dataclass

from relaunch.core.definitions.definition import JobDefinition, S3Trigger


@dataclass(frozen=True, slots=True)
class Overlap:
    """An S3 trigger of `watcher` that sees what jobs of `writer` write as checkpoints.

    Every checkpoint would start a job whose checkpoints start jobs.
    `trigger_index` counts the watcher's triggers from 0.
    """

    watcher: str
    trigger_index: int
    trigger: S3Trigger
    writer: str
    checkpoint_uri: str

    def __str__(self) -> str:
        """Say what overlaps what."""
        watched = f"s3://{self.trigger.bucket}/{self.trigger.prefix}"
        whose = "its own checkpoints" if self.watcher == self.writer else f"the checkpoints of `{self.writer}`"
        return (
            f"the trigger on {watched} overlaps {whose} under {self.checkpoint_uri}: "
            "every checkpoint would start another job"
        )


def find_overlaps(definitions: Iterable[JobDefinition]) -> list[Overlap]:
    """Return every pair of an S3 trigger and a checkpoint prefix where one's keys can be the other's.

    The trigger's suffix does not count: what a training writes under its checkpoint prefix is its own affair.
    """
    everything = list(definitions)
    return [
        Overlap(watcher.name, index, trigger, writer.name, writer.checkpoint_uri)
        for watcher in everything
        for index, trigger in enumerate(watcher.triggers)
        if isinstance(trigger, S3Trigger)
        for writer in everything
        if writer.checkpoint_uri and _overlaps(trigger, writer.checkpoint_uri)
    ]


def _overlaps(trigger: S3Trigger, checkpoint_uri: str) -> bool:
    bucket, _, prefix = checkpoint_uri.removeprefix("s3://").partition("/")
    if bucket != trigger.bucket:
        return False
    return trigger.prefix.startswith(prefix) or prefix.startswith(trigger.prefix)
