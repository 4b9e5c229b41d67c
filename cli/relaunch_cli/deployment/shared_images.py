"""Images that another account shares, which functions may not launch."""

from collections.abc import Mapping
from typing import Any

COPY_IMAGE = (
    "functions launch images of this account and of Amazon alone; "
    "`aws ec2 copy-image --source-image-id {} --source-region REGION --name NAME` makes one of this account"
)
"""What to do about one, with its ID to be filled in."""


def is_shared(image: Mapping[str, Any], account_id: str) -> bool:
    """Return whether an image, as DescribeImages answers, is of another account: functions may not launch it.

    The template allows `ec2:Owner` amazon and the account (template.yaml, RequestMachinePolicy).
    """
    return image.get("ImageOwnerAlias") != "amazon" and image.get("OwnerId") != account_id
