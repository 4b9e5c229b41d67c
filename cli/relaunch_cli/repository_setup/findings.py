"""What a repository and an account have for a training, and what is missing."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEFINITION_FILE = "relaunch.yaml"
PLAN_FILE = ".github/workflows/plan.yml"
EVENT_BRIDGE = "EventBridgeConfiguration"
"""What the notification configuration of a bucket has whose events go to EventBridge."""


@dataclass(frozen=True, slots=True)
class GitRepository:
    """A working tree; `github` is OWNER/NAME of its remote `origin`, empty if that is not at GitHub.

    `branch` is the one that is checked out, empty for none.
    """

    root: Path
    github: str
    branch: str = ""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file, its path in the repository, what it has now (None: it is not there), and what it is to have."""

    path: str
    before: str | None
    after: str

    @property
    def is_needed(self) -> bool:
        """Whether the file is not as it is to be."""
        return self.before != self.after

    @property
    def difference(self) -> str:
        """The difference as a unified diff, whole for a new file."""
        before = self.before or ""
        old = "/dev/null" if self.before is None else self.path
        lines = difflib.unified_diff(before.splitlines(), self.after.splitlines(), old, self.path, lineterm="")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class BucketEvents:
    """A bucket and its notification configuration."""

    bucket: str
    configuration: Mapping[str, Any]

    @property
    def is_on(self) -> bool:
        """Whether its events go to EventBridge."""
        return EVENT_BRIDGE in self.configuration

    @property
    def others(self) -> int:
        """How many other notifications it has."""
        return sum(len(value) for value in self.configuration.values() if isinstance(value, list))


@dataclass(frozen=True, slots=True)
class Webhook:
    """The webhook of a repository; `id` is None if there is none, `missing` are the events that it lacks.

    `obstacle` says why it cannot be made here, and what to do.
    """

    repository: str
    url: str
    missing: tuple[str, ...]
    id: int | None = None
    obstacle: str = ""

    @property
    def is_needed(self) -> bool:
        """Whether it is to be made or completed."""
        return bool(self.missing) and not self.obstacle


@dataclass(frozen=True)
class Setup:
    """What is to be made: files, a revision of the task definition, EventBridge for buckets, and the webhook.

    `definition` is the task definition as its file is to be, `revision` the number of the newest ACTIVE one, None if
    there is none. `webhook` is None if no event of GitHub starts jobs. `without_workflow` says why there is no
    workflow, empty if there is one. `other_branch` says that another branch is let in than the one that is checked
    out, and what to do; empty if there is nothing to say. `missing_lines` are those that install what the container
    mounts buckets by, if its Dockerfile has none.
    """

    repository: GitRepository
    files: Sequence[FileChange]
    definition: Mapping[str, Any]
    revision: int | None
    needs_revision: bool
    buckets: Sequence[BucketEvents]
    webhook: Webhook | None
    without_workflow: str
    other_branch: str = ""
    missing_lines: Sequence[str] = ()

    @property
    def changed_files(self) -> Sequence[FileChange]:
        """The files that are to be written."""
        return [each for each in self.files if each.is_needed]

    @property
    def buckets_to_switch_on(self) -> Sequence[BucketEvents]:
        """The buckets whose events do not go to EventBridge."""
        return [each for each in self.buckets if not each.is_on]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is to be made."""
        is_webhook_missing = self.webhook is not None and self.webhook.is_needed
        return not (self.changed_files or self.needs_revision or self.buckets_to_switch_on or is_webhook_missing)
