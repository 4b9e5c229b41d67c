"""S3: strongly consistent objects, and the complete checkpoints among them."""

import json
import math
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class Checkpoint:
    """A complete checkpoint; ordered from old to new."""

    step: int
    attempt: int
    uri: str


@dataclass(slots=True)
class ObjectStore:
    """Objects by bucket and key, in the order they were written."""

    newest: dict[str, Checkpoint] = field(default_factory=dict)
    """The newest complete checkpoint of each job."""
    completed_at: dict[str, datetime] = field(default_factory=dict)
    """Since when the newest one is complete."""
    overtaken: dict[str, tuple[str | None, datetime]] = field(default_factory=dict)
    """Of each job, the checkpoint that was the newest before, and until when."""
    closed_since: datetime | None = None
    """Since when the role may not list or read; None if it may."""
    told_at: dict[str, list[datetime]] = field(default_factory=lambda: defaultdict(list))
    """When a caller was told what there is, by the prefix that was listed."""
    is_locked: bool = False
    """Whether the role may not use the key that objects are encrypted with: only reading an object is denied."""
    _by_job: dict[tuple[str, str], dict[str, bytes]] = field(default_factory=lambda: defaultdict(dict))
    _written_at: dict[tuple[str, str], datetime] = field(default_factory=dict)

    def write(self, bucket: str, key: str, body: bytes, at: datetime) -> None:
        """Put an object; keys are `<prefix>/<job>/attempt-N/…`."""
        self._by_job[bucket, _job_prefix(key)][key] = body
        self._written_at[bucket, key] = at

    def written_at(self, bucket: str, key: str) -> datetime:
        """Return when an object was put, to the second, as S3 tells it."""
        return self._written_at[bucket, key].replace(microsecond=0)

    def complete(self, job_id: str, checkpoint: Checkpoint, now: datetime) -> None:
        """Record a checkpoint as complete: its manifest was written."""
        known = self.newest.get(job_id)
        if known is None or known < checkpoint:
            self.overtaken[job_id] = (known.uri if known else None, now)
            self.newest[job_id] = checkpoint
            self.completed_at[job_id] = now

    def listed(self, bucket: str, prefix: str) -> list[tuple[str, bytes]]:
        """Return the objects under the prefix of a job, or of a definition."""
        if prefix.count("/") > 1:
            jobs = [self._by_job.get((bucket, _job_prefix(prefix)), {})]
        else:
            jobs = [objects for (name, _), objects in self._by_job.items() if name == bucket]
        return sorted((key, body) for objects in jobs for key, body in objects.items() if key.startswith(prefix))

    def saved_by_attempt(self, checkpoint_uri: str, job_id: str) -> dict[int, list[datetime]]:
        """Return when the complete checkpoints of each attempt of a job were complete, in order."""
        bucket, _, prefix = checkpoint_uri.removeprefix("s3://").partition("/")
        found: dict[int, list[datetime]] = defaultdict(list)
        for key in self._by_job.get((bucket, f"{prefix}{job_id}"), {}):
            if key.endswith("/manifest.json"):
                found[int(key.split("/attempt-")[1].partition("/")[0])].append(self._written_at[bucket, key])
        return {attempt: sorted(times) for attempt, times in found.items()}

    def steps_of(self, checkpoint_uri: str, job_id: str) -> list[tuple[int, int, datetime]]:
        """Return the attempt, the step and the time of each complete checkpoint of a job."""
        bucket, _, prefix = checkpoint_uri.removeprefix("s3://").partition("/")
        return [
            (int(key.split("/attempt-")[1].partition("/")[0]), int(key.split("/step-")[1].partition("/")[0]), at)
            for key in self._by_job.get((bucket, f"{prefix}{job_id}"), {})
            if key.endswith("/manifest.json")
            for at in [self._written_at[bucket, key]]
        ]

    def read(self, bucket: str, key: str) -> bytes | None:
        """Return an object's content, None if there is none."""
        return self._by_job.get((bucket, _job_prefix(key)), {}).get(key)


def _job_prefix(key: str) -> str:
    return "/".join(key.split("/")[:2])


_SAID: tuple[dict[str, Any], ...] = (
    {},
    {"loss": math.nan, "metrics": {"lr": math.inf, "": 1}, "total_steps": 1, "save_seconds": -1, "saved_at": "now"},
    {"loss": "low", "metrics": [1], "total_steps": True, "save_seconds": None, "series": [[3, 2, 1], [1], 7]},
    {"loss": 0.5, "metrics": {"accuracy": 0.75}, "save_seconds": 4.0, "saved_at": "2026-03-14T09:26:53+00:00"},
)
"""What trainings say about themselves, by step: nothing, what is none of it, and what is; each is a checkpoint."""


def manifest_of(step: int, attempt: int, sizes: dict[str, int]) -> bytes:
    """Return the manifest of a checkpoint, with keys relative to its folder."""
    objects = [{"key": key, "size": size, "sha256": "0" * 64} for key, size in sizes.items()]
    # Step 1 of 1 is no nonsense, but the end.
    said = _SAID[step % len(_SAID)] if step > 1 else {}
    return json.dumps({"format": 1, "step": step, "attempt": attempt, "objects": objects, **said}).encode()
