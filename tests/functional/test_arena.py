"""The commands of Arena's documentation, as definitions (examples/arena.yaml), on an API server that is strict.

Each job waits, in the words of the cluster, as long as what it names is not there, and completes when it is.
"""

import re
from collections.abc import Callable

import pytest

from fakes.repository import REPOSITORY
from relaunch.adapters.definition_file.parser import parse_definitions
from relaunch.adapters.kubernetes.manifest import preview_job
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.credentials import find_credential_notices
from relaunch_local.ecs.processes.port import Script
from relaunch_local.kubernetes.state import Document
from tests.unit.local.kubernetes.conftest import NAMESPACE, World

FILE = REPOSITORY / "examples" / "arena.yaml"
DEFINITIONS = {each.name: each for each in parse_definitions(FILE.read_text("utf-8"), FILE.name, load_catalogue())}
NODE = "whole-1"
TAINT = {"key": "gpu_node", "value": "invalid", "effect": "NoSchedule"}


def node(world: World) -> Document:
    return world.cluster.state.get("nodes", "", NODE)


def taint(world: World) -> None:
    node(world)["spec"]["taints"] = [TAINT]


def untaint(world: World) -> None:
    node(world)["spec"]["taints"] = []


def label(world: World) -> None:
    node(world)["metadata"]["labels"]["gpu_node"] = "true"
    world.cluster.schedule()


def add_rdma(world: World) -> None:
    node(world)["status"]["allocatable"]["rdma/hca"] = "8"
    world.cluster.schedule()


def add_class(world: World) -> None:
    world.cluster.admission.priority_classes.add("critical")


def nothing(_: World) -> None:
    """Leave the cluster as it is."""


# What the cluster lacks at first, the words with which the job waits (none: it runs all the same), and the way out.
Step = Callable[[World], object]
CASES: dict[str, tuple[Step, str, Step]] = {
    "pytorch-local-git": (
        nothing,
        'CreateContainerConfigError: secret "git" not found',
        lambda world: world.cluster.add_secret(NAMESPACE, "git", username="ada", password="s3cret"),
    ),
    "pytorch-selector": (nothing, "node(s) didn't match Pod's node affinity/selector", label),
    "pytorch-toleration": (taint, "", nothing),
    "pytorch-toleration-all": (taint, "", nothing),
    "pytorch-data": (
        nothing,
        'persistentvolumeclaim "pytorchdata" not found',
        lambda world: world.cluster.add_claim(NAMESPACE, "pytorchdata"),
    ),
    "pytorch-priority-critical": (nothing, "no PriorityClass with name critical was found", add_class),
    "tf-git-with-secret": (
        lambda world: world.cluster.add_claim(NAMESPACE, "training-data"),
        "",
        nothing,
    ),
    "tf-config-file": (nothing, "", nothing),
    "mpi-rdma": (nothing, "Insufficient rdma/hca", add_rdma),
    "tf-tensorboard": (nothing, "", nothing),
}


@pytest.fixture
def world() -> World:
    world = World(is_ack=True)
    world.cluster.remove_node("gpu-1")
    world.cluster.add_node(NODE, gpus=4)
    world.script = Script(runtime_seconds=10)
    return world


def said(world: World) -> str:
    """Return the words of the cluster about the job: in events, and in the states of containers."""
    statuses = [
        each
        for pod in world.pods()
        for kind in ("initContainerStatuses", "containerStatuses")
        for each in pod["status"].get(kind, ())
    ]
    waiting = [each["state"]["waiting"] for each in statuses if "waiting" in each["state"]]
    events = [each["message"] for each in world.cluster.state.all("events", NAMESPACE) if each["type"] == "Warning"]
    return "\n".join([*events, *(f"{each['reason']}: {each.get('message', '')}" for each in waiting)])


@pytest.mark.parametrize("name", CASES)
def test_a_command_of_arena_ends_as_it_should(world: World, name: str) -> None:
    begin, words, supply = CASES[name]
    begin(world)

    job, warnings = world.cluster.create_job(NAMESPACE, preview_job(DEFINITIONS[name], "relaunch"), is_strict=True)
    world.clock.advance(15)

    assert warnings == []
    assert words in said(world)
    assert not words or world.conditions(job["metadata"]["name"]) == []
    supply(world)
    world.clock.advance(45)
    assert world.conditions(job["metadata"]["name"])[-1] == ("Complete", "CompletionsReached")


@pytest.mark.parametrize("name", ["pytorch-toleration", "pytorch-toleration-all"])
def test_it_is_the_toleration_that_lets_a_job_run(world: World, name: str) -> None:
    taint(world)
    manifest = preview_job(DEFINITIONS[name], "relaunch")
    del manifest["spec"]["template"]["spec"]["tolerations"]

    world.cluster.create_job(NAMESPACE, manifest)

    assert "node(s) had untolerated taint {gpu_node: invalid}" in said(world)


def test_every_definition_is_a_case_and_none_has_a_credential() -> None:
    assert DEFINITIONS.keys() == CASES.keys()
    assert [each for definition in DEFINITIONS.values() for each in find_credential_notices(definition)] == []


def test_the_page_names_every_option_once_and_every_definition() -> None:
    page = (REPOSITORY / "docs" / "arena.md").read_text("utf-8")

    options = re.findall(r"^\| `--([a-z-]+)", page, re.MULTILINE)
    assert len(options) == len(set(options)) > 40
    assert [name for name in DEFINITIONS if f"`{name}`" not in page] == []
