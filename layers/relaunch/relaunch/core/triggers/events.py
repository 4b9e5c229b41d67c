"""Trigger events: the facts of an event that job definitions can match.

`happened_at` is when the event was received or sent, to the second, None if its message has no time. It is not part of
comparisons.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, assert_never

from relaunch.core.definitions.definition import TriggerSource
from relaunch.core.jobs.resume_point import ResumePoint


@dataclass(frozen=True, slots=True, kw_only=True)
class _GithubDelivery:
    """Fields of all GitHub events; `ref` and `sha` are empty for an event without them.

    Deliveries with the same `identity` are the same event. It consists of the content and its time if the body has both
    (push: ref, before, after, pushed_at), of the delivery id if it is a dispatch, else of the hash of the body.
    """

    identity: str
    repository: str
    ref: str = ""
    sha: str = ""
    sender: str = ""
    happened_at: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Push(_GithubDelivery):
    """A push of a branch or a tag.

    `paths` is None if the payload does not list every changed path (more than 2,048 commits, a new branch).
    """

    name: ClassVar = "push"
    is_deleted: bool = False
    has_commits: bool = True
    paths: tuple[str, ...] | None = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowDispatch(_GithubDelivery):
    """A workflow was run manually; `workflow` is its path, `body_sha256` the hash of the signed body."""

    name: ClassVar = "workflow_dispatch"
    workflow: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    body_sha256: str = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryDispatch(_GithubDelivery):
    """A call of the GitHub API; `event_type` is set by the caller, `body_sha256` is the hash of the signed body."""

    name: ClassVar = "repository_dispatch"
    event_type: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    body_sha256: str = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRun(_GithubDelivery):
    """A workflow run was requested, started or completed; `run_event` is the event that caused it, empty if unknown."""

    name: ClassVar = "workflow_run"
    action: str
    workflow: str = ""
    conclusion: str = ""
    run_event: str = ""
    is_fork: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(_GithubDelivery):
    """A release was created, published, edited or deleted."""

    name: ClassVar = "release"
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Package(_GithubDelivery):
    """A package was published or updated; `tag` is the tag of a container, else the version of the package."""

    name: ClassVar = "package"
    action: str
    package: str
    tag: str = ""


GithubEvent = Push | WorkflowDispatch | RepositoryDispatch | WorkflowRun | Release | Package


@dataclass(frozen=True, slots=True)
class ObjectCreated:
    """An S3 object was created; `key` is decoded; `sequencer` orders writes to the same key."""

    identity: str
    bucket: str
    key: str
    version_id: str = ""
    etag: str = ""
    size_bytes: int = 0
    happened_at: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ImagePushed:
    """An image was pushed to an ECR repository."""

    identity: str
    repository: str
    tag: str
    digest: str
    happened_at: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class RetriedJob:
    """What a job takes over from the one that it retries, apart from inputs.

    `environment` is that of its trigger facts, `image` (repository, tag) the one that its trigger named.
    """

    job_id: str
    environment: Mapping[str, str] = field(default_factory=dict)
    image: tuple[str, str] | None = None
    resume_from: tuple[ResumePoint, ...] = ()


@dataclass(frozen=True, slots=True)
class DirectRequest:
    """A request for a job by the name of its definition; `caller` is who sent it (core.jobs.callers).

    With `image_tag` the job runs that image of a repository whose images triggers of the definition watch; with
    `retried` it goes on where another job ended.
    """

    identity: str
    definition: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    caller: str = ""
    requested_at: datetime | None = None
    image_tag: str = ""
    retried: RetriedJob | None = None


WatchedEvent = GithubEvent | ObjectCreated | ImagePushed
"""An event of what triggers watch."""

TriggerEvent = WatchedEvent | DirectRequest


def happened_at(event: TriggerEvent) -> datetime | None:
    """Return when an event happened, None if unknown."""
    return event.requested_at if isinstance(event, DirectRequest) else event.happened_at


def trigger_keys(event: WatchedEvent) -> tuple[TriggerSource, str]:
    """Return the (source, name) under which the definitions that watch the origin of the event are registered."""
    if isinstance(event, GithubEvent):
        return TriggerSource.GITHUB, event.repository.lower()
    match event:
        case ObjectCreated():
            return TriggerSource.S3, event.bucket
        case ImagePushed():
            return TriggerSource.IMAGE, event.repository
        case _:
            assert_never(event)
