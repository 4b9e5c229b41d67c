"""Look up the digests and platforms of the images of a revision, so that every attempt runs the same code."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from relaunch.core.revisions.images import FoundImage, ImagePin, describe_pin, plan_pins
from relaunch.core.revisions.revision import Revision
from relaunch.ports import ImageSource, PermanentError, TransientError


@dataclass(frozen=True, slots=True)
class PinnedImages:
    """The images of the containers.

    `images` maps containers to images by digest, `platforms` to the platforms of their images. `notes` describe this
    for the timeline, and why other images are not pinned; `doubts` are the notes on images in ECR with unknown
    platforms. `problem` says why the job cannot run, empty if it can.
    """

    images: Mapping[str, str] = field(default_factory=dict)
    platforms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class WantedImage:
    """The image of the trigger of a job, which replaces the images of its repository in the revision.

    Without `found` it does not exist yet, and is pinned when it arrives.
    """

    repository: str
    tag: str
    found: FoundImage | None = None


def pin_images(revision: Revision, wanted: WantedImage | None, images: ImageSource) -> PinnedImages:
    """Look up every image in ECR.

    Raises:
        PermanentError: access to the registry of the account is denied, and an image is named by tag.
        TransientError: ECR is throttled or unreachable, and an image is named by tag.
    """
    pins, notes = plan_pins(revision, (wanted.repository, wanted.tag) if wanted else None)
    looked_up: list[tuple[ImagePin, FoundImage]] = []
    for pin in pins:
        known = wanted if pin.is_awaited else None
        if known is not None and known.found is None:
            continue
        found = known.found if known else _look_up(pin, images)
        if found is None:
            name = pin.image.at(pin.image.digest) if pin.image.digest else f"{pin.image.registry}/{pin.image}"
            return PinnedImages(problem=f"the image {name} of container {pin.container} is not in ECR")
        looked_up.append((pin, found))
    return PinnedImages(
        {pin.container: pin.image.at(it.digest) for pin, it in looked_up if it.digest and not pin.image.digest},
        {pin.container: it.platforms for pin, it in looked_up},
        (*(describe_pin(pin, it) for pin, it in looked_up), *notes),
        tuple(describe_pin(pin, it) for pin, it in looked_up if not it.platforms),
    )


def _look_up(pin: ImagePin, images: ImageSource) -> FoundImage | None:
    """Return the image, None if there is none; without a digest if that is unknown and not required."""
    account = None if pin.is_own else pin.image.account
    try:
        return images.find_image(pin.image.repository, pin.image.digest or pin.image.tag, account)
    except TransientError as error:
        if not pin.image.digest:
            raise
        return FoundImage("", unknown=str(error))
    except PermanentError as error:
        if pin.image.digest:
            return FoundImage("", unknown=str(error))
        if pin.is_own:
            raise
        # The execution role of the task may have access to an image that Relaunch may not describe.
        return FoundImage("", unknown=f"which may not be looked up in {account}")
