"""What becomes of Jobs: their life, lost pods, deadlines, deletions, shares of GPUs."""

import pytest

from relaunch_local.ecs.clock import Clock
from relaunch_local.ecs.processes.port import Script, ScriptedProcesses
from relaunch_local.kubernetes.cluster import KubernetesCluster
from relaunch_local.kubernetes.errors import ApiError
from tests.unit.local.kubernetes.conftest import NAMESPACE, manifest

IGNORE = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
FAIL_ON_2 = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [2]}}]}
FOREVER = Script(runtime_seconds=None)


def test_a_job_runs_and_completes(world) -> None:
    world.create()
    assert world.pod["status"]["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
    world.clock.advance(1)
    assert (world.pod["status"]["phase"], world.pod["spec"]["nodeName"]) == ("Running", "gpu-1")

    world.clock.advance(60)

    assert world.conditions() == [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")]
    assert world.job()["status"]["succeeded"] == 1
    assert world.pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    assert world.pod["metadata"]["labels"]["job-name"] == "cuda-sample"


def test_a_job_of_an_old_server_has_the_condition_complete_alone(make_world) -> None:
    world = make_world(minor=20)
    world.create()

    world.clock.advance(61)

    assert world.conditions() == [("Complete", "")]
    assert "batch.kubernetes.io/job-name" not in world.pod["metadata"]["labels"]


@pytest.mark.parametrize("minor", [36, 20])
def test_exit_1_without_retries_fails_the_job(make_world, minor: int) -> None:
    world = make_world(minor=minor)
    world.script = Script(exit_code=1)
    world.create()

    world.clock.advance(61)

    assert world.conditions()[-1] == ("Failed", "BackoffLimitExceeded")


def test_a_job_with_retries_gets_another_pod_after_ten_seconds(world) -> None:
    world.script = Script(exit_code=1)
    world.create(backoffLimit=1)

    world.clock.advance(70.5)
    assert len(world.pods()) == 1
    world.clock.advance(1)

    assert [each["status"]["phase"] for each in world.pods()].count("Failed") == 1
    assert len(world.pods()) == 2


@pytest.mark.parametrize(
    ("minor", "policy", "ends"), [(36, FAIL_ON_2, ("Failed", "PodFailurePolicy")), (20, FAIL_ON_2, None)]
)
def test_a_failure_policy_ends_the_job_at_once_where_it_is_known(make_world, minor, policy, ends) -> None:
    world = make_world(minor=minor)
    world.script = Script(exit_code=2)
    world.create(backoffLimit=5, podFailurePolicy=policy)

    world.clock.advance(61)

    assert (world.conditions() or [None])[-1] == ends
    if ends:
        message = world.job()["status"]["conditions"][-1]["message"]
        name = world.pod["metadata"]["name"]
        said = f"Container main for pod training/{name} failed with exit code 2 matching FailJob rule at index 0"
        assert message == said


@pytest.mark.parametrize(
    ("minor", "pods", "ends"),
    [(36, 0, [("FailureTarget", "BackoffLimitExceeded"), ("Failed", "BackoffLimitExceeded")]), (20, 1, [])],
)
def test_a_deleted_pod_fails_the_job_and_an_old_server_replaces_it_at_once(make_world, minor, pods, ends) -> None:
    world = make_world(minor=minor)
    world.script = FOREVER
    world.create()
    world.clock.advance(1)
    first = world.pod["metadata"]["name"]

    world.cluster.delete_pod(NAMESPACE, first)
    world.clock.advance(0)

    assert len(world.pods()) == pods
    assert first not in [each["metadata"]["name"] for each in world.pods()]
    assert world.conditions() == ends


def test_an_ignored_disruption_brings_another_pod_and_counts_nothing(make_world) -> None:
    world = make_world()
    world.script = FOREVER
    world.create(podFailurePolicy=IGNORE)
    world.clock.advance(1)
    first = world.pod["metadata"]["name"]

    world.cluster.evict_pod(NAMESPACE, first)
    world.clock.advance(10)

    assert world.pod["metadata"]["name"] != first
    assert world.job()["status"].get("failed", 0) == 0


@pytest.mark.parametrize("is_lost", [False, True], ids=["on a node", "on a lost node"])
@pytest.mark.parametrize(("minor", "api_version"), [(36, "policy/v1"), (20, "policy/v1beta1")])
def test_a_pod_that_has_ended_is_deleted_at_once_by_an_eviction_and_its_job_stays_complete(
    make_world, minor, api_version, is_lost
) -> None:
    world = make_world(minor=minor)
    world.create()
    world.clock.advance(61)
    if is_lost:
        world.cluster.lose_node("gpu-1")

    world.cluster.evict_pod(NAMESPACE, world.pod["metadata"]["name"], api_version)

    assert world.pods() == []
    assert world.conditions()[-1][0] == "Complete"
    world.clock.advance(600)
    assert world.pods() == []
    assert world.job()["status"]["succeeded"] == 1


def test_a_program_has_its_grace_period_undivided_by_the_speed() -> None:
    clock = Clock(speed=40)
    script = Script(runtime_seconds=None, sigterm_delay_seconds=None)
    cluster = KubernetesCluster(clock, ScriptedProcesses(clock, lambda _: script))
    cluster.add_node("gpu-1")
    cluster.create_job(NAMESPACE, manifest(limits={}))
    clock.advance(1)
    (pod,) = cluster.state.all("pods", NAMESPACE)

    cluster.delete_pod(NAMESPACE, pod["metadata"]["name"], 90)

    clock.advance(89)
    assert cluster.state.all("pods", NAMESPACE) == [pod]
    clock.advance(2)
    assert cluster.state.all("pods", NAMESPACE) == []


def test_a_disruption_on_an_old_server_leaves_no_condition(make_world) -> None:
    world = make_world(minor=20)
    world.script = Script(runtime_seconds=None, sigterm_delay_seconds=5)
    world.create()
    world.clock.advance(1)

    with pytest.raises(ApiError, match=r'no kind "Eviction" is registered for version "policy/v1"'):
        world.cluster.evict_pod(NAMESPACE, world.pod["metadata"]["name"])
    world.cluster.evict_pod(NAMESPACE, world.pod["metadata"]["name"], "policy/v1beta1")

    types = [{each["type"] for each in pod["status"].get("conditions", ())} for pod in world.pods()]
    assert [bool(pod["metadata"].get("deletionTimestamp")) for pod in world.pods()].count(True) == 1
    assert len(types) == 2
    assert not any("DisruptionTarget" in each for each in types)


@pytest.mark.parametrize(("code", "ends"), [(143, []), (0, [("Complete", "")])])
def test_an_old_server_replaces_a_pod_at_once_and_lets_both_run_on(make_world, code, ends) -> None:
    world = make_world(minor=20)
    world.script = Script(runtime_seconds=None, sigterm_delay_seconds=5, sigterm_exit_code=code)
    world.create()
    world.clock.advance(1)
    world.cluster.delete_pod(NAMESPACE, world.pod["metadata"]["name"])
    both = len(world.pods())
    world.clock.advance(10)

    assert (both, len(world.pods())) == (2, 1)
    assert world.pod["status"]["phase"] == "Running"
    assert world.conditions() == ends


def test_a_container_that_ignores_sigterm_is_killed_after_its_grace_period(world) -> None:
    world.script = Script(runtime_seconds=None, sigterm_delay_seconds=None)
    world.create()
    world.clock.advance(1)

    world.cluster.delete_pod(NAMESPACE, world.pod["metadata"]["name"], 5)
    world.clock.advance(4.9)
    assert len(world.pods()) == 1
    world.clock.advance(0.2)

    assert world.pods() == []


def test_a_deadline_ends_the_pod_and_then_the_job(world) -> None:
    world.script = Script(runtime_seconds=None, sigterm_delay_seconds=3, sigterm_exit_code=0)
    world.create()
    world.clock.advance(20)

    world.cluster.patch_job(NAMESPACE, "cuda-sample", {"spec": {"activeDeadlineSeconds": 1}})
    world.clock.advance(0)
    assert world.conditions() == [("FailureTarget", "DeadlineExceeded")]
    assert world.pod["metadata"]["deletionTimestamp"]
    world.clock.advance(3)

    assert world.conditions()[-1] == ("Failed", "DeadlineExceeded")
    assert world.pods() == []


def test_a_deadline_that_was_put_off_is_not_the_old_one(world) -> None:
    world.script = FOREVER
    world.create(activeDeadlineSeconds=30)
    world.cluster.patch_job(NAMESPACE, "cuda-sample", {"spec": {"activeDeadlineSeconds": 60}})

    world.clock.advance(31)
    assert world.conditions() == []
    world.clock.advance(30)

    assert world.conditions()[-1] == ("Failed", "DeadlineExceeded")


def test_a_template_cannot_be_changed_and_annotations_can(world) -> None:
    world.create()
    patch = {"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}}

    with pytest.raises(ApiError, match=r"spec\.template: Invalid value: field is immutable"):
        world.cluster.patch_job(NAMESPACE, "cuda-sample", patch)
    world.cluster.patch_job(NAMESPACE, "cuda-sample", {"metadata": {"annotations": {"why": "stopped"}}})

    assert world.job()["metadata"]["annotations"] == {"why": "stopped"}


def test_a_deleted_job_takes_its_pods_with_it(world) -> None:
    world.script = FOREVER
    world.create()
    world.clock.advance(1)

    world.cluster.delete_job(NAMESPACE, "cuda-sample")
    world.clock.advance(0)

    assert world.pods() == []
    with pytest.raises(ApiError, match="not found"):
        world.job()


def test_three_jobs_of_30_percent_share_a_card_and_the_fourth_takes_the_next(world) -> None:
    world.script = FOREVER
    for number in range(4):
        world.create(f"share-{number}")
    world.create("whole", limits={"aliyun.com/gpu-mem": 15, "aliyun.com/gpu-core.percentage": 100})

    cards = {each["metadata"]["labels"]["job-name"]: each["metadata"]["annotations"] for each in world.pods()}

    assert [cards[f"share-{number}"]["ALIYUN_COM_GPU_MEM_IDX"] for number in range(4)] == ["0", "0", "0", "1"]
    assert cards["whole"]["ALIYUN_COM_GPU_MEM_IDX"] == "2"
    assert cards["whole"]["ALIYUN_COM_GPU_MEM_DEV"] == "15"


def test_a_fifth_whole_card_waits_with_the_schedulers_message_until_one_is_free(world) -> None:
    whole = {"aliyun.com/gpu-mem": 15, "aliyun.com/gpu-core.percentage": 100}
    for number in range(5):
        world.create(f"hold-{number}", limits=whole)
    (waiting,) = (each for each in world.pods() if "nodeName" not in each["spec"])

    why = waiting["status"]["conditions"][0]
    assert (why["status"], why["reason"]) == ("False", "Unschedulable")
    assert why["message"] == (
        "0/1 nodes are available: 1 Insufficient aliyun.com/gpu-core.percentage, 1 Insufficient aliyun.com/gpu-mem."
    )
    reasons = [each["reason"] for each in world.cluster.state.all("events", NAMESPACE)]
    assert "FailedScheduling" in reasons
    world.clock.advance(61)

    assert waiting["spec"]["nodeName"] == "gpu-1"


def test_memory_alone_and_memory_with_compute_are_never_on_one_node(world) -> None:
    world.script = FOREVER
    world.create("with-compute")
    world.create("memory-only", limits={"aliyun.com/gpu-mem": 2})
    (waiting,) = (each for each in world.pods() if "nodeName" not in each["spec"])
    said = "0/1 nodes are available: 1 node already runs the other kind (memory-only / memory+compute)."
    assert waiting["status"]["conditions"][0]["message"] == said

    world.add_node("gpu-2", "cgpu")

    assert waiting["spec"]["nodeName"] == "gpu-2"


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"aliyun.com/gpu-mem": 2, "aliyun.com/gpu-core.percentage": 7}, "must be a multiple of 5 from 5 to 100"),
        ({"aliyun.com/gpu-mem": 2, "aliyun.com/gpu-core.percentage": 105}, "must be a multiple of 5 from 5 to 100"),
        ({"aliyun.com/gpu-core.percentage": 30}, "gpu-core.percentage needs gpu-mem"),
    ],
)
def test_ack_refuses_what_a_plain_server_takes(make_world, limits, message: str) -> None:
    with pytest.raises(ApiError, match=message):
        make_world(is_ack=True).create(limits=limits)
    make_world().create(limits=limits)


def test_ack_refuses_compute_on_several_cards_and_splits_memory_among_them(make_world) -> None:
    world = make_world(is_ack=True)
    world.script = FOREVER
    both = manifest()
    both["spec"]["template"]["metadata"]["labels"]["aliyun.com/gpu-count"] = "2"
    memory = manifest(limits={"aliyun.com/gpu-mem": 8})
    memory["spec"]["template"]["metadata"]["labels"]["aliyun.com/gpu-count"] = "2"

    with pytest.raises(ApiError, match="multi-GPU sharing does not support compute allocation"):
        world.cluster.create_job(NAMESPACE, both)
    world.cluster.create_job(NAMESPACE, memory)

    written = world.pod["metadata"]["annotations"]["scheduler.framework.gpushare.allocation"]
    assert written == '{"0": {"0": 4, "1": 4}}'


def test_an_image_that_does_not_exist_keeps_the_pod_waiting(world) -> None:
    world.cluster.missing_images.add("registry.example/train:1")
    world.create()

    world.clock.advance(5)

    waiting = world.pod["status"]["containerStatuses"][0]["state"]["waiting"]
    assert waiting["reason"] == "ImagePullBackOff"


def test_a_container_that_cannot_be_started_ends_with_128(world) -> None:
    world.script = Script(start_error='exec: "run": executable file not found in $PATH')
    world.create()

    world.clock.advance(1)

    ended = world.pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (128, "StartError")


def test_the_pods_of_a_lost_node_stay_as_they_were_and_are_deleted_after_five_minutes(world) -> None:
    world.script = FOREVER
    world.create(podFailurePolicy=FAIL_ON_2)
    world.clock.advance(1)

    world.cluster.lose_node("gpu-1")
    world.clock.advance(299)
    assert world.pod["status"]["phase"] == "Running"
    assert "deletionTimestamp" not in world.pod["metadata"]
    world.clock.advance(1)

    assert world.pod["metadata"]["deletionTimestamp"]
    assert world.conditions() == []


@pytest.mark.parametrize("minor", [25, 36])
def test_the_pods_of_a_removed_node_are_collected(make_world, minor: int) -> None:
    world = make_world(minor=minor)
    world.script = FOREVER
    world.create()
    world.clock.advance(1)

    world.cluster.remove_node("gpu-1")
    world.clock.advance(40)

    assert world.pods() == []
    assert world.conditions()[-1] == ("Failed", "BackoffLimitExceeded")


def test_the_scheduler_of_ack_pro_writes_other_annotations_than_the_open_one(make_world) -> None:
    world = make_world(is_ack=True)
    for number in range(4):
        world.create(f"share-{number}")

    written = [each["metadata"]["annotations"] for each in world.pods()]
    assert [each["scheduler.framework.gpushare.allocation"] for each in written] == ['{"0": {"0": 2}}'] * 3 + [
        '{"0": {"1": 2}}'
    ]
    assert {each["gpushare.alibabacloud.com/core-percentage"] for each in written} == {
        '{"0": {"0": 30}}',
        '{"0": {"1": 30}}',
    }
    assert not any("ALIYUN_COM_GPU_MEM_IDX" in each for each in written)
