"""Options are validated by the models of a definition file, with messages in terms of options."""

# ruff: noqa: E501 - one case a line, with the whole message

from datetime import timedelta

import pytest

from relaunch.adapters.definition_file.ad_hoc_request import (
    KUBERNETES_OPTIONS,
    OPTIONS,
    AdHocRequestError,
    Value,
    parse_request,
)
from relaunch.adapters.definition_file.parser import DefinitionFileError, parse_definitions
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.accelerator import (
    AcceleratorRequirement,
    GpuRequirement,
    Interconnect,
    Isolation,
    MeasuredOn,
    NeuronPurpose,
    NeuronRequirement,
    PurchasePolicy,
)
from relaunch.core.definitions.kubernetes_workload import ComputeClass, GpuPlacement, GpuSharing, KubernetesWorkload
from relaunch.core.definitions.targets import Target


def accelerator(**options: Value) -> AcceleratorRequirement:
    given = {f"--{name.replace('_', '-')}": value for name, value in options.items()}
    return parse_request(given, load_catalogue()).definition.accelerator


def problems(**options: Value) -> tuple[str, ...]:
    with pytest.raises(AdHocRequestError) as caught:
        accelerator(**options)
    return caught.value.problems


@pytest.mark.parametrize(
    ("options", "requirement"),
    [
        ({"gpu": "1", "gpu_memory": "24GiB", "model": ["A10G"]}, GpuRequirement(1, 24576, ("A10G",))),
        ({"gpu_memory": "2GiB", "compute_percent": "30"}, GpuRequirement(1, 2048, compute_percent=30)),
        (
            {"gpu_memory": "2GiB", "compute_percent": "30", "isolation": "required"},
            GpuRequirement(1, 2048, compute_percent=30, isolation=Isolation.REQUIRED),
        ),
        ({"model": ["A10G", "L4"]}, GpuRequirement(models=("A10G", "L4"))),
        (
            {"gpu": "8", "interconnect": "nvlink", "compute_capability": "bf16"},
            GpuRequirement(8, compute_capability=(8, 0), interconnect=Interconnect.NVLINK),
        ),
    ],
)
def test_options_ask_for_gpus_as_a_definition_does(options, requirement):
    assert accelerator(**options) == AcceleratorRequirement(gpu=requirement)


def test_options_ask_for_neuron_and_for_types():
    assert accelerator(neuron_cores="4") == AcceleratorRequirement(neuron=NeuronRequirement(cores=4))
    assert accelerator(neuron_devices="1") == AcceleratorRequirement(neuron=NeuronRequirement(devices=1))
    assert accelerator(
        neuron_devices="1", neuron_model=["Inferentia2"], neuron_purpose="inference"
    ) == AcceleratorRequirement(neuron=NeuronRequirement(1, models=("Inferentia2",), purpose=NeuronPurpose.INFERENCE))
    assert accelerator(instance_type=["g5.xlarge"]) == AcceleratorRequirement(instance_types=("g5.xlarge",))


def test_the_rest_of_a_job_can_be_given_too():
    options = {
        "--gpu": "1",
        "--purchase": "spot",
        "--max-price": "4",
        "--estimated-duration": "60h@4x A10G",
        "--checkpoint": "s3://acme/checkpoints",
        "--disk": "200GiB",
        "--vcpus": "3.5",
        "--memory": "15GiB",
        "--architecture": "arm64",
    }

    request = parse_request(options, load_catalogue())

    definition, revision = request.definition, request.revision
    assert (definition.purchase, definition.max_price_usd_per_hour) == (PurchasePolicy.SPOT, 4.0)
    assert (definition.estimated_duration, definition.disk_gib) == (timedelta(hours=60), 200)
    assert definition.estimated_on == MeasuredOn("A10G", 4)
    assert definition.checkpoint_uri == "s3://acme/checkpoints/"
    assert (revision.vcpus, revision.memory_mib, revision.architecture) == (3.5, 15360, "ARM64")


def test_options_for_kubernetes_are_for_its_block():
    options = {
        "--target": "acs",
        "--image": "registry.example.com/trainer:v1",
        "--vcpus": "4",
        "--memory": "16GiB",
        "--model": ["P16EN"],
        "--driver": "1.5.0",
        "--compute-class": "gpu-hpn",
        "--card-memory": "96GiB",
        "--cluster-region": "cn-beijing",
        "--gpu": "2",
    }

    request = parse_request(options, load_catalogue())

    assert request.definition.target is Target.ACS
    assert request.definition.accelerator == AcceleratorRequirement(gpu=GpuRequirement(2))
    assert request.definition.kubernetes == KubernetesWorkload(
        "registry.example.com/trainer:v1",
        vcpus=4.0,
        memory_mib=16 * 1024,
        region="cn-beijing",
        gpu_model="P16EN",
        compute_class=ComputeClass.GPU_HPN,
        gpu_driver="1.5.0",
        card_memory_mib=96 * 1024,
    )
    assert request.revision.containers[0].image == "registry.example.com/trainer:v1"


def test_options_of_ack_say_how_gpus_are_shared_and_need_no_image():
    options = {"--target": "ack", "--gpu-memory": "2GiB", "--gpu-sharing": "share", "--gpu-placement": "spread"}

    workload = parse_request(options, load_catalogue()).definition.kubernetes

    assert workload == KubernetesWorkload("IMAGE", gpu_sharing=GpuSharing.SHARE, gpu_placement=GpuPlacement.SPREAD)


def test_the_job_of_acks_document_can_be_said_by_options():
    options = {
        "--target": "ack",
        "--gpu-memory": "2GiB",
        "--compute-percent": "30",
        "--label": ["app=cuda-sample", "note=a-b"],
        "--node-selector": ["pool=training"],
        "--service-account": "train",
        "--working-directory": "/root",
        "--command": "bash run.sh '--name=two words'",
    }

    definition = parse_request(options, load_catalogue()).definition

    assert definition.kubernetes == KubernetesWorkload(
        "IMAGE",
        labels={"app": "cuda-sample", "note": "a-b"},
        node_selector={"pool": "training"},
        service_account="train",
        working_directory="/root",
    )
    assert definition.command == ("bash", "run.sh", "--name=two words")


SHARE = {"gpu_memory": "2GiB", "compute_percent": "30"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"target": "ack", "gpu_memory": "2GiB", "compute_percent": "17"},
            ["--compute-percent: 17 percent cannot be submitted: ACK takes multiples of 5 from 5 to 100, so give 15 or 20"],
        ),
        (
            {"target": "ack", "compute_percent": "30"},
            ["--compute-percent: a share of a GPU needs its memory too: give `--gpu-memory`, like 2GiB"],
        ),
        (
            {"target": "ack", **SHARE, "gpu_sharing": "cgpu"},
            ["--gpu-sharing: `cgpu` gives no share of compute: leave `--gpu-sharing` out, or leave `--compute-percent` out"],
        ),
        ({"target": "ack", **SHARE, "cluster_region": "cn-bejing"}, ["--cluster-region: ACK has no shares of compute in"]),
        ({"target": "ack", "neuron_cores": "4"}, ["--neuron-cores: ack has NVIDIA GPUs only: give `--gpu`"]),
        (
            {"target": "acs", "gpu": "1", "model": ["T4"]},
            [
                "`--vcpus` is missing: ACS sizes a pod by its requests",
                "`--memory` is missing: ACS sizes a pod by its requests",
            ],
        ),
        (
            {"target": "acs", "vcpus": "4", "memory": "8GiB", "gpu": "1"},
            ["`--model` is missing: ACS needs the model of the GPU, such as T4"],
        ),
        ({"target": "acs", "vcpus": "4", "memory": "8GiB", "gpu": "1", "model": ["T4", "A10"]}, ["--model: "]),
        (
            {"target": "acs", "vcpus": "4", "memory": "8GiB", **SHARE, "model": ["gpu"], "driver": "gpu_model", "card_memory": "9GiB"},
            [
                "--driver: `gpu_model` is not a driver version: write it like 535.161.08",
                "--compute-percent: compute class gpu of ACS has whole GPUs only: leave it out, or set `--compute-class` to gpu-hpn",
            ],
        ),
        ({"target": "acs", "gpu": "1", "compute_class": "gpux"}, ["--compute-class: `gpux` is none of gpu, gpu-hpn; did you mean `gpu`?"]),
        ({"target": "ack", "gpu": "1", "vcpus": "x"}, ["--vcpus: `x` is not a number of vCPUs: write it like 4 or 0.5"]),
        (
            {"target": "ack", "gpu": "1", "purchase": "spot"},
            ["--purchase: ACK has no spot capacity: set `--purchase` to on-demand"],
        ),
        ({"target": "ack", "gpu": "1", "label": ["app"]}, ["--label: `app` is not KEY=VALUE"]),
        ({"target": "ack", "gpu": "1", "node_selector": ["=x"]}, ["--node-selector: `=x` is not KEY=VALUE"]),
        ({"target": "ack", "gpu": "1", "label": ["app=Tesla T4"]}, ["--label: `Tesla T4` is not a label's value"]),
        ({"target": "ack", "gpu": "1", "command": "bash 'run"}, ["--command: no closing quotation in `bash 'run`"]),
        ({"target": "ack", "gpu": "1", "working_directory": "root"}, ["--working-directory: "]),
        ({"gpu": "1", "command": "bash"}, ["--command: is for clusters: `--target kubernetes`,"]),
        ({"target": "akc", "gpu": "1"}, ["--target: `akc` is none of ecs, kubernetes, ack, acs"]),
        (
            {"gpu": "1", "image": "trainer", "compute_class": "gpu"},
            [
                "--image: is for clusters: `--target kubernetes`, `ack`, `acs`",
                "--compute-class: is for clusters: `--target kubernetes`, `ack`, `acs`",
            ],
        ),
        ({"target": "ecs", "gpu": "1", "card_memory": "1GiB"}, ["--card-memory: is for clusters: `--target kubernetes`,"]),
    ],
)  # fmt: skip
def test_what_a_target_cannot_have_is_said_of_the_options(options, expected):
    said = problems(**options)

    assert len(said) == len(expected)
    assert all(each.startswith(beginning) for each, beginning in zip(said, expected, strict=True))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"gpu": "1", "neuron_cores": "4"},
            "--gpu, --neuron-cores: give `--gpu` or `--neuron-cores`, not both: no machine has both",
        ),
        (
            {"neuron_devices": "1", "neuron_cores": "4"},
            "--neuron-devices, --neuron-cores: give exactly one of `--neuron-devices` and `--neuron-cores`",
        ),
        (
            {"gpu": "2", "gpu_memory": "2GiB", "compute_percent": "30"},
            "--gpu, --gpu-memory, --compute-percent: a share is of one GPU: leave `--gpu` out, or ask for 2 whole ones",
        ),
        ({"compute_percent": "0", "gpu_memory": "2GiB"}, "--compute-percent: must be 1 or more"),
        ({"compute_percent": "101", "gpu_memory": "2GiB"}, "--compute-percent: must be 100 or less"),
        (
            {"compute_percent": "30"},
            "--compute-percent: a share of a GPU needs its memory too: give `--gpu-memory`, like 2GiB",
        ),
        (
            {"isolation": "required"},
            "--isolation: isolation is for a share of a GPU: give `--compute-percent` and `--gpu-memory` too",
        ),
        (
            {"gpu_memory": "24GB"},
            "--gpu-memory: `24GB` is not in a binary unit: write memory in GiB or MiB, not GB (24GB is 22.35GiB)",
        ),
        ({"gpu_memory": "24"}, "--gpu-memory: 24 has no unit: write 24GiB or 24MiB"),
        ({"model": ["L4", "A10"]}, "--model: unknown GPU model `A10`; did you mean `A100` or `A10G`?"),
        ({"gpu": "one"}, "--gpu: must be a whole number, not `one`"),
        ({"gpu": "0"}, "--gpu: must be 1 or more"),
        ({"purchase": "sport", "gpu": "1"}, "--purchase: `sport` is none of spot, on-demand, spot-then-on-demand"),
        ({"max_price": "cheap", "gpu": "1"}, "--max-price: "),
        ({"estimated_duration": "800h", "gpu": "1"}, "--estimated-duration: `800h` is longer than 30 days"),
        (
            {"estimated_duration": "8h@A10", "gpu": "1"},
            "--estimated-duration: unknown accelerator model `A10`; did you mean `A100` or `A10G`?",
        ),
        ({"vcpus": "0", "gpu": "1"}, "--vcpus: must be a number above 0, not `0`"),
        ({"memory": "16GB", "gpu": "1"}, "--memory: `16GB` is not in a binary unit"),
        ({"architecture": "arm", "gpu": "1"}, "--architecture: `arm` is none of x86_64, arm64"),
        ({"driver": "570"}, "--driver: on ECS no machine can be chosen by its driver"),
        ({"vcpus": "4"}, "give `--gpu`, `--neuron-devices` or `--instance-type`"),
    ],
)
def test_what_cannot_be_is_said_of_the_options(options, problem):
    (said,) = problems(**options)

    assert said.startswith(problem)


def test_all_problems_are_told_at_once():
    found = problems(gpu_memory="1GB", purchase="sport", vcpus="x")

    assert [each.split(":")[0] for each in found] == ["--gpu-memory", "--purchase", "--vcpus"]


@pytest.mark.parametrize(
    ("options", "yaml"),
    [
        ({"gpu_memory": "24GB"}, "gpu: {memory: 24GB}"),
        ({"model": ["H1000"]}, "gpu: {models: [H1000]}"),
        ({"gpu": "2.5"}, "gpu: {count: 2.5}"),
        ({"compute_percent": "101", "gpu_memory": "1GiB"}, "gpu: {memory: 1GiB, compute_percent: 101}"),
        ({"instance_type": ["g5xlarge"]}, "instance_types: [g5xlarge]"),
    ],
)
def test_a_file_says_the_same(options, yaml):
    text = f"jobs:\n  a:\n    task_definition: t\n    accelerator: {{{yaml}}}\n"
    with pytest.raises(DefinitionFileError) as caught:
        parse_definitions(text, "f", load_catalogue())

    (said,) = problems(**options)

    assert said.partition(": ")[2] == caught.value.problems[0].message


@pytest.mark.parametrize("paths", [OPTIONS, {**OPTIONS, **KUBERNETES_OPTIONS}], ids=["ECS", "Kubernetes"])
def test_every_option_is_a_key_of_its_own(paths):
    assert len(set(paths.values())) == len(paths)
