"""What must come of the samples of requests and triggers: the webhook, both APIs, the intake queue."""

import json
from collections.abc import Mapping
from typing import Any

from relaunch.core.jobs.attempt import IntentKind
from relaunch.core.jobs.job import INVOKE, Job
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.usecases.cancel_job import cancel_job
from relaunch_local.sam_local.samples import SNS_QUEUE, TOPIC, read_sample
from relaunch_local.sam_local.scene import Answer, Outcome, Scene, expect, expect_handled, expect_launch_requested
from relaunch_local.sam_local.stage import DEFINITION, Stage
from relaunch_local.stack.training_cluster import INSTANCE_TYPES

JOB = "resnet-1f2e3d4c"
_IMAGE_DIGEST = "sha256:5d0c41f2b6a87e9301d7c8be4f2a6950e1b3d4c7a8f06925be17d3409c6fa812"
# The role, whatever its session is called.
_CALLER = "arn:aws:sts::111122223333:assumed-role/ci-vision"


def delivery(stage: Stage) -> Scene:
    """GitHub's push is in the intake queue, as the sample of that queue has it."""
    answer = yield {}
    expect("the status", answer.get("statusCode"), 202)
    (record,) = json.loads(read_sample("sqs.intake.github-push"))["Records"]
    queued = [json.loads(each) for each in stage.receive("Intake")]
    expected = {**json.loads(record["body"]), "received_at": None}
    expect("the intake queue", [{**each, "received_at": None} for each in queued], [expected])
    return f"delivery {expected['delivery']} is in the intake queue"


def signed_submission(stage: Stage) -> Scene:
    """The job is of whom the URL names as the caller."""
    answer = yield {}
    expect("the status", answer.get("statusCode"), 201)
    job = _expect_accepted(stage, json.loads(answer["body"]), _CALLER)
    return f"{job.job_id} waits for its launch, which {_CALLER} asked for"


def submission(stage: Stage) -> Scene:
    """The job waits for its launch."""
    answer = yield {}
    job = _expect_accepted(stage, answer, INVOKE)
    return f"{job.job_id} waits for its launch"


def repeated_submission(stage: Stage) -> Scene:
    """The idempotency key is known: the same job is answered."""
    before = stage.job_ids()
    answer = yield {}
    expect("is_new", answer.get("is_new"), expected=False)
    expect("the job was there before", answer["job"]["job_id"] in before, expected=True)
    expect("the jobs", stage.job_ids(), before)
    return f"{answer['job']['job_id']} is answered again, and no other job was created"


def _expect_accepted(stage: Stage, answer: Mapping[str, Any], caller: str) -> Job:
    expect("is_new", answer.get("is_new"), expected=True)
    job = stage.job(answer["job"]["job_id"])
    expect("the caller", job.trigger.caller, caller)
    expect("the inputs", dict(job.inputs), {"learning_rate": "0.01"})
    _expect_waiting_for_launch(stage, job)
    return job


def _expect_waiting_for_launch(stage: Stage, job: Job) -> None:
    expect("the state", job.state, JobState.WAITING)
    expect("what it waits for", job.waiting and job.waiting.reason, WaitReason.LAUNCH)
    expect_launch_requested(stage, job.job_id)


def planning(_stage: Stage) -> Scene:
    """The plan has the offerings of the simulated region, cheapest first."""
    answer = yield {}
    offerings = answer["plan"]["offerings"]
    types = {each["offering"].split()[0] for each in offerings}
    prices = [each["price_usd_per_hour"] for each in offerings]
    expect("the types are those of the region", bool(types) and types <= set(INSTANCE_TYPES), expected=True)
    expect("the problem", answer["plan"]["problem"], "")
    expect("the cheapest is the first", prices[0], min(prices))
    return f"{len(offerings)} offerings, of which {offerings[0]['offering']} is the first"


def comparing(_stage: Stage) -> Scene:
    """The answer has what the file changes, and a plan; nothing is registered."""
    answer = yield {}
    (compared,) = answer["comparison"]["definitions"]
    changed = [each["key"] for each in compared["changes"]]
    expect("what is changed", changed, ["accelerator.gpu.memory", "max_price_per_hour"])
    expect("what is planned", compared["plan"]["definition"], "resnet")
    return f"{' and '.join(changed)} of {compared['definition']} are changed, and it is planned"


def showing(stage: Stage) -> Scene:
    """The job is as it is stored."""
    job = stage.job(stage.running[0])
    answer = yield {JOB: job.job_id}
    shown = answer.get("job", {})
    expect("the job", (shown.get("job_id"), shown.get("state")), (job.job_id, "RUNNING"))
    expect("its task", shown.get("task_arn"), stage.task_of(job)["taskArn"])
    return f"{job.job_id} is RUNNING"


def cancellation(stage: Stage) -> Scene:
    """ECS was told to stop the task, with the reason of the request."""
    job = stage.take_running()
    answer = yield {JOB: job.job_id}
    expect("the answered state", answer.get("job", {}).get("state"), "STOPPING")
    stored = stage.job(job.job_id)
    task = stage.task_of(job)
    intent = stored.current_attempt.intent
    expect("the stored state", (stored.state, intent and intent.kind), (JobState.STOPPING, IntentKind.CANCEL))
    stopped = (task["desiredStatus"], task.get("stoppedReason"))
    expect("the task", stopped, ("STOPPED", "Relaunch: the learning rate was wrong"))
    return f"{job.job_id} is STOPPING, and ECS stops its task: {task['stoppedReason']}"


def retrying(stage: Stage) -> Scene:
    """A new job goes on where a cancelled one ended."""
    old = stage.take_running()
    cancel_job(old.job_id, "", stage.deps)
    stage.settle("the job is CANCELLED", lambda: stage.job(old.job_id).ended_at)
    expect("the state before", stage.job(old.job_id).state, JobState.CANCELLED)
    answer = yield {JOB: old.job_id}
    expect("is_new", answer.get("is_new"), expected=True)
    new = stage.job(answer["job"]["job_id"])
    expect("what it retries", [each.job_id for each in new.resume_from], [old.job_id])
    _expect_waiting_for_launch(stage, new)
    return f"{new.job_id} waits for its launch, and goes on where {old.job_id} ended"


def push(stage: Stage) -> Scene:
    """The push started one job, with its commit."""
    before = stage.job_ids()
    answer = yield {}
    job = _expect_started(stage, before, answer)
    expect("the commit", job.trigger.environment.get("RELAUNCH_GIT_SHA"), "4b1d8e6f02a97c35e8d0714b6a2f93c5d8e07b1a")
    return f"{job.job_id} waits for its launch: {job.trigger.summary}"


def upload(stage: Stage) -> Scene:
    """The upload started one job, with its object."""
    before = stage.job_ids()
    answer = yield {}
    job = _expect_started(stage, before, answer)
    uri = job.trigger.environment.get("RELAUNCH_OBJECT_URI")
    expect("the object", uri, "s3://acme-datasets/images/été 2026/shard+07.manifest")
    return f"{job.job_id} waits for its launch: {job.trigger.summary}"


def known_upload(stage: Stage) -> Scene:
    """S3's own notification is of an upload that EventBridge told of."""
    before = stage.job_ids()
    answer = yield {}
    expect_handled(answer)
    expect("the jobs", stage.job_ids(), before)
    newest = stage.deps.events.list_events(stage.deps.clock.now(), 1)[0]
    expect("the recorded outcome", newest.outcome, f"{DEFINITION}: job {newest.job_ids[0]} is there already")
    return f"{newest.job_ids[0]} is there already, and no other job was created"


def image(stage: Stage) -> Scene:
    """The pushed image started one job, which runs it by its digest."""
    before = stage.job_ids()
    answer = yield {}
    job = _expect_started(stage, before, answer)
    digests = {name: uri.rpartition("@")[2] for name, uri in job.images.items()}
    expect("the images", digests, {"main": _IMAGE_DIGEST})
    return f"{job.job_id} waits for its launch: {job.trigger.summary}"


def selected(stage: Stage) -> Scene:
    """The event that a pattern selects started one job, with the input that it has."""
    before = stage.job_ids()
    answer = yield {}
    job = _expect_started(stage, before, answer)
    expect("the source", job.trigger.environment.get("RELAUNCH_EVENT_SOURCE"), "com.acme.features")
    expect("the inputs", dict(job.inputs), {"learning_rate": "0.01"})
    return f"{job.job_id} waits for its launch: {job.trigger.summary}"


def published(stage: Stage) -> Scene:
    """The message of a topic started one job, with the input that it has."""
    before = stage.job_ids()
    answer = yield {SNS_QUEUE: stage.world.deployment.outputs["SnsQueueArn"]}
    job = _expect_started(stage, before, answer)
    expect("the topic", job.trigger.environment.get("RELAUNCH_SNS_TOPIC_ARN"), TOPIC)
    expect("the inputs", dict(job.inputs), {"learning_rate": "0.01"})
    return f"{job.job_id} waits for its launch: {job.trigger.summary}"


def scheduled(stage: Stage) -> Scene:
    """The time of a schedule started one job, although it is long ago."""
    before = stage.job_ids()
    answer = yield {}
    job = _expect_started(stage, before, answer)
    expect("the time", job.trigger.environment.get("RELAUNCH_SCHEDULED_TIME"), "2026-11-03T12:45:00Z")
    return f"{job.job_id} waits for its launch: {job.trigger.summary}"


def _expect_started(stage: Stage, before: set[str], answer: Answer) -> Job:
    expect_handled(answer)
    started = sorted(stage.job_ids() - before)
    expect("how many jobs it started", len(started), 1)
    job = stage.job(started[0])
    _expect_waiting_for_launch(stage, job)
    return job


REQUESTS: Mapping[str, tuple[Outcome, ...]] = {
    "function-url.github-push": (Outcome("queued", delivery, changes_nothing=True),),
    "function-url.job-api": (Outcome("accepted", signed_submission),),
    "job_api.submit": (
        Outcome("accepted", submission),
        Outcome("known", repeated_submission, changes_nothing=True),
    ),
    "job_api.plan": (Outcome("planned", planning, changes_nothing=True),),
    "plan_api.compare": (Outcome("planned", comparing, changes_nothing=True),),
    "job_api.show": (Outcome("shown", showing, changes_nothing=True),),
    "job_api.cancel": (Outcome("stopped", cancellation),),
    "job_api.retry": (Outcome("accepted", retrying),),
    "sqs.intake.github-push": (Outcome("accepted", push),),
    "sqs.intake.s3": (Outcome("accepted", upload),),
    "sqs.intake.s3-notification": (Outcome("known", known_upload),),
    "sqs.intake.image": (Outcome("accepted", image),),
    "sqs.intake.image-replicated": (Outcome("accepted", image),),
    "sqs.intake.schedule": (Outcome("accepted", scheduled),),
    "sqs.intake.eventbridge": (Outcome("accepted", selected),),
    "sqs.sns.topic-message": (Outcome("accepted", published),),
}
