"""Images in ECR: their digests and platforms.

A multi-platform image is an index with the platforms of its manifests; the platform of a single-platform image is in
its configuration, a separate blob (OCI Image Format Specification; Docker Image Manifest Version 2, Schema 2).
"""

import http.client
import urllib.request
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import ClientError
from pydantic_core import ValidationError

from relaunch.adapters.aws.errors import AwsError, aws_errors, error_code
from relaunch.adapters.received_type import ReceivedType
from relaunch.adapters.validation import describe_errors
from relaunch.core.records import dataclass
from relaunch.core.revisions.images import FoundImage
from relaunch.ports import PermanentError, TransientError

if TYPE_CHECKING:
    from mypy_boto3_ecr import ECRClient
    from mypy_boto3_ecr.type_defs import ImageFailureTypeDef

# ECR returns the manifest as it was pushed, if its media type is accepted. The API Reference does not list the types of
# indexes; AWS's resolver for containerd requests all four.
_MEDIA_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_TIMEOUT_SECONDS = 3
# A configuration is usually a few KB.
_MAX_BLOB_BYTES = 1024 * 1024
# Whoever pushes an image writes down its platforms, and they are stored with the job.
_MAX_PLATFORMS = 30
_MAX_NAME_LENGTH = 40
# Aliases of Go's architecture names, as in containerd (`normalizeArch` in its package platforms).
_ARCHITECTURES = {
    "x86_64": "amd64",
    "x86-64": "amd64",
    "i386": "386",
    "aarch64": "arm64",
    "armhf": "arm",
    "armel": "arm",
}
_UPSTREAM_ERRORS = frozenset({"UpstreamTooManyRequests", "UpstreamUnavailable"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Platform:
    os: str = ""
    architecture: str = ""

    @property
    def name(self) -> str | None:
        """Return `os/architecture`; None for `unknown/unknown`, BuildKit's platform of attestations."""
        system = self.os.lower()
        architecture = self.architecture.lower()
        if {"", "unknown"} & {system, architecture}:
            return None
        return f"{system}/{_ARCHITECTURES.get(architecture, architecture)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Descriptor:
    digest: str
    platform: _Platform | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Manifest:
    """An index has `manifests`, the manifest of an image has `config`."""

    manifests: list[_Descriptor] | None = None
    config: _Descriptor | None = None


_PLATFORM = ReceivedType(_Platform)
_MANIFEST = ReceivedType(_Manifest)


class _UnknownPlatformsError(Exception):
    """The platforms cannot be determined; the message is the reason."""


def fetch_blob(url: str) -> bytes:
    """Read at most one byte more than the maximum size from a URL.

    Raises:
        OSError: connection error, time-out or HTTP error.
        http.client.HTTPException: invalid response.
    """
    with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310 - the caller checks the scheme
        blob: bytes = answer.read(_MAX_BLOB_BYTES + 1)
        return blob


class EcrImages:
    """Implements ImageSource for a region; the registry is the account's own unless another account is given.

    `fetch` reads a blob from its URL.
    """

    def __init__(self, client: "ECRClient", fetch: Callable[[str], bytes] = fetch_blob) -> None:
        self._client = client
        self._fetch = fetch

    def find_image(self, repository: str, reference: str, account: str | None = None) -> FoundImage | None:
        location: dict[str, Any] = {"repositoryName": repository, **({"registryId": account} if account else {})}
        is_digest = reference.startswith("sha256:")
        asked: Any = {"imageDigest": reference} if is_digest else {"imageTag": reference}
        doing = f"looking for image {repository}{'@' if is_digest else ':'}{reference}"
        with aws_errors(doing):
            try:
                answer = self._client.batch_get_image(
                    **location, imageIds=[asked], acceptedMediaTypes=list(_MEDIA_TYPES)
                )
            except ClientError as error:
                # The build may not have created the repository yet.
                if error_code(error) == "RepositoryNotFoundException":
                    return None
                raise
        if not answer["images"]:
            _raise_other_failures(answer["failures"], doing)
            return None
        image = answer["images"][0]
        digest = image["imageId"]["imageDigest"]
        try:
            return FoundImage(digest, self._read_platforms(image["imageManifest"], location))
        except _UnknownPlatformsError as error:
            return FoundImage(digest, unknown=str(error))

    def _read_platforms(self, text: str, location: dict[str, Any]) -> tuple[str, ...]:
        manifest = _read(_MANIFEST, text, "its manifest")
        if manifest.manifests is not None:
            platforms = [each.platform for each in manifest.manifests]
        elif manifest.config is not None:
            platforms = [_read(_PLATFORM, self._load_blob(manifest.config.digest, location), "its configuration")]
        else:
            raise _UnknownPlatformsError("its manifest is neither an index nor that of an image")
        names = {each.name for each in platforms if each is not None and each.name is not None}
        # An index may leave out the platform of a manifest, which can then be any.
        if not names or None in platforms:
            raise _UnknownPlatformsError("it names none")
        if len(names) > _MAX_PLATFORMS or max(map(len, names)) > _MAX_NAME_LENGTH:
            raise _UnknownPlatformsError(f"it names more than {_MAX_PLATFORMS}, or longer names than platforms have")
        return tuple(sorted(names))

    def _load_blob(self, digest: str, location: dict[str, Any]) -> bytes:
        """Load a blob from the presigned S3 URL that ECR returns."""
        try:
            url = self._client.get_download_url_for_layer(**location, layerDigest=digest)["downloadUrl"]
            if not url.startswith("https://"):
                raise _UnknownPlatformsError("ECR gives no HTTPS URL of its configuration")
            blob = self._fetch(url)
        except (*AwsError, OSError, http.client.HTTPException) as error:
            raise _UnknownPlatformsError(f"its configuration cannot be loaded: {error}") from error
        if len(blob) > _MAX_BLOB_BYTES:
            raise _UnknownPlatformsError(f"its configuration is larger than {_MAX_BLOB_BYTES:,} bytes")
        return blob


_Record = TypeVar("_Record")


def _read(kind: ReceivedType[_Record], text: str | bytes, what: str) -> _Record:
    try:
        return kind.read_json(text)
    except ValidationError as error:
        raise _UnknownPlatformsError(f"{what} cannot be read: {describe_errors(error)}") from error


def _raise_other_failures(failures: Sequence["ImageFailureTypeDef"], doing: str) -> None:
    """Raise an error unless the failure is that there is no such image.

    Raises:
        TransientError: the upstream registry of a pull-through cache is unavailable.
        PermanentError: any other failure.
    """
    for failure in failures:
        code = failure.get("failureCode", "")
        if code != "ImageNotFound":
            kind = TransientError if code in _UPSTREAM_ERRORS else PermanentError
            raise kind(f"{doing}: {code}: {failure.get('failureReason', '')}")
