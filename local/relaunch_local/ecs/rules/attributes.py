"""The rules for custom attributes of container instances ("PutAttributes" and "Attribute", Amazon ECS API Reference).

The reference gives no messages: these are in ECS's style.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from relaunch_local.ecs.errors import EcsError, refuse

MAX_ATTRIBUTES = 10
"""The attributes of a request, and the custom attributes of a container instance."""

_NAME = re.compile(r"[A-Za-z0-9\-_/\\.]{1,128}")
_VALUE = re.compile(r"(?! )[A-Za-z0-9\-_.@/\\: ]{1,128}(?<! )")
_TARGET_TYPE = "container-instance"
_OF_ECS = ("ecs.", "com.amazonaws.ecs.")


def check_attributes(attributes: Sequence[Mapping[str, Any]]) -> None:
    """Raise InvalidParameterException for an invalid list of attributes."""
    refuse(not attributes, "attributes can not be empty")
    refuse(len(attributes) > MAX_ATTRIBUTES, f"attributes can have at most {MAX_ATTRIBUTES} items.")
    for attribute in attributes:
        refuse(not _NAME.fullmatch(attribute["name"]), "Invalid attribute name.")
        refuse(not _VALUE.fullmatch(attribute.get("value", "any")), "Invalid attribute value.")
        is_arn = attribute.get("targetId", "").startswith("arn:")
        refuse(
            attribute.get("targetType", _TARGET_TYPE if is_arn else "") != _TARGET_TYPE,
            f"targetType must be {_TARGET_TYPE}",
        )


def check_custom_count(names: Iterable[str]) -> None:
    """Raise AttributeLimitExceededException for more custom attributes than a container instance may have."""
    if sum(not name.startswith(_OF_ECS) for name in names) > MAX_ATTRIBUTES:
        message = f"You can apply up to {MAX_ATTRIBUTES} custom attributes for each resource."
        raise EcsError("AttributeLimitExceededException", message)
