from dataclasses import replace

import pytest

from fakes.builders import make_container, make_definition, make_revision
from relaunch.core.definitions.targets import Target
from relaunch.core.selection.requirements import container_problem
from unit.core.selection.offered import needing, needing_gpu, revision_of

MAIN, SIDECAR = make_container(), make_container(name="sidecar")


@pytest.mark.parametrize(
    ("container", "containers", "problem"),
    [
        pytest.param(None, (MAIN,), None, id="the-only-one"),
        pytest.param("main", (MAIN, SIDECAR), None, id="named"),
        pytest.param(
            None,
            (MAIN, SIDECAR),
            "trainer:7 has several containers: say which one counts with `container`: main, sidecar",
            id="several",
        ),
        pytest.param("mian", (MAIN,), "trainer:7 has no container `mian`: it has main", id="unknown"),
    ],
)
def test_the_container_must_be_known_and_needed_with_several(container, containers, problem):
    definition = make_definition(container=container)

    assert container_problem(definition, revision_of(*containers)) == problem


@pytest.mark.parametrize("container", ["main", None], ids=["named", "the-only-one"])
def test_a_definition_that_asks_for_a_share_of_several_cards_is_refused(container):
    definition = replace(needing_gpu(count=2, memory_mib=2_048, compute_percent=30), container=container)

    assert container_problem(definition, revision_of(MAIN)) == (
        "trainer:7: a share is of one GPU: leave `count` out, or ask for 2 whole ones"
    )


def test_another_container_must_ask_for_gpus_the_same_way():
    definition = needing_gpu(memory_mib=2_048, compute_percent=30)

    for containers in ((MAIN, SIDECAR), (SIDECAR, MAIN)):
        assert container_problem(definition, revision_of(*containers)) == (
            "trainer:7: container `sidecar` asks for whole GPUs, the job for a share: ECS takes one kind in a task"
        )


def test_a_definition_without_gpu_leaves_it_to_the_revision_how_containers_ask_for_gpus():
    definition = needing(instance_types=("g5.xlarge",))
    sharing = make_container(name="sidecar", gpu_count=0, gpu_share_mib=2_048)

    assert container_problem(definition, revision_of(MAIN, sharing)) is None


def test_a_container_that_is_not_there_is_told_which_there_are():
    assert container_problem(make_definition(container="train"), revision_of(MAIN, SIDECAR)) == (
        "trainer:7 has no container `train`: it has main, sidecar"
    )


@pytest.mark.parametrize("mode", ["", "bridge", "awsvpc"])
def test_several_nodes_need_the_network_of_their_machines(mode):
    gang = make_definition(nodes=4)
    problem = container_problem(gang, make_revision(network_mode=mode))

    assert problem.startswith(
        "trainer:7: the 4 nodes of a job meet at the address of a machine, and its network mode is "
    )
    assert "HostAccess" in problem
    assert container_problem(gang, make_revision(network_mode="host")) is None
    # Pods have addresses of their own.
    assert container_problem(replace(gang, target=Target.ACK), make_revision(network_mode=mode)) is None
