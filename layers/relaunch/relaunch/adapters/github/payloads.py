"""Pydantic models of webhook payloads, with the used fields only.

Few fields are required, because GitHub adds fields, its Enterprise Server leaves fields out, and an event that cannot
be parsed is lost. Source: GitHub Docs, "Webhook events and payloads"; samples: events/github.*.json.
"""

from pydantic import BaseModel, ConfigDict, Field, JsonValue


class Payload(BaseModel):
    """Base of the models; IDs may be numbers or strings."""

    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True, defer_build=True)


class Repository(Payload):
    """A repository; `full_name` is `owner/name`."""

    full_name: str


class Sender(Payload):
    """The user who caused the event."""

    login: str = ""


class Commit(Payload):
    """A commit of a push; the lists of paths are None if unknown."""

    id: str | None = None
    message: str | None = None
    added: list[str] | None = None
    modified: list[str] | None = None
    removed: list[str] | None = None


class EventPayload(Payload):
    """Base of the payloads of events."""

    repository: Repository
    sender: Sender | None = None

    @property
    def sender_login(self) -> str:
        """Return the login of the sender, empty if there is none."""
        return self.sender.login if self.sender else ""


class PushedRepository(Repository):
    """The repository of a push; `pushed_at`, in seconds since 1970, is when it was last pushed to."""

    pushed_at: str | None = None


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


class WorkflowDispatchPayload(EventPayload):
    """workflow_dispatch, for GitHub Apps only; `workflow` is a path."""

    workflow: str
    ref: str
    inputs: dict[str, JsonValue] | None = None


class RepositoryDispatchPayload(EventPayload):
    """repository_dispatch, for GitHub Apps only; `action` is the `event_type` of the request."""

    action: str
    client_payload: dict[str, JsonValue] | None
    branch: str | None = None


class WorkflowRunBody(Payload):
    """A workflow run; `head_repository` differs from the event's repository for a fork, `event` caused the run."""

    id: str
    run_attempt: int = 1
    name: str | None = None
    path: str | None = None
    event: str | None = None
    head_branch: str | None = None
    head_sha: str | None = None
    conclusion: str | None = None
    head_repository: Repository | None = None


class WorkflowRunPayload(EventPayload):
    """workflow_run."""

    action: str
    workflow_run: WorkflowRunBody


class ReleaseBody(Payload):
    """A release; `target_commitish` is a branch or a commit, `published_at` the time of the latest publication."""

    id: str
    tag_name: str = ""
    target_commitish: str | None = None
    published_at: str | None = None


class ReleasePayload(EventPayload):
    """release."""

    action: str
    release: ReleaseBody


class ContainerTag(Payload):
    """The tag of a container image; its name is empty for an untagged image."""

    name: str | None = None
    digest: str | None = None


class ContainerMetadata(Payload):
    """Metadata of container packages."""

    tag: ContainerTag | None = None


class PackageVersion(Payload):
    """A package version; `version` of a container is its digest, `target_oid` is a commit."""

    id: str | None = None
    version: str | None = None
    target_oid: str | None = None
    package_url: str | None = None
    container_metadata: ContainerMetadata | None = None


class PackageBody(Payload):
    """A package."""

    id: str | None = None
    name: str = ""
    package_version: PackageVersion | None = None


class PackagePayload(Payload):
    """package, registry_package: a package of an organization has no repository."""

    action: str
    package: PackageBody
    repository: Repository | None = None
    sender: Sender | None = None


class Delivery(Payload):
    """The message that github_webhook sends to the intake queue; `event` and `delivery` are unsigned headers.

    `body_sha256` is the hash of the signed body, before it was reduced.
    """

    event: str
    delivery: str = ""
    body_sha256: str = Field(min_length=1)
    payload: dict[str, JsonValue]

    @property
    def body_identity(self) -> str:
        """Return what tells the body from others, for events whose content has no time."""
        return f"sha256:{self.body_sha256}"
