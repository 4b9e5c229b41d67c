"""plan_api: what a definition file that is not applied would change and where its jobs would run; nothing is stored."""

import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from fakes.builders import make_instance_type, make_offering
from fakes.busy_stack import BusyStack
from fakes.definitions import EXAMPLE
from fakes.repository import REPOSITORY
from fakes.webhook import load_event
from relaunch.adapters.messages.plan_api import published_schema
from relaunch.core.revisions.revision import TaskDefinitionGrants
from relaunch.ports import TransientError

ANSWER = {**published_schema(), "$ref": "#/$defs/Answer"}
SMALL = """
jobs:
  resnet:
    task_definition: trainer
    accelerator: {gpu: {count: 1}}
"""


def ask(request: object, stack: BusyStack | None = None) -> dict[str, Any]:
    stack = stack or BusyStack()
    before = stack.functions.deps.definitions.list_definitions()
    answer: dict[str, Any] = stack.functions.invoke("plan_api", request)
    jsonschema.Draft202012Validator(ANSWER).validate(answer)
    assert stack.started == []
    assert stack.functions.deps.definitions.list_definitions() == before
    return answer


def compare(definitions: str | None, base: str | None = None, stack: BusyStack | None = None) -> dict[str, Any]:
    answer: dict[str, Any] = ask({"action": "compare", "definitions": definitions, "base": base}, stack)["comparison"]
    return answer


def test_the_sample_says_what_is_changed_and_where_it_would_run() -> None:
    (found,) = ask(load_event("plan_api.compare"))["comparison"]["definitions"]

    assert (found["definition"], found["kind"]) == ("resnet", "changed")
    assert found["changes"] == [
        {"key": "accelerator.gpu.memory", "before": "16GiB", "after": "20GiB"},
        {"key": "max_price_per_hour", "before": "4.0", "after": "2.5"},
    ]
    assert found["plan"]["offerings"][0]["price_usd_per_hour"] > 0
    assert ":task-definition/" in found["plan"]["revision_arn"]


def test_a_new_definition_is_shown_with_all_its_keys() -> None:
    (found,) = compare(EXAMPLE)["definitions"]

    assert found["kind"] == "added"
    assert {"task_definition", "on[0].github.branches", "accelerator.gpu.memory"} <= {
        each["key"] for each in found["changes"]
    }
    assert {each["before"] for each in found["changes"]} == {""}
    assert found["plan"]["offerings"]


def test_what_is_removed_or_as_it_was_is_not_planned() -> None:
    same = compare(EXAMPLE, f"# another text of the same meaning\n{EXAMPLE}")
    gone = compare(None, EXAMPLE)

    for answer, kind in ((same, "unchanged"), (gone, "removed")):
        (found,) = answer["definitions"]
        assert (found["kind"], found["changes"], found["plan"]) == (kind, [], None)


def test_an_invalid_file_is_answered_with_its_problems() -> None:
    answer = compare(SMALL.replace("accelerator", "acelerator"), SMALL)

    assert answer["definitions"] == []
    assert (
        "relaunch.yaml:5:5: jobs.resnet.acelerator: unknown key `acelerator`; did you mean `accelerator`?"
        in answer["problems"]
    )


def test_a_base_that_cannot_be_read_makes_every_definition_new() -> None:
    answer = compare(SMALL, "jobs: [")

    assert "not valid YAML" in answer["base_problem"]
    assert [each["kind"] for each in answer["definitions"]] == ["added"]


def test_a_definition_that_the_stack_would_refuse_says_so() -> None:
    stack = BusyStack()
    limits = stack.functions.deps.limits
    grants = TaskDefinitionGrants(families=("vision-*",))
    stack.functions.deps = replace(stack.functions.deps, limits=replace(limits, task_definitions=grants))

    (found,) = compare(SMALL, stack=stack)["definitions"]

    assert "vision-*" in found["plan"]["problem"]


def test_a_deadline_that_rests_on_an_unknown_machine_says_so() -> None:
    stack = BusyStack()
    slow = make_offering(make_instance_type("g4dn.xlarge", accelerator_model="T4"))
    stack.functions.deps.offerings.available += (slow,)
    bare = f"{SMALL}    estimated_duration: 20h\n    deadline: 36h\n"

    (found,) = compare(bare, stack=stack)["definitions"]
    (measured,) = compare(bare.replace("20h", "{on: A10G, hours: 20}"), stack=stack)["definitions"]

    assert found["plan"]["problem"].startswith("`estimated_duration` has to say on what it was measured, for a ")
    assert measured["plan"]["problem"] == ""


def test_no_more_definitions_are_planned_than_a_request_may_cost() -> None:
    many = "jobs:\n" + "".join(
        f"  job-{number}: {{task_definition: trainer, accelerator: {{gpu: {{count: 1}}}}}}\n" for number in range(60)
    )

    answer = compare(many)

    assert len(answer["definitions"]) == 50
    assert answer["left_out"] == 10
    assert sum(each["plan"] is not None for each in answer["definitions"]) == 10


def test_texts_of_a_stranger_come_back_cut() -> None:
    inputs = "".join(f"      input_{number}: {{pattern: x+, default: {'x' * 400}}}\n" for number in range(20))
    jobs = "".join(f"{SMALL.replace('resnet', f'job-{number}')}    inputs:\n{inputs}" for number in range(20))
    answer = compare("jobs:" + jobs.replace("\njobs:", ""))

    changes = [change for each in answer["definitions"] for change in each["changes"]]
    assert len(changes) == 300
    assert answer["definitions"][-1]["left_out"] == 42
    assert max(len(each["after"]) for each in changes) == 300


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param({"action": "submit", "definition": "resnet"}, id="a-submission"),
        pytest.param({"action": "plan", "definition": "resnet"}, id="what-job_api-plans"),
        pytest.param({"action": "compare"}, id="nothing-to-compare"),
        pytest.param({"action": "compare", "definitions": "x" * 250_001}, id="too-long"),
        pytest.param({"action": "compare", "definitions": "", "apply": True}, id="an-unknown-member"),
        pytest.param(None, id="null"),
    ],
)
def test_anything_else_is_refused(request_: object) -> None:
    assert ask(request_)["error"]["code"] == "InvalidRequest"


def by_url(body: str, **changes: Any) -> dict[str, Any]:
    return {**load_event("function-url.job-api"), "body": body, **changes}


def test_by_its_url_an_answer_has_a_status() -> None:
    stack = BusyStack()
    request = json.dumps({"action": "compare", "definitions": SMALL})

    answers = [stack.functions.invoke("plan_api", by_url(each)) for each in (request, "{", "{}")]

    assert [each["statusCode"] for each in answers] == [200, 400, 400]
    assert json.loads(answers[0]["body"])["comparison"]["definitions"][0]["kind"] == "added"


def test_a_url_without_a_caller_is_closed() -> None:
    event = by_url("{}")
    event["requestContext"]["authorizer"] = {}

    assert BusyStack().functions.invoke("plan_api", event)["statusCode"] == 401


def test_an_outage_may_pass() -> None:
    stack = BusyStack()

    class Down:
        def offerings(self, _now: object, _options: object) -> None:
            raise TransientError("EC2 is down")

    stack.functions.deps = replace(stack.functions.deps, offerings=Down())  # type: ignore[arg-type]
    request = {"action": "compare", "definitions": SMALL}

    assert stack.functions.invoke("plan_api", by_url(json.dumps(request)))["statusCode"] == 503
    with pytest.raises(TransientError):
        stack.functions.invoke("plan_api", request)


def test_the_published_schema_is_that_of_the_code() -> None:
    published = (REPOSITORY / "docs" / "plan_api.schema.json").read_text(encoding="utf-8")

    assert json.loads(published) == published_schema(), "run python -m relaunch.adapters.messages.plan_api"
