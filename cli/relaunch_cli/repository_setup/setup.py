"""Looks at the repository of a training and at the account, and makes what is missing."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from relaunch.adapters.core_schema import read_plain
from relaunch.core.revisions.revision import TaskDefinitionGrants
from relaunch.core.task_definitions.host_access import PARAMETER, find_host_access
from relaunch_cli.errors import CommandError
from relaunch_cli.repository_setup.bucket_events import read_bucket_events, switch_on
from relaunch_cli.repository_setup.definition_text import definition_text
from relaunch_cli.repository_setup.dockerfile_text import IGNORED, dockerfile_text, is_large, missing_lines
from relaunch_cli.repository_setup.file_changes import read_text, write_files
from relaunch_cli.repository_setup.findings import DEFINITION_FILE, PLAN_FILE, FileChange, GitRepository, Setup
from relaunch_cli.repository_setup.github_webhook import Gh, find_webhook, make_webhook
from relaunch_cli.repository_setup.remade_stack import follow_stack
from relaunch_cli.repository_setup.revisions import newest_revision, register
from relaunch_cli.repository_setup.task_definition import is_registered, task_definition
from relaunch_cli.repository_setup.training import Training
from relaunch_cli.repository_setup.training_stack import TrainingStack
from relaunch_cli.repository_setup.workflow_text import plan_workflow_text, workflow_text

TASK_DEFINITION_FILE = "task-definition.json"
# "family", RegisterTaskDefinition, Amazon ECS API Reference.
_FAMILY = re.compile(r"[A-Za-z0-9_-]{1,255}")
_WORKFLOW_FILE = ".github/workflows/train.yml"
_DOCKERFILE = "Dockerfile"
_IGNORE_FILE = ".dockerignore"
# The two that say what the training is come last: while one of them is missing, a run that failed is begun anew.
_FILES = (_DOCKERFILE, _IGNORE_FILE, _WORKFLOW_FILE, PLAN_FILE, TASK_DEFINITION_FILE, DEFINITION_FILE)
_DECIDING = (DEFINITION_FILE, TASK_DEFINITION_FILE)
# A Dockerfile belongs to whoever wrote it; what runs is the task definition's command.
_OVERWRITTEN = (DEFINITION_FILE, TASK_DEFINITION_FILE, _WORKFLOW_FILE, PLAN_FILE)


@dataclass(frozen=True)
class Wanted:
    """What whoever sets up wants.

    `is_given`: options say what the training is, and are to agree with the files that are there. `family` is that of
    the task definition if the definition names one, and `action` the GitHub Action as OWNER/NAME@COMMIT, empty if it is
    nowhere to be had.
    """

    training: Training
    family: str = ""
    action: str = ""
    is_given: bool = False
    overwrites: bool = False


@dataclass(frozen=True, slots=True)
class Watched:
    """What definitions watch: buckets, and the events of the repository at GitHub."""

    buckets: Sequence[str] = ()
    github_events: Sequence[str] = ()


@dataclass(frozen=True)
class Outside:
    """Clients of AWS, GitHub, and what the text of a definition file watches."""

    client: Callable[[str], Any]
    gh: Gh
    watched: Callable[[str], Watched]


def has_files(root: Path) -> bool:
    """Return whether the repository has what a training is described by, so that nothing has to be asked."""
    return all(read_text(root, path) is not None for path in _DECIDING)


def survey(repository: GitRepository, wanted: Wanted, stack: TrainingStack, outside: Outside) -> Setup:
    """Look at the repository and the account; nothing is changed.

    Names that the stack had before it was removed and deployed again are to be changed, also without `overwrites`.

    Raises:
        CommandError: a file cannot be read, or has something else in it, or a bucket is not there.
        ClientError, BotoCoreError: a call failed.
    """
    before = {path: read_text(repository.root, path) for path in _FILES}
    there = follow_stack(before, stack)
    if not wanted.family and not wanted.overwrites and there[TASK_DEFINITION_FILE] is not None:
        family = str(read_task_definition(there[TASK_DEFINITION_FILE] or "")["family"])
        wanted = replace(wanted, family=family)
    made = _write(wanted.training, wanted, repository, stack, there[_DOCKERFILE])
    if wanted.is_given and not wanted.overwrites:
        _check_given(made, there)
    reason = _find_workflow_obstacle(repository, stack, there[_WORKFLOW_FILE])
    if reason:
        made.pop(_WORKFLOW_FILE, None)
        made.pop(PLAN_FILE, None)
    elif there[_WORKFLOW_FILE] is not None:
        # Its image is built of something else.
        made.pop(_DOCKERFILE, None)
        made.pop(_IGNORE_FILE, None)
    foreign = _find_foreign(made, there, stack, is_left=bool(reason))
    overwritten = [each for each in _OVERWRITTEN if each not in foreign] if wanted.overwrites else []
    kept = {path: text for path, text in there.items() if text is not None and path not in overwritten}
    after = {**made, **kept}
    definition = read_task_definition(after[TASK_DEFINITION_FILE])
    _check_family(str(definition["family"]), stack)
    _check_host_access(definition, stack)
    registered = newest_revision(str(definition["family"]), outside.client("ecs"))
    watched = outside.watched(after[DEFINITION_FILE])
    _check_sources(watched, stack)
    return Setup(
        repository=repository,
        files=[FileChange(path, before[path], after[path]) for path in _FILES if path in after],
        definition=definition,
        revision=registered["revision"] if registered else None,
        needs_revision=registered is None or not is_registered(definition, registered),
        buckets=[read_bucket_events(each, outside.client("s3")) for each in watched.buckets],
        webhook=find_webhook(repository.github, stack.webhook_url, watched.github_events, outside.gh),
        without_workflow=reason,
        other_branch="" if reason else _find_other_branch(repository, stack),
        missing_lines=missing_lines(after.get(_DOCKERFILE), after[TASK_DEFINITION_FILE]),
    )


def make(setup: Setup, outside: Outside, secret: Callable[[str], str], tell: Callable[[str], None]) -> None:
    """Make what is missing; another run goes on where one failed. `secret` returns the webhook's of a repository.

    Raises:
        CommandError: something was changed meanwhile, a file cannot be written, or GitHub refuses.
        ClientError, BotoCoreError: a call failed.
    """
    write_files(setup.repository.root, setup.files)
    for file in setup.changed_files:
        tell(f"wrote {file.path}")
    for bucket in setup.buckets_to_switch_on:
        switch_on(bucket, outside.client("s3"))
        # "Enabling Amazon EventBridge", Amazon S3 User Guide.
        tell(f"uploads to {bucket.bucket} go to EventBridge, about five minutes from now: earlier ones start nothing")
    if setup.needs_revision:
        tell(f"registered {register(setup.definition, outside.client('ecs'))}")
    if setup.webhook is not None and setup.webhook.is_needed:
        webhook = setup.webhook
        make_webhook(webhook, lambda: secret(webhook.repository.lower()), outside.gh)
        tell(f"{webhook.repository} sends {', '.join(webhook.missing)} to {webhook.url}")


def _write(
    training: Training, wanted: Wanted, repository: GitRepository, stack: TrainingStack, dockerfile: str | None
) -> dict[str, str]:
    family = wanted.family or f"{stack.family_prefix}{training.name}"
    text = dockerfile_text(training) if dockerfile is None else dockerfile
    made = {
        DEFINITION_FILE: definition_text(training, family, repository.github, stack),
        TASK_DEFINITION_FILE: json.dumps(task_definition(training, family, stack), indent=2) + "\n",
        _WORKFLOW_FILE: workflow_text(training, stack, wanted.action, is_large=is_large(text)),
    }
    if wanted.action and stack.plan_role_arn and stack.plan_api_url:
        made[PLAN_FILE] = plan_workflow_text(stack, wanted.action)
    return {**made, _DOCKERFILE: text, _IGNORE_FILE: IGNORED} if dockerfile is None else made


def _find_foreign(
    made: Mapping[str, str], before: Mapping[str, str | None], stack: TrainingStack, *, is_left: bool
) -> set[str]:
    """Return the workflows that are there for something else, and are never written over.

    `is_left`: the one that builds images is.
    """
    foreign = {_WORKFLOW_FILE} if is_left and before[_WORKFLOW_FILE] is not None else set()
    is_own_plan = PLAN_FILE in made and stack.plan_role_arn in (before[PLAN_FILE] or "")
    return foreign if is_own_plan else {*foreign, PLAN_FILE}


def _check_family(family: str, stack: TrainingStack) -> None:
    """Check that jobs may run the family, and operators register in it.

    Raises:
        CommandError: they may not.
    """
    grants = TaskDefinitionGrants(None if stack.families == ("any",) else stack.families)
    if not grants.has_family(family):
        allowed = ", ".join(stack.families)
        raise CommandError(
            f"the stack runs no task definitions of the family {family}: its TaskDefinitionFamilies are {allowed}",
            f"name another family in {TASK_DEFINITION_FILE} and {DEFINITION_FILE}, or change the stack's parameter",
        )


def _check_sources(watched: Watched, stack: TrainingStack) -> None:
    """Check that the stack has what the definitions watch.

    Raises:
        CommandError: it was deployed without.
    """
    lacking = [
        (what, switch)
        for is_watched, is_there, what, switch in (
            (watched.github_events, stack.webhook_url, "no webhook", "Webhook=on"),
            (watched.buckets, stack.takes_uploads, "no queue for uploads", "Uploads=on"),
        )
        if is_watched and not is_there
    ]
    if lacking:
        switches = " ".join(switch for _, switch in lacking)
        raise CommandError(
            f"the stack has {' and '.join(what for what, _ in lacking)}, which {DEFINITION_FILE} needs",
            f"relaunch deploy {switches}, then relaunch init again",
        )


def _check_host_access(definition: Mapping[str, Any], stack: TrainingStack) -> None:
    """Check that the stack runs what the task definition gives its containers.

    Raises:
        CommandError: it gives them their machine, and the stack allows that to none.
    """
    reasons = () if stack.has_host_access else find_host_access(definition)
    if reasons:
        raise CommandError(
            f"{TASK_DEFINITION_FILE} has {'; '.join(reasons)}",
            f"relaunch deploy {PARAMETER}=on, then relaunch init again: docs/security.md says what that opens",
        )


def _check_given(made: Mapping[str, str], before: Mapping[str, str | None]) -> None:
    """Check that options agree with the files that are there.

    Raises:
        CommandError: they do not, and the files are to be left as they are.
    """
    differing = [path for path in _DECIDING if before[path] and _content(before[path]) != _content(made[path])]
    if differing:
        raise CommandError(
            f"options do not change {' and '.join(differing)}, which differ from them: nothing was written",
            "edit them and run `relaunch init`, or write them anew from all options with --overwrite",
        )


def _content(text: str | None) -> object:
    """Return what a file says beside its comments, which a later release may word otherwise.

    It may be anybody's: what PyYAML's own loader would expand without end, as merge keys, is not read.
    """
    try:
        return read_plain(text or "")
    except (ValueError, RecursionError):
        return text


def _find_workflow_obstacle(repository: GitRepository, stack: TrainingStack, workflow: str | None) -> str:
    """Return why no workflow of this repository pushes images, and what mends it; empty if one does, or can."""
    github = repository.github
    if not github:
        return "the remote `origin` is not at GitHub: push images in another way, each with its commit as the tag"
    add = f"relaunch github add {github} --images {stack.repository_name}"
    if not stack.submit_role_arn:
        return f"no repository is let in by the account: relaunch deploy --github {github}, then relaunch init again"
    if stack.github_repository.lower() != github.lower():
        return (
            f"only {stack.github_repository} is let in by the account: {add} lets it in too, then relaunch init again"
        )
    if stack.image_repository != stack.repository_name:
        return f"the role of {github} may not push images into {stack.repository_name}: {add}, then relaunch init again"
    if workflow is not None and stack.submit_role_arn not in workflow:
        return f"{_WORKFLOW_FILE} is there for something else: rename it, then relaunch init again"
    return ""


def _find_other_branch(repository: GitRepository, stack: TrainingStack) -> str:
    """Return that workflows run for another branch than the one that is checked out, and what lets this one in."""
    kind, _, let_in = stack.github_ref.removeprefix("refs/").partition("/")
    branch = repository.branch
    if kind != "heads" or branch in ("", let_in):
        return ""
    ref = f"refs/heads/{branch}"
    own = f"relaunch github add {repository.github} --ref {ref}"
    change = own if stack.callers else f"relaunch deploy GitHubRef={ref}"
    return (
        f"{branch} is checked out, and {let_in} is the branch that is let in: a push of {branch} builds no image and "
        f"starts no job until it is merged; {change} lets {branch} in instead, then relaunch init --overwrite"
    )


def read_task_definition(text: str) -> Mapping[str, Any]:
    """Read the file of a task definition.

    Raises:
        CommandError: it is none that ECS registers.
    """
    try:
        definition: Mapping[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{TASK_DEFINITION_FILE} is no JSON: {error}") from error
    family = definition.get("family") if isinstance(definition, dict) else None
    if not isinstance(family, str):
        raise CommandError(f"{TASK_DEFINITION_FILE} is no task definition: it has no family")
    if _FAMILY.fullmatch(family) is None:
        raise CommandError(f"the family in {TASK_DEFINITION_FILE} has other characters than letters, digits, - and _")
    return definition
