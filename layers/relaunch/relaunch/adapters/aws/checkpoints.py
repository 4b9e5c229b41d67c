"""Checkpoints in S3: the latest complete one of a job.

An attempt writes `<checkpoint>/<job>/attempt-N/step-NNNNNNN/`, the objects first and `manifest.json` last. The manifest
is `{"format": 1, "step": …, "attempt": …, "objects": [{"key": …, "size": …, "sha256": …}], …}`, keys relative to its
prefix, sizes in bytes. examples/train/checkpoint.py writes them.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from relaunch.adapters.aws.errors import aws_errors, error_code
from relaunch.core.jobs.progress import SavedCheckpoint
from relaunch.ports import PermanentError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MANIFEST_OBJECT = "manifest.json"
MANIFEST_FORMAT = 1

_PROBED_MANIFEST = re.compile(r"[^/]+/attempt-[0-9]+/step-[0-9]+/manifest\.json")
# S3 answers so only after it has allowed the read: no such object, or one that is archived.
_ALLOWED = frozenset({"NoSuchKey", "InvalidObjectState"})
_MANIFEST_KEY = re.compile(r"attempt-(?P<attempt>[0-9]+)/step-(?P<step>[0-9]+)/manifest\.json")
_URI = re.compile(r"(?P<scheme>[a-z0-9]+)://(?P<bucket>[^/]+)/(?P<prefix>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, order=True)
class _Step:
    """The prefix of a step with a manifest; ordered from old to new."""

    step: int
    attempt: int
    key: str


class S3Checkpoints:
    """Implements CheckpointSource for URIs of one scheme; `client` is one of S3, or of a store with its API."""

    def __init__(self, client: "S3Client", scheme: str = "s3") -> None:
        self._client = client
        self._scheme = scheme

    def newest_complete(
        self, checkpoint_uri: str, job_id: str, *, step: int | None = None, attempt: int | None = None
    ) -> str | None:
        """Return the URI of the complete checkpoint with the highest step, then the highest attempt.

        A checkpoint is complete if it has a manifest and the listing contains all its objects in their full size.
        `step` and `attempt` leave out all others.

        Raises:
            TransientError: throttled or unreachable.
            PermanentError: the URI is invalid, or the bucket cannot be read.
        """
        found = self._find(checkpoint_uri, job_id, step=step, attempt=attempt)
        return found.uri if found is not None else None

    def newest_saved(self, checkpoint_uri: str, job_id: str) -> SavedCheckpoint | None:
        """Return the newest complete checkpoint as `newest_complete` does, with when S3 got the last of its objects.

        Those of its attempt before it are known from their manifests, whether or not they are complete.

        Raises:
            TransientError: throttled or unreachable.
            PermanentError: the URI is invalid, or the bucket cannot be read.
        """
        return self._find(checkpoint_uri, job_id, step=None, attempt=None)

    def _find(
        self, checkpoint_uri: str, job_id: str, *, step: int | None, attempt: int | None
    ) -> SavedCheckpoint | None:
        bucket, prefix = self._split(checkpoint_uri)
        job_prefix = f"{prefix}{job_id}/"
        with aws_errors(f"looking for checkpoints in {self._scheme}://{bucket}/{job_prefix}"):
            listed = {key: (size, at) for key, size, at in self._list(bucket, job_prefix)}
            sizes = {key: size for key, (size, _) in listed.items()}
            steps = sorted(_steps(job_prefix, sizes))
            for found in reversed(steps):
                if step not in {None, found.step} or attempt not in {None, found.attempt}:
                    continue
                manifest = self._read(bucket, found.key + MANIFEST_OBJECT)
                if manifest is not None and _is_complete(manifest, found.key, sizes):
                    saved_at = max(at for key, (_, at) in listed.items() if key.startswith(found.key))
                    earlier = tuple(
                        (each.step, listed[each.key + MANIFEST_OBJECT][1])
                        for each in steps
                        if each.attempt == found.attempt and each < found
                    )
                    uri = f"{self._scheme}://{bucket}/{found.key}"
                    return SavedCheckpoint(uri, found.step, found.attempt, saved_at, earlier)
        return None

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

    def _list(self, bucket: str, prefix: str) -> Iterator[tuple[str, int, datetime]]:
        for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
            for found in page.get("Contents", []):
                yield found["Key"], found["Size"], found["LastModified"]

    def _read(self, bucket: str, key: str) -> bytes | None:
        try:
            return self._client.get_object(Bucket=bucket, Key=key)["Body"].read()
        except ClientError as error:
            # Deleted since it was listed.
            if error_code(error) == "NoSuchKey":
                return None
            raise


def _steps(job_prefix: str, sizes: Mapping[str, int]) -> Iterator[_Step]:
    for key in sizes:
        if match := _MANIFEST_KEY.fullmatch(key.removeprefix(job_prefix)):
            yield _Step(int(match["step"]), int(match["attempt"]), key.removesuffix(MANIFEST_OBJECT))


def _is_complete(manifest: bytes, prefix: str, sizes: Mapping[str, int]) -> bool:
    try:
        document = json.loads(manifest)
        if document["format"] != MANIFEST_FORMAT:
            return False
        return all(sizes.get(prefix + each["key"]) == int(each["size"]) for each in document["objects"])
    except (ValueError, KeyError, TypeError):
        # An invalid manifest: the checkpoint is not complete.
        return False
