from ipaddress import IPv4Network

from fakes.fleet_region import FleetRegion, override
from fakes.simulated_region import container
from relaunch_local.ecs import HostPlan
from relaunch_local.ecs.engine.addresses import PrivateAddresses, private_dns_name


def test_an_address_is_anothers_once_it_is_released() -> None:
    addresses = PrivateAddresses()
    taken = [addresses.take(subnet) for subnet in ("subnet-a", "subnet-a", "subnet-b")]

    addresses.release("subnet-a", "10.0.0.4")

    assert taken == ["10.0.0.4", "10.0.0.5", "10.1.0.4"]
    assert PrivateAddresses(IPv4Network("127.16.0.0/12")).take("subnet-a") == "127.16.0.4"
    assert [addresses.take("subnet-a") for _ in range(2)] == ["10.0.0.4", "10.0.0.6"]


def test_names_have_the_region_but_in_the_first_one() -> None:
    assert private_dns_name("10.0.1.2", "us-east-1") == "ip-10-0-1-2.ec2.internal"
    assert private_dns_name("10.0.1.2", "eu-west-1") == "ip-10-0-1-2.eu-west-1.compute.internal"


def test_an_instance_keeps_its_address_until_it_is_terminated() -> None:
    region = FleetRegion()
    first = region.ready()
    address = region.described(first)["PrivateIpAddress"]
    region.ec2.terminate_instances(InstanceIds=[first])
    assert region.described(first)["PrivateIpAddress"] == address
    second = region.ready()
    region.clock.advance(65)
    third = region.ready()

    assert "PrivateIpAddress" not in region.described(first)
    assert region.described(second)["PrivateIpAddress"] != address
    assert region.described(third)["PrivateIpAddress"] == address
    assert region.described(third)["PrivateDnsName"] == private_dns_name(address, "us-east-1")
    by_address = region.ec2.describe_instances(Filters=[{"Name": "private-ip-address", "Values": [address]}])
    assert [each["Instances"][0]["InstanceId"] for each in by_address["Reservations"]] == [third]


def test_an_address_may_be_missing_at_first() -> None:
    region = FleetRegion()
    instance_id = region.launch(plan=HostPlan(visibility=1.0, addressed_after=40.0))
    region.clock.advance(39)
    assert "PrivateIpAddress" not in region.described(instance_id)

    region.clock.advance(1)

    assert region.described(instance_id)["PrivateIpAddress"]


def test_a_task_on_the_network_of_its_host_has_the_hosts_address() -> None:
    region = FleetRegion()
    instance_id = region.ready(override("g5.12xlarge"))
    init = container(linuxParameters={"initProcessEnabled": True})
    region.register("hosted", init, networkMode="host")
    region.register("bridged", container())

    for family in ("hosted", "bridged"):
        region.wait_for(region.run_one(taskDefinition=family), "RUNNING")

    hosted, bridged = region.processes.started
    assert hosted.address == region.described(instance_id)["PrivateIpAddress"]
    assert (bridged.address, bridged.has_init, hosted.has_init) == ("", False, True)


def test_two_tasks_with_one_port_do_not_fit_on_the_network_of_one_host() -> None:
    region = FleetRegion()
    region.ready(override("g5.12xlarge"))
    ports = container(portMappings=[{"containerPort": 29_500, "hostPort": 29_500}])
    region.register("rank", ports, networkMode="host")
    region.run_one(taskDefinition="rank")

    answer = region.run(taskDefinition="rank")

    assert [each["reason"] for each in answer["failures"]] == ["RESOURCE:PORTS"]
