"""The roles of repositories on GitHub are checked with those of the other stacks."""

import json
from collections.abc import Iterator

import boto3
import pytest
from botocore.exceptions import ClientError

from fakes.aws import REGION, aws_in_process
from fakes.training_stacks import ROLE
from relaunch.core.checks import Verdict
from relaunch_cli.account_checks.stack_roles import StackFacts, expected_trust
from relaunch_cli.account_readers.calls import AccountCalls
from relaunch_cli.account_readers.stack_roles import OF_REPOSITORIES, check_stack_roles
from relaunch_cli.aws.account import AwsAccount
from relaunch_cli.deployment.findings import github_stack_name

PROVIDER = f"{ROLE.partition(':role')[0]}:oidc-provider/token.actions.githubusercontent.com"
GIVEN = {
    "ApplicationStack": "relaunch",
    "GitHubRepository": "acme/speech",
    "GitHubRef": "refs/heads/main",
    "GitHubOidcProviderArn": PROVIDER,
}
NAME = github_stack_name("relaunch", "acme/speech")


@pytest.fixture
def calls() -> Iterator[AccountCalls]:
    with aws_in_process():
        yield AccountCalls(AwsAccount(boto3.Session(region_name=REGION)))


def make(name: str, trust: object) -> None:
    policy = {"PolicyName": "plan", "PolicyDocument": {"Version": "2012-10-17", "Statement": []}}
    role = {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": trust, "Policies": [policy]}}
    template = {"Parameters": {each: {"Type": "String"} for each in GIVEN}, "Resources": {"PlanRole": role}}
    boto3.client("cloudformation", REGION).create_stack(
        StackName=name,
        TemplateBody=json.dumps(template),
        Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in GIVEN.items()],
    )


def test_a_role_of_a_repository_that_trusts_somebody_else_is_a_problem(calls: AccountCalls) -> None:
    facts = StackFacts(f"arn:aws:cloudformation:{REGION}:123456789012:stack/x", GIVEN, frozenset())
    trust = json.loads(json.dumps(expected_trust("PlanRole", facts)))
    (statement,) = trust["Statement"]
    statement["Condition"]["StringEquals"]["token.actions.githubusercontent.com:sub"] = ["repo:acme/speech:*"]
    make(NAME, trust)
    make(f"{NAME}-not-ours", trust)

    (check,) = check_stack_roles("relaunch", calls)

    assert (check.name, check.verdict) == ("role PlanRole", Verdict.PROBLEM)
    assert "repo:acme/speech:pull_request" in (check.to_do or "")


def test_a_role_as_the_template_has_it_is_no_problem(calls: AccountCalls) -> None:
    facts = StackFacts(f"arn:aws:cloudformation:{REGION}:123456789012:stack/x", GIVEN, frozenset())
    make(NAME, expected_trust("PlanRole", facts))

    (check,) = check_stack_roles("relaunch", calls)

    assert check.verdict is Verdict.OK


def test_who_may_not_list_all_stacks_is_told_of_the_roles_of_the_others(calls: AccountCalls) -> None:
    facts = StackFacts(f"arn:aws:cloudformation:{REGION}:123456789012:stack/x", GIVEN, frozenset())
    make("relaunch-training", expected_trust("PlanRole", facts))
    make(NAME, {})

    def deny(params: dict[str, object], **_: object) -> None:
        if "StackName" not in params:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DescribeStacks")

    calls.client("cloudformation").meta.events.register("before-parameter-build.cloudformation.DescribeStacks", deny)

    of_stacks, of_repositories = check_stack_roles("relaunch", calls)

    assert of_stacks.verdict is Verdict.OK
    assert (of_repositories.name, of_repositories.verdict) == (OF_REPOSITORIES, Verdict.UNKNOWN)
    assert of_repositories.text == "you have no permission cloudformation:DescribeStacks"
    assert "ListStacks" in (of_repositories.to_do or "")
