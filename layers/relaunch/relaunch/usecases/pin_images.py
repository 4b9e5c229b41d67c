"""Look up the images of a revision: their digests, so that every attempt runs the same code, and what they are for."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from relaunch.core.revisions.images import FoundImage, ImagePin, describe_pin, plan_pins
from relaunch.core.revisions.revision import Revision
from relaunch.ports import ImageSource, PermanentError, TransientError


@dataclass(frozen=True, slots=True)
class PinnedImages:
    """What the containers are to run.

    `images` maps containers to images by digest, `platforms` to those that their images are for. `notes` say it in
    words for the job's timeline, and of the others why they are left as they are; `doubts` are the notes on images in
    ECR whose platforms are not known. `problem` says why the job cannot run at all, empty when it can.
    """

    images: Mapping[str, str] = field(default_factory=dict)
    platforms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class WantedImage:
    """The image that a job's trigger is about: it is run wherever the revision names an image of its repository.

    Without `found` it is not there yet, and is pinned when it arrives.
    """

    repository: str
    tag: str
    found: FoundImage | None = None


def pin_images(revision: Revision, wanted: WantedImage | None, images: ImageSource) -> PinnedImages:
    """Look up every image that is in ECR.

    Raises:
        PermanentError: the account's own registry may not be read, of which an image's tag can move.
        TransientError: ECR is throttled or unreachable, and an image's tag can move.
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
    """Return the image, None when there is none; without a digest where that cannot be told and need not be."""
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
        # The task's execution role may be allowed to pull what Relaunch may not look at.
        return FoundImage("", unknown=f"which may not be looked up in {account}")
