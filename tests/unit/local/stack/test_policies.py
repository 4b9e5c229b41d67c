import json
from urllib.parse import quote

from relaunch_local.ecs import Permission, PolicyAuthorizer
from relaunch_local.stack.emulator import ROOT_KEY
from relaunch_local.stack.policies import RolePolicies, function_access_key, parse_document

STATEMENT = {"Effect": "Allow", "Action": "ecs:RunTask", "Resource": "*"}


def test_the_root_user_is_allowed_everything_and_an_unknown_caller_nothing() -> None:
    authorize = PolicyAuthorizer(RolePolicies().policies_of)

    assert authorize(Permission(ROOT_KEY, "ecs:RunTask", "*"))
    assert not authorize(Permission("AKIASTRANGER", "ecs:RunTask", "*"))


def test_a_policy_is_read_as_iam_answers_it() -> None:
    document = {"Version": "2012-10-17", "Statement": [STATEMENT]}

    assert parse_document(quote(json.dumps(document))) == document
    assert parse_document(document) == document


def test_a_functions_key_is_made_of_the_function_and_its_role() -> None:
    one = function_access_key("arn:aws:lambda:eu-central-1:111122223333:function:a", "arn:aws:iam::111122223333:role/a")
    other = function_access_key(
        "arn:aws:lambda:eu-central-1:111122223333:function:b", "arn:aws:iam::111122223333:role/a"
    )

    assert one != other
    assert one.startswith("ASIA")
    assert len(one) == 20
