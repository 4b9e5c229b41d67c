"""EventBridge's actions on the rules of triggers, which `apply` calls."""

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from relaunch.adapters.aws.upload_rules import EventBridgeUploadRules
from relaunch_local.simulation.aws.calls import Calls
from relaunch_local.simulation.aws.clients import CallingClient, client_error
from relaunch_local.simulation.aws.eventbridge import UPLOAD_RULES, EventBus
from relaunch_local.simulation.aws.template import ACCOUNT, REGION, Rule

_QUEUE = "UploadsQueue"
_NOT_FOUND = "ResourceNotFoundException"


class RuleNotFoundError(Exception):
    """What boto3's client calls ResourceNotFoundException; the models raise its ClientError."""


class _Exceptions:
    ResourceNotFoundException = RuleNotFoundError


class ModelEvents:
    """EventBridge's actions on the upload rules of a bus; a rule without a target sends nothing."""

    def __init__(self, bus: EventBus, target: Mapping[str, Any]) -> None:
        """Begin with the rules that the bus has, each with this target."""
        self._bus = bus
        rules = bus.upload_rules()
        self._patterns = {each.name: json.dumps(each.pattern) for each in rules}
        self._targets: dict[str, list[Any]] = {each.name: [_with_template(target, each.template)] for each in rules}

    def list_rules(self, **_parameters: Any) -> Any:
        """ListRules."""
        rules = self._patterns.items()
        return {"Rules": [{"Name": name, "EventPattern": text, "State": "ENABLED"} for name, text in sorted(rules)]}

    def list_targets_by_rule(self, **parameters: Any) -> Any:
        """ListTargetsByRule."""
        self._demand(parameters["Rule"])
        return {"Targets": self._targets[parameters["Rule"]]}

    def put_rule(self, **parameters: Any) -> Any:
        """PutRule."""
        self._patterns[parameters["Name"]] = parameters["EventPattern"]
        self._targets.setdefault(parameters["Name"], [])
        return self._changed({})

    def put_targets(self, **parameters: Any) -> Any:
        """PutTargets."""
        self._demand(parameters["Rule"])
        self._targets[parameters["Rule"]] = list(parameters["Targets"])
        return self._changed({"FailedEntryCount": 0, "FailedEntries": []})

    def remove_targets(self, **parameters: Any) -> Any:
        """RemoveTargets."""
        self._demand(parameters["Rule"])
        self._targets[parameters["Rule"]] = []
        return self._changed({"FailedEntryCount": 0, "FailedEntries": []})

    def delete_rule(self, **parameters: Any) -> Any:
        """DeleteRule, which is no error for a rule that does not exist."""
        self._patterns.pop(parameters["Name"], None)
        self._targets.pop(parameters["Name"], None)
        return self._changed({})

    def _demand(self, name: str) -> None:
        if name not in self._patterns:
            raise client_error(_NOT_FOUND, "events")

    def _changed(self, answer: Any) -> Any:
        sending = [name for name in self._patterns if self._targets[name]]
        self._bus.replace_upload_rules(
            Rule(name, json.loads(self._patterns[name]), _QUEUE, 86_400.0, _template_of(self._targets[name][0]))
            for name in sending
        )
        return answer


def _with_template(target: Mapping[str, Any], template: str) -> Mapping[str, Any]:
    """Return the target of a rule as the adapter writes it."""
    return {**target, "InputTransformer": {"InputTemplate": template}} if template else target


def _template_of(target: Mapping[str, Any]) -> str:
    return str(target.get("InputTransformer", {}).get("InputTemplate", ""))


class RulesOfBus:
    """The rules of a bus, and the adapter of `apply` over them; each call of its may fail."""

    def __init__(self, bus: EventBus, calls: Calls) -> None:
        """Begin with the rules that the bus has, which send to the queue for uploads."""
        queue, dead_letters = (f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}" for name in (_QUEUE, f"{_QUEUE}:given-up"))
        # As the adapter writes it.
        target = {
            "Id": "uploads",
            "Arn": queue,
            "RetryPolicy": {"MaximumEventAgeInSeconds": 86_400, "MaximumRetryAttempts": 185},
            "DeadLetterConfig": {"Arn": dead_letters},
        }
        self._client: Any = CallingClient("events", ModelEvents(bus, target), calls)
        self.exceptions = _Exceptions
        self.adapter = EventBridgeUploadRules(cast("Any", self), UPLOAD_RULES, queue, dead_letters)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return the method of an action."""
        method: Callable[..., Any] = getattr(self._client, name)
        return method
