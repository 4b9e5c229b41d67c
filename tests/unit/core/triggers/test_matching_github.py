from dataclasses import replace
from datetime import timedelta

import pytest

from relaunch.core.definitions.definition import ImageWait, InputRule
from relaunch.core.triggers.events import Package, Release, RepositoryDispatch, WorkflowRun
from unit.core.triggers.matched import PUSH, SHA, WORKFLOW, facts_of, github, matched, reason_against

TAG = replace(PUSH, ref="refs/tags/v1.0", has_commits=False, paths=())
RUN = WorkflowRun(
    identity="github:workflow_run:acme/vision:7:1:completed",
    repository="acme/vision",
    ref="refs/heads/main",
    sha=SHA,
    action="completed",
    conclusion="success",
    workflow="Build image",
    run_event="push",
)
RUNS = {"workflows": ("Build image",)}
OF_FILE = replace(RUN, path=".github/workflows/image.yml")
# "Events that trigger workflows", GitHub Docs, and those of runs without such a trigger.
RUN_EVENTS = dict.fromkeys(("push", "schedule", "workflow_dispatch", "release"), True) | dict.fromkeys(
    (
        *("branch_protection_rule", "check_run", "check_suite", "create", "delete", "deployment", "deployment_status"),
        *("discussion", "discussion_comment", "fork", "gollum", "image_version", "issue_comment", "issues", "label"),
        *("merge_group", "milestone", "page_build", "public", "pull_request", "pull_request_comment"),
        *("pull_request_review", "pull_request_review_comment", "pull_request_target", "registry_package"),
        *("repository_dispatch", "status", "watch", "workflow_call", "workflow_run"),
        *("dynamic", "PUSH", ""),
    ),
    False,
)
DISPATCH = RepositoryDispatch(
    identity="github:repository_dispatch:acme/vision:guid",
    repository="acme/vision",
    event_type="train",
    body_sha256="ab",
)
RELEASE = Release(
    identity="github:release:acme/vision:9:published", repository="acme/vision", ref="refs/tags/v2", action="published"
)
PACKAGE = Package(
    identity="github:package:acme/vision:trainer:3:sha256:aa:published",
    repository="acme/vision",
    sha=SHA,
    action="published",
    package="trainer",
    tag="v2",
)


@pytest.mark.parametrize(
    ("event", "filters"),
    [
        pytest.param(PUSH, {}, id="any-branch"),
        pytest.param(PUSH, {"branches": ("main",)}, id="branch"),
        pytest.param(PUSH, {"branches": ("ma*", "!master")}, id="branch-pattern"),
        pytest.param(PUSH, {"branches": ("main",), "tags": ("v*",)}, id="branch-beside-tags"),
        pytest.param(PUSH, {"paths": ("train/**",)}, id="one-path-is-enough"),
        pytest.param(replace(PUSH, paths=None), {"paths": ("train/**",)}, id="unknown-paths"),
        pytest.param(TAG, {"tags": ("v*",)}, id="tag"),
        pytest.param(TAG, {"tags": ("v*",), "paths": ("train/**",)}, id="paths-say-nothing-about-tags"),
        pytest.param(replace(PUSH, repository="Acme/Vision"), {}, id="repository-in-another-case"),
        pytest.param(RUN, {"workflows": ("Build image",)}, id="workflow-run-by-name"),
        pytest.param(OF_FILE, {"workflows": ("Build image",)}, id="workflow-run-by-name-beside-its-file"),
        pytest.param(OF_FILE, {"workflows": ("x.yml", "image.yml")}, id="workflow-run-by-file"),
        pytest.param(OF_FILE, {"workflows": (".github/workflows/image.yml",)}, id="workflow-run-by-path"),
        pytest.param(RUN, {"branches": ("main",), **RUNS}, id="workflow-run-of-branch"),
        pytest.param(WORKFLOW, {}, id="any-workflow-dispatch"),
        pytest.param(WORKFLOW, {"workflows": ("train.yml",)}, id="workflow-by-file"),
        pytest.param(WORKFLOW, {"workflows": (".github/workflows/train.yml",)}, id="workflow-by-path"),
        pytest.param(replace(PUSH, has_commits=False, paths=()), {}, id="branch-cut-from-a-commit"),
        pytest.param(replace(PUSH, has_commits=False, paths=None), {"paths": ("train/**",)}, id="branch-set-back"),
        pytest.param(DISPATCH, {}, id="any-dispatch"),
        pytest.param(DISPATCH, {"types": ("train",)}, id="dispatch-by-type"),
        pytest.param(RELEASE, {}, id="release"),
        pytest.param(PACKAGE, {}, id="any-package"),
        pytest.param(PACKAGE, {"packages": ("trainer",)}, id="package-by-name"),
        pytest.param(replace(PACKAGE, is_container=True), {}, id="image-with-a-tag"),
        pytest.param(replace(PACKAGE, tag=""), {}, id="package-without-a-version"),
        pytest.param(replace(PACKAGE, tag=f"sha256-{'a' * 64}"), {}, id="version-that-is-no-tag"),
    ],
)
def test_an_event_starts_the_job_whose_trigger_it_fits(event, filters):
    trigger = github(event.name, **filters)

    assert matched(event, trigger).trigger is trigger


@pytest.mark.parametrize(
    ("event", "filters", "reason"),
    [
        pytest.param(replace(PUSH, is_deleted=True, sha=""), {}, "was deleted", id="branch-deleted"),
        pytest.param(replace(PUSH, skip="[skip ci]"), {}, "its newest commit says [skip ci]", id="push-skipped"),
        pytest.param(replace(TAG, skip="[no ci]"), {"tags": ("*",)}, "GitHub starts no workflow", id="tag-skipped"),
        pytest.param(replace(TAG, is_deleted=True), {"tags": ("*",)}, "was deleted", id="tag-deleted"),
        pytest.param(
            replace(PUSH, has_commits=False, paths=()),
            {"paths": ("train/**",)},
            "no changed path matches train/**: the push to main brought no commits",
            id="branch-cut-from-a-commit",
        ),
        pytest.param(TAG, {}, "names no tags", id="tag-unasked"),
        pytest.param(TAG, {"branches": ("main",)}, "names no tags", id="tag-beside-branches"),
        pytest.param(TAG, {"tags": ("x*", "y*")}, "the tag v1.0 does not match x* or y*", id="other-tag"),
        pytest.param(PUSH, {"tags": ("v*",)}, "only tags are watched", id="branch-unasked"),
        pytest.param(PUSH, {"branches": ("dev", "x*")}, "branch main does not match dev or x*", id="other-branch"),
        pytest.param(
            PUSH, {"paths": ("docs/**", "*.txt")}, "no changed path matches docs/** or *.txt", id="other-paths"
        ),
        pytest.param(replace(PUSH, ref="refs/notes/x"), {}, "neither a branch nor a tag", id="neither-branch-nor-tag"),
        pytest.param(replace(RUN, is_fork=True), RUNS, "from a fork", id="workflow-run-of-fork"),
        pytest.param(replace(RUN, action="requested"), RUNS, "was requested", id="run-not-over"),
        pytest.param(replace(RUN, conclusion="failure"), RUNS, "ended with failure", id="run-failed"),
        pytest.param(replace(RUN, conclusion=""), RUNS, "with no conclusion", id="run-without-conclusion"),
        pytest.param(
            RUN, {"branches": ("dev", "x*"), **RUNS}, "branch main does not match dev or x*", id="run-of-other-branch"
        ),
        pytest.param(RUN, {}, "the trigger names no workflows: add `workflows` to it", id="run-of-any-workflow"),
        pytest.param(RUN, {"workflows": ("Test",)}, "the workflow Build image is not Test", id="other-workflow"),
        pytest.param(
            OF_FILE,
            {"workflows": ("x", "y")},
            "the workflow Build image (.github/workflows/image.yml) is not x or y",
            id="other-workflow-with-file",
        ),
        pytest.param(
            WORKFLOW,
            {"workflows": ("x.yml",)},
            "the workflow .github/workflows/train.yml is not x.yml",
            id="other-file",
        ),
        pytest.param(DISPATCH, {"types": ("x", "y")}, "the type train is not x or y", id="other-type"),
        pytest.param(replace(RELEASE, action="created"), {}, "only published", id="release-created"),
        pytest.param(
            replace(RELEASE, action=""),
            {},
            "the release was changed, and only published starts a job",
            id="release-without-action",
        ),
        pytest.param(replace(PACKAGE, action="updated"), {}, "only published", id="package-updated"),
        pytest.param(PACKAGE, {"packages": ("x",)}, "package trainer is not x", id="other-package"),
        pytest.param(replace(PACKAGE, tag="", is_container=True), {}, "an image without a tag", id="part-of-an-image"),
        pytest.param(
            replace(PACKAGE, tag=f"sha256-{'a' * 64}", is_container=True),
            {},
            "belongs to another image",
            id="attestation",
        ),
        pytest.param(replace(PUSH, repository="acme/other"), {}, "no trigger", id="other-repository"),
    ],
)
def test_an_event_that_does_not_fit_starts_nothing_and_says_why(event, filters, reason):
    assert reason in reason_against(event, github(event.name, **filters))


@pytest.mark.parametrize(("run_event", "starts"), RUN_EVENTS.items())
def test_a_workflow_run_starts_a_job_only_if_no_stranger_can_cause_it(run_event, starts):
    run = replace(RUN, run_event=run_event)

    if starts:
        assert matched(run, github("workflow_run", **RUNS))
    else:
        shown = run_event or "an unknown event"
        assert reason_against(run, github("workflow_run", **RUNS)).startswith(f"the workflow ran because of {shown}, ")


def test_a_trigger_may_name_further_events_whose_runs_start_a_job():
    trigger = github("workflow_run", run_events=("pull_request", "issue_comment"), **RUNS)

    assert all(matched(replace(RUN, run_event=each), trigger) for each in ("pull_request", "issue_comment", "push"))
    assert "only runs because of push, schedule, workflow_dispatch, release, pull_request, issue_comment" in (
        reason_against(replace(RUN, run_event="watch"), trigger)
    )
    assert "from a fork" in reason_against(replace(RUN, run_event="pull_request", is_fork=True), trigger)


def test_a_run_without_its_event_starts_nothing_whatever_the_trigger_names():
    trigger = github("workflow_run", run_events=("workflow_run",), **RUNS)

    assert "an unknown event" in reason_against(replace(RUN, run_event=""), trigger)


def test_another_event_than_the_trigger_names_starts_nothing():
    assert "no trigger of resnet" in reason_against(RUN, github("push"))


def test_the_reasons_of_all_triggers_are_told_once_each():
    triggers = [github("push", branches=(branch,)) for branch in ("a", "b", "a")]

    assert reason_against(PUSH, *triggers) == "the branch main does not match a; the branch main does not match b"


def test_the_first_trigger_that_fits_is_taken():
    triggers = (github("push", branches=("dev",)), github("push", paths=("train/**",)), github("push"))

    assert matched(PUSH, *triggers).trigger is triggers[1]


BRANCH = {"RELAUNCH_GIT_REPOSITORY": "acme/vision", "RELAUNCH_GIT_REF": "refs/heads/main"}
COMMIT = {**BRANCH, "RELAUNCH_GIT_SHA": SHA}


@pytest.mark.parametrize(
    ("event", "filters", "summary", "environment"),
    [
        pytest.param(PUSH, {}, "push of 4b1d8e6 to main in acme/vision by sara", COMMIT, id="push"),
        pytest.param(
            TAG,
            {"tags": ("*",)},
            "push of tag v1.0 in acme/vision by sara",
            {**COMMIT, "RELAUNCH_GIT_REF": "refs/tags/v1.0"},
            id="tag",
        ),
        pytest.param(RUN, RUNS, "workflow Build image completed on main in acme/vision", COMMIT, id="workflow-run"),
        pytest.param(
            WORKFLOW,
            {},
            "workflow .github/workflows/train.yml dispatched on main in acme/vision",
            BRANCH,
            id="workflow-dispatch",
        ),
        pytest.param(
            DISPATCH, {}, "dispatch of train in acme/vision", {"RELAUNCH_GIT_REPOSITORY": "acme/vision"}, id="dispatch"
        ),
        pytest.param(
            RELEASE,
            {},
            "release v2 published in acme/vision",
            {**BRANCH, "RELAUNCH_GIT_REF": "refs/tags/v2"},
            id="release",
        ),
        pytest.param(
            PACKAGE,
            {},
            "package trainer:v2 published in acme/vision",
            {
                "RELAUNCH_GIT_REPOSITORY": "acme/vision",
                "RELAUNCH_GIT_SHA": SHA,
                "RELAUNCH_PACKAGE": "trainer",
                "RELAUNCH_PACKAGE_TAG": "v2",
            },
            id="package",
        ),
    ],
)
def test_the_training_and_people_are_told_what_started_the_job(event, filters, summary, environment):
    assert facts_of(event, github(event.name, **filters)) == (summary, environment)


@pytest.mark.parametrize(
    ("event", "value"),
    [
        pytest.param(PUSH, "5", id="push"),
        pytest.param(replace(WORKFLOW, sha=SHA, inputs={"n": "7"}), "7", id="with-inputs"),
    ],
)
def test_an_event_may_wait_for_the_image_of_its_commit_and_is_matched_like_any_other(event, value):
    trigger = github(event.name, wait_for_image=ImageWait("trainer", "{sha}-{short_sha}", timedelta(minutes=10)))
    inputs = {"n": InputRule("[0-9]+", "5")}

    waiting = matched(event, trigger, inputs=inputs)
    unhurried = matched(event, github(event.name), inputs=inputs)

    assert waiting.inputs == {"n": value}
    assert waiting == replace(
        unhurried, trigger=trigger, image=("trainer", f"{SHA}-4b1d8e6"), image_timeout=timedelta(minutes=10)
    )


def test_an_event_without_a_commit_cannot_wait_for_its_image():
    trigger = github("workflow_dispatch", wait_for_image=ImageWait("trainer"))

    assert "names none" in reason_against(WORKFLOW, trigger)
