"""Images in ECR: their digests, and the platforms they are for.

An image for several platforms is an index that names them; one for a single platform is a manifest, and its
configuration, a blob of its own, names it (OCI Image Format Specification; Docker Image Manifest Version 2, Schema 2).
"""

import http.client
import urllib.request
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import ClientError
from pydantic import BaseModel, ValidationError

from relaunch.adapters.aws.errors import AwsError, aws_errors, error_code
from relaunch.adapters.validation import describe_errors
from relaunch.core.revisions.images import FoundImage
from relaunch.ports import PermanentError, TransientError

if TYPE_CHECKING:
    from mypy_boto3_ecr import ECRClient
    from mypy_boto3_ecr.type_defs import ImageFailureTypeDef

# ECR answers what is accepted as it was pushed. Its API Reference leaves the types of indexes out; AWS's own client for
# containerd asks for all four.
_MEDIA_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_FETCH_SECONDS = 3
# A configuration has a few KB, of which most is the history of a long Dockerfile.
_LARGEST_BLOB_BYTES = 1024 * 1024
# Names from before Go's, which containerd and Docker take for the same (`normalizeArch` in containerd's platforms).
_ARCHITECTURES = {
    "x86_64": "amd64",
    "x86-64": "amd64",
    "i386": "386",
    "aarch64": "arm64",
    "armhf": "arm",
    "armel": "arm",
}
_UPSTREAM_TROUBLE = frozenset({"UpstreamTooManyRequests", "UpstreamUnavailable"})


class _Platform(BaseModel):
    os: str = ""
    architecture: str = ""

    @property
    def name(self) -> str | None:
        """None for what runs nowhere: BuildKit lists attestations as `unknown/unknown`."""
        system, architecture = self.os.lower(), self.architecture.lower()
        if {"", "unknown"} & {system, architecture}:
            return None
        return f"{system}/{_ARCHITECTURES.get(architecture, architecture)}"


class _Descriptor(BaseModel):
    digest: str
    platform: _Platform | None = None


class _Manifest(BaseModel):
    """An index has `manifests`, the manifest of one image a `config`."""

    manifests: list[_Descriptor] | None = None
    config: _Descriptor | None = None


class _NotToldError(Exception):
    """ECR does not tell the platforms; the message says why."""


def fetch_blob(url: str) -> bytes:
    """Read what a URL leads to, as far as one byte over what is taken.

    Raises:
        OSError: it cannot be had, or not in time.
        http.client.HTTPException: it is broken.
    """
    with urllib.request.urlopen(url, timeout=_FETCH_SECONDS) as answer:  # noqa: S310 - its caller looks at the scheme
        blob: bytes = answer.read(_LARGEST_BLOB_BYTES + 1)
        return blob


class EcrImages:
    """Implements ImageSource over the region's registries: the account's own unless another account's is named.

    `fetch` reads blobs where ECR says that they are.
    """

    def __init__(self, client: "ECRClient", fetch: Callable[[str], bytes] = fetch_blob) -> None:
        self._client = client
        self._fetch = fetch

    def find_image(self, repository: str, reference: str, account: str | None = None) -> FoundImage | None:
        place: dict[str, Any] = {"repositoryName": repository, **({"registryId": account} if account else {})}
        is_digest = reference.startswith("sha256:")
        asked: Any = {"imageDigest": reference} if is_digest else {"imageTag": reference}
        doing = f"looking for image {repository}{'@' if is_digest else ':'}{reference}"
        with aws_errors(doing):
            try:
                answer = self._client.batch_get_image(**place, imageIds=[asked], acceptedMediaTypes=list(_MEDIA_TYPES))
            except ClientError as error:
                # A build may make the repository with its first image.
                if error_code(error) == "RepositoryNotFoundException":
                    return None
                raise
        if not answer["images"]:
            _explain_absence(answer["failures"], doing)
            return None
        image = answer["images"][0]
        digest = image["imageId"]["imageDigest"]
        try:
            return FoundImage(digest, self._read_platforms(image["imageManifest"], place))
        except _NotToldError as error:
            return FoundImage(digest, unknown=str(error))

    def _read_platforms(self, text: str, place: dict[str, Any]) -> tuple[str, ...]:
        manifest = _read(_Manifest, text, "its manifest")
        if manifest.manifests is not None:
            told = [each.platform for each in manifest.manifests]
        elif manifest.config is not None:
            told = [_read(_Platform, self._load_blob(manifest.config.digest, place), "its configuration")]
        else:
            raise _NotToldError("its manifest is neither an index nor that of an image")
        names = {each.name for each in told if each is not None and each.name is not None}
        # An index need not name platforms: the one that is not named may be any.
        if not names or None in told:
            raise _NotToldError("it names none")
        return tuple(sorted(names))

    def _load_blob(self, digest: str, place: dict[str, Any]) -> bytes:
        """Load a blob: ECR keeps it in a bucket of its own, and signs the URL."""
        try:
            url = self._client.get_download_url_for_layer(**place, layerDigest=digest)["downloadUrl"]
            if not url.startswith("https://"):
                raise _NotToldError("ECR gives no HTTPS URL of its configuration")
            blob = self._fetch(url)
        except (*AwsError, OSError, http.client.HTTPException) as error:
            raise _NotToldError(f"its configuration cannot be had: {error}") from error
        if len(blob) > _LARGEST_BLOB_BYTES:
            raise _NotToldError(f"its configuration is larger than {_LARGEST_BLOB_BYTES:,} bytes")
        return blob


_Model = TypeVar("_Model", bound=BaseModel)


def _read(model: type[_Model], text: str | bytes, what: str) -> _Model:
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise _NotToldError(f"{what} cannot be read: {describe_errors(error)}") from error


def _explain_absence(failures: Sequence["ImageFailureTypeDef"], doing: str) -> None:
    """Return if there is no such image.

    Raises:
        TransientError: the registry that ECR caches did not answer.
        PermanentError: anything else.
    """
    for failure in failures:
        code = failure.get("failureCode", "")
        if code != "ImageNotFound":
            kind = TransientError if code in _UPSTREAM_TROUBLE else PermanentError
            raise kind(f"{doing}: {code}: {failure.get('failureReason', '')}")
