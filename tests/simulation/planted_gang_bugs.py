"""Bugs in trainings over several machines, which the simulation must find."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager

from relaunch.adapters.aws.ecs import run_task as ecs_run_task
from relaunch.core.jobs.job import Job
from relaunch.core.launches import launch_plan
from relaunch.core.launches.launch_plan import rank_environment
from relaunch.core.lifecycle import running
from relaunch.core.machines.events import FleetAnswer, FleetRefused, InstanceLaunched
from relaunch.core.machines.groups import answer_of_member, first_ids_of
from relaunch.core.machines.machine import FleetRequest, Machine, MachineState
from relaunch.ports import LaunchDependencies
from relaunch.usecases import choose_placement, hand_over, make_ec2_calls
from relaunch.usecases.claim_machine import find_machines
from relaunch_local.simulation import account, drawn_scenario
from relaunch_local.simulation.aws.gang_rules import ALIKE, KNOWN, MET, ONCE, REACHED
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.checks.claims import KEPT
from relaunch_local.simulation.checks.run_times import ENDED
from relaunch_local.simulation.faults.rare import RareFaults
from relaunch_local.simulation.scenario import Scenario
from simulation.broken_parts import Planting
from simulation.planted_bugs import PlantedBug
from simulation.planting import patched, patched_in


def _environment(change: Callable[[Job, int], Mapping[str, str]]) -> Planting:
    """Give ranks other variables than they have."""

    def changed(job: Job, rank: int) -> Mapping[str, str]:
        return {**rank_environment(job, rank), **change(job, rank)}

    return lambda: patched(launch_plan, rank_environment=changed)


@contextmanager
def _generation_of_each_send() -> Iterator[None]:
    sends = itertools.count()
    with ExitStack() as stack:
        stack.enter_context(_environment(lambda job, _rank: {"RELAUNCH_GROUP": f"{job.job_id}/{next(sends)}"})())
        stack.enter_context(patched(ecs_run_task, client_token=lambda *_parts: f"send-{next(sends)}"))
        yield


def _own_prefix(job: Job, rank: int) -> Mapping[str, str]:
    return {"RELAUNCH_CHECKPOINT_URI": f"{job.definition.checkpoint_uri}{job.job_id}/rank-{rank}/"} if rank else {}


def _given_up_without_its_instance(request: FleetRequest, answer: FleetAnswer) -> FleetAnswer:
    own = answer_of_member(request, answer)
    is_part = isinstance(own, InstanceLaunched) and own.is_part
    return FleetRefused(own.refusals) if is_part and isinstance(own, InstanceLaunched) else own


def _wait_for_ever(job: Job, deps: LaunchDependencies) -> Job | tuple[Machine, ...]:
    """Wait for what was requested in the place of lost machines, whatever becomes of it."""
    machines = [deps.machines.load_machine(each) for each in job.next_machines]
    is_kept = len(first_ids_of(job.next_machines)) > 1
    is_ready = all(each is not None and each.state is MachineState.READY for each in machines)
    return find_machines(job, deps) if is_ready or not is_kept else job


def _survivors_kept() -> AbstractContextManager[object]:
    return patched_in((choose_placement, hand_over), find_machines=_wait_for_ever)


def _parts_left() -> AbstractContextManager[object]:
    return patched(make_ec2_calls, answer_of_member=_given_up_without_its_instance)


def _with_gangs(chance: Chance, **_options: bool) -> Scenario:
    return drawn_scenario.draw_scenario(chance, has_gangs=True)


@contextmanager
def _forgetful() -> Iterator[None]:
    """Let ECS forget tasks that have stopped, as often as there are rare faults, of which there are many."""
    faults = {
        "_weighted_faults": lambda self: {"task-forgotten": (1, self._forget)},
        "_sometimes_cancel": lambda _self: None,
        "pause_seconds": (30.0, 240.0),
    }
    with patched(account, draw_scenario=_with_gangs), patched(RareFaults, **faults):
        yield


GANG_BUGS = (
    PlantedBug(
        "generation-of-each-send",
        "each RunTask of a placement of several tasks is one of a generation of its own",
        _generation_of_each_send,
        MET,
        260,
        first=134,
    ),
    PlantedBug(
        "gang-of-one-more",
        "ranks get one node more than torchrun has",
        _environment(lambda job, _rank: {"RELAUNCH_NODES": str(len(job.current_attempt.placement.ranks) + 1)}),
        KNOWN,
        260,
        first=134,
    ),
    PlantedBug(
        "ranks-meet-elsewhere",
        "ranks are to meet at an address that none of them has",
        _environment(lambda _job, _rank: dict.fromkeys(("RELAUNCH_MASTER_ADDR", "PET_MASTER_ADDR"), "192.0.2.1")),
        REACHED,
        260,
        first=134,
    ),
    PlantedBug(
        "every-rank-is-the-first",
        "each rank is rank 0 by its environment",
        _environment(lambda _job, _rank: dict.fromkeys(("RELAUNCH_NODE_RANK", "PET_NODE_RANK"), "0")),
        ONCE,
        260,
        first=134,
    ),
    PlantedBug(
        "ranks-save-apart",
        "ranks save to prefixes of their own",
        _environment(_own_prefix),
        ALIKE,
        260,
        first=134,
    ),
    PlantedBug(
        "part-of-a-group-left",
        "machines of which EC2 launched a part are given up without their instances",
        _parts_left,
        "a machine that is gone has no instance",
        260,
        first=134,
    ),
    PlantedBug(
        "survivors-kept-for-ever",
        "machines that live are kept for others, though EC2 has refused those, or has taken one of them",
        _survivors_kept,
        KEPT,
        40,
        first=30_000,
        world=lambda: patched(drawn_scenario, has_gang=lambda _seed: True),
    ),
    PlantedBug(
        "unseen-rank-ran-no-longer",
        "a rank that nobody saw end is taken to have ended with those that were seen",
        lambda: patched(running, end_unseen=lambda _job, others, _since: others),
        ENDED,
        40,
        first=40_151,
        world=_forgetful,
    ),
)
