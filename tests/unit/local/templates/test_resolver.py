from typing import Any

import pytest

from relaunch_local.templates.document import TemplateDocument
from relaunch_local.templates.resolver import Resolver

CONDITIONS = {
    "IsNamed": {"Fn::Not": [{"Fn::Equals": [{"Ref": "Name"}, ""]}]},
    "IsOther": {"Fn::Equals": [{"Ref": "Name"}, "other"]},
    "Both": {"Fn::And": [{"Condition": "IsNamed"}, {"Condition": "IsOther"}]},
    "Neither": {"Fn::Not": [{"Condition": "Either"}]},
    "Either": {"Fn::Or": [{"Condition": "IsNamed"}, {"Condition": "IsOther"}]},
}
TEMPLATE = TemplateDocument({"Name": {"Default": ""}}, CONDITIONS, {"Queue": {"Type": "AWS::SQS::Queue"}})


@pytest.mark.parametrize(
    ("name", "holding"),
    [("", {"Neither"}), ("some", {"IsNamed", "Either"}), ("other", {"IsNamed", "IsOther", "Both", "Either"})],
)
def test_conditions_hold_by_the_parameters(name: str, holding: set[str]) -> None:
    resolver = Resolver(TEMPLATE, Name=name)

    assert {each for each in CONDITIONS if resolver.holds(each)} == holding


@pytest.mark.parametrize(
    ("value", "resolved"),
    [
        ({"Ref": "Name"}, "n"),
        ({"Ref": "AWS::Region"}, "us-east-1"),
        ({"Fn::GetAtt": ["Queue", "Arn"]}, "arn:queue"),
        ({"Fn::GetAtt": ["Queue", "Url"]}, "Queue.Url"),
        ({"Fn::Sub": "${Name}/${Queue.Arn}/${AWS::Region}"}, "n/arn:queue/us-east-1"),
        ({"Fn::Sub": ["${A}-${Name}", {"A": {"Ref": "Name"}}]}, "n-n"),
        ({"Fn::Split": [",", {"Fn::Join": [",", ["a", "b"]]}]}, ["a", "b"]),
        ({"Fn::Select": [1, ["a", "b"]]}, "b"),
        ([{"Fn::If": ["IsNamed", "yes", "no"]}, {"Ref": "AWS::NoValue"}], ["yes"]),
        ({"A": {"Ref": "AWS::NoValue"}, "B": 1}, {"B": 1}),
    ],
)
def test_functions_are_replaced(value: Any, resolved: Any) -> None:
    assert Resolver(TEMPLATE, Name="n", **{"Queue.Arn": "arn:queue"}).resolve(value) == resolved


def test_an_unknown_function_is_an_error() -> None:
    with pytest.raises(ValueError, match="Fn::Cidr"):
        Resolver(TEMPLATE).resolve({"Fn::Cidr": ["10.0.0.0/16", 4, 8]})
