import pytest

from fakes.builders import make_instance_type
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.selection.neuron_devices import (
    FIRST_PORT,
    NeuronClaim,
    RemainingResources,
    claim_all,
    claim_one,
    claims_all_devices,
    required_devices,
    requires_neuron,
)
from relaunch.core.selection.requirements import Requirements, derive_requirements
from unit.core.selection.offered import needing_neuron, revision_of

CATALOGUE = load_catalogue()
INF2 = CATALOGUE["inf2.24xlarge"]


def requirements_of(**neuron: int) -> Requirements:
    return derive_requirements(needing_neuron(**neuron), revision_of(vcpus=4, memory_mib=4096))


def room(*taken: int, vcpus: float = 96.0, memory_mib: int = 300_000) -> RemainingResources:
    return RemainingResources(vcpus, memory_mib, frozenset({22, 51678, *(FIRST_PORT + device for device in taken)}))


FULL = [room(0, vcpus=3.0), room(0, memory_mib=4095)]


@pytest.mark.parametrize(
    ("machine", "cores", "devices", "is_whole"),
    [
        ("inf1.6xlarge", 4, 1, False),
        ("inf1.6xlarge", 5, 2, True),
        ("inf1.xlarge", 4, 1, True),
        ("inf2.24xlarge", 2, 1, False),
        ("inf2.24xlarge", 4, 2, True),
        ("trn1.32xlarge", 2, 1, False),
        ("trn1.32xlarge", 4, 2, True),
        ("trn1.2xlarge", 2, 1, True),
        ("trn2.48xlarge", 4, 1, False),
        ("trn2.48xlarge", 5, 2, True),
    ],
)
def test_cores_choose_as_many_devices_as_have_them(machine, cores, devices, is_whole):
    required = requirements_of(cores=cores)

    assert required_devices(required, CATALOGUE[machine]) == devices
    assert claims_all_devices(required, CATALOGUE[machine]) is is_whole


def test_more_than_one_device_is_the_whole_machine():
    assert not claims_all_devices(requirements_of(devices=1), INF2)
    assert claims_all_devices(requirements_of(devices=2), INF2)
    assert claim_all(INF2).devices == (0, 1, 2, 3, 4, 5)


def test_a_machine_of_one_device_is_claimed_whole_with_the_port_that_one_device_takes():
    assert claims_all_devices(requirements_of(devices=1), CATALOGUE["trn1.2xlarge"])
    assert claim_all(CATALOGUE["trn1.2xlarge"]) == NeuronClaim((0,))


def test_claims_with_a_device_in_common_have_a_port_in_common_and_others_have_none():
    one, other, whole = NeuronClaim((1,)), NeuronClaim((2,)), claim_all(INF2)

    assert not set(one.host_ports) & set(other.host_ports)
    assert set(one.host_ports) < set(whole.host_ports)
    assert one.host_ports == (FIRST_PORT + 1,)
    assert one.paths == ("/dev/neuron1",)
    assert (str(one), str(whole)) == ("Neuron device 1", "all 6 Neuron devices")


def test_no_port_of_a_device_is_one_that_linux_or_ecs_gives_away():
    widest = max(each.neuron_devices for each in CATALOGUE.values())

    assert widest == 16
    # Linux: 32768 to 60999; Kubernetes' node ports begin at 30000; ECS reserves 51678 to 51680.
    assert FIRST_PORT > 1024
    assert FIRST_PORT + widest <= 30_000


@pytest.mark.parametrize(
    ("turn", "machines", "device"),
    [
        *(
            pytest.param(turn, [], device, id=f"without a machine turns go round: {turn}")
            for turn, device in enumerate([0, 1, 2, 3, 4, 5, 0, 1])
        ),
        pytest.param(0, [room(0, 1, 2, 3, 5)], 4, id="the free one of a running machine comes first"),
        pytest.param(5, [room(0, 1, 4, 5)], 2, id="the first of two free ones"),
        pytest.param(3, [room(0, 1, 2, 3, 4, 5), room(3, 4)], 5, id="of the second machine, from the turn on"),
        pytest.param(0, FULL, 0, id="machines without room for the task do not count"),
        pytest.param(0, [*FULL, room(0)], 1, id="one with room beside them does"),
        pytest.param(0, [room(0, vcpus=4.0, memory_mib=4096)], 1, id="exactly the room of the task is enough"),
        pytest.param(2, [room(0, 1, 2, 3, 4, 5)], 2, id="when every device is taken it is the turn that decides"),
    ],
)
def test_a_device_that_is_free_on_a_running_machine_is_claimed_or_else_that_of_the_turn(turn, machines, device):
    assert claim_one(INF2, turn, requirements_of(devices=1), machines).devices == (device,)


def test_a_job_that_names_no_number_takes_one_device():
    assert required_devices(Requirements(), INF2) == 1


def test_a_device_whose_cores_are_not_known_counts_as_one_core():
    unknown = make_instance_type("inf9.xlarge", neuron_devices=4, neuron_cores_per_device=0)

    assert required_devices(Requirements(neuron_cores=3), unknown) == 3


def test_who_lists_devices_or_asks_for_them_wants_them():
    assert requires_neuron(requirements_of(devices=1))
    assert requires_neuron(requirements_of(cores=2))
    assert requires_neuron(Requirements(neuron_devices=1))
    assert not requires_neuron(Requirements())
