import re
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.core.placement import (
    MAX_EXPRESSION_LENGTH,
    Expression,
    InvalidExpressionError,
    all_of,
    attribute_exists,
    attribute_in,
    attribute_is,
    ec2_instance_is,
    instance_type_is,
)
from relaunch_local.ecs.query_language import parse_expression

MACHINE = {
    "ec2InstanceId": "i-0123456789abcdef0",
    "attribute:ecs.instance-type": "g5.xlarge",
    "attribute:ecs.availability-zone": "us-east-1b",
    "attribute:relaunch.gpu": "A10G",
}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param(instance_type_is("g5.xlarge"), "attribute:ecs.instance-type == g5.xlarge", id="instance-type"),
        pytest.param(instance_type_is("P5.48xLarge"), "attribute:ecs.instance-type == p5.48xlarge", id="lower-case"),
        pytest.param(
            instance_type_is("u-24tb1.112xlarge"), "attribute:ecs.instance-type == u-24tb1.112xlarge", id="with-dash"
        ),
        pytest.param(instance_type_is("mac2-m2pro.metal"), "attribute:ecs.instance-type == mac2-m2pro.metal", id="mac"),
        pytest.param(attribute_exists("relaunch.gpu"), "attribute:relaunch.gpu exists", id="exists"),
        pytest.param(
            attribute_in("ecs.availability-zone", ["us-east-1a", "us-east-1b", "us-east-1a"]),
            "attribute:ecs.availability-zone in [us-east-1a, us-east-1b]",
            id="in-list-once-each",
        ),
        pytest.param(
            all_of(ec2_instance_is("i-0123456789abcdef0"), instance_type_is("g5.xlarge")),
            "ec2InstanceId == i-0123456789abcdef0 and attribute:ecs.instance-type == g5.xlarge",
            id="composed",
        ),
        pytest.param(
            all_of(all_of(attribute_exists("a"), attribute_exists("b")), attribute_exists("a")),
            "attribute:a exists and attribute:b exists",
            id="composed-twice-says-it-once",
        ),
    ],
)
def test_expression_is_written_in_the_query_language(expression: Expression, expected: str) -> None:
    assert str(expression) == expected


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        pytest.param(instance_type_is("g5.xlarge"), True, id="its-type"),
        pytest.param(instance_type_is("g5.2xlarge"), False, id="another-type"),
        pytest.param(attribute_exists("relaunch.gpu"), True, id="attribute-there"),
        pytest.param(attribute_exists("relaunch.neuron"), False, id="attribute-missing"),
        pytest.param(attribute_in("ecs.availability-zone", ["us-east-1a", "us-east-1b"]), True, id="in-its-zone"),
        pytest.param(attribute_in("ecs.availability-zone", ["us-east-1a"]), False, id="not-in-its-zone"),
        pytest.param(all_of(instance_type_is("g5.xlarge"), attribute_exists("relaunch.gpu")), True, id="both"),
        pytest.param(all_of(instance_type_is("g5.xlarge"), attribute_exists("nothing")), False, id="only-one"),
        pytest.param(ec2_instance_is("i-0123456789abcdef0"), True, id="this-machine"),
    ],
)
def test_expression_means_what_it_says(expression: Expression, holds: bool) -> None:
    assert parse_expression(str(expression)).holds(MACHINE.get) is holds


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda: instance_type_is("g5"), id="no-size"),
        pytest.param(lambda: instance_type_is("g5.xlarge or true"), id="smuggled-operator"),
        pytest.param(lambda: instance_type_is("g5.xlarge\n"), id="trailing-newline"),
        pytest.param(lambda: instance_type_is(""), id="no-type"),
        pytest.param(lambda: ec2_instance_is("i-12 or ec2InstanceId exists"), id="smuggled-clause"),
        pytest.param(lambda: ec2_instance_is("mi-0123"), id="not-ec2"),
        pytest.param(lambda: attribute_is("a", "two words"), id="blank-in-value"),
        pytest.param(lambda: attribute_is("a", "and"), id="operator-as-value"),
        pytest.param(lambda: attribute_is("a", "x" * 129), id="value-too-long"),
        pytest.param(lambda: attribute_exists("x" * 129), id="name-too-long"),
        pytest.param(lambda: attribute_exists("a b"), id="blank-in-name"),
        pytest.param(lambda: attribute_exists(""), id="no-name"),
        pytest.param(lambda: attribute_in("a", []), id="empty-list"),
        pytest.param(lambda: attribute_in("a", ["b", "c]"]), id="bracket-in-list"),
        pytest.param(lambda: attribute_in("a", ["b, c"]), id="comma-in-value"),
        pytest.param(lambda: attribute_is("ä", "b"), id="not-ascii"),
        pytest.param(all_of, id="nothing"),
        pytest.param(lambda: Expression(("garbage",)), id="written-by-hand"),
        pytest.param(lambda: Expression(("attribute:a == b and attribute:c == d",)), id="two-clauses-in-one"),
    ],
)
def test_what_is_not_in_the_language_cannot_be_built(build: Callable[[], Expression]) -> None:
    with pytest.raises(InvalidExpressionError):
        build()


def test_expression_of_2000_characters_is_the_longest() -> None:
    longest = attribute_in("a", [f"{n:04}" + "x" * 93 for n in range(19)])
    room = MAX_EXPRESSION_LENGTH - len(str(longest)) - len(" and attribute: exists")

    assert len(str(all_of(longest, attribute_exists("y" * room)))) == MAX_EXPRESSION_LENGTH
    with pytest.raises(InvalidExpressionError, match="2001 characters"):
        all_of(longest, attribute_exists("y" * (room + 1)))


WORD = st.text(max_size=12)


@given(name=WORD, values=st.lists(WORD, max_size=4))
def test_everything_that_can_be_built_parses(name: str, values: list[str]) -> None:
    for build in (partial(attribute_in, name, values), partial(attribute_is, name, "".join(values))):
        try:
            text = str(build())
        except InvalidExpressionError:
            continue
        assert parse_expression(text)
        assert re.fullmatch(r"[ -~]+", text)
