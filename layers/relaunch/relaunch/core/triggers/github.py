"""Matches GitHub events with triggers by the rules of GitHub Actions, for a subset of its events."""

from collections.abc import Iterator

from relaunch.core.definitions.definition import GithubTrigger
from relaunch.core.definitions.filter_patterns import matches_filters
from relaunch.core.triggers.events import (
    GithubEvent,
    Package,
    Push,
    Release,
    RepositoryDispatch,
    WorkflowDispatch,
    WorkflowRun,
)

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
            yield from _list_workflow_obstacles(trigger, event.workflow)
        case RepositoryDispatch():
            yield from _list_name_obstacles("type", trigger.types, event.event_type)
        case Release():
            yield from _list_action_obstacles(event, "published")
        case _:
            yield from _list_action_obstacles(event, "published")
            yield from _list_name_obstacles("package", trigger.packages, event.package)
    if trigger.wait_for_image is not None and "sha}" in trigger.wait_for_image.tag and not event.sha:
        yield f"the job would wait for the image of a commit, and this {event.name} event names none"


def _list_push_obstacles(trigger: GithubTrigger, event: Push) -> Iterator[str]:
    if event.is_deleted:
        yield f"{event.ref} was deleted"
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
    if not event.has_commits:
        yield f"the push to {branch} brought no commits"
    if (
        trigger.paths
        and event.paths is not None
        and not any(matches_filters(path, trigger.paths) for path in event.paths)
    ):
        yield f"no changed path matches {' or '.join(trigger.paths)}"


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
    yield from _list_workflow_obstacles(trigger, event.workflow)


def _list_action_obstacles(event: WorkflowRun | Release | Package, action: str) -> Iterator[str]:
    if event.action != action:
        yield f"the {event.name} was {event.action or 'changed'}, and only {action} starts a job"


def _list_workflow_obstacles(trigger: GithubTrigger, workflow: str) -> Iterator[str]:
    """Yield the reasons for a workflow, which may be named by name, path or file name: events have one of them."""
    if workflow.rpartition("/")[2] not in trigger.workflows:
        yield from _list_name_obstacles("workflow", trigger.workflows, workflow)


def _list_name_obstacles(kind: str, names: tuple[str, ...], name: str) -> Iterator[str]:
    if names and name not in names:
        yield f"the {kind} {name} is not {' or '.join(names)}"
