"""The queues, functions and rules of template.yaml, which the simulation uses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from relaunch_local.repository import REPOSITORY
from relaunch_local.simulation.aws.event_patterns import matches

ACCOUNT = "111122223333"
REGION = "us-east-1"
CLUSTER = "relaunch"
STACK = "relaunch"


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """A queue; a dead-letter queue has no dead-letter queue itself."""

    name: str
    visibility_seconds: float
    max_receive_count: int
    dead_letter_queue: str

    @property
    def is_dead_letter_queue(self) -> bool:
        """Whether this is a dead-letter queue."""
        return not self.dead_letter_queue


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """A queue as a function's event source."""

    function: str
    queue: str
    batch_size: int
    max_concurrency: int
    may_loop: bool


@dataclass(frozen=True, slots=True)
class FunctionSettings:
    """A function; `sources` are the queues that invoke it, `watched_queues` those whose messages it counts.

    `on_failure` is the queue that gets asynchronous calls which failed, empty if they are forgotten.
    `asynchronous_tries` is how often Lambda tries such a call in all, `asynchronous_seconds` for how long it keeps one
    that it cannot start.
    """

    name: str
    timeout_seconds: float
    dead_letter_queue: str
    on_failure: str
    asynchronous_tries: int
    asynchronous_seconds: float
    sources: tuple[SourceSettings, ...]
    watched_queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """An EventBridge rule with its one target."""

    name: str
    pattern: Mapping[str, Any]
    queue: str
    max_age_seconds: float
    template: str = ""
    """What its target gets, where that is not the event as it is; `<aws.events.event.json>` is the event."""

    def matches(self, event: Mapping[str, Any]) -> bool:
        """Return whether an event matches the pattern."""
        return matches(self.pattern, event)


@dataclass(frozen=True, slots=True)
class Stack:
    """The resources of the stack."""

    queues: Mapping[str, QueueSettings]
    functions: Mapping[str, FunctionSettings]
    rules: tuple[Rule, ...]


NOTICES_QUEUES = ("NoticesQueue", "NoticesDeadLetterQueue")
"""The queues of a stack that sends notices, whose messages draw from streams of their own."""
# Conditions of what few seeds have, and a stack is without by default. An If names what is theirs.
_TAKES_TOPICS = "TakesTopics"
_SENDS_NOTICES = "SendsNotices"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # libyaml's, if available
    """Loads CloudFormation's YAML: `!Ref X` becomes {"Ref": "X"}, and so on."""


def _construct(loader: Any, suffix: str, node: Any) -> Any:
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    return {suffix: value}


_Loader.add_multi_constructor("!", _construct)


@cache
def _document() -> Any:
    return yaml.load((REPOSITORY / "template.yaml").read_text(), Loader=_Loader)  # noqa: S506 - a safe loader


@cache
def read_stack(*, takes_topics: bool = False, sends_notices: bool = False) -> Stack:
    """Read template.yaml once per process, of a stack with topics or notices, or without."""
    document = _document()
    has = {_TAKES_TOPICS: takes_topics, _SENDS_NOTICES: sends_notices}
    left_out = tuple(condition for condition, is_there in has.items() if not is_there)
    resources = {name: each for name, each in document["Resources"].items() if each.get("Condition") not in left_out}
    defaults = {name: each.get("Default") for name, each in document["Parameters"].items()} | {"ClusterName": CLUSTER}
    queues = {
        name: _queue(name, each.get("Properties", {}), defaults)
        for name, each in resources.items()
        if each["Type"] == "AWS::SQS::Queue"
    }
    timeout = document["Globals"]["Function"]["Timeout"]
    mappings = [each["Properties"] for each in resources.values() if each["Type"] == "AWS::Lambda::EventSourceMapping"]
    functions = [
        _function(each["Properties"], timeout, [it for it in mappings if it["FunctionName"] == {"Ref": name}])
        for name, each in resources.items()
        if each["Type"] == "AWS::Serverless::Function"
    ]
    rules = tuple(
        _rule(name, each["Properties"], defaults)
        for name, each in resources.items()
        if each["Type"] == "AWS::Events::Rule"
    )
    return Stack(queues, {each.name: each for each in functions}, rules)


@cache
def read_table() -> dict[str, Any]:
    """Return the keys and indexes of the jobs table."""
    properties = _document()["Resources"]["JobsTable"]["Properties"]
    kept = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")
    return {name: properties[name] for name in kept}


def _queue(name: str, properties: Mapping[str, Any], defaults: Mapping[str, Any]) -> QueueSettings:
    redrive = properties.get("RedrivePolicy")
    if redrive is None:
        return QueueSettings(name, 30.0, 0, "")
    count = redrive["maxReceiveCount"]
    count = defaults[count["Ref"]] if isinstance(count, dict) else count
    return QueueSettings(name, properties["VisibilityTimeout"], int(count), _target(redrive["deadLetterTargetArn"]))


def _target(reference: Mapping[str, str]) -> str:
    return str(reference.get("GetAtt") or reference["Ref"]).partition(".")[0]


def _function(properties: Mapping[str, Any], timeout: float, mappings: Sequence[Mapping[str, Any]]) -> FunctionSettings:
    """Read a function, whose queues are event sources of SAM, or mappings of their own."""
    variables = properties["Environment"]["Variables"]
    name = variables["POWERTOOLS_SERVICE_NAME"]
    dead_letters = variables.get("RELAUNCH_DEAD_LETTER_QUEUE_URL")
    sources = [each["Properties"] for each in properties.get("Events", {}).values() if each["Type"] == "SQS"]
    named = [(each["Queue"], each) for each in sources] + [(each["EventSourceArn"], each) for each in mappings]
    may_loop = properties.get("RecursiveLoop") == "Allow"
    queues = tuple(
        SourceSettings(
            name,
            _target(queue),
            each["BatchSize"],
            each["ScalingConfig"]["MaximumConcurrency"],
            may_loop,
        )
        for queue, each in named
    )
    invoked = properties.get("EventInvokeConfig", {})
    failed = invoked.get("DestinationConfig", {}).get("OnFailure")
    tries = 1 + int(invoked.get("MaximumRetryAttempts", 2))
    watched = variables.get("RELAUNCH_WATCHED_QUEUE_URLS")
    return FunctionSettings(
        name,
        properties.get("Timeout", timeout),
        _target(dead_letters) if dead_letters else "",
        _target(failed["Destination"]) if failed else "",
        tries,
        float(invoked.get("MaximumEventAgeInSeconds", 21_600)),
        queues,
        tuple(_target(each) for each in watched["Join"][1] if "If" not in each) if watched else (),
    )


def _rule(name: str, properties: Mapping[str, Any], defaults: Mapping[str, Any]) -> Rule:
    (target,) = properties["Targets"]
    pattern = _substituted(properties["EventPattern"], defaults)
    return Rule(name, pattern, _target(target["Arn"]), target["RetryPolicy"]["MaximumEventAgeInSeconds"])


def _substituted(value: Any, defaults: Mapping[str, Any]) -> Any:
    if value == {"Ref": "AWS::AccountId"}:
        return ACCOUNT
    if isinstance(value, dict) and set(value) == {"Sub"}:
        text = str(value["Sub"])
        known = {
            "AWS::Partition": "aws",
            "AWS::Region": REGION,
            "AWS::AccountId": ACCOUNT,
            "AWS::StackName": STACK,
            **defaults,
        }
        for parameter, content in known.items():
            text = text.replace(f"${{{parameter}}}", str(content))
        return text
    if isinstance(value, dict):
        return {key: _substituted(content, defaults) for key, content in value.items()}
    return [_substituted(each, defaults) for each in value] if isinstance(value, list) else value
