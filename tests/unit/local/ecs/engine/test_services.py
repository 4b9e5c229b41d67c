from fakes.simulated_region import SimulatedRegion, container
from relaunch.adapters.aws.ecs.target import EcsTarget
from relaunch_local.ecs import Purchase, Script


def test_a_daemon_runs_on_every_instance_counts_there_and_keeps_a_group_from_ending_it(region: SimulatedRegion) -> None:
    region.provider(max_size=1)
    region.register("train")
    region.register("agent", container(cpu=64, memory=128))
    region.script = lambda spec: Script(runtime_seconds=60.0 if spec.family == "train" else None)
    region.simulator.add_daemon_service("datadog", "agent", cluster="c")
    region.simulator.launch_instance("g5.xlarge", Purchase.ON_DEMAND, "us-east-1a", cluster="c")
    region.wait_for(region.run_one("g5-spot"), "STOPPED")
    region.clock.advance(3_600)
    target = EcsTarget(region.ecs, "c")

    nodes = [node for page in target.list_nodes() for node in page]
    tasks = [task for page in target.list_tasks() for task in page]

    assert [node.task_count for node in nodes] == [1, 1]
    assert {task.node: task.service for task in tasks} == {node.node.name: "datadog" for node in nodes}
    assert [task.owner for task in tasks] == [None, None]
    assert target.find_daemon_services() == {"datadog"}


def test_an_instance_without_room_for_a_daemon_is_without_it(region: SimulatedRegion) -> None:
    region.register("agent", container(memory=65_536))
    region.simulator.launch_instance("g5.xlarge", Purchase.ON_DEMAND, "us-east-1a", cluster="c")
    region.clock.advance(600)

    region.simulator.add_daemon_service("datadog", "agent", cluster="c")

    assert region.ecs.list_tasks(cluster="c")["taskArns"] == []


def test_services_come_ten_to_a_page_and_there_are_none_of_another_strategy(region: SimulatedRegion) -> None:
    region.register()
    for number in range(11):
        region.simulator.add_daemon_service(f"agent-{number}", "train", cluster="c")

    page = region.ecs.list_services(cluster="c")
    rest = region.ecs.list_services(cluster="c", nextToken=page["nextToken"])

    assert [len(each["serviceArns"]) for each in (page, rest)] == [10, 1]
    assert page["serviceArns"][0] == "arn:aws:ecs:us-east-1:111122223333:service/c/agent-0"
    assert region.ecs.list_services(cluster="c", schedulingStrategy="REPLICA")["serviceArns"] == []
    assert len(EcsTarget(region.ecs, "c").find_daemon_services()) == 11
