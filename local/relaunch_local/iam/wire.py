"""Reads from an HTTP request which operation it calls, for the protocols of AWS that callers here use.

Source: "AWS protocols" of Smithy (awsJson, awsQuery, restXml), and the Amazon S3 API Reference for S3's paths.
"""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from relaunch_local.iam.conditions import PolicyError
from relaunch_local.request_guard.signature import RequestHead

# S3's operations by method, whether a key is named, and subresource.
_S3_OPERATIONS: Mapping[tuple[str, bool, str], str] = {
    ("GET", False, ""): "ListObjects",
    ("GET", False, "list-type"): "ListObjectsV2",
    ("GET", False, "encryption"): "GetBucketEncryption",
    ("GET", False, "location"): "GetBucketLocation",
    ("GET", False, "notification"): "GetBucketNotificationConfiguration",
    ("HEAD", False, ""): "HeadBucket",
    ("PUT", False, "notification"): "PutBucketNotificationConfiguration",
    ("GET", True, ""): "GetObject",
    ("HEAD", True, ""): "HeadObject",
    ("PUT", True, ""): "PutObject",
    ("DELETE", True, ""): "DeleteObject",
}
_LISTING = {"prefix": "Prefix", "delimiter": "Delimiter", "max-keys": "MaxKeys"}
_MEMBER = re.compile(r"(\w+)\.member\.\d+")


def read_call(service: str, head: RequestHead, body: bytes) -> tuple[str, Mapping[str, Any]]:
    """Return the operation that a request signed for this service calls, and its parameters.

    Raises:
        PolicyError: the request is none that is read here.
    """
    if service == "s3":
        return _read_s3(head)
    target = head.value("x-amz-target")
    if target:
        return target.rpartition(".")[2], json.loads(body or b"{}")
    form = parse_qs(body.decode(), keep_blank_values=True)
    if "Action" not in form:
        raise PolicyError(f"{head.method} {head.target} of {service} is not read here")
    return form["Action"][0], _read_form(form)


def _read_form(form: Mapping[str, list[str]]) -> Mapping[str, Any]:
    """Return the parameters of awsQuery: a list is `Name.member.1` and so on."""
    parameters: dict[str, Any] = {}
    for name, (value, *_) in form.items():
        member = _MEMBER.fullmatch(name)
        if member:
            parameters.setdefault(member[1], []).append(value)
        else:
            parameters[name] = value
    return parameters


def _read_s3(head: RequestHead) -> tuple[str, Mapping[str, Any]]:
    url = urlsplit(head.target)
    bucket, _, key = unquote(url.path).lstrip("/").partition("/")
    query = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
    known = {name for _, _, name in _S3_OPERATIONS if name}
    subresource = next((name for name in query if name in known), "")
    operation = _S3_OPERATIONS.get((head.method, bool(key), subresource))
    unread = {"uploads", "uploadId", "acl", "policy", "tagging", "versioning", "lifecycle", "cors"} & query.keys()
    if operation is None or unread:
        raise PolicyError(f"{head.method} {head.target} of S3 is not read here")
    listing = {parameter: query[name] for name, parameter in _LISTING.items() if name in query}
    return operation, {"Bucket": bucket, **({"Key": key} if key else {}), **listing}
