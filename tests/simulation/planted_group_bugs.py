"""Bugs in concurrency groups, which the simulation must find."""

from contextlib import AbstractContextManager

from relaunch.core.jobs.groups import GroupStanding
from relaunch.core.jobs.job import Job
from relaunch.core.lifecycle import table
from relaunch.core.lifecycle.events import CancelAsked
from relaunch.core.lifecycle.groups import leaves_group, with_group
from relaunch.usecases import concurrency_groups
from simulation.broken_parts import changed
from simulation.planted_bugs import PlantedBug
from simulation.planting import patched


def _without_holders() -> AbstractContextManager[object]:
    return patched(table, COMPLETIONS=tuple(each for each in table.COMPLETIONS if each is not with_group))


def _only_if_waiting(job: Job, standing: GroupStanding) -> CancelAsked | None:
    return None if job.group.is_holder else leaves_group(job, standing)


GROUP_BUGS = (
    PlantedBug(
        "group-held-by-none",
        "a job that is launched does not hold its concurrency group",
        _without_holders,
        "one job of a concurrency group has a task at a time",
        60,
        first=93,
    ),
    PlantedBug(
        "late-event-is-newest",
        "a job is the newest one of its concurrency group whenever its event happened",
        changed(GroupStanding, is_newer_than=lambda *_order: False),
        "a job is replaced by a newer one of its group",
        12,
        first=37,
    ),
    PlantedBug(
        "newer-job-cancels-none",
        "a newer job of a concurrency group never has the one in progress cancelled",
        changed(concurrency_groups, leaves_group=_only_if_waiting),
        "a job in progress is cancelled for a newer one that cancels",
        60,
        first=187,
    ),
)
