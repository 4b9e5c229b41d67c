"""plan of jobs on clusters: the manifest of the Job, without AWS and without a cluster."""

from dataclasses import replace

import pytest
import yaml

from fakes.builders import make_definition
from fakes.cli_session import flat, invoke
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.kubernetes.node_labels import NodeLabel, NodeLabels
from relaunch.core.kubernetes.pod_grants import PodGrants

SHARE = ("--target", "ack", "--gpu", "1", "--gpu-memory", "2GiB", "--compute-percent", "30")
FILE = """jobs:
  train:
    target: acs
    kubernetes: {image: registry.example.com/trainer:v1, vcpus: 4, memory: 16GiB, gpu_model: T4}
    command: [python, train.py]
    environment: {EPOCHS: "3"}
    accelerator: {gpu: {}}
  resnet:
    task_definition: trainer
    container: main
    accelerator: {gpu: {memory: 16GiB}}
    checkpoint: s3://acme-checkpoints/
"""


@pytest.mark.usefixtures("_no_configuration")
def test_a_share_on_ack_is_shown_as_a_manifest_that_kubectl_reads():
    image = "registry.cn-beijing.aliyuncs.com/ai-samples/gpushare-sample:benchmark-tensorflow-2.2.3"

    result = invoke("plan", *SHARE, "--image", image, "--stack", "staging", columns=40)

    manifest = yaml.safe_load(result.stdout[result.stdout.index("apiVersion") :])
    pod = manifest["spec"]["template"]["spec"]
    assert result.exit_code == 0
    assert flat(result.stdout).startswith("30% of a GPU 2 GiB ack, whose cluster is not asked")
    assert (manifest["kind"], manifest["metadata"]["labels"]["relaunch/stack"]) == ("Job", "staging")
    assert pod["containers"][0]["image"] == image
    assert pod["containers"][0]["resources"] == {
        "limits": {"aliyun.com/gpu-mem": "2", "aliyun.com/gpu-core.percentage": "30"}
    }
    assert pod["nodeSelector"] == {"ack.node.gpu.schedule": "core_mem"}
    assert "the prices of the cluster are not known" in flat(result.stderr)


def test_the_same_as_json():
    document = invoke("plan", *SHARE, "--json").document

    (plan,) = document["plans"]
    assert (plan["target"], plan["is_satisfiable"], plan["problem"], plan["offerings"]) == ("ack", True, None, [])
    assert plan["manifest"]["spec"]["template"]["spec"]["containers"][0]["image"] == "IMAGE"
    assert document["prices"] == []


def test_what_is_rounded_is_noted():
    result = invoke("plan", "--target", "ack", "--gpu", "2", "--gpu-memory", "1500MiB")

    assert "aliyun.com/gpu-mem: '4'" in result.stdout
    assert "aliyun.com/gpu-count: '2'" in result.stdout
    assert "1,500 MiB are rounded up to 2 GiB" in result.stderr


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        ((*SHARE[:-1], "31"), ["--compute-percent: 31 percent cannot be submitted", "so give 30 or 35"]),
        (("--target", "acs", "--gpu", "1"), ["`--vcpus` is missing", "`--memory` is missing", "`--model` is missing"]),
        (("--target", "eks", "--gpu", "1"), ["--target: `eks` is a cluster like any other: write `kubernetes`"]),
        ((*SHARE, "--zone", "us-east-1a"), ["--zone cannot be combined with --target ack: it is about EC2"]),
        ((*SHARE, "--all-types", "--explain", "g5.xlarge"), ["--all-types and --explain cannot be combined"]),
        (("--gpu", "1", "--image", "trainer"), ["--image: is for clusters: `--target kubernetes`, `ack`, `acs`"]),
    ],
)
def test_what_the_target_cannot_have_is_refused(options, messages):
    result = invoke("plan", *options)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert all(each in result.stderr for each in messages)


@pytest.fixture
def mixed(tmp_path):
    file = tmp_path / "relaunch.yaml"
    file.write_text(FILE, encoding="utf-8")
    return file


@pytest.mark.parametrize("mode", [(), ("--offline",)])
def test_definitions_of_a_file_are_planned_each_on_its_target(relaunch, mixed, mode):
    train, resnet = relaunch("plan", str(mixed), *mode, "--json").document["plans"]

    container = train["manifest"]["spec"]["template"]["spec"]["containers"][0]
    assert (train["definition"], train["target"], train["task_definition"]) == ("train", "acs", None)
    assert (container["command"], container["env"]) == (["python", "train.py"], [{"name": "EPOCHS", "value": "3"}])
    # ACS's own manifests are pay-as-you-go.
    assert "alibabacloud.com/compute-qos" not in train["manifest"]["spec"]["template"]["metadata"]["labels"]
    assert (resnet["target"], resnet["manifest"], resnet["is_satisfiable"]) == ("ecs", None, True)


def test_a_file_is_shown_with_a_manifest_and_a_table(relaunch, mixed):
    result = relaunch("plan", str(mixed))

    assert result.exit_code == 0
    assert "train  acs  1x GPU" in result.stdout
    assert "name: train-1-1" in result.stdout
    assert "g5.xlarge" in result.stdout


def test_a_definition_for_a_target_that_the_stack_does_not_have_is_not_registered(relaunch, session, mixed):
    result = relaunch("apply", str(mixed))

    assert result.exit_code == 2
    assert f"{mixed}:2:3: jobs.train: the stack has no target acs, it has ecs: set AcsClusterId" in result.stderr
    assert [each.name for each in session.deps.definitions.list_definitions()] == ["resnet"]


def test_a_definition_with_both_blocks_is_registered_for_ecs(relaunch, session, mixed):
    text = FILE.replace("target: acs", "task_definition: trainer\n    container: main\n    target: ecs")
    mixed.write_text(text, encoding="utf-8")

    result = relaunch("apply", str(mixed))
    document = relaunch("definitions", "--json").document["definitions"][1]

    assert result.exit_code == 0
    assert (document["name"], document["target"], document["task_definition"]) == ("train", "ecs", "trainer")
    assert document["kubernetes"]["image"] == "registry.example.com/trainer:v1"
    assert document["kubernetes"]["gpu_driver"] is None


@pytest.mark.parametrize(("strict", "exit_code"), [("", 0), (", strict: true", 2)])
@pytest.mark.parametrize("mode", [(), ("--offline",)])
def test_the_driver_of_acs_is_held_against_the_bundled_list(relaunch, tmp_path, mode, strict, exit_code):
    file = tmp_path / "relaunch.yaml"
    file.write_text(FILE.replace("gpu_model: T4", "gpu_model: T4, gpu_driver: 550.90.07" + strict))

    result = relaunch("plan", str(file), *mode)

    said = (
        "driver 550.90.07 is not in ACS's list for T4 (580.95.05-open, 570.133.20, 535.161.08, 525.105.17; 2026-09-24)"
    )
    assert result.exit_code == exit_code
    assert said in flat(result.stderr)


def test_a_registered_definition_is_held_against_the_list_that_is_newer_than_it(relaunch, session):
    workload = KubernetesWorkload("trainer:1", vcpus=4, memory_mib=16384, gpu_model="T4", gpu_driver="470.82.01")
    accelerator = AcceleratorRequirement(gpu=GpuRequirement())
    strict = make_definition(name="strict", target=Target.ACS, kubernetes=replace(workload, strict=True))
    for definition in (make_definition(name="train", target=Target.ACS, kubernetes=workload), strict):
        session.register(replace(definition, accelerator=accelerator))

    noted, refused = relaunch("plan", "train"), relaunch("plan", "strict")

    assert (noted.exit_code, refused.exit_code) == (0, 4)
    assert "driver 470.82.01 is not in ACS's list for T4" in flat(noted.stderr)
    assert "name another one, or leave `strict` out" in flat(refused.stdout)


@pytest.mark.parametrize("mode", [(), ("--offline",)])
def test_a_credential_in_the_environment_is_noted_on_each_target_without_its_value(relaunch, mixed, mode):
    token = "hf" + "_" + "QwErTyUiOpAsDfGhJkLzXcVbNm"
    text = FILE.replace('{EPOCHS: "3"}', f"{{HF_TOKEN: {token}}}")
    text = text.replace("container: main", f"container: main\n    environment: {{HF_TOKEN: {token}}}")
    mixed.write_text(text, encoding="utf-8")

    notes = flat(relaunch("plan", str(mixed), *mode).stderr)

    said = "what looks like a credential is in `environment.HF_TOKEN`: it is stored with every job"
    assert notes.count(said) == 2
    assert "put it into `kubernetes.secrets`" in notes
    assert "put it into `secrets` of the task definition's container" in notes
    assert token not in notes


ANYWHERE = """jobs:
  train:
    target: kubernetes
    kubernetes: {image: registry.example.com/trainer:v1, gpu_model: nvidia-l4}
    accelerator: {gpu: {}}
    purchase: spot-then-on-demand
"""
GKE = NodeLabels("cloud.google.com/gke-accelerator", NodeLabel("cloud.google.com/gke-spot", "true"))


@pytest.mark.usefixtures("_no_configuration")
def test_a_partition_of_a_gpu_is_asked_for_by_its_resource():
    options = ("--target", "kubernetes", "--gpu", "1", "--gpu-resource", "nvidia.com/mig-1g.5gb", "--model", "A100")

    result = invoke("plan", *options, columns=200)

    manifest = yaml.safe_load(result.stdout[result.stdout.index("apiVersion") :])
    pod = manifest["spec"]["template"]["spec"]
    assert result.exit_code == 0
    assert pod["containers"][0]["resources"] == {"limits": {"nvidia.com/mig-1g.5gb": "1"}}
    assert pod["nodeSelector"] == {"nvidia.com/gpu.product": "A100"}
    assert "node labels are those of a stack that names none: KubernetesSpotLabel" in flat(result.stderr)


def test_the_nodes_of_a_plan_have_the_labels_of_the_stack(relaunch, session, tmp_path):
    file = tmp_path / "relaunch.yaml"
    file.write_text(ANYWHERE, encoding="utf-8")
    refused = relaunch("plan", str(file))
    session.deps = replace(session.deps, limits=StackLimits(pods=PodGrants(nodes=GKE)))

    (plan,) = relaunch("plan", str(file), "--json").document["plans"]

    assert refused.exit_code == 4
    assert "set its parameter KubernetesSpotLabel" in flat(refused.stdout)
    pod = plan["manifest"]["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"cloud.google.com/gke-accelerator": "nvidia-l4", "cloud.google.com/gke-spot": "true"}
    assert pod["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "cloud.google.com/gke-spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"},
    ]
