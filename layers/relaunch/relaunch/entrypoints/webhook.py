"""The function URL for GitHub deliveries. Imports the standard library only, for short cold starts."""

import json
from collections.abc import Callable, Sequence

from relaunch.adapters.aws.sigv4 import AwsCallError
from relaunch.adapters.github.origin_header import HEADER, has_origin_secret
from relaunch.adapters.github.signature import NoSecretError, SecretRing, SecretUnavailableError
from relaunch.adapters.github.webhook_request import Answer, Request, receive
from relaunch.adapters.github.webhook_secrets import MalformedSecretError


def handle_request(
    event: dict[str, object],
    secrets: SecretRing,
    enqueue: Callable[[str], object],
    write_line: Callable[[str], object],
    received_at: str,
    origin_secrets: Sequence[bytes] = (),
) -> dict[str, object]:
    """Return the response to a request; 503 if it cannot be verified or queued, which GitHub records as failed.

    With `origin_secrets` a request must come by the distribution in front of the webhook.
    """
    request = Request(event)
    try:
        if has_origin_secret(request.headers, origin_secrets):
            answer = receive(request, secrets, enqueue, received_at)
        else:
            answer = Answer(403, "not here", f"{HEADER} is missing or wrong: sent past the distribution")
    except (AwsCallError, NoSecretError, SecretUnavailableError, MalformedSecretError) as error:
        answer = Answer(503, "not accepted, deliver again later", str(error))
    line = {"level": "ERROR" if answer.status == 503 else "INFO", "service": "github_webhook", "timestamp": received_at}
    facts = {"decision": answer.text, "reason": answer.detail, "status": answer.status, "github_event": request.event}
    origin = {"scope": request.scope, "delivery": request.delivery}
    write_line(json.dumps({**line, **facts, **origin}) + "\n")
    return answer.to_response()
