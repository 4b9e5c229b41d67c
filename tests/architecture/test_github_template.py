"""infrastructure/github-repository.yaml: the roles of one of many repositories, and who gets them."""

from typing import Any

import pytest

from architecture.conftest import Template, as_list
from architecture.role_policies import RolePolicies
from architecture.written_template import written_template
from relaunch_local.iam.policies import listed
from relaunch_local.templates.document import read_template
from relaunch_local.templates.resolver import Resolver

FILE = "infrastructure/github-repository.yaml"
PROVIDER = "arn:aws:iam::111122223333:oidc-provider/token.actions.githubusercontent.com"
GIVEN = {"ApplicationStack": "relaunch", "GitHubRepository": "acme/speech", "GitHubOidcProviderArn": PROVIDER}
NUMBERS = {"GitHubOwnerId": "11", "GitHubRepositoryId": "22"}
FUNCTION = "arn:aws:lambda:us-east-1:111122223333:function:relaunch"
ECR = "arn:aws:ecr:us-east-1:111122223333:repository"
BY_URL = {"lambda__FunctionUrlAuthType": "AWS_IAM", "lambda__InvokedViaFunctionUrl": "true"}


@pytest.fixture(scope="module")
def template() -> Template:
    return written_template(FILE)


def trust_of(role: str, **parameters: str) -> dict[str, Any]:
    document = read_template(FILE)
    resolver = Resolver(document, **GIVEN, **parameters)
    (statement,) = listed(
        resolver.resolve(document.of_type("IAM::Role")[role]["AssumeRolePolicyDocument"])["Statement"]
    )
    assert statement["Principal"] == {"Federated": PROVIDER}
    assert set(statement["Condition"]) == {"StringEquals"}
    return {key.rpartition(":")[2]: value for key, value in statement["Condition"]["StringEquals"].items()}


@pytest.mark.parametrize(
    ("role", "parameters", "place"),
    [
        ("SubmitRole", {}, "ref:refs/heads/main"),
        ("SubmitRole", {"GitHubEnvironment": "training"}, "environment:training"),
        ("PlanRole", {"GitHubEnvironment": "training"}, "pull_request"),
    ],
)
def test_one_repository_is_let_in_by_both_forms_of_its_subject(
    role: str, parameters: dict[str, str], place: str
) -> None:
    assert as_list(trust_of(role, **parameters)["sub"]) == [f"repo:acme/speech:{place}"]
    assert trust_of(role, **parameters, **NUMBERS) == {
        "aud": "sts.amazonaws.com",
        "sub": [f"repo:acme/speech:{place}", f"repo:acme@11/speech@22:{place}"],
        "repository_id": "22",
    }


def test_its_roles_reach_the_one_function_that_each_is_for(template: Template) -> None:
    for role, own, other in (("SubmitRole", "JobApi", "PlanApi"), ("PlanRole", "PlanApi", "JobApi")):
        policies = RolePolicies(template, role, **GIVEN)
        for action in ("lambda:InvokeFunctionUrl", "lambda:InvokeFunction"):
            assert policies.allows(action, f"{FUNCTION}-{own}Function-Z1", **BY_URL)
            assert not policies.allows(action, f"{FUNCTION}-{own}Function-Z1")
            assert not policies.allows(action, f"{FUNCTION}-{other}Function-Z1", **BY_URL)
            assert not policies.allows(action, f"{FUNCTION}-b-{own}Function-Z1", **BY_URL)


def test_images_are_pushed_into_the_repository_that_is_named_and_into_none_else(template: Template) -> None:
    named = RolePolicies(template, "SubmitRole", **GIVEN, ImageRepository="acme/speech")
    for policies, allowed in ((RolePolicies(template, "SubmitRole", **GIVEN), False), (named, True)):
        assert policies.allows("ecr:PutImage", f"{ECR}/acme/speech") == allowed
        assert policies.allows("ecr:GetAuthorizationToken", "*") == allowed
        assert not policies.allows("ecr:PutImage", f"{ECR}/relaunch/trainer")
        assert not policies.allows("ecr:BatchDeleteImage", f"{ECR}/acme/speech")
    assert not RolePolicies(template, "PlanRole", **GIVEN, ImageRepository="a").allows("ecr:PutImage", f"{ECR}/a")


def test_the_roles_are_those_of_the_first_repository() -> None:
    training = read_template("infrastructure/training.yaml")
    ours = read_template(FILE)

    for role in ("SubmitRole", "PlanRole"):
        trusts = [
            Resolver(each, **GIVEN, **NUMBERS).resolve(each.of_type("IAM::Role")[role]["AssumeRolePolicyDocument"])
            for each in (training, ours)
        ]
        assert trusts[0] == trusts[1]
