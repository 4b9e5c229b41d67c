"""Who calls the simulator, and what their policies are.

The emulator gives every function the credentials of its role, and enforces the policies of what it serves itself. ECS
and EC2 are served by the simulator, which asks here for the policies that the template gave the same roles.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from relaunch_local.stack.emulator import ROOT_KEY, Emulator

PolicyDocument = Mapping[str, Any]

EVERYTHING: PolicyDocument = {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


class RolePolicies:
    """The policies by access key: the root user's from the start, the functions' once they are deployed."""

    def __init__(self) -> None:
        """Know the root user."""
        self._policies: dict[str, Sequence[PolicyDocument]] = {ROOT_KEY: [EVERYTHING]}

    def policies_of(self, access_key: str) -> Sequence[PolicyDocument] | None:
        """The policies of a key; None for one that nobody knows."""
        return self._policies.get(access_key)

    def load_function_roles(self, emulator: Emulator) -> None:
        """Read every deployed function's role and its inline policies; the template gives no others."""
        iam = emulator.client("iam")
        for page in emulator.client("lambda").get_paginator("list_functions").paginate():
            for function in page["Functions"]:
                role = function["Role"].rsplit("/", 1)[1]
                names = iam.list_role_policies(RoleName=role)["PolicyNames"]
                answers = [iam.get_role_policy(RoleName=role, PolicyName=name) for name in names]
                key = function_access_key(function["FunctionArn"], function["Role"])
                self._policies[key] = [parse_document(answer["PolicyDocument"]) for answer in answers]


def function_access_key(function_arn: str, role_arn: str) -> str:
    """The access key that MiniStack 1.5 gives a function: it is made of the function and its role."""
    return f"ASIA{hashlib.sha256(f'{function_arn}:{role_arn}'.encode()).hexdigest()[:16].upper()}"


def parse_document(document: str | PolicyDocument) -> PolicyDocument:
    """A policy as IAM answers it: JSON in URL encoding, unless boto3 has decoded it."""
    if isinstance(document, str):
        decoded: PolicyDocument = json.loads(unquote(document))
        return decoded
    return document
