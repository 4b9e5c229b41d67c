from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.group_faults import GROUP_FAULTS
from relaunch_local.simulation.aws.recipes import Recipe
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.drawn_scenario import draw_scenario
from relaunch_local.simulation.gang_scenario import PlannedGang, draw_gang, with_group_faults
from relaunch_local.simulation.machine_scenario import MachineScenario
from relaunch_local.simulation.scenario import Scenario

ALONE = Recipe(work_seconds=3_600.0, checkpoint_seconds=300.0, save_seconds=40.0, failures=2)


def draw(gangs: int) -> list[PlannedGang]:
    dice = Chance(1, Clock().now).stream("gangs")
    return [draw_gang(dice, ALONE) for _ in range(gangs)]


def test_gangs_are_of_every_kind() -> None:
    gangs = draw(300)

    assert {each.nodes for each in gangs} == {2, 3, 4, 8}
    assert {each.recipe.gang.nccl_share for each in gangs} == {0.0, 1.0}
    assert all(each.recipe.gang.failing_rank < each.nodes for each in gangs)
    early = [each.recipe.gang.early_rank for each in gangs if each.recipe.gang.early_rank is not None]
    assert 5 <= len(early) <= 30
    assert {each.recipe.failures for each in gangs} == {2}


def test_some_saves_take_longer_than_torchrun_waits() -> None:
    gangs = draw(300)
    slow = [each for each in gangs if each.recipe.save_seconds > 30]

    assert 20 <= len(slow) <= 80
    assert {bool(each.environment) for each in slow} == {True, False}
    assert not any(each.environment for each in gangs if each not in slow)


def test_the_same_dice_draw_the_same_gang() -> None:
    assert draw(7) == draw(7)


def test_group_faults_are_switched_on_by_a_scenario() -> None:
    assert MachineScenario().group_faults == {}
    assert with_group_faults(MachineScenario()).group_faults == GROUP_FAULTS


def drawn(seed: int, *, has_gangs: bool = False) -> Scenario:
    return draw_scenario(Chance(seed, Clock().now), has_gangs=has_gangs)


def test_some_seeds_have_gangs_and_all_others_are_as_they_were() -> None:
    assert [seed for seed in range(100, 200) if drawn(seed).has_gangs] == [134, 148, 162, 176, 190]
    assert drawn(7, has_gangs=True).has_gangs
    gang = next(each for each in drawn(190).definitions if each.nodes > 1)
    assert gang.name in {each.definition for each in drawn(190).events}


def cluster_nodes(seed: int, *, has_gangs: bool = False) -> int:
    cluster = drawn(seed, has_gangs=has_gangs).cluster
    return 0 if cluster is None else cluster.definition.nodes


def test_some_seeds_have_gangs_in_a_cluster_and_all_others_are_as_they_were() -> None:
    assert [seed for seed in range(300, 420) if cluster_nodes(seed) > 1] == [341, 362, 383, 404]
    # Of those that have gangs anyway every second company is given a cluster.
    assert cluster_nodes(6, has_gangs=True) > 1
    assert cluster_nodes(7, has_gangs=True) == 0


def test_gangs_in_clusters_are_of_every_kind() -> None:
    found = [cluster for seed in range(341, 341 + 21 * 60, 21) if (cluster := drawn(seed).cluster) is not None]
    definitions = [each.definition for each in found]

    assert {str(each.target) for each in definitions} == {"ack", "acs", "kubernetes"}
    assert {each.nodes for each in definitions} == {2, 3, 4}
    assert {each.minor for each in found} == {20, 24, 25, 26, 31, 36}
    queues = {each.kubernetes.queue for each in definitions if each.kubernetes is not None}
    assert queues == {"", "team-a"}
    alone = [
        each for each in definitions if each.kubernetes and not each.kubernetes.queue and str(each.target) != "ack"
    ]
    assert {each.max_running_jobs for each in alone} == {1}
    # There is room for one whole gang of each purchase option.
    assert all(2 * each.nodes >= each.definition.nodes * (2 if each.labels else 1) for each in found)
    recipes = [drawn(seed).recipes["atari"] for seed in range(341, 341 + 21 * 10, 21)]
    assert {each.gang.nccl_share for each in recipes} == {0.0, 1.0}
