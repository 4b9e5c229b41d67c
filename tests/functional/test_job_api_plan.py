"""Plans of job_api: what a job would run on, while nothing is stored or launched."""

from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from fakes.busy_stack import BusyStack
from fakes.sources import FakeRevisions
from fakes.webhook import load_event
from relaunch.adapters.messages.job_api import published_schema
from relaunch.core.definitions.definition import InputRule, JobDefinition
from relaunch.ports import TransientError

ANSWER = {**published_schema(), "$ref": "#/$defs/Answer"}
PLAN = {"action": "plan", "definition": "resnet"}


def ask(stack: BusyStack, request: object = None) -> dict[str, Any]:
    answer = stack.functions.invoke("job_api", PLAN if request is None else request)
    jsonschema.Draft202012Validator(ANSWER, format_checker=jsonschema.FormatChecker()).validate(answer)
    return answer


def with_definition(stack: BusyStack, **changes: Any) -> BusyStack:
    definitions = stack.functions.deps.definitions
    (definition,) = definitions.list_definitions()
    assert isinstance(definition, JobDefinition)
    definitions.save_definition(replace(definition, **changes))
    return stack


def test_the_sample_says_what_a_job_would_run_on_and_starts_none() -> None:
    stack = BusyStack()

    plan = ask(stack, load_event("job_api.plan"))["plan"]

    assert plan["problem"] == plan["rejection"] == ""
    assert plan["definition"] == "resnet"
    assert ":task-definition/" in plan["revision_arn"]
    assert plan["kept"] >= len(plan["offerings"]) >= 1
    assert plan["offerings"][0]["offering"].split()[1] in {"spot", "on-demand"}
    assert stack.started == []


def test_what_rejects_all_offerings_is_told_and_counted() -> None:
    stack = with_definition(BusyStack(), max_price_usd_per_hour=0.0001)

    plan = ask(stack)["plan"]

    assert (plan["kept"], plan["offerings"]) == (0, [])
    assert "0.0001" in plan["problem"] + plan["rejection"]
    assert sum(each["rejected"] for each in plan["rejections"]) > 0


def test_a_definition_that_can_never_run_says_why() -> None:
    stack = BusyStack()
    revisions = FakeRevisions()
    revisions.active.clear()
    stack.functions.deps = replace(stack.functions.deps, revisions=revisions)

    plan = ask(stack)["plan"]

    assert plan["problem"]
    assert plan["revision_arn"] == ""


@pytest.mark.parametrize(
    ("request_", "code", "words"),
    [
        pytest.param({**PLAN, "definition": "resnt"}, "UnknownDefinition", "resnet", id="definition"),
        pytest.param({**PLAN, "inputs": {"steps": "many"}}, "InvalidInputs", "steps", id="inputs"),
        pytest.param({**PLAN, "inputs": {"stesp": "1"}}, "InvalidInputs", "'stesp' is not declared", id="undeclared"),
        pytest.param({**PLAN, "idempotency_key": "k"}, "InvalidRequest", "idempotency_key", id="a-key-plans-nothing"),
    ],
)
def test_a_request_that_would_start_nothing_is_refused_as_its_submission_would_be(
    request_: dict[str, Any], code: str, words: str
) -> None:
    stack = with_definition(BusyStack(), inputs={"steps": InputRule("[0-9]+", "1")})

    error = ask(stack, request_)["error"]

    assert error["code"] == code
    assert words in error["message"]


def test_an_outage_of_what_a_plan_reads_is_worth_another_call() -> None:
    stack = BusyStack()

    class NoOfferings:
        def __getattr__(self, _: str) -> Any:
            raise TransientError("DynamoDB does not answer")

    stack.functions.deps = replace(stack.functions.deps, offerings=NoOfferings())

    with pytest.raises(TransientError):
        stack.functions.invoke("job_api", PLAN)
