from fakes.simulated_region import SimulatedRegion


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


def test_a_provider_with_tasks_cannot_be_removed(region: SimulatedRegion) -> None:
    region.provider()
    region.register()
    region.run_one("g5-spot")

    code = region.error_code(
        "put_cluster_capacity_providers", cluster="c", capacityProviders=[], defaultCapacityProviderStrategy=[]
    )

    assert code == "ResourceInUseException"
