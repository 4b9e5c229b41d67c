"""Machines and job definitions that the tests of the selection choose from."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from fakes.builders import NOW, make_container, make_definition, make_instance_type, make_offering, make_revision
from relaunch.core.definitions.accelerator import (
    AcceleratorRequirement,
    GpuRequirement,
    NeuronPurpose,
    NeuronRequirement,
    PurchaseOption,
)
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import CapacityMemory, Offering
from relaunch.core.offerings.peaks import Peaks
from relaunch.core.revisions.revision import ContainerRequirement, Revision
from relaunch.core.selection.offering_filters import SelectionLimits
from relaunch.core.selection.selection import Selection, select

ON_DEMAND, SPOT = PurchaseOption.ON_DEMAND, PurchaseOption.SPOT
A10G = make_instance_type("g5.xlarge", compute_capability=(8, 6))
FOUR_A10G = make_instance_type(
    "g5.12xlarge", gpu_count=4, logical_gpu_count=4, vcpus=48, memory_mib=196_608, accelerator_model="A10G"
)
T4 = make_instance_type("g4dn.xlarge", accelerator_model="T4", gpu_memory_mib=16_384, compute_capability=(7, 5))
ARM = make_instance_type("g5g.xlarge", accelerator_model="T4g", gpu_memory_mib=16_384, architecture="arm64")
EIGHTH = make_instance_type(
    "g6f.xlarge", accelerator_model="L4", gpu_count=0, gpu_partition_size=0.125, gpu_memory_mib=2_861
)
AMD = make_instance_type("g4ad.xlarge", accelerator_manufacturer="AMD", accelerator_model="Radeon Pro V520")
UNKNOWN = make_instance_type("c5.large", accelerator_manufacturer="", accelerator_model="", logical_gpu_count=0)
INFERENTIA2 = make_instance_type(
    "inf2.24xlarge",
    accelerator_manufacturer="AWS",
    accelerator_model="Inferentia2",
    gpu_count=0,
    logical_gpu_count=0,
    gpu_memory_mib=0,
    neuron_devices=6,
    neuron_cores_per_device=2,
    neuron_memory_mib=32_768,
    vcpus=96,
    memory_mib=393_216,
)

TRAINIUM = replace(INFERENTIA2, name="trn1.2xlarge", accelerator_model="Trainium")

PEAKS = {
    "A10G": Peaks((70.0, 70.0), (35.0, 35.0), (600.0, 600.0)),
    "A100": Peaks((312.0, 312.0), (19.5, 19.5), (1555.0, 2039.0)),
    "H100": Peaks((989.4, 989.4), (67.0, 67.0), (3352.0, 3352.0)),
    "K80": Peaks(None, (4.37, 4.37), (240.0, 240.0), has_bf16=False),
    "L4": Peaks((121.0, 121.0), (30.3, 30.3), (300.0, 300.0)),
    "T4": Peaks((65.0, 65.0), (8.1, 8.1), (320.0, 320.0), has_bf16=False),
    "V100": Peaks((125.0, 125.0), (15.7, 15.7), (900.0, 900.0), has_bf16=False),
    "Trainium": Peaks((190.0, 190.0), (47.5, 47.5), (820.0, 820.0)),
}


def needing(**fields: Any) -> JobDefinition:
    return make_definition(accelerator=AcceleratorRequirement(**fields))


def needing_gpu(**fields: Any) -> JobDefinition:
    return needing(gpu=GpuRequirement(**fields))


def needing_neuron(**fields: Any) -> JobDefinition:
    return needing(neuron=NeuronRequirement(**{"purpose": NeuronPurpose.INFERENCE} | fields))


def revision_of(*containers: ContainerRequirement, **fields: Any) -> Revision:
    return make_revision(containers=containers, **fields)


ONE_GPU = needing_gpu(count=1)
REVISION = make_revision()
NO_GPU_REVISION = revision_of(make_container(gpu_count=0))


def selected(
    definition: JobDefinition,
    *offerings: Offering,
    revision: Revision | None = REVISION,
    memory: CapacityMemory | None = None,
    left: float = 1.0,
    ran: timedelta = timedelta(0),
    **limits: Any,
) -> Selection:
    among = SelectionLimits(**limits)
    return select(definition, revision, offerings, memory or {}, NOW, among, left=left, ran=ran)


def offered(machine: InstanceType, purchase: PurchaseOption = ON_DEMAND, **fields: Any) -> Offering:
    return make_offering(machine, purchase, **fields)
