"""Container images in ECR: by digest, so that attempt 2 runs the code of attempt 1; and what machines they are for.

A tag can move between two attempts. ECS itself resolves tags for services only; a standalone task pulls whatever the
tag names when it starts ("Amazon ECS service deployments", container image resolution).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from relaunch.core.revisions.revision import Revision

_ECR_IMAGE = re.compile(
    r"(?P<registry>(?P<account>[0-9]{12})\.dkr[.-]ecr(?:-fips)?\.(?P<region>[a-z0-9-]+)\.[a-z0-9.-]+)/"
    r"(?P<repository>[a-z0-9][a-z0-9._/-]*)(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]*))?(?:@(?P<digest>sha256:[0-9a-f]+))?"
)
_ECS_ARN = re.compile(r"arn:[^:]+:ecs:(?P<region>[^:]+):(?P<account>[0-9]+):.*")
_SHOWN_DIGITS = 12


@dataclass(frozen=True, slots=True)
class EcrImage:
    """An image in ECR as a container definition names it; `tag` is `latest` where none is named, as for docker."""

    registry: str
    account: str
    region: str
    repository: str
    tag: str = "latest"
    digest: str = ""

    def at(self, digest: str) -> str:
        """Return the image's name by digest, in the one form ECS documents: `registry/repository@sha256:…`."""
        return f"{self.registry}/{self.repository}@{digest}"

    def __str__(self) -> str:
        """Write `repository:tag`, for people."""
        return f"{self.repository}:{self.tag}"


@dataclass(frozen=True, slots=True)
class ImagePin:
    """An image that is to be looked up for a container, by tag or by the digest that the container names.

    `is_own` tells that it is in the account's own registry; `is_awaited` that it is the image a job waits for.
    """

    container: str
    image: EcrImage
    is_own: bool
    is_awaited: bool = False


@dataclass(frozen=True, slots=True)
class FoundImage:
    """An image as ECR has it: its digest, and the platforms it is for (`linux/arm64`).

    Either is empty where ECR does not tell it; `unknown` says why.
    """

    digest: str
    platforms: tuple[str, ...] = ()
    unknown: str = ""


def parse_ecr_image(name: str) -> EcrImage | None:
    """Read the name of an image; None when it is not in a private registry of ECR."""
    match = _ECR_IMAGE.fullmatch(name)
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
    """Say which images of a revision to look up, and in words why the others are left as they are.

    `wanted` (repository, tag) is what the job's trigger is about: it replaces the image of every container that runs
    an image of this repository of the account's own registry, also one that is named by digest.
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


def _plan_pin(container: str, name: str, revision: Revision, wanted: tuple[str, str] | None) -> ImagePin | str:
    image, home = parse_ecr_image(name), _ECS_ARN.fullmatch(revision.arn)
    if image is None:
        return f"{container} keeps {name}, which is not in ECR"
    if home is not None and image.region != home["region"]:
        return f"{container} keeps {name}, which is in another region"
    is_own = home is None or image.account == home["account"]
    if wanted is not None and is_own and image.repository == wanted[0]:
        return ImagePin(container, replace(image, tag=wanted[1], digest=""), is_own, is_awaited=True)
    return ImagePin(container, image, is_own)


def describe_pin(pin: ImagePin, found: FoundImage) -> str:
    """Say for people what a container runs, and what machines that is for."""
    if not found.digest and not pin.image.digest:
        return f"{pin.container} keeps {pin.image.registry}/{pin.image}, {found.unknown}"
    if pin.image.digest:
        named = f"{pin.container} names {pin.image.repository} by digest"
    else:
        named = f"{pin.container} runs {pin.image} ({found.digest[: len('sha256:') + _SHOWN_DIGITS]})"
    if not found.platforms:
        return f"{named}, whose platform is not known: {found.unknown}"
    return f"{named} for {' and '.join(found.platforms)}"


def with_platforms(revision: Revision, platforms: Mapping[str, tuple[str, ...]]) -> Revision:
    """Return the revision with what is known of the images that these containers run."""
    containers = (replace(each, platforms=platforms.get(each.name, each.platforms)) for each in revision.containers)
    return replace(revision, containers=tuple(containers))
