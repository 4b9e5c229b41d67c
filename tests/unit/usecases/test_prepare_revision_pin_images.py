"""What images are for is found out when a job is accepted, and keeps it off machines that they are not for."""

from dataclasses import replace

import pytest

from fakes.builders import make_definition, make_instance_type, make_offering, make_revision
from fakes.sources import FakeImages, image_digest
from fakes.story import DIGEST, HOME, MINUTE, OTHER, SHA, WAITS_FOR_IMAGE, Story, image
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import GithubTrigger, ImageTrigger
from relaunch.core.jobs.state import JobState
from relaunch.core.revisions.images import FoundImage
from relaunch.ports import PermanentError, TransientError
from relaunch.usecases.submit_job import submit_event

ARM = FoundImage(DIGEST, ("linux/arm64",))
ON_IMAGE = make_definition(triggers=(ImageTrigger("trainer", "{sha}"),))
REJECTED = (
    "its processor is x86_64; the image of container main is for linux/arm64: build it for linux/amd64, "
    "or have the task definition (cpuArchitecture) and the job ask for machines of its architecture"
)


class FailingImages(FakeImages):
    """Fails each time it is asked for something by digest."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def find_image(self, repository: str, reference: str, account: str | None = None) -> FoundImage | None:
        if reference.startswith("sha256:"):
            raise self.error
        return super().find_image(repository, reference, account)


def platforms_of(story: Story, job_id: str) -> list[tuple[str, ...]]:
    return [each.platforms for each in story.job(job_id).revision.containers]


def test_a_job_whose_image_is_for_no_machine_there_is_fails_with_that_reason(story):
    story.images.found["trainer", "latest"] = ARM
    job_id = story.submit()
    assert platforms_of(story, job_id) == [("linux/arm64",)]

    story.deliver()

    job = story.job(job_id)
    assert job.state is JobState.FAILED
    assert job.reason == (
        "nothing satisfies this job: image removed the last 4 of 4 offerings; "
        f"the nearest was g5.xlarge spot: {REJECTED}"
    )
    assert story.tasks.requests == []
    assert "main runs trainer:latest (sha256:5e5e5e5e5e5e) for linux/arm64" in story.timeline(job_id)


def test_of_two_machines_the_one_is_chosen_that_the_image_is_for(story):
    story.revisions.active[:] = [make_revision(architecture="ARM64")]
    story.images.found["trainer", "latest"] = ARM
    graviton = make_offering(make_instance_type("g5g.xlarge", architecture="arm64"), PurchaseOption.SPOT)
    story.offerings.available = (*story.offerings.available, graviton)

    job_id = story.launch()

    assert story.attempt(job_id).placement.offering.instance_type == "g5g.xlarge"


def test_what_was_known_when_the_job_was_accepted_holds_for_every_attempt(story):
    story.images.found["trainer", "latest"] = FoundImage(DIGEST, ("linux/amd64",))
    job_id = story.launch()
    story.images.found["trainer", "latest"] = ARM

    story.lose_host(job_id)
    story.settle()

    assert len(story.tasks.requests) == 2
    assert platforms_of(story, job_id) == [("linux/amd64",)]


def test_an_image_whose_platform_ecr_does_not_tell_keeps_the_job_off_nothing_and_is_said_so(story):
    story.images.found["trainer", "latest"] = FoundImage(DIGEST, (), "its configuration cannot be loaded: timed out")

    job_id = story.launch()

    assert story.job(job_id).state is JobState.RUNNING
    assert (
        "main runs trainer:latest (sha256:5e5e5e5e5e5e), "
        "whose platform is not known: its configuration cannot be loaded: timed out" in story.timeline(job_id)
    )


class TestByDigest:
    def test_an_image_named_by_digest_is_looked_at_too_and_left_as_it_is(self, story):
        story.run_images(f"{HOME}/base:1@{DIGEST}")
        story.images.found["base", "anything"] = ARM
        job_id = story.submit_and_deliver()

        assert REJECTED in story.job(job_id).reason
        assert story.job(job_id).images == {}

    @pytest.mark.parametrize("error", [TransientError("ECR: throttled"), PermanentError("ECR: AccessDenied")])
    @pytest.mark.parametrize("registry", [HOME, OTHER])
    def test_a_registry_that_does_not_answer_keeps_it_off_nothing(self, registry, error):
        story = Story(images=FailingImages(error))
        story.run_images(f"{registry}/base@{DIGEST}")
        job_id = story.launch()

        assert story.job(job_id).state is JobState.RUNNING
        assert platforms_of(story, job_id) == [()]
        assert f"main names base by digest, whose platform is not known: {error}" in story.timeline(job_id)

    def test_one_that_is_not_in_ecr_fails_the_job_at_once_and_says_which(self, story):
        story.run_images(f"{HOME}/base:1@{DIGEST}")
        job = story.job(story.submit())

        assert job.state is JobState.FAILED
        assert job.reason == f"the image {HOME}/base@{DIGEST} of container main is not in ECR"


class TestTriggersImage:
    def test_an_image_that_is_waited_for_is_looked_at_when_it_comes(self):
        story = Story(WAITS_FOR_IMAGE)
        job_id = story.submit()
        assert platforms_of(story, job_id) == [()]

        story.images.found["trainer", SHA] = ARM
        submit_event(replace(image(), digest=DIGEST), story.deps)
        story.settle()

        assert platforms_of(story, job_id) == [("linux/arm64",)]
        assert REJECTED in story.job(job_id).reason

    def test_it_is_looked_at_as_well_when_its_event_got_lost(self):
        story = Story(WAITS_FOR_IMAGE)
        job_id = story.submit()
        story.images.found["trainer", SHA] = ARM

        story.reconcile(3 * MINUTE)
        story.settle()

        assert story.job(job_id).images == {"main": f"{HOME}/trainer@{DIGEST}"}
        assert REJECTED in story.job(job_id).reason

    def test_one_that_is_there_already_is_looked_at_once(self):
        story = Story(WAITS_FOR_IMAGE)
        story.images.found["trainer", SHA] = ARM

        assert platforms_of(story, story.submit()) == [("linux/arm64",)]

    @pytest.mark.parametrize("error", [TransientError("ECR: throttled"), PermanentError("ECR: AccessDenied")])
    def test_an_image_whose_digest_the_event_told_is_run_whatever_ecr_answers(self, error):
        story = Story(ON_IMAGE, images=FailingImages(error))

        job_id = story.launch(replace(image(), digest=DIGEST))

        assert story.job(job_id).images == {"main": f"{HOME}/trainer@{DIGEST}"}
        assert story.job(job_id).state is JobState.RUNNING
        assert f"whose platform is not known: {error}" in story.timeline(job_id)

    def test_a_job_that_waits_goes_on_whatever_ecr_answers(self):
        story = Story(WAITS_FOR_IMAGE, images=FailingImages(TransientError("ECR: throttled")))
        job_id = story.submit()

        submit_event(replace(image(), digest=DIGEST), story.deps)
        story.settle()

        assert story.job(job_id).images == {"main": f"{HOME}/trainer@{DIGEST}"}
        assert "whose platform is not known: ECR: throttled" in story.timeline(job_id)

    def test_a_job_that_an_image_started_is_kept_off_what_that_is_not_for(self):
        story = Story(ON_IMAGE)
        story.images.found["trainer", SHA] = ARM

        job_id = story.submit_and_deliver(replace(image(), digest=DIGEST))

        assert REJECTED in story.job(job_id).reason

    def test_ecr_is_not_asked_of_an_image_that_nobody_waits_for_and_nothing_starts(self):
        story = Story(make_definition(triggers=(GithubTrigger("acme/vision", "push"),)))
        story.images.failure = TransientError("ECR: throttled")

        assert submit_event(image(), story.deps) == ()
        assert story.images.failure is not None


def test_every_container_counts(story):
    story.run_images(f"{HOME}/trainer:latest", f"{HOME}/side:1")
    story.images.found["side", "1"] = ARM
    job_id = story.submit_and_deliver()

    assert "the image of container side is for linux/arm64" in story.job(job_id).reason
    assert story.job(job_id).images == {
        "main": f"{HOME}/trainer@{image_digest('trainer', 'latest')}",
        "side": f"{HOME}/side@{DIGEST}",
    }
