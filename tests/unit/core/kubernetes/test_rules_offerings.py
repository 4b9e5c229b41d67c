"""What ACK and ACS offer: an offering for each purchase option, spot first, and none that was short lately."""

from datetime import timedelta

import pytest

from fakes.builders import NOW, make_definition
from relaunch.core.definitions.accelerator import (
    AcceleratorRequirement,
    GpuRequirement,
    NeuronRequirement,
    PurchaseOption,
    PurchasePolicy,
)
from relaunch.core.definitions.kubernetes_workload import ComputeClass, KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.kubernetes.rules import kubernetes_offerings, select_on_kubernetes
from relaunch.core.offerings.instance_types import NVIDIA, InstanceType
from relaunch.core.offerings.offering import CapacityFailure, OfferingKey
from relaunch.core.selection.selection import explain_rejection

T4 = KubernetesWorkload("trainer", gpu_model="T4")
SHARE = AcceleratorRequirement(gpu=GpuRequirement(memory_mib=2048, compute_percent=30))
SPOT, ON_DEMAND = PurchaseOption.SPOT, PurchaseOption.ON_DEMAND


def define(target, workload=T4, **fields):
    return make_definition(target=target, kubernetes=workload, **{"accelerator": SHARE, **fields})


def short(key, minutes):
    until = NOW + timedelta(minutes=minutes)
    return {key: CapacityFailure(key, "not started within 0:15:00", NOW - timedelta(minutes=5), until)}


@pytest.mark.parametrize(
    ("definition", "keys"),
    [
        pytest.param(define(Target.ACK), [("ack/T4", ON_DEMAND)], id="ack"),
        pytest.param(define(Target.ACK, KubernetesWorkload("trainer")), [("ack", ON_DEMAND)], id="any-gpu"),
        pytest.param(define(Target.ACS), [("acs/gpu/T4", SPOT), ("acs/gpu/T4", ON_DEMAND)], id="acs"),
        pytest.param(
            define(Target.ACS, KubernetesWorkload("t", compute_class=ComputeClass.GPU_HPN)),
            [("acs/gpu-hpn", ON_DEMAND)],
            id="reserved",
        ),
        pytest.param(define(Target.ACS, purchase=PurchasePolicy.SPOT), [("acs/gpu/T4", SPOT)], id="spot-only"),
        pytest.param(
            define(Target.ACK, None, accelerator=AcceleratorRequirement(neuron=NeuronRequirement(1))),
            [("ack", ON_DEMAND)],
            id="not-a-job-for-it",
        ),
    ],
)
def test_there_is_an_offering_for_each_purchase_option_without_a_zone_or_a_price(definition, keys):
    offered = kubernetes_offerings(definition)

    assert [each.key for each in offered] == [OfferingKey(name, None, purchase) for name, purchase in keys]
    assert {each.expected_usd_per_hour for each in offered} == {None}


@pytest.mark.parametrize(
    ("accelerator", "workload", "fields"),
    [
        (AcceleratorRequirement(gpu=GpuRequirement(2)), T4, {"name": "ack/T4", "accelerator_model": "T4"}),
        (SHARE, T4, {"name": "ack/T4", "accelerator_model": "T4", "gpu_memory_mib": 2048}),
        (AcceleratorRequirement(neuron=NeuronRequirement(1)), None, {"name": "ack", "accelerator_model": ""}),
    ],
    ids=["whole GPUs", "a share", "no GPU"],
)
def test_an_offering_stands_for_the_gpus_and_for_nothing_else_of_a_machine(accelerator, workload, fields):
    (offered,) = kubernetes_offerings(define(Target.ACK, workload, accelerator=accelerator))

    gpus = accelerator.gpu.count if accelerator.gpu else 0
    assert offered.instance_type == InstanceType(
        **({"vcpus": 0, "memory_mib": 0, "architecture": "", "accelerator_manufacturer": NVIDIA} | fields),
        gpu_count=gpus,
        logical_gpu_count=gpus,
    )


def test_capacity_that_was_short_lately_is_left_out_until_it_is_forgotten():
    spot = OfferingKey("acs/gpu/T4", None, SPOT)

    avoided = select_on_kubernetes(define(Target.ACS), short(spot, 25), NOW)
    forgotten = select_on_kubernetes(define(Target.ACS), short(spot, 0), NOW)

    assert [each.purchase for each in avoided.kept] == [ON_DEMAND]
    assert [each.purchase for each in forgotten.kept] == [SPOT, ON_DEMAND]


def test_a_job_that_nothing_is_left_for_knows_until_when():
    spot = OfferingKey("acs/gpu/T4", None, SPOT)

    selection = select_on_kubernetes(define(Target.ACS, purchase=PurchasePolicy.SPOT), short(spot, 25), NOW)

    assert (selection.kept, selection.retry_at) == ((), NOW + timedelta(minutes=25))
    assert [each.rejection.is_permanent for each in selection.rejected] == [False]
    assert explain_rejection(selection) == (
        "nothing is available right now: capacity-memory removed the last offering; the nearest was acs/gpu/T4 spot: "
        "not started within 0:15:00 at 09:21 UTC; avoided until 09:51 UTC"
    )
