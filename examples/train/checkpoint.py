"""The checkpoint contract: objects first, the manifest last, nothing counts without it.

A job's checkpoints lie under one URI, every attempt writing only below its own folder:

    <checkpoint>/<job>/attempt-1/step-0000120/state.json
    <checkpoint>/<job>/attempt-1/step-0000120/weights.json
    <checkpoint>/<job>/attempt-1/step-0000120/manifest.json     written last

The manifest names every object of its folder with size and SHA-256, so that a folder left half written by a lost
machine is told from a complete one by a listing, and a damaged object by reading it. URIs are `s3://bucket/prefix/`
or, to try it without S3, `file:///folder/`. Only the standard library is needed, and boto3 for S3.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Self

from .object_store import open_store

MANIFEST_OBJECT = "manifest.json"
MANIFEST_FORMAT = 1


class CheckpointUnusableError(Exception):
    """A checkpoint is incomplete or damaged; the message says which object and how."""


@dataclass(frozen=True)
class StoredObject:
    """One object of a checkpoint; `key` is relative to the folder of the step, `size` in bytes, `sha256` in hex."""

    key: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What a complete checkpoint consists of; `saved_at` is an aware UTC time, `loss` the loss after `step`."""

    job_id: str
    attempt: int
    step: int
    objects: tuple[StoredObject, ...]
    loss: float
    saved_at: datetime

    def to_json(self) -> bytes:
        """Render the manifest as it is stored."""
        document = {"format": MANIFEST_FORMAT, **asdict(self), "saved_at": self.saved_at.isoformat()}
        return json.dumps(document, indent=2).encode()

    @classmethod
    def from_json(cls, body: bytes) -> Self:
        """Read a stored manifest; unknown keys are ignored.

        Raises:
            CheckpointUnusableError: it is not JSON, of another format, or lacks a key.
        """
        try:
            return cls._from_document(json.loads(body))
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointUnusableError(f"the manifest cannot be read: {error!r}") from error

    @classmethod
    def _from_document(cls, document: dict[str, Any]) -> Self:
        if document["format"] != MANIFEST_FORMAT:
            raise ValueError(f"format {document['format']!r} is not {MANIFEST_FORMAT}")
        return cls(
            job_id=str(document["job_id"]),
            attempt=int(document["attempt"]),
            step=int(document["step"]),
            objects=tuple(StoredObject(o["key"], int(o["size"]), o["sha256"]) for o in document["objects"]),
            loss=float(document["loss"]),
            saved_at=datetime.fromisoformat(document["saved_at"]),
        )


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint that was read and verified; `uri` is the folder of its step."""

    uri: str
    manifest: Manifest
    objects: dict[str, bytes]


def describe_object(key: str, body: bytes) -> StoredObject:
    """Return the entry of an object in the manifest."""
    return StoredObject(key, len(body), hashlib.sha256(body).hexdigest())


def step_folder(step: int) -> str:
    """Return the folder of a step below an attempt's URI; seven digits keep listings in the order of steps."""
    return f"step-{step:07d}/"


def save_checkpoint(attempt_uri: str, manifest: Manifest, objects: Mapping[str, bytes]) -> str:
    """Write the objects, then the manifest; return the URI of the step's folder.

    Whatever interrupts this before its last write leaves a folder that no reader takes for a checkpoint.

    Raises:
        ValueError: the manifest does not describe exactly these objects.
    """
    if set(manifest.objects) != {describe_object(key, body) for key, body in objects.items()}:
        raise ValueError(f"the manifest of step {manifest.step} does not describe the objects to save")
    store = open_store(attempt_uri)
    folder = step_folder(manifest.step)
    for key, body in objects.items():
        store.put(folder + key, body)
    store.put(folder + MANIFEST_OBJECT, manifest.to_json())
    return store.uri + folder


def load_checkpoint(uri: str) -> Checkpoint:
    """Read the checkpoint in the folder `uri`, and verify every object against the manifest.

    Raises:
        CheckpointUnusableError: the manifest or an object is missing, or an object is not what the manifest says.
    """
    store = open_store(uri)
    try:
        manifest = Manifest.from_json(store.get(MANIFEST_OBJECT))
        objects = {expected.key: store.get(expected.key) for expected in manifest.objects}
    except FileNotFoundError as error:
        raise CheckpointUnusableError(f"{error.filename} is missing") from error
    for expected in manifest.objects:
        found = describe_object(expected.key, objects[expected.key])
        if found != expected:
            raise CheckpointUnusableError(
                f"{store.uri}{expected.key} has {found.size} bytes with sha256 {found.sha256}, "
                f"its manifest says {expected.size} bytes with sha256 {expected.sha256}"
            )
    return Checkpoint(store.uri, manifest, objects)


def load_newest_checkpoint(resume_uri: str, reject: Callable[[str, str], None]) -> Checkpoint | None:
    """Load the checkpoint at `resume_uri`; where it cannot be used, the newest of the same job that can.

    `reject` is told the URI and the reason of each one passed over. None means that no usable one is left.
    Only incomplete or damaged checkpoints are passed over: a denied or failed read is raised, because starting
    over for it would throw away work that is still there.
    """
    for uri in _candidates(resume_uri):
        try:
            return load_checkpoint(uri)
        except CheckpointUnusableError as error:
            reject(uri, str(error))
    return None


def find_complete_checkpoints(job_uri: str) -> list[tuple[str, Manifest]]:
    """List the complete checkpoints of a job with the URIs of their folders, the newest first.

    Newest means the highest step, then the highest attempt. Complete means that the manifest is there and each object
    it names has the named size; contents are verified when a checkpoint is loaded. This is what Relaunch does too,
    to choose RELAUNCH_RESUME_URI.
    """
    store = open_store(job_uri)
    sizes = store.sizes()
    complete = []
    for key in sizes:
        folder, _, name = key.rpartition("/")
        if name == MANIFEST_OBJECT:
            manifest = _parse_or_none(store.get(key))
            if manifest and all(sizes.get(f"{folder}/{o.key}") == o.size for o in manifest.objects):
                complete.append((f"{store.uri}{folder}/", manifest))
    return sorted(complete, key=lambda found: (found[1].step, found[1].attempt), reverse=True)


def _parse_or_none(body: bytes) -> Manifest | None:
    try:
        return Manifest.from_json(body)
    except CheckpointUnusableError:
        return None


def _candidates(resume_uri: str) -> Iterator[str]:
    """Yield the given folder and, only when asked for more, the other complete ones of its job."""
    first = resume_uri.rstrip("/") + "/"
    yield first
    job_uri = first.rstrip("/").rsplit("/", 2)[0] + "/"
    for uri, _ in find_complete_checkpoints(job_uri):
        if uri != first:
            yield uri
