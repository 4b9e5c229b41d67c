"""Draws the receivers of notices of a seed, and when they take nothing."""

import random
from dataclasses import replace

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.notice_routes import DEFAULT_KINDS, NoticeKind, NoticeRoute
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.notice_plans import (
    FOR_EVER,
    Absence,
    Away,
    NoticePlan,
    ReceiverPlan,
    Service,
    StatusPlan,
)
from relaunch_local.simulation.scenario import Scenario

_SHARE_OF_SEEDS = 0.2
_AWAY_SHARE = 0.35
_DEAD_SHARE = 0.12
_MOST_EVENTS = 40
_HOUR = 3_600.0
_CHOICES = (
    DEFAULT_KINDS,
    (*DEFAULT_KINDS, NoticeKind.STARTED),
    (NoticeKind.FINISHED, NoticeKind.FAILED),
    (NoticeKind.STARTED, NoticeKind.INTERRUPTED),
)


def with_notices(chance: Chance, scenario: Scenario) -> Scenario:
    """Give a company receivers: of all its jobs, and of those of definitions that name them.

    They draw from streams of their own, and so change nothing else of a seed.
    """
    dice = chance.stream("scenario/notices")
    if dice.random() >= _SHARE_OF_SEEDS or len(scenario.events) > _MOST_EVENTS:
        return scenario
    services = (Service.SLACK, Service.WEBHOOK, *dice.choices(tuple(Service), k=dice.randint(0, 2)))
    receivers = [_draw_receiver(dice, scenario, f"team-{number}", each) for number, each in enumerate(services)]
    named = _draw_receiver(dice, scenario, "named", dice.choice((Service.WEBHOOK, Service.SLACK)))
    receivers.append(replace(named, is_for_all=False))
    statuses = _draw_statuses(dice, scenario)
    definitions = tuple(_with_route(dice, each) for each in scenario.definitions)
    return replace(scenario, definitions=definitions, notices=NoticePlan(tuple(receivers), statuses))


def _draw_receiver(dice: random.Random, scenario: Scenario, name: str, service: Service) -> ReceiverPlan:
    return ReceiverPlan(
        name=name,
        service=service,
        kinds=dice.choice(_CHOICES),
        waits_after_minutes=dice.choice((15, 60, 60)),
        absences=_draw_absences(dice, scenario.chaos_seconds),
    )


def _draw_absences(dice: random.Random, chaos_seconds: float) -> tuple[Absence, ...]:
    draw = dice.random()
    if draw >= _AWAY_SHARE:
        return ()
    seconds = FOR_EVER if draw < _DEAD_SHARE else dice.uniform(_HOUR, 6 * _HOUR)
    return (Absence(dice.uniform(0.0, chaos_seconds), seconds, dice.choice(tuple(Away))),)


def _draw_statuses(dice: random.Random, scenario: Scenario) -> StatusPlan:
    without_right = {}
    for definition in scenario.definitions:
        if dice.random() < 0.25:
            seconds = FOR_EVER if dice.random() < 0.3 else dice.uniform(_HOUR, 6 * _HOUR)
            begins_at = dice.uniform(0.0, scenario.chaos_seconds)
            without_right[f"acme/{definition.name}"] = Absence(begins_at, seconds, Away.REVOKED)
    away = [each for each in _draw_absences(dice, scenario.chaos_seconds) if each.seconds < FOR_EVER]
    most = 4 if dice.random() < 0.1 else 1_000
    return StatusPlan(absences=tuple(away), without_right=without_right, most_statuses=most)


def _with_route(dice: random.Random, definition: JobDefinition) -> JobDefinition:
    """Let half of the definitions name a receiver, some with kinds of their own, and one that is not there."""
    if dice.random() < 0.5:
        return definition
    kinds = dice.choice(((), (NoticeKind.FINISHED, NoticeKind.FAILED), (NoticeKind.FAILED, NoticeKind.WAITS_TOO_LONG)))
    missing = (NoticeRoute("nobody"),) if dice.random() < 0.2 else ()
    return replace(definition, notices=(NoticeRoute("named", kinds), *missing))
