"""A call that fails becomes a check that is unknown, with what to do about it."""

from collections.abc import Iterator

import pytest
from botocore.exceptions import ConnectTimeoutError

from fakes.scripted_aws import ScriptedAws
from relaunch.core.checks import Check, Verdict, is_ok
from relaunch.ports import PermanentError, TransientError
from relaunch_cli.account_readers.calls import AccountCalls, UnreadError, all_known, known


class OneService:
    def __init__(self, aws: ScriptedAws) -> None:
        self.aws = aws
        self.made = 0

    def client(self, service: str) -> object:
        self.made += 1
        return self.aws.client


@pytest.fixture
def aws() -> ScriptedAws:
    return ScriptedAws("ecs")


def test_a_client_is_made_once(aws: ScriptedAws) -> None:
    clients = OneService(aws)
    calls = AccountCalls(clients)
    for _ in range(2):
        aws.answer("DescribeClusters", clusters=[])
        assert calls.call("ecs", "describe_clusters")["clusters"] == []

    assert clients.made == 1


def test_all_pages_are_read(aws: ScriptedAws) -> None:
    aws.answer("ListContainerInstances", containerInstanceArns=["a"], nextToken="more")
    aws.answer("ListContainerInstances", containerInstanceArns=["b"])

    found = AccountCalls(OneService(aws)).list("ecs", "list_container_instances", "containerInstanceArns", cluster="c")

    assert found == ["a", "b"]


def test_what_is_missing_is_none(aws: ScriptedAws) -> None:
    aws.refuse("DescribeClusters", "ClusterNotFoundException")

    assert AccountCalls(OneService(aws)).call("ecs", "describe_clusters", "ClusterNotFoundException") is None


@pytest.mark.parametrize(
    ("code", "reason", "to_do"),
    [
        ("AccessDeniedException", "you have no permission ecs:DescribeClusters", "grant ecs:DescribeClusters"),
        ("ThrottlingException", "ecs:DescribeClusters: ThrottlingException", "try again"),
    ],
)
def test_a_refusal_names_the_permission(aws: ScriptedAws, code: str, reason: str, to_do: str) -> None:
    aws.refuse("DescribeClusters", code)

    with pytest.raises(UnreadError) as unread:
        AccountCalls(OneService(aws)).call("ecs", "describe_clusters")

    assert unread.value.reason == reason
    assert unread.value.to_do.startswith(to_do)


def test_no_answer_is_said(aws: ScriptedAws) -> None:
    aws.fail("DescribeClusters", ConnectTimeoutError(endpoint_url="https://ecs.example.com"))

    with pytest.raises(UnreadError, match="AWS does not answer: Connect timeout"):
        AccountCalls(OneService(aws)).call("ecs", "describe_clusters")


def test_checks_made_before_a_failure_are_kept() -> None:
    def checks() -> Iterator[Check]:
        yield is_ok("first", "it is")
        raise UnreadError("you have no permission", "grant it")

    assert [(each.name, each.verdict) for each in all_known("others", checks)] == [
        ("first", Verdict.OK),
        ("others", Verdict.UNKNOWN),
    ]


@pytest.mark.parametrize("error", [TransientError("no prices\nnow"), PermanentError("no prices")])
def test_an_error_of_a_port_is_unknown_too(error: Exception) -> None:
    def fail() -> Check:
        raise error

    check = known("placement", fail)

    assert (check.verdict, check.text, check.to_do) == (Verdict.UNKNOWN, "no prices", "try again")
