"""The revisions of a task definition: the newest one, and another one where the file says something else."""

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError


def newest_revision(family: str, ecs: Any) -> Mapping[str, Any] | None:
    """Return the newest ACTIVE revision of a family, None if there is none.

    Raises:
        ClientError, BotoCoreError: the call failed.
    """
    try:
        found = ecs.describe_task_definition(taskDefinition=family)["taskDefinition"]
    except ClientError as error:
        # ECS has no code of its own for it: "Unable to describe task definition."
        if error.response["Error"]["Code"] == "ClientException":
            return None
        raise
    # Of a family without an ACTIVE revision the newest INACTIVE one may be answered.
    return found if found.get("status", "ACTIVE") == "ACTIVE" else None


def register(definition: Mapping[str, Any], ecs: Any) -> str:
    """Register a revision; return `family:revision`.

    A call that is not answered may have registered one; another run finds it.

    Raises:
        ClientError, BotoCoreError: the call failed.
    """
    found = ecs.register_task_definition(**definition)["taskDefinition"]
    return f"{found['family']}:{found['revision']}"
