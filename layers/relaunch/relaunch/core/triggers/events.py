"""Trigger events, and the rules of GitHub Actions with which triggers match GitHub's.

`happened_at` is when the event was received or sent, to the second, None if its message has no time. It is not part of
comparisons.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import datetime
from typing import ClassVar, assert_never

from relaunch.core.definitions.definition import GithubTrigger, TriggerSource
from relaunch.core.definitions.filter_patterns import matches_filters
from relaunch.core.jobs.trigger_facts import ResumePoint
from relaunch.core.records import dataclass


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

    `paths` is None if the payload does not list every changed path (2,048 commits, a commit that changes 3,000 files, a
    new branch with commits, a forced push). A branch that is cut from an existing commit, or set back to one, has no
    commits, and starts what watches it, as it starts workflows at GitHub. `skip` are the words in the message of the
    newest commit for which GitHub starts no workflow, empty without any. `pushed_at` is when GitHub got it, to the
    second; None if the payload has no time.
    """

    name: ClassVar = "push"
    is_deleted: bool = False
    has_commits: bool = True
    skip: str = ""
    paths: tuple[str, ...] | None = ()
    pushed_at: datetime | None = field(default=None, compare=False)


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
    """A workflow run was requested, started or completed; `run_event` is the event that caused it, empty if unknown.

    `workflow` is the name of the workflow, not the title of the run, and `path` its file.
    """

    name: ClassVar = "workflow_run"
    action: str
    workflow: str = ""
    path: str = ""
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
    """A package was published or updated; `tag` is the tag of a container, else the version of the package.

    GitHub sends one event for each manifest that is pushed, and of an image with attestations or for several
    architectures only the index has a tag (github/docs issue 22091).
    """

    name: ClassVar = "package"
    action: str
    package: str
    tag: str = ""
    is_container: bool = False


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
    """An image was pushed to an ECR repository; `media_type` is that of its configuration, empty if unknown."""

    identity: str
    repository: str
    tag: str
    digest: str
    media_type: str = ""
    happened_at: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class BusEvent:
    """An event of the event bus that the pattern of a trigger selected; `key` is the pattern's.

    `content` is the whole event. `job_id` is the job that it is about, empty if none, and `depth` says how many jobs
    were started one by the other before it (core.triggers.chains).
    """

    identity: str
    key: str
    event_id: str
    source: str
    detail_type: str
    content: Mapping[str, object] = field(default_factory=dict)
    job_id: str = ""
    depth: int = 0
    happened_at: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ScheduledTime:
    """A time of a schedule; `key` is the schedule's.

    The same time is the same event, whichever schedule has it. `handled_at` is when it is handled, None until then.
    """

    identity: str
    key: str
    scheduled_at: datetime
    happened_at: datetime | None = field(default=None, compare=False)
    handled_at: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TopicMessage:
    """A message of an SNS topic, whose ARN is `topic`; what is delivered twice is the same event.

    `content` has the parts of core.definitions.sns_topic, as far as the message has them.
    """

    identity: str
    topic: str
    message_id: str
    content: Mapping[str, object] = field(default_factory=dict)
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
    """A request for a job by the name of its definition; `caller` is who sent it (core.jobs.job).

    With `image_tag` the job runs that image of a repository whose images triggers of the definition watch; with
    `retried` it goes on where another job ended. `through_api`: it came to job_api, whose callers are limited; who
    submits by the command may write the table, and with that any job.
    """

    identity: str
    definition: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    caller: str = ""
    requested_at: datetime | None = None
    image_tag: str = ""
    retried: RetriedJob | None = None
    through_api: bool = False


WatchedEvent = GithubEvent | ObjectCreated | ImagePushed | BusEvent | ScheduledTime | TopicMessage
"""An event of what triggers watch."""

TriggerEvent = WatchedEvent | DirectRequest


def happened_at(event: TriggerEvent) -> datetime | None:
    """Return when an event happened, None if unknown."""
    return event.requested_at if isinstance(event, DirectRequest) else event.happened_at


def ordered_at(event: TriggerEvent) -> datetime | None:
    """Return the time that orders an event among others, None for that of its acceptance.

    A push that is delivered late was pushed before; a schedule's time was missed for a while. Of GitHub's other events
    it is known when they were received, and a redelivery is received again. Who asks for a job asks for it now.
    """
    match event:
        case Push():
            return event.pushed_at or event.happened_at
        case ScheduledTime():
            return event.scheduled_at
        case DirectRequest():
            return None
        case _:
            return event.happened_at


def trigger_keys(event: WatchedEvent) -> tuple[TriggerSource, str]:
    """Return the (source, name) under which the definitions that watch the origin of the event are registered."""
    if isinstance(event, GithubEvent):
        return TriggerSource.GITHUB, event.repository.lower()
    match event:
        case ObjectCreated():
            return TriggerSource.S3, event.bucket
        case ImagePushed():
            return TriggerSource.IMAGE, event.repository
        case BusEvent():
            return TriggerSource.EVENTBRIDGE, event.key
        case ScheduledTime():
            return TriggerSource.SCHEDULE, event.key
        case TopicMessage():
            return TriggerSource.SNS, event.topic
        case _:
            assert_never(event)


RUN_EVENTS = ("push", "schedule", "workflow_dispatch", "release")
"""The events whose workflow runs start jobs: those that need write access to the repository.

Runs that anybody can cause (issue_comment, watch, fork, pull_request_target) have their head in the repository itself
("Events that trigger workflows", GitHub Docs), as has a workflow_run that follows one of them.
"""


def list_github_obstacles(trigger: GithubTrigger, event: GithubEvent) -> Iterator[str]:
    """Yield every reason why an event of the repository and kind of the trigger does not match."""
    match event:
        case Push():
            yield from _list_push_obstacles(trigger, event)
        case WorkflowRun():
            yield from _list_workflow_run_obstacles(trigger, event)
        case WorkflowDispatch():
            # Its payload has the file alone.
            yield from _list_workflow_obstacles(trigger, event.workflow, event.workflow)
        case RepositoryDispatch():
            yield from _list_name_obstacles("type", trigger.types, event.event_type)
        case Release():
            yield from _list_action_obstacles(event, "published")
        case _:
            yield from _list_package_obstacles(trigger, event)
    if trigger.wait_for_image is not None and "sha}" in trigger.wait_for_image.tag and not event.sha:
        yield f"the job would wait for the image of a commit, and this {event.name} event names none"


def _list_push_obstacles(trigger: GithubTrigger, event: Push) -> Iterator[str]:
    if event.is_deleted:
        yield f"{event.ref} was deleted"
    if event.skip:
        yield f"its newest commit says {event.skip}, for which GitHub starts no workflow either"
    if event.ref.startswith("refs/tags/"):
        yield from _list_tag_obstacles(trigger, event.ref.removeprefix("refs/tags/"))
    elif event.ref.startswith("refs/heads/"):
        yield from _list_branch_obstacles(trigger, event, event.ref.removeprefix("refs/heads/"))
    else:
        yield f"{event.ref} is neither a branch nor a tag"


def _list_tag_obstacles(trigger: GithubTrigger, tag: str) -> Iterator[str]:
    """Yield the reasons for a tag: it must match `tags`; `paths` is ignored because tags have no commits."""
    if not trigger.tags:
        yield f"{tag} is a tag, and the trigger names no tags"
    elif not matches_filters(tag, trigger.tags):
        yield f"the tag {tag} does not match {' or '.join(trigger.tags)}"


def _list_branch_obstacles(trigger: GithubTrigger, event: Push, branch: str) -> Iterator[str]:
    if trigger.tags and not trigger.branches:
        yield f"only tags are watched, and {branch} is a branch"
    if trigger.branches and not matches_filters(branch, trigger.branches):
        yield f"the branch {branch} does not match {' or '.join(trigger.branches)}"
    if (
        trigger.paths
        and event.paths is not None
        and not any(matches_filters(path, trigger.paths) for path in event.paths)
    ):
        why = "" if event.has_commits else f": the push to {branch} brought no commits"
        yield f"no changed path matches {' or '.join(trigger.paths)}{why}"


def _list_workflow_run_obstacles(trigger: GithubTrigger, event: WorkflowRun) -> Iterator[str]:
    if event.is_fork:
        yield f"the {event.name} comes from a fork of {event.repository}"
    if event.run_event not in (*RUN_EVENTS, *trigger.run_events):
        yield (
            f"the workflow ran because of {event.run_event or 'an unknown event'}, and only runs because of "
            f"{', '.join((*RUN_EVENTS, *trigger.run_events))} start a job"
        )
    yield from _list_action_obstacles(event, "completed")
    if event.conclusion != "success":
        yield f"the workflow run ended with {event.conclusion or 'no conclusion'}"
    branch = event.ref.removeprefix("refs/heads/")
    if trigger.branches and not matches_filters(branch, trigger.branches):
        yield f"the branch {branch} does not match {' or '.join(trigger.branches)}"
    if not trigger.workflows:
        # Definitions of the time before `workflows` was required.
        yield "the trigger names no workflows: add `workflows` to it and apply the definition again"
    yield from _list_workflow_obstacles(trigger, event.workflow, event.path)


def _list_package_obstacles(trigger: GithubTrigger, event: Package) -> Iterator[str]:
    yield from _list_action_obstacles(event, "published")
    yield from _list_name_obstacles("package", trigger.packages, event.package)
    if event.is_container and not event.tag:
        yield f"an image without a tag was published as {event.package}: a part of one, or what is attested of it"
    if event.is_container and is_referrer_tag(event.tag):
        yield f"{event.tag} is what belongs to another image, as its signature"


def _list_action_obstacles(event: WorkflowRun | Release | Package, action: str) -> Iterator[str]:
    if event.action != action:
        yield f"the {event.name} was {event.action or 'changed'}, and only {action} starts a job"


def _list_workflow_obstacles(trigger: GithubTrigger, workflow: str, path: str) -> Iterator[str]:
    """Yield the reasons for a workflow, which the trigger may name by its name, its path or its file name."""
    if trigger.workflows and {workflow, path, path.rpartition("/")[2]}.isdisjoint(trigger.workflows):
        shown = workflow if path in {"", workflow} else f"{workflow} ({path})"
        yield f"the workflow {shown} is not {' or '.join(trigger.workflows)}"


def _list_name_obstacles(kind: str, names: tuple[str, ...], name: str) -> Iterator[str]:
    if names and name not in names:
        yield f"the {kind} {name} is not {' or '.join(names)}"


_IMAGE_CONFIGURATIONS = frozenset(
    ("application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json")
)
_DIGITS = frozenset("0123456789abcdef")


def is_referrer_tag(tag: str) -> bool:
    """Return whether a tag is that of what belongs to another image, as its signature, which cannot be run.

    Registries keep a signature, an attestation or a list of materials beside the image, under a tag made of its digest:
    `sha256-<digest>.sig`, `.att` and `.sbom` (sigstore/cosign, specs/SIGNATURE_SPEC.md), without an ending where a
    client lists them for a registry (OCI Distribution Specification, "Referrers Tag Schema"; Notation, actions/attest).
    The configuration of a signature has the media type of an image's, so that nothing else in an event tells
    (sigstore/cosign issue 913, prowler-cloud/prowler pull request 4507).
    """
    digest, dot, ending = tag.removeprefix("sha256-").partition(".")
    return tag.startswith("sha256-") and len(digest) == 64 and _DIGITS.issuperset(digest) and bool(ending or not dot)


def is_image(media_type: str) -> bool:
    """Return whether something with a configuration of this media type may be an image that can be run.

    It is empty for the index of an image, and where ECR does not say it. Others are those of a build cache
    (`application/vnd.buildkit.cacheconfig.v0`), a chart or an artifact.
    """
    return not media_type or media_type in _IMAGE_CONFIGURATIONS
