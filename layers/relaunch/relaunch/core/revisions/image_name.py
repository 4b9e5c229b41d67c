"""Names of container images, with the registry that runtimes take where a name has none.

Source: the grammar of "Image name" (docker tag, Docker Docs); containerd and the kubelet read names by the same.
"""

import re

from relaunch.core.records import dataclass

DOCKER_HUB = "docker.io"
_HUB_NAMES = frozenset({DOCKER_HUB, "index.docker.io"})
_OFFICIAL = "library"
_MAX_LENGTH = 512

_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_REGISTRY = rf"(?:{_HOST}(?:\.{_HOST})*)(?::[0-9]+)?"
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"sha256:[0-9a-f]{64}"


@dataclass(frozen=True, slots=True)
class ImageName:
    """The parts of a name; `tag` and `digest` are empty where it has none."""

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    @property
    def without_tag(self) -> str:
        """Return the registry and the repository, `docker.io/library/python`."""
        return f"{self.registry}/{self.repository}"

    def at(self, digest: str) -> str:
        """Return the name with a digest instead of what it has."""
        return f"{self.without_tag}@{digest}"


def parse_image_name(name: str) -> ImageName | None:
    """Parse a name; None if runtimes take it for none, such as one with `..` or with capitals in its repository."""
    if len(name) > _MAX_LENGTH:
        return None
    rest, at, digest = name.partition("@")
    _, colon, tag = rest.rpartition("/")[2].partition(":")
    path = rest.removesuffix(f"{colon}{tag}")
    registry, repository = _split_registry(path)
    is_valid = (
        (not at or re.fullmatch(_DIGEST, digest) is not None)
        and (not colon or re.fullmatch(_TAG, tag) is not None)
        and re.fullmatch(_REGISTRY, registry) is not None
        and all(re.fullmatch(_COMPONENT, each) for each in repository.split("/"))
    )
    return ImageName(registry, repository, tag, digest) if is_valid else None


def _split_registry(path: str) -> tuple[str, str]:
    """Return registry and repository: the first part is a registry if it looks like a host."""
    first, slash, rest = path.partition("/")
    if not slash or not ("." in first or ":" in first or first == "localhost"):
        return DOCKER_HUB, path if slash else f"{_OFFICIAL}/{path}"
    registry = first.lower()
    if registry not in _HUB_NAMES:
        return registry, rest
    return DOCKER_HUB, rest if "/" in rest else f"{_OFFICIAL}/{rest}"
