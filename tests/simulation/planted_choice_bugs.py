"""Bugs in what is bought, in what jobs say that they wait for, and in what is counted."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import WaitReason
from relaunch.core.lifecycle import metrics
from relaunch.core.lifecycle.events import JobEvent, NothingKept, SlotDenied
from relaunch.core.selection import selection as selecting
from relaunch.core.selection.neuron_devices import NeuronClaim
from relaunch.core.selection.selection import Selection
from relaunch.ports import PermanentError
from relaunch.usecases import advance_job, choose_placement, plan_jobs
from relaunch.usecases.advance_job import apply_event
from simulation.planted_bugs import PlantedBug
from simulation.planting import patched


def _selected(module: Any, change: Callable[[Selection], Selection]) -> Callable[[], AbstractContextManager[object]]:
    """Return what changes each selection that a module asks for."""
    original = module.select
    return lambda: patched(module, select=lambda *given, **named: change(original(*given, **named)))


def _with_kept(selection: Selection, *, is_kept: Callable[[int], bool] = lambda _place: True) -> Selection:
    kept = tuple(each for place, each in enumerate(reversed(selection.kept)) if is_kept(place))
    return Selection(kept, selection.rejected, selection.filter_counts, selection.work)


def _without_reasons(selection: Selection) -> Selection:
    mute = tuple(replace(each, rejection=replace(each.rejection, reason="")) for each in selection.rejected)
    return Selection(selection.kept, mute, selection.filter_counts, selection.work, selection.market_reason)


def _without_purchase() -> AbstractContextManager[object]:
    filters = tuple(each for each in selecting.GROUP_FILTERS if each[0] != "purchase")
    if filters == selecting.GROUP_FILTERS:
        raise LookupError("no filter was dropped")
    return patched(selecting, GROUP_FILTERS=filters)


def _at_odd_minutes(name: str, event: Callable[[Any], JobEvent]) -> Callable[[], AbstractContextManager[object]]:
    """Return what lets a step of the choice end in an event instead, in every other minute."""
    original = getattr(choose_placement, name)

    def step(job: Job, found: Any, deps: Any) -> Job:
        is_odd = deps.clock.now().minute % 2 == 1
        changed: Job = apply_event(job, event(found), deps) if is_odd else original(job, found, deps)
        return changed

    return lambda: patched(choose_placement, **{name: step})


def _waits(reason: WaitReason) -> Callable[[], AbstractContextManager[object]]:
    return _at_odd_minutes("_take", lambda selection: NothingKept(selection, "so it is", reason, None))


def _unreadable_at_odd_minutes() -> AbstractContextManager[object]:
    original = choose_placement._resume_uri

    def resume_uri(job: Job, deps: Any, *given: Any) -> Any:
        if deps.clock.now().minute % 2 == 1:
            raise PermanentError("nobody may read it")
        return original(job, deps, *given)

    return patched(choose_placement, _resume_uri=resume_uri)


def _counted(times: int) -> AbstractContextManager[object]:
    original = advance_job.decision_metrics
    return patched(advance_job, decision_metrics=lambda *given: original(*given) * times)


def _keeps_what_was_rejected(selection: Selection) -> Selection:
    rejected = tuple(each.offering for each in selection.rejected)
    return Selection((*selection.kept, *rejected), (), selection.filter_counts, selection.work)


CHOICE_BUGS = (
    PlantedBug(
        "dearest-first",
        "the dearest of the offerings that fit is chosen",
        _selected(choose_placement, _with_kept),
        "nothing that fits a job is much cheaper than its first choice",
    ),
    PlantedBug(
        "purchase-option-ignored",
        "no filter rejects offerings by their purchase option",
        _without_purchase,
        "what is bought is on sale and fits the job",
    ),
    PlantedBug(
        "waits-beside-capacity",
        "a job says that it waits for capacity although there is some",
        _waits(WaitReason.CAPACITY),
        "a job waits for capacity or a price only while nothing is open to it",
    ),
    PlantedBug(
        "pauses-for-nothing",
        "a job pauses although nothing has failed",
        _waits(WaitReason.BACKOFF),
        "a job pauses only after a stop, or a machine that was refused",
    ),
    PlantedBug(
        "waits-beside-slots",
        "a job says that it waits for a slot although one is free",
        _at_odd_minutes("_take", lambda _selection: SlotDenied("stack", 1)),
        "a job waits for a slot only while all are taken",
    ),
    PlantedBug(
        "waits-for-checkpoints-that-can-be-read",
        "a job says that its checkpoints cannot be read although they can",
        _unreadable_at_odd_minutes,
        "a job waits for its checkpoints only while they cannot be read",
    ),
    PlantedBug(
        "decisions-not-counted",
        "what a decision about a job changes is not counted",
        lambda: _counted(0),
        "what happened is counted",
    ),
    PlantedBug(
        "decisions-counted-twice",
        "what a decision about a job changes is counted twice",
        lambda: _counted(2),
        "nothing is counted that did not happen",
    ),
    PlantedBug(
        "durations-in-minutes",
        "durations are counted in minutes",
        lambda: patched(metrics, _seconds=lambda since, until: max((until - since) / timedelta(minutes=1), 0.0)),
        "a duration is counted as long as it was",
    ),
    PlantedBug(
        "plan-keeps-everything",
        "a plan keeps what was rejected",
        _selected(plan_jobs, _keeps_what_was_rejected),
        "what a plan keeps is on sale and fits the job",
        within=60,
    ),
    PlantedBug(
        "plan-keeps-half",
        "a plan keeps every other offering that fits",
        _selected(plan_jobs, lambda selection: _with_kept(selection, is_kept=lambda place: place % 2 == 1)),
        "a plan keeps whatever fits the job and may be bought",
        within=60,
    ),
    PlantedBug(
        "neuron-device-of-two-tasks",
        "no host port keeps two tasks from one Neuron device",
        lambda: patched(NeuronClaim, host_ports=property(lambda _claim: ())),
        "no two tasks have one Neuron device",
        within=60,
    ),
    PlantedBug(
        "bought-wrongly-unsaid",
        "an offering that is not bought in the right way is rejected without a reason when a job is launched",
        _selected(choose_placement, _without_reasons),
        "a job says why of all that it is not launched on",
    ),
)
