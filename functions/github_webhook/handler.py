"""GitHub's deliveries at the function URL: verify, queue, answer. Standard library only: it starts in no time."""

import json
import os
import sys
import time

from relaunch.adapters.aws.sigv4 import AwsCallError, AwsClient
from relaunch.adapters.github.signature import NoSecretError, SecretRing
from relaunch.adapters.github.webhook_request import Answer, Request, receive

_aws = AwsClient(os.environ)


def _read_secret(stage: str) -> str | None:
    secret_id = os.environ.get("RELAUNCH_WEBHOOK_SECRET_ARN")
    return _aws.read_secret(secret_id, stage) if secret_id else None


def _enqueue(message: str) -> str:
    return _aws.send_message(os.environ.get("RELAUNCH_INTAKE_QUEUE_URL", ""), message)


_secrets = SecretRing(_read_secret, time.time)


def handle(event: dict[str, object], _context: object) -> dict[str, object]:
    """Answer one request; 503 when nothing can be verified or queued, so that GitHub records a failed delivery."""
    request = Request(event)
    received_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    try:
        answer = receive(request, _secrets.has_signed, _enqueue, received_at)
    except (AwsCallError, NoSecretError) as error:
        answer = Answer(503, "not accepted, deliver again later", str(error))
    line = {"level": "ERROR" if answer.status == 503 else "INFO", "service": "github_webhook", "timestamp": received_at}
    facts = {"decision": answer.text, "reason": answer.detail, "status": answer.status, "github_event": request.event}
    sys.stdout.write(json.dumps({**line, **facts, "delivery": request.delivery}) + "\n")
    return answer.to_response()
