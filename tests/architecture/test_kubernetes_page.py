"""The trust policy of docs/kubernetes.md lets in the functions that sign in, and nobody else of the AWS account."""

import json
import re

from architecture.conftest import Template
from fakes.repository import REPOSITORY

PAGE = (REPOSITORY / "docs" / "kubernetes.md").read_text(encoding="utf-8")
(STATEMENT,) = json.loads(re.findall(r"```json\n(.*?)```", PAGE, flags=re.DOTALL)[0])["Statement"]


def test_the_ram_role_trusts_the_roles_of_the_functions_that_sign_in_and_no_others(template: Template) -> None:
    signing_in = [each["Ref"] for each in template.resources["KubernetesPolicy"]["Properties"]["Roles"]]
    output = template.outputs["AlibabaSubjects"]
    (equals,) = STATEMENT["Condition"].values()

    assert STATEMENT["Condition"].keys() == {"StringEquals"}
    assert [re.split("[/-]", subject)[2] for subject in equals["oidc:sub"]] == signing_in
    assert equals.keys() == {"oidc:iss", "oidc:aud", "oidc:sub"}
    assert output["Value"] == {"Fn::Join": [",", [{"Fn::GetAtt": [role, "Arn"]} for role in signing_in]]}


def test_every_function_that_may_issue_a_token_is_among_them(template: Template) -> None:
    issuing = template.allowing("sts:GetWebIdentityToken")
    signing_in = {each["Ref"] for each in template.resources["KubernetesPolicy"]["Properties"]["Roles"]}

    assert {name.removesuffix("Function") + "Role" for name in issuing} == signing_in


def test_the_page_names_every_parameter_of_clusters(template: Template) -> None:
    kinds = ("Ack", "Acs", "Alibaba", "Oss", "Kubernetes")
    named = [each for each in template.parameters if each.startswith(kinds)]

    assert len(named) > 10
    assert [each for each in named if f"`{each}`" not in PAGE] == []
