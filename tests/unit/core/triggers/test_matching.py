import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.builders import make_definition
from relaunch.core.definitions.definition import GithubTrigger, ImageTrigger, ImageWait, InputRule, S3Trigger, Trigger
from relaunch.core.definitions.inputs import MAX_INPUT_LENGTH
from relaunch.core.jobs.job import TriggerFacts
from relaunch.core.triggers.events import (
    DirectRequest,
    GithubEvent,
    ImagePushed,
    ObjectCreated,
    Package,
    Push,
    Release,
    RepositoryDispatch,
    TriggerEvent,
    WorkflowDispatch,
    WorkflowRun,
    happened_at,
    trigger_keys,
)
from relaunch.core.triggers.matching import InvalidInputs, Match, NoMatch, derive_job_id, match

SHA = "4b1d8e6f02a97c35e8d0714b6a2f93c5d8e07b1a"
OTHER = SHA[::-1]
PUSH = Push(
    identity="github:push:acme/vision:refs/heads/main:a:b",
    repository="acme/vision",
    ref="refs/heads/main",
    sha=SHA,
    paths=("README.md", "train/resnet.py"),
    sender="sara",
)
TAG = replace(PUSH, ref="refs/tags/v1.0", has_commits=False, paths=())
RUN = WorkflowRun(
    identity="github:workflow_run:acme/vision:7:1:completed",
    repository="acme/vision",
    ref="refs/heads/main",
    sha=SHA,
    action="completed",
    conclusion="success",
    workflow="Build image",
)
WORKFLOW = WorkflowDispatch(
    identity="github:workflow_dispatch:acme/vision:guid",
    repository="acme/vision",
    ref="refs/heads/main",
    workflow=".github/workflows/train.yml",
)
DISPATCH = RepositoryDispatch(
    identity="github:repository_dispatch:acme/vision:guid",
    repository="acme/vision",
    event_type="train",
)
RELEASE = Release(
    identity="github:release:acme/vision:9:published",
    repository="acme/vision",
    ref="refs/tags/v2",
    action="published",
)
PACKAGE = Package(
    identity="github:package:acme/vision:trainer:3:sha256:aa:published",
    repository="acme/vision",
    sha=SHA,
    action="published",
    package="trainer",
    tag="v2",
)
UPLOAD = ObjectCreated("s3:acme-datasets:sequencer=1:images/a b.manifest", "acme-datasets", "images/a b.manifest")
IMAGE = ImagePushed(f"ecr:trainer:{SHA}:sha256:aa", "trainer", SHA, "sha256:aa")


def github(event: str, **filters: object) -> GithubTrigger:
    return replace(GithubTrigger(repository="acme/vision", event=event), **filters)  # type: ignore[arg-type]


def decide(trigger: Trigger, event: TriggerEvent) -> Match | NoMatch | InvalidInputs:
    return match(make_definition(triggers=(trigger,)), event)


@pytest.mark.parametrize(
    ("trigger", "event"),
    [
        pytest.param(github("push"), PUSH, id="any-branch"),
        pytest.param(github("push", branches=("main",)), PUSH, id="branch"),
        pytest.param(github("push", branches=("ma*", "!master")), PUSH, id="branch-pattern"),
        pytest.param(github("push", branches=("main",), tags=("v*",)), PUSH, id="branch-beside-tags"),
        pytest.param(github("push", paths=("train/**",)), PUSH, id="one-path-is-enough"),
        pytest.param(github("push", paths=("train/**",)), replace(PUSH, paths=None), id="unknown-paths"),
        pytest.param(github("push", tags=("v*",)), TAG, id="tag"),
        pytest.param(github("push", tags=("v*",), paths=("train/**",)), TAG, id="paths-say-nothing-about-tags"),
        pytest.param(github("push"), replace(PUSH, repository="Acme/Vision"), id="repository-in-another-case"),
        pytest.param(github("workflow_run"), RUN, id="any-workflow-run"),
        pytest.param(github("workflow_run", workflows=("Build image",)), RUN, id="workflow-run-by-name"),
        pytest.param(github("workflow_run", branches=("main",)), RUN, id="workflow-run-of-branch"),
        pytest.param(github("workflow_dispatch"), WORKFLOW, id="any-workflow-dispatch"),
        pytest.param(github("workflow_dispatch", workflows=("train.yml",)), WORKFLOW, id="workflow-by-file"),
        pytest.param(
            github("workflow_dispatch", workflows=(".github/workflows/train.yml",)), WORKFLOW, id="workflow-by-path"
        ),
        pytest.param(github("repository_dispatch"), DISPATCH, id="any-dispatch"),
        pytest.param(github("repository_dispatch", types=("train",)), DISPATCH, id="dispatch-by-type"),
        pytest.param(github("release"), RELEASE, id="release"),
        pytest.param(github("package"), PACKAGE, id="any-package"),
        pytest.param(github("package", packages=("trainer",)), PACKAGE, id="package-by-name"),
        pytest.param(S3Trigger("acme-datasets"), UPLOAD, id="any-upload"),
        pytest.param(S3Trigger("acme-datasets", "images/", ".manifest"), UPLOAD, id="upload-by-prefix-and-suffix"),
        pytest.param(ImageTrigger("trainer"), IMAGE, id="any-image"),
        pytest.param(ImageTrigger("trainer", "{sha}"), IMAGE, id="image-of-a-commit"),
        pytest.param(ImageTrigger("trainer", "v*"), replace(IMAGE, tag="v1.2"), id="image-tag-pattern"),
        pytest.param(ImageTrigger("trainer", "{short_sha}-gpu"), replace(IMAGE, tag="4b1d8e6-gpu"), id="short-commit"),
        pytest.param(
            ImageTrigger("trainer", "{sha}.{sha}.{sha}"), replace(IMAGE, tag=f"{SHA}.{OTHER}.{OTHER}"), id="commits"
        ),
    ],
)
def test_an_event_starts_the_job_whose_trigger_it_fits(trigger: Trigger, event: TriggerEvent) -> None:
    matched = decide(trigger, event)

    assert isinstance(matched, Match)
    assert matched.trigger is trigger


@pytest.mark.parametrize(
    ("trigger", "event", "reason"),
    [
        pytest.param(github("push"), replace(PUSH, is_deleted=True, sha=""), "was deleted", id="branch-deleted"),
        pytest.param(github("push", tags=("*",)), replace(TAG, is_deleted=True), "was deleted", id="tag-deleted"),
        pytest.param(github("push"), replace(PUSH, has_commits=False), "brought no commits", id="empty-push"),
        pytest.param(github("push"), TAG, "names no tags", id="tag-unasked"),
        pytest.param(github("push", branches=("main",)), TAG, "names no tags", id="tag-beside-branches"),
        pytest.param(github("push", tags=("x*",)), TAG, "the tag v1.0 does not match x*", id="other-tag"),
        pytest.param(github("push", tags=("v*",)), PUSH, "only tags are watched", id="branch-unasked"),
        pytest.param(github("push", branches=("dev",)), PUSH, "branch main does not match dev", id="other-branch"),
        pytest.param(
            github("push", paths=("docs/**", "*.txt")),
            PUSH,
            "no changed path matches docs/** or *.txt",
            id="other-paths",
        ),
        pytest.param(
            github("push"), replace(PUSH, ref="refs/notes/x"), "neither a branch nor a tag", id="neither-branch-nor-tag"
        ),
        pytest.param(github("workflow_run"), replace(RUN, is_fork=True), "from a fork", id="workflow-run-of-fork"),
        pytest.param(github("workflow_run"), replace(RUN, action="requested"), "was requested", id="run-not-over"),
        pytest.param(github("workflow_run"), replace(RUN, conclusion="failure"), "ended with failure", id="run-failed"),
        pytest.param(
            github("workflow_run"), replace(RUN, conclusion=""), "with no conclusion", id="run-without-conclusion"
        ),
        pytest.param(github("workflow_run", branches=("dev",)), RUN, "branch main", id="run-of-other-branch"),
        pytest.param(
            github("workflow_run", workflows=("Test",)),
            RUN,
            "the workflow Build image is not Test",
            id="other-workflow",
        ),
        pytest.param(github("workflow_dispatch", workflows=("x.yml",)), WORKFLOW, "is not x.yml", id="other-file"),
        pytest.param(
            github("repository_dispatch", types=("x", "y")), DISPATCH, "the type train is not x or y", id="other-type"
        ),
        pytest.param(github("release"), replace(RELEASE, action="created"), "only published", id="release-created"),
        pytest.param(
            github("release"),
            replace(RELEASE, action=""),
            "the release was changed, and only published starts a job",
            id="release-without-action",
        ),
        pytest.param(github("package"), replace(PACKAGE, action="updated"), "only published", id="package-updated"),
        pytest.param(github("package", packages=("x",)), PACKAGE, "package trainer is not x", id="other-package"),
        pytest.param(github("push"), RUN, "no trigger of resnet", id="other-event"),
        pytest.param(github("push"), replace(PUSH, repository="acme/other"), "no trigger", id="other-repository"),
        pytest.param(S3Trigger("other"), UPLOAD, "no trigger of resnet", id="other-bucket"),
        pytest.param(S3Trigger("acme-datasets", "video/"), UPLOAD, "does not start with video/", id="other-prefix"),
        pytest.param(S3Trigger("acme-datasets", "", ".csv"), UPLOAD, "does not end with .csv", id="other-suffix"),
        pytest.param(
            S3Trigger("acme-datasets"), replace(UPLOAD, key="images/"), "create for a folder", id="folder-of-a-console"
        ),
        pytest.param(ImageTrigger("other"), IMAGE, "no trigger of resnet", id="other-image"),
        pytest.param(ImageTrigger("trainer"), replace(IMAGE, tag=""), "without a tag", id="part-of-an-image"),
        pytest.param(ImageTrigger("trainer", "v*"), IMAGE, "does not match v*", id="other-image-tag"),
        pytest.param(ImageTrigger("trainer", "{sha}"), replace(IMAGE, tag="latest"), "does not match", id="no-commit"),
        pytest.param(ImageTrigger("trainer"), PUSH, "no trigger of resnet", id="other-source"),
    ],
)
def test_an_event_that_does_not_fit_starts_nothing_and_says_why(
    trigger: Trigger, event: TriggerEvent, reason: str
) -> None:
    decision = decide(trigger, event)

    assert isinstance(decision, NoMatch)
    assert reason in decision.reason


def test_the_reasons_of_all_triggers_are_told_once_each() -> None:
    triggers = (github("push", branches=("a",)), github("push", branches=("b",)), github("push", branches=("a",)))

    decision = match(make_definition(triggers=triggers), PUSH)

    assert decision == NoMatch("the branch main does not match a; the branch main does not match b")


def test_the_first_trigger_that_fits_is_taken() -> None:
    triggers = (github("push", branches=("dev",)), github("push", paths=("train/**",)), github("push"))

    matched = match(make_definition(triggers=triggers), PUSH)

    assert isinstance(matched, Match)
    assert matched.trigger is triggers[1]


def test_a_direct_request_starts_the_definition_it_names_without_any_trigger() -> None:
    request = DirectRequest("api:key:1", "resnet", caller="ci")

    matched = match(make_definition(triggers=()), request)

    assert isinstance(matched, Match)
    assert matched.trigger is None
    assert (matched.facts.source, matched.facts.summary) == ("direct", "asked for by ci")
    assert match(make_definition(name="other", triggers=()), request) == NoMatch("the request is for resnet")


def test_a_direct_request_may_come_from_nobody_known() -> None:
    matched = match(make_definition(), DirectRequest("api:key:1", "resnet"))

    assert isinstance(matched, Match)
    assert matched.facts == TriggerFacts("direct", "api:key:1", "asked for")


def facts_of(trigger: Trigger, event: TriggerEvent) -> tuple[str, dict[str, str]]:
    matched = decide(trigger, event)
    assert isinstance(matched, Match)
    assert matched.facts.identity == event.identity
    assert matched.facts.source == trigger_keys(event)[0]  # type: ignore[arg-type]
    return matched.facts.summary, dict(matched.facts.environment)


GIT = {"RELAUNCH_GIT_REPOSITORY": "acme/vision", "RELAUNCH_GIT_REF": "refs/heads/main", "RELAUNCH_GIT_SHA": SHA}


@pytest.mark.parametrize(
    ("trigger", "event", "summary", "environment"),
    [
        pytest.param(github("push"), PUSH, "push of 4b1d8e6 to main in acme/vision by sara", GIT, id="push"),
        pytest.param(
            github("push", tags=("*",)),
            TAG,
            "push of tag v1.0 in acme/vision by sara",
            {**GIT, "RELAUNCH_GIT_REF": "refs/tags/v1.0"},
            id="tag",
        ),
        pytest.param(
            github("workflow_run"), RUN, "workflow Build image completed on main in acme/vision", GIT, id="workflow-run"
        ),
        pytest.param(
            github("workflow_dispatch"),
            WORKFLOW,
            "workflow .github/workflows/train.yml dispatched on main in acme/vision",
            {"RELAUNCH_GIT_REPOSITORY": "acme/vision", "RELAUNCH_GIT_REF": "refs/heads/main"},
            id="workflow-dispatch",
        ),
        pytest.param(
            github("repository_dispatch"),
            DISPATCH,
            "dispatch of train in acme/vision",
            {"RELAUNCH_GIT_REPOSITORY": "acme/vision"},
            id="dispatch",
        ),
        pytest.param(
            github("release"),
            RELEASE,
            "release v2 published in acme/vision",
            {"RELAUNCH_GIT_REPOSITORY": "acme/vision", "RELAUNCH_GIT_REF": "refs/tags/v2"},
            id="release",
        ),
        pytest.param(
            github("package"),
            PACKAGE,
            "package trainer:v2 published in acme/vision",
            {
                "RELAUNCH_GIT_REPOSITORY": "acme/vision",
                "RELAUNCH_GIT_SHA": SHA,
                "RELAUNCH_PACKAGE": "trainer",
                "RELAUNCH_PACKAGE_TAG": "v2",
            },
            id="package",
        ),
        pytest.param(
            S3Trigger("acme-datasets"),
            replace(UPLOAD, version_id="v7"),
            "upload of s3://acme-datasets/images/a b.manifest",
            {"RELAUNCH_OBJECT_URI": "s3://acme-datasets/images/a b.manifest", "RELAUNCH_OBJECT_VERSION_ID": "v7"},
            id="upload",
        ),
        pytest.param(
            ImageTrigger("trainer", "gpu-{sha}"),
            replace(IMAGE, tag=f"gpu-{SHA}"),
            f"image trainer:gpu-{SHA} pushed",
            {
                "RELAUNCH_IMAGE_REPOSITORY": "trainer",
                "RELAUNCH_IMAGE_TAG": f"gpu-{SHA}",
                "RELAUNCH_IMAGE_DIGEST": "sha256:aa",
                "RELAUNCH_GIT_SHA": SHA,
            },
            id="image",
        ),
        pytest.param(
            ImageTrigger("trainer", "{sha}.{sha}.{sha}"),
            replace(IMAGE, tag=f"{SHA}.{OTHER}.{OTHER}"),
            f"image trainer:{SHA}.{OTHER}.{OTHER} pushed",
            {
                "RELAUNCH_IMAGE_REPOSITORY": "trainer",
                "RELAUNCH_IMAGE_TAG": f"{SHA}.{OTHER}.{OTHER}",
                "RELAUNCH_IMAGE_DIGEST": "sha256:aa",
                "RELAUNCH_GIT_SHA": SHA,
            },
            id="image-of-several-commits-is-of-the-first",
        ),
        pytest.param(
            ImageTrigger("trainer", "v*"),
            replace(IMAGE, tag="v7"),
            "image trainer:v7 pushed",
            {
                "RELAUNCH_IMAGE_REPOSITORY": "trainer",
                "RELAUNCH_IMAGE_TAG": "v7",
                "RELAUNCH_IMAGE_DIGEST": "sha256:aa",
            },
            id="image-of-no-commit",
        ),
    ],
)
def test_the_training_and_people_are_told_what_started_the_job(
    trigger: Trigger, event: TriggerEvent, summary: str, environment: dict[str, str]
) -> None:
    assert facts_of(trigger, event) == (summary, environment)


@pytest.mark.parametrize(
    ("event", "has_notes"),
    [
        pytest.param(PUSH, False, id="push"),
        pytest.param(replace(WORKFLOW, sha=SHA, inputs={"PATH": "/evil"}), True, id="with-inputs"),
    ],
)
def test_an_event_may_wait_for_the_image_of_its_commit_and_is_matched_like_any_other(
    event: Push | WorkflowDispatch, has_notes: bool
) -> None:
    trigger = github(event.name, wait_for_image=ImageWait("trainer", "{sha}-{short_sha}", timedelta(minutes=10)))
    definition = make_definition(triggers=(trigger,), inputs={"n": InputRule("[0-9]+", "5")})

    matched = match(definition, event)
    unhurried = match(replace(definition, triggers=(github(event.name),)), event)

    assert isinstance(matched, Match)
    assert isinstance(unhurried, Match)
    assert matched.inputs == {"n": "5"}
    assert bool(matched.notes) is has_notes
    assert matched == replace(
        unhurried, trigger=trigger, image=("trainer", f"{SHA}-4b1d8e6"), image_timeout=timedelta(minutes=10)
    )


def test_an_event_without_a_commit_cannot_wait_for_its_image() -> None:
    decision = decide(github("workflow_dispatch", wait_for_image=ImageWait("trainer")), WORKFLOW)

    assert isinstance(decision, NoMatch)
    assert "names none" in decision.reason


def test_only_declared_inputs_pass_and_the_others_are_told() -> None:
    rules = {"learning_rate": InputRule("[0-9.e-]+", "0.1"), "epochs": InputRule("[0-9]+", "90")}
    event = replace(WORKFLOW, inputs={"learning_rate": "1e-3", "PATH": "/evil"})

    matched = match(make_definition(triggers=(github("workflow_dispatch"),), inputs=rules), event)

    assert isinstance(matched, Match)
    assert matched.inputs == {"learning_rate": "1e-3", "epochs": "90"}
    assert matched.notes == ("input 'PATH' is not declared in the job definition and was left out",)


@pytest.mark.parametrize(
    ("rule", "given_inputs", "error"),
    [
        pytest.param(InputRule("[0-9]+"), {}, "has no default and was not given", id="required"),
        pytest.param(InputRule("b+"), {"n": "a" * 60}, f"input n is '{'a' * 60}', which", id="sixty-are-shown"),
        pytest.param(InputRule("b+"), {"n": "a" * 61}, f"input n is '{'a' * 57}...', which", id="longer-is-cut"),
        pytest.param(InputRule("[0-9]+"), {"n": "12x"}, "is '12x', which does not match [0-9]+", id="whole-value"),
        pytest.param(InputRule("[0-9]+"), {"n": "12\n"}, "does not match", id="no-newline-at-the-end"),
        pytest.param(InputRule("[0-9]+", "1"), {"n": ""}, "does not match", id="empty-is-given"),
        pytest.param(InputRule("x*"), {"n": "x" * (MAX_INPUT_LENGTH + 1)}, "has 1025 characters", id="too-long"),
        pytest.param(InputRule("a"), {"n": "b" * 100}, "b...'", id="long-values-are-cut"),
    ],
)
def test_a_value_outside_its_pattern_starts_nothing(rule: InputRule, given_inputs: dict[str, str], error: str) -> None:
    decision = match(make_definition(inputs={"n": rule}), DirectRequest("api:1", "resnet", given_inputs))

    assert isinstance(decision, InvalidInputs)
    assert error in decision.reason
    assert len(decision.errors) == 1


def test_everything_wrong_with_the_inputs_is_told_in_one_sentence() -> None:
    rules = {"n": InputRule("[0-9]+"), "m": InputRule("[0-9]+")}

    decision = match(make_definition(inputs=rules), DirectRequest("api:1", "resnet"))

    assert isinstance(decision, InvalidInputs)
    assert len(decision.errors) == 2
    assert decision.reason == "; ".join(decision.errors)


def test_a_push_takes_the_defaults_of_inputs() -> None:
    matched = match(make_definition(inputs={"n": InputRule("[0-9]+", "5")}), PUSH)

    assert isinstance(matched, Match)
    assert matched.inputs == {"n": "5"}


def test_an_input_may_be_as_long_as_is_allowed() -> None:
    longest = "x" * MAX_INPUT_LENGTH

    matched = match(make_definition(inputs={"n": InputRule("x*")}), DirectRequest("api:1", "resnet", {"n": longest}))

    assert isinstance(matched, Match)
    assert matched.inputs == {"n": longest}


@given(st.text(min_size=0, max_size=300), st.text(max_size=200))
def test_a_job_id_is_short_and_plain_and_always_the_same(identity: str, definition: str) -> None:
    job_id = derive_job_id(identity, definition)

    assert re.fullmatch("[a-z0-9-]{14,100}", job_id)
    assert job_id == derive_job_id(identity, definition)


def test_a_long_name_is_cut_and_its_job_ids_still_differ() -> None:
    ids = {derive_job_id("a", "x" * 150 + end) for end in ("1", "2")}

    assert {len(job_id) for job_id in ids} == {100}
    assert len(ids) == 2


def test_job_ids_differ_with_the_event_and_with_the_definition() -> None:
    ids = {derive_job_id(event, name) for event in ("a", "b", "a\0b") for name in ("resnet", "resnet-large", "b")}

    assert len(ids) == 9
    assert derive_job_id("a", "resnet").startswith("resnet-")


def test_a_job_id_has_no_hyphens_at_either_end_of_the_name() -> None:
    assert derive_job_id("a", "_ResNet 50_").rpartition("-")[0] == "resnet-50"


@pytest.mark.parametrize(
    ("event", "source", "name"),
    [
        (replace(PUSH, repository="Acme/Vision"), "github", "acme/vision"),
        (UPLOAD, "s3", "acme-datasets"),
        (IMAGE, "image", "trainer"),
    ],
)
def test_who_watches_an_origin_is_found_by_its_source_and_name(
    event: GithubEvent | ObjectCreated | ImagePushed, source: str, name: str
) -> None:
    assert trigger_keys(event) == (source, name)


def test_a_request_happened_when_it_was_asked_for_and_other_events_when_their_source_says() -> None:
    first, second = datetime(2026, 3, 14, tzinfo=UTC), datetime(2026, 3, 15, tzinfo=UTC)

    assert happened_at(DirectRequest("api:1", "resnet", requested_at=first)) == first
    assert happened_at(replace(UPLOAD, happened_at=second)) == second
    assert happened_at(DirectRequest("api:1", "resnet")) is None


def test_a_text_that_is_no_unicode_has_a_job_id_too() -> None:
    assert derive_job_id("s3:bucket:\ud800", "resnet")
