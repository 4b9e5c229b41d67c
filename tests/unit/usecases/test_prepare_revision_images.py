"""Which images a job's tasks run: those of its first attempt, by digest."""

from dataclasses import replace

import pytest

from fakes.builders import make_definition, make_revision
from fakes.sources import EVERY_PLATFORM, image_digest
from fakes.story import DIGEST, HOME, MINUTE, OTHER, SHA, WAITS_FOR_IMAGE, Story, image, push
from relaunch.core.definitions.definition import GithubTrigger, ImageTrigger, ImageWait
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.derived_revision import DERIVED_FROM, TaskDefinition
from relaunch.core.revisions.images import FoundImage
from relaunch.ports import PermanentError, TransientError
from relaunch.usecases.submit_job import submit_event

PROXY = FoundImage(DIGEST, EVERY_PLATFORM)


def images_of(definition: TaskDefinition) -> list[str]:
    return [each["image"] for each in definition.content["containerDefinitions"]]


class TestDigests:
    def test_attempt_two_runs_the_code_of_attempt_one_though_the_tag_has_moved(self, story, running_id):
        story.images.digests["trainer", "latest"] = DIGEST

        story.lose_host(running_id)
        story.settle()

        first, second = story.tasks.requests
        assert first.revision_arn == second.revision_arn
        assert images_of(story.launched_definition()) == [f"{HOME}/trainer@{image_digest('trainer', 'latest')}"]
        assert story.launched_definition().tags[DERIVED_FROM] == make_revision().arn
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

        assert images_of(story.launched_definition()) == [f"{OTHER}/base@{DIGEST}"]

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

        assert images_of(story.launched_definition()) == [f"{HOME}/trainer@{DIGEST}"]
        said = f"image arrived: image trainer:{SHA} is there; main runs trainer:{SHA} ({DIGEST[:19]})"
        assert f"{said}, whose platform is not known: it is not in ECR any more" in story.timeline(job_id)

    def test_an_image_whose_event_got_lost_is_run_all_the_same(self):
        story = Story(WAITS_FOR_IMAGE)
        job_id = story.submit()
        story.images.present.add(("trainer", SHA))

        story.reconcile(3 * MINUTE)
        story.settle()

        assert story.job(job_id).images == {"main": f"{HOME}/trainer@{image_digest('trainer', SHA)}"}
        assert images_of(story.launched_definition()) == [f"{HOME}/trainer@{image_digest('trainer', SHA)}"]

    def test_a_push_whose_image_is_there_already_runs_it(self):
        story = Story(WAITS_FOR_IMAGE)
        story.images.present.add(("trainer", SHA))
        story.submit_and_deliver()

        assert images_of(story.launched_definition()) == [f"{HOME}/trainer@{image_digest('trainer', SHA)}"]

    def test_the_other_images_of_a_waiting_job_are_those_of_its_acceptance(self):
        story = Story(WAITS_FOR_IMAGE)
        story.run_images(f"{HOME}/trainer:latest", f"{HOME}/proxy:1")
        story.images.present.add(("proxy", "1"))
        job_id = story.submit()
        assert story.job(job_id).images == {"side": f"{HOME}/proxy@{image_digest('proxy', '1')}"}

        story.images.digests["proxy", "1"] = "sha256:0000"
        submit_event(replace(image(), digest=DIGEST), story.deps)
        story.settle()

        assert images_of(story.launched_definition()) == [
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
        assert images_of(story.launched_definition()) == [f"{HOME}/trainer@{image_digest('trainer', 'latest')}"]

    def test_a_job_that_an_image_started_runs_that_image(self):
        story = Story(make_definition(triggers=(ImageTrigger("trainer", "{sha}"),)))

        story.submit_and_deliver(replace(image(), digest=DIGEST))

        assert images_of(story.launched_definition()) == [f"{HOME}/trainer@{DIGEST}"]
