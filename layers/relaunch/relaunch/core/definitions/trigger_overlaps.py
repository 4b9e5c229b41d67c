"""S3 triggers that overlap checkpoint prefixes, so that every checkpoint would start a job. `apply` rejects them."""

from collections.abc import Iterable
from dataclasses import dataclass

from relaunch.core.definitions.definition import JobDefinition, S3Trigger


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
