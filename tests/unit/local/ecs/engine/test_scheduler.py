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
