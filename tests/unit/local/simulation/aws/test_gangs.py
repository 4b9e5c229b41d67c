from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from relaunch_local.ecs import Clock, ProcessSpec
from relaunch_local.ecs.processes.port import ProcessHandle
from relaunch_local.simulation.aws.gangs import ALIKE, KNOWN, MET, ONCE, REACHED
from relaunch_local.simulation.aws.rank_environment import RANK_VARIABLES
from relaunch_local.simulation.aws.recipes import GangRecipe, MachineFault, Recipe
from relaunch_local.simulation.aws.s3 import ObjectStore
from relaunch_local.simulation.aws.trainings import Trainings
from relaunch_local.simulation.chance import Chance

JOB = "resnet-1f2e3d4c"
WORK = 1_000.0
FOLDER = f"s3://acme-checkpoints/resnet/{JOB}/attempt-1/"


class World:
    """Four machines whose containers are ranks; `ends` has the exit code, reason and second of each that has ended."""

    def __init__(self, **recipe: Any) -> None:
        self.clock = Clock()
        self.started_at = self.clock.now()
        self.objects = ObjectStore()
        self.broken: list[str] = []
        self.ends: dict[str, tuple[int, str | None, float]] = {}
        members = {"work_seconds": WORK, "checkpoint_seconds": 300.0, "save_seconds": 10.0, **recipe}
        self.fault: MachineFault | None = None
        self.kills: list[timedelta] = []
        self.trainings = Trainings(
            self.clock,
            Chance(1, self.clock.now),
            self.objects,
            {"resnet": Recipe(**members)},
            on_kill=lambda _spec, after: self.kills.append(after),
            check=self._check,
        )
        self.trainings.machine_fault_of = lambda spec: self.fault if spec.task_arn.endswith("2") else None

    def _check(self, name: str, holds: bool, _message: str) -> None:
        self.broken += [] if holds else [name]

    @property
    def seconds(self) -> float:
        return (self.clock.now() - self.started_at).total_seconds()

    def start(self, rank: int, group: str = "g1", *, has_init: bool = True, **changed: str | None) -> ProcessHandle:
        """Start a rank of four on the machine with its number; None removes a variable."""
        place = {
            "RELAUNCH_JOB_ID": JOB,
            "RELAUNCH_ATTEMPT": "1",
            "RELAUNCH_NODES": "4",
            "RELAUNCH_NODE_RANK": str(rank),
            "RELAUNCH_MASTER_ADDR": "10.0.0.4",
            "RELAUNCH_MASTER_PORT": "29500",
            "RELAUNCH_GROUP": group,
            "RELAUNCH_CHECKPOINT_URI": FOLDER,
            "RECIPE": "resnet",
        }
        torchrun = {
            "PET_NNODES": "4",
            "PET_NODE_RANK": str(rank),
            "PET_MASTER_ADDR": "10.0.0.4",
            "PET_MASTER_PORT": "29500",
        }
        address = str(changed.pop("address", f"10.0.0.{4 + rank}"))
        environment = {name: value for name, value in {**place, **torchrun, **changed}.items() if value is not None}
        name = f"{group}/{rank}"

        def end(code: int, reason: str | None) -> None:
            assert name not in self.ends, "a container ends once"
            self.ends[name] = (code, reason, self.seconds)

        spec = ProcessSpec(
            task_arn=name,
            family="trainer",
            container="main",
            image="trainer:1",
            command=(),
            environment=environment,
            on_exit=end,
            address=address,
            has_init=has_init,
        )
        return self.trainings.start(spec)

    def form(self, **members: Any) -> list[ProcessHandle]:
        return [self.start(rank, **members) for rank in range(4)]

    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def codes(self, group: str = "g1") -> list[int | None]:
        """Return the exit codes of the four ranks, None of those that live."""
        ends = [self.ends.get(f"{group}/{rank}") for rank in range(4)]
        return [None if end is None else end[0] for end in ends]

    def at(self, rank: int) -> float:
        return self.ends[f"g1/{rank}"][2]

    def endings(self) -> set[str]:
        return set(self.trainings.logs[JOB].endings.values())


def test_nothing_trains_before_all_ranks_have_met() -> None:
    world = World()
    for rank in (2, 0, 1):
        world.start(rank)
    world.wait(500)
    world.start(3)
    world.wait(WORK + 29)
    assert world.codes() == [None] * 4

    world.wait(2)

    assert world.codes() == [0, 0, 0, 0]
    assert (world.trainings.logs[JOB].started, world.trainings.logs[JOB].finished) == (1, 1)
    assert world.broken == []


def test_a_checkpoint_has_a_shard_of_each_rank_and_its_manifest_comes_last() -> None:
    world = World()
    world.form()
    world.wait(309)
    assert JOB not in world.objects.newest
    world.wait(2)

    saved = world.objects.newest[JOB]
    written = [key.rpartition("/")[2] for key, _ in world.objects.listed("acme-checkpoints", f"resnet/{JOB}/")]
    assert (saved.step, saved.uri) == (300, f"{FOLDER}step-0000300/")
    assert written == ["manifest.json", "rank-0.bin", "rank-1.bin", "rank-2.bin", "rank-3.bin"]


def test_a_gang_resumes_from_the_step_of_its_checkpoint() -> None:
    world = World()
    world.form(RELAUNCH_RESUME_URI=f"{FOLDER}step-0000900/")
    world.wait(101)

    assert world.codes() == [0] * 4


def test_who_waits_for_others_longer_than_ten_minutes_fails() -> None:
    world = World()
    for rank in (1, 2, 3):
        world.start(rank)
    world.wait(601)

    assert world.codes() == [None, 1, 1, 1]
    assert world.endings() == {"not joined"}


def test_a_later_rank_meets_nobody_who_has_given_up() -> None:
    world = World()
    for rank in range(3):
        world.start(rank)
    world.wait(601)
    world.start(3)
    world.wait(601)

    assert world.codes() == [1, 1, 1, 1]
    assert world.trainings.logs[JOB].started == 0


def test_two_generations_at_one_store_are_found() -> None:
    world = World()
    handles = world.form()
    world.wait(100)
    world.start(0, "g2")
    assert world.broken == [MET]
    world.broken.clear()
    for handle in handles:
        handle.kill()
    world.start(1, "g2")

    assert world.broken == [], "nobody of the first one lives"


def test_generations_at_other_ports_do_not_meet() -> None:
    world = World()
    world.form()
    world.start(0, "g2", RELAUNCH_MASTER_PORT="29501", PET_MASTER_PORT="29501")

    assert world.broken == []


@pytest.mark.parametrize(
    ("rank", "changed", "broken"),
    [
        (0, {"address": "10.0.0.9"}, REACHED),
        (1, {"address": ""}, REACHED),
        (1, {"RELAUNCH_MASTER_PORT": "29501", "PET_MASTER_PORT": "29501"}, KNOWN),
        (1, {"RELAUNCH_ATTEMPT": "2"}, KNOWN),
        (1, {"PET_MASTER_PORT": "29501"}, KNOWN),
        (1, {"PET_NNODES": "3"}, KNOWN),
        (1, {"RELAUNCH_NODE_RANK": "4", "PET_NODE_RANK": "4"}, KNOWN),
        (1, {"RELAUNCH_MASTER_ADDR": "ip-10-0-0-4", "PET_MASTER_ADDR": "ip-10-0-0-4"}, KNOWN),
        *((1, {name: None}, KNOWN) for name in RANK_VARIABLES if name != "RELAUNCH_NODES"),
    ],
)
def test_a_rank_that_is_wrong_about_its_gang_is_found(rank: int, changed: dict[str, str | None], broken: str) -> None:
    world = World()
    world.start(1 - rank)

    world.start(rank, **changed)

    assert world.broken == [broken]


@pytest.mark.parametrize("address", ["", "10.0.0.9"])
def test_nobody_meets_where_rank_0_is_not_found(address: str) -> None:
    world = World()
    world.start(0, address=address)
    for rank in (1, 2, 3):
        world.start(rank)
    world.wait(601)

    assert world.codes() == [1] * 4
    assert world.trainings.logs[JOB].started == 0


def test_a_rank_that_runs_twice_is_found() -> None:
    world = World()
    world.form()
    world.ends.clear()

    world.trainings.gangs.ranks["first"] = world.trainings.gangs.ranks.pop("g1/2")
    world.start(2)

    assert world.broken == [ONCE]


@pytest.mark.parametrize("name", ["RELAUNCH_RESUME_URI", "RELAUNCH_CHECKPOINT_URI"])
def test_ranks_that_disagree_about_checkpoints_are_found(name: str) -> None:
    world = World()
    for rank in range(3):
        world.start(rank)

    world.start(3, **{name: f"{FOLDER}other/"})

    assert world.broken == [ALIKE]


def test_after_sigterm_to_one_all_save_and_only_torchrun_of_that_one_fails() -> None:
    world = World()
    handles = world.form()
    world.wait(100)
    handles[2].terminate()
    world.wait(9)
    assert world.codes() == [None] * 4
    world.wait(2)

    assert world.codes() == [0, 0, 1, 0]
    assert world.objects.newest[JOB].step == 100
    assert world.trainings.logs[JOB].finished == 0
    assert world.endings() == {"left", "sigterm"}


def test_after_sigterm_to_all_every_torchrun_fails() -> None:
    world = World()
    for handle in world.form():
        handle.terminate()
    world.wait(11)

    assert world.codes() == [1] * 4


def test_a_second_sigterm_while_all_save_makes_that_one_fail_too() -> None:
    world = World()
    handles = world.form()
    world.wait(100)
    handles[0].terminate()
    world.wait(5)
    handles[3].terminate()
    world.wait(6)

    assert world.codes() == [1, 0, 0, 1]


def test_torchrun_kills_a_save_that_takes_longer_than_half_a_minute() -> None:
    world = World(save_seconds=45.0)
    handles = world.form()
    world.wait(100)
    handles[1].terminate()
    world.wait(29.9)
    assert world.codes() == [None] * 4
    world.wait(6)

    assert world.codes() == [1, 1, 1, 1]
    assert world.at(1) == 130.0
    assert JOB not in world.objects.newest
    assert world.endings() == {"killed by torchrun", "peer lost"}


def test_the_shutdown_timeout_lets_it_save() -> None:
    world = World(save_seconds=45.0)
    handles = world.form(TORCH_ELASTIC_SHUTDOWN_TIMEOUT="85")
    world.wait(100)
    handles[1].terminate()
    world.wait(46)

    assert world.codes() == [0, 1, 0, 0]
    assert world.objects.newest[JOB].step == 100


def test_ranks_that_do_not_save_on_sigterm_leave_the_others_alone() -> None:
    world = World(saves_on_sigterm=False)
    handles = world.form()
    handles[1].terminate()
    world.wait(6)

    assert world.codes() == [1] * 4
    assert world.endings() == {"sigterm", "peer lost"}


def test_ranks_that_ignore_sigterm_are_killed_by_torchrun() -> None:
    world = World(ignores_sigterm=True)
    handles = world.form()
    handles[1].terminate()
    world.wait(29)
    assert world.codes() == [None] * 4
    world.wait(7)

    assert world.codes() == [1] * 4


@pytest.mark.parametrize(("has_init", "code"), [(True, 143), (False, None)])
def test_a_rank_that_waits_notices_sigterm_only_behind_an_init_process(has_init: bool, code: int | None) -> None:
    world = World()
    handle = world.start(1, has_init=has_init)
    handle.terminate()
    world.wait(90)
    assert world.codes()[1] == code
    handle.kill()

    assert world.codes()[1] == (code or 137)
    assert world.kills == ([] if has_init else [timedelta(seconds=90)])


def lose(world: World, handles: list[ProcessHandle]) -> None:
    handles[2].kill()


def fail_on_machine(world: World, _handles: list[ProcessHandle]) -> None:
    world.wait(100)


@pytest.mark.parametrize("end", [lose, fail_on_machine])
def test_over_tcp_peers_of_a_lost_rank_fail_within_seconds(end: Callable[..., None]) -> None:
    world = World()
    ended: list[int] = []
    world.fault = MachineFault(150.0, 93, "Xid 79", lambda: ended.append(1)) if end is fail_on_machine else None
    handles = world.form()
    world.wait(100)
    end(world, handles)
    world.wait(6)

    assert world.codes() == [1, 1, 137 if end is lose else 93, 1]
    assert len(ended) == (end is fail_on_machine)
    assert world.objects.newest == {}


def test_nccl_hangs_for_ten_minutes_when_a_rank_is_lost() -> None:
    world = World(gang=GangRecipe(nccl_share=1.0))
    handles = world.form()
    world.wait(100)
    handles[2].kill()
    world.wait(599)
    assert world.codes() == [None, None, 137, None]
    world.wait(2)

    assert world.codes() == [1, 1, 137, 1]


def test_a_hanging_rank_does_not_save_and_is_killed_by_torchrun() -> None:
    world = World(gang=GangRecipe(nccl_share=1.0))
    handles = world.form()
    world.wait(100)
    handles[2].kill()
    handles[0].terminate()
    world.wait(31)

    assert world.codes() == [1, None, 137, None]
    assert world.objects.newest == {}


def test_peers_of_a_host_that_hangs_wait_for_the_watchdog() -> None:
    world = World()
    handles = world.form()
    world.wait(100)
    world.trainings.freeze("g1/2")
    handles[2].terminate()
    world.wait(601)

    assert world.codes() == [1, 1, None, 1]
    handles[2].kill()
    assert world.codes()[2] == 137


def test_followers_end_when_the_machine_of_the_store_is_lost_before_all_have_met() -> None:
    world = World()
    handles = [world.start(rank) for rank in range(3)]
    handles[0].kill()
    world.wait(6)

    assert world.codes() == [137, 1, 1, None]


def test_others_wait_for_a_rank_that_left_early_and_fail() -> None:
    world = World(gang=GangRecipe(early_rank=0))
    world.form()
    world.wait(WORK + 40)
    assert world.codes() == [0, None, None, None]
    world.wait(300)

    assert world.codes() == [0, 1, 1, 1]
    assert world.at(1) - world.at(0) == 300.0
    assert (world.trainings.logs[JOB].finished, world.trainings.logs[JOB].failed) == (0, 1)


@pytest.mark.parametrize(
    ("exit_code", "seen"), [(7, (1, None)), (137, (137, "OutOfMemoryError: Container killed due to memory usage"))]
)
def test_the_program_of_one_rank_fails_once(exit_code: int, seen: tuple[int, str | None]) -> None:
    gang = GangRecipe(failing_rank=5)
    world = World(failures=1, exit_code=exit_code, failure_after_seconds=50.0, gang=gang)
    world.form()
    world.wait(56)

    assert world.ends["g1/1"][:2] == seen
    assert [world.codes()[rank] for rank in (0, 2, 3)] == [1, 1, 1]
    assert world.trainings.logs[JOB].failed == 1
    world.form(group="g2")
    world.wait(WORK + 40)
    assert world.codes("g2") == [0] * 4


def test_a_notice_that_one_rank_reads_makes_all_save_and_exit_0() -> None:
    world = World(leaves_on_warning=True)
    world.form()
    world.wait(100)

    assert world.trainings.warn("g1/3")
    world.wait(11)

    assert world.codes() == [0] * 4
    assert world.endings() == {"left"}
    assert world.objects.newest[JOB].step == 100


def test_a_notice_that_nobody_reads_changes_nothing() -> None:
    world = World()
    world.form()

    assert not world.trainings.warn("g1/3")
    assert not world.trainings.warn("unknown")


def test_a_gang_may_finish_while_it_is_asked_to_stop() -> None:
    world = World()
    world.form()
    assert world.trainings.seconds_left("g1/0") == WORK

    assert world.trainings.exit_now("g1/1")

    assert world.codes() == [0] * 4
    assert world.trainings.seconds_left("g1/0") == 0
    assert not world.trainings.exit_now("g1/1")
