"""Which revision a job's tasks run, and what happens when it cannot be had."""

from dataclasses import replace

import pytest

from fakes.builders import make_container, make_definition, make_revision
from fakes.machine_story import MachineStory
from fakes.sources import EVERY_PLATFORM
from fakes.story import DIGEST, HOME, MINUTE, Story, push
from relaunch.core.definitions.accelerator import PurchasePolicy
from relaunch.core.jobs.attempt import PlacementState
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.derived_revision import TaskDefinition
from relaunch.core.launches.launch import LaunchRefused, LaunchUncertain
from relaunch.core.revisions.images import FoundImage
from relaunch.ports import PermanentError, TransientError
from relaunch.usecases.launch_attempt import launch_attempt

PROXY = FoundImage(DIGEST, EVERY_PLATFORM)
INACTIVE = LaunchRefused("InvalidParameterException: TaskDefinition is inactive", is_about_revision=True)


NO_STOP_TIMEOUT = make_revision(containers=(make_container(image="busybox:1", stop_timeout_seconds=None),))


class TestStopTimeout:
    # Nothing is reserved in a story.
    @pytest.mark.parametrize("purchase", sorted(set(PurchasePolicy) - {PurchasePolicy.RESERVED}))
    def test_a_job_without_one_runs_a_derived_revision_though_nothing_else_is_changed(self, purchase):
        story = Story(make_definition(purchase=purchase))
        story.revisions.active[:] = [NO_STOP_TIMEOUT]
        content = {"containerDefinitions": [{"name": "main", "image": "busybox:1"}]}
        story.registry.sources[NO_STOP_TIMEOUT.arn] = TaskDefinition("trainer", content)
        story.submit_and_deliver()

        (container,) = story.launched_definition().content["containerDefinitions"]
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


class TestTorchrun:
    @pytest.mark.parametrize(
        ("own", "command"),
        [(("torchrun", "train.py"), ["python"]), ((), ["torchrun", "train.py"])],
        ids=["of the job", "of the task definition"],
    )
    def test_a_job_that_runs_it_runs_a_derived_revision_though_nothing_else_is_changed(self, own, command):
        story = Story(make_definition(command=own))
        revision = make_revision(containers=(make_container(image="busybox:1"),))
        story.revisions.active[:] = [revision]
        container = {"name": "main", "image": "busybox:1", "stopTimeout": 60, "command": command}
        story.registry.sources[revision.arn] = TaskDefinition("trainer", {"containerDefinitions": [container]})
        story.submit_and_deliver()

        (container,) = story.launched_definition().content["containerDefinitions"]
        assert {"name": "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "value": "55"} in container["environment"]
        assert container["linuxParameters"] == {"initProcessEnabled": True}

    def test_a_job_that_runs_something_else_by_its_task_definition_runs_its_own_revision(self):
        story = Story(make_definition(command=()))
        revision = make_revision(containers=(make_container(image="busybox:1"),))
        story.revisions.active[:] = [revision]
        container = {"name": "main", "image": "busybox:1", "stopTimeout": 60, "command": ["python", "train.py"]}
        story.registry.sources[revision.arn] = TaskDefinition("trainer", {"containerDefinitions": [container]})
        story.submit_and_deliver()

        assert [request.revision_arn for request in story.tasks.requests] == [revision.arn]
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
        assert story.launched_definition(0) == story.launched_definition()
        assert "was deregistered" in story.timeline(job_id)

    def test_it_is_launched_on_the_machine_that_was_ready_for_it(self):
        story = MachineStory()
        story.tasks.outcomes += [LaunchUncertain("no answer"), INACTIVE]
        job_id = story.start()
        first = story.machine(job_id)
        story.register(first)
        story.deliver()
        story.registry.active.clear()

        story.settle_all()

        assert story.machine(job_id).machine_id == first.machine_id
        assert story.job(job_id).state is JobState.LAUNCHING
        assert "was deregistered" in story.timeline(job_id)
        assert len(story.fleet.requests) == 1

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

    def test_what_somebody_else_registered_under_the_name_is_not_run(self, story):
        story.submit_and_deliver(push(sha=f"{1:040x}"))
        (first,) = story.tasks.requests
        ours = story.launched_definition()
        (container,) = ours.content["containerDefinitions"]
        theirs = {**ours.content, "containerDefinitions": [{**container, "image": "somebody/else:1"}]}
        story.registry.register(replace(ours, content=theirs))

        story.clock.advance(MINUTE)
        story.submit_and_deliver(push(sha=f"{2:040x}"))
        story.clock.advance(MINUTE)
        story.submit_and_deliver(push(sha=f"{3:040x}"))

        _, second, third = story.tasks.requests
        assert story.launched_definition() == ours
        assert first.revision_arn != second.revision_arn
        assert second.revision_arn == third.revision_arn
        assert story.registry.register_count == 3

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
