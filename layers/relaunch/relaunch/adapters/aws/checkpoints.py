"""Checkpoints in S3: the latest complete one of a job.

An attempt writes `<checkpoint>/<job>/attempt-N/step-NNNNNNN/`, the objects first and `manifest.json` last
(adapters.checkpoint_manifest). All of that is the training's: how much of it is read is limited here, and what cannot
be used gives way to the checkpoint before it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from relaunch.adapters.aws.errors import aws_errors, error_code
from relaunch.adapters.checkpoint_manifest import MAX_MANIFEST_BYTES, find_defect, read_training
from relaunch.core.jobs.progress import SavedCheckpoint
from relaunch.core.jobs.reported import Reported
from relaunch.core.records import dataclass
from relaunch.ports import PermanentError
from relaunch.ports.checkpoints import TooManyObjectsError, ignore_unusable

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MANIFEST_OBJECT = "manifest.json"
MAX_LISTED = 100_000
"""How many objects of a job are listed: a hundred pages, for which a function has the time."""
MAX_UNUSABLE = 20
"""How many checkpoints are looked at that cannot be used, before nothing older is looked for."""

_PROBED_MANIFEST = re.compile(r"[^/]+/attempt-[0-9]+/step-[0-9]+/manifest\.json")
# S3 answers so only after it has allowed the read: no such object, or one that is archived.
_ALLOWED = frozenset({"NoSuchKey", "InvalidObjectState"})
# No training comes near these numbers, also if it counts nanoseconds for steps.
_MANIFEST_KEY = re.compile(r"attempt-(?P<attempt>[0-9]{1,6})/step-(?P<step>[0-9]{1,19})/manifest\.json")
_URI = re.compile(r"(?P<scheme>[a-z0-9]+)://(?P<bucket>[^/]+)/(?P<prefix>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, order=True)
class _Step:
    """The prefix of a step with a manifest; ordered from old to new."""

    step: int
    attempt: int
    key: str

    @property
    def name(self) -> str:
        """`attempt-2/step-0000300`."""
        return "/".join(self.key.split("/")[-3:-1])


@dataclass(frozen=True, slots=True)
class _Search:
    """Which checkpoints are looked at, what is called with the reason for each that cannot be used, and the limit."""

    is_wanted: Callable[[_Step], bool]
    on_unusable: Callable[[str], None]
    at_most: int | None = None
    """How many objects are listed, if that is fewer than MAX_LISTED."""


class S3Checkpoints:
    """Implements CheckpointSource for URIs of one scheme; `client` is one of S3, or of a store with its API."""

    def __init__(self, client: "S3Client", scheme: str = "s3") -> None:
        self._client = client
        self._scheme = scheme

    def newest_complete(
        self,
        checkpoint_uri: str,
        job_id: str,
        *,
        step: int | None = None,
        attempt: int | None = None,
        on_unusable: Callable[[str], None] = ignore_unusable,
    ) -> str | None:
        """Return the URI of the complete checkpoint with the highest step, then the highest attempt.

        A checkpoint is complete if it has a manifest and the listing contains all its objects in their full size.
        `step` and `attempt` leave out all others. `on_unusable` is called with the reason for each newer one that
        is not.

        Raises:
            TransientError: throttled or unreachable.
            PermanentError: the URI is invalid, the bucket cannot be read, or holds more than can be looked through.
        """
        find = _Search(lambda each: step in {None, each.step} and attempt in {None, each.attempt}, on_unusable)
        found = self._find(checkpoint_uri, job_id, find)
        return found.uri if found is not None else None

    def newest_saved(
        self,
        checkpoint_uri: str,
        job_id: str,
        *,
        at_most: int | None = None,
        on_unusable: Callable[[str], None] = ignore_unusable,
    ) -> SavedCheckpoint | None:
        """Return the newest complete checkpoint as `newest_complete` does, with when S3 got the last of its objects.

        Those of its attempt before it are known from their manifests, whether or not they are complete.

        Raises:
            TransientError: throttled or unreachable.
            TooManyObjectsError: there are more than `at_most` objects, or than can be looked through.
            PermanentError: the URI is invalid, or the bucket cannot be read.
        """
        return self._find(checkpoint_uri, job_id, _Search(lambda _: True, on_unusable, at_most))

    def _find(self, checkpoint_uri: str, job_id: str, search: _Search) -> SavedCheckpoint | None:
        bucket, prefix = self._split(checkpoint_uri)
        job_prefix = f"{prefix}{job_id}/"
        with aws_errors(f"looking for checkpoints in {self._scheme}://{bucket}/{job_prefix}"):
            listed = {key: (size, at) for key, size, at in self._list(bucket, job_prefix, search.at_most)}
        sizes = {key: size for key, (size, _) in listed.items()}
        steps = sorted(_steps(job_prefix, sizes))
        usable = self._newest_usable(bucket, filter(search.is_wanted, reversed(steps)), sizes, search)
        if usable is None:
            return None
        found, reported = usable
        saved_at = max(at for key, (_, at) in listed.items() if key.startswith(found.key))

        def below(attempt: int) -> tuple[tuple[int, datetime], ...]:
            own = (each for each in steps if each.attempt == attempt and each.step < found.step)
            return tuple((each.step, listed[each.key + MANIFEST_OBJECT][1]) for each in own)

        latest = max(each.attempt for each in steps)
        retrained = below(latest) if latest > found.attempt else ()
        uri = f"{self._scheme}://{bucket}/{found.key}"
        return SavedCheckpoint(uri, found.step, found.attempt, saved_at, below(found.attempt), reported, retrained)

    def _newest_usable(
        self, bucket: str, steps: Iterator[_Step], sizes: Mapping[str, int], search: _Search
    ) -> tuple[_Step, Reported] | None:
        """Return the first step that has a complete checkpoint, with what its training says; None if none has."""
        for unusable, each in enumerate(steps):
            key = each.key + MANIFEST_OBJECT
            if unusable == MAX_UNUSABLE:
                raise PermanentError(
                    f"{MAX_UNUSABLE} checkpoints in {self._scheme}://{bucket}/ cannot be used, and the next is {key}: "
                    "delete those that you do not need"
                )
            manifest = self._read_manifest(bucket, key)
            defect = _find_defect(manifest, f"{self._scheme}://{bucket}/{key}", each, sizes)
            if manifest is not None and not defect:
                return each, read_training(manifest)
            search.on_unusable(f"{each.name} cannot be used: {defect}")
        return None

    def _read_manifest(self, bucket: str, key: str) -> bytes | None:
        with aws_errors(f"reading {self._scheme}://{bucket}/{key}"):
            return self._read(bucket, key)

    def probe(self, checkpoint_uri: str, job_id: str) -> None:
        """Check that the checkpoints of a new job could be listed and read.

        Lists the prefix of the definition and reads a byte of the newest manifest on the first page, of whatever job:
        that also decrypts, which needs kms:Decrypt if the object is under a KMS key ("Using server-side encryption with
        AWS KMS keys", Amazon S3 User Guide). Without a manifest it reads a key that does not exist: whoever may list
        the bucket is told NoSuchKey, unless s3:GetObject is missing (GetObject, Amazon S3 API Reference). Whether the
        job's own objects could be decrypted then stays unknown.

        Raises:
            TransientError: throttled or unreachable.
            PermanentError: the URI is invalid, or the bucket cannot be read.
        """
        bucket, prefix = self._split(checkpoint_uri)
        with aws_errors(f"probing {self._scheme}://{bucket}/{prefix}"):
            page = self._client.list_objects_v2(Bucket=bucket, Prefix=prefix)
            manifests = [
                (found["LastModified"], found["Key"])
                for found in page.get("Contents", [])
                if found["Size"] and _PROBED_MANIFEST.fullmatch(found["Key"].removeprefix(prefix))
            ]
            key = max(manifests)[1] if manifests else f"{prefix}{job_id}/{MANIFEST_OBJECT}"
            try:
                self._client.get_object(Bucket=bucket, Key=key, Range="bytes=0-0")
            except ClientError as error:
                if error_code(error) not in _ALLOWED:
                    raise

    def _split(self, uri: str) -> tuple[str, str]:
        match = _URI.fullmatch(uri)
        if match is None or match["scheme"] != self._scheme:
            raise PermanentError(f"{uri!r} is no URI of {self._scheme.upper()} ({self._scheme}://bucket/prefix/)")
        prefix = match["prefix"]
        return match["bucket"], prefix if not prefix or prefix.endswith("/") else prefix + "/"

    def _list(self, bucket: str, prefix: str, at_most: int | None) -> Iterator[tuple[str, int, datetime]]:
        most = MAX_LISTED if at_most is None else min(at_most, MAX_LISTED)
        count = 0
        for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
            for found in page.get("Contents", []):
                if count == most:
                    raise TooManyObjectsError(
                        f"more than {most:,} objects are below {self._scheme}://{bucket}/{prefix}: "
                        "delete checkpoints that you do not need"
                    )
                count += 1
                yield found["Key"], found["Size"], found["LastModified"]

    def _read(self, bucket: str, key: str) -> bytes | None:
        """Return the beginning of an object, one byte more than a manifest may have; None if it is gone."""
        try:
            body = self._client.get_object(Bucket=bucket, Key=key)["Body"]
        except ClientError as error:
            # Deleted since it was listed.
            if error_code(error) == "NoSuchKey":
                return None
            raise
        # Not to the end: what is left of a larger one would be received too.
        with closing(body):
            return body.read(MAX_MANIFEST_BYTES + 1)


def _steps(job_prefix: str, sizes: Mapping[str, int]) -> Iterator[_Step]:
    for key in sizes:
        if match := _MANIFEST_KEY.fullmatch(key.removeprefix(job_prefix)):
            yield _Step(int(match["step"]), int(match["attempt"]), key.removesuffix(MANIFEST_OBJECT))


def _find_defect(manifest: bytes | None, uri: str, step: _Step, sizes: Mapping[str, int]) -> str:
    """Return why a checkpoint cannot be used, empty if it can; `uri` is that of its manifest."""
    if manifest is None:
        return "its manifest was deleted"
    try:
        return find_defect(manifest, step.key, sizes)
    except Exception as error:
        raise PermanentError(f"reading {uri}: {type(error).__name__}, a bug of Relaunch") from error
