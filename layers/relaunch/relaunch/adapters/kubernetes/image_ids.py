"""The image that runs by the status of its container, as a name that can be pulled again.

The form of `imageID` is that of the runtime (kubernetes/kubernetes#95968, #115199): `repository@sha256:…` with
containerd and CRI-O, the same behind `docker-pullable://` with Docker. `sha256:…` alone, or behind `docker://`, is the
digest of the image's configuration, which registries do not know (containerd/containerd#8408).
"""

import re

_PULLABLE = re.compile(r"(?:docker-pullable://)?([^\s@:/][^\s@]{0,511}@sha256:[0-9a-f]{64})")


def pullable_image(image_id: str) -> str:
    """Return the image with its digest, empty if the ID is not one that can be pulled."""
    found = _PULLABLE.fullmatch(image_id)
    return found[1] if found and "://" not in found[1] else ""
