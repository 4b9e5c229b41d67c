"""Requests to a Lambda function URL with AuthType AWS_IAM, and the responses.

Source: "Invoking Lambda function URLs", payload format 2.0, AWS Lambda Developer Guide; sample:
events/function-url.job-api.json. Lambda has verified the caller's signature. Whoever may Invoke the function can send
the same event with any caller in it: nothing in an event tells the two apart.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

from relaunch.core.definitions.ownership import caller_of
from relaunch.ports import PermanentError


class MethodNotAllowedError(PermanentError):
    """The method is not POST."""


class UnknownCallerError(PermanentError):
    """The request does not name its caller."""


class MalformedBodyError(PermanentError):
    """The body is not JSON."""


def is_http_request(event: object) -> bool:
    """Return whether an event is a request to a function URL; a request to `job_api` itself has no such member."""
    return isinstance(event, Mapping) and "http" in _member(event, "requestContext")


def read_caller(event: Mapping[str, Any]) -> str:
    """Return the caller of a request.

    Raises:
        UnknownCallerError: Lambda does not say who it is; the URL has AuthType NONE.
    """
    arn = _member(_member(_member(event, "requestContext"), "authorizer"), "iam").get("userArn")
    if not isinstance(arn, str) or not arn:
        raise UnknownCallerError("the request does not name its caller: the function URL needs AuthType AWS_IAM")
    return caller_of(arn)


def read_json(event: Mapping[str, Any]) -> object:
    """Return the body of a POST request.

    Raises:
        MethodNotAllowedError: the method is another one.
        MalformedBodyError: the body is not JSON.
    """
    method = _member(_member(event, "requestContext"), "http").get("method")
    if method != "POST":
        raise MethodNotAllowedError(f"the method is {method}: send a POST with the request as JSON in its body")
    body = event.get("body")
    try:
        raw = base64.b64decode(body or "", validate=True) if event.get("isBase64Encoded") else (body or "")
        return json.loads(raw)
    except (ValueError, TypeError, RecursionError, binascii.Error) as error:
        raise MalformedBodyError("the body is not JSON: send the request as JSON in the body of a POST") from error


def make_response(status: int, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the response with a JSON body."""
    return {"statusCode": status, "headers": {"content-type": "application/json"}, "body": json.dumps(answer)}


def _member(members: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = members.get(name)
    return value if isinstance(value, Mapping) else {}
