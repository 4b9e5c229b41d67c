"""What the stack is without a webhook or a queue of uploads: nothing is left of them, and nothing names them."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from architecture.conftest import Template

NOTHING = object()


@dataclass(frozen=True)
class Deployed:
    """The resources and outputs of a template that is deployed with these parameters beside its defaults."""

    template: Template
    given: Mapping[str, str]

    @property
    def resources(self) -> dict[str, Any]:
        return {name: self.resolve(each) for name, each in self.template.resources.items() if self._is_there(each)}

    @property
    def outputs(self) -> dict[str, Any]:
        return {name: self.resolve(each) for name, each in self.template.outputs.items() if self._is_there(each)}

    def _is_there(self, entry: Any) -> bool:
        return "Condition" not in entry or self.holds({"Condition": entry["Condition"]})

    def holds(self, condition: Any) -> bool:
        ((function, value),) = condition.items()
        match function:
            case "Condition":
                return self.holds(self.template.conditions[value])
            case "Fn::Equals":
                return self.value(value[0]) == self.value(value[1])
            case "Fn::Not":
                return not self.holds(value[0])
            case "Fn::And":
                return all(map(self.holds, value))
            case "Fn::Or":
                return any(map(self.holds, value))
        raise AssertionError(condition)

    def value(self, value: Any) -> str:
        if not isinstance(value, dict):
            return str(value)
        default = self.template.parameters[value["Ref"]].get("Default", "")
        return self.given.get(value["Ref"], str(default))

    def resolve(self, value: Any) -> Any:
        """Return a value with one branch of each Fn::If."""
        if isinstance(value, list):
            return [each for each in map(self.resolve, value) if each is not NOTHING]
        if not isinstance(value, dict):
            return value
        if set(value) == {"Fn::If"}:
            name, then, other = value["Fn::If"]
            return self.resolve(then if self.holds({"Condition": name}) else other)
        if value == {"Ref": "AWS::NoValue"}:
            return NOTHING
        resolved = {name: self.resolve(each) for name, each in value.items()}
        return {name: each for name, each in resolved.items() if each is not NOTHING}

    @property
    def named(self) -> set[str]:
        """The resources and parameters that anything names."""
        return set(named_in([self.resources, self.outputs]))


def named_in(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from named_in(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _NAMES.get(name, named_in)(each)


def _substituted(value: Any) -> Iterator[str]:
    text, known = (value, {}) if isinstance(value, str) else value
    yield from (found for found in re.findall(r"\$\{([A-Za-z0-9:]+)", text) if found not in known)
    yield from named_in(known)


_NAMES: Mapping[str, Callable[[Any], Iterator[str]]] = {
    "Ref": lambda name: iter([name]),
    "Fn::GetAtt": lambda name: iter([name[0] if isinstance(name, list) else name.partition(".")[0]]),
    "Fn::Sub": _substituted,
    "DependsOn": lambda names: iter([names] if isinstance(names, str) else names),
}


def dashboard_of(deployed: Deployed) -> Any:
    """The dashboard as JSON, in which what is named has its own name."""
    text, known = deployed.resources["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    for name, value in known.items():
        text = text.replace(f"${{{name}}}", value["Fn::Sub"] if isinstance(value, dict) else value)
    return json.loads(re.sub(r"\$\{([^}]*)\}", r"\1", text))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"Webhook": "off"},
        {"Uploads": "off"},
        {"Webhook": "off", "Uploads": "off"},
        {"Monitoring": "false"},
        {"SnsTopicArns": "arn:aws:sns:eu-central-1:111122223333:features"},
    ],
)
def test_nothing_names_what_is_not_there(template: Template, given: Mapping[str, str]) -> None:
    deployed = Deployed(template, given)

    known = {*deployed.resources, *template.parameters}
    assert {name for name in deployed.named if not name.startswith("AWS::")} <= known


def test_without_a_webhook_nothing_of_it_is_left(template: Template) -> None:
    with_it, without = Deployed(template, {}), Deployed(template, {"Webhook": "off"})
    left = set(with_it.resources) - set(without.resources)

    assert left == {
        "GithubWebhookFunction",
        "GithubWebhookFunctionUrl",
        "GithubWebhookFunctionUrlPublicPermissions",
        "GithubWebhookFunctionURLInvokeAllowPublicAccess",
        "GithubWebhookRole",
        "GithubWebhookLogGroup",
        "WebhookSecret",
        "WebhookFailuresAlarm",
        "WebhookThrottlesAlarm",
    }
    assert set(with_it.outputs) - set(without.outputs) == {
        "WebhookUrl",
        "WebhookSecretArn",
        "WebhookPreviousSecretHours",
    }
    urls = [each for each in without.resources.values() if each["Type"] == "AWS::Lambda::Url"]
    assert {each["Properties"]["AuthType"] for each in urls} == {"AWS_IAM"}
    assert "Webhook" not in json.dumps(dashboard_of(without))
    assert "WebhookFailuresAlarm" in json.dumps(dashboard_of(with_it))


def test_topics_have_a_queue_only_where_there_are_some(template: Template) -> None:
    topics = {"SnsTopicArns": "arn:aws:sns:eu-central-1:111122223333:features"}
    with_them = Deployed(template, topics)
    without = Deployed(template, {})

    assert set(with_them.resources) - set(without.resources) == {
        "SnsQueue",
        "SnsDeadLetterQueue",
        "SnsQueuePolicy",
        "SubmitJobFunctionSns",
    }
    assert set(with_them.outputs) - set(without.outputs) == {
        "SnsTopicArns",
        "SnsQueueUrl",
        "SnsQueueArn",
        "SnsDeadLetterQueueUrl",
    }


def test_without_uploads_their_queue_is_not_there(template: Template) -> None:
    with_it, without = Deployed(template, {}), Deployed(template, {"Uploads": "off"})

    assert set(with_it.resources) - set(without.resources) == {
        "UploadsQueue",
        "UploadsQueuePolicy",
        "SubmitJobFunctionUploads",
        "Schedules",
        "SchedulesRole",
    }
    assert set(with_it.outputs) - set(without.outputs) == {
        "UploadsQueueUrl",
        "UploadsQueueArn",
        "ScheduleGroupName",
        "SchedulesRoleArn",
    }
    assert "UploadsQueue" not in json.dumps(dashboard_of(without))
