"""The revision of a job on Kubernetes."""

import pytest

from fakes.builders import make_definition
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.kubernetes.rules import kubernetes_revision
from relaunch.core.revisions.revision import ContainerRequirement, Revision, main_container

WORKLOAD = KubernetesWorkload("registry.example.com/trainer:v1", vcpus=4, memory_mib=16 * 1024)


@pytest.mark.parametrize(
    ("gpu", "fields"),
    [
        (GpuRequirement(2, memory_mib=2048), {"gpu_count": 2}),
        (GpuRequirement(memory_mib=2048, compute_percent=30), {"gpu_share_mib": 2048}),
        (GpuRequirement(compute_percent=30), {}),
        (None, {}),
    ],
)
def test_a_workload_is_a_revision_with_one_container(gpu, fields):
    definition = make_definition(
        target=Target.ACK, kubernetes=WORKLOAD, container=None, accelerator=AcceleratorRequirement(gpu=gpu)
    )
    revision = kubernetes_revision(definition)

    main = ContainerRequirement("main", WORKLOAD.image, memory_mib=16 * 1024, vcpus=4, **fields)
    assert revision == Revision("ack/resnet", "resnet", 0, (main,), network_mode="", vcpus=4, memory_mib=16 * 1024)
    assert main_container(definition, revision) == "main"


def test_the_container_has_the_name_that_the_definition_gives_it():
    definition = make_definition(kubernetes=KubernetesWorkload("trainer"), container="cuda-sample")

    (container,) = kubernetes_revision(definition).containers

    assert (container.name, container.memory_mib, container.vcpus) == ("cuda-sample", 0, 0)


def test_a_definition_for_ecs_alone_has_no_workload():
    with pytest.raises(ValueError, match="definition resnet has no workload"):
        kubernetes_revision(make_definition())
