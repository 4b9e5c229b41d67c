"""Pydantic models of triggers: one per source and GitHub event, with its filters."""

from datetime import timedelta
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema, field_validator, model_validator

from relaunch.adapters.definition_file.topic_values import MessagePath, TopicArn
from relaunch.adapters.definition_file.values import (
    AwaitedTag,
    Bucket,
    Duration,
    EcrRepository,
    EventPath,
    FilterPattern,
    GithubRepository,
    ImageTag,
    InputName,
    ObjectKeyPart,
    TimeZone,
    WorkflowEvent,
)
from relaunch.core.definitions.definition import (
    EventBridgeTrigger,
    GithubTrigger,
    ImageTrigger,
    ImageWait,
    S3Trigger,
    ScheduleTrigger,
    SnsTrigger,
    Trigger,
)
from relaunch.core.definitions.event_pattern import find_pattern_problem, write_pattern
from relaunch.core.definitions.schedule_expression import find_schedule_problem


class StrictModel(BaseModel):
    """A model that forbids unknown keys and implicit type conversions."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


class Choice(NamedTuple):
    """Mutually exclusive keys, and the error message for several of them."""

    keys: frozenset[str]
    message: str


TRIGGER_CHOICE = Choice(
    frozenset({"github", "image", "s3", "eventbridge", "schedule", "sns"}),
    "a trigger has exactly one of `github`, `image`, `s3`, `eventbridge`, `schedule` and `sns`: write each as an item "
    "of its own",
)


class WaitForImageModel(StrictModel):
    """Wait until the pushed commit's image is in ECR."""

    repository: EcrRepository
    """Name of the ECR repository the commit's image is pushed to."""
    tag: AwaitedTag = "{sha}"
    """The image's tag: `{sha}` is the full commit id, `{short_sha}` its first seven characters."""
    timeout: Duration = timedelta(minutes=30)
    """How long to wait before the job fails."""

    @field_validator("tag")
    @classmethod
    def check_names_the_commit(cls, tag: str) -> str:
        """Reject a tag without a commit: an older image may already have it, and the wait would end at once."""
        if "{" not in tag:
            raise ValueError(
                f"`{tag}` names no commit: an older image has it already; use `{{sha}}` or `{{short_sha}}`"
            )
        return tag

    def to_core(self) -> ImageWait:
        """Return the core type."""
        return ImageWait(self.repository, self.tag, self.timeout)


Patterns = Annotated[list[FilterPattern], Field(min_length=1)]


def check_patterns(patterns: list[str]) -> list[str]:
    """Reject a list of exclusions only, as GitHub does."""
    if all(pattern.startswith("!") for pattern in patterns):
        raise ValueError("every pattern excludes: add one that includes, for example `**`")
    return patterns


class GithubModel(StrictModel):
    """Base of the GitHub triggers."""

    repository: GithubRepository
    """The GitHub repository, `owner/name`."""

    def to_core(self) -> GithubTrigger:
        """Return the core type; filters that the event does not have are empty."""
        wait = getattr(self, "wait_for_image", None)
        names = ("branches", "tags", "paths", "workflows", "types", "packages", "run_events")
        filters = {name: tuple(getattr(self, name, ())) for name in names}
        return GithubTrigger(
            repository=self.repository,
            event=getattr(self, "event", ""),
            wait_for_image=wait.to_core() if wait else None,
            **filters,
        )


class PushModel(GithubModel):
    """Commits or tags are pushed."""

    event: Literal["push"]
    """The GitHub event."""
    branches: Patterns = []
    """Branches, as GitHub filter patterns (`main`, `release/**`, `!release/old`)."""
    tags: Patterns = []
    """Tags, as GitHub filter patterns."""
    paths: Patterns = []
    """Changed files, as GitHub filter patterns; one match is enough."""
    wait_for_image: WaitForImageModel | None = None
    """Wait until the pushed commit's image is in ECR."""

    _check_patterns = field_validator("branches", "tags", "paths")(check_patterns)


class WorkflowDispatchModel(GithubModel):
    """Somebody starts a workflow by hand (delivered to GitHub Apps only)."""

    event: Literal["workflow_dispatch"]
    """The GitHub event."""
    workflows: Patterns = []
    """Workflow files (`train.yml`, or with their folders), not names, which GitHub does not send; all when left out."""


class RepositoryDispatchModel(GithubModel):
    """A repository_dispatch event (delivered to GitHub Apps only)."""

    event: Literal["repository_dispatch"]
    """The GitHub event."""
    types: Patterns = []
    """Values of `event_type`; all when left out."""


class WorkflowRunModel(GithubModel):
    """A workflow run ended with success."""

    event: Literal["workflow_run"]
    """The GitHub event."""
    workflows: Patterns
    """Workflow names or files (`Build image`, `image.yml`)."""
    branches: Patterns = []
    """Branches the workflow ran for, as GitHub filter patterns."""
    run_events: Annotated[list[WorkflowEvent], Field(min_length=1)] = []
    """Events whose runs start a job besides push, schedule, workflow_dispatch and release; strangers cause many."""

    _check_patterns = field_validator("branches")(check_patterns)


class ReleaseModel(GithubModel):
    """A release is published."""

    event: Literal["release"]
    """The GitHub event."""


class PackageModel(GithubModel):
    """A package is published."""

    event: Literal["package"]
    """The GitHub event."""
    packages: Patterns = []
    """Package names; all when left out."""


GithubEventModel = Annotated[
    PushModel | WorkflowDispatchModel | RepositoryDispatchModel | WorkflowRunModel | ReleaseModel | PackageModel,
    Field(discriminator="event"),
]
GITHUB_EVENTS: dict[str, type[GithubModel]] = {
    "push": PushModel,
    "workflow_dispatch": WorkflowDispatchModel,
    "repository_dispatch": RepositoryDispatchModel,
    "workflow_run": WorkflowRunModel,
    "release": ReleaseModel,
    "package": PackageModel,
}


class ImageModel(StrictModel):
    """An image is pushed to an ECR repository."""

    repository: EcrRepository
    """Name of the ECR repository."""
    tag: ImageTag = "*"
    """Tag pattern; `{sha}` matches a 40-character commit id, `*` every tag but those of signatures and the like."""

    def to_core(self) -> ImageTrigger:
        """Return the core type."""
        return ImageTrigger(self.repository, self.tag)


class S3Model(StrictModel):
    """An object is created in an S3 bucket."""

    bucket: Bucket
    """Name of the bucket; it must send its events to EventBridge."""
    prefix: ObjectKeyPart = ""
    """How the key begins, literally."""
    suffix: ObjectKeyPart = ""
    """How the key ends, literally."""

    def to_core(self) -> S3Trigger:
        """Return the core type."""
        return S3Trigger(self.bucket, self.prefix, self.suffix)


_SOURCES = {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}}
EventPattern = Annotated[
    dict[str, JsonValue],
    WithJsonSchema({"type": "object", "required": ["source"], "properties": {"source": _SOURCES}}),
]


class EventBridgeModel(StrictModel):
    """An event of the account's default event bus that a pattern selects."""

    pattern: EventPattern
    """The event pattern, as EventBridge has it; its `source` is a list of names."""
    inputs: dict[InputName, EventPath] = Field(default_factory=dict)
    """Values of the event that become declared inputs: `epochs: detail.epochs`."""

    @field_validator("pattern")
    @classmethod
    def check_pattern(cls, pattern: EventPattern) -> EventPattern:
        """Reject a pattern that no event could ever have, or that every job would bring about."""
        if problem := find_pattern_problem(pattern):
            raise ValueError(problem)
        return pattern

    def to_core(self) -> EventBridgeTrigger:
        """Return the core type."""
        return EventBridgeTrigger(write_pattern(self.pattern), tuple(self.inputs.items()))


class ScheduleModel(StrictModel):
    """Times of a schedule of EventBridge Scheduler."""

    expression: Annotated[str, Field(min_length=1)]
    """`cron(minutes hours day-of-month month day-of-week year)` or `rate(1 hour)`, as Scheduler has them."""
    time_zone: TimeZone = "UTC"
    """The IANA time zone in which cron is read."""
    missed: Literal["skip", "catch_up"] = "skip"
    """Whether a time that is more than an hour late starts no job, or its job all the same."""

    @field_validator("expression")
    @classmethod
    def check_expression(cls, expression: str) -> str:
        """Reject an expression that Scheduler would refuse."""
        if problem := find_schedule_problem(expression):
            raise ValueError(problem)
        return expression

    def to_core(self) -> ScheduleTrigger:
        """Return the core type."""
        return ScheduleTrigger(self.expression, self.time_zone, self.missed == "catch_up")


class SnsModel(StrictModel):
    """A message on an SNS topic."""

    topic: TopicArn
    """ARN of the topic, one of the stack's parameter SnsTopicArns."""
    inputs: dict[InputName, MessagePath] = Field(default_factory=dict)
    """Values of the message that become declared inputs: `epochs: message.epochs`."""

    def to_core(self) -> SnsTrigger:
        """Return the core type."""
        return SnsTrigger(self.topic, tuple(self.inputs.items()))


Source = GithubModel | ImageModel | S3Model | EventBridgeModel | ScheduleModel | SnsModel


class TriggerModel(StrictModel, json_schema_extra={"minProperties": 1, "maxProperties": 1}):
    """One trigger: exactly one of `github`, `image`, `s3`, `eventbridge`, `schedule` and `sns`."""

    github: GithubEventModel | None = None
    """A GitHub event of one repository."""
    image: ImageModel | None = None
    """An image pushed to ECR."""
    s3: S3Model | None = None
    """An object created in S3."""
    eventbridge: EventBridgeModel | None = None
    """An event of the event bus."""
    schedule: ScheduleModel | None = None
    """Times of a schedule."""
    sns: SnsModel | None = None
    """A message on an SNS topic."""

    @model_validator(mode="after")
    def check_one_source(self) -> Self:
        """Reject a trigger with several sources or none."""
        # A key without a value is none: `- s3:`.
        if len(self.model_fields_set) != 1 or self._source is None:
            raise ValueError(TRIGGER_CHOICE.message)
        return self

    def to_core(self) -> Trigger:
        """Return the core type."""
        source = self._source
        if source is None:
            raise ValueError(TRIGGER_CHOICE.message)
        return source.to_core()

    @property
    def _source(self) -> Source | None:
        return self.github or self.image or self.s3 or self.eventbridge or self.schedule or self.sns
