"""The job definition: what a team wrote down about one kind of training."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from relaunch.core.definitions.accelerator import AcceleratorRequirement, PurchasePolicy


class TriggerSource(StrEnum):
    """Where the events of a trigger come from."""

    GITHUB = "github"
    S3 = "s3"
    IMAGE = "image"


@dataclass(frozen=True, slots=True)
class ImageWait:
    """A push waits until its commit's image is in ECR, at most for `timeout`.

    `tag` may contain `{sha}` (the full commit id) and `{short_sha}` (its first seven characters).
    """

    repository: str
    tag: str = "{sha}"
    timeout: timedelta = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class GithubTrigger:
    """A GitHub event of one repository.

    `branches`, `tags` and `paths` are GitHub Actions filter patterns (`*`, `**`, `?`, leading `!`) and concern pushes
    (`branches` also workflow_run); `workflows` names workflows of workflow_run and workflow_dispatch;
    `types` names repository_dispatch types; `packages` names packages.
    """

    repository: str
    event: str
    branches: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    workflows: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    wait_for_image: ImageWait | None = None


@dataclass(frozen=True, slots=True)
class S3Trigger:
    """An object created in `bucket` whose key has this prefix and suffix (decoded keys)."""

    bucket: str
    prefix: str = ""
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class ImageTrigger:
    """An image pushed to an ECR repository; `tag` is a pattern, `{sha}` in it matches a 40-character commit id."""

    repository: str
    tag: str = "*"


Trigger = GithubTrigger | S3Trigger | ImageTrigger


@dataclass(frozen=True, slots=True)
class InputRule:
    """One declared input: the pattern its whole value must match, and its default (None: required)."""

    pattern: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class JobDefinition:
    """One validated job definition; the caps have the defaults of the design.

    `container` is the container whose exit code counts and that gets the overrides; None: the task has only one.
    `max_price_usd_per_hour` is per machine; None: only the stack's cap applies.
    `checkpoint_uri` ends with a slash; None: the training keeps no checkpoint and starts over each time.
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
    deadline: timedelta | None = None
    max_runtime: timedelta = timedelta(hours=48)
    max_running_jobs: int = 5
    max_failures: int = 2
    max_price_usd_per_hour: float | None = None
    target: str = "ecs"
