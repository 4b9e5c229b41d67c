"""Jobs on Kubernetes: no task definition, no offering of EC2, and a clear word where the stack cannot launch them."""

from dataclasses import replace

import pytest

from fakes.builders import make_definition
from fakes.kubernetes_clusters import NAMESPACE, served_cluster
from fakes.story import MINUTE, Story
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchaseOption, PurchasePolicy
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.kubernetes.pod_grants import PodGrants
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.offerings.offering import CapacityFailure
from relaunch.core.revisions.revision import TaskDefinitionGrants
from relaunch.ports import Targets

IMAGE = "registry.cn-beijing.aliyuncs.com/acme/trainer:1"
WORKLOAD = KubernetesWorkload(IMAGE, vcpus=4, memory_mib=16 * 1024, gpu_model="T4")
SHARE = GpuRequirement(memory_mib=2048, compute_percent=30)
ON_ACK = make_definition(
    task_definition="",
    target=Target.ACK,
    kubernetes=WORKLOAD,
    accelerator=AcceleratorRequirement(gpu=SHARE),
    purchase=PurchasePolicy.ON_DEMAND,
)
ON_ACS = replace(
    ON_ACK,
    target=Target.ACS,
    accelerator=AcceleratorRequirement(gpu=GpuRequirement()),
    purchase=PurchasePolicy.SPOT_THEN_ON_DEMAND,
)


def test_a_job_is_launched_with_its_workload_and_nothing_of_ecs_is_read():
    story = Story(ON_ACK, target=Target.ACK)
    story.revisions.active.clear()

    job_id = story.submit_and_deliver()

    (request,) = story.tasks.requests
    assert (request.workload, request.gpu) == (WORKLOAD, SHARE)
    assert (request.capacity_provider, request.offering.instance_type) == ("", "ack/T4")
    assert request.environment["RELAUNCH_CHECKPOINT_URI"].endswith(f"/{job_id}/attempt-1/")
    assert "a Job on ack with" in story.timeline(job_id)
    assert f"main keeps {IMAGE}, which is not in ECR" in story.timeline(job_id)
    assert story.registry.registered == {}


def test_a_lost_answer_is_asked_for_again_and_there_is_one_job():
    story = Story(ON_ACK, target=Target.ACK)

    job_id = story.launch_unanswered(takes_effect=True)
    story.settle()

    assert len(story.tasks.tasks) == 1
    assert story.arn(job_id) in story.tasks.tasks


def test_the_job_of_a_gang_that_is_found_when_its_launch_is_not_repeated_any_more_is_its_task():
    story = Story(replace(ON_ACS, purchase=PurchasePolicy.ON_DEMAND, nodes=2), target=Target.ACS)
    job_id = story.launch_unanswered(takes_effect=True)

    story.clock.advance(51 * MINUTE)
    story.deliver()

    assert story.attempt(job_id).task_id in story.tasks.tasks


def test_capacity_that_is_taken_away_is_tried_first_and_the_other_if_it_does_not_come():
    story = Story(ON_ACS, target=Target.ACS)
    job_id = story.submit_and_deliver()
    first = story.attempt(job_id).placement.offering.purchase

    story.reconcile(after=16 * MINUTE)
    story.tasks.end(story.arn(job_id), None, stopped_at=story.now, stop_code="UserInitiated")
    story.reconcile(after=MINUTE)
    story.settle()

    assert (first, story.attempt(job_id).placement.offering.purchase) == (
        PurchaseOption.SPOT,
        PurchaseOption.ON_DEMAND,
    )


def test_a_job_whose_only_capacity_was_short_waits_for_it():
    story = Story(replace(ON_ACS, purchase=PurchasePolicy.SPOT), target=Target.ACS)
    job_id = story.submit_and_deliver()
    placement = story.attempt(job_id).placement
    failure = CapacityFailure(placement.offering, "not started", story.now, story.now + 20 * MINUTE)
    other = Story(replace(ON_ACS, purchase=PurchasePolicy.SPOT), target=Target.ACS)
    other.deps.capacity.remember(failure)
    waiting = other.job(other.submit_and_deliver())

    assert (waiting.state, waiting.waiting.reason) == (JobState.WAITING, WaitReason.CAPACITY)


@pytest.mark.parametrize(
    ("definition", "target", "reason"),
    [
        pytest.param(ON_ACK, Target.ECS, "the stack has no target ack, it has ecs: set AckClusterId", id="not-set-up"),
        pytest.param(
            make_definition(), Target.ACK, "the stack has no target ecs, it has ack: set CapacityProviders", id="no-ecs"
        ),
        pytest.param(
            replace(ON_ACK, accelerator=AcceleratorRequirement(gpu=replace(SHARE, compute_percent=33))),
            Target.ACK,
            "33 percent cannot be submitted",
            id="against-its-rules",
        ),
    ],
)
def test_a_job_that_the_stack_cannot_launch_fails_when_it_is_submitted(definition, target, reason):
    story = Story(definition, target=target)

    job_id = story.submit()

    assert story.job(job_id).state is JobState.FAILED
    assert reason in story.job(job_id).reason
    assert story.launches.requested == []


def test_a_job_whose_cluster_was_taken_from_the_stack_fails_when_it_is_launched():
    story = Story(ON_ACK, target=Target.ACK)
    job_id = story.submit()
    story.deps = replace(story.deps, targets=replace(story.deps.targets, makers={}))

    story.deliver()

    assert story.job(job_id).state is JobState.FAILED
    assert story.job(job_id).reason.startswith("the stack has no target ack, it has none")


def test_what_task_definitions_may_be_run_does_not_matter_to_it():
    story = Story(ON_ACK, target=Target.ACK)
    grants = TaskDefinitionGrants(families=("other-*",), role_path="relaunch/")
    story.deps = replace(story.deps, limits=replace(story.deps.limits, task_definitions=grants))

    job_id = story.submit_and_deliver()

    assert story.job(job_id).state is JobState.LAUNCHING


OTHERS = PodGrants(images=("registry.example.com/*",), service_accounts=("trainer",))
REFUSED = [
    pytest.param({"image": "evil.example/x:1"}, "KubernetesImages has registry.example.com/*", id="image"),
    pytest.param({"service_account": "admin"}, "KubernetesServiceAccounts has trainer", id="service-account"),
]


@pytest.mark.parametrize(("fields", "reason"), REFUSED)
def test_what_the_stack_does_not_let_pods_have_fails_the_job_when_it_is_submitted(fields, reason):
    allowed = {"image": "registry.example.com/trainer:1", "service_account": "trainer"}
    definition = replace(ON_ACK, kubernetes=replace(WORKLOAD, **(allowed | fields)))
    story = Story(definition, target=Target.ACK, limits=StackLimits(pods=OTHERS))

    job = story.job(story.submit())

    assert job.state is JobState.FAILED
    assert reason in job.reason
    assert story.launches.requested == []


@pytest.mark.parametrize(("fields", "reason"), REFUSED)
def test_a_job_that_was_accepted_before_the_parameter_changed_fails_when_it_is_launched(fields, reason):
    allowed = {"image": "registry.example.com/trainer:1", "service_account": "trainer"}
    story = Story(
        replace(ON_ACK, kubernetes=replace(WORKLOAD, **(allowed | fields))),
        target=Target.ACK,
        limits=StackLimits(pods=PodGrants(service_accounts=("*",))),
    )
    job_id = story.submit()
    story.deps = replace(story.deps, limits=replace(story.deps.limits, pods=OTHERS))

    story.deliver()

    assert story.job(job_id).state is JobState.FAILED
    assert reason in story.job(job_id).reason
    assert story.tasks.requests == []


def test_the_digest_of_an_image_that_the_stack_does_not_allow_any_more_is_not_run_either():
    story = Story(ON_ACK, target=Target.ACK)
    job_id = story.submit()
    pinned = replace(story.job(job_id), images={"main": f"evil.example/x@sha256:{'0' * 64}"})
    story.jobs.save_job(Decision(pinned))
    story.deps = replace(story.deps, limits=replace(story.deps.limits, pods=PodGrants(images=(f"{IMAGE[:-2]}",))))

    story.deliver()

    assert "the stack may not run the image evil.example/x@sha256" in story.job(job_id).reason


@pytest.mark.parametrize("looks", [1, 0], ids=["seen running", "seen when it had ended"])
def test_later_attempts_run_the_digest_that_the_first_pod_ran_though_its_tag_has_moved(looks):
    whole = replace(ON_ACK, accelerator=AcceleratorRequirement(gpu=GpuRequirement()))
    story = Story(replace(whole, kubernetes=replace(WORKLOAD, gpu_model="")), target=Target.ACK)
    repository = IMAGE.removesuffix(":1")
    with served_cluster(Target.ACK) as served:
        served.advance((story.now - served.cluster.clock.now()).total_seconds())
        served.cluster.add_node("node-0", gpus=1)
        served.cluster.image_ids[IMAGE] = f"docker-pullable://{repository}@sha256:{'1' * 64}"
        story.deps = replace(story.deps, targets=Targets({Target.ACK: lambda: served.target}))
        job_id = story.submit_and_deliver()
        served.advance(120)
        for _ in range(looks):
            story.reconcile(after=2 * MINUTE)
        served.cluster.image_ids[IMAGE] = f"{repository}@sha256:{'2' * 64}"
        served.finish(story.arn(job_id), 1)
        story.reconcile(after=2 * MINUTE)
        story.settle()

        jobs = served.cluster.state.all("jobs", NAMESPACE)
        images = [each["spec"]["template"]["spec"]["containers"][0]["image"] for each in jobs]

    assert images == [IMAGE, f"{repository}@sha256:{'1' * 64}"]
