from typing import Any

import pytest

from relaunch_local.simulation.aws.event_patterns import matches


@pytest.mark.parametrize(
    ("wanted", "found", "is_match"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ({"prefix": "in/"}, "in/1", True),
        ({"prefix": "in/"}, "out/in/", False),
        ({"suffix": ".csv"}, "1.csv", True),
        ({"suffix": ".csv"}, "1.csv.gz", False),
        ({"wildcard": "in/*.csv"}, "in/\n/1.csv", True),
        ({"wildcard": "in/*.csv"}, "in/1.csv.gz", False),
        ({"wildcard": r"\*\\*"}, "*\\a", True),
        ({"wildcard": r"\*\\*"}, "a\\a", False),
        ({"prefix": "1"}, 1, False),
        (0, 0, True),
        (0, "0", False),
        (True, True, True),
        ({"exists": True}, "a", True),
        ({"exists": False}, "a", False),
        ({"exists": True}, None, False),
        ({"exists": False}, None, True),
    ],
)
def test_a_value_matches_as_its_operator_says(wanted: Any, found: object, is_match: bool) -> None:
    assert matches({"detail": {"key": [wanted]}}, {"detail": {"key": found}}) is is_match


def test_every_key_must_match_and_the_elements_of_an_array_are_alternatives() -> None:
    pattern = {"source": ["aws.s3"], "detail": {"key": ["a", {"prefix": "b"}]}}

    assert matches(pattern, {"source": "aws.s3", "detail": {"key": "b1"}})
    assert not matches(pattern, {"source": "aws.ecr", "detail": {"key": "a"}})
    assert not matches(pattern, {"source": "aws.s3", "detail": "a"})


@pytest.mark.parametrize(
    ("attributes", "is_match"),
    [
        ([{"name": "ecs.instance-type", "value": "g5.xlarge"}, {"name": "relaunch.machine", "value": "m-1"}], True),
        ([{"name": "ecs.instance-type", "value": "relaunch.machine"}], False),
        (["relaunch.machine"], False),
        ([], False),
        (None, False),
    ],
)
def test_an_array_matches_if_one_of_its_members_does(attributes: object, is_match: bool) -> None:
    pattern = {"detail": {"attributes": {"name": ["relaunch.machine"]}}}

    assert matches(pattern, {"detail": {"attributes": attributes}}) is is_match
    assert matches({"key": ["a"]}, {"key": ["b", "a"]})
    assert not matches({"key": ["a"]}, {"key": ["b"]})


def test_an_operator_that_is_not_known_is_no_match_in_disguise() -> None:
    with pytest.raises(ValueError, match="unknown operator 'cidr'"):
        matches({"key": [{"cidr": "10.0.0.0/24"}]}, {"key": "10.0.0.1"})
