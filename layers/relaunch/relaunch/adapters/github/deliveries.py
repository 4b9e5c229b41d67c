"""Parses GitHub deliveries queued by github_webhook into trigger events.

The identity of an event consists of its content and its time if the signed body has both, so that every delivery of it
is the same event, and the same push made again is another one. Where the time is missing, the hash of the body tells.
Dispatches may repeat, and are identified by their delivery id, which GitHub repeats for every webhook and every
redelivery (GitHub Docs, "REST API endpoints for repository webhooks", `guid`), but does not sign: core.triggers.
dispatch_rate limits them. docs/decisions/0010-event-identity.md has the reasons.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from relaunch.adapters.github.payload_trimming import MAX_LISTED_COMMITS, MAX_LISTED_PATHS, find_skip
from relaunch.adapters.github.payloads import (
    DELIVERY,
    PACKAGE,
    PUSH,
    RELEASE,
    REPOSITORY_DISPATCH,
    WORKFLOW_DISPATCH,
    WORKFLOW_RUN,
    Delivery,
    PackageVersion,
    PushPayload,
    Repository,
    WorkflowBody,
)
from relaunch.adapters.validation import permanent_if_invalid
from relaunch.core.triggers.events import (
    GithubEvent,
    Package,
    Push,
    Release,
    RepositoryDispatch,
    WorkflowDispatch,
    WorkflowRun,
)
from relaunch.core.triggers.matching import IgnoredEvent

OWN_DISPATCH_KEY = "relaunch_job_id"  # in dispatches by Relaunch itself, so that no job starts itself again
_NO_COMMIT = "0" * 40
_SECONDS = re.compile("[0-9]{1,11}")
_COMMIT = re.compile("[0-9a-f]{40}")


def parse_delivery(message: Mapping[str, object]) -> GithubEvent | IgnoredEvent:
    """Parse a queued GitHub delivery.

    Raises:
        PermanentError: the body does not match the event of the (unsigned) header, or lacks required fields.
    """
    what = f"the body of GitHub delivery {message.get('delivery')} is not that of a {message.get('event')}"
    with permanent_if_invalid(what):
        delivery = DELIVERY.read(message)
        parse = _PARSERS.get(delivery.event)
        return parse(delivery) if parse else IgnoredEvent(f"{delivery.event} events start nothing")


def _parse_push(delivery: Delivery) -> Push:
    push = PUSH.read(delivery.payload)
    head = push.head_commit.id if push.head_commit else None
    message = push.head_commit.message if push.head_commit else None
    pushed_at = push.repository.pushed_at or delivery.body_identity
    return Push(
        identity=_identify("push", push.repository, push.ref, push.before, push.after, pushed_at),
        repository=push.repository.full_name,
        ref=push.ref,
        # `after` of an annotated tag is the tag object, not the commit.
        sha=head or (push.after if push.after != _NO_COMMIT else ""),
        is_deleted=push.deleted or push.after == _NO_COMMIT,
        has_commits=bool(push.commits),
        skip=find_skip(message or "").strip(),
        paths=_collect_paths(push),
        sender=push.sender_login,
        pushed_at=_pushed_at(push.repository.pushed_at),
    )


def _pushed_at(seconds: str | None) -> datetime | None:
    return datetime.fromtimestamp(int(seconds), UTC) if seconds and _SECONDS.fullmatch(seconds) else None


def _collect_paths(push: PushPayload) -> tuple[str, ...] | None:
    """Return all changed paths, None if the payload does not list all of them.

    The commits of a new branch or a forced push are not the difference to the previous state. A branch that is cut from
    a commit which GitHub has already changes none: GitHub compares a new branch with the parent of the deepest commit
    pushed ("Workflow syntax for GitHub Actions", Git diff comparisons), and none was.
    """
    commits = push.commits or []
    if push.created and not commits and not push.forced:
        return ()
    if push.created or push.forced or len(commits) >= MAX_LISTED_COMMITS:
        return None
    found: set[str] = set()
    for commit in commits:
        if commit.added is None or commit.modified is None or commit.removed is None:
            return None
        listed = (*commit.added, *commit.modified, *commit.removed)
        if len(listed) >= MAX_LISTED_PATHS:
            return None
        found.update(listed)
    return tuple(sorted(found))


def _parse_workflow_dispatch(delivery: Delivery) -> WorkflowDispatch | IgnoredEvent:
    dispatch = WORKFLOW_DISPATCH.read(delivery.payload)
    inputs = dispatch.inputs or {}
    if OWN_DISPATCH_KEY in inputs:
        return IgnoredEvent(f"Relaunch sent this dispatch itself, for job {inputs[OWN_DISPATCH_KEY]}")
    return WorkflowDispatch(
        identity=_identify("workflow_dispatch", dispatch.repository, delivery.delivery or delivery.body_identity),
        repository=dispatch.repository.full_name,
        ref=dispatch.ref,
        workflow=dispatch.workflow,
        inputs=_to_text(inputs),
        body_sha256=delivery.body_sha256,
        sender=dispatch.sender_login,
    )


def _parse_repository_dispatch(delivery: Delivery) -> RepositoryDispatch | IgnoredEvent:
    dispatch = REPOSITORY_DISPATCH.read(delivery.payload)
    payload = dispatch.client_payload or {}
    if OWN_DISPATCH_KEY in payload:
        return IgnoredEvent(f"Relaunch sent this dispatch itself, for job {payload[OWN_DISPATCH_KEY]}")
    inputs = payload.get("inputs")
    return RepositoryDispatch(
        identity=_identify("repository_dispatch", dispatch.repository, delivery.delivery or delivery.body_identity),
        repository=dispatch.repository.full_name,
        ref=f"refs/heads/{dispatch.branch}" if dispatch.branch else "",
        event_type=dispatch.action,
        inputs=_to_text(inputs) if isinstance(inputs, dict) else _to_text(payload),
        body_sha256=delivery.body_sha256,
        sender=dispatch.sender_login,
    )


def _parse_workflow_run(delivery: Delivery) -> WorkflowRun:
    event = WORKFLOW_RUN.read(delivery.payload)
    run = event.workflow_run
    workflow = event.workflow or WorkflowBody(name=run.name)
    path = _without_ref(workflow.path or run.path or "")
    # The head repository is null if the fork was deleted.
    head = run.head_repository.full_name if run.head_repository else ""
    return WorkflowRun(
        identity=_identify("workflow_run", event.repository, run.id, str(run.run_attempt), event.action),
        repository=event.repository.full_name,
        ref=f"refs/heads/{run.head_branch}" if run.head_branch else "",
        sha=run.head_sha or "",
        action=event.action,
        is_fork=head.lower() != event.repository.full_name.lower(),
        conclusion=run.conclusion or "",
        run_event=run.event or "",
        workflow=workflow.name or path,
        path=path,
        sender=event.sender_login,
    )


def _parse_release(delivery: Delivery) -> Release:
    event = RELEASE.read(delivery.payload)
    target = event.release.target_commitish or ""
    published_at = event.release.published_at or delivery.body_identity
    return Release(
        identity=_identify("release", event.repository, event.release.id, event.action, published_at),
        repository=event.repository.full_name,
        ref=f"refs/tags/{event.release.tag_name}" if event.release.tag_name else "",
        sha=target if _COMMIT.fullmatch(target) else "",  # usually the name of a branch
        action=event.action,
        sender=event.sender_login,
    )


def _parse_package(delivery: Delivery) -> Package | IgnoredEvent:
    payload = delivery.payload
    if "package" not in payload and "registry_package" in payload:
        payload = {**payload, "package": payload["registry_package"]}
    event = PACKAGE.read(payload)
    if event.repository is None:
        return IgnoredEvent(f"package {event.package.name} belongs to no repository")
    version = event.package.package_version or PackageVersion()
    target = version.target_oid or ""
    return Package(
        identity=_identify(
            "package", event.repository, event.package.name, version.id or "", version.version or "", event.action
        ),
        repository=event.repository.full_name,
        sha=target if _COMMIT.fullmatch(target) else "",
        action=event.action,
        package=event.package.name,
        tag=_find_package_tag(version),
        is_container=version.container_metadata is not None or _is_digest(version),
        sender=event.sender.login if event.sender else "",
    )


def _find_package_tag(version: PackageVersion) -> str:
    """Return the tag of a container, or the version of another package."""
    metadata = version.container_metadata
    if metadata and metadata.tag and metadata.tag.name:
        return metadata.tag.name
    url_tag = (version.package_url or "").rpartition("/")[2].partition(":")[2]
    return url_tag or ("" if _is_digest(version) else version.version or "")


def _without_ref(path: str) -> str:
    """Return the path of a workflow without the ref behind it (`.github/workflows/ci.yml@main`)."""
    for ending in (".yml", ".yaml"):
        file, found, _ = path.partition(f"{ending}@")
        if found:
            return f"{file}{ending}"
    return path


def _is_digest(version: PackageVersion) -> bool:
    return (version.version or "").startswith("sha256:")


def _identify(event: str, repository: Repository, *parts: str) -> str:
    return ":".join(("github", event, repository.full_name.lower(), *parts))


def _to_text(values: Mapping[str, object]) -> dict[str, str]:
    """Return inputs as strings: other types as compact JSON; null values are omitted."""
    return {
        name: value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        for name, value in values.items()
        if value is not None
    }


_PARSERS: Mapping[str, Callable[[Delivery], GithubEvent | IgnoredEvent]] = {
    "push": _parse_push,
    "workflow_dispatch": _parse_workflow_dispatch,
    "repository_dispatch": _parse_repository_dispatch,
    "workflow_run": _parse_workflow_run,
    "release": _parse_release,
    "package": _parse_package,
    "registry_package": _parse_package,
}
