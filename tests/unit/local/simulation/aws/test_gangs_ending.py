"""How the ranks of a gang end: stopped, lost, hanging, early."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from fakes.gangs import JOB, WORK, GangWorld
from relaunch_local.ecs.processes.port import ProcessHandle
from relaunch_local.simulation.aws.recipes import GangRecipe, MachineFault


def test_after_sigterm_to_one_all_save_and_only_torchrun_of_that_one_fails() -> None:
    world = GangWorld()
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
    world = GangWorld()
    for handle in world.form():
        handle.terminate()
    world.wait(11)

    assert world.codes() == [1] * 4


def test_a_second_sigterm_while_all_save_makes_that_one_fail_too() -> None:
    world = GangWorld()
    handles = world.form()
    world.wait(100)
    handles[0].terminate()
    world.wait(5)
    handles[3].terminate()
    world.wait(6)

    assert world.codes() == [1, 0, 0, 1]


def test_torchrun_kills_a_save_that_takes_longer_than_half_a_minute() -> None:
    world = GangWorld(save_seconds=45.0)
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
    world = GangWorld(save_seconds=45.0)
    handles = world.form(TORCH_ELASTIC_SHUTDOWN_TIMEOUT="85")
    world.wait(100)
    handles[1].terminate()
    world.wait(46)

    assert world.codes() == [0, 1, 0, 0]
    assert world.objects.newest[JOB].step == 100


def test_ranks_that_do_not_save_on_sigterm_leave_the_others_alone() -> None:
    world = GangWorld(saves_on_sigterm=False)
    handles = world.form()
    handles[1].terminate()
    world.wait(6)

    assert world.codes() == [1] * 4
    assert world.endings() == {"sigterm", "peer lost"}


def test_ranks_that_ignore_sigterm_are_killed_by_torchrun() -> None:
    world = GangWorld(ignores_sigterm=True)
    handles = world.form()
    handles[1].terminate()
    world.wait(29)
    assert world.codes() == [None] * 4
    world.wait(7)

    assert world.codes() == [1] * 4


@pytest.mark.parametrize(("has_init", "code"), [(True, 143), (False, None)])
def test_a_rank_that_waits_notices_sigterm_only_behind_an_init_process(has_init: bool, code: int | None) -> None:
    world = GangWorld()
    handle = world.start(1, has_init=has_init)
    handle.terminate()
    world.wait(90)
    assert world.codes()[1] == code
    handle.kill()

    assert world.codes()[1] == (code or 137)
    assert world.kills == ([] if has_init else [timedelta(seconds=90)])


def lose(world: GangWorld, handles: list[ProcessHandle]) -> None:
    handles[2].kill()


def fail_on_machine(world: GangWorld, _handles: list[ProcessHandle]) -> None:
    world.wait(100)


@pytest.mark.parametrize("end", [lose, fail_on_machine])
def test_over_tcp_peers_of_a_lost_rank_fail_within_seconds(end: Callable[..., None]) -> None:
    world = GangWorld()
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
    world = GangWorld(gang=GangRecipe(nccl_share=1.0))
    handles = world.form()
    world.wait(100)
    handles[2].kill()
    world.wait(599)
    assert world.codes() == [None, None, 137, None]
    world.wait(2)

    assert world.codes() == [1, 1, 137, 1]


def test_a_hanging_rank_does_not_save_and_is_killed_by_torchrun() -> None:
    world = GangWorld(gang=GangRecipe(nccl_share=1.0))
    handles = world.form()
    world.wait(100)
    handles[2].kill()
    handles[0].terminate()
    world.wait(31)

    assert world.codes() == [1, None, 137, None]
    assert world.objects.newest == {}


def test_peers_of_a_host_that_hangs_wait_for_the_watchdog() -> None:
    world = GangWorld()
    handles = world.form()
    world.wait(100)
    world.trainings.freeze("g1/2")
    handles[2].terminate()
    world.wait(601)

    assert world.codes() == [1, 1, None, 1]
    handles[2].kill()
    assert world.codes()[2] == 137


def test_followers_end_when_the_machine_of_the_store_is_lost_before_all_have_met() -> None:
    world = GangWorld()
    handles = [world.start(rank) for rank in range(3)]
    handles[0].kill()
    world.wait(6)

    assert world.codes() == [137, 1, 1, None]


def test_others_wait_for_a_rank_that_left_early_and_fail() -> None:
    world = GangWorld(gang=GangRecipe(early_rank=0))
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
    world = GangWorld(failures=1, exit_code=exit_code, failure_after_seconds=50.0, gang=gang)
    world.form()
    world.wait(56)

    assert world.ends["g1/1"][:2] == seen
    assert [world.codes()[rank] for rank in (0, 2, 3)] == [1, 1, 1]
    assert world.trainings.logs[JOB].failed == 1
    world.form(group="g2")
    world.wait(WORK + 40)
    assert world.codes("g2") == [0] * 4


def test_a_notice_that_one_rank_reads_makes_all_save_and_exit_0() -> None:
    world = GangWorld(leaves_on_warning=True)
    world.form()
    world.wait(100)

    assert world.trainings.warn("g1/3")
    world.wait(11)

    assert world.codes() == [0] * 4
    assert world.endings() == {"left"}
    assert world.objects.newest[JOB].step == 100


def test_a_notice_that_nobody_reads_changes_nothing() -> None:
    world = GangWorld()
    world.form()

    assert not world.trainings.warn("g1/3")
    assert not world.trainings.warn("unknown")


def test_a_gang_may_finish_while_it_is_asked_to_stop() -> None:
    world = GangWorld()
    world.form()
    assert world.trainings.seconds_left("g1/0") == WORK

    assert world.trainings.exit_now("g1/1")

    assert world.codes() == [0] * 4
    assert world.trainings.seconds_left("g1/0") == 0
    assert not world.trainings.exit_now("g1/1")
