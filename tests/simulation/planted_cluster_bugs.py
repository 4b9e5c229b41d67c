"""Bugs planted in what is made of Jobs and their pods: finished, refused, out of reach, taken by a queue or by ACS."""

from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

from relaunch.adapters.kubernetes import observation, pod_warnings, target
from relaunch.core.launches.launch import TaskPhase
from relaunch.core.lifecycle import running, withdrawals
from simulation.broken_parts import changed
from simulation.planted_bugs import PlantedBug
from simulation.planting import patched, patched_in


def _deleted_is_gone() -> AbstractContextManager[object]:
    original = observation.phase_of

    def phase_of(*given: Any) -> TaskPhase:
        phase = original(*given)
        return TaskPhase.STOPPED if phase is TaskPhase.STOPPING else phase

    return patched(observation, phase_of=phase_of)


CLUSTER_BUGS = (
    PlantedBug(
        "finished-pod-unknown",
        "a complete Job without its pod is always an interruption",
        changed(target, find_finished=lambda *_given: frozenset()),
        "a program that finished is known to, though its pod is gone",
        1,
        259,
    ),
    PlantedBug(
        "queue-goes-on",
        "a task that a queue suspends goes on when it is let go",
        changed(running, has_lost_place=lambda *_given: False),
        "a task whose place a queue took does not go on",
        21,
        151,
    ),
    PlantedBug(
        "refused-pod-awaited",
        "a Job whose pod is refused waits for days",
        changed(withdrawals, REFUSED_FOR=timedelta(days=30)),
        "a Job whose pod is refused is withdrawn",
        21,
        151,
    ),
    PlantedBug(
        "release-unheard",
        "what ACS announces is read by nobody",
        lambda: patched_in((observation, pod_warnings), TO_BE_RELEASED=()),
        "capacity that ACS takes away is no failure of the program",
        1,
        1115,
    ),
    PlantedBug(
        "taint-unread",
        "what the taint of a node announces is read by nobody",
        changed(pod_warnings, find_node_warning=lambda *_given: ""),
        "a node whose end a taint announces costs no failure",
        1,
        2647,
    ),
    PlantedBug(
        "deleted-pod-is-gone",
        "a pod that is to be deleted on a node out of reach has stopped",
        _deleted_is_gone,
        "never two live tasks of one job",
        1,
        207,
    ),
)
