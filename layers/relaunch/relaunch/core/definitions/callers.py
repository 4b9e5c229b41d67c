"""The callers of `job_api` that may start jobs of a definition.

A definition names them as IAM does, and `job_api` as STS does: an assumed role there has no path, and its session,
which `caller_of` leaves out.
"""

import re
from collections.abc import Collection

_NAME = r"[A-Za-z0-9_+=,.@-]{1,128}\*?"
_PARTITION = r"arn:aws(?:-[a-z]+)*"
_IAM = rf"iam::[0-9]{{12}}:(?:root|(?:role|user)/(?:[A-Za-z0-9_+=,.@-]+/)*{_NAME})"
_STS = rf"sts::[0-9]{{12}}:(?:assumed-role|federated-user)/{_NAME}"
CALLER_PATTERN = rf"invoke|{_PARTITION}:(?:{_IAM}|{_STS})"
"""What a definition may name: `invoke`, or an ARN; a `*` may follow the beginning of its name."""

# A role's name is unique in its account, whatever its path ("IAM identifiers", IAM User Guide).
_ROLE = re.compile(rf"(?P<partition>{_PARTITION}):iam::(?P<account>[0-9]{{12}}):role/(?:.*/)?(?P<name>[^/]+)")


def is_listed(caller: str, callers: Collection[str]) -> bool:
    """Return whether a caller, as `read_caller` and `caller_of` name it, is one of those that a definition names."""
    return any(_is_one(caller, _as_caller(each)) for each in callers)


def _as_caller(listed: str) -> str:
    role = _ROLE.fullmatch(listed)
    return f"{role['partition']}:sts::{role['account']}:assumed-role/{role['name']}" if role else listed


def _is_one(caller: str, listed: str) -> bool:
    return caller.startswith(listed[:-1]) if listed.endswith("*") else caller == listed
