"""The queue `notices`: the stack's own events of changes of jobs, as EventBridge sends them to everybody."""

import json

from pydantic import ValidationError

from relaunch.adapters.messages.body import load_message
from relaunch.adapters.messages.job_change import read_detail
from relaunch.adapters.validation import describe_errors
from relaunch.ports import NoticeDependencies, PermanentError
from relaunch.usecases.send_notices import send_notices


def handle_message(body: str, deps: NoticeDependencies) -> None:
    """Say what is to be said about an event.

    Raises:
        PermanentError: the message is no event of a change of a job, or one that this release cannot read.
        NotYetError: there is more to say later.
        TransientError: it could not be said, or saved, now.
    """
    detail = load_message(body).get("detail")
    try:
        event = read_detail(json.dumps(detail))
    except ValidationError as error:
        raise PermanentError(f"the message is no event of a job: {describe_errors(error)}") from None
    send_notices(event, deps)
