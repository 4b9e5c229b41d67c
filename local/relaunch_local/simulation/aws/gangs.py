"""The ranks of trainings over several machines: they meet, train and save together, and end when one is gone.

What ranks do is what torchrun 2.13 was seen to do with the static rendezvous and `--max-restarts 0`: its agent ends
with 1 on SIGTERM, whatever its workers did, and kills them 30 s after it; workers that agree on a stop save everywhere,
and the agents that got no signal end with 0; where a peer is gone, workers over TCP fail within seconds, and NCCL's
hang until its watchdog ends them after ten minutes ("ProcessGroupNCCL", its default time-out); an agent waits 300 s for
the others at its exit barrier (torch: elastic/agent/server/api.py), and 600 s to meet them (static_tcp_rendezvous.py).
"""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch_local.ecs import Clock, ProcessSpec, Script, ScriptedProcesses
from relaunch_local.ecs.clock import Timer
from relaunch_local.ecs.processes.port import SIGKILL_EXIT, SIGTERM_EXIT, ProcessHandle
from relaunch_local.simulation.aws import gang_rules
from relaunch_local.simulation.aws.rank_environment import HOST_NETWORK, Network, RankEnvironment, read_rank
from relaunch_local.simulation.aws.recipes import OUT_OF_MEMORY, MachineFault, Recipe, TrainingLog
from relaunch_local.simulation.aws.s3 import Checkpoint, ObjectStore, manifest_of
from relaunch_local.simulation.chance import Chance

_AGENT_EXIT = 1
"""torchrun's, whatever code its worker had."""
_URI = re.compile(r"s3://([^/]+)/(.*)")
_STEP = re.compile(r"/step-([0-9]+)/\Z")


@dataclass(eq=False)
class Rank:
    """A container of a gang: torchrun's agent with its workers."""

    gangs: "Gangs"
    spec: ProcessSpec
    environment: RankEnvironment
    gang: "Gang"
    timer: Timer | None = None
    shutdown_timer: Timer | None = None
    terminated_at: datetime | None = None
    is_over: bool = False
    is_frozen: bool = False

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Do this later, instead of what it waits for."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = self.gangs.clock.call_later(seconds, action)

    def terminate(self) -> None:
        """Handle SIGTERM."""
        if self.is_over or self.is_frozen:
            return
        self.terminated_at = self.terminated_at or self.gangs.clock.now()
        if not self.gang.is_formed:
            # No handler yet: as PID 1 of its container it does not even notice.
            if self.spec.has_init:
                self.exit(SIGTERM_EXIT, "sigterm")
            return
        if self.shutdown_timer is None:
            self.shutdown_timer = self.gangs.clock.call_later(self.environment.shutdown_seconds, self._kill_workers)
        self.gang.stop(self)

    def kill(self) -> None:
        """End by SIGKILL or with the instance."""
        if not self.is_over and self.terminated_at is not None:
            self.gangs.on_kill(self.spec, self.gangs.clock.now() - self.terminated_at)
        self.exit(SIGKILL_EXIT, "sigkill")

    def exit(self, code: int, ending: str, reason: str | None = None) -> None:
        """Exit with this code, upon which the others miss it, unless the gang is over."""
        if self.is_over:
            return
        self.is_over = True
        for timer in (self.timer, self.shutdown_timer):
            if timer is not None:
                timer.cancel()
        self.gangs.ended(self, ending)
        self.spec.on_exit(code, reason)
        self.gang.left(self)

    def _kill_workers(self) -> None:
        self.exit(_AGENT_EXIT, "killed by torchrun")


@dataclass(eq=False)
class Gang:
    """A generation: the ranks of one group; `done` is their work in seconds, `speed` what they do of it in a second."""

    gangs: "Gangs"
    environment: RankEnvironment
    recipe: Recipe
    hangs: bool
    """Whether ranks hang when a peer is gone."""
    speed: float
    ranks: dict[int, Rank] = field(default_factory=dict)
    """Those that live."""
    stopped: set[int] = field(default_factory=set)
    """The ranks that got SIGTERM."""
    done: float = 0.0
    fails_at: float | None = None
    timer: Timer | None = None
    resumed_at: datetime | None = None
    state: str = "waiting"
    """waiting, training, saving, ending (each rank ends for itself), or broken (a rank is gone)."""
    is_leaving: bool = False

    @property
    def is_formed(self) -> bool:
        """Whether all ranks have met."""
        return self.state != "waiting"

    @property
    def is_at_work(self) -> bool:
        """Whether it trains or saves."""
        return self.state in ("training", "saving")

    def join(self, rank: Rank) -> None:
        """Let a rank wait for the others; all train once rank 0 is found and nobody is missing."""
        place = rank.environment
        living = self.ranks.get(place.rank)
        is_replaced = living is not None and self.gangs.is_replaced(living.spec)
        self.gangs.check(gang_rules.ONCE, living is None or is_replaced, f"rank {place.rank} of {place.group}")
        if living is None or (is_replaced and not self.is_formed):
            self.ranks[place.rank] = rank
        rank.after(gang_rules.JOIN_SECONDS, lambda: rank.exit(_AGENT_EXIT, "not joined"))
        self._meet()

    def _meet(self) -> None:
        """Begin if all are there, and find the first; where that may change, try again."""
        if len(self.ranks) < self.environment.nodes or self.is_formed:
            return
        if self._can_meet():
            self._form()
        elif self.gangs.network.may_change:
            self.gangs.clock.call_later(gang_rules.AGAIN_SECONDS, self._meet)

    def _can_meet(self) -> bool:
        is_reached = self.gangs.network.is_reached
        return all(is_reached(each.spec) for each in self.ranks.values()) and self._is_store(self.ranks[0])

    def _is_store(self, rank: Rank) -> bool:
        return rank.environment.rank == 0 and self.gangs.network.leads_to(self.environment.store[0], rank.spec)

    def _form(self) -> None:
        names = ("RELAUNCH_RESUME_URI", "RELAUNCH_CHECKPOINT_URI")
        wanted = {tuple(each.spec.environment.get(name, "") for name in names) for each in self.ranks.values()}
        self.gangs.check(gang_rules.ALIKE, len(wanted) == 1, f"{self.environment.group}: {sorted(wanted)}")
        for each in self.ranks.values():
            if each.timer is not None:
                each.timer.cancel()
        found = _STEP.search(self.ranks[0].spec.environment.get("RELAUNCH_RESUME_URI", ""))
        self.done = float(found[1]) if found else 0.0
        log = self.gangs.logs[self.environment.job_id]
        log.started += 1
        if log.failed < self.recipe.failures:
            self.fails_at = self.done + self.recipe.failure_after_seconds * self.speed
        self._resume()

    def _resume(self) -> None:
        """Work until the next checkpoint, the failure or the end, whichever comes first."""
        recipe = self.recipe
        nexts: list[tuple[float, Callable[[], None]]] = [(recipe.work_seconds, self._finish)]
        if recipe.checkpoint_seconds is not None and self.done + recipe.checkpoint_seconds < recipe.work_seconds:
            nexts.append((self.done + recipe.checkpoint_seconds, self.save))
        if self.fails_at is not None:
            nexts.append((self.fails_at, self._fail))
        target, then = min(nexts, key=lambda each: each[0])
        self.state = "training"
        self.resumed_at = self.gangs.clock.now()

        def arrive() -> None:
            self.done = target
            then()

        self._after(max(target - self.done, 0.0) / self.speed, arrive)

    def stop(self, rank: Rank) -> None:
        """Let SIGTERM of one rank stop all: those that save agree on it."""
        self.stopped.add(rank.environment.rank)
        if not self.is_at_work or self.recipe.ignores_sigterm:
            return
        if not self.recipe.saves_on_sigterm:
            rank.after(0.5, lambda: rank.exit(_AGENT_EXIT, "sigterm"))
            return
        self._save_and_end()

    def leave(self) -> bool:
        """Save and exit 0 everywhere, for a notice that one rank has read; return False if they cannot."""
        if not self.is_at_work or not self.recipe.leaves_on_warning:
            return False
        self._save_and_end()
        return True

    def _save_and_end(self) -> None:
        self.is_leaving = True
        if self.state == "training" and self.resumed_at is not None:
            self.done += (self.gangs.clock.now() - self.resumed_at).total_seconds() * self.speed
            self.save()

    def save(self) -> None:
        """Write a shard of each rank, one by one, and then the manifest."""
        self.state = "saving"
        match = _URI.fullmatch(self.ranks[0].spec.environment.get("RELAUNCH_CHECKPOINT_URI", ""))
        if match is None:
            self._saved()
            return
        step = int(self.done)
        folder = f"{match[2]}step-{step:07d}/"
        sizes = {f"rank-{number}.bin": 10 + step % 7 for number in range(self.environment.nodes)}
        pieces = [*sizes, "manifest.json"]
        attempt = self.environment.attempt

        def write(index: int) -> None:
            name = pieces[index]
            now = self.gangs.clock.now()
            body = manifest_of(step, attempt, sizes) if name not in sizes else b"x" * sizes[name]
            self.gangs.objects.write(match[1], folder + name, body, now)
            if name in sizes:
                self._after(self.recipe.save_seconds / len(pieces), lambda: write(index + 1))
                return
            saved = Checkpoint(step, attempt, f"s3://{match[1]}/{folder}")
            self.gangs.objects.complete(self.environment.job_id, saved, now)
            self._saved()

        self._after(self.recipe.save_seconds / len(pieces), lambda: write(0))

    def _saved(self) -> None:
        if not self.is_leaving:
            self._resume()
            return
        self.state = "ending"
        for number, rank in list(self.ranks.items()):
            is_stopped = number in self.stopped
            rank.exit(_AGENT_EXIT if is_stopped else 0, "sigterm" if is_stopped else "left")

    def seconds_left(self) -> float:
        """Return how long it would still work from its last step on; 0 if it does not."""
        until = min(self.recipe.work_seconds, self.fails_at or self.recipe.work_seconds)
        return (until - self.done) / self.speed if self.is_at_work else 0.0

    def finish_now(self) -> bool:
        """Finish the training now, for races; return False if it does not train, or is to fail."""
        if self.state != "training" or self.fails_at is not None:
            return False
        self._finish()
        return True

    def _finish(self) -> None:
        self.state = "ending"
        if self.timer is not None:
            # It may finish before its next checkpoint, for a race.
            self.timer.cancel()
        early = self.recipe.gang.early_rank
        log = self.gangs.logs[self.environment.job_id]
        if early is None or early not in self.ranks:
            log.finished += 1
            for rank in list(self.ranks.values()):
                rank.exit(0, "finished")
            return
        log.failed += 1
        self.ranks[early].exit(0, "left early")
        for rank in self.ranks.values():
            rank.after(gang_rules.BARRIER_SECONDS, lambda rank=rank: rank.exit(_AGENT_EXIT, "peer left"))  # type: ignore[misc]

    def _fail(self) -> None:
        rank = self.ranks[self.recipe.gang.failing_rank % self.environment.nodes]
        self.gangs.logs[self.environment.job_id].failed += 1
        if self.recipe.exit_code == SIGKILL_EXIT:
            rank.exit(SIGKILL_EXIT, "out of memory", OUT_OF_MEMORY)
        else:
            rank.exit(_AGENT_EXIT, "failed")

    def left(self, rank: Rank) -> None:
        """Note that a rank has ended: the others miss it, unless all were about to end."""
        if self.ranks.get(rank.environment.rank) is not rank:
            return
        del self.ranks[rank.environment.rank]
        if not self.is_formed and self._is_store(rank):
            self._end_each(gang_rules.TCP_SECONDS, "store lost")
        elif self.is_at_work:
            self.miss_peer(hangs=self.hangs)

    def miss_peer(self, *, hangs: bool) -> None:
        """Let nobody go on, since a rank is gone or hangs."""
        self.state = "broken"
        if self.timer is not None:
            self.timer.cancel()
        self._end_each(gang_rules.NCCL_SECONDS if hangs else gang_rules.TCP_SECONDS, "peer lost")

    def _end_each(self, seconds: tuple[float, float], ending: str) -> None:
        dice = self.gangs.chance.stream(f"gangs/{self.environment.group}")
        for rank in self.ranks.values():
            if not rank.is_frozen:
                rank.after(dice.uniform(*seconds), lambda rank=rank: rank.exit(_AGENT_EXIT, ending))  # type: ignore[misc]

    def _after(self, seconds: float, action: Callable[[], None]) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer = self.gangs.clock.call_later(seconds, action)


@dataclass
class Gangs:
    """The gangs of a region, and the stores at which their ranks meet."""

    clock: Clock
    chance: Chance
    objects: ObjectStore
    recipes: Mapping[str, Recipe]
    logs: Mapping[str, TrainingLog]
    """By job; each generation counts as one training."""
    check: Callable[[str, bool, str], None] = lambda _name, _holds, _message: None
    """Called with what must hold, whether it does, and about which rank."""
    on_kill: Callable[[ProcessSpec, timedelta], None] = lambda _spec, _after: None
    machine_fault_of: Callable[[ProcessSpec], MachineFault | None] = lambda _spec: None
    speed_of: Callable[[ProcessSpec], float] = lambda _spec: 1.0
    network: Network = HOST_NETWORK
    is_replaced: Callable[[ProcessSpec], bool] = lambda _spec: False
    """Whether a rank that lives is to go, and another one comes in its place."""
    ranks: dict[str, Rank] = field(default_factory=dict)
    """Those that live, by task."""
    groups: dict[str, Gang] = field(default_factory=dict)
    """Every generation that there was, by group."""
    _at_store: dict[tuple[str, int], list[Rank]] = field(default_factory=lambda: defaultdict(list))

    def start(self, spec: ProcessSpec) -> ProcessHandle:
        """Start a rank, which waits for the others."""
        try:
            place = read_rank(spec.environment, self.network)
        except ValueError as error:
            self.check(gang_rules.KNOWN, False, f"{spec.task_arn[-6:]}: {error}")  # noqa: FBT003 - as an assert
            failing = ScriptedProcesses(self.clock, lambda _spec: Script(runtime_seconds=1.0, exit_code=_AGENT_EXIT))
            return failing.start(spec)
        gang = self.groups.get(place.group)
        if gang is None:
            recipe = self.recipes[spec.environment["RECIPE"]]
            hangs = self.chance.stream(f"gangs/{place.group}").random() < recipe.gang.nccl_share
            gang = self.groups[place.group] = Gang(self, place, recipe, hangs, self.speed_of(spec))
        rank = Rank(self, spec, place, gang)
        self._check_place(rank)
        self.ranks[spec.task_arn] = rank
        self._at_store[place.store].append(rank)
        gang.join(rank)
        fault = self.machine_fault_of(spec)
        if fault is not None:
            self.clock.call_later(fault.after_seconds, lambda: self._break(rank, fault))
        return rank

    def _check_place(self, rank: Rank) -> None:
        place = rank.environment
        first = rank.gang.environment
        same = (first.job_id, first.attempt, first.nodes, first.store)
        message = f"rank {place.rank} of {place.group}"
        self.check(gang_rules.KNOWN, same == (place.job_id, place.attempt, place.nodes, place.store), message)
        self.check(gang_rules.USED, place.processes >= place.gpus, message)
        is_first = place.rank == 0 and not self.network.may_change
        reached = self.network.leads_to(place.store[0], rank.spec) if is_first else self.network.is_reached(rank.spec)
        self.check(gang_rules.REACHED, reached, f"{message} at {rank.spec.address}, of {place.store}")
        others = {each.environment.group for each in self._at_store[place.store]} - {place.group}
        self.check(gang_rules.MET, not others, f"{message} meets {', '.join(sorted(others))} at {place.store}")

    def ended(self, rank: Rank, ending: str) -> None:
        """Record how a rank ended, and free its place at the store."""
        self.logs[rank.environment.job_id].endings[rank.spec.task_arn] = ending
        self.ranks.pop(rank.spec.task_arn, None)
        self._at_store[rank.environment.store].remove(rank)

    def exit_now(self, task_arn: str) -> bool:
        """Finish the training of a rank now, for races; return False if it does not train."""
        rank = self.ranks.get(task_arn)
        return rank is not None and rank.gang.finish_now()

    def seconds_left(self, task_arn: str) -> float:
        """Return how long the training of a rank would still run; 0 if it does not."""
        rank = self.ranks.get(task_arn)
        return rank.gang.seconds_left() if rank is not None else 0.0

    def warn(self, task_arn: str) -> bool:
        """Put an interruption notice into a rank's metadata; return False if its program does not poll it."""
        rank = self.ranks.get(task_arn)
        return rank is not None and rank.gang.leave()

    def freeze(self, task_arn: str) -> None:
        """Let a rank do nothing any more, since its host hangs: no connection of the others is closed."""
        rank = self.ranks.get(task_arn)
        if rank is None:
            return
        rank.is_frozen = True
        for timer in (rank.timer, rank.shutdown_timer):
            if timer is not None:
                timer.cancel()
        if rank.gang.is_at_work:
            rank.gang.miss_peer(hangs=True)

    def _break(self, rank: Rank, fault: MachineFault) -> None:
        if not rank.is_over and rank.gang.is_at_work:
            fault.on_end()
            rank.exit(fault.exit_code, "broken", fault.reason)
