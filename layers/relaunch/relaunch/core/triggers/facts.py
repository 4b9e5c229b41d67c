"""What an event tells about a job that it starts: a summary, and the variables that the training gets."""

from dataclasses import replace
from typing import assert_never

from relaunch.core.jobs.trigger_facts import CHAIN_DEPTH, TriggerFacts
from relaunch.core.triggers.events import (
    BusEvent,
    DirectRequest,
    GithubEvent,
    ImagePushed,
    ObjectCreated,
    Package,
    Push,
    Release,
    RepositoryDispatch,
    RetriedJob,
    ScheduledTime,
    TopicMessage,
    TriggerEvent,
    WatchedEvent,
    WorkflowDispatch,
    WorkflowRun,
)


def collect_facts(event: TriggerEvent, sha: str = "", repository: str = "") -> TriggerFacts:
    """Return the trigger facts of an event.

    `sha` is a commit id found in the tag of an image, `repository` that of the image that a request names.
    """
    if isinstance(event, DirectRequest):
        return _collect_request_facts(event, sha, repository)
    return _collect_watched_facts(event, sha)


def _collect_watched_facts(event: WatchedEvent, sha: str) -> TriggerFacts:
    if isinstance(event, GithubEvent):
        return _collect_github_facts(event)
    match event:
        case ObjectCreated():
            return _collect_object_facts(event)
        case ImagePushed():
            return _collect_image_facts(event, sha)
        case BusEvent():
            return _collect_bus_facts(event)
        case ScheduledTime():
            time = f"{event.scheduled_at:%Y-%m-%dT%H:%M:%SZ}"
            return _facts("schedule", event, f"schedule at {time}", {"RELAUNCH_SCHEDULED_TIME": time}, "schedule")
        case TopicMessage():
            return _collect_topic_facts(event)
        case _:
            assert_never(event)


def _collect_request_facts(event: DirectRequest, sha: str, repository: str) -> TriggerFacts:
    if event.retried is not None:
        return _collect_retry_facts(event, event.retried)
    summary = f"asked for by {event.caller}" if event.caller else "asked for"
    short = _shorten_caller(event.caller) or "direct call"
    if not event.image_tag:
        return TriggerFacts("direct", event.identity, summary, caller=event.caller, short=short)
    environment = _image_environment(repository, event.image_tag, sha)
    facts = _facts("direct", event, f"{summary} with image {repository}:{event.image_tag}", environment, short)
    return replace(facts, caller=event.caller)


def _shorten_caller(caller: str) -> str:
    """Return the last part of an ARN: `alice`, `root`, the name of a session."""
    return caller.rpartition("/")[2].rpartition(":")[2]


def _collect_retry_facts(event: DirectRequest, retried: RetriedJob) -> TriggerFacts:
    summary = f"retry of {retried.job_id}" + (f", asked for by {event.caller}" if event.caller else "")
    return TriggerFacts(
        "direct", event.identity, summary, retried.environment, event.caller, f"retry of {retried.job_id}"
    )


def _collect_github_facts(event: GithubEvent) -> TriggerFacts:
    environment = {
        "RELAUNCH_GIT_REPOSITORY": event.repository,
        "RELAUNCH_GIT_REF": event.ref,
        "RELAUNCH_GIT_SHA": event.sha,
    }
    if isinstance(event, Package):
        environment |= {"RELAUNCH_PACKAGE": event.package, "RELAUNCH_PACKAGE_TAG": event.tag}
    sender = f" by {event.sender}" if event.sender else ""
    summary = f"{_summarize_github(event)} in {event.repository}{sender}"
    return _facts("github", event, summary, environment, _shorten_github(event))


def _shorten_github(event: GithubEvent) -> str:
    name = _name_of(event.ref)
    match event:
        case Push():
            return f"push {event.sha[:7]} {name}"
        case WorkflowDispatch() | WorkflowRun():
            return f"workflow {event.workflow.rpartition('/')[2]} {name}"
        case RepositoryDispatch():
            return f"dispatch {event.event_type}"
        case Release():
            return f"release {name}"
        case _:
            return f"package {':'.join(part for part in (event.package, event.tag) if part)}"


def _name_of(ref: str) -> str:
    return ref.removeprefix("refs/heads/").removeprefix("refs/tags/")


def _summarize_github(event: GithubEvent) -> str:
    name = _name_of(event.ref)
    match event:
        case Push():
            is_tag = event.ref.startswith("refs/tags/")
            return f"push of tag {name}" if is_tag else f"push of {event.sha[:7]} to {name}"
        case WorkflowDispatch():
            return f"workflow {event.workflow} dispatched on {name}"
        case WorkflowRun():
            return f"workflow {event.workflow} completed on {name}"
        case RepositoryDispatch():
            return f"dispatch of {event.event_type}"
        case Release():
            return f"release {name} {event.action}"
        case _:
            return f"package {':'.join(part for part in (event.package, event.tag) if part)} {event.action}"


def _collect_object_facts(event: ObjectCreated) -> TriggerFacts:
    uri = f"s3://{event.bucket}/{event.key}"
    environment = {"RELAUNCH_OBJECT_URI": uri, "RELAUNCH_OBJECT_VERSION_ID": event.version_id}
    return _facts("s3", event, f"upload of {uri}", environment, f"upload {event.key.rpartition('/')[2] or event.key}")


def _collect_image_facts(event: ImagePushed, sha: str) -> TriggerFacts:
    environment = _image_environment(event.repository, event.tag, sha) | {"RELAUNCH_IMAGE_DIGEST": event.digest}
    image = f"image {event.repository}:{event.tag}"
    return _facts("image", event, f"{image} pushed", environment, image)


def _collect_bus_facts(event: BusEvent) -> TriggerFacts:
    environment = {
        "RELAUNCH_EVENT_ID": event.event_id,
        "RELAUNCH_EVENT_SOURCE": event.source,
        "RELAUNCH_EVENT_DETAIL_TYPE": event.detail_type,
        CHAIN_DEPTH: str(event.depth or ""),
    }
    about = f" about job {event.job_id}" if event.depth else ""
    summary = f"event {event.detail_type} of {event.source}{about}"
    return _facts("eventbridge", event, summary, environment, f"event {event.detail_type}")


def _collect_topic_facts(event: TopicMessage) -> TriggerFacts:
    environment = {"RELAUNCH_SNS_TOPIC_ARN": event.topic, "RELAUNCH_SNS_MESSAGE_ID": event.message_id}
    name = event.topic.rpartition(":")[2]
    summary = f"message {event.message_id} on the topic {name}"
    return _facts("sns", event, summary, environment, f"message on {name}")


def _image_environment(repository: str, tag: str, sha: str) -> dict[str, str]:
    return {"RELAUNCH_IMAGE_REPOSITORY": repository, "RELAUNCH_IMAGE_TAG": tag, "RELAUNCH_GIT_SHA": sha}


def _facts(source: str, event: TriggerEvent, summary: str, environment: dict[str, str], short: str) -> TriggerFacts:
    known = {name: text for name, text in environment.items() if text}
    return TriggerFacts(source, event.identity, summary, known, short=short)
