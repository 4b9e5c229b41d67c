"""The first refresh of prices, types and quotas, whose schedule begins an hour after the deployment."""

from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from relaunch_cli.deployment.findings import Stack

_FUNCTION = "RefreshOfferingsFunctionName"


def start_first_refresh(stack: Stack | None, functions: Any, tell: Callable[[str], None]) -> None:
    """Start the refresh of a new application; its schedule makes up for a call that fails.

    Until it has read them, on-demand prices are those of us-east-1, and quotas are not known.
    """
    name = stack.outputs.get(_FUNCTION) if stack is not None else None
    if name is None:
        return
    try:
        functions.invoke(FunctionName=name, InvocationType="Event")
    except (ClientError, BotoCoreError) as error:
        tell(f"prices and quotas are read within an hour; {name} was not started now ({error})")
