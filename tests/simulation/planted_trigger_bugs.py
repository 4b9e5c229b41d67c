"""Bugs in schedules, events of the bus, topics and plans of pull requests, which the simulation must find."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from relaunch.adapters.aws.ecs import container_overrides
from relaunch.adapters.messages.topic_messages import parse_topic_message
from relaunch.core.definitions.changes import ChangeKind
from relaunch.core.definitions.definition import JobDefinition, TriggerSource, trigger_origins
from relaunch.core.launches.launch import GpuShare
from relaunch.core.triggers import matching
from relaunch.core.triggers.schedules import (
    ChangedSchedule,
    FoundSchedule,
    Schedule,
    compare_schedules,
    wanted_schedules,
)
from relaunch.core.triggers.upload_rules import ChangedRule, FoundRule, RuleChange, UploadRule, compare_rules
from relaunch.entrypoints import sns
from relaunch.ports import PermanentError
from relaunch.usecases import arrange_schedules, arrange_upload_rules, compare_definitions, submit_job
from relaunch_local.in_memory.definitions import InMemoryDefinitions
from simulation.broken_parts import changed
from simulation.planted_bugs import PlantedBug
from simulation.planting import patched


def _without_removals(wanted: Sequence[Schedule], found: Iterable[FoundSchedule]) -> list[ChangedSchedule]:
    return [each for each in compare_schedules(wanted, found) if each.change is not RuleChange.REMOVED]


def _rules_without_removals(wanted: Sequence[UploadRule], found: Iterable[FoundRule]) -> tuple[ChangedRule, ...]:
    return tuple(each for each in compare_rules(wanted, found) if each.change is not RuleChange.REMOVED)


def _in_utc(definitions: Iterable[JobDefinition]) -> tuple[Schedule, ...]:
    return tuple(replace(each, time_zone="UTC") for each in wanted_schedules(definitions))


@contextmanager
def _any_schedule() -> Iterator[None]:
    def find(self: InMemoryDefinitions, source: TriggerSource, _name: str) -> list[JobDefinition]:
        return [each for each in self.list_definitions() if source in dict(trigger_origins(each))]

    with (
        patched(InMemoryDefinitions, find_definitions=find),
        patched(matching, _find_schedule_obstacle=lambda _trigger, _event: None),
    ):
        yield


def _all_skip() -> AbstractContextManager[object]:
    find = matching._find_schedule_obstacle

    def skip(trigger: Any, event: Any) -> str | None:
        late = (event.handled_at or event.scheduled_at) - event.scheduled_at
        return find(trigger, event) or ("late" if late > timedelta(minutes=15) else None)

    return patched(matching, _find_schedule_obstacle=skip)


def _with_attributes_refused() -> AbstractContextManager[object]:

    def refuse(body: str, watched: Any) -> Any:
        if '"size"' in body:
            raise PermanentError("it has attributes")
        return parse_topic_message(body, watched)

    return patched(sns, parse_topic_message=refuse)


def _half_shares() -> AbstractContextManager[object]:
    build = container_overrides.build_requirement

    def halved(accelerators: Any) -> Any:
        is_share = isinstance(accelerators, GpuShare)
        return build(replace(accelerators, memory_mib=accelerators.memory_mib // 2) if is_share else accelerators)

    return patched(container_overrides, build_requirement=halved)


TRIGGER_BUGS = (
    PlantedBug(
        "rules-left-behind",
        "rules of uploads and events that no definition needs any more are not removed",
        changed(arrange_upload_rules, compare_rules=_rules_without_removals),
        "rules of triggers are those of the definitions",
        40,
    ),
    PlantedBug(
        "time-of-another-schedule",
        "a time starts the jobs of every schedule, not of the one that it is of",
        _any_schedule,
        "nothing starts a job that no trigger selects",
        60,
        first=120,
    ),
    PlantedBug(
        "schedules-left-behind",
        "schedules that no definition needs any more are not removed",
        changed(arrange_schedules, compare_schedules=_without_removals),
        "schedules are those of the definitions",
        40,
    ),
    PlantedBug(
        "schedules-in-utc",
        "a schedule is put without its time zone",
        changed(arrange_schedules, wanted_schedules=_in_utc),
        "Scheduler sends every time of a schedule",
        60,
        first=80,
    ),
    PlantedBug(
        "missed-times-never-caught-up",
        "a time that comes late is skipped, whatever its trigger says",
        _all_skip,
        "what a trigger selects becomes exactly one job",
        60,
        first=120,
    ),
    PlantedBug(
        "inputs-of-events-unchecked",
        "the inputs of an event are not held against their patterns",
        changed(matching, _input_errors=lambda *_arguments: iter(())),
        "an event with wrong inputs, or of a chain that is too long, starts no job",
        60,
        first=60,
    ),
    PlantedBug(
        "chains-uncounted",
        "it is not counted how many jobs came before one in its chain",
        changed(submit_job, complete_event=lambda event, _deps: event),
        "a job knows how many came before it in its chain",
        60,
    ),
    PlantedBug(
        "topic-attributes-refused",
        "a message of a topic that has attributes is given up",
        _with_attributes_refused,
        "what starts jobs is handled",
        60,
    ),
    PlantedBug(
        "comparison-blind",
        "a definition that is removed by a pull request is called unchanged",
        changed(compare_definitions, kind_of_change=lambda _before, _after: ChangeKind.UNCHANGED),
        "a comparison has what a pull request changes",
        40,
    ),
    PlantedBug(
        "added-definitions-unplanned",
        "a definition that a pull request adds is not planned",
        changed(compare_definitions, _PLANNED=(ChangeKind.CHANGED,)),
        "what a pull request changes has a plan",
        40,
    ),
    PlantedBug(
        "half-a-share",
        "RunTask asks for half of the memory of a share",
        _half_shares,
        "a task gets the share of a GPU that it requires",
        60,
        first=60,
    ),
)
