"""Receives GitHub deliveries at the function URL. Imports the standard library only, for short cold starts."""

import os
import sys
import time

from relaunch.adapters.aws.sigv4 import AwsCallError, AwsClient
from relaunch.adapters.github.origin_header import read_secrets
from relaunch.adapters.github.signature import SecretRing, SecretUnavailableError
from relaunch.entrypoints.webhook import handle_request

_aws = AwsClient(os.environ)
_origin_secrets = read_secrets(os.environ.get("RELAUNCH_ORIGIN_SECRETS", ""))


def _read_secret(stage: str) -> tuple[str, float] | None:
    secret_id = os.environ.get("RELAUNCH_WEBHOOK_SECRET_ARN")
    try:
        return _aws.read_secret(secret_id, stage) if secret_id else None
    except AwsCallError as error:
        raise SecretUnavailableError(str(error)) from error


def _enqueue(message: str) -> str:
    return _aws.send_message(os.environ.get("RELAUNCH_INTAKE_QUEUE_URL", ""), message)


_previous_hours = float(os.environ.get("RELAUNCH_WEBHOOK_PREVIOUS_SECRET_HOURS", "12"))
_secrets = SecretRing(_read_secret, time.time, _previous_hours * 3600)


def handle(event: dict[str, object], _context: object) -> dict[str, object]:
    """Handle one request."""
    received_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return handle_request(event, _secrets, _enqueue, sys.stdout.write, received_at, _origin_secrets)
