"""What becomes of pods with volumes, secrets, tolerations and classes: refused, waiting, or with a warning."""

from typing import Any

import pytest

from relaunch_local.ecs.processes.port import Script
from relaunch_local.kubernetes.errors import ApiError
from relaunch_local.kubernetes.job_rules import admit_job
from relaunch_local.kubernetes.pod_fields import expand
from tests.unit.local.kubernetes.conftest import NAMESPACE, World, manifest

POD = "spec.template.spec"
SHM = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}
SECRET = {"secretKeyRef": {"name": "wandb", "key": "token"}}


def job(**pod: Any) -> dict[str, Any]:
    """A Job whose pod has these fields, and whose container those of `main`."""
    made = manifest()
    spec = made["spec"]["template"]["spec"]
    spec["containers"][0] |= pod.pop("main", {})
    spec |= pod
    return made


def env(**variable: Any) -> dict[str, Any]:
    return {"env": [{"name": "A", **variable}]}


def mounts(*paths: str, name: str = "shm") -> dict[str, Any]:
    return {"volumeMounts": [{"name": name, "mountPath": path} for path in paths]}


# Words of pkg/apis/core/validation, and of Go's decoder.
@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (job(hostNetwork="yes"), f"unmarshal string into Go struct field PodSpec.{POD}.hostNetwork of type bool"),
        (job(tolerations={}), f"object into Go struct field PodSpec.{POD}.tolerations of type []v1.Toleration"),
        (job(tolerations=[{"key": 1}]), f"number into Go struct field Toleration.{POD}.tolerations.key of type string"),
        (job(nodeSelector={"gpu": True}), f"bool into Go struct field PodSpec.{POD}.nodeSelector of type string"),
        (job(main={"args": "x"}), f"string into Go struct field Container.{POD}.containers.args of type []string"),
        (job(volumes=[{"name": "s", "emptyDir": {"sizeLimit": "8 GiB"}}]), "quantities must match the regular expr"),
        (job(volumes=[{"emptyDir": {}}]), f"{POD}.volumes[0].name: Required value"),
        (job(volumes=[{"name": "A_b", "emptyDir": {}}]), 'Invalid value: "A_b": a lowercase RFC 1123 label must'),
        (job(volumes=[SHM, SHM]), f'{POD}.volumes[1].name: Duplicate value: "shm"'),
        (job(volumes=[{**SHM, "secret": {}}]), "Forbidden: may not specify more than 1 volume type"),
        (job(volumes=[{"name": "d", "persistentVolumeClaim": {}}]), "persistentVolumeClaim.claimName: Required value"),
        (job(volumes=[{"name": "s", "emptyDir": {"sizeLimit": "-1"}}]), "SizeLimit field must be a valid resource"),
        (job(main=mounts("/a")), f'{POD}.containers[0].volumeMounts[0].name: Not found: "shm"'),
        (job(volumes=[SHM], main=mounts("/a", "/a")), 'mountPath: Invalid value: "/a": must be unique'),
        (job(volumes=[SHM], main=mounts("")), "volumeMounts[0].mountPath: Required value"),
        (job(main={"volumeMounts": [{"mountPath": "/a", "subPath": "../b"}]}), "must not contain '..'"),
        (job(main={"env": [{"name": "A=B"}, {}]}), "a valid environment variable name must consist of"),
        (job(main=env(value="x", valueFrom=SECRET)), "may not be specified when `value` is not empty"),
        (job(main=env(valueFrom={})), "must specify one of: `fieldRef`, `resourceFieldRef`"),
        (job(main=env(valueFrom={"secretKeyRef": {"name": "x"}})), "valueFrom.secretKeyRef.key: Required value"),
        (job(tolerations=[{"effect": "NoSchedule"}]), "operator must be Exists when `key` is empty"),
        (job(tolerations=[{"key": "a", "operator": "In"}]), 'Unsupported value: "In": supported values: "Equal"'),
        (job(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]), "value must be empty when `operator`"),
        (job(tolerations=[{"key": "a", "effect": "Never"}]), 'supported values: "NoSchedule", "PreferNoSchedule"'),
        (job(tolerations=[{"key": "a", "tolerationSeconds": 5}]), "effect must be 'NoExecute' when `toleration"),
        (job(nodeSelector={"gpu": "Tesla T4"}), f'{POD}.nodeSelector: Invalid value: "Tesla T4"'),
        (job(priorityClassName="High"), f'{POD}.priorityClassName: Invalid value: "High"'),
        (job(initContainers=[{"name": "code"}]), f"{POD}.initContainers[0].image: Required value"),
    ],
)  # fmt: skip
def test_a_pod_that_no_server_takes(sent: dict[str, Any], said: str) -> None:
    with pytest.raises(ApiError) as refused:
        admit_job(sent, 36, is_strict=True)

    assert said in refused.value.message


def test_a_field_that_no_server_knows_is_dropped_with_a_warning_or_refused() -> None:
    sent = job(toleration=[], securityContext={"fsgroup": 1}, main={"volumeMount": [], "resources": {"limit": {}}})
    paths = ["toleration", "securityContext.fsgroup", "containers[0].volumeMount", "containers[0].resources.limit"]
    unknown = {f'unknown field "{POD}.{path}"' for path in paths}

    stored, warnings = admit_job(sent, 36, is_strict=False)

    assert set(warnings) == unknown
    assert "toleration" not in stored["spec"]["template"]["spec"]
    with pytest.raises(ApiError, match=r"strict decoding error: unknown field"):
        admit_job(sent, 36, is_strict=True)


def test_a_volume_of_no_type_is_an_empty_folder() -> None:
    stored, _ = admit_job(job(volumes=[{"name": "x"}]), 36, is_strict=True)

    assert stored["spec"]["template"]["spec"]["volumes"] == [{"name": "x", "emptyDir": {}}]


def test_a_pod_with_a_claim_waits_until_there_is_one(world: World) -> None:
    world.cluster.create_job(NAMESPACE, job(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]))

    (condition,) = world.pod["status"]["conditions"]
    assert condition["reason"] == "Unschedulable"
    assert condition["message"] == '0/1 nodes are available: persistentvolumeclaim "data" not found.'

    world.cluster.add_claim(NAMESPACE, "data")
    assert world.pod["spec"]["nodeName"] == "gpu-1"


def test_a_container_waits_for_a_secret_and_its_key(world: World) -> None:
    world.cluster.create_job(NAMESPACE, job(main=env(valueFrom=SECRET)))

    def waiting() -> dict[str, str]:
        world.clock.advance(11)
        found: dict[str, str] = world.pod["status"]["containerStatuses"][0]["state"].get("waiting", {})
        return found

    assert waiting() == {"reason": "CreateContainerConfigError", "message": 'secret "wandb" not found'}
    world.cluster.add_secret(NAMESPACE, "wandb", user="ada")
    assert waiting()["message"] == f"couldn't find key token in Secret {NAMESPACE}/wandb"
    world.cluster.state.remove("secrets", world.cluster.state.get("secrets", NAMESPACE, "wandb"))
    world.cluster.add_secret(NAMESPACE, "wandb", token="t0p")
    assert waiting() == {}
    assert world.pod["status"]["phase"] == "Running"


def test_a_variable_may_name_one_before_it() -> None:
    assert expand("$(A)-$(C)-$$(A)-$$-$A", {"A": "1"}) == "1-$(C)-$(A)-$-$A"


def test_a_pull_secret_that_is_missing_is_a_warning_alone(world: World) -> None:
    world.cluster.create_job(NAMESPACE, job(imagePullSecrets=[{"name": "registry"}]))
    world.clock.advance(2)

    said = [each["message"] for each in world.cluster.state.all("events", NAMESPACE) if each["type"] == "Warning"]
    assert said == [
        "Unable to retrieve some image pull secrets (registry); attempting to pull the image may not succeed."
    ]
    assert world.pod["status"]["phase"] == "Running"


def test_a_job_of_a_class_that_is_not_there_has_no_pod(world: World) -> None:
    world.cluster.create_job(NAMESPACE, job(priorityClassName="high"))

    (event,) = world.cluster.state.all("events", NAMESPACE)
    assert event["message"].endswith("is forbidden: no PriorityClass with name high was found")
    world.cluster.admission.priority_classes.add("high")
    world.clock.advance(11)
    assert world.pod["spec"]["nodeName"] == "gpu-1"


def test_a_pod_for_another_scheduler_waits_without_a_word(world: World) -> None:
    world.cluster.create_job(NAMESPACE, job(schedulerName="volcano"))
    assert (world.pod["status"], world.cluster.state.all("events", NAMESPACE)) == ({"phase": "Pending"}, [])


@pytest.mark.parametrize(
    ("toleration", "is_placed"),
    [
        (None, False),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "value": "a10", "effect": "NoSchedule"}, True),
        ({"operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "value": "t4"}, False),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "team", "operator": "Exists"}, False),
    ],
)
def test_a_taint_keeps_pods_away_that_do_not_tolerate_it(
    world: World, toleration: dict[str, Any] | None, is_placed: bool
) -> None:
    taints = [
        {"key": "gpu", "value": "a10", "effect": "NoSchedule"},
        {"key": "slow", "effect": "PreferNoSchedule"},
    ]
    world.cluster.state.get("nodes", "", "gpu-1")["spec"]["taints"] = taints

    world.cluster.create_job(NAMESPACE, job(tolerations=[toleration] if toleration else []))

    said = "0/1 nodes are available: 1 node(s) had untolerated taint {gpu: a10}."
    assert ("nodeName" in world.pod["spec"]) is is_placed
    assert is_placed or world.pod["status"]["conditions"][0]["message"] == said


INIT = [{"name": "code", "image": "registry.example/sync:1"}]


def states(world: World, kind: str) -> list[tuple[str, str]]:
    """Return the containers of a kind with the words of their states."""
    found = world.pod["status"].get(kind, ())
    return [(each["name"], next(iter(each["state"].values())).get("reason", "runs")) for each in found]


def test_init_containers_run_before_the_main_one(world: World) -> None:
    world.script = Script(runtime_seconds=10)
    world.cluster.create_job(NAMESPACE, job(initContainers=[*INIT, {**INIT[0], "name": "data"}]))

    world.clock.advance(12)
    assert states(world, "initContainerStatuses") == [("code", "Completed"), ("data", "runs")]
    assert states(world, "containerStatuses") == [("main", "PodInitializing")]
    assert world.pod["status"]["phase"] == "Pending"
    world.clock.advance(10)
    assert (states(world, "containerStatuses"), world.pod["status"]["phase"]) == ([("main", "runs")], "Running")
    world.clock.advance(10)
    assert world.conditions()[-1] == ("Complete", "CompletionsReached")


def test_an_init_container_that_fails_fails_the_pod_whose_main_one_never_ran(world: World) -> None:
    world.script = Script(exit_code=1)
    world.cluster.create_job(NAMESPACE, job(initContainers=INIT))

    world.clock.advance(100)

    assert (world.pod["status"]["phase"], states(world, "containerStatuses")) == (
        "Failed",
        [("main", "PodInitializing")],
    )
    assert world.conditions()[-1] == ("Failed", "BackoffLimitExceeded")


def test_a_sidecar_is_an_init_container_that_nobody_waits_for(world: World) -> None:
    world.script = Script(runtime_seconds=10)
    world.cluster.create_job(NAMESPACE, job(initContainers=[INIT[0] | {"restartPolicy": "Always"}]))

    world.clock.advance(2)
    assert [*states(world, "initContainerStatuses"), *states(world, "containerStatuses")] == [
        ("code", "runs"),
        ("main", "runs"),
    ]
    world.clock.advance(10)
    assert world.conditions()[-1] == ("Complete", "CompletionsReached")
