"""The distribution in front of the webhook lets through what the webhook needs, unchanged."""

import re
from typing import Any

import pytest
import yaml

from fakes.repository import REPOSITORY
from relaunch.adapters.github.origin_header import HEADER


class _Loader(yaml.SafeLoader):
    """Reads a template; functions of CloudFormation become their arguments."""


def _argument(loader: yaml.SafeLoader, _tag: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)  # type: ignore[arg-type]


_Loader.add_multi_constructor("!", _argument)  # type: ignore[no-untyped-call]


def read(file: str) -> Any:
    return yaml.load((REPOSITORY / file).read_text(encoding="utf-8"), _Loader)  # noqa: S506 - a SafeLoader


@pytest.fixture(scope="module")
def edge() -> Any:
    return read("examples/edge/template.yaml")


@pytest.fixture(scope="module")
def distribution(edge: Any) -> Any:
    return edge["Resources"]["Distribution"]["Properties"]["DistributionConfig"]


def test_a_signed_post_reaches_the_webhook_as_it_was_sent(distribution: Any) -> None:
    behavior = distribution["DefaultCacheBehavior"]

    assert "POST" in behavior["AllowedMethods"]
    # The managed policies CachingDisabled and AllViewerExceptHostHeader.
    assert behavior["CachePolicyId"] == "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"
    assert behavior["OriginRequestPolicyId"] == "b689b0a8-53d0-40ab-baf2-68738e2966ac"
    assert not {"FunctionAssociations", "LambdaFunctionAssociations"} & set(behavior)


def test_the_origin_gets_the_header_that_the_webhook_requires(distribution: Any) -> None:
    (origin,) = distribution["Origins"]

    assert origin["OriginCustomHeaders"] == [{"HeaderName": HEADER, "HeaderValue": "OriginSecret"}]
    assert origin["CustomOriginConfig"]["OriginProtocolPolicy"] == "https-only"


def test_the_secret_of_the_distribution_is_one_that_the_stack_takes(edge: Any) -> None:
    secrets = read("template.yaml")["Parameters"]["OriginSecrets"]

    for secret in ("a" * 31, "a" * 32, "Z9" * 32, "a" * 65, "a" * 31 + ","):
        is_taken = re.fullmatch(edge["Parameters"]["OriginSecret"]["AllowedPattern"], secret) is not None
        assert is_taken == (re.fullmatch(secrets["AllowedPattern"], secret) is not None)
    assert secrets["NoEcho"] is True
    assert re.fullmatch(secrets["AllowedPattern"], f"{'a' * 32},{'b' * 32}")
    assert re.fullmatch(secrets["AllowedPattern"], secrets["Default"])


def test_everybody_but_github_is_blocked_before_requests_are_counted(edge: Any) -> None:
    acl = edge["Resources"]["WebAcl"]["Properties"]
    first, second = sorted(acl["Rules"], key=lambda rule: rule["Priority"])

    sets = first["Statement"]["NotStatement"]["Statement"]["OrStatement"]["Statements"]
    assert [each["IPSetReferenceStatement"]["Arn"] for each in sets] == ["HookIpv4.Arn", "HookIpv6.Arn"]
    assert second["Statement"]["RateBasedStatement"]["Limit"] == "RequestsPerFiveMinutes"
    assert first["Action"] == second["Action"] == {"Block": {}}
