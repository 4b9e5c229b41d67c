"""Bugs in trainings over several pods of a cluster, which the simulation must find."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

from relaunch.adapters.kubernetes import gang_launch, gang_observation, target
from relaunch.adapters.kubernetes.gang_ends import read_ends
from relaunch.adapters.kubernetes.gang_manifest import headless_service
from relaunch.core.jobs.attempt import Stop, StopKind
from relaunch.core.launches.launch import TaskObservation, TaskPhase
from relaunch.core.lifecycle import gangs, running, stop_reason, verdicts
from relaunch_local.simulation.checks.cluster_gangs import FAILED, NOTHING_LEFT, REFUSED, TAKEN
from relaunch_local.simulation.cluster_gangs import GENERATIONS
from simulation.broken_parts import Planting, changed
from simulation.planted_bugs import PlantedBug
from simulation.planting import patched

_FIRST = 341
_SEEDS = 420
"""Each twenty-first of them has gangs in a cluster."""


def _service(**members: Any) -> Planting:
    """Give the Service of a Job other members."""

    def made(job: Mapping[str, Any], uid: str = "") -> dict[str, Any]:
        service = headless_service(job, uid)
        metadata = {**service["metadata"], **members.get("metadata", {})}
        return {**service, "metadata": metadata, "spec": {**service["spec"], **members.get("spec", {})}}

    return changed(gang_launch, headless_service=made)


def _stopped_with_the_first() -> AbstractContextManager[object]:
    original = gangs.see_as_one

    def see_as_one(*given: Any) -> TaskObservation:
        seen = original(*given)
        return replace(seen, phase=TaskPhase.STOPPED) if seen.phase is TaskPhase.STOPPING else seen

    return patched(gang_observation, see_as_one=see_as_one)


def _always_in_vain() -> AbstractContextManager[object]:
    original = stop_reason.classify_stop

    def classify(observation: TaskObservation, *given: Any, **named: Any) -> Stop:
        stop = original(observation, *given, **named)
        if not observation.waited_in_vain or stop.kind is not StopKind.USER_ERROR:
            return stop
        return replace(stop, kind=StopKind.NOT_STARTED)

    return patched(verdicts, classify_stop=classify)


@contextmanager
def _replaced_unnoticed() -> Iterator[None]:
    with patched(running, _has_other_pod=lambda *_given: False), patched(target, read_replaced=lambda *_given: {}):
        yield


CLUSTER_GANG_BUGS = (
    PlantedBug(
        "gang-that-met-waited-in-vain",
        "a gang whose peers' pods are gone has waited for them, though all had started",
        _always_in_vain,
        FAILED,
        _SEEDS,
        _FIRST,
    ),
    PlantedBug(
        "service-of-nobody",
        "the Service of a gang belongs to no Job",
        _service(metadata={"ownerReferences": []}),
        NOTHING_LEFT,
        _SEEDS,
        _FIRST,
    ),
    PlantedBug(
        "service-selects-nothing",
        "the Service of a gang selects no pod, so that ranks never find the first",
        _service(spec={"selector": {"app": "nothing"}}),
        "every end on the cluster is deserved",
        _SEEDS,
        _FIRST,
    ),
    PlantedBug(
        "deleted-rank-failed",
        "a pod of a gang that was deleted by hand has failed by itself, if it ended with 1",
        changed(target, read_ends=lambda *given: replace(read_ends(*given), running=frozenset())),
        TAKEN,
        _SEEDS,
        _FIRST,
    ),
    PlantedBug(
        "replaced-rank-unnoticed",
        "a pod that an old server makes in the place of another is taken for it",
        _replaced_unnoticed,
        TAKEN,
        _SEEDS,
        2_504,
    ),
    PlantedBug(
        "gang-stopped-with-its-first-pod",
        "a gang has stopped when its first pod has",
        _stopped_with_the_first,
        GENERATIONS,
        _SEEDS,
        _FIRST,
    ),
    PlantedBug(
        "gang-on-any-server",
        "a gang is launched on servers that give no ranks",
        changed(gang_launch, KNOWS_GANGS=0),
        REFUSED,
        _SEEDS,
        803,
    ),
)
