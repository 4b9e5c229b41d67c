"""Container images in ECR: their digests and platforms.

Images are pinned by digest so that all attempts of a job run the same code: a tag can move between two attempts. ECS
resolves tags to digests for services only; a standalone task pulls the image that the tag refers to at its start
("Amazon ECS service deployments", container image resolution).
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from relaunch.core.records import dataclass
from relaunch.core.revisions.revision import Revision

_ECR_IMAGE = (
    r"(?P<registry>(?P<account>[0-9]{12})\.dkr[.-]ecr(?:-fips)?\.(?P<region>[a-z0-9-]+)\.[a-z0-9.-]+)/"
    r"(?P<repository>[a-z0-9][a-z0-9._/-]*)(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]*))?(?:@(?P<digest>sha256:[0-9a-f]+))?"
)
_ECS_ARN = r"arn:[^:]+:ecs:(?P<region>[^:]+):(?P<account>[0-9]+):.*"
_DIGEST_PREFIX_LENGTH = 12
NOT_IN_ECR = "is not in ECR"
"""How the reason of a job ends, or begins to, whose image is missing."""


@dataclass(frozen=True, slots=True)
class EcrImage:
    """An image in ECR as in a container definition; the default of `tag` is Docker's."""

    registry: str
    account: str
    region: str
    repository: str
    tag: str = "latest"
    digest: str = ""

    def at(self, digest: str) -> str:
        """Return the image URI with a digest, as documented for ECS: `registry/repository@sha256:…`."""
        return f"{self.registry}/{self.repository}@{digest}"

    def __str__(self) -> str:
        """Return `repository:tag`."""
        return f"{self.repository}:{self.tag}"


@dataclass(frozen=True, slots=True)
class ImagePin:
    """An image of a container to be resolved, by its tag or its digest.

    `is_own` is whether the registry is that of the account, `is_awaited` whether it is the image of the job's trigger.
    """

    container: str
    image: EcrImage
    is_own: bool
    is_awaited: bool = False


@dataclass(frozen=True, slots=True)
class FoundImage:
    """The digest of an image in ECR and its platforms (`linux/arm64`).

    Either is empty if it cannot be determined; `unknown` is the reason.
    """

    digest: str
    platforms: tuple[str, ...] = ()
    unknown: str = ""


def parse_ecr_image(name: str) -> EcrImage | None:
    """Parse an image URI; return None if it is not in a private ECR registry."""
    match = re.fullmatch(_ECR_IMAGE, name)
    if match is None:
        return None
    parts = match.groupdict()
    return EcrImage(
        parts["registry"],
        parts["account"],
        parts["region"],
        parts["repository"],
        parts["tag"] or "latest",
        parts["digest"] or "",
    )


def plan_pins(
    revision: Revision, wanted: tuple[str, str] | None = None
) -> tuple[tuple[ImagePin, ...], tuple[str, ...]]:
    """Return the images of a revision to resolve, and for each other image a note why it is left unchanged.

    `wanted` is the repository and tag of the job's trigger: it replaces the image of every container with an image of
    this repository of the account's own registry, also if that has a digest.
    """
    pins: list[ImagePin] = []
    notes: list[str] = []
    for container in revision.containers:
        planned = _plan_pin(container.name, container.image, revision, wanted)
        if isinstance(planned, ImagePin):
            pins.append(planned)
        else:
            notes.append(planned)
    if wanted is not None and not any(pin.is_awaited for pin in pins):
        notes.append(f"no container runs an image of {wanted[0]}: {wanted[0]}:{wanted[1]} is only waited for")
    return tuple(pins), tuple(notes)


def held_images(revision: Revision, images: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Return repository and digest of the images in the account's own registry that containers run by digest.

    `images` are those that replace the images of containers of the revision.
    """
    containers = tuple(replace(each, image=images.get(each.name, each.image)) for each in revision.containers)
    pins, _ = plan_pins(replace(revision, containers=containers))
    return frozenset((each.image.repository, each.image.digest) for each in pins if each.is_own and each.image.digest)


def _plan_pin(container: str, name: str, revision: Revision, wanted: tuple[str, str] | None) -> ImagePin | str:
    image = parse_ecr_image(name)
    arn = re.fullmatch(_ECS_ARN, revision.arn)
    if image is None:
        return f"{container} keeps {name}, which is not in ECR"
    if arn is not None and image.region != arn["region"]:
        return f"{container} keeps {name}, which is in another region"
    is_own = arn is None or image.account == arn["account"]
    if wanted is not None and is_own and image.repository == wanted[0]:
        return ImagePin(container, replace(image, tag=wanted[1], digest=""), is_own, is_awaited=True)
    return ImagePin(container, image, is_own)


def describe_pin(pin: ImagePin, found: FoundImage) -> str:
    """Return a sentence on the image of a container and its platforms."""
    if not found.digest and not pin.image.digest:
        return f"{pin.container} keeps {pin.image.registry}/{pin.image}, {found.unknown}"
    if pin.image.digest:
        text = f"{pin.container} names {pin.image.repository} by digest"
    else:
        text = f"{pin.container} runs {pin.image} ({found.digest[: len('sha256:') + _DIGEST_PREFIX_LENGTH]})"
    if not found.platforms:
        return f"{text}, whose platform is not known: {found.unknown}"
    return f"{text} for {' and '.join(found.platforms)}"


def with_platforms(revision: Revision, platforms: Mapping[str, tuple[str, ...]]) -> Revision:
    """Return a copy of the revision with the platforms of the containers' images."""
    containers = (replace(each, platforms=platforms.get(each.name, each.platforms)) for each in revision.containers)
    return replace(revision, containers=tuple(containers))
