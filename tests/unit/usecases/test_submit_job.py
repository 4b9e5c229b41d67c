"""Which jobs an event starts, and that it starts each of them once."""

from dataclasses import replace
from itertools import chain, repeat
from unittest.mock import DEFAULT, Mock

import pytest

from fakes.builders import make_container, make_definition, make_revision
from fakes.sources import FakeRevisions
from fakes.story import MINUTE, SHA, WAITS_FOR_IMAGE, Story, image, push, upload
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement
from relaunch.core.definitions.definition import ImageTrigger, S3Trigger
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.launches.derived_revision import DERIVED_FROM
from relaunch.ports import TransientError
from relaunch.usecases.launch_attempt import launch_attempt
from relaunch.usecases.submit_job import submit_event


def test_an_accepted_event_pins_the_newest_revision_and_asks_for_the_launch(story):
    story.revisions.active.append(make_revision(revision=12))
    job_id = story.submit()

    job = story.job(job_id)
    assert job.revision.revision == 12
    assert job.accepted_at == story.now
    assert job.state is JobState.WAITING
    assert story.launches.requested == [(job_id, 0)]
    accepted = story.jobs.load_history(job_id).timeline[0].detail
    assert accepted.endswith(
        "pinned trainer:12; main runs trainer:latest (sha256:6fad2e7846ea) for linux/amd64 and linux/arm64"
    )


def test_a_job_for_a_target_that_the_stack_does_not_have_is_refused():
    workload = KubernetesWorkload("trainer")
    story = Story(make_definition(task_definition="", target=Target.ACK, kubernetes=workload))

    (submission,) = submit_event(push(), story.deps)

    assert submission.job.state is JobState.FAILED
    assert submission.job.reason.startswith("the stack has no target ack, it has ecs: set AckClusterId")
    assert story.launches.requested == []


def test_a_later_revision_does_not_reach_an_accepted_job(story, running_id):
    story.revisions.active.append(make_revision(revision=12))

    story.lose_host(running_id)
    story.settle()

    (arn,) = {each.revision_arn for each in story.tasks.requests}
    assert story.registry.registered[arn].tags[DERIVED_FROM] == make_revision().arn


def test_the_same_event_delivered_twice_is_one_job(story):
    first = submit_event(push(), story.deps)
    second = submit_event(push(), story.deps)

    assert [each.is_new for each in (*first, *second)] == [True, False]
    assert first[0].job.job_id == second[0].job.job_id
    assert second[0].note == f"job {first[0].job.job_id} is there already"
    story.settle()
    assert len(story.tasks.requests) == 1


def test_an_event_starts_a_job_of_each_definition_that_watches_it():
    story = Story(make_definition(), make_definition(name="bert"))

    submissions = submit_event(push(), story.deps)

    assert [each.definition for each in submissions] == ["bert", "resnet"]
    assert len({each.job.job_id for each in submissions}) == 2


def test_two_deliveries_at_the_same_time_are_one_job(story):
    job_id = story.submit()
    # The job is read for the first time before the other delivery creates it.
    story.jobs.load_job = Mock(wraps=story.jobs.load_job, side_effect=chain([None], repeat(DEFAULT)))

    (second,) = submit_event(push(), story.deps)

    assert not second.is_new
    assert second.job is not None
    assert second.job.job_id == job_id


@pytest.mark.parametrize(
    ("event", "outcome"),
    [
        pytest.param(push(repository="acme/other"), "no job definition watches github acme/other", id="repository"),
        pytest.param(
            replace(upload("images/"), size_bytes=0),
            "resnet: images/ is the empty object that consoles create for a folder",
            id="folder",
        ),
    ],
)
def test_an_event_that_starts_nothing_is_kept_with_the_reason(event, outcome):
    story = Story(make_definition(triggers=(S3Trigger("acme-datasets", "images/"),)))

    submissions = submit_event(event, story.deps)

    assert [each.job for each in submissions] in ([], [None])
    (record,) = story.deps.events.list_events(story.now, 9)
    assert (record.identity, record.outcome, record.job_ids) == (event.identity, outcome, ())


@pytest.mark.parametrize(
    "event", [upload("labels/1.manifest"), upload("images/1.csv"), upload(bucket="others")], ids=lambda each: each.key
)
def test_nothing_is_stored_of_an_upload_that_nobody_watches(event):
    story = Story(make_definition(triggers=(S3Trigger("acme-datasets", "images/", ".manifest"),)))

    assert submit_event(event, story.deps) == ()

    assert story.deps.events.list_events(story.now, 9) == []
    assert story.log.lines[-1][1]["reason"] == f"nobody watches s3://{event.bucket}/{event.key}"


def test_an_event_that_starts_something_is_kept_with_its_jobs(story):
    job_id = story.submit()

    (record,) = story.deps.events.list_events(story.now, 9)
    assert (record.source, record.outcome, record.job_ids) == (
        "github",
        f"resnet: started job {job_id}",
        (job_id,),
    )


def test_a_family_without_an_active_revision_fails_the_job_with_a_clear_error():
    story = Story(make_definition(task_definition="gone"))

    job = story.job(story.submit())

    assert job.state is JobState.FAILED
    assert job.reason == "the family gone has no ACTIVE revision"
    assert job.ended_at == story.now
    assert job.wake_at is None
    assert story.launches.requested == []
    assert story.jobs.events_of(job.job_id) == ["failed"]


def test_a_revision_that_relaunch_cannot_run_fails_the_job_before_anything_is_bought():
    story = Story(make_definition())
    story.revisions.active[:] = [make_revision(refusals=("it is for Fargate", "it is for Windows"))]

    job = story.job(story.submit_and_deliver())

    assert (job.state, job.reason) == (JobState.FAILED, "trainer:7: it is for Fargate; it is for Windows")
    assert story.launches.requested == []


@pytest.mark.parametrize(
    ("container", "reason"),
    [
        pytest.param(
            None,
            "trainer:7 has several containers: say which one counts with `container`: main, log",
            id="several",
        ),
        pytest.param("trian", "trainer:7 has no container `trian`: it has main, log", id="typo"),
    ],
)
def test_a_revision_whose_container_is_not_clear_fails_the_job_with_a_clear_error(container, reason):
    several = make_revision(containers=(make_container(), make_container(name="log", gpu_count=0)))
    story = Story(make_definition(container=container), revisions=FakeRevisions(several))

    job = story.job(story.submit())

    assert (job.state, job.reason) == (JobState.FAILED, reason)
    assert story.launches.requested == []


def test_a_revision_that_cannot_be_had_for_now_leaves_the_event_to_its_queue(story):
    story.revisions.failure = TransientError("ThrottlingException")

    with pytest.raises(TransientError):
        submit_event(push(), story.deps)

    assert story.job(story.submit()).state is JobState.WAITING


def test_an_outage_while_one_job_is_created_delays_no_job_of_another_definition():
    story = Story(make_definition(), make_definition(name="bert"))
    story.jobs.fail_next(TransientError("no answer"))

    with pytest.raises(TransientError, match="no answer"):
        submit_event(push(), story.deps)
    ((started, _),) = story.launches.requested
    assert story.job(started).definition.name == "resnet"
    assert story.deps.events.list_events(story.now, 10) == []

    submissions = submit_event(push(), story.deps)
    assert [each.is_new for each in submissions] == [True, False]
    assert len(story.deps.events.list_events(story.now, 10)) == 1


def test_an_outage_while_one_job_is_continued_delays_no_other_job_that_waits_for_the_image():
    story = Story(WAITS_FOR_IMAGE, replace(WAITS_FOR_IMAGE, name="bert"))
    job_ids = {each.job.job_id for each in submit_event(push(), story.deps)}
    story.jobs.fail_next(TransientError("no answer"))

    with pytest.raises(TransientError, match="no answer"):
        submit_event(image(), story.deps)
    assert len(story.launches.requested) == 1

    submit_event(image(), story.deps)
    assert {job_id for job_id, _ in story.launches.requested} == job_ids


def test_a_function_killed_between_creating_the_job_and_asking_for_its_launch_is_made_up_for(story):
    story.launches.failure = TransientError("SQS is down")
    with pytest.raises(TransientError):
        submit_event(push(), story.deps)
    assert story.launches.requested == []

    job_id = story.submit()

    assert story.launches.requested == [(job_id, 0)]


def test_a_job_that_was_created_without_an_answer_is_found_again(story):
    story.jobs.fail_next(TransientError("no answer"), after_effect=True)
    with pytest.raises(TransientError):
        submit_event(push(), story.deps)

    job_id = story.submit()
    story.settle()

    assert story.job(job_id).state is JobState.LAUNCHING
    assert len(story.tasks.requests) == 1


def test_a_job_that_nothing_satisfies_fails_and_names_the_filter():
    impossible = AcceleratorRequirement(gpu=GpuRequirement(count=16))
    story = Story(make_definition(accelerator=impossible))
    job_id = story.submit()

    story.settle()

    job = story.job(job_id)
    assert job.state is JobState.FAILED
    assert job.reason.startswith("nothing satisfies this job: count removed the last 4 of 4 offerings")
    stored = story.jobs.load_history(job_id).selections
    assert [row["filter"] for row in stored[0].rows] == ["count"] * 4
    assert story.tasks.requests == []


def test_a_push_that_waits_for_its_image_is_launched_when_the_image_arrives():
    story = Story(WAITS_FOR_IMAGE)
    job_id = story.submit()

    job = story.job(job_id)
    assert job.waiting is not None
    assert job.waiting.reason is WaitReason.IMAGE
    assert job.waiting.until == story.now + 30 * MINUTE
    assert job.wake_at == story.now + 2 * MINUTE
    assert job.reason == f"waiting for image trainer:{SHA}"
    assert story.launches.requested == []

    submit_event(image("0" * 40), story.deps)
    submit_event(image(repository="other"), story.deps)
    assert story.launches.requested == []

    submit_event(image(), story.deps)
    submit_event(image(), story.deps)
    story.settle()
    assert story.job(job_id).state is JobState.LAUNCHING
    assert len(story.tasks.requests) == 1


def test_a_push_whose_image_is_there_waits_for_nothing():
    story = Story(WAITS_FOR_IMAGE)
    story.images.present.add(("trainer", SHA))

    assert story.job(story.submit()).waiting.reason is WaitReason.LAUNCH


def test_an_image_lets_jobs_go_on_and_starts_its_own():
    story = Story(WAITS_FOR_IMAGE, make_definition(name="bert", triggers=(ImageTrigger("trainer", "{sha}"),)))
    waiting = story.submit()

    started = story.submit(image())
    story.settle()

    assert story.job(waiting).state is JobState.LAUNCHING
    assert story.job(started).definition.name == "bert"


def test_an_image_that_arrives_after_its_job_was_cancelled_starts_nothing():
    story = Story(WAITS_FOR_IMAGE)
    job_id = story.submit()
    launch_attempt(job_id, story.deps)
    for _ in range(15):
        story.reconcile(after=2 * MINUTE)
    assert story.job(job_id).state is JobState.FAILED

    submit_event(image(), story.deps)

    assert story.job(job_id).state is JobState.FAILED


def test_revisions_of_a_sibling_family_are_not_taken():
    story = Story(revisions=FakeRevisions(make_revision("trainer-gpu", 99), make_revision("trainer", 3)))

    assert story.job(story.submit()).revision.revision == 3
