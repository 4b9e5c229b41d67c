"""What a repository and the account have for a training, what is missing, and making it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relaunch_cli.errors import CommandError
from relaunch_cli.repository_setup.bucket_events import BucketEvents, read_bucket_events, switch_on
from relaunch_cli.repository_setup.definition_text import definition_text
from relaunch_cli.repository_setup.dockerfile_text import IGNORED, dockerfile_text, is_large
from relaunch_cli.repository_setup.file_changes import FileChange, read_text, write_files
from relaunch_cli.repository_setup.git_repository import GitRepository
from relaunch_cli.repository_setup.revisions import newest_revision, register
from relaunch_cli.repository_setup.task_definition import is_registered, task_definition
from relaunch_cli.repository_setup.training import Training
from relaunch_cli.repository_setup.training_stack import TrainingStack
from relaunch_cli.repository_setup.workflow_text import workflow_text

DEFINITION_FILE = "relaunch.yaml"
TASK_DEFINITION_FILE = "task-definition.json"
WORKFLOW_FILE = ".github/workflows/train.yml"
DOCKERFILE = "Dockerfile"
_IGNORE_FILE = ".dockerignore"


@dataclass(frozen=True)
class Setup:
    """What is to be made: files, a revision of the task definition, and EventBridge for buckets.

    `definition` is the task definition as its file is to be, `registered` the newest revision, None if there is none.
    `without_workflow` says why there is no workflow, empty if there is one.
    """

    repository: GitRepository
    files: Sequence[FileChange]
    definition: Mapping[str, Any]
    registered: Mapping[str, Any] | None
    buckets: Sequence[BucketEvents]
    without_workflow: str

    @property
    def changed_files(self) -> Sequence[FileChange]:
        """The files that are to be written."""
        return [each for each in self.files if each.is_needed]

    @property
    def needs_revision(self) -> bool:
        """Whether the newest revision is another one than the file's."""
        return self.registered is None or not is_registered(self.definition, self.registered)

    @property
    def buckets_to_switch_on(self) -> Sequence[BucketEvents]:
        """The buckets whose events do not go to EventBridge."""
        return [each for each in self.buckets if not each.is_on]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is to be made."""
        return not (self.changed_files or self.needs_revision or self.buckets_to_switch_on)


def has_files(root: Path) -> bool:
    """Return whether the repository has what a training is described by, so that nothing has to be asked."""
    return all(read_text(root, path) is not None for path in (DEFINITION_FILE, TASK_DEFINITION_FILE))


@dataclass(frozen=True)
class Wanted:
    """What whoever sets up wants.

    Without `training` the files that are there say what it is. Files that are there are replaced if `replaces`.
    `family` is that of the task definition, and `action` the GitHub Action as OWNER/NAME@COMMIT, empty if it is nowhere
    to be had.
    """

    training: Training | None
    family: str = ""
    replaces: bool = False
    action: str = ""


def survey(
    repository: GitRepository,
    wanted: Wanted,
    stack: TrainingStack,
    clients: Callable[[str], Any],
    watched_buckets: Callable[[str], Sequence[str]],
) -> Setup:
    """Look at the repository and the account; nothing is changed.

    `watched_buckets` returns the buckets whose uploads start jobs by the text of a definition file.

    Raises:
        CommandError: a file cannot be read, or has something else in it, or a bucket is not there.
        ClientError, BotoCoreError: a call failed.
    """
    root = repository.root
    paths = (DEFINITION_FILE, TASK_DEFINITION_FILE, WORKFLOW_FILE, DOCKERFILE, _IGNORE_FILE)
    before = {path: read_text(root, path) for path in paths}
    reason = _no_workflow(repository, stack)
    made = {} if wanted.training is None else _files(wanted.training, wanted, stack, before[DOCKERFILE])
    if reason:
        made.pop(WORKFLOW_FILE, None)
    kept = {path: text for path, text in before.items() if text is not None}
    # A Dockerfile is whoever wrote it: the task definition's command is what runs.
    replaced = (DEFINITION_FILE, TASK_DEFINITION_FILE, WORKFLOW_FILE) if wanted.replaces else ()
    after = {**made, **{path: text for path, text in kept.items() if path not in replaced}}
    definition = _read_task_definition(after[TASK_DEFINITION_FILE])
    return Setup(
        repository,
        [FileChange(path, before[path], after[path]) for path in paths if path in after],
        definition,
        newest_revision(str(definition["family"]), clients("ecs")),
        [read_bucket_events(each, clients("s3")) for each in watched_buckets(after[DEFINITION_FILE])],
        "" if WORKFLOW_FILE in after else reason,
    )


def make(setup: Setup, clients: Callable[[str], Any], tell: Callable[[str], None]) -> None:
    """Make what is missing, what is least to undo first; another run goes on where one failed.

    Raises:
        CommandError: something was changed meanwhile, or a file cannot be written.
        ClientError, BotoCoreError: a call failed.
    """
    write_files(setup.repository.root, setup.files)
    for file in setup.changed_files:
        tell(f"wrote {file.path}")
    for bucket in setup.buckets_to_switch_on:
        switch_on(bucket, clients("s3"))
        tell(f"uploads to {bucket.bucket} go to EventBridge")
    if setup.needs_revision:
        tell(f"registered {register(setup.definition, clients('ecs'))}")


def _files(training: Training, wanted: Wanted, stack: TrainingStack, dockerfile: str | None) -> dict[str, str]:
    family = wanted.family or f"{stack.family_prefix}{training.name}"
    text = dockerfile_text(training) if dockerfile is None else dockerfile
    made = {
        DEFINITION_FILE: definition_text(training, family, stack),
        TASK_DEFINITION_FILE: json.dumps(task_definition(training, family, stack), indent=2) + "\n",
        WORKFLOW_FILE: workflow_text(training, stack, wanted.action, is_large=is_large(text)),
    }
    return {**made, DOCKERFILE: text, _IGNORE_FILE: IGNORED} if dockerfile is None else made


def _no_workflow(repository: GitRepository, stack: TrainingStack) -> str:
    """Return why no workflow of this repository could push images, and what mends it; empty if one can."""
    github = repository.github
    if not github:
        return "the remote `origin` is not at GitHub: push images by another way, each with its commit as the tag"
    if not stack.submit_role_arn or stack.github_repository.lower() != github.lower():
        let_in = f"only {stack.github_repository} is let in" if stack.submit_role_arn else "no repository is let in"
        return f"{let_in} by the account: relaunch deploy --github {github}, then relaunch init again"
    return ""


def _read_task_definition(text: str) -> Mapping[str, Any]:
    try:
        definition = json.loads(text)
    except ValueError as error:
        raise CommandError(f"{TASK_DEFINITION_FILE} is no JSON: {error}") from error
    if not isinstance(definition, dict) or not isinstance(definition.get("family"), str):
        raise CommandError(f"{TASK_DEFINITION_FILE} is no task definition: it has no family")
    return definition
