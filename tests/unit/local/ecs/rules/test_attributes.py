from typing import Any

import pytest

from relaunch_local.ecs.errors import EcsError
from relaunch_local.ecs.rules.attributes import check_attributes, check_custom_count

ARN = "arn:aws:ecs:us-east-1:111122223333:container-instance/c/0123"


def attribute(name: str = "stack", **members: Any) -> dict[str, Any]:
    return {"name": name, "targetId": ARN, **members}


@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param([attribute("a-B_1/2\\3.4", value="a b@c:d/e\\f.g_h-i")], id="all-characters"),
        pytest.param([attribute("n" * 128, value="v" * 128)], id="longest"),
        pytest.param([attribute()], id="without-value"),
        pytest.param([attribute(targetId="0123", targetType="container-instance")], id="short-id"),
        pytest.param([attribute(str(number)) for number in range(10)], id="attributes-10"),
    ],
)
def test_valid_attributes_pass(attributes: list[dict[str, Any]]) -> None:
    check_attributes(attributes)


@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param([], id="none"),
        pytest.param([attribute(str(number)) for number in range(11)], id="attributes-11"),
        pytest.param([attribute("")], id="no-name"),
        pytest.param([attribute("n" * 129)], id="long-name"),
        pytest.param([attribute("a b")], id="name-with-space"),
        pytest.param([attribute("stack\n")], id="name-with-line-feed"),
        pytest.param([attribute(value="")], id="empty-value"),
        pytest.param([attribute(value="v" * 129)], id="long-value"),
        pytest.param([attribute(value=" v")], id="leading-space"),
        pytest.param([attribute(value="v ")], id="trailing-space"),
        pytest.param([attribute(value="a,b")], id="value-with-comma"),
        pytest.param([attribute(targetId="0123")], id="short-id-without-type"),
        pytest.param([attribute(targetType="task")], id="other-type"),
        pytest.param([{"name": "stack"}], id="no-target"),
    ],
)
def test_invalid_attributes_are_refused(attributes: list[dict[str, Any]]) -> None:
    with pytest.raises(EcsError, match="InvalidParameterException"):
        check_attributes(attributes)


def test_an_instance_has_at_most_ten_attributes_beside_those_of_ecs() -> None:
    names = ["ecs.os-type", "com.amazonaws.ecs.capability.ecr-auth", *(f"a{number}" for number in range(11))]

    check_custom_count(names[:-1])
    with pytest.raises(EcsError, match="AttributeLimitExceededException"):
        check_custom_count(names)
