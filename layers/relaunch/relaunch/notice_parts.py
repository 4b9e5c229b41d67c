"""Creates what send_notices needs besides what every function has."""

from collections.abc import Callable, Mapping
from typing import Any

from relaunch.adapters.aws.receiver_parameters import SsmReceivers
from relaunch.ports import Clock, DecisionLog
from relaunch.setting_values import split

_PATH = "RELAUNCH_NOTICES_PATH"


def notice_parts(
    environment: Mapping[str, str], client: Callable[[str], Any], clock: Clock, log: DecisionLog
) -> dict[str, Any]:
    """Return the ports of sending notices, none in a function that sends none."""
    path = environment.get(_PATH, "")
    if not path:
        return {}
    # Imported here because other functions do not need them.
    from relaunch.adapters.notices.receivers import ReceiverMaker, StoredReceivers  # noqa: PLC0415

    maker = ReceiverMaker(
        split(environment.get("RELAUNCH_NOTICE_HOSTS", "")),
        split(environment.get("RELAUNCH_NOTICE_TOPIC_ARNS", "")),
        client("sns"),
        clock,
    )
    return {"receivers": StoredReceivers(SsmReceivers(client("ssm"), path), maker, clock, log)}
