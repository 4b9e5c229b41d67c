"""Trigger events: what happened outside, reduced to the facts a job definition can ask about.

`happened_at` is when the event came in or was sent, to the second, None when its message does not tell; it is no part
of what the event is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from relaunch.core.definitions.definition import TriggerSource


@dataclass(frozen=True, slots=True)
class GithubEvent:
    """One GitHub delivery that could start a job.

    `identity` is what makes two deliveries the same event: content where the content identifies itself
    (push: ref, before, after; release id), the delivery id where it does not (dispatches).
    `paths` is None when the payload cannot tell every changed path (more than 2,048 commits, a new branch).
    """

    identity: str
    event: str
    repository: str
    ref: str = ""
    sha: str = ""
    action: str = ""
    is_deleted: bool = False
    is_fork: bool = False
    has_commits: bool = True
    conclusion: str = ""
    workflow: str = ""
    dispatch_type: str = ""
    package: str = ""
    package_tag: str = ""
    paths: tuple[str, ...] | None = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    sender: str = ""
    happened_at: datetime | None = field(default=None, compare=False)


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
        case GithubEvent():
            return TriggerSource.GITHUB, event.repository.lower()
        case ObjectCreated():
            return TriggerSource.S3, event.bucket
        case _:
            return TriggerSource.IMAGE, event.repository
