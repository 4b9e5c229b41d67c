import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.adapters.aws.ecs.placement_constraints import (
    InvalidExpressionError,
    ec2_instance_is,
    instance_type_is,
    is_none_of,
)
from relaunch.core.task_definitions.query_language import parse_expression

MACHINE = {"ec2InstanceId": "i-0123456789abcdef0", "attribute:ecs.instance-type": "g5.xlarge"}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param(instance_type_is("g5.xlarge"), "attribute:ecs.instance-type == g5.xlarge", id="instance-type"),
        pytest.param(instance_type_is("P5.48xLarge"), "attribute:ecs.instance-type == p5.48xlarge", id="lower-case"),
        pytest.param(
            instance_type_is("u-24tb1.112xlarge"), "attribute:ecs.instance-type == u-24tb1.112xlarge", id="with-dash"
        ),
        pytest.param(instance_type_is("mac2-m2pro.metal"), "attribute:ecs.instance-type == mac2-m2pro.metal", id="mac"),
        pytest.param(ec2_instance_is("i-0a1b2c3d"), "ec2InstanceId == i-0a1b2c3d", id="machine"),
        pytest.param(
            is_none_of(ec2_instance_is("i-1"), ["i-2", "i-3"]),
            "ec2InstanceId == i-1 and ec2InstanceId !in [i-2, i-3]",
            id="other-machines",
        ),
        pytest.param(is_none_of("runningTasksCount == 0", []), "runningTasksCount == 0", id="any-machine"),
    ],
)
def test_expression_is_written_in_the_query_language(expression, expected):
    assert expression == expected


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        pytest.param(instance_type_is("g5.xlarge"), True, id="its-type"),
        pytest.param(instance_type_is("g5.2xlarge"), False, id="another-type"),
        pytest.param(ec2_instance_is("i-0123456789abcdef0"), True, id="this-machine"),
        pytest.param(ec2_instance_is("i-0123456789abcdef1"), False, id="another-machine"),
        pytest.param(is_none_of(instance_type_is("g5.xlarge"), ["i-1", "i-0123456789abcdef0"]), False, id="avoided"),
        pytest.param(is_none_of(instance_type_is("g5.xlarge"), ["i-1"]), True, id="not-avoided"),
    ],
)
def test_expression_means_what_it_says(expression, holds):
    assert parse_expression(expression).holds(MACHINE.get) is holds


@pytest.mark.parametrize(
    ("build", "name", "words"),
    [
        pytest.param(instance_type_is, "g5", "no instance type: 'g5'", id="no-size"),
        pytest.param(instance_type_is, "G5.xlarge or true", "'G5.xlarge or true'", id="smuggled-operator"),
        pytest.param(instance_type_is, "g5.xlarge\n", "no instance type", id="trailing-newline"),
        pytest.param(instance_type_is, "g5ä.xlarge", "no instance type", id="not-ascii"),
        pytest.param(instance_type_is, "", "no instance type: ''", id="no-type"),
        pytest.param(ec2_instance_is, "i-12 or ec2InstanceId exists", "no EC2 instance", id="smuggled-clause"),
        pytest.param(ec2_instance_is, "mi-0123", "no EC2 instance: 'mi-0123'", id="not-ec2"),
        pytest.param(
            lambda name: is_none_of("x", ["i-1", name]), "mi-2", "no EC2 instance: 'mi-2'", id="avoids-not-ec2"
        ),
        pytest.param(ec2_instance_is, "", "no EC2 instance: ''", id="no-id"),
    ],
)
def test_what_is_not_in_the_language_cannot_be_built(build, name, words):
    with pytest.raises(InvalidExpressionError, match=re.escape(words)):
        build(name)


@given(st.text(max_size=12) | st.from_regex(r"[a-zA-Z0-9.-]{1,12}"))
def test_everything_that_can_be_built_parses(name):
    for build in (instance_type_is, ec2_instance_is):
        try:
            text = build(name)
        except InvalidExpressionError:
            continue
        assert parse_expression(text)
        assert text.isascii()
        assert text.isprintable()
