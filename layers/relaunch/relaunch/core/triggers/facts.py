"""Trigger facts of an event: a summary and environment variables."""

from dataclasses import replace

from relaunch.core.jobs.job import TriggerFacts
from relaunch.core.triggers.events import (
    DirectRequest,
    GithubEvent,
    ImagePushed,
    ObjectCreated,
    Package,
    Push,
    Release,
    RepositoryDispatch,
    RetriedJob,
    TriggerEvent,
    WorkflowDispatch,
    WorkflowRun,
)


def collect_facts(event: TriggerEvent, sha: str = "", repository: str = "") -> TriggerFacts:
    """Return the trigger facts of an event.

    `sha` is a commit id found in the tag of an image, `repository` that of the image that a request names.
    """
    if isinstance(event, GithubEvent):
        return _collect_github_facts(event)
    if isinstance(event, ObjectCreated):
        return _collect_object_facts(event)
    if isinstance(event, ImagePushed):
        return _collect_image_facts(event, sha)
    if event.retried is not None:
        return _collect_retry_facts(event, event.retried)
    summary = f"asked for by {event.caller}" if event.caller else "asked for"
    if not event.image_tag:
        return TriggerFacts("direct", event.identity, summary, caller=event.caller)
    environment = _image_environment(repository, event.image_tag, sha)
    facts = _facts("direct", event, f"{summary} with image {repository}:{event.image_tag}", environment)
    return replace(facts, caller=event.caller)


def _collect_retry_facts(event: DirectRequest, retried: RetriedJob) -> TriggerFacts:
    summary = f"retry of {retried.job_id}" + (f", asked for by {event.caller}" if event.caller else "")
    return TriggerFacts("direct", event.identity, summary, retried.environment, event.caller)


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
    return _facts("github", event, summary, environment)


def _summarize_github(event: GithubEvent) -> str:
    name = event.ref.removeprefix("refs/heads/").removeprefix("refs/tags/")
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
    return _facts("s3", event, f"upload of {uri}", environment)


def _collect_image_facts(event: ImagePushed, sha: str) -> TriggerFacts:
    environment = _image_environment(event.repository, event.tag, sha) | {"RELAUNCH_IMAGE_DIGEST": event.digest}
    return _facts("image", event, f"image {event.repository}:{event.tag} pushed", environment)


def _image_environment(repository: str, tag: str, sha: str) -> dict[str, str]:
    return {"RELAUNCH_IMAGE_REPOSITORY": repository, "RELAUNCH_IMAGE_TAG": tag, "RELAUNCH_GIT_SHA": sha}


def _facts(source: str, event: TriggerEvent, summary: str, environment: dict[str, str]) -> TriggerFacts:
    return TriggerFacts(source, event.identity, summary, {name: text for name, text in environment.items() if text})
