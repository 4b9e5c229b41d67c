"""Attacks by what a training writes: manifests that are almost those of checkpoints, large ones, and odd names.

The complete checkpoint before it is found all the same, one that is not complete is never taken, and the reason can be
stored and shown.
"""

import io
import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, cast

from relaunch.adapters.aws.checkpoints import S3Checkpoints
from relaunch.core.definitions.accelerator import AcceleratorRequirement
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.progress import SavedCheckpoint, measure_progress, resumed_step
from relaunch.core.jobs.training import note_progress
from relaunch.core.jobs.trigger_facts import TriggerFacts
from relaunch.core.revisions.revision import Revision
from relaunch_local.attack.attempts import Attempt, attempt
from relaunch_local.attack.bodies import bombs, mutate

_AT = datetime(2026, 11, 25, tzinfo=UTC)
_JOB = "t/j/"
_OLDER = f"{_JOB}attempt-1/step-1/"
_NEWER = "attempt-2/step-2"
_MANIFEST = {
    "format": 1,
    "step": 2,
    "attempt": 2,
    "objects": [{"key": "m", "size": 1}, {"key": "n/0.bin", "size": 70}],
    "loss": 0.5,
    "metrics": {"lr": 0.1},
    "total_steps": 9,
    "save_seconds": 2.5,
    "saved_at": "2026-11-25T00:00:00+00:00",
    "series": [[1, 1_764_028_700, 0.75], [2, 1_764_028_800, None]],
}
_SIZES = {"m": 1, "n/0.bin": 70}
_SIZE_TEXTS = ("1e400", "Infinity", "-Infinity", "NaN", "-1", "1.0", '"1"', "true", "1" + "0" * 300, "9" * 5_000)
_PLACES = (
    *("attempt-2/step-" + "9" * 400, "attempt-" + "9" * 400 + "/step-2", "attempt-2/step-٣", "attempt--1/step-2"),
    *("attempt-2/step-1e9", "attempt-2/step-0x2", "attempt-2/step-2/..", "attempt-2//step-2", "attempt-2/step-2\n"),
)
_LONGEST_READ = 8 << 20
_LONGEST_LINE = 300
_KEPT = timedelta(days=14)


class _Endless(io.BytesIO):
    """A body of spaces: of what is read without a limit there is no end."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or not 0 <= size <= _LONGEST_READ:
            raise MemoryError("a manifest is read to its end")
        return b" " * size


@dataclass(frozen=True, slots=True)
class _Store:
    """What S3 answers of one job, which has a complete checkpoint; `newer` is what a training adds to it."""

    newer: Mapping[str, Callable[[], io.BytesIO]]
    objects: Mapping[str, Callable[[], io.BytesIO]] = field(init=False)

    def __post_init__(self) -> None:
        older = {"m": b"x", "manifest.json": b'{"format":1,"objects":[{"key":"m","size":1}]}'}
        bodies = {f"{_OLDER}{name}": partial(io.BytesIO, body) for name, body in older.items()}
        object.__setattr__(self, "objects", {**bodies, **{f"{_JOB}{key}": body for key, body in self.newer.items()}})

    def get_paginator(self, _: str) -> "_Store":
        return self

    def paginate(self, **asked: str) -> list[dict[str, Any]]:
        listed = [
            {"Key": key, "Size": _SIZES.get(key.partition("step-2/")[2], 1), "LastModified": _AT}
            for key in self.objects
            if key.startswith(asked["Prefix"])
        ]
        return [{"Contents": listed}]

    def get_object(self, **asked: str) -> dict[str, io.BytesIO]:
        return {"Body": self.objects[asked["Key"]]()}


def hostile_manifests(dice: random.Random, count: int) -> Iterator[Attempt]:
    """Look for the newest checkpoint of a job whose training has written these, and measure its progress by it."""
    yield attempt("a manifest without an end", partial(_look, _Endless, is_complete=False))
    for place in _PLACES:
        yield attempt(f"the checkpoint {place[:30]!r}", partial(_look_at_place, place))
    for text in _SIZE_TEXTS:
        body = json.dumps(_MANIFEST).replace('"size": 1}', f'"size": {text}}}').encode()
        yield attempt(f"an object of {text[:20]} bytes", partial(_look_at, body))
    for what, raw in islice(bombs(), count):
        yield attempt(f"a manifest of {what}", partial(_look_at, raw))
        yield attempt(f"a manifest that lists {what}", partial(_look_at, b'{"format":1,"objects":' + raw + b"}"))
    for number in range(count):
        body = json.dumps(mutate(_MANIFEST, dice)).encode()
        if dice.random() < 0.2:
            body = _damaged(body, dice)
        yield attempt(f"drawn manifest {number}: {body[:150]!r}", partial(_look_at, body))


def _damaged(body: bytes, dice: random.Random) -> bytes:
    cut = dice.randrange(len(body) + 1)
    return dice.choice((body[:cut], body[:cut] + dice.randbytes(4) + body[cut:], body + body, body[cut:]))


def _look_at(body: bytes) -> str | None:
    return _look(partial(io.BytesIO, body), is_complete=_is_complete(body))


def _look(body: Callable[[], io.BytesIO], *, is_complete: bool) -> str | None:
    objects = {f"{_NEWER}/{key}": partial(io.BytesIO, b"") for key in _SIZES}
    return _find({**objects, f"{_NEWER}/manifest.json": body}, f"{_JOB}{_NEWER}/" if is_complete else _OLDER)


def _look_at_place(place: str) -> str | None:
    body = partial(io.BytesIO, b'{"format":1,"objects":[{"key":"m","size":1}]}')
    return _find({f"{place}/m": body, f"{place}/manifest.json": body}, _OLDER)


def _is_complete(body: bytes) -> bool:
    """Return whether a manifest names the objects that are there, one at least, with their sizes and nothing else."""
    try:
        document = json.loads(body)
        objects = document["objects"]
        named = [(each["key"], each["size"]) for each in objects]
        is_right = bool(named) and all(type(size) is int and _SIZES.get(key) == size for key, size in named)
        return document["format"] == 1 and type(document["format"]) is not bool and type(objects) is list and is_right
    except (ValueError, LookupError, TypeError, RecursionError):
        return False


def _find(newer: Mapping[str, Callable[[], io.BytesIO]], expected: str) -> str | None:
    reasons: list[str] = []
    found = S3Checkpoints(cast("Any", _Store(newer))).newest_saved("s3://b/t/", "j", on_unusable=reasons.append)
    if found is None:
        return "the checkpoint before it is not found"
    if found.uri != f"s3://b/{expected}":
        return f"{found.uri} was taken"
    if any(not (each.isascii() and each.isprintable() and len(each) <= _LONGEST_LINE) for each in reasons):
        return f"the reason is not fit to be shown: {reasons[0][:100]!a}"
    return _measure(found)


def _measure(found: SavedCheckpoint) -> str | None:
    definition = JobDefinition("j", "trainer", AcceleratorRequirement(), total_steps=10**12)
    job = Job("j", definition, TriggerFacts("", "", ""), Revision("", "trainer", 0, ()), _AT)
    job = replace(job, progress=replace(job.progress, kept_seconds=_KEPT.total_seconds()))
    for estimate in (None, timedelta(hours=1)):
        progress = measure_progress(
            replace(job, definition=replace(definition, estimated_duration=estimate)), found, _AT
        )
        if progress is not None and _AT + progress.at_most_left(1.0) < _AT:
            return f"{progress} is measured"
    noted = note_progress(job, found, _AT)
    if not 0 <= noted.save_seconds <= _KEPT.total_seconds() or (noted.total_steps or found.step) < found.step:
        return f"{noted} is noted"
    return None if resumed_step(found.uri) == found.step else "another step is resumed from"
