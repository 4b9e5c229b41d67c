from datetime import timedelta

from fakes.fleet_region import FleetRegion, fleet_request, override


def test_the_same_token_and_body_give_the_same_answer_also_once_the_instance_is_gone() -> None:
    region = FleetRegion()
    answer = region.create(ClientToken="t")
    instance_id = answer["Instances"][0]["InstanceIds"][0]
    assert region.create(ClientToken="t") == answer

    region.simulator.terminate(instance_id)
    region.clock.advance(7_200)

    assert region.create(ClientToken="t") == answer
    assert len(region.simulator.instances.bill) == 1


def test_an_answer_with_errors_only_is_replayed_though_capacity_came_back() -> None:
    region = FleetRegion()
    unknown = override(subnet="subnet-x")
    answer = region.create(unknown, ClientToken="t")
    region.simulator.fleets.pools.subnets["subnet-x"] = "us-east-1b"

    assert region.create(unknown, ClientToken="t") == answer
    assert region.create(unknown, ClientToken="u")["Instances"]


def test_another_body_does_not_match() -> None:
    region = FleetRegion()
    region.create(ClientToken="t")

    changed = fleet_request(override(subnet="subnet-b"), ClientToken="t")
    assert region.raised("create_fleet", **changed) == "IdempotentParameterMismatch"
    assert len(region.simulator.instances.bill) == 1


def test_calls_without_a_token_are_independent() -> None:
    region = FleetRegion()

    assert region.create() != region.create()


def test_a_token_is_forgotten_after_its_lifetime() -> None:
    region = FleetRegion(token_lifetime=timedelta(hours=1))
    first = region.create(ClientToken="t")
    region.clock.advance(3_599)
    assert region.create(ClientToken="t") == first

    region.clock.advance(1)

    assert region.create(ClientToken="t") != first
    assert len(region.simulator.instances.bill) == 2


def test_a_call_that_was_refused_as_a_whole_leaves_its_token_free() -> None:
    region = FleetRegion()
    both = [override(), override(subnet="subnet-a2")]
    assert region.raised("create_fleet", **fleet_request(*both, ClientToken="t")) == "InvalidFleetConfig"

    assert region.create(ClientToken="t")["Instances"]
