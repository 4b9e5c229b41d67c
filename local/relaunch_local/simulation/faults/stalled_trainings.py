"""Trainings that run and gain no step from some point on, and whose machines are taken away, again and again.

They neither finish nor fail by themselves, so that the faults go on while all others have stopped: without them such a
job would run until its `max_runtime`.
"""

from collections import Counter

from relaunch_local.ecs import ProcessSpec
from relaunch_local.simulation.account import SimulatedAccount

_RUNS_SECONDS = (1_900.0, 3_600.0)
# What one needed that saved only because it was told to leave may seem longer than all others run.
_RUNS_LONGER_AFTER = 6
_WARNED_SHARE = 0.5


class StalledTrainings:
    """Takes the machine of each training that has stalled, half an hour to an hour after its start, later longer."""

    def __init__(self, account: SimulatedAccount) -> None:
        """Watch the trainings that start."""
        self._account = account
        self._starts: Counter[str] = Counter()
        account.trainings.on_stalled = self._started

    def _started(self, spec: ProcessSpec) -> None:
        account = self._account
        account.chance.note_organic("training-stalled")
        dice = account.chance.stream(f"stalled/{spec.task_arn}")
        seconds = dice.uniform(*_RUNS_SECONDS)
        is_warned = dice.random() < _WARNED_SHARE
        job_id = spec.started_by.rpartition("/")[0]
        self._starts[job_id] += 1
        seconds *= 2 if self._starts[job_id] > _RUNS_LONGER_AFTER else 1
        account.clock.call_later(seconds, lambda: self._take(spec, is_warned=is_warned))

    def _take(self, spec: ProcessSpec, *, is_warned: bool) -> None:
        account = self._account
        host = account.simulator.instances.by_id.get(spec.instance_id)
        if spec.task_arn not in account.trainings.running or host is None or not host.is_alive:
            return
        account.trace.line(f"FAULT training-stalled: {host.instance_id} is taken away")
        if is_warned:
            account.simulator.instances.interrupt(host)
        else:
            account.simulator.instances.terminate(host)
