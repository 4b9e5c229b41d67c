"""The trainings in the simulated containers: they save checkpoints, fail, run out of memory, or never end."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch_local.ecs import Clock, ProcessSpec
from relaunch_local.ecs.clock import Timer
from relaunch_local.ecs.processes.port import SIGKILL_EXIT, ProcessHandle
from relaunch_local.simulation.aws.gangs import Gangs
from relaunch_local.simulation.aws.rank_environment import is_of_gang
from relaunch_local.simulation.aws.recipes import (
    OUT_OF_MEMORY,
    SIDECAR,
    MachineFault,
    Recipe,
    Sidecar,
    TrainingLog,
    source_family,
)
from relaunch_local.simulation.aws.s3 import Checkpoint, ObjectStore, manifest_of
from relaunch_local.simulation.chance import Chance

_URI = re.compile(r"s3://([^/]+)/(.*)")
_STEP = re.compile(r"/attempt-([0-9]+)/step-([0-9]+)/\Z")
_SHARDS = ("model.bin", "optimizer.bin")
_SAVES_AT_ITS_START = 0.5
"""The share of the trainings without any progress that save step 0 at their start, as frameworks do that log it."""


@dataclass(eq=False)
class _Training:
    """A training container; `done` is its work in seconds, which are its steps."""

    trainings: "Trainings"
    spec: ProcessSpec
    recipe: Recipe
    job_id: str
    attempt: int
    done: float
    fails_at: float | None
    timer: Timer | None = None
    is_over: bool = False
    is_saving: bool = False
    exits_with: int | None = None
    ending: str = "sigterm"
    terminated_at: datetime | None = None
    resumed_at: datetime | None = None
    """Since when it works on from `done`."""
    stalls_at: float | None = None
    """The work beyond which it gains nothing."""
    speed: float = 1.0
    """The work that it does in a second."""

    def resume(self) -> None:
        """Work until the next checkpoint, the failure or the end, whichever comes first."""
        recipe = self.recipe
        target = recipe.work_seconds
        then = self._finish
        if recipe.checkpoint_seconds is not None and self.done + recipe.checkpoint_seconds < target:
            target = self.done + recipe.checkpoint_seconds
            then = self.save
        if self.fails_at is not None and self.fails_at <= target:
            target = self.fails_at
            then = self._fail
        if self.stalls_at is not None and self.stalls_at <= target:
            target = self.stalls_at
            then = self._stall
        begun = self.done
        worked = max(target - self.done, 0.0)
        self.resumed_at = self.trainings.clock.now()

        def arrive() -> None:
            self.done = begun + worked
            then()

        self._after(worked / self.speed, arrive)

    def done_at(self, now: datetime) -> float:
        """Return its work until now."""
        is_at_work = self.resumed_at is not None and not self.is_saving and self.exits_with is None
        worked = (now - self.resumed_at).total_seconds() if is_at_work and self.resumed_at else 0.0
        return self._at_most(self.done + worked * self.speed)

    def _at_most(self, done: float) -> float:
        return done if self.stalls_at is None else min(done, max(self.stalls_at, self.done))

    def terminate(self) -> None:
        """Handle SIGTERM: save, then exit."""
        self.terminated_at = self.trainings.clock.now()
        if self.is_over or self.recipe.ignores_sigterm or self.exits_with is not None:
            return
        self._stop(self.recipe.sigterm_exit_code, "sigterm")

    def leave(self) -> None:
        """Handle an interruption notice in the metadata: save, then exit 0."""
        if not self.is_over and self.exits_with is None:
            self._stop(0, "left")

    def _stop(self, exit_code: int, ending: str) -> None:
        self.exits_with = exit_code
        self.ending = ending
        if not self.is_saving:
            if self.resumed_at is not None:
                worked = (self.trainings.clock.now() - self.resumed_at).total_seconds()
                self.done = self._at_most(self.done + worked * self.speed)
            if (
                self.recipe.saves_on_sigterm
                and self.stalls_at != 0
                and self.spec.environment.get("RELAUNCH_CHECKPOINT_URI")
            ):
                self.save()
            else:
                self._after(0.5, lambda: self.exit(exit_code, ending))

    def kill(self) -> None:
        """End by SIGKILL or with the instance."""
        if not self.is_over and self.terminated_at is not None:
            self.trainings.on_kill(self.spec, self.trainings.clock.now() - self.terminated_at)
        self.exit(SIGKILL_EXIT, "sigkill")

    def break_by(self, fault: MachineFault) -> None:
        """End by a fault of the machine, unless it is over or about to be."""
        if not self.is_over and self.exits_with is None:
            fault.on_end()
            self.exit(fault.exit_code, "broken", fault.reason)

    def exit(self, code: int, ending: str, reason: str | None = None) -> None:
        """Exit with this code."""
        if self.is_over:
            return
        self.is_over = True
        if self.timer is not None:
            self.timer.cancel()
        self.trainings.note_end(self, ending)
        self.spec.on_exit(code, reason)

    def _stall(self) -> None:
        self.resumed_at = None

    def _finish(self) -> None:
        self.exit(0, "finished")

    def _fail(self) -> None:
        is_memory = self.recipe.exit_code == SIGKILL_EXIT
        ending, reason = ("out of memory", OUT_OF_MEMORY) if is_memory else ("failed", None)
        self.exit(self.recipe.exit_code, ending, reason)

    def save(self) -> None:
        """Write the objects one by one, the manifest last."""
        self.is_saving = True
        uri = self.spec.environment.get("RELAUNCH_CHECKPOINT_URI", "")
        match = _URI.fullmatch(uri)
        if match is None:
            self._saved()
            return
        step = int(self.done)
        folder = f"{match[2]}step-{step:07d}/"
        pieces = [*_SHARDS, "manifest.json"]
        sizes = dict.fromkeys(_SHARDS, 10 + step % 7)

        def write(index: int) -> None:
            name = pieces[index]
            body = manifest_of(step, self.attempt, sizes) if name == "manifest.json" else b"x" * sizes[name]
            self.trainings.objects.write(match[1], folder + name, body, self.trainings.clock.now())
            if index + 1 < len(pieces):
                self._after(self.recipe.save_seconds / len(pieces), lambda: write(index + 1))
            else:
                saved = Checkpoint(step, self.attempt, f"s3://{match[1]}/{folder}")
                self.trainings.objects.complete(self.job_id, saved, self.trainings.clock.now())
                self._saved()

        self._after(self.recipe.save_seconds / len(pieces), lambda: write(0))

    def _saved(self) -> None:
        self.is_saving = False
        if self.exits_with is not None:
            self.exit(self.exits_with, self.ending)
        else:
            self.resume()

    def _after(self, seconds: float, action: Callable[[], None]) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer = self.trainings.clock.call_later(seconds, action)


@dataclass(eq=False)
class _Sidecar:
    """A sidecar container."""

    trainings: "Trainings"
    spec: ProcessSpec
    sidecar: Sidecar
    timer: Timer | None = None
    is_over: bool = False

    def end_after(self, seconds: float, code: int, *, by_itself: bool = False) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer = self.trainings.clock.call_later(seconds, lambda: self._end(code, by_itself=by_itself))

    def terminate(self) -> None:
        if not self.is_over and self.sidecar.sigterm_exit_code is not None:
            self.end_after(self.sidecar.sigterm_seconds, self.sidecar.sigterm_exit_code)

    def kill(self) -> None:
        if not self.is_over:
            self.end_after(0.0, SIGKILL_EXIT)

    def _end(self, code: int, *, by_itself: bool) -> None:
        if self.is_over:
            return
        self.is_over = True
        if by_itself:
            self.trainings.note_sidecar(self.spec)
        self.spec.on_exit(code, None)


@dataclass
class Trainings:
    """Implements the simulator's Processes."""

    clock: Clock
    chance: Chance
    objects: ObjectStore
    recipes: dict[str, Recipe]
    on_start: Callable[[ProcessSpec], None] = lambda _spec: None
    on_kill: Callable[[ProcessSpec, timedelta], None] = lambda _spec, _after: None
    """Called with the time since SIGTERM when a training is killed."""
    sidecars: Mapping[str, Sidecar] = field(default_factory=dict)
    """By family."""
    machine_fault_of: Callable[[ProcessSpec], MachineFault | None] = lambda _spec: None
    """Returns the fault of the machine that ends a training, None if there is none."""
    logs: dict[str, TrainingLog] = field(default_factory=lambda: defaultdict(TrainingLog))
    running: dict[str, _Training] = field(default_factory=dict)
    speed_of: Callable[[ProcessSpec], float] = lambda _spec: 1.0
    """Returns how fast a training is where it starts."""
    on_stalled: Callable[[ProcessSpec], None] = lambda _spec: None
    """Called when a training starts that is to gain no step from some point on."""
    check: Callable[[str, bool, str], None] = lambda _name, _holds, _message: None
    """Called with what must hold of the ranks of a gang, whether it does, and about which rank."""
    gangs: Gangs = field(init=False)

    def __post_init__(self) -> None:
        """Let ranks of gangs write to the same objects and logs."""
        self.gangs = Gangs(
            self.clock,
            self.chance,
            self.objects,
            self.recipes,
            self.logs,
            self.check,
            self.on_kill,
            lambda spec: self.machine_fault_of(spec),  # noqa: PLW0108 - it is set later
            lambda spec: self.speed_of(spec),  # noqa: PLW0108 - as well
        )

    def start(self, spec: ProcessSpec) -> ProcessHandle:
        """Start a training from the checkpoint that the environment names, or from the beginning; or a sidecar."""
        if spec.container == SIDECAR:
            return self._start_sidecar(spec)
        if is_of_gang(spec.environment):
            self.on_start(spec)
            return self.gangs.start(spec)
        job_id = spec.environment.get("RELAUNCH_JOB_ID", "")
        attempt = int(spec.environment.get("RELAUNCH_ATTEMPT", "0"))
        recipe = self.recipes[spec.environment["RECIPE"]]
        resume = _STEP.search(spec.environment.get("RELAUNCH_RESUME_URI", ""))
        done = float(resume[2]) if resume else 0.0
        self.on_start(spec)
        log = self.logs[job_id]
        log.started += 1
        speed = self.speed_of(spec)
        fails_at = done + recipe.failure_after_seconds * speed if log.failed < recipe.failures else None
        stalls_at = recipe.stalls_after_seconds if self.is_stalled(job_id, recipe) else None
        training = _Training(self, spec, recipe, job_id, attempt, done, fails_at, stalls_at=stalls_at, speed=speed)
        self.running[spec.task_arn] = training
        if stalls_at is not None:
            self.on_stalled(spec)
        if stalls_at == 0 and self.chance.stream(f"stalled/{job_id}/start").random() < _SAVES_AT_ITS_START:
            training.save()
        else:
            training.resume()
        fault = self.machine_fault_of(spec)
        if fault is not None:
            self.clock.call_later(fault.after_seconds, lambda: training.break_by(fault))
        return training

    def is_stalled(self, job_id: str, recipe: Recipe) -> bool:
        """Return whether the trainings of a job gain no step from some point on."""
        if recipe.stalls_after_seconds is None:
            return False
        return self.chance.stream(f"stalled/{job_id}").random() < recipe.stalled_share

    def _start_sidecar(self, spec: ProcessSpec) -> ProcessHandle:
        job_id = spec.started_by.rpartition("/")[0]
        sidecar = self.sidecars[source_family(spec.family)]
        started = _Sidecar(self, spec, sidecar)
        if len(self.logs[job_id].deserted) < sidecar.deaths:
            started.end_after(sidecar.dies_after_seconds, sidecar.exit_code, by_itself=True)
        return started

    def note_sidecar(self, spec: ProcessSpec) -> None:
        """Record that a sidecar ended by itself; one whose program had ended is harmless.

        Unless that left at a notice just before: only the event between the two ends says which of them was first.
        """
        log = self.logs[spec.started_by.rpartition("/")[0]]
        if spec.task_arn in self.running or log.endings.get(spec.task_arn) == "left":
            log.deserted.add(spec.task_arn)
            self.chance.note_organic("sidecar-died")

    def exit_now(self, task_arn: str) -> bool:
        """Finish a training now, for races; return False if it is not running."""
        training = self.running.get(task_arn)
        if training is None:
            return self.gangs.exit_now(task_arn)
        if training.fails_at is not None:
            return False
        training.exit(0, "finished")
        return True

    def seconds_left(self, task_arn: str) -> float:
        """Return how long a training would still run; 0 if it is not running."""
        training = self.running.get(task_arn)
        if training is None:
            return self.gangs.seconds_left(task_arn)
        until = min(training.recipe.work_seconds, training.fails_at or training.recipe.work_seconds)
        return (until - training.done) / training.speed

    def warn(self, task_arn: str) -> bool:
        """Put an interruption notice into a training's metadata; return False if it does not poll it."""
        training = self.running.get(task_arn)
        if training is None:
            if not self.gangs.warn(task_arn):
                return False
        elif not training.recipe.leaves_on_warning:
            return False
        else:
            training.leave()
        self.chance.note_organic("training-left-by-itself")
        return True

    def freeze(self, task_arn: str) -> None:
        """Let a training do nothing any more: its host hangs."""
        training = self.running.get(task_arn)
        if training is not None and training.timer is not None:
            training.timer.cancel()
        self.gangs.freeze(task_arn)

    def note_end(self, training: _Training, ending: str) -> None:
        """Record how a program ended."""
        log = self.logs[training.job_id]
        log.endings[training.spec.task_arn] = ending
        log.failed += ending in ("failed", "out of memory")
        log.finished += ending == "finished"
        self.running.pop(training.spec.task_arn, None)

    def close(self) -> None:
        """Do nothing: no process runs."""
