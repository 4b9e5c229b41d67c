"""Job definitions, and the origins that their triggers watch, by which events find them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from datetime import timedelta
from enum import StrEnum
from typing import assert_never

from relaunch.core.definitions.accelerator import AcceleratorRequirement, MeasuredOn, Precision, PurchasePolicy
from relaunch.core.definitions.concurrency import Concurrency
from relaunch.core.definitions.event_pattern import pattern_key
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.notice_routes import NoticeRoute
from relaunch.core.definitions.targets import Target
from relaunch.core.market.policies import DEFAULT_PADDING, DEFAULT_POLICY, PolicyName
from relaunch.core.records import dataclass

GITHUB_REPOSITORY_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}"
"""OWNER/NAME of a repository at GitHub, which gives no repository the name of a folder (`.`, `..`).

Owners with `_` are managed users of an enterprise.
"""


class TriggerSource(StrEnum):
    """The source of a trigger's events."""

    GITHUB = "github"
    S3 = "s3"
    IMAGE = "image"
    EVENTBRIDGE = "eventbridge"
    SCHEDULE = "schedule"
    SNS = "sns"


@dataclass(frozen=True, slots=True)
class ImageWait:
    """Wait until the image of a pushed commit is in ECR, for at most `timeout`.

    `tag` may contain `{sha}` (the full commit ID) and `{short_sha}` (its first seven characters).
    """

    repository: str
    tag: str = "{sha}"
    timeout: timedelta = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class GithubTrigger:
    """A GitHub event of one repository.

    `branches`, `tags` and `paths` are GitHub Actions filter patterns (`*`, `**`, `?`, leading `!`) for push events;
    `branches` applies to workflow_run too. `workflows` are names, paths or file names of workflows (workflow_run), or
    the latter two alone (workflow_dispatch), `types` are event types of repository_dispatch, `packages` are package
    names. `run_events` are events whose workflow runs start jobs besides those of core.triggers.events.RUN_EVENTS.
    """

    repository: str
    event: str
    branches: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    workflows: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    run_events: tuple[str, ...] = ()
    wait_for_image: ImageWait | None = None


@dataclass(frozen=True, slots=True)
class S3Trigger:
    """An object created in `bucket` whose decoded key has the prefix and the suffix."""

    bucket: str
    prefix: str = ""
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class ImageTrigger:
    """An image pushed to an ECR repository; `tag` is a pattern in which `{sha}` matches a 40-character commit ID."""

    repository: str
    tag: str = "*"


@dataclass(frozen=True, slots=True)
class EventBridgeTrigger:
    """An event of the account's default event bus that EventBridge finds by a pattern.

    `pattern` is in JSON (core.definitions.event_pattern). `inputs` has the names of declared inputs, each with the path
    of its value in the event, as `detail.epochs`.
    """

    pattern: str
    inputs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ScheduleTrigger:
    """The times of a schedule of EventBridge Scheduler, in an IANA time zone.

    A time that could not be sent or handled in time is skipped, or with `catches_up` starts its job late
    (core.triggers.schedules).
    """

    expression: str
    time_zone: str = "UTC"
    catches_up: bool = False


@dataclass(frozen=True, slots=True)
class SnsTrigger:
    """A message on an SNS topic, whose ARN is `topic`.

    `inputs` has the names of declared inputs, each with the path of its value (core.definitions.sns_topic).
    """

    topic: str
    inputs: tuple[tuple[str, str], ...] = ()


Trigger = GithubTrigger | S3Trigger | ImageTrigger | EventBridgeTrigger | ScheduleTrigger | SnsTrigger


@dataclass(frozen=True, slots=True)
class InputRule:
    """A declared input: the pattern that its whole value must match, and its default (None: the input is required)."""

    pattern: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class RetryRules:
    """When a program that failed is started again, besides `max_failures`, which limits all its failures.

    `max_early_failures` limits those in a row within ten minutes of the start, before the first checkpoint
    (core.lifecycle.restart_policy). `on_exit_codes` are not limited by it, `never_on_exit_codes` end the job, and by
    `machine_exit_codes` the program says that its machine is at fault: that is no failure. After
    `max_attempts_without_progress` in a row, whatever ended them, the job ends (core.lifecycle.restart_policy).
    """

    max_early_failures: int = 1
    on_exit_codes: tuple[int, ...] = ()
    never_on_exit_codes: tuple[int, ...] = ()
    machine_exit_codes: tuple[int, ...] = ()
    max_attempts_without_progress: int = 3


@dataclass(frozen=True, slots=True)
class JobDefinition:
    """A validated job definition.

    `container` is the container that gets the overrides and whose exit code is the job's; None if the task has only
    one. `max_price_usd_per_hour` is per instance; if None, only the stack's limit applies. `checkpoint_uri` ends with a
    slash; if None, the training writes no checkpoints and each attempt starts from the beginning.

    `estimated_duration` was measured `estimated_on` these accelerators; if None, it is taken to be the same on all.
    `precision` is what the program computes in, None if nobody said it: not all models have tensor cores for all.

    With a `deadline`, or with `patience` instead, `policy` chooses when a job is on spot, on-demand or waits.
    `total_steps` is the step at which the training has finished, as its checkpoints count them. `patience` is how long
    a job may wait for spot in all. `padding` is the share of the work that the estimate may lack.

    On ECS a task runs the family `task_definition`, which is empty in a definition for Kubernetes alone; on Kubernetes
    it runs the workload `kubernetes`. A definition may have both, and `target` chooses.

    `callers` are the callers of job_api that may start its jobs (core.definitions.callers); all of them if empty.
    `notices` are receivers that are sent notices of its jobs, besides those that get notices of all definitions.
    Without `concurrency` its jobs run side by side. `links` are templates of URLs by name (core.definitions.links).
    With `nodes` above 1 a job runs as many tasks at once, each with a machine of our own for itself, or on a cluster as
    many pods; `accelerator`, the pod of `kubernetes`, and `max_price_usd_per_hour` are those of one of them.
    """

    name: str
    task_definition: str
    accelerator: AcceleratorRequirement
    container: str | None = None
    triggers: tuple[Trigger, ...] = ()
    inputs: Mapping[str, InputRule] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    disk_gib: int | None = None
    purchase: PurchasePolicy = PurchasePolicy.SPOT_THEN_ON_DEMAND
    checkpoint_uri: str | None = None
    estimated_duration: timedelta | None = None
    estimated_on: MeasuredOn | None = None
    precision: Precision | None = None
    total_steps: int | None = None
    deadline: timedelta | None = None
    patience: timedelta | None = None
    policy: PolicyName = DEFAULT_POLICY
    padding: float = DEFAULT_PADDING
    max_runtime: timedelta = timedelta(hours=48)
    max_running_jobs: int = 5
    max_waiting_jobs: int = 1000
    max_failures: int = 2
    retry: RetryRules = RetryRules()
    max_price_usd_per_hour: float | None = None
    target: Target = Target.ECS
    kubernetes: KubernetesWorkload | None = None
    callers: tuple[str, ...] = ()
    notices: tuple[NoticeRoute, ...] = ()
    concurrency: Concurrency | None = None
    links: Mapping[str, str] = field(default_factory=dict)
    nodes: int = 1


def trigger_origins(definition: JobDefinition) -> frozenset[tuple[TriggerSource, str]]:
    """Return the (source, name) of every trigger, as `trigger_keys` derives them from events."""
    return frozenset(_origin(trigger) for trigger in definition.triggers)


def image_repositories(definition: JobDefinition) -> frozenset[str]:
    """Return the repositories whose images triggers pin: jobs may run newer images than the current ones."""
    return frozenset(repository for repository, _ in watched_images(definition))


def watched_images(definition: JobDefinition) -> Iterator[tuple[str, str]]:
    """Yield the repository of each image that a trigger watches or waits for, with the pattern of its tag."""
    for trigger in definition.triggers:
        image = trigger.wait_for_image if isinstance(trigger, GithubTrigger) else trigger
        if isinstance(image, ImageWait | ImageTrigger):
            yield image.repository, image.tag


def schedule_key(trigger: ScheduleTrigger) -> str:
    """Return the key of a schedule, which its messages have; the schedule is named by it."""
    missed = "catch_up" if trigger.catches_up else "skip"
    return pattern_key(f"{trigger.expression} {trigger.time_zone} {missed}")


def _origin(trigger: Trigger) -> tuple[TriggerSource, str]:
    match trigger:
        case GithubTrigger():
            # Repository names are case-insensitive on GitHub.
            return TriggerSource.GITHUB, trigger.repository.lower()
        case S3Trigger():
            return TriggerSource.S3, trigger.bucket
        case ImageTrigger():
            return TriggerSource.IMAGE, trigger.repository
        case EventBridgeTrigger():
            return TriggerSource.EVENTBRIDGE, pattern_key(trigger.pattern)
        case ScheduleTrigger():
            return TriggerSource.SCHEDULE, schedule_key(trigger)
        case SnsTrigger():
            return TriggerSource.SNS, trigger.topic
        case _:
            assert_never(trigger)


@dataclass(frozen=True, slots=True)
class Overlap:
    """An S3 trigger of the definition `watcher` that matches checkpoints of the definition `writer`.

    `trigger_index` is the zero-based index among the triggers of `watcher`.
    """

    watcher: str
    trigger_index: int
    trigger: S3Trigger
    writer: str
    checkpoint_uri: str

    def __str__(self) -> str:
        """Describe the overlap."""
        watched = f"s3://{self.trigger.bucket}/{self.trigger.prefix}"
        checkpoints = "its own checkpoints" if self.watcher == self.writer else f"the checkpoints of `{self.writer}`"
        return (
            f"the trigger on {watched} overlaps {checkpoints} under {self.checkpoint_uri}: "
            "every checkpoint would start another job"
        )


def find_overlaps(definitions: Iterable[JobDefinition]) -> list[Overlap]:
    """Return every pair of an S3 trigger and a checkpoint prefix that have keys in common.

    The suffix of a trigger is ignored: a training may write objects of any name under its checkpoint prefix.
    """
    known = list(definitions)
    return [
        Overlap(watcher.name, index, trigger, writer.name, writer.checkpoint_uri)
        for watcher in known
        for index, trigger in enumerate(watcher.triggers)
        if isinstance(trigger, S3Trigger)
        for writer in known
        if writer.checkpoint_uri and _overlaps(trigger, writer.checkpoint_uri)
    ]


def _overlaps(trigger: S3Trigger, checkpoint_uri: str) -> bool:
    bucket, _, prefix = checkpoint_uri.removeprefix("s3://").partition("/")
    if bucket != trigger.bucket:
        return False
    return trigger.prefix.startswith(prefix) or prefix.startswith(trigger.prefix)
