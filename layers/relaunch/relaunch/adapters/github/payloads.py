"""Models of what GitHub delivers: only what we decide on; everything else is tolerated.

GitHub adds fields, and leaves fields out on its Enterprise Server; an event that cannot be read is an event that is
lost. Source: GitHub Docs, "Webhook events and payloads"; samples: events/github.*.json.
"""

from pydantic import BaseModel, ConfigDict, JsonValue


class Payload(BaseModel):
    """Part of a payload; numbers may stand for text (ids)."""

    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)


class Repository(Payload):
    """A repository; `full_name` is `owner/name`."""

    full_name: str


class Sender(Payload):
    """Who caused the event."""

    login: str = ""


class Commit(Payload):
    """A commit of a push; lists that are not there mean that the payload cannot tell."""

    id: str | None = None
    added: list[str] | None = None
    modified: list[str] | None = None
    removed: list[str] | None = None


class EventPayload(Payload):
    """What the payloads of all events have."""

    repository: Repository
    sender: Sender | None = None

    @property
    def sender_login(self) -> str:
        """Return the login of who caused the event, empty when nobody is named."""
        return self.sender.login if self.sender else ""


class PushPayload(EventPayload):
    """push: `before` and `after` are commit ids, forty zeros for none; `commits` has at most 2,048."""

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
    """repository_dispatch, for GitHub Apps only; `action` is what the sender called event type."""

    action: str
    client_payload: dict[str, JsonValue] | None
    branch: str | None = None


class WorkflowRunBody(Payload):
    """A workflow run; `head_repository` is another than the event's for a fork."""

    id: str
    run_attempt: int = 1
    name: str | None = None
    path: str | None = None
    head_branch: str | None = None
    head_sha: str | None = None
    conclusion: str | None = None
    head_repository: Repository | None = None


class WorkflowRunPayload(EventPayload):
    """workflow_run."""

    action: str
    workflow_run: WorkflowRunBody


class ReleaseBody(Payload):
    """A release; `target_commitish` is a branch or a commit."""

    id: str
    tag_name: str = ""
    target_commitish: str | None = None


class ReleasePayload(EventPayload):
    """release."""

    action: str
    release: ReleaseBody


class ContainerTag(Payload):
    """The tag of a container image; empty for an image without one."""

    name: str | None = None
    digest: str | None = None


class ContainerMetadata(Payload):
    """What only container packages have."""

    tag: ContainerTag | None = None


class PackageVersion(Payload):
    """A version of a package; a container's `version` is its digest, `target_oid` a commit."""

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
    """A package of an organisation has no repository."""

    action: str
    package: PackageBody
    repository: Repository | None = None
    sender: Sender | None = None


class Delivery(Payload):
    """What github_webhook puts on the intake queue beside the payload; the headers in it are not signed."""

    event: str
    delivery: str = ""
    body_sha256: str = ""
    payload: dict[str, JsonValue]

    @property
    def own_identity(self) -> str:
        """Return what tells this delivery from every other one, for events whose content does not."""
        return self.delivery or f"sha256:{self.body_sha256}"
