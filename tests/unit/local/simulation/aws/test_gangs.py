import pytest

from fakes.gangs import FOLDER, JOB, WORK, GangWorld
from relaunch_local.simulation.aws.gang_rules import ALIKE, KNOWN, MET, ONCE, REACHED, USED
from relaunch_local.simulation.aws.rank_environment import RANK_VARIABLES


def test_nothing_trains_before_all_ranks_have_met() -> None:
    world = GangWorld()
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
    world = GangWorld()
    world.form()
    world.wait(309)
    assert JOB not in world.objects.newest
    world.wait(2)

    saved = world.objects.newest[JOB]
    written = [key.rpartition("/")[2] for key, _ in world.objects.listed("acme-checkpoints", f"resnet/{JOB}/")]
    assert (saved.step, saved.uri) == (300, f"{FOLDER}step-0000300/")
    assert written == ["manifest.json", "rank-0.bin", "rank-1.bin", "rank-2.bin", "rank-3.bin"]


def test_a_gang_resumes_from_the_step_of_its_checkpoint() -> None:
    world = GangWorld()
    world.form(RELAUNCH_RESUME_URI=f"{FOLDER}step-0000900/")
    world.wait(101)

    assert world.codes() == [0] * 4


def test_who_waits_for_others_longer_than_ten_minutes_fails() -> None:
    world = GangWorld()
    for rank in (1, 2, 3):
        world.start(rank)
    world.wait(601)

    assert world.codes() == [None, 1, 1, 1]
    assert world.endings() == {"not joined"}


def test_a_later_rank_meets_nobody_who_has_given_up() -> None:
    world = GangWorld()
    for rank in range(3):
        world.start(rank)
    world.wait(601)
    world.start(3)
    world.wait(601)

    assert world.codes() == [1, 1, 1, 1]
    assert world.trainings.logs[JOB].started == 0


def test_two_generations_at_one_store_are_found() -> None:
    world = GangWorld()
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
    world = GangWorld()
    world.form()
    world.start(0, "g2", RELAUNCH_MASTER_PORT="29501", PET_MASTER_PORT="29501")

    assert world.broken == []


def test_a_gpu_that_no_process_uses_is_found() -> None:
    world = GangWorld()
    world.start(0, NVIDIA_VISIBLE_DEVICES="GPU-0,GPU-1", PET_NPROC_PER_NODE="2")
    assert world.broken == []

    world.start(1, NVIDIA_VISIBLE_DEVICES="GPU-2,GPU-3")
    assert world.broken == [USED]


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
    world = GangWorld()
    world.start(1 - rank)

    world.start(rank, **changed)

    assert world.broken == [broken]


@pytest.mark.parametrize("address", ["", "10.0.0.9"])
def test_nobody_meets_where_rank_0_is_not_found(address: str) -> None:
    world = GangWorld()
    world.start(0, address=address)
    for rank in (1, 2, 3):
        world.start(rank)
    world.wait(601)

    assert world.codes() == [1] * 4
    assert world.trainings.logs[JOB].started == 0


def test_a_rank_that_runs_twice_is_found() -> None:
    world = GangWorld()
    world.form()
    world.ends.clear()

    world.trainings.gangs.ranks["first"] = world.trainings.gangs.ranks.pop("g1/2")
    world.start(2)

    assert world.broken == [ONCE]


@pytest.mark.parametrize("name", ["RELAUNCH_RESUME_URI", "RELAUNCH_CHECKPOINT_URI"])
def test_ranks_that_disagree_about_checkpoints_are_found(name: str) -> None:
    world = GangWorld()
    for rank in range(3):
        world.start(rank)

    world.start(3, **{name: f"{FOLDER}other/"})

    assert world.broken == [ALIKE]
