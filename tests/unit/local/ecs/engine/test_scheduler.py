from datetime import timedelta

from fakes.simulated_region import SimulatedRegion

ONE = [{"capacityProvider": "g5-spot", "weight": 1}]


def test_the_501st_waiting_task_is_refused(region: SimulatedRegion) -> None:
    region.simulator.limits.enabled = False
    region.provider()
    region.register()
    for _ in range(50):
        region.run("g5-spot", count=10)

    code = region.error_code("run_task", cluster="c", taskDefinition="train", capacityProviderStrategy=ONE)

    assert code == "ClientException"
    arn = region.ecs.list_tasks(cluster="c", maxResults=1)["taskArns"][0]
    region.ecs.stop_task(cluster="c", task=arn)
    assert region.run("g5-spot")["tasks"]


def test_a_provider_that_is_being_replaced_is_refused(region: SimulatedRegion) -> None:
    region.provider()
    region.register()
    provider = region.simulator.clusters.get("c").providers["g5-spot"]
    provider.is_active = False

    refused = region.error("run_task", cluster="c", taskDefinition="train", capacityProviderStrategy=ONE)

    assert "The specified capacity provider 'g5-spot' is not in an ACTIVE state." in refused
    provider.is_active = True
    assert region.run("g5-spot")["tasks"]


def test_a_task_whose_instance_ec2_refuses_stops_without_one_in_the_words_of_ec2(region: SimulatedRegion) -> None:
    region.provider(max_size=0)
    region.register()
    region.simulator.clusters.get("c").providers["g5-spot"].refusal = "UnfulfillableCapacity: so it is"

    task = region.wait_for(region.run_one("g5-spot"), "STOPPED")

    assert (task["stopCode"], task["stoppedReason"]) == (
        "TaskFailedToStart",
        "TaskFailedToStart: UnfulfillableCapacity: so it is",
    )
    assert task["stoppedAt"] - task["createdAt"] == timedelta(minutes=1)
