"""Reads, writes and lists objects under one URI: `s3://bucket/prefix/`, or `file:///folder/` to try without S3.

S3 calls: PutObject, GetObject, ListObjectsV2 (docs.aws.amazon.com/AmazonS3/latest/API). Region, credentials and
AWS_ENDPOINT_URL or AWS_ENDPOINT_URL_S3 come from the environment, as boto3 reads them. `oss://bucket/prefix/` is
Alibaba Cloud OSS, which has these calls at https://s3.oss-REGION.aliyuncs.com, with keys of its own.
"""

import errno
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class ObjectStore(Protocol):
    """Objects under `uri`, which ends with a slash; keys are relative to it."""

    uri: str

    def put(self, key: str, body: bytes) -> None:
        """Store an object whole or not at all."""

    def get(self, key: str) -> bytes:
        """Read an object; raises FileNotFoundError with the object's URI as `filename` when there is none."""

    def sizes(self) -> dict[str, int]:
        """List every object's key with its size in bytes."""


def open_store(uri: str) -> ObjectStore:
    """Open the store that `uri` names.

    Raises:
        ValueError: the URI is neither `s3://bucket/...`, `oss://bucket/...` nor `file:///...`.
    """
    parts = urlsplit(uri)
    folder = uri.rstrip("/") + "/"
    if parts.scheme in {"s3", "oss"} and parts.netloc:
        # Not parts.path: S3 keys may contain `?` and `#`.
        return S3Store(folder, parts.netloc, folder.removeprefix(f"{parts.scheme}://{parts.netloc}/"))
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
        return FileStore(folder, Path(unquote(parts.path)))
    raise ValueError(f"{uri!r} is neither s3://bucket/prefix/, oss://bucket/prefix/ nor file:///folder/")


class FileStore:
    """A folder; an object appears under its name only when it is whole, as in S3."""

    def __init__(self, uri: str, root: Path) -> None:
        self.uri = uri
        self._root = root

    def put(self, key: str, body: bytes) -> None:
        path = self._root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        partial.write_bytes(body)
        partial.replace(path)

    def get(self, key: str) -> bytes:
        try:
            return (self._root / key).read_bytes()
        except FileNotFoundError as error:
            raise missing(self.uri + key) from error

    def sizes(self) -> dict[str, int]:
        files = (path for path in self._root.rglob("*") if path.is_file())
        return {path.relative_to(self._root).as_posix(): path.stat().st_size for path in files}


class S3Store:
    """A prefix of a bucket. One PutObject takes up to 5 GiB; above that use boto3's `upload_fileobj`."""

    def __init__(self, uri: str, bucket: str, prefix: str) -> None:
        self.uri = uri
        self._bucket = bucket
        self._prefix = prefix
        self._client = s3_client(is_oss=uri.startswith("oss:"))

    def put(self, key: str, body: bytes) -> None:
        self._client.put_object(Bucket=self._bucket, Key=self._prefix + key, Body=body)

    def get(self, key: str) -> bytes:
        try:
            return self._client.get_object(Bucket=self._bucket, Key=self._prefix + key)["Body"].read()
        except self._client.exceptions.NoSuchKey as error:
            raise missing(self.uri + key) from error

    def sizes(self) -> dict[str, int]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._prefix)
        objects = (found for page in pages for found in page.get("Contents", []))
        return {found["Key"].removeprefix(self._prefix): found["Size"] for found in objects}


@cache
def s3_client(*, is_oss: bool = False) -> "S3Client":
    """Make the client once; its time-outs are short because everything must be saved within the stop time-out."""
    import boto3  # noqa: PLC0415 - a quarter of a second that training without S3 need not spend
    from botocore.config import Config  # noqa: PLC0415 - as above

    # Other servers than AWS seldom resolve bucket.host names; OSS takes no others.
    elsewhere = "AWS_ENDPOINT_URL" in os.environ or "AWS_ENDPOINT_URL_S3" in os.environ
    style: Literal["virtual", "path", "auto"] = "path" if elsewhere else "auto"
    if is_oss:
        style = "virtual"
    # OSS does not have the checksums that botocore sends otherwise.
    checksums: Literal["when_required", "when_supported"] = "when_required" if is_oss else "when_supported"
    return boto3.client(
        "s3",
        config=Config(
            connect_timeout=5,
            read_timeout=20,
            retries={"mode": "standard", "total_max_attempts": 4},
            s3={"addressing_style": style},
            request_checksum_calculation=checksums,
            response_checksum_validation=checksums,
        ),
    )


def missing(uri: str) -> FileNotFoundError:
    """Make the error of both stores for an object that is not there."""
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), uri)
