import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.action_services import JOB_API_URL, ROLE, action_inputs
from relaunch_action.errors import ActionError
from relaunch_action.inputs import VARIABLE, parse_inputs


def test_the_defaults_submit_and_do_not_wait() -> None:
    inputs = parse_inputs(action_inputs())

    assert (inputs.definition, inputs.region, inputs.inputs) == ("resnet", "us-east-1", {})
    assert (inputs.wait, inputs.dry_run, inputs.cancel_with_workflow) == (False, False, False)
    assert (inputs.wait_seconds, inputs.role_arn, inputs.idempotency_key) == (330 * 60, "", "")


def test_a_workflow_without_inputs_has_none() -> None:
    assert parse_inputs(action_inputs(inputs="null")).inputs == {}


def test_all_inputs_are_read() -> None:
    inputs = parse_inputs(
        action_inputs(
            url="https://jobs.acme.example/",
            role_to_assume=ROLE,
            aws_region="eu-central-1",
            idempotency_key=" nightly ",
            image_tag=" 4b1d8e6 ",
            wait="true",
            wait_timeout_minutes="5",
            dry_run="true",
            cancel_with_workflow="true",
        )
    )

    assert (inputs.url, inputs.role_arn, inputs.region) == ("https://jobs.acme.example/", ROLE, "eu-central-1")
    assert (inputs.wait, inputs.dry_run, inputs.cancel_with_workflow, inputs.wait_seconds) == (True, True, True, 300)
    assert (inputs.idempotency_key, inputs.image_tag) == ("nightly", "4b1d8e6")


def test_inputs_of_a_workflow_come_as_texts_whatever_their_type() -> None:
    inputs = parse_inputs(
        action_inputs(inputs='{"steps": 200, "rate": 0.1, "fast": true, "note": "a\\nb", "none": ""}')
    )

    assert inputs.inputs == {"steps": "200", "rate": "0.1", "fast": "true", "note": "a\nb", "none": ""}


def test_the_region_is_that_of_the_url_then_that_of_an_earlier_step() -> None:
    elsewhere = action_inputs(url="https://jobs.acme.example/") | {"AWS_REGION": "eu-west-1"}

    assert parse_inputs(action_inputs() | {"AWS_REGION": "eu-west-1"}).region == "us-east-1"
    assert parse_inputs(elsewhere).region == "eu-west-1"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param({"definition": ""}, "the input definition is missing", id="no-definition"),
        pytest.param({"url": ""}, "the input url is missing", id="no-url"),
        pytest.param({"url": JOB_API_URL.replace("https", "http")}, "JobApiUrl, which begins with https", id="http"),
        pytest.param({"url": "https://[::1/"}, "write the stack's output JobApiUrl", id="no-host"),
        pytest.param({"url": "https://jobs.acme.example:99999/"}, "write the stack's output JobApiUrl", id="no-port"),
        pytest.param({"url": "https://jobs.acm\u00e9.example/"}, "write the stack's output JobApiUrl", id="no-ascii"),
        pytest.param({"url": "https://jobs acme.example/"}, "write the stack's output JobApiUrl", id="space"),
        pytest.param({"url": "relaunch-JobApi"}, "write the stack's output JobApiUrl", id="a-name"),
        pytest.param({"url": f"{JOB_API_URL}?a=b"}, "write the stack's output JobApiUrl", id="query"),
        pytest.param({"url": "https://me@jobs.acme.example/"}, "write the stack's output JobApiUrl", id="user"),
        pytest.param({"url": "https://jobs.acme.example/"}, "aws-region is '': write the stack's region", id="region"),
        pytest.param({"aws_region": "eu central"}, "write the stack's region", id="region-form"),
        pytest.param({"role_to_assume": "ci-vision"}, "write the ARN of an IAM role", id="role"),
        pytest.param({"wait": "yes"}, "wait is 'yes': write true or false", id="wait"),
        pytest.param({"dry_run": "True"}, "dry-run is 'True': write true or false", id="dry-run"),
        pytest.param({"wait_timeout_minutes": "1.5"}, "a whole number from 1 to 7200", id="minutes"),
        pytest.param({"wait_timeout_minutes": "0"}, "a whole number from 1 to 7200", id="no-minutes"),
        pytest.param({"wait_timeout_minutes": "7201"}, "a whole number from 1 to 7200", id="too-many-minutes"),
        pytest.param({"inputs": "steps: 200"}, 'write for example {"learning_rate"', id="no-json"),
        pytest.param({"inputs": "[]"}, "names and values between braces", id="list"),
        pytest.param({"inputs": '{"a": null}'}, "no text, number or boolean as the value of 'a'", id="null"),
        pytest.param({"inputs": '{"a": {"b": 1}}'}, "no text, number or boolean as the value of 'a'", id="object"),
        pytest.param({"definition": 5}, "the input definition is missing", id="no-text"),
    ],
)
def test_a_wrong_input_is_named_with_what_to_write(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ActionError) as refused:
        parse_inputs(action_inputs(**given))

    assert words in str(refused.value)


def test_all_errors_are_told_at_once() -> None:
    with pytest.raises(ActionError) as refused:
        parse_inputs(action_inputs(definition="", wait="maybe", inputs="{"))

    assert [name in str(refused.value) for name in ("definition", "wait", "inputs")] == [True, True, True]


@pytest.mark.parametrize("text", [None, "", "{", "[]"])
def test_without_the_runners_json_the_action_says_how_it_is_used(text: str | None) -> None:
    with pytest.raises(ActionError, match=r"use the action by its action\.yml"):
        parse_inputs({} if text is None else {VARIABLE: text})


ODDITIES = ["[" * 70_000, '{"a": 1e400, "b": NaN}', "https://[::1", "https://a:99999/", "٣", "\ud800", "true", "null"]
TEXTS = st.text(max_size=12) | st.sampled_from(ODDITIES)


@given(
    given_inputs=st.dictionaries(st.sampled_from(sorted(json.loads(action_inputs()[VARIABLE]))), TEXTS | st.integers())
)
def test_whatever_the_inputs_are_they_are_read_or_refused_in_words(given_inputs: dict[str, Any]) -> None:
    inputs = {**json.loads(action_inputs()[VARIABLE]), **given_inputs}

    with suppress(ActionError):
        parse_inputs({VARIABLE: json.dumps(inputs)})


def test_endless_nesting_is_no_json() -> None:
    with pytest.raises(ActionError, match="the input inputs is no JSON"):
        parse_inputs(action_inputs(inputs="[" * 70_000))
    with pytest.raises(ActionError, match=r"has no JSON: use the action by its action\.yml"):
        parse_inputs({VARIABLE: "[" * 70_000})
