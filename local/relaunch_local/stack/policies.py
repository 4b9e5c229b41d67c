"""The credentials and IAM policies of those who call the simulator.

The emulator gives every function the credentials of its role, and enforces the policies for the services it emulates.
The simulator does the same for ECS and EC2: it reads the policies of the roles from the emulator.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from relaunch_local.request_guard.credentials import Credentials, function_access_key, function_secret
from relaunch_local.stack.account import assume_as_lambda
from relaunch_local.stack.emulator import Emulator

PolicyDocument = Mapping[str, Any]

EVERYTHING: PolicyDocument = {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


class RolePolicies:
    """Policies by access key: the root user's, and those of the functions once they are deployed."""

    def __init__(self, root: Credentials) -> None:
        """Start with the root user's policy."""
        self._root = root
        self._policies: dict[str, Sequence[PolicyDocument]] = {root.access_key_id: [EVERYTHING]}
        self._sessions: dict[str, str] = {}

    def secret_of(self, access_key: str) -> str | None:
        """Return the secret access key of an access key, or None if it is unknown."""
        if access_key == self._root.access_key_id:
            return self._root.secret_access_key
        if access_key in self._sessions:
            return self._sessions[access_key]
        return function_secret(self._root, access_key) if access_key in self._policies else None

    def policies_of(self, access_key: str) -> Sequence[PolicyDocument] | None:
        """Return the policies of an access key, or None if it is unknown."""
        return self._policies.get(access_key)

    def load_function_roles(self, emulator: Emulator) -> None:
        """Read the inline policies of every function's role; the template uses no other kind."""
        iam = emulator.client("iam")
        for page in emulator.client("lambda").get_paginator("list_functions").paginate():
            for function in page["Functions"]:
                role = function["Role"].rsplit("/", 1)[1]
                names = iam.list_role_policies(RoleName=role)["PolicyNames"]
                answers = [iam.get_role_policy(RoleName=role, PolicyName=name) for name in names]
                key = function_access_key(function["FunctionArn"], function["Role"])
                self._policies[key] = [parse_document(answer["PolicyDocument"]) for answer in answers]

    def open_session(self, emulator: Emulator, function_name: str) -> dict[str, str]:
        """Return credentials, as variables, of the role of a function that runs elsewhere than in the emulator."""
        function = emulator.client("lambda").get_function_configuration(FunctionName=function_name)
        variables = assume_as_lambda(emulator, function["Role"])
        key = variables["AWS_ACCESS_KEY_ID"]
        self._policies[key] = self._policies[function_access_key(function["FunctionArn"], function["Role"])]
        self._sessions[key] = variables["AWS_SECRET_ACCESS_KEY"]
        return variables


def parse_document(document: str | PolicyDocument) -> PolicyDocument:
    """Parse a policy document of IAM: URL-encoded JSON unless boto3 has decoded it."""
    if isinstance(document, str):
        decoded: PolicyDocument = json.loads(unquote(document))
        return decoded
    return document
