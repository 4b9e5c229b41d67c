"""Who asks: SelfSubjectReview of authentication.k8s.io/v1, which every user may create, and nobody can read again."""

from typing import Any

from relaunch_local.kubernetes.errors import ApiError
from relaunch_local.kubernetes.role import Access

PATH = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ACCESS = Access("create", "authentication.k8s.io", "selfsubjectreviews")
_SINCE = 28
_TYPE = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


def review_self(method: str, sent: Any, user: str, minor: int) -> dict[str, Any]:
    """Return who asks.

    Raises:
        ApiError: 404, the server is older than 1.28; 405, it is no creation; 400, another object was sent.
    """
    if minor < _SINCE:
        raise ApiError(404, "NotFound", "the server could not find the requested resource")
    if method != "POST":
        raise ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    if {key: sent.get(key) for key in _TYPE} != _TYPE:
        raise ApiError(400, "BadRequest", f"the object provided is unrecognized: must be of type {_TYPE['kind']}")
    info = {"username": user, "groups": ["system:authenticated"]}
    return {**_TYPE, "metadata": {"creationTimestamp": None}, "status": {"userInfo": info}}
