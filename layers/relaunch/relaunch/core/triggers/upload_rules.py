"""The EventBridge rules of triggers: which ones the definitions need, and how they differ from those there are.

EventBridge filters, so that an upload nobody watches costs no message. A rule watches one bucket; its pattern selects
exactly the keys of the bucket's triggers. `apply` rejects triggers that overlap a checkpoint prefix, so nothing below
one passes, not even /manifest.json. It names no account, unlike the rules of template.yaml: a bucket's name is that of
one bucket in all accounts, whose owner may well be another account that sends its events to this one's event bus.

A rule is named after its pattern, so that a bucket's new rules stand beside its old ones until these are removed: a
trigger that moves from one rule of its bucket to another is in a rule throughout. What two rules select is delivered
twice, as EventBridge delivers any event at times; the event has the same identity and becomes one job.

The pattern of an `eventbridge` trigger is a rule as it is. Its target gets the event with the key of the pattern,
under which its definitions are found, so that nothing but EventBridge compares events with patterns. None of these
patterns names aws.s3, so a rule's pattern says which of the two it is.

Sources: "Amazon EventBridge event patterns" and "Comparison operators" (prefix, suffix, wildcard; the elements of an
array are alternatives), "Amazon EventBridge quotas", and PutRule in the API reference; "General purpose bucket naming
rules" (Amazon S3 User Guide).
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from relaunch.core.definitions.definition import EventBridgeTrigger, JobDefinition, S3Trigger
from relaunch.core.definitions.event_pattern import KEY_LENGTH, MAX_PATTERN_LENGTH, pattern_key, pattern_sources
from relaunch.core.records import dataclass

MAX_NAME_LENGTH = 64
NAME_HASH_LENGTH = KEY_LENGTH
EVENT_MESSAGE = "eventbridge"
"""The `source` of a message that has an event and the key of the pattern that selected it."""
EVENT_MESSAGE_FORMAT = 1
# With every character escaped as \u0000 it still fits into a pattern.
_LONGEST_SHORTENED_PREFIX = 256

Matcher = str | dict[str, str]


class RuleChange(StrEnum):
    """The change of a rule."""

    CREATED = "created"
    REPLACED = "replaced"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class UploadRule:
    """A rule for a bucket, or for the events of `sources`; `pattern` is in JSON, and `name` follows from it."""

    name: str
    bucket: str
    pattern: str
    sources: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return what the rule selects."""
        return f"events of {', '.join(self.sources)}" if self.sources else f"uploads to {self.bucket}"


@dataclass(frozen=True, slots=True)
class FoundRule:
    """A rule of the event bus; `is_complete`: it is enabled and has the target that `apply` gives it."""

    name: str
    pattern: str
    is_complete: bool


@dataclass(frozen=True, slots=True)
class ChangedRule:
    """A rule to be created, replaced or removed; one that is removed has no pattern."""

    change: RuleChange
    rule: UploadRule


def wanted_rules(definitions: Iterable[JobDefinition], name_prefix: str) -> tuple[UploadRule, ...]:
    """Return the rules: one per watched bucket, or several if a pattern would get too long, and one per pattern."""
    by_bucket: dict[str, set[S3Trigger]] = {}
    watched: set[str] = set()
    for definition in definitions:
        for trigger in definition.triggers:
            if isinstance(trigger, S3Trigger):
                by_bucket.setdefault(trigger.bucket, set()).add(trigger)
            if isinstance(trigger, EventBridgeTrigger):
                watched.add(trigger.pattern)
    of_buckets = (
        UploadRule(_rule_name(name_prefix, pattern), bucket, pattern)
        for bucket, triggers in sorted(by_bucket.items())
        for pattern in _patterns(bucket, triggers)
    )
    return (*of_buckets, *(_event_rule(_rule_name(name_prefix, pattern), pattern) for pattern in sorted(watched)))


def event_template(rule_name: str, pattern: str) -> str:
    """Return what the target of a rule gets for an event, as an input template; empty if the rule is for uploads.

    The whole event is `<aws.events.event.json>`, which EventBridge replaces with JSON.
    """
    if pattern_sources(pattern) in ((), ("aws.s3",)):
        return ""
    key = rule_name[-KEY_LENGTH:]
    return (
        f'{{"source":"{EVENT_MESSAGE}","format":{EVENT_MESSAGE_FORMAT},"key":"{key}","event":<aws.events.event.json>}}'
    )


def _event_rule(name: str, pattern: str) -> UploadRule:
    return UploadRule(name, "", pattern, pattern_sources(pattern))


def compare_rules(wanted: Sequence[UploadRule], found: Iterable[FoundRule]) -> tuple[ChangedRule, ...]:
    """Return the changes that make the rules of the event bus those that are wanted; removals are last."""
    known = {rule.name: rule for rule in found}
    changes = [
        ChangedRule(RuleChange.REPLACED if rule.name in known else RuleChange.CREATED, rule)
        for rule in wanted
        if not _is_there(rule, known.get(rule.name))
    ]
    names = {rule.name for rule in wanted}
    removed = [ChangedRule(RuleChange.REMOVED, _removed(rule)) for rule in known.values() if rule.name not in names]
    return (*changes, *removed)


def is_rule_of(name_prefix: str, name: str) -> bool:
    """Return whether a rule is one of this stack: stacks `a` and `a-b` share the beginning of their names."""
    return re.fullmatch(f"{re.escape(name_prefix)}[a-z2-7]{{{NAME_HASH_LENGTH}}}", name) is not None


def _is_there(rule: UploadRule, found: FoundRule | None) -> bool:
    return found is not None and found.is_complete and _loads(found.pattern) == _loads(rule.pattern)


def _loads(pattern: str) -> object:
    try:
        return json.loads(pattern)
    except (ValueError, RecursionError):
        return None


def _bucket_of(pattern: str) -> str:
    match _loads(pattern):
        case {"detail": {"bucket": {"name": [str(bucket), *_]}}}:
            return bucket
        case _:
            return ""


def _removed(rule: FoundRule) -> UploadRule:
    bucket = _bucket_of(rule.pattern)
    return UploadRule(rule.name, bucket, "", () if bucket else pattern_sources(rule.pattern))


def _rule_name(name_prefix: str, pattern: str) -> str:
    return name_prefix + pattern_key(pattern)


def _patterns(bucket: str, triggers: set[S3Trigger]) -> Iterator[str]:
    """Yield as few patterns as the matchers of the triggers fit into."""
    needed = [each for each in triggers if not any(_covers(other, each) for other in triggers if other != each)]
    matchers = {json.dumps(matcher): matcher for each in needed for matcher in _fitting_matchers(bucket, each)}
    chunk: list[Matcher] = []
    for _, matcher in sorted(matchers.items()):
        if chunk and len(_pattern(bucket, [*chunk, matcher])) > MAX_PATTERN_LENGTH:
            yield _pattern(bucket, chunk)
            chunk = []
        chunk.append(matcher)
    yield _pattern(bucket, chunk)


def _covers(wide: S3Trigger, narrow: S3Trigger) -> bool:
    return narrow.prefix.startswith(wide.prefix) and narrow.suffix.endswith(wide.suffix)


def _fitting_matchers(bucket: str, trigger: S3Trigger) -> list[Matcher]:
    """Return the matchers of a trigger; one too long for a pattern selects more keys, which `match` rejects later."""
    matchers = _matchers(trigger)
    if all(len(_pattern(bucket, [matcher])) <= MAX_PATTERN_LENGTH for matcher in matchers):
        return matchers
    return [{"prefix": trigger.prefix[:_LONGEST_SHORTENED_PREFIX]}]


def _matchers(trigger: S3Trigger) -> list[Matcher]:
    prefix = trigger.prefix
    suffix = trigger.suffix
    if not (prefix or suffix):
        return []
    if not (prefix and suffix):
        return [{"suffix": suffix}] if suffix else [{"prefix": prefix}]
    # The prefix and the suffix of a short key may overlap (`a.b` begins with `a.` and ends with `.b`), which a wildcard
    # between them does not select.
    overlapping: list[Matcher] = [
        prefix + suffix[length:]
        for length in range(1, min(len(prefix), len(suffix)) + 1)
        if prefix.endswith(suffix[:length])
    ]
    return [*overlapping, {"wildcard": f"{_escape(prefix)}*{_escape(suffix)}"}]


def _escape(text: str) -> str:
    return re.sub(r"([*\\])", r"\\\1", text)


def _pattern(bucket: str, matchers: Sequence[Matcher]) -> str:
    """Return an event pattern in JSON; without matchers it selects every key."""
    detail: dict[str, object] = {"bucket": {"name": [bucket]}}
    if matchers and {"prefix": ""} not in matchers:
        detail["object"] = {"key": list(matchers)}
    pattern = {"source": ["aws.s3"], "detail-type": ["Object Created"], "detail": detail}
    return json.dumps(pattern, ensure_ascii=False, separators=(",", ":"))
