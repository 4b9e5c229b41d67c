"""Which revision a job's tasks run: images by digest, Neuron devices, and what happens when they cannot be had."""

from dataclasses import replace

import pytest

from fakes.builders import make_container, make_definition, make_instance_type, make_offering, make_revision
from fakes.sources import EVERY_PLATFORM, image_digest
from fakes.story import DIGEST, HOME, MINUTE, OTHER, SHA, WAITS_FOR_IMAGE, Story, image, push
from relaunch.core.definitions.accelerator import (
    AcceleratorRequirement,
    NeuronPurpose,
    NeuronRequirement,
    PurchaseOption,
    PurchasePolicy,
)
from relaunch.core.definitions.definition import GithubTrigger, ImageTrigger, ImageWait
from relaunch.core.jobs.job import JobState, PlacementState
from relaunch.core.launches.derived_revision import DERIVED_FROM, TaskDefinition
from relaunch.core.launches.launch import LaunchRefused, LaunchUncertain, PlacementFailed
from relaunch.core.revisions.images import FoundImage
from relaunch.core.selection.neuron_devices import FIRST_PORT, RemainingResources
from relaunch.ports import PermanentError, TransientError
from relaunch.usecases.launch_attempt import launch_attempt
from relaunch.usecases.submit_job import submit_event

PROXY = FoundImage(DIGEST, EVERY_PLATFORM)
INACTIVE = LaunchRefused("InvalidParameterException: TaskDefinition is inactive")


def run_of(story: Story, number: int = -1) -> TaskDefinition:
    """What the task of a launch runs."""
    return story.registry.load_definition(story.tasks.requests[number].revision_arn)


def images_of(definition: TaskDefinition) -> list[str]:
    return [each["image"] for each in definition.content["containerDefinitions"]]


class TestDigests:
    def test_attempt_two_runs_the_code_of_attempt_one_though_the_tag_has_moved(self, story, running_id):
        story.images.digests["trainer", "latest"] = DIGEST

        story.lose_host(running_id)
        story.settle()

        first, second = story.tasks.requests
        assert first.revision_arn == second.revision_arn
        assert images_of(run_of(story)) == [f"{HOME}/trainer@{image_digest('trainer', 'latest')}"]
        assert run_of(story).tags[DERIVED_FROM] == make_revision().arn
        assert story.registry.register_count == 1

    def test_two_jobs_of_the_same_image_share_a_derived_revision_and_another_image_has_its_own(self, story):
        for number, digest in enumerate(["", "", DIGEST]):
            if digest:
                story.images.digests["trainer", "latest"] = digest
            story.submit_and_deliver(push(sha=f"{number:040x}"))

        first, second, third = (request.revision_arn for request in story.tasks.requests)
        assert first == second != third
        assert story.registry.register_count == 2

    def test_the_timeline_says_what_runs_and_what_was_left_alone(self, story):
        story.images.found["proxy", "1"] = PROXY
        story.run_images(f"{HOME}/trainer:latest", "busybox:1", f"{HOME}/proxy@{DIGEST}")
        job_id = story.submit()

        said = story.timeline(job_id)
        assert "main runs trainer:latest (sha256:" in said
        assert "side keeps busybox:1, which is not in ECR" in said
        assert "third names proxy by digest for linux/amd64 and linux/arm64" in said

    def test_a_job_whose_images_cannot_move_runs_its_own_revision(self, story):
        story.images.found["proxy", "1"] = PROXY
        story.run_images("busybox:1", f"{HOME}/proxy@{DIGEST}")
        job_id = story.submit_and_deliver()

        assert [request.revision_arn for request in story.tasks.requests] == [make_revision().arn]
        assert story.attempt(job_id).placement.revision_arn is None
        assert story.registry.register_count == 0

    def test_an_image_that_is_not_in_ecr_fails_the_job_at_once_and_says_which(self, story):
        story.run_images(f"{HOME}/trainer:never-pushed")
        job = story.job(story.submit())

        assert job.state is JobState.FAILED
        assert job.reason == f"the image {HOME}/trainer:never-pushed of container main is not in ECR"
        assert story.launches.requested == []

    def test_when_ecr_is_down_nothing_is_accepted_and_the_event_comes_again(self, story):
        story.images.failure = TransientError("ECR: throttled")

        with pytest.raises(TransientError):
            submit_event(push(), story.deps)
        assert story.job(story.submit()).state is JobState.WAITING

    def test_an_own_registry_that_may_not_be_read_is_not_taken_for_empty(self, story):
        story.images.failure = PermanentError("AccessDenied")

        with pytest.raises(PermanentError, match="AccessDenied"):
            submit_event(push(), story.deps)

    def test_an_image_of_another_account_is_pinned_where_it_may_be_looked_up(self, story):
        story.run_images(f"{OTHER}/base:1")
        story.images.foreign["999900001111", "base", "1"] = DIGEST
        story.submit_and_deliver()

        assert images_of(run_of(story)) == [f"{OTHER}/base@{DIGEST}"]

    def test_an_image_of_another_account_that_may_not_be_looked_up_is_left_alone_and_said_so(self, story):
        story.run_images(f"{OTHER}/base:1")
        story.images.failure = PermanentError("AccessDenied")
        job_id = story.submit_and_deliver()

        assert [request.revision_arn for request in story.tasks.requests] == [make_revision().arn]
        assert f"main keeps {OTHER}/base:1, which may not be looked up in 999900001111" in story.timeline(job_id)


class TestTriggersImage:
    def test_a_push_that_waited_runs_the_image_it_waited_for(self):
        story = Story(WAITS_FOR_IMAGE)
        job_id = story.submit()
        assert story.job(job_id).images == {}

        submit_event(replace(image(), digest=DIGEST), story.deps)
        story.settle()

        assert images_of(run_of(story)) == [f"{HOME}/trainer@{DIGEST}"]
        said = f"image arrived: image trainer:{SHA} is there; main runs trainer:{SHA} ({DIGEST[:19]})"
        assert f"{said}, whose platform is not known: it is not in ECR any more" in story.timeline(job_id)

    def test_an_image_whose_event_got_lost_is_run_all_the_same(self):
        story = Story(WAITS_FOR_IMAGE)
        job_id = story.submit()
        story.images.present.add(("trainer", SHA))

        story.reconcile(3 * MINUTE)
        story.settle()

        assert story.job(job_id).images == {"main": f"{HOME}/trainer@{image_digest('trainer', SHA)}"}
        assert images_of(run_of(story)) == [f"{HOME}/trainer@{image_digest('trainer', SHA)}"]

    def test_a_push_whose_image_is_there_already_runs_it(self):
        story = Story(WAITS_FOR_IMAGE)
        story.images.present.add(("trainer", SHA))
        story.submit_and_deliver()

        assert images_of(run_of(story)) == [f"{HOME}/trainer@{image_digest('trainer', SHA)}"]

    def test_the_other_images_of_a_waiting_job_are_those_of_its_acceptance(self):
        story = Story(WAITS_FOR_IMAGE)
        story.run_images(f"{HOME}/trainer:latest", f"{HOME}/proxy:1")
        story.images.present.add(("proxy", "1"))
        job_id = story.submit()
        assert story.job(job_id).images == {"side": f"{HOME}/proxy@{image_digest('proxy', '1')}"}

        story.images.digests["proxy", "1"] = "sha256:0000"
        submit_event(replace(image(), digest=DIGEST), story.deps)
        story.settle()

        assert images_of(run_of(story)) == [
            f"{HOME}/trainer@{DIGEST}",
            f"{HOME}/proxy@{image_digest('proxy', '1')}",
        ]

    def test_an_image_that_nobody_runs_is_waited_for_all_the_same_and_said_so(self):
        trigger = GithubTrigger("acme/vision", "push", wait_for_image=ImageWait("data"))
        story = Story(make_definition(triggers=(trigger,)))
        job_id = story.submit()

        submit_event(image(repository="data"), story.deps)
        story.settle()

        assert f"no container runs an image of data: data:{SHA} is only waited for" in story.timeline(job_id)
        assert images_of(run_of(story)) == [f"{HOME}/trainer@{image_digest('trainer', 'latest')}"]

    def test_a_job_that_an_image_started_runs_that_image(self):
        story = Story(make_definition(triggers=(ImageTrigger("trainer", "{sha}"),)))

        story.submit_and_deliver(replace(image(), digest=DIGEST))

        assert images_of(run_of(story)) == [f"{HOME}/trainer@{DIGEST}"]


NO_STOP_TIMEOUT = make_revision(containers=(make_container(image="busybox:1", stop_timeout_seconds=None),))


class TestStopTimeout:
    @pytest.mark.parametrize("purchase", PurchasePolicy)
    def test_a_job_without_one_runs_a_derived_revision_though_nothing_else_is_changed(self, purchase):
        story = Story(make_definition(purchase=purchase))
        story.revisions.active[:] = [NO_STOP_TIMEOUT]
        content = {"containerDefinitions": [{"name": "main", "image": "busybox:1"}]}
        story.registry.sources[NO_STOP_TIMEOUT.arn] = TaskDefinition("trainer", content)
        story.submit_and_deliver()

        (container,) = run_of(story).content["containerDefinitions"]
        assert container["stopTimeout"] == 90
        assert container["image"] == "busybox:1"
        assert container["environment"] == [{"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "all"}]

    def test_one_that_was_read_too_late_to_know_of_it_is_kept(self, story):
        story.revisions.active[:] = [NO_STOP_TIMEOUT]
        content = {
            "containerDefinitions": [
                {
                    "name": "main",
                    "image": "busybox:1",
                    "stopTimeout": 20,
                    "environment": [{"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "compute"}],
                }
            ]
        }
        story.registry.sources[NO_STOP_TIMEOUT.arn] = TaskDefinition("trainer", content)
        story.submit_and_deliver()

        assert [request.revision_arn for request in story.tasks.requests] == [NO_STOP_TIMEOUT.arn]
        assert story.registry.register_count == 0


class TestRegistration:
    def test_one_that_overlaps_another_of_the_same_content_runs_what_the_other_registered(self, story):
        overlapping = TransientError("ClientException: Too many concurrent attempts to create a new revision")
        register = story.registry.register

        def both(definition: TaskDefinition) -> str:
            register(definition)
            raise overlapping

        story.registry.register = both
        job_id = story.submit_and_deliver()

        assert story.job(job_id).state is JobState.LAUNCHING
        assert [request.revision_arn for request in story.tasks.requests] == list(story.registry.active)

    def test_a_throttled_registration_leaves_the_job_as_it_was_and_goes_through_with_the_next_message(self, story):
        story.registry.failures = [TransientError("ThrottlingException: Rate exceeded")]
        job_id = story.submit()
        before = story.job(job_id)

        with pytest.raises(TransientError):
            launch_attempt(job_id, story.deps)
        assert story.job(job_id) == before

        launch_attempt(job_id, story.deps)
        assert story.job(job_id).state is JobState.LAUNCHING
        assert len(story.tasks.requests) == 1

    def test_a_refused_registration_fails_the_job_with_the_words_of_ecs(self, story):
        story.registry.failures = [PermanentError("ClientException: A host port is mapped twice.")]
        job = launch_attempt(story.submit(), story.deps)

        assert job.state is JobState.FAILED
        assert job.reason == "ClientException: A host port is mapped twice."
        assert story.jobs.events_of(job.job_id)[-1] == "launch impossible"
        assert story.tasks.requests == []
        assert not job.has_slot

    def test_a_source_that_was_deleted_meanwhile_fails_the_job_and_says_so(self, story):
        job_id = story.submit()
        story.registry.deleted.add(make_revision().arn)
        job = launch_attempt(job_id, story.deps)

        assert job.state is JobState.FAILED
        assert "trainer:7 is gone: it was deleted" in job.reason

    def test_a_launch_sent_again_sends_the_same_revision_whatever_became_of_it(self, story):
        job_id = story.launch_unanswered(takes_effect=False)
        story.registry.active.clear()

        story.settle()

        first, second = story.tasks.requests
        assert first == second
        assert story.attempt(job_id).placement.state is PlacementState.PLACED

    def test_a_revision_that_was_deregistered_before_its_launch_is_made_again(self, story):
        job_id = story.launch_unanswered(takes_effect=False)
        story.registry.active.clear()
        story.tasks.outcomes.append(INACTIVE)

        story.settle()

        assert story.job(job_id).state is JobState.LAUNCHING
        first, _, second = story.tasks.requests
        assert first.revision_arn != second.revision_arn
        assert second.revision_arn in story.registry.active
        assert run_of(story, 0) == run_of(story)
        assert "was deregistered" in story.timeline(job_id)

    def test_the_answer_that_one_container_got_serves_all_for_a_minute(self, story):
        story.submit_and_deliver(push(sha=f"{1:040x}"))
        # Whoever asks ECS learns this.
        story.registry.deleted.add(make_revision().arn)

        story.submit_and_deliver(push(sha=f"{2:040x}"))
        story.clock.advance(MINUTE)
        late = story.job(story.submit_and_deliver(push(sha=f"{3:040x}")))

        first, second = story.tasks.requests
        assert first.revision_arn == second.revision_arn
        assert late.state is JobState.FAILED
        assert "is gone" in late.reason

    def test_that_no_change_has_an_effect_is_known_to_all_as_well(self, story):
        story.images.found["proxy", "1"] = PROXY
        story.run_images("busybox:1", f"{HOME}/proxy@{DIGEST}")
        story.submit_and_deliver(push(sha=f"{1:040x}"))
        story.registry.deleted.add(make_revision().arn)

        story.submit_and_deliver(push(sha=f"{2:040x}"))

        assert [request.revision_arn for request in story.tasks.requests] == [make_revision().arn] * 2

    def test_a_permission_that_is_missing_says_nothing_of_what_an_unanswered_launch_made(self, story):
        story.tasks.outcomes += [LaunchUncertain("no answer"), LaunchRefused("AccessDeniedException: not authorized")]
        job_id = story.submit_and_deliver()
        story.registry.active.clear()

        story.deliver()

        assert story.job(job_id).state is JobState.LAUNCHING
        assert story.attempt(job_id).placement.state is PlacementState.PENDING
        assert "was deregistered" not in story.timeline(job_id)

    def test_a_refusal_for_any_other_reason_is_one(self, story):
        story.tasks.outcomes.append(LaunchRefused("ClientException: no"))
        job_id = story.submit_and_deliver()

        assert story.job(job_id).state is JobState.FAILED


INF2 = make_instance_type(
    "inf2.24xlarge",
    vcpus=96,
    memory_mib=384 * 1024,
    accelerator_manufacturer="AWS",
    accelerator_model="Inferentia2",
    gpu_count=0,
    logical_gpu_count=0,
    gpu_memory_mib=0,
    neuron_devices=6,
    neuron_cores_per_device=2,
    neuron_memory_mib=32 * 1024,
)


def neuron_story(*, is_managed: bool = False, mode: str = "bridge", **neuron: int) -> Story:
    """A story of a definition that wants Neuron, and one offering."""
    accelerator = AcceleratorRequirement(neuron=NeuronRequirement(**neuron, purpose=NeuronPurpose.INFERENCE))
    story = Story(make_definition(accelerator=accelerator))
    container = make_container(gpu_count=0, image="busybox:1")
    story.revisions.active[:] = [make_revision(containers=(container,), network_mode=mode)]
    offering = make_offering(INF2, PurchaseOption.SPOT, is_managed=is_managed)
    story.offerings.available = (offering,)
    return story


def devices_of(definition: TaskDefinition) -> list[str]:
    (container,) = definition.content["containerDefinitions"]
    return [each["hostPath"] for each in container.get("linuxParameters", {}).get("devices", [])]


def ports_of(definition: TaskDefinition) -> list[int]:
    (container,) = definition.content["containerDefinitions"]
    return [each["hostPort"] for each in container.get("portMappings", [])]


class TestNeuron:
    def test_jobs_that_want_one_device_before_there_is_a_machine_want_different_ones(self):
        story = neuron_story(devices=1)
        for number in range(6):
            story.submit_and_deliver(push(sha=f"{number:040x}"))

        runs = [run_of(story, number) for number in range(len(story.tasks.requests))]
        # Five of a definition run at once.
        assert [devices_of(each) for each in runs] == [[f"/dev/neuron{number}"] for number in range(5)]
        assert [ports_of(each) for each in runs] == [[FIRST_PORT + number] for number in range(5)]

    def test_a_device_that_is_free_on_a_running_machine_is_taken(self):
        story = neuron_story(cores=2)
        taken = frozenset(FIRST_PORT + number for number in (0, 1, 2, 4, 5))
        story.tasks.room["inf2.24xlarge", "inf2-24xlarge-spot"] = [RemainingResources(90.0, 300_000, taken)]
        job_id = story.submit_and_deliver()

        assert devices_of(run_of(story)) == ["/dev/neuron3"]
        assert story.attempt(job_id).placement.neuron_devices == (3,)
        assert "Neuron device 3" in story.timeline(job_id)

    def test_more_than_one_device_is_the_whole_machine(self):
        story = neuron_story(cores=4)
        job_id = story.submit_and_deliver()

        assert len(devices_of(run_of(story))) == 6
        assert ports_of(run_of(story)) == list(range(FIRST_PORT, FIRST_PORT + 6))
        assert "all 6 Neuron devices" in story.timeline(job_id)

    def test_a_device_that_another_task_took_first_is_followed_by_the_next_at_once(self):
        story = neuron_story(devices=1)
        story.tasks.outcomes.append(PlacementFailed(("RESOURCE:PORTS",)))
        job_id = story.submit()
        story.settle()

        assert [devices_of(run_of(story, number)) for number in (0, 1)] == [["/dev/neuron0"], ["/dev/neuron1"]]
        assert story.attempt(job_id).placement.state is PlacementState.PLACED
        assert story.deps.capacity.load_capacity_memory(story.now) == {}

    def test_when_device_after_device_is_taken_the_offering_counts_as_full(self):
        story = neuron_story(devices=1)
        story.tasks.outcomes.extend([PlacementFailed(("RESOURCE:PORTS",))] * 9)
        job_id = story.submit()
        story.settle()

        assert len(story.tasks.requests) == 4
        assert story.job(job_id).waiting.reason == "capacity"

    def test_other_failures_of_placement_count_as_ever(self):
        story = neuron_story(devices=1)
        story.tasks.outcomes.append(PlacementFailed(("RESOURCE:PORTS", "RESOURCE:CPU")))
        story.submit()
        story.settle()

        assert len(story.tasks.requests) == 1
        assert story.deps.capacity.load_capacity_memory(story.now)

    def test_the_whole_machine_is_not_tried_again_at_once(self):
        story = neuron_story(devices=6)
        story.tasks.outcomes.append(PlacementFailed(("RESOURCE:PORTS",)))
        story.submit()
        story.settle()

        assert len(story.tasks.requests) == 1

    def test_managed_instances_give_out_devices_themselves(self):
        story = neuron_story(devices=1, is_managed=True, mode="awsvpc")
        job_id = story.submit_and_deliver()

        (request,) = story.tasks.requests
        assert request.takes_all_neuron
        assert request.revision_arn == make_revision().arn
        assert story.attempt(job_id).placement.takes_all_neuron
        assert story.registry.register_count == 0

    def test_devices_by_path_are_taken_out_for_managed_instances(self):
        story = neuron_story(devices=1, is_managed=True, mode="host")
        device = {"hostPath": "/dev/neuron0", "containerPath": "/dev/neuron0"}
        content = {"containerDefinitions": [{"name": "main", "image": "x", "linuxParameters": {"devices": [device]}}]}
        story.registry.sources[make_revision().arn] = TaskDefinition("trainer", content)
        story.submit_and_deliver()

        assert story.tasks.requests[0].takes_all_neuron
        assert devices_of(run_of(story)) == []
        assert ports_of(run_of(story)) == []

    @pytest.mark.parametrize(
        ("mode", "is_managed", "words"),
        [
            pytest.param("awsvpc", False, "ECS does not count Neuron devices", id="awsvpc has no ports of the machine"),
            pytest.param("none", False, "ECS does not count Neuron devices", id="none has no ports of the machine"),
            pytest.param("bridge", True, "Managed Instances take network mode awsvpc or host", id="bridge, managed"),
        ],
    )
    def test_a_network_mode_that_does_not_suit_the_machine_is_refused_in_words(self, mode, is_managed, words):
        story = neuron_story(devices=1, is_managed=is_managed, mode=mode)
        job_id = story.submit()
        story.settle()

        assert story.job(job_id).state is JobState.FAILED
        assert words in story.job(job_id).reason
        assert story.tasks.requests == []

    def test_a_job_for_gpus_claims_nothing(self, story):
        story.submit_and_deliver()

        (container,) = run_of(story).content["containerDefinitions"]
        assert "linuxParameters" not in container
        assert "portMappings" not in container
