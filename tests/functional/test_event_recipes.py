"""The recipes of docs/events.md and docs/budgets.md: their patterns and what their targets do, with real events."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import boto3
import pytest
from jsonschema import Draft202012Validator

from fakes.aws import aws_in_process
from fakes.builders import make_definition
from fakes.busy_stack import BusyStack
from fakes.functions import FakeContext
from fakes.repository import REPOSITORY
from fakes.story import Story
from relaunch.adapters.messages.budget_report import BUDGET_DETAIL_TYPE, write_budget_detail
from relaunch.adapters.messages.job_change import read_detail, write_detail
from relaunch.core.definitions.definition import InputRule
from relaunch.core.jobs.budgets import Budget, due_reports
from relaunch.core.lifecycle.change_events import DETAIL_TYPE
from relaunch_local.simulation.aws.event_patterns import matches
from relaunch_local.templates.document import parse_yaml

DOCS = REPOSITORY / "docs"
PAGES = "\n## \n".join((DOCS / name).read_text(encoding="utf-8") for name in ("events.md", "budgets.md"))
SAMPLE = json.loads((REPOSITORY / "events" / "relaunch.job-state-change.json").read_text(encoding="utf-8"))
BUDGET_SAMPLE = json.loads((REPOSITORY / "events" / "relaunch.budget-reached.json").read_text(encoding="utf-8"))


def block(recipe: str, language: str) -> str:
    (section,) = re.findall(rf"### {recipe}\n(.*?)(?=\n###? |\Z)", PAGES, flags=re.DOTALL)
    (found,) = re.findall(rf"```{language}\n(.*?)```", section, flags=re.DOTALL)
    return str(found)


def resources(recipe: str) -> Mapping[str, Any]:
    return parse_yaml(block(recipe, "yaml"))["Resources"]  # type: ignore[no-any-return]


def rule(recipe: str, name: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The pattern and the one target of a rule."""
    properties = resources(recipe)[name]["Properties"]
    (target,) = properties["Targets"]
    return properties["EventPattern"], target


def transformed(target: Mapping[str, Any], event: Mapping[str, Any]) -> Any:
    """What an input transformer makes of an event ("Amazon EventBridge input transformation", user guide)."""
    text = str(target["InputTransformer"]["InputTemplate"])
    for name, path in target["InputTransformer"]["InputPathsMap"].items():
        value: Any = event
        for part in path.removeprefix("$.").split("."):
            value = value[part]
        text = text.replace(f"<{name}>", json.dumps(value)[1:-1] if isinstance(value, str) else str(value))
    return json.loads(text)


def event_of(detail: Mapping[str, Any]) -> dict[str, Any]:
    return {**SAMPLE, "detail": detail}


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    """All events of a job that starts, trains and ends well."""
    story = Story(make_definition(checkpoint_uri="s3://acme-checkpoints/resnet/"))
    job_id = story.launch()
    story.clock.advance(timedelta(hours=1))
    story.end(job_id)
    return [event_of(json.loads(write_detail(each))) for each in story.job_events.sent]


def failed_event() -> dict[str, Any]:
    story = Story()
    story.revisions.active.clear()
    story.submit()
    return event_of(json.loads(write_detail(story.job_events.sent[-1])))


def test_the_sample_is_an_event_as_it_is_sent(events: list[dict[str, Any]]) -> None:
    assert SAMPLE["detail-type"] == DETAIL_TYPE
    assert SAMPLE["source"] == "relaunch.relaunch"
    assert json.loads(write_detail(read_detail(json.dumps(SAMPLE["detail"])))) == SAMPLE["detail"]
    assert set(events[-1]["detail"]) <= set(SAMPLE["detail"])


def test_the_next_training_starts_once_when_one_has_succeeded(events: list[dict[str, Any]]) -> None:
    pattern, target = rule("Start the next training", "NextTraining")
    stack = BusyStack()
    evaluate = make_definition(name="evaluate", inputs={"model": InputRule("s3://.*")})
    stack.functions.deps.definitions.save_definition(evaluate)

    (ended,) = [each for each in events if matches(pattern, each)]
    answers = [stack.functions.invoke("job_api", transformed(target, ended), FakeContext()) for _ in range(2)]

    assert ended["detail"]["state"] == "SUCCEEDED"
    assert answers[0]["job"]["job_id"] == answers[1]["job"]["job_id"]
    job = stack.jobs.job(answers[0]["job"]["job_id"])
    assert (job.definition.name, job.inputs) == ("evaluate", {"model": ended["detail"]["checkpoints"]})
    assert not matches(pattern, failed_event())


def test_a_table_has_the_newest_state_whatever_the_order(
    events: list[dict[str, Any]], in_process: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pattern, _ = rule("Write to a table", "EveryChange")
    keys = {"KeySchema": [{"AttributeName": "job_id", "KeyType": "HASH"}], "BillingMode": "PAY_PER_REQUEST"}
    attributes = [{"AttributeName": "job_id", "AttributeType": "S"}]
    client: Any = boto3.client("dynamodb")
    client.create_table(TableName="seen", AttributeDefinitions=attributes, **keys)
    monkeypatch.setenv("JOBS_SEEN", "seen")
    writer: dict[str, Any] = {}
    exec(block("Write to a table", "python"), writer)  # noqa: S102 - what the page shows

    for each in (*reversed(events), *events):
        assert matches(pattern, each)
        writer["handle"](each, None)

    (row,) = client.scan(TableName="seen")["Items"]
    assert (row["state"]["S"], row["sequence"]["N"]) == ("SUCCEEDED", str(len(events)))


def test_somebody_is_paged_when_a_job_fails_or_waits_for_a_right(
    events: list[dict[str, Any]], in_process: None
) -> None:
    pattern, target = rule("Page somebody", "JobFailed")
    refused = {**SAMPLE["detail"], "state": "WAITING", "changed": ["waiting_for"], "waiting_for": "refused"}

    assert [each for each in events if matches(pattern, each)] == []
    for event in (failed_event(), event_of(refused)):
        assert matches(pattern, event)
        message = transformed(target, event)
        assert event["detail"]["reason"] in message
        sns: Any = boto3.client("sns")
        sns.publish(TopicArn=sns.create_topic(Name="pager")["TopicArn"], Message=message)


def budget_events() -> list[dict[str, Any]]:
    """What is sent of a budget of which 80 % of a month, and all of all, are used."""
    at = datetime.fromisoformat("2026-11-24T08:10:00+00:00")
    budget = Budget("definition/resnet", 200.0, 300.0, 300.0, {"2026-11": 161.2})
    details = [json.loads(write_budget_detail(each)) for each in due_reports(budget, at)]
    return [{**BUDGET_SAMPLE, "detail": each} for each in details]


def test_the_event_of_a_budget_is_the_sample_and_keeps_its_schema() -> None:
    schema = json.loads((DOCS / "budget-reached.schema.json").read_text(encoding="utf-8"))
    in_all, of_month = (each["detail"] for each in budget_events())

    assert (BUDGET_SAMPLE["detail-type"], BUDGET_SAMPLE["detail"]) == (BUDGET_DETAIL_TYPE, of_month)
    assert (in_all["month"], in_all["percent"]) == (None, 100)
    for detail in (in_all, of_month):
        Draft202012Validator(schema).validate(detail)
        assert set(detail) == set(schema["properties"]) == set(schema["required"])
        assert detail["schema_version"] == schema["version"]


def test_somebody_hears_of_a_budget_that_is_nearly_used_up() -> None:
    pattern, target = rule("Say that a budget is nearly used up", "BudgetReached")
    _, event = budget_events()

    assert matches(pattern, event)
    assert not matches(pattern, SAMPLE)
    assert transformed(target, event) == "80 % of the budget of definition/resnet are used: 161.2 of 200.0 USD"


@pytest.fixture
def in_process() -> Iterator[None]:
    with aws_in_process():
        yield
