"""Tells the tags of images from those of what belongs to an image, as its signature, which cannot be run.

Registries keep a signature, an attestation or a list of materials beside the image, under a tag made of its digest:
`sha256-<digest>.sig`, `.att` and `.sbom` (sigstore/cosign, specs/SIGNATURE_SPEC.md), without an ending where a client
lists them for a registry (OCI Distribution Specification, "Referrers Tag Schema"; Notation, actions/attest). The
configuration of a signature has the media type of an image's, so that nothing else in an event tells (sigstore/cosign
issue 913, prowler-cloud/prowler pull request 4507).
"""

import re

_REFERRER_TAG = re.compile(r"sha256-[0-9a-f]{64}(\..+)?")
_IMAGE_CONFIGURATIONS = frozenset(
    ("application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json")
)


def is_referrer_tag(tag: str) -> bool:
    """Return whether a tag is that of what belongs to another image."""
    return _REFERRER_TAG.fullmatch(tag) is not None


def is_image(media_type: str) -> bool:
    """Return whether something with a configuration of this media type may be an image that can be run.

    It is empty for the index of an image, and where ECR does not say it. Others are those of a build cache
    (`application/vnd.buildkit.cacheconfig.v0`), a chart or an artifact.
    """
    return not media_type or media_type in _IMAGE_CONFIGURATIONS
