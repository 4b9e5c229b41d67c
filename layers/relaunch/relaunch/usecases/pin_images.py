"""Resolve the images of a revision to their digests, so that every attempt of a job runs the same code."""

from collections.abc import Mapping
from dataclasses import dataclass

from relaunch.core.image_pins import ImagePin, describe_pin, plan_pins
from relaunch.core.revision import Revision
from relaunch.ports import ImageSource, PermanentError

_DIGEST = "sha256:"


@dataclass(frozen=True, slots=True)
class PinnedImages:
    """What the containers are to run.

    `images` maps containers to images by digest; `notes` say it in words for the job's timeline, and of the others why
    they are left as they are. `problem` says why the job cannot run at all, empty when it can.
    """

    images: Mapping[str, str]
    notes: tuple[str, ...]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class WantedImage:
    """The image that a job's trigger is about: it is run wherever the revision names an image of its repository.

    `digest` is set when the event told it. With `is_awaited` the image is not there yet, and is pinned when it arrives.
    """

    repository: str
    tag: str
    digest: str = ""
    is_awaited: bool = False


def pin_images(revision: Revision, wanted: WantedImage | None, images: ImageSource) -> PinnedImages:
    """Look up the digest of every image that ECR has under a tag.

    Raises:
        PermanentError: the account's own registry may not be read.
        TransientError: ECR is throttled or unreachable.
    """
    pins, notes = plan_pins(revision, (wanted.repository, wanted.tag) if wanted else None)
    pinned: dict[str, str] = {}
    said: list[str] = []
    for pin in pins:
        known = wanted if pin.is_awaited else None
        if known is not None and known.is_awaited:
            continue
        found = (known.digest if known else "") or _look_up(pin, images)
        if found is None:
            problem = f"the image {pin.image.registry}/{pin.image} of container {pin.container} is not in ECR"
            return PinnedImages({}, (), problem)
        if found.startswith(_DIGEST):
            pinned[pin.container] = pin.image.at(found)
            said.append(describe_pin(pin, found))
        else:
            said.append(found)
    return PinnedImages(pinned, (*said, *notes))


def _look_up(pin: ImagePin, images: ImageSource) -> str | None:
    """Return the digest, None when there is no such image, or in words why it cannot be told."""
    account = None if pin.is_own else pin.image.account
    try:
        return images.digest(pin.image.repository, pin.image.tag, account)
    except PermanentError:
        if pin.is_own:
            raise
        # The task's execution role may be allowed to pull what Relaunch may not look at.
        return f"{pin.container} keeps {pin.image.registry}/{pin.image}, which may not be looked up in {account}"
