from collections.abc import Mapping
from dataclasses import replace

import pytest

from fakes.builders import make_definition
from relaunch.core.definitions.definition import EventBridgeTrigger, InputRule
from relaunch.core.definitions.event_pattern import pattern_key
from relaunch.core.triggers.chains import (
    MAX_CHAIN_DEPTH,
    identity_of,
    job_of,
    next_depth,
    read_inputs,
    sent_environment,
)
from relaunch.core.triggers.events import BusEvent
from relaunch.core.triggers.matching import InvalidInputs
from unit.core.triggers.matched import UPLOAD, UPLOAD_TRIGGER, facts_of, match_event, matched, reason_against

PATTERN = '{"source":["com.acme"]}'
TRIGGER = EventBridgeTrigger(PATTERN, (("rows", "detail.rows"),))
EVENT = BusEvent(
    "eventbridge:com.acme:1",
    pattern_key(PATTERN),
    "1",
    "com.acme",
    "Features Built",
    {"detail": {"rows": 12, "job_id": "bert-1"}},
)
ROWS = {"rows": InputRule("[0-9]+")}


def test_the_training_is_told_which_event_it_was() -> None:
    assert facts_of(EVENT, EventBridgeTrigger(PATTERN)) == (
        "event Features Built of com.acme",
        {
            "RELAUNCH_EVENT_ID": "1",
            "RELAUNCH_EVENT_SOURCE": "com.acme",
            "RELAUNCH_EVENT_DETAIL_TYPE": "Features Built",
        },
    )


def test_a_job_that_an_event_about_a_job_starts_is_told_how_many_came_before() -> None:
    summary, environment = facts_of(replace(EVENT, job_id="bert-1", depth=2), EventBridgeTrigger(PATTERN))

    assert summary == "event Features Built of com.acme about job bert-1"
    assert next_depth(environment) == 3


def test_what_the_event_has_becomes_declared_inputs() -> None:
    assert matched(EVENT, TRIGGER, inputs=ROWS).inputs == {"rows": "12"}


@pytest.mark.parametrize("content", [{}, {"detail": {}}, {"detail": []}, {"detail": {"rows": [1]}}])
def test_what_the_event_does_not_have_has_its_default_or_starts_nothing(content: Mapping[str, object]) -> None:
    event = replace(EVENT, content=content)

    refused = match_event(make_definition(triggers=(TRIGGER,), inputs=ROWS), event)

    assert isinstance(refused, InvalidInputs)
    assert refused.reason == "input rows has no default and was not given"
    assert matched(event, TRIGGER, inputs={"rows": InputRule("[0-9]+", "7")}).inputs == {"rows": "7"}


@pytest.mark.parametrize(("value", "text"), [("a", "a"), (1, "1"), (0.5, "0.5"), (True, "true"), (None, None)])
def test_inputs_are_texts_numbers_and_truth_values(value: object, text: str | None) -> None:
    assert read_inputs({"detail": {"x": value}}, [("x", "detail.x")]).get("x") == text


def test_another_pattern_or_another_event_does_not_match() -> None:
    other = EventBridgeTrigger('{"source":["com.other"]}')

    for event, trigger in ((EVENT, other), (EVENT, UPLOAD_TRIGGER), (UPLOAD, other)):
        assert reason_against(event, trigger) == "no trigger of resnet watches where the event comes from"


def test_a_chain_of_jobs_ends() -> None:
    last = replace(EVENT, job_id="bert-1", depth=MAX_CHAIN_DEPTH)

    assert matched(last, EventBridgeTrigger(PATTERN))
    assert reason_against(replace(last, depth=MAX_CHAIN_DEPTH + 1), EventBridgeTrigger(PATTERN)) == (
        "job bert-1 is the last of 6 that events about the one before started, and 6 are allowed in a row: does a "
        "pattern select the end of a job that it starts?"
    )


@pytest.mark.parametrize(
    ("environment", "depth"), [({}, 1), ({"RELAUNCH_CHAIN_DEPTH": "4"}, 5), ({"RELAUNCH_CHAIN_DEPTH": "x"}, 6)]
)
def test_a_job_is_one_further_in_its_chain_than_the_one_before(environment: dict[str, str], depth: int) -> None:
    assert next_depth(environment) == depth


@pytest.mark.parametrize(
    ("detail", "job_id"),
    [({"job_id": "bert-1"}, "bert-1"), ({"job_id": "no job"}, ""), ({"job_id": 1}, ""), ({}, ""), ("text", "")],
)
def test_the_job_that_an_event_is_about_is_named_in_its_detail(detail: object, job_id: str) -> None:
    assert job_of({"detail": detail}) == job_id


@pytest.mark.parametrize(
    ("source", "detail", "identity"),
    [
        ("relaunch.vision", {"id": "bert-1:12"}, "eventbridge:relaunch.vision:bert-1:12"),
        ("relaunch.vision", {"id": "anything"}, "eventbridge:relaunch.vision:e-1"),
        ("relaunch.vision", "text", "eventbridge:relaunch.vision:e-1"),
        ("com.acme", {"id": "bert-1:12"}, "eventbridge:com.acme:e-1"),
    ],
)
def test_a_change_of_a_job_that_is_sent_twice_is_one_event(source: str, detail: object, identity: str) -> None:
    assert identity_of(source, "e-1", {"detail": detail}) == identity


@pytest.mark.parametrize(
    ("detail", "environment"),
    [
        (
            {"trigger": {"variables": {"RELAUNCH_CHAIN_DEPTH": "4", "RELAUNCH_GIT_SHA": "a"}}},
            {"RELAUNCH_CHAIN_DEPTH": "4"},
        ),
        ({"trigger": {"variables": {"RELAUNCH_CHAIN_DEPTH": 4}}}, {}),
        ({"trigger": {"variables": []}}, {}),
        ({"trigger": "push"}, {}),
        ("text", {}),
    ],
)
def test_the_event_says_how_far_its_job_is_in_a_chain(detail: object, environment: dict[str, str]) -> None:
    assert sent_environment({"detail": detail}) == environment
