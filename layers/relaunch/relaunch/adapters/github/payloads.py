"""Records of webhook payloads, with the used fields only.

Few fields are required, because GitHub adds fields, its Enterprise Server leaves fields out, and an event that cannot
be parsed is lost. Source: GitHub Docs, "Webhook events and payloads"; samples: events/github.*.json.
"""

from dataclasses import field

from relaunch.adapters.received_type import ReceivedType
from relaunch.core.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A repository; `full_name` is `owner/name`."""

    full_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """The user who caused the event."""

    login: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit of a push; the lists of paths are None if unknown."""

    id: str | None = None
    message: str | None = None
    added: list[str] | None = None
    modified: list[str] | None = None
    removed: list[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPayload:
    """Base of the payloads of events."""

    repository: Repository
    sender: Sender | None = None

    @property
    def sender_login(self) -> str:
        """Return the login of the sender, empty if there is none."""
        return self.sender.login if self.sender else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushedRepository(Repository):
    """The repository of a push; `pushed_at`, in seconds since 1970, is when it was last pushed to."""

    pushed_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PushPayload(EventPayload):
    """push: `before` and `after` are commit IDs, forty zeros for none; `commits` has at most 2,048."""

    repository: PushedRepository
    ref: str
    before: str
    after: str
    deleted: bool = False
    created: bool = False
    forced: bool = False
    commits: list[Commit] | None = None
    head_commit: Commit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowDispatchPayload(EventPayload):
    """workflow_dispatch, for GitHub Apps only; `workflow` is a path."""

    workflow: str
    ref: str
    inputs: dict[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryDispatchPayload(EventPayload):
    """repository_dispatch, for GitHub Apps only; `action` is the `event_type` of the request."""

    action: str
    client_payload: dict[str, object] | None
    branch: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowBody:
    """A workflow: the `name` in its file, or its path without one, and the `path` of its file."""

    name: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRunBody:
    """A workflow run; `head_repository` differs from the event's repository for a fork, `event` caused the run.

    `name` is the title of the run where its workflow has `run-name` (actions/runner issue 4141), and may be empty.
    """

    id: str
    run_attempt: int = 1
    name: str | None = None
    path: str | None = None
    event: str | None = None
    head_branch: str | None = None
    head_sha: str | None = None
    conclusion: str | None = None
    head_repository: Repository | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRunPayload(EventPayload):
    """workflow_run; `workflow` is null if it is gone ("Webhook events and payloads", GitHub Docs)."""

    action: str
    workflow_run: WorkflowRunBody
    workflow: WorkflowBody | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseBody:
    """A release; `target_commitish` is a branch or a commit, `published_at` the time of the latest publication."""

    id: str
    tag_name: str = ""
    target_commitish: str | None = None
    published_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePayload(EventPayload):
    """release."""

    action: str
    release: ReleaseBody


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerTag:
    """The tag of a container image; its name is empty for an untagged image."""

    name: str | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerMetadata:
    """Metadata of container packages."""

    tag: ContainerTag | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageVersion:
    """A package version; `version` of a container is its digest, `target_oid` is a commit."""

    id: str | None = None
    version: str | None = None
    target_oid: str | None = None
    package_url: str | None = None
    container_metadata: ContainerMetadata | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageBody:
    """A package."""

    id: str | None = None
    name: str = ""
    package_version: PackageVersion | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagePayload:
    """package, registry_package: a package of an organization has no repository."""

    action: str
    package: PackageBody
    repository: Repository | None = None
    sender: Sender | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The message that github_webhook sends to the intake queue; `event` and `delivery` are unsigned headers.

    `body_sha256` is the hash of the signed body, before it was reduced.
    """

    event: str
    delivery: str = ""
    body_sha256: str = field(metadata={"min_length": 1})
    payload: dict[str, object]

    @property
    def body_identity(self) -> str:
        """Return what tells the body from others, for events whose content has no time."""
        return f"sha256:{self.body_sha256}"


# IDs may be numbers or texts.
DELIVERY = ReceivedType(Delivery, takes_numbers=True)
PUSH = ReceivedType(PushPayload, takes_numbers=True)
WORKFLOW_DISPATCH = ReceivedType(WorkflowDispatchPayload, takes_numbers=True)
REPOSITORY_DISPATCH = ReceivedType(RepositoryDispatchPayload, takes_numbers=True)
WORKFLOW_RUN = ReceivedType(WorkflowRunPayload, takes_numbers=True)
RELEASE = ReceivedType(ReleasePayload, takes_numbers=True)
PACKAGE = ReceivedType(PackagePayload, takes_numbers=True)
