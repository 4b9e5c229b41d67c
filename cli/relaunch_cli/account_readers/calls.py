"""Calls of AWS whose failure makes a check unknown, with the permission to grant."""

import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from relaunch.adapters.aws.errors import error_code
from relaunch.core.checks import Check, unknown
from relaunch.ports import PortError
from relaunch_cli.errors import DENIED

# HeadBucket has no body to name AccessDenied (HeadBucket, Amazon S3 API Reference).
_DENIED = DENIED | {"403", "Forbidden"}
# Where the action of IAM is not the prefix of the service and the operation (Service Authorization Reference).
_PREFIXES = {"service-quotas": "servicequotas"}
_ACTIONS = {
    "HeadBucket": "s3:ListBucket",
    "ListObjectsV2": "s3:ListBucket",
    "GetBucketEncryption": "s3:GetEncryptionConfiguration",
    "GetBucketNotificationConfiguration": "s3:GetBucketNotification",
}


class UnreadError(Exception):
    """Something could not be read: why, and what to do about it."""

    def __init__(self, reason: str, to_do: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.to_do = to_do


class Clients(Protocol):
    """Makes clients of AWS's services."""

    def client(self, service: str) -> Any:
        """Return a client of the region in use."""


class AccountCalls:
    """Calls AWS, from several threads at once."""

    def __init__(self, clients: Clients) -> None:
        self._make = clients
        self._clients: dict[str, Any] = {}
        # Making clients is not thread-safe, their calls are ("Multithreading or multiprocessing with sessions", boto3).
        self._lock = threading.Lock()

    def call(self, service: str, operation: str, *missing: str, **parameters: Any) -> Any:
        """Return the answer to an operation (`describe_clusters`); None for an error code of `missing`.

        Raises:
            UnreadError: it was denied, throttled or not answered.
        """
        client = self.client(service)
        return _guard(service, missing, lambda: getattr(client, operation)(**parameters))

    def list(self, service: str, operation: str, key: str, **parameters: Any) -> list[Any]:
        """Return all items of all pages of an operation.

        Raises:
            UnreadError: as `call`.
        """
        paginator = self.client(service).get_paginator(operation)
        found = _guard(service, (), lambda: [item for page in paginator.paginate(**parameters) for item in page[key]])
        return found or []

    def client(self, service: str) -> Any:
        """Return the one client of a service."""
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._make.client(service)
            return self._clients[service]


def _guard(service: str, missing: tuple[str, ...], call: Callable[[], Any]) -> Any:
    try:
        return call()
    except ClientError as error:
        if error_code(error) in missing:
            return None
        raise _unread(service, error) from error
    except BotoCoreError as error:
        raise UnreadError(f"AWS does not answer: {str(error).splitlines()[0]}", "try again") from error


def _unread(service: str, error: ClientError) -> UnreadError:
    code = error_code(error)
    operation = error.operation_name
    action = _ACTIONS.get(operation, f"{_PREFIXES.get(service, service)}:{operation}")
    if code in _DENIED:
        return UnreadError(f"you have no permission {action}", f"grant {action} (docs/doctor.md#permissions)")
    return UnreadError(f"{action}: {code or error}", "try again")


def known(name: str, check: Callable[[], Check]) -> Check:
    """Return a check; unknown if what it needs could not be read."""
    try:
        return check()
    except UnreadError as error:
        return unknown(name, error.reason, error.to_do)
    except PortError as error:
        return _unknown(name, error)


def all_known(name: str, checks: Callable[[], Iterator[Check]]) -> list[Check]:
    """Return checks; those that were made, and one that is unknown, if what the others need could not be read."""
    made: list[Check] = []
    try:
        for check in checks():
            made.append(check)  # noqa: PERF402 - those before an error are kept
    except UnreadError as error:
        made.append(unknown(name, error.reason, error.to_do))
    except PortError as error:
        made.append(_unknown(name, error))
    return made


def _unknown(name: str, error: PortError) -> Check:
    cause = error.__cause__
    if isinstance(cause, ClientError) and error_code(cause) in _DENIED:
        text = f"you have no permission to call {cause.operation_name}"
        return unknown(name, text, f"grant what {cause.operation_name} needs (docs/doctor.md#permissions)")
    return unknown(name, str(error).splitlines()[0], "try again")
