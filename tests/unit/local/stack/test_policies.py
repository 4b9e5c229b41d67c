import json
from typing import Any, cast
from urllib.parse import quote

from relaunch_local.iam.permission import Permission
from relaunch_local.iam.policies import PolicyAuthorizer
from relaunch_local.request_guard.credentials import Credentials, random_root_credentials
from relaunch_local.stack.emulator import Emulator
from relaunch_local.stack.policies import RolePolicies, parse_document

STATEMENT = {"Effect": "Allow", "Action": "ecs:RunTask", "Resource": "*"}


def test_the_root_user_is_allowed_everything_and_an_unknown_caller_nothing() -> None:
    root = random_root_credentials()
    policies = RolePolicies(root)
    authorize = PolicyAuthorizer(policies.policies_of)

    assert policies.secret_of(root.access_key_id) == root.secret_access_key
    assert policies.secret_of("AKIASTRANGER") is None
    assert authorize(Permission(root.access_key_id, "ecs:RunTask", "*"))
    assert not authorize(Permission("AKIASTRANGER", "ecs:RunTask", "*"))


def test_a_policy_is_read_as_iam_answers_it() -> None:
    document = {"Version": "2012-10-17", "Statement": [STATEMENT]}

    assert parse_document(quote(json.dumps(document))) == document
    assert parse_document(document) == document


class FakeEmulator:
    """One function with one role, which Lambda alone may assume."""

    def __init__(self, root: Credentials) -> None:
        self.root, self.trusted = root, "lambda.amazonaws.com"
        name = "arn:aws:lambda:eu-central-1:111122223333:function:launch"
        self.function = {"FunctionArn": name, "Role": "arn:aws:iam::111122223333:role/launch"}

    def client(self, _service: str) -> Any:
        return self

    def get_paginator(self, _operation: str) -> Any:
        return self

    def paginate(self) -> list[Any]:
        return [{"Functions": [self.function]}]

    def list_role_policies(self, **_: str) -> Any:
        return {"PolicyNames": ["launch"]}

    def get_role_policy(self, **_: str) -> Any:
        return {"PolicyDocument": {"Statement": [STATEMENT]}}

    def get_function_configuration(self, **_: str) -> Any:
        return self.function

    def update_assume_role_policy(self, **request: str) -> None:
        self.trusted = json.loads(request["PolicyDocument"])["Statement"][0]["Principal"]["AWS"]

    def assume_role(self, **_: Any) -> Any:
        assert self.trusted == "arn:aws:iam::111122223333:root"
        return {"Credentials": {"AccessKeyId": "ASIASESSION", "SecretAccessKey": "secret", "SessionToken": "token"}}


def test_a_session_of_a_functions_role_is_allowed_what_the_function_is() -> None:
    root = random_root_credentials()
    policies, emulator = RolePolicies(root), cast("Emulator", FakeEmulator(root))
    policies.load_function_roles(emulator)
    authorize = PolicyAuthorizer(policies.policies_of)

    variables = policies.open_session(emulator, "launch")

    assert variables["AWS_SESSION_TOKEN"] == "token"
    assert policies.secret_of("ASIASESSION") == "secret"
    assert authorize(Permission("ASIASESSION", "ecs:RunTask", "*"))
    assert not authorize(Permission("ASIASESSION", "ecs:StopTask", "*"))
