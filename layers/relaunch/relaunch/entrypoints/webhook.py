"""The function URL: GitHub deliveries are verified, queued and answered. Standard library only, for cold starts."""

import json
from collections.abc import Callable

from relaunch.adapters.aws.sigv4 import AwsCallError
from relaunch.adapters.github.signature import NoSecretError
from relaunch.adapters.github.webhook_request import Answer, Request, receive


def handle_request(
    event: dict[str, object],
    has_signed: Callable[[bytes, bytes], bool],
    enqueue: Callable[[str], object],
    write_line: Callable[[str], object],
    received_at: str,
) -> dict[str, object]:
    """Answer one request; 503 when it cannot be verified or queued, so that GitHub records a failed delivery."""
    request = Request(event)
    try:
        answer = receive(request, has_signed, enqueue, received_at)
    except (AwsCallError, NoSecretError) as error:
        answer = Answer(503, "not accepted, deliver again later", str(error))
    line = {"level": "ERROR" if answer.status == 503 else "INFO", "service": "github_webhook", "timestamp": received_at}
    facts = {"decision": answer.text, "reason": answer.detail, "status": answer.status, "github_event": request.event}
    write_line(json.dumps({**line, **facts, "delivery": request.delivery}) + "\n")
    return answer.to_response()
