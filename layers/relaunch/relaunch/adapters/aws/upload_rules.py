"""Rules of triggers on EventBridge's default event bus, where AWS's services send their events; only `apply` uses it.

An event pattern's rule sends its events with the pattern's key, by an input transformer ("Amazon EventBridge input
transformation": `<aws.events.event.json>` is the whole event, and its content is not escaped).


ListRules, ListTargetsByRule, PutRule, PutTargets, RemoveTargets, DeleteRule. PutTargets and RemoveTargets answer 200
with FailedEntryCount when a target failed (API reference).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from relaunch.adapters.aws.errors import AwsError, error_code, to_port_error
from relaunch.core.triggers.upload_rules import (
    MAX_NAME_LENGTH,
    NAME_HASH_LENGTH,
    FoundRule,
    UploadRule,
    event_template,
    is_rule_of,
)
from relaunch.ports import PermanentError, TransientError

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient

_TARGET_ID = "uploads"
_NOT_FOUND = "ResourceNotFoundException"
_CONFLICT = "ConcurrentModificationException"
_HINTS = {
    "LimitExceededException": (
        "the event bus is full (300 rules by default, 30 of them with wildcards, which triggers with both a prefix and "
        "a suffix need; a rule that changes counts twice until the old one is removed): remove rules, watch fewer "
        "buckets, or raise the quota"
    ),
    "ManagedRuleException": "another AWS service manages the rule",
    "InvalidEventPatternException": "EventBridge refuses the pattern, or it is too complex for one rule",
}


class EventBridgeUploadRules:
    """Implements UploadRules; the ARN of the queue is empty where the stack has none."""

    def __init__(
        self, client: "EventBridgeClient", name_prefix: str, queue_arn: str, dead_letter_queue_arn: str
    ) -> None:
        self._client = client
        self._name_prefix = name_prefix
        # EventBridge tries 24 hours and 185 times, as for the rules of the stack.
        self._target: Any = {
            "Id": _TARGET_ID,
            "Arn": queue_arn,
            "RetryPolicy": {"MaximumEventAgeInSeconds": 86_400, "MaximumRetryAttempts": 185},
            "DeadLetterConfig": {"Arn": dead_letter_queue_arn},
        }

    @property
    def name_prefix(self) -> str:
        return self._name_prefix

    @property
    def takes_uploads(self) -> bool:
        return bool(self._target["Arn"])

    def list_rules(self) -> list[FoundRule]:
        with _errors("listing the rules of triggers"):
            pages = self._client.get_paginator("list_rules").paginate(NamePrefix=self._name_prefix)
            rules = [rule for page in pages for rule in page["Rules"] if is_rule_of(self._name_prefix, rule["Name"])]
        return [
            FoundRule(
                rule["Name"],
                rule.get("EventPattern", ""),
                rule.get("State") == "ENABLED"
                and self._target_of(rule["Name"], rule.get("EventPattern", "")) in self._targets(rule["Name"]),
            )
            for rule in rules
        ]

    def _target_of(self, name: str, pattern: str) -> Any:
        """Return the target that a rule must have."""
        template = event_template(name, pattern)
        return {**self._target, "InputTransformer": {"InputTemplate": template}} if template else self._target

    def _targets(self, name: str) -> list[Any]:
        """Return the targets of a rule; a rule that somebody else has removed meanwhile has none."""
        with _errors(f"listing the targets of rule {name}"):
            try:
                return list(self._client.list_targets_by_rule(Rule=name)["Targets"])
            except self._client.exceptions.ResourceNotFoundException:
                return []

    def put_rule(self, rule: UploadRule) -> None:
        if len(rule.name) > MAX_NAME_LENGTH:
            longest = MAX_NAME_LENGTH - NAME_HASH_LENGTH - len("relaunch--")
            raise PermanentError(
                f"rule {rule.name} has a name of more than {MAX_NAME_LENGTH} characters: a stack whose jobs are "
                f"started by uploads has a name of at most {longest}"
            )
        with _errors(f"putting rule {rule.name} for {rule}"):
            self._client.put_rule(
                Name=rule.name,
                EventPattern=rule.pattern,
                State="ENABLED",
                Description=_describe(rule),
            )
            target = self._target_of(rule.name, rule.pattern)
            _check(self._client.put_targets(Rule=rule.name, Targets=[target]), f"the target of rule {rule.name}")

    def remove_rule(self, name: str) -> None:
        targets = [target["Id"] for target in self._targets(name)]
        with _errors(f"removing rule {name}"):
            try:
                if targets:
                    _check(self._client.remove_targets(Rule=name, Ids=targets), f"the targets of rule {name}")
                self._client.delete_rule(Name=name)
            except self._client.exceptions.ResourceNotFoundException:
                return


def _describe(rule: UploadRule) -> str:
    """Describe a rule in at most 512 characters, which PutRule takes."""
    text = str(rule)
    return f"{text[0].upper()}{text[1:400]} that job definitions watch; written by `relaunch apply`"


@contextmanager
def _errors(doing: str) -> Iterator[None]:
    try:
        yield
    except AwsError as error:
        code = error_code(error)
        if code == _NOT_FOUND:  # somebody else has removed the rule meanwhile
            raise TransientError(f"{doing}: {error}") from error
        raise to_port_error(error, f"{doing}: {_HINTS[code]}" if code in _HINTS else doing) from error


def _check(answer: Mapping[str, Any], what: str) -> None:
    """Raise the failure of a target, if there is one."""
    for failed in answer.get("FailedEntries", []):
        code = failed.get("ErrorCode", "")
        message = failed.get("ErrorMessage", "")
        kind = TransientError if code in (_CONFLICT, _NOT_FOUND) or "Internal" in code else PermanentError
        raise kind(f"{what}: {code}: {message}")
