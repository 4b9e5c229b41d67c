"""What an account has once: read, and made where it is missing, also by two at once."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from fakes.aws import aws_in_process, make_client
from relaunch_cli.deployment.account_roles import (
    GITHUB_ISSUER,
    create_github_provider,
    create_service_linked_role,
    read_account_roles,
)


@pytest.fixture
def iam() -> Iterator[Any]:
    with aws_in_process():
        yield make_client("iam")


def test_a_new_account_has_none(iam: Any) -> None:
    roles = read_account_roles(iam, with_github=True)

    assert roles.missing == ("ecs.amazonaws.com", "spot.amazonaws.com")
    assert (roles.github_provider_arn, roles.unread) == ("", ())


def test_what_is_made_is_found(iam: Any) -> None:
    create_service_linked_role("ecs.amazonaws.com", iam)
    create_service_linked_role("spot.amazonaws.com", iam)
    arn = create_github_provider(iam)

    roles = read_account_roles(iam, with_github=True)

    assert (roles.missing, roles.notes) == ((), ())
    assert roles.github_provider_arn == arn
    assert arn.endswith(":oidc-provider/token.actions.githubusercontent.com")


def test_a_provider_without_the_audience_is_told_with_the_command_that_adds_it(iam: Any) -> None:
    url = "https://token.actions.githubusercontent.com"
    arn = iam.create_open_id_connect_provider(Url=url, ClientIDList=["https://github.com/acme"])[
        "OpenIDConnectProviderArn"
    ]

    (note,) = read_account_roles(iam, with_github=True).notes

    assert f"--client-id sts.amazonaws.com --open-id-connect-provider-arn {arn}`" in note


def test_audiences_that_may_not_be_read_are_told() -> None:
    class Denied:
        def list_roles(self, **_: Any) -> Any:
            return {"Roles": [{}]}

        def list_open_id_connect_providers(self) -> Any:
            return {"OpenIDConnectProviderList": [{"Arn": f"arn:a:oidc-provider/{GITHUB_ISSUER}"}]}

        def get_open_id_connect_provider(self, **_: Any) -> Any:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetOpenIDConnectProvider")

    roles = read_account_roles(Denied(), with_github=True)

    assert roles.notes == (f"the audiences of arn:a:oidc-provider/{GITHUB_ISSUER} cannot be read (AccessDenied)",)


def test_a_provider_that_somebody_made_meanwhile_is_taken(iam: Any) -> None:
    assert create_github_provider(iam) == create_github_provider(iam)


def test_a_role_that_somebody_made_meanwhile_is_taken(iam: Any) -> None:
    text = "Service role name AWSServiceRoleForEC2Spot has been taken in this account, please try a different suffix."
    with Stubber(iam) as stubber:
        stubber.add_client_error("create_service_linked_role", "InvalidInput", text, 400)
        create_service_linked_role("spot.amazonaws.com", iam)


@pytest.mark.parametrize(("code", "text"), [("InvalidInput", "no such service"), ("AccessDenied", "not you")])
def test_a_role_that_iam_refuses_is_an_error(iam: Any, code: str, text: str) -> None:
    with Stubber(iam) as stubber:
        stubber.add_client_error("create_service_linked_role", code, text, 400)
        with pytest.raises(ClientError, match=code):
            create_service_linked_role("spot.amazonaws.com", iam)


def test_a_provider_that_iam_refuses_is_an_error(iam: Any) -> None:
    with Stubber(iam) as stubber:
        stubber.add_client_error("create_open_id_connect_provider", "LimitExceeded", "too many", 409)
        with pytest.raises(ClientError, match="LimitExceeded"):
            create_github_provider(iam)


def test_who_may_not_look_is_told_so_and_nothing_is_made(iam: Any) -> None:
    with Stubber(iam) as stubber:
        for operation in ("list_roles", "list_roles", "list_open_id_connect_providers"):
            stubber.add_client_error(operation, "AccessDenied", "not you", 403)
        roles = read_account_roles(iam, with_github=True)

    assert roles.missing == ()
    assert [each.rpartition(" ")[2] for each in roles.unread] == ["(AccessDenied)"] * 3
