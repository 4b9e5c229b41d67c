from relaunch.core.machines.settings import MachineSettings


def test_machines_are_on_where_there_is_a_subnet_for_them():
    assert MachineSettings(stack="relaunch", subnets={"us-east-1a": "subnet-0a1"}).is_on
    assert not MachineSettings(stack="relaunch", queue_url="https://sqs/machines").is_on
