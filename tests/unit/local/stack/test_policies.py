import json
from urllib.parse import quote

from relaunch_local.iam.permission import Permission
from relaunch_local.iam.policies import PolicyAuthorizer
from relaunch_local.request_guard.credentials import random_root_credentials
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
