from fakes.simulated_region import SimulatedRegion
from relaunch_local.ecs import AutoScalingGroup, Purchase


def test_a_provider_that_another_cluster_uses_cannot_be_associated(region: SimulatedRegion) -> None:
    region.provider()
    region.ecs.create_cluster(clusterName="d")

    code = region.error_code(
        "put_cluster_capacity_providers",
        cluster="d",
        capacityProviders=["g5-spot"],
        defaultCapacityProviderStrategy=[],
    )

    assert code == "InvalidParameterException"


def test_the_name_of_a_provider_ends_with_its_last_letter(region: SimulatedRegion) -> None:
    group = AutoScalingGroup("g", "g5.xlarge", Purchase.SPOT, ("us-east-1a",))
    arn = region.simulator.clusters.add_group(group)

    code = region.error_code(
        "create_capacity_provider", name="p\n", autoScalingGroupProvider={"autoScalingGroupArn": arn}
    )

    assert code == "ClientException"


def test_providers_come_in_pages_of_ten(region: SimulatedRegion) -> None:
    names = [region.provider(f"p{number}") for number in range(12)]

    for request in ({}, {"capacityProviders": names}):
        first = region.ecs.describe_capacity_providers(**request)
        second = region.ecs.describe_capacity_providers(**request, nextToken=first["nextToken"])
        assert [each["name"] for each in first["capacityProviders"]] == names[:10]
        assert [each["name"] for each in second["capacityProviders"]] == names[10:]
        assert "nextToken" not in second
    assert len(region.ecs.describe_capacity_providers(maxResults=3)["capacityProviders"]) == 3


def test_a_provider_with_tasks_cannot_be_removed(offered: SimulatedRegion) -> None:
    offered.run_one("g5-spot")

    code = offered.error_code(
        "put_cluster_capacity_providers", cluster="c", capacityProviders=[], defaultCapacityProviderStrategy=[]
    )

    assert code == "ResourceInUseException"
