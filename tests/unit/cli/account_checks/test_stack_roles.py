"""What is found in the roles of a deployment beside the templates, which are known here as they are."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from relaunch.core.checks import Check, Verdict
from relaunch_cli.account_checks.stack_roles import (
    ATTACHED_POLICIES,
    OWN_POLICIES,
    RoleFacts,
    StackFacts,
    check_roles,
    expected_trust,
)
from relaunch_local.templates.document import read_template
from relaunch_local.templates.resolver import Resolver

TEMPLATES = (
    "template.yaml",
    "infrastructure/training.yaml",
    "infrastructure/machines.yaml",
    "infrastructure/github-repository.yaml",
)
ARN = "arn:aws:cloudformation:us-east-1:111122223333:stack/relaunch/0a1b"
PROVIDER = "arn:aws:iam::111122223333:oidc-provider/token.actions.githubusercontent.com"
GITHUB = {"GitHubRepository": "acme/vision", "GitHubOidcProviderArn": PROVIDER, "GitHubRef": "refs/heads/main"}
STACK = StackFacts(ARN, GITHUB, frozenset(ATTACHED_POLICIES))
BOUNDARY = "arn:aws:iam::111122223333:policy/boundary"


def role(logical_id: str = "SubmitJobRole", **changes: Any) -> RoleFacts:
    attached = [name for name, roles in ATTACHED_POLICIES.values() if logical_id in roles]
    inline = [*OWN_POLICIES.get(logical_id, ()), *attached]
    trust = expected_trust(logical_id, STACK)
    return replace(RoleFacts(logical_id, f"relaunch-{logical_id}-Z1", [], inline, trust, "", STACK), **changes)


def problems(*roles: RoleFacts) -> list[Check]:
    return [each for each in check_roles(roles) if each.verdict is Verdict.PROBLEM]


def test_roles_as_the_templates_make_them_are_one_check() -> None:
    (check,) = check_roles([role(), role("TaskRole")])

    assert (check.name, check.verdict, check.text[:7]) == ("roles", Verdict.OK, "2 roles")


def test_without_a_stack_nothing_is_said() -> None:
    assert list(check_roles([])) == []


@pytest.mark.parametrize(
    ("changes", "says", "command"),
    [
        (
            {"managed": ["arn:aws:iam::aws:policy/AdministratorAccess"]},
            "the managed policy arn:aws:iam::aws:policy/AdministratorAccess is attached",
            "aws iam detach-role-policy --role-name relaunch-SubmitJobRole-Z1 --policy-arn arn:aws:iam::aws:policy/A",
        ),
        (
            {"inline": ["SubmitJob", "AskForMachines", "SendJobChanges", "Kubernetes", "more"]},
            "the inline policy more was added",
            "aws iam delete-role-policy --role-name relaunch-SubmitJobRole-Z1 --policy-name more",
        ),
        (
            # By a name that the stack has, but not now.
            {"inline": ["SubmitJob", "Kubernetes"], "stack": replace(STACK, policies=frozenset())},
            "the inline policy Kubernetes was added",
            "--policy-name Kubernetes",
        ),
        (
            {"inline": ["AskForMachines", "SendJobChanges", "Kubernetes"]},
            "the template's inline policy SubmitJob is gone: what it allows is denied",
            "aws iam put-role-policy --role-name relaunch-SubmitJobRole-Z1 --policy-name SubmitJob, with what",
        ),
        (
            {"trust": {"Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}]}},
            "its trust policy is not the template's",
            '"Principal":{"Service":"lambda.amazonaws.com"}',
        ),
        ({"trust": {}}, "its trust policy is not the template's", "update-assume-role-policy"),
    ],
)
def test_what_is_beside_the_template_is_told_with_the_command_that_undoes_it(
    changes: Mapping[str, Any], says: str, command: str
) -> None:
    (check,) = problems(role(**changes), role("TaskRole"))

    assert check.name == "role SubmitJobRole"
    assert says in check.text
    assert command in check.to_do


def test_several_differences_are_told_each() -> None:
    assert len(problems(role(managed=["arn:aws:iam::aws:policy/a", "arn:aws:iam::aws:policy/b"], inline=["c"]))) == 7


@pytest.mark.parametrize("trust", ["as a list", "with a Sid"])
def test_the_same_trust_policy_in_another_form_is_the_same(trust: str) -> None:
    statement = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    forms = {
        "as a list": {"Statement": {**statement, "Action": ["sts:AssumeRole"]}},
        "with a Sid": {"Version": "2012-10-17", "Statement": [{**statement, "Sid": "lambda"}]},
    }

    assert problems(role(trust=forms[trust])) == []


def test_a_statement_beside_the_templates_is_another_trust_policy() -> None:
    expected = expected_trust("SubmitJobRole", STACK)
    more = {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::999999999999:root"}, "Action": "sts:AssumeRole"}

    assert problems(role(trust={**expected, "Statement": [*expected["Statement"], more]}))


def test_the_boundary_that_others_have_is_missed() -> None:
    with_one = role("TaskRole", boundary=BOUNDARY)
    (missing,) = problems(with_one, role())
    (other,) = problems(with_one, replace(with_one, name="x"), role(boundary=f"{BOUNDARY}-2"))

    assert "it has no permissions boundary" in missing.text
    assert f"put-role-permissions-boundary --role-name relaunch-SubmitJobRole-Z1 --permissions-boundary {BOUNDARY}" in (
        missing.to_do
    )
    assert f"it has the permissions boundary {BOUNDARY}-2" in other.text
    assert problems(with_one, role(boundary=BOUNDARY)) == []


def test_a_role_of_another_release_is_unknown() -> None:
    (check,) = check_roles([role(logical_id="TaskRole"), replace(role(), logical_id="LaterRole")])

    assert (check.name, check.verdict) == ("role LaterRole", Verdict.UNKNOWN)


def test_the_policies_of_roles_are_those_of_the_templates() -> None:
    own = {
        name: frozenset(each["PolicyName"] for each in properties.get("Policies", []))
        for file in TEMPLATES
        for name, properties in read_template(file).of_type("IAM::Role").items()
    }
    attached = {
        name: (properties["PolicyName"], frozenset(each["Ref"] for each in properties["Roles"]))
        for file in TEMPLATES
        for name, properties in read_template(file).of_type("IAM::Policy").items()
    }

    assert own == OWN_POLICIES
    assert attached == ATTACHED_POLICIES


@pytest.mark.parametrize(
    "given",
    [
        GITHUB,
        {**GITHUB, "GitHubOwnerId": "11", "GitHubRepositoryId": "22"},
        {**GITHUB, "GitHubOwnerId": "11", "GitHubRepositoryId": "22", "GitHubEnvironment": "production"},
        {**GITHUB, "GitHubRepositoryId": "22", "GitHubRef": "refs/tags/v1"},
    ],
)
def test_the_trust_policies_are_those_of_the_templates(given: dict[str, str]) -> None:
    roles = set()
    for file in TEMPLATES:
        template = read_template(file)
        resolver = Resolver(template, **given)
        for name, properties in template.of_type("IAM::Role").items():
            trust = resolver.resolve(properties["AssumeRolePolicyDocument"])
            roles.add(name)
            assert problems(role(name, trust=trust, stack=replace(STACK, parameters=given))) == []

    assert roles == set(OWN_POLICIES)
