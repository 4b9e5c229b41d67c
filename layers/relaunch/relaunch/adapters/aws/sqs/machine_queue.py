"""The machines queue, whose messages make request_machine call CreateFleet for a machine."""

from relaunch.adapters.messages.body import load_message
from relaunch.ports import PermanentError


def parse_machine_request(body: str) -> str:
    """Return the ID of the machine in a message.

    Raises:
        PermanentError: the message has no machine ID.
    """
    machine_id = load_message(body).get("machine_id")
    if not isinstance(machine_id, str) or not machine_id:
        raise PermanentError("the message names no machine_id")
    return machine_id
