"""Decides whether an event starts a job of a definition, with which inputs and which id.

An input of a job must be declared, and its whole value must match the declared pattern.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import timedelta
from functools import lru_cache
from typing import assert_never

from relaunch.core.definitions.definition import (
    EventBridgeTrigger,
    GithubTrigger,
    ImageTrigger,
    InputRule,
    JobDefinition,
    S3Trigger,
    ScheduleTrigger,
    SnsTrigger,
    Trigger,
    schedule_key,
    watched_images,
)
from relaunch.core.definitions.event_pattern import pattern_key
from relaunch.core.definitions.filter_patterns import CompiledPattern, parse_pattern
from relaunch.core.jobs.trigger_facts import TriggerFacts
from relaunch.core.records import dataclass
from relaunch.core.triggers.chains import find_chain_obstacle, read_inputs
from relaunch.core.triggers.events import (
    BusEvent,
    DirectRequest,
    GithubEvent,
    ImagePushed,
    ObjectCreated,
    RepositoryDispatch,
    ScheduledTime,
    TopicMessage,
    TriggerEvent,
    WatchedEvent,
    WorkflowDispatch,
    is_image,
    is_referrer_tag,
    list_github_obstacles,
)
from relaunch.core.triggers.facts import collect_facts
from relaunch.core.triggers.schedules import SKIPPED_AFTER

_MAX_NAMED = 5  # the message is stored and logged, and a dispatch may have thousands
MAX_INPUT_LENGTH = 1024  # characters; RunTask limits all overrides together to 8,192

MatchPattern = Callable[[str, str], bool]
"""Returns whether a pattern matches a whole value."""


@dataclass(frozen=True, slots=True)
class CheckedInputs:
    """Values by name, valid only without errors."""

    values: Mapping[str, str] = field(default_factory=dict)
    errors: tuple[str, ...] = ()


def check_inputs(
    rules: Mapping[str, InputRule], given: Mapping[str, str], match_pattern: MatchPattern
) -> CheckedInputs:
    """Check inputs against their declarations and add defaults for those that are not given.

    An input that is not declared is an error: it may be one that was mistyped, and the default would be taken for it.
    """
    values: dict[str, str] = {}
    errors: list[str] = []
    for name, rule in rules.items():
        value = given.get(name, rule.default)
        if value is None:
            errors.append(f"input {name} has no default and was not given")
            continue
        errors.extend(_input_errors(name, rule, value, match_pattern))
        values[name] = value
    if undeclared := sorted(set(given) - set(rules)):
        errors.append(_describe_undeclared(undeclared, rules))
    return CheckedInputs(values, tuple(errors))


def _describe_undeclared(names: Sequence[str], rules: Mapping[str, InputRule]) -> str:
    named = ", ".join(map(_shorten, names[:_MAX_NAMED]))
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    are = "inputs {} are" if len(names) > 1 else "input {} is"
    known = ", ".join(rules) or "none"
    return f"{are.format(named + more)} not declared in the job definition, which declares {known}"


def _input_errors(name: str, rule: InputRule, value: str, match_pattern: MatchPattern) -> Iterator[str]:
    if len(value) > MAX_INPUT_LENGTH:
        yield f"input {name} has {len(value)} characters, {MAX_INPUT_LENGTH} are allowed"
    elif not match_pattern(rule.pattern, value):
        # Whoever sent it may have sent a secret, and the message is stored and logged.
        hidden = f"its value, {len(value)} characters, is not shown, as it may be a secret"
        yield f"input {name} does not match {rule.pattern}: {hidden}"


def _shorten(text: str) -> str:
    return ascii(text if len(text) <= 60 else f"{text[:57]}...")


MAX_JOB_ID_LENGTH = 100  # startedBy is `<job>/<attempt>`, and ECS takes 128 characters
_CALLER_LENGTH = 4
_HASH_LENGTH = 12  # 60 bits: a collision among a million jobs of a definition has a probability of 1 in 2 million
_LONGEST_PREFIX = MAX_JOB_ID_LENGTH - _CALLER_LENGTH - _HASH_LENGTH - 1
_SHA_LENGTH = 40
_SHA_PLACEHOLDERS = {"{sha}": "[0-9a-f]" * _SHA_LENGTH, "{short_sha}": "[0-9a-f]" * 7}


@dataclass(frozen=True, slots=True)
class Match:
    """The event starts a job.

    `trigger` is the first matching trigger of the definition, None for a direct request. `inputs` are the declared
    inputs, including defaults. `image` (repository, tag) is the image that the job waits for, at most for
    `image_timeout`, or without that the one that a request names.
    """

    trigger: Trigger | None
    inputs: Mapping[str, str]
    facts: TriggerFacts
    image: tuple[str, str] | None = None
    image_timeout: timedelta | None = None


@dataclass(frozen=True, slots=True)
class NoMatch:
    """The event does not match the definition; `reason` says why."""

    reason: str


@dataclass(frozen=True, slots=True)
class InvalidInputs:
    """The event matches, but its inputs, or the image that it names, are invalid."""

    reason: str
    errors: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class IgnoredEvent:
    """An event that cannot match any definition."""

    reason: str


def derive_job_id(identity: str, definition: str) -> str:
    """Return the id of the job that an event starts for a definition.

    `<definition>-<hash of both>`: at most 96 characters of a-z, 0-9 and hyphen, equal for equal arguments.
    """
    suffix = _hash(f"{definition}\0{identity}", _HASH_LENGTH)
    return f"{job_id_prefix(definition)}-{suffix}"


def with_caller(job_id: str, caller: str) -> str:
    """Return the id of a job that a caller of job_api asks for: four more characters say whose it is.

    So the jobs of a caller are counted by their ids, which is all that the index of open jobs has. Two callers with the
    same four characters, one pair in a million, share their limit.
    """
    prefix, _, suffix = job_id.rpartition("-")
    return f"{prefix}-{_hash(caller, _CALLER_LENGTH)}{suffix}"


def is_of_caller(job_id: str, caller: str) -> bool:
    """Return whether the id of a job says that this caller of job_api asked for it."""
    suffix = job_id.rpartition("-")[2]
    return len(suffix) == _CALLER_LENGTH + _HASH_LENGTH and suffix.startswith(_hash(caller, _CALLER_LENGTH))


def _hash(text: str, length: int) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return base64.b32encode(digest)[:length].decode("ascii").lower()


def job_id_prefix(definition: str) -> str:
    """Return what the ids of a definition's jobs have before their last hyphen: its name.

    The prefix is the same for names that differ only in repeated or trailing hyphens.
    """
    name = re.sub(r"[^a-z0-9]+", "-", definition.lower())[:_LONGEST_PREFIX].strip("-")
    return name or "job"


def match(
    definition: JobDefinition, event: TriggerEvent, match_pattern: MatchPattern
) -> Match | NoMatch | InvalidInputs:
    """Decide whether an event starts a job of a definition.

    `match_pattern` matches the inputs; what it raises for a pattern that it does not support is raised.
    """
    if isinstance(event, DirectRequest):
        if event.definition != definition.name:
            return NoMatch(f"the request is for {event.definition}")
        return _accept_request(definition, event, match_pattern)
    reasons: list[str] = []
    for trigger in definition.triggers:
        reason = _find_obstacle(trigger, event)
        if reason is None:
            return _accept(definition, trigger, event, match_pattern)
        if reason and reason not in reasons:
            reasons.append(reason)
    return NoMatch("; ".join(reasons) or f"no trigger of {definition.name} watches where the event comes from")


def is_watched(upload: ObjectCreated, definitions: Iterable[JobDefinition]) -> bool:
    """Return whether a trigger of the definitions selects the key of an upload, whether or not it starts a job."""
    return any(
        isinstance(trigger, S3Trigger)
        and upload.bucket == trigger.bucket
        and upload.key.startswith(trigger.prefix)
        and upload.key.endswith(trigger.suffix)
        for definition in definitions
        for trigger in definition.triggers
    )


def _accept(
    definition: JobDefinition, trigger: Trigger | None, event: TriggerEvent, match_pattern: MatchPattern
) -> Match | InvalidInputs:
    checked = check_inputs(definition.inputs, _given_inputs(trigger, event), match_pattern)
    if checked.errors:
        return InvalidInputs("; ".join(checked.errors), checked.errors)
    if isinstance(trigger, ImageTrigger) and isinstance(event, ImagePushed):
        facts = collect_facts(event, _find_commit(trigger.tag, event.tag))
    else:
        facts = collect_facts(event)
    wait = trigger.wait_for_image if isinstance(trigger, GithubTrigger) else None
    if wait is None or not isinstance(event, GithubEvent):
        return Match(trigger, checked.values, facts)
    tag = wait.tag.replace("{sha}", event.sha).replace("{short_sha}", event.sha[:7])
    return Match(trigger, checked.values, facts, (wait.repository, tag), wait.timeout)


def _given_inputs(trigger: Trigger | None, event: TriggerEvent) -> Mapping[str, str]:
    if isinstance(event, WorkflowDispatch | RepositoryDispatch | DirectRequest):
        return event.inputs
    if isinstance(trigger, EventBridgeTrigger) and isinstance(event, BusEvent):
        return read_inputs(event.content, trigger.inputs)
    if isinstance(trigger, SnsTrigger) and isinstance(event, TopicMessage):
        return read_inputs(event.content, trigger.inputs)
    return {}


def _accept_request(
    definition: JobDefinition, request: DirectRequest, match_pattern: MatchPattern
) -> Match | InvalidInputs:
    accepted = _accept(definition, None, request, match_pattern)
    if isinstance(accepted, InvalidInputs):
        return accepted
    if request.retried is not None:
        return replace(accepted, image=request.retried.image)
    if not request.image_tag:
        return accepted
    watched = tuple(watched_images(definition))
    for repository, pattern in watched:
        if _compile_tag(pattern).matches(request.image_tag):
            facts = collect_facts(request, _find_commit(pattern, request.image_tag), repository)
            return replace(accepted, facts=facts, image=(repository, request.image_tag))
    if not watched:
        return InvalidInputs(f"no trigger of {definition.name} watches images: its jobs run those of its revision")
    patterns = ", ".join(f"{repository}:{pattern}" for repository, pattern in watched)
    return InvalidInputs(
        f"the image tag {request.image_tag!r} does not match the triggers of {definition.name}: {patterns}"
    )


def _find_obstacle(trigger: Trigger, event: WatchedEvent) -> str | None:
    """Return why a trigger does not match, empty if it watches another origin, None if it matches."""
    match trigger:
        case S3Trigger():
            return _find_object_obstacle(trigger, event) if isinstance(event, ObjectCreated) else ""
        case ImageTrigger():
            return _find_image_obstacle(trigger, event) if isinstance(event, ImagePushed) else ""
        case EventBridgeTrigger():
            return _find_bus_obstacle(trigger, event) if isinstance(event, BusEvent) else ""
        case ScheduleTrigger():
            return _find_schedule_obstacle(trigger, event) if isinstance(event, ScheduledTime) else ""
        case SnsTrigger():
            return None if isinstance(event, TopicMessage) and event.topic == trigger.topic else ""
        case GithubTrigger():
            return _find_github_obstacle(trigger, event) if isinstance(event, GithubEvent) else ""
        case _:
            assert_never(trigger)


def _find_github_obstacle(trigger: GithubTrigger, event: GithubEvent) -> str | None:
    if event.repository.lower() != trigger.repository.lower() or event.name != trigger.event:
        return ""
    return next(list_github_obstacles(trigger, event), None)


def _find_object_obstacle(trigger: S3Trigger, event: ObjectCreated) -> str | None:
    if event.bucket != trigger.bucket:
        return ""
    if not event.key.startswith(trigger.prefix):
        return f"the key {event.key} does not start with {trigger.prefix}"
    if not event.key.endswith(trigger.suffix):
        return f"the key {event.key} does not end with {trigger.suffix}"
    if event.key.endswith("/") and event.size_bytes == 0:
        return f"{event.key} is the empty object that consoles create for a folder"
    return None


def _find_image_obstacle(trigger: ImageTrigger, event: ImagePushed) -> str | None:
    if event.repository != trigger.repository:
        return ""
    if not event.tag:
        # The images of a multi-architecture image are pushed without a tag, before their tagged index.
        return f"an image without a tag was pushed to {event.repository}"
    if not _compile_tag(trigger.tag).matches(event.tag):
        return f"the tag {event.tag} does not match {trigger.tag}"
    if not is_image(event.media_type):
        return f"{event.repository}:{event.tag} is no container image: its configuration is {event.media_type}"
    if is_referrer_tag(event.tag) and "sha256" not in trigger.tag:
        return f"{event.tag} is what belongs to another image, as its signature: {trigger.tag} does not name sha256"
    return None


def _find_bus_obstacle(trigger: EventBridgeTrigger, event: BusEvent) -> str | None:
    """EventBridge has compared the event with the pattern already."""
    return find_chain_obstacle(event) if event.key == pattern_key(trigger.pattern) else ""


def _find_schedule_obstacle(trigger: ScheduleTrigger, event: ScheduledTime) -> str | None:
    if event.key != schedule_key(trigger):
        return ""
    late = (event.handled_at or event.scheduled_at) - event.scheduled_at
    if late > SKIPPED_AFTER and not trigger.catches_up:
        hours = late.total_seconds() / 3600
        return f"the time was missed by {hours:.1f} hours, and `missed` is skip: with catch_up it would start a job"
    return None


@lru_cache(maxsize=256)
def _compile_tag(pattern: str) -> CompiledPattern:
    """Compile a tag pattern: a filter pattern in which `{sha}` matches a commit id."""
    parts = re.split(r"(\{sha\}|\{short_sha\})", pattern)
    return CompiledPattern([item for part in parts for item in parse_pattern(_SHA_PLACEHOLDERS.get(part, part))])


def _find_commit(pattern: str, tag: str) -> str:
    """Return what the first `{sha}` of a pattern matches; where it can match at several places, the last counts.

    A tag has at most 128 characters ("PutImage", Amazon ECR API Reference), so there are at most 89 places.
    """
    if "{sha}" not in pattern:
        return ""
    before, _, after = pattern.partition("{sha}")
    # The whole tag matches, so one of the places does.
    return next(
        tag[start : start + _SHA_LENGTH]
        for start in reversed(tuple(_compile_tag(before).matching_prefixes(tag)))
        if _compile_tag("{sha}").matches(tag[start : start + _SHA_LENGTH])
        and _compile_tag(after).matches(tag[start + _SHA_LENGTH :])
    )
