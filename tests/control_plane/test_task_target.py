"""The contract of TaskTarget (tests/contracts/test_task_target.py) on all targets with pods over a real control plane.

Of its tests those run here that mean something on Kubernetes: the others are skipped in the contract too.
"""

import inspect
from collections.abc import Iterator

import pytest

from contracts import test_task_target as contract
from control_plane.cluster import real_cluster
from control_plane.namespaces import Namespace
from fakes.task_clusters import Cluster
from relaunch.core.definitions.targets import WITH_PODS
from relaunch.ports import TaskTarget

pytestmark = pytest.mark.kubernetes

# Pods wait for room, a cluster's machines are its own, and none of them is an EC2 instance.
NOT_ON_KUBERNETES = {
    "test_launch_without_room_is_a_failed_placement_with_reasons",
    "test_task_for_a_machine_of_our_own_runs_there_and_needs_no_capacity_provider",
    "test_task_for_a_machine_of_our_own_that_is_taken_or_not_there_runs_nowhere_else",
    "test_task_on_an_ec2_instance_tells_zone_and_instance",
    "test_running_and_stopping_tasks_are_found_on_their_machine_and_stopped_ones_are_not",
    "test_drained_machine_keeps_its_task_and_takes_no_other",
}
CONTRACT = {name: each for name, each in vars(contract).items() if name.startswith("test_")}

target = contract.target
globals().update({name: each for name, each in CONTRACT.items() if name not in NOT_ON_KUBERNETES})


@pytest.fixture(params=WITH_PODS, ids=[each.upper() for each in WITH_PODS])
def cluster(request: pytest.FixtureRequest, namespace: Namespace) -> Iterator[Cluster]:
    with real_cluster(namespace, request.param) as cluster:
        yield cluster


@pytest.mark.parametrize("name", sorted(NOT_ON_KUBERNETES))
def test_what_does_not_run_here_is_of_the_contract(name: str, cluster: Cluster, target: TaskTarget) -> None:
    left_out = CONTRACT[name]
    wanted = {"cluster": cluster, "target": target}

    # The contract itself leaves it out on a cluster; all else of it runs here.
    with pytest.raises(pytest.skip.Exception):
        left_out(**{each: wanted[each] for each in inspect.signature(left_out).parameters})
