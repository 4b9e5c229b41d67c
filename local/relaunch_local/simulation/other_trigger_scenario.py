"""Draws the schedules, patterns of events and topics of some seeds, when they change, and what they select."""

import random
from collections.abc import Sequence
from dataclasses import replace

from relaunch.core.definitions.definition import EventBridgeTrigger, JobDefinition, ScheduleTrigger, SnsTrigger, Trigger
from relaunch.core.definitions.event_pattern import write_pattern
from relaunch_local.simulation.aws.outages import SCHEDULER, SCHEDULER_TARGETS, Kind, Outage
from relaunch_local.simulation.aws.template import STACK
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.other_triggers import (
    EVENT_SOURCE,
    EVENT_TYPE,
    TOPICS,
    OtherTriggers,
    PlannedBusEvent,
    PlannedChange,
    PlannedTopicMessage,
)
from relaunch_local.simulation.scenario import Scenario

_SHARE_OF_SEEDS = 0.15
_OUTAGES_SHARE = 0.5
_EXPRESSIONS = (
    "rate(30 minutes)",
    "rate(45 minutes)",
    "rate(1 hour)",
    "cron(10 * * * ? *)",
    "cron(0/40 * * * ? *)",
    "cron(5,50 0-23/2 ? * SUN-SAT *)",
)
_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe")
_THRESHOLDS = (1_000, 2_000)
_LONGEST_CHAINED_SECONDS = 2_000.0
_MANY_EVENTS = 100


def with_other_triggers(chance: Chance, scenario: Scenario) -> Scenario:
    """Let some companies start jobs by schedules, events of the bus and messages of topics as well.

    Not where times are promised to the minute, nor beside hundreds of jobs.
    """
    dice = chance.stream("scenario/other-triggers")
    is_spared = scenario.has_close_deadlines or scenario.returning or scenario.burst_family
    if dice.random() >= _SHARE_OF_SEEDS or is_spared or len(scenario.events) >= _MANY_EVENTS:
        return scenario
    seconds = scenario.chaos_seconds
    changes = [change for each in scenario.definitions for change in _draw_changes(dice, each, scenario)]
    triggers = OtherTriggers(
        changes=tuple(sorted(changes, key=lambda each: each.at_seconds)),
        events=tuple(_draw_event(dice, seconds) for _ in range(dice.randint(2, 6))),
        messages=tuple(_draw_message(dice, seconds) for _ in range(dice.randint(1, 4))),
    )
    return replace(scenario, other_triggers=triggers, outages=(*scenario.outages, *_draw_outages(dice, seconds)))


def _draw_changes(dice: random.Random, definition: JobDefinition, scenario: Scenario) -> list[PlannedChange]:
    """Draw what is added to a definition early, and what becomes of it later."""
    added = _draw_triggers(dice, definition, scenario)
    if not added:
        return []
    first_at = dice.uniform(0.0, 0.15) * scenario.chaos_seconds
    changes = [PlannedChange(first_at, definition.name, (), tuple(added))]
    there = list(added)
    for _ in range(dice.choice((0, 1, 1, 2))):
        at = changes[-1].at_seconds + dice.uniform(0.1, 0.4) * scenario.chaos_seconds
        old = dice.choice(there)
        new = _draw_another(dice, old)
        changes.append(PlannedChange(at, definition.name, (old,), () if new is None else (new,)))
        there = [each for each in there if each is not old] + ([] if new is None else [new])
        if not there or at > 0.8 * scenario.chaos_seconds:
            break
    return changes


def _draw_triggers(dice: random.Random, definition: JobDefinition, scenario: Scenario) -> list[Trigger]:
    triggers: list[Trigger] = []
    inputs = (("batch-size", "detail.size"),) if definition.inputs else ()
    if dice.random() < 0.6:
        triggers.append(_draw_schedule(dice))
    if dice.random() < 0.5:
        triggers.append(EventBridgeTrigger(pattern_of_rows(dice.choice(_THRESHOLDS)), inputs))
    if dice.random() < 0.4:
        attributes = (("batch-size", "attributes.size"),) if definition.inputs else ()
        triggers.append(SnsTrigger(TOPICS[0], attributes))
    # Chains of six jobs are to end within the time that a run has; one machine would take days for some twenty of them.
    upstream = dice.choice(scenario.definitions)
    is_short = scenario.recipes[definition.name].work_seconds < _LONGEST_CHAINED_SECONDS
    may_chain = is_short and scenario.limits.machines.max_machines != 1
    if dice.random() < 0.3 and (may_chain or upstream.name != definition.name):
        triggers.append(EventBridgeTrigger(pattern_of_ends(upstream.name)))
    return triggers


def _draw_schedule(dice: random.Random) -> ScheduleTrigger:
    return ScheduleTrigger(dice.choice(_EXPRESSIONS), dice.choice(_ZONES), catches_up=dice.random() < 0.5)


def _draw_another(dice: random.Random, old: Trigger) -> Trigger | None:
    """Draw what replaces a trigger; None: it is removed."""
    if dice.random() < 0.3:
        return None
    if isinstance(old, ScheduleTrigger):
        # Mostly what a person changes: only the zone, or what becomes of missed times.
        changed = dice.choice((_draw_schedule(dice), replace(old, catches_up=not old.catches_up)))
        return changed if changed != old else None
    if isinstance(old, EventBridgeTrigger) and old.pattern in map(pattern_of_rows, _THRESHOLDS):
        other = next(each for each in map(pattern_of_rows, _THRESHOLDS) if each != old.pattern)
        return replace(old, pattern=other)
    return None


def pattern_of_rows(threshold: int) -> str:
    """Return the pattern of events that have more rows than this."""
    return write_pattern(
        {"source": [EVENT_SOURCE], "detail-type": [EVENT_TYPE], "detail": {"rows": [{"numeric": [">", threshold]}]}}
    )


def pattern_of_ends(definition: str) -> str:
    """Return the pattern of the ends of a definition's jobs that succeeded or failed."""
    detail = {"definition": [definition], "state": ["SUCCEEDED", "FAILED"]}
    return write_pattern({"source": [f"relaunch.{STACK}"], "detail-type": ["Job State Change"], "detail": detail})


def _draw_event(dice: random.Random, seconds: float) -> PlannedBusEvent:
    source = dice.choice((EVENT_SOURCE, EVENT_SOURCE, EVENT_SOURCE, "com.acme.labels"))
    rows = dice.choice((10, 1_000, 1_500, 2_000, 2_500))
    return PlannedBusEvent(dice.uniform(0.1, 0.95) * seconds, source, rows, dice.choice(("8", "16", None, "many")))


def _draw_message(dice: random.Random, seconds: float) -> PlannedTopicMessage:
    size = dice.choice(("8", "16", None, "many"))
    attributes = {} if size is None else {"size": size}
    return PlannedTopicMessage(dice.uniform(0.1, 0.95) * seconds, dice.choice((*TOPICS, TOPICS[0])), attributes)


def _draw_outages(dice: random.Random, seconds: float) -> Sequence[Outage]:
    """Let Scheduler's API be away while somebody applies, or its targets not be invoked, for minutes to hours."""
    if dice.random() >= _OUTAGES_SHARE:
        return ()
    service = dice.choice((SCHEDULER, SCHEDULER_TARGETS))
    length = 60.0 * 180.0 ** dice.random()
    return (Outage(service, dice.uniform(0.0, 0.9) * seconds, length, dice.choice(tuple(Kind))),)
