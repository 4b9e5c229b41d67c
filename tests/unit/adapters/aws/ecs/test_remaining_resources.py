from fakes.ecs_region import EcsWorld, container
from relaunch.adapters.aws.ecs.remaining_resources import read_remaining_resources
from relaunch.adapters.aws.ecs.target import EcsTarget
from relaunch.core.selection.neuron_devices import FIRST_PORT, RemainingResources


def with_machine() -> tuple[EcsWorld, EcsTarget]:
    """A provider's machine with a task on it that takes a port."""
    deps = EcsWorld()
    deps.provider(max_size=1)
    deps.register("train", container(portMappings=[{"containerPort": FIRST_PORT, "hostPort": FIRST_PORT}]))
    deps.wait_for(deps.run_one("g5-spot"), "RUNNING")
    return deps, EcsTarget(deps.ecs, "c")


def test_remaining_resources_exclude_those_of_tasks_and_the_agent() -> None:
    _, target = with_machine()

    (remaining,) = target.find_remaining_resources("g5.xlarge", "g5-spot")

    assert remaining.vcpus == 3.0
    assert 0 < remaining.memory_mib < 16_384 - 2_048
    assert {22, 51678, FIRST_PORT} <= remaining.used_ports
    assert FIRST_PORT + 1 not in remaining.used_ports


def test_instances_of_other_types_and_providers_and_draining_ones_are_ignored() -> None:
    deps, target = with_machine()

    assert target.find_remaining_resources("g6.xlarge", "g5-spot") == []
    assert target.find_remaining_resources("g5.xlarge", "another") == []
    (host,) = deps.simulator.clusters.get("c").hosts.values()
    deps.ecs.update_container_instances_state(cluster="c", containerInstances=[host.arn], status="DRAINING")
    assert target.find_remaining_resources("g5.xlarge", "g5-spot") == []


def test_a_machine_that_says_nothing_of_itself_has_nothing_left() -> None:
    assert read_remaining_resources({}) == RemainingResources(0.0, 0, frozenset())
