from fakes.simulated_region import SimulatedRegion, container
from relaunch.adapters.aws.ecs.target import EcsTarget, read_remaining_resources
from relaunch.core.selection.neuron_devices import FIRST_PORT, RemainingResources


def with_machine() -> tuple[SimulatedRegion, EcsTarget]:
    """A provider's machine with a task on it that takes a port."""
    region = SimulatedRegion()
    region.provider(max_size=1)
    region.register("train", container(portMappings=[{"containerPort": FIRST_PORT, "hostPort": FIRST_PORT}]))
    region.wait_for(region.run_one("g5-spot"), "RUNNING")
    return region, EcsTarget(region.ecs, "c")


def test_remaining_resources_exclude_those_of_tasks_and_the_agent() -> None:
    _, target = with_machine()

    (remaining,) = target.find_remaining_resources("g5.xlarge", "g5-spot")

    assert remaining.vcpus == 3.0
    assert 0 < remaining.memory_mib < 16_384 - 2_048
    assert {22, 51678, FIRST_PORT} <= remaining.used_ports
    assert FIRST_PORT + 1 not in remaining.used_ports


def test_instances_of_other_types_and_providers_and_draining_ones_are_ignored() -> None:
    region, target = with_machine()

    assert target.find_remaining_resources("g6.xlarge", "g5-spot") == []
    assert target.find_remaining_resources("g5.xlarge", "another") == []
    assert target.find_remaining_resources("g5.xlarge", "g5-spot", "i-0123456789abcdef0") == []
    (running,) = region.simulator.instances.by_id
    assert len(target.find_remaining_resources("g5.xlarge", "g5-spot", running)) == 1
    (host,) = region.simulator.clusters.get("c").container_instances.values()
    region.ecs.update_container_instances_state(cluster="c", containerInstances=[host.arn], status="DRAINING")
    assert target.find_remaining_resources("g5.xlarge", "g5-spot") == []


def test_a_machine_that_says_nothing_of_itself_has_nothing_left() -> None:
    assert read_remaining_resources({}) == RemainingResources(0.0, 0, frozenset())
