"""Trigger events: what happened outside, reduced to the facts a job definition can ask about.

`happened_at` is when the event came in or was sent, to the second, None when its message does not tell; it is no part
of what the event is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from relaunch.core.definitions.definition import TriggerSource


@dataclass(frozen=True, slots=True, kw_only=True)
class _GithubDelivery:
    """What every GitHub event tells; `ref` and `sha` are empty where it names none.

    `identity` is what makes two deliveries the same event: content where the content identifies itself
    (push: ref, before, after; release id), the delivery id where it does not (dispatches).
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

    `paths` is None when the payload cannot tell every changed path (more than 2,048 commits, a new branch).
    """

    name: ClassVar = "push"
    is_deleted: bool = False
    has_commits: bool = True
    paths: tuple[str, ...] | None = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowDispatch(_GithubDelivery):
    """Somebody ran a workflow by hand; `workflow` is its path."""

    name: ClassVar = "workflow_dispatch"
    workflow: str
    inputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryDispatch(_GithubDelivery):
    """A call of GitHub's API; `event_type` is the caller's."""

    name: ClassVar = "repository_dispatch"
    event_type: str
    inputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRun(_GithubDelivery):
    """A workflow run was requested, began or completed."""

    name: ClassVar = "workflow_run"
    action: str
    workflow: str = ""
    conclusion: str = ""
    is_fork: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(_GithubDelivery):
    """A release was created, published, edited or deleted."""

    name: ClassVar = "release"
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Package(_GithubDelivery):
    """A package was published or updated; `tag` is a container's tag, else the package's version."""

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
class DirectRequest:
    """A caller asked for a job by the definition's name, with its own idempotency key."""

    identity: str
    definition: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    caller: str = ""
    requested_at: datetime | None = None


TriggerEvent = GithubEvent | ObjectCreated | ImagePushed | DirectRequest


def happened_at(event: TriggerEvent) -> datetime | None:
    """Return when an event happened, as far as that is known."""
    return event.requested_at if isinstance(event, DirectRequest) else event.happened_at


def trigger_keys(event: GithubEvent | ObjectCreated | ImagePushed) -> tuple[TriggerSource, str]:
    """Return the (source, name) under which the definitions that watch this event's origin are registered."""
    match event:
        case ObjectCreated():
            return TriggerSource.S3, event.bucket
        case ImagePushed():
            return TriggerSource.IMAGE, event.repository
        case _:
            return TriggerSource.GITHUB, event.repository.lower()
