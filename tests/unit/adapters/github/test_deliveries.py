import json
from datetime import UTC, datetime
from typing import Any

import pytest

from fakes.webhook import EVENTS, load_event
from relaunch.adapters.github.payload_trimming import trim_payload
from relaunch.adapters.messages.intake import parse_intake_message
from relaunch.core.definitions.definition import GithubTrigger
from relaunch.core.triggers.events import (
    GithubEvent,
    Package,
    Push,
    Release,
    RepositoryDispatch,
    WorkflowDispatch,
    WorkflowRun,
    list_github_obstacles,
)
from relaunch.core.triggers.matching import IgnoredEvent
from relaunch.ports import PermanentError

SHA = "4b1d8e6f02a97c35e8d0714b6a2f93c5d8e07b1a"
BEFORE = "9f2c41d7a0be5836d1c94e70b8fa2361d5e7c048"
NO_COMMIT = "0" * 40
OCTOKIT = [
    pytest.param(path.name.partition(".")[0], json.loads(path.read_text(encoding="utf-8")), id=path.stem)
    for path in sorted((EVENTS / "octokit").glob("*.json"))
]


def parse(event: str, payload: Any, delivery: str = "guid-1") -> GithubEvent | IgnoredEvent:
    message = {"source": "github", "event": event, "delivery": delivery, "body_sha256": "ab", "payload": payload}
    (parsed,) = parse_intake_message(json.dumps(message))
    assert isinstance(parsed, GithubEvent | IgnoredEvent)
    return parsed


def parse_event(event: str, payload: Any, delivery: str = "guid-1") -> GithubEvent:
    parsed = parse(event, payload, delivery)
    assert isinstance(parsed, GithubEvent)
    return parsed


SAMPLES = {
    "push": load_event("github.push"),
    "workflow_dispatch": load_event("github.workflow_dispatch"),
    "repository_dispatch": load_event("github.repository_dispatch"),
    "workflow_run": load_event("github.workflow_run.completed"),
    "release": load_event("github.release.published"),
    "package": load_event("github.package.published"),
}
PUSH, PACKAGE = SAMPLES["push"], SAMPLES["package"]
WORKFLOW_DISPATCH, REPOSITORY_DISPATCH = SAMPLES["workflow_dispatch"], SAMPLES["repository_dispatch"]
ACME = {"repository": "acme/vision", "sender": "sara-acme"}
EXPECTED = {
    "push": Push(
        identity=f"github:push:acme/vision:refs/heads/main:{BEFORE}:{SHA}:2026-11-03T12:30:41Z",
        ref="refs/heads/main",
        sha=SHA,
        paths=("README.md", "train/resnet.py", "train/schedule.py"),
        **ACME,
    ),
    "workflow_dispatch": WorkflowDispatch(
        identity="github:workflow_dispatch:acme/vision:guid-1",
        ref="refs/heads/main",
        workflow=".github/workflows/train.yml",
        inputs={"learning_rate": "0.05", "epochs": "90"},
        body_sha256="ab",
        **ACME,
    ),
    "repository_dispatch": RepositoryDispatch(
        identity="github:repository_dispatch:acme/vision:guid-1",
        ref="refs/heads/main",
        event_type="train",
        inputs={"learning_rate": "0.05", "epochs": "90"},
        body_sha256="ab",
        **ACME,
    ),
    "workflow_run": WorkflowRun(
        identity="github:workflow_run:acme/vision:11873640215:1:completed",
        ref="refs/heads/main",
        sha=SHA,
        action="completed",
        conclusion="success",
        workflow="Build image",
        path=".github/workflows/image.yml",
        run_event="push",
        **ACME,
    ),
    "release": Release(
        identity="github:release:acme/vision:181402277:published:2026-11-03T14:02:10Z",
        ref="refs/tags/v2.3.0",
        action="published",
        **ACME,
    ),
    "package": Package(
        identity="github:package:acme/vision:vision-trainer:301775902:"
        "sha256:5d0c41f2b6a87e9301d7c8be4f2a6950e1b3d4c7a8f06925be17d3409c6fa812:published",
        sha=SHA,
        action="published",
        package="vision-trainer",
        tag="v2.3.0",
        is_container=True,
        **ACME,
    ),
}


@pytest.mark.parametrize("event", SAMPLES)
def test_a_sample_is_read(event: str) -> None:
    assert parse(event, SAMPLES[event]) == EXPECTED[event]


def test_a_registry_package_is_a_package() -> None:
    payload = {key: value for key, value in PACKAGE.items() if key != "package"}

    assert parse("registry_package", {**payload, "registry_package": PACKAGE["package"]}) == EXPECTED["package"]


@pytest.mark.parametrize(("name", "payload"), OCTOKIT)
def test_every_example_of_octokit_is_read(name: str, payload: Any) -> None:
    event = parse_event(name, payload)

    assert event.repository == payload["repository"]["full_name"]
    assert event.sender == payload["sender"]["login"]


def test_octokits_examples_are_there() -> None:
    assert len(OCTOKIT) == 21


@pytest.mark.parametrize(("name", "payload"), OCTOKIT)
def test_a_reduced_payload_reads_as_the_whole_one(name: str, payload: Any) -> None:
    assert parse(name, trim_payload(payload)) == parse(name, payload)


@pytest.mark.parametrize("event", SAMPLES)
def test_a_reduced_sample_reads_as_the_whole_one(event: str) -> None:
    reduced = trim_payload(SAMPLES[event])

    assert parse(event, reduced) == EXPECTED[event]
    assert len(json.dumps(reduced)) < len(json.dumps(SAMPLES[event])) / 2


@pytest.mark.parametrize("event", ["push", "workflow_run", "release", "package"])
def test_a_redelivery_under_another_id_is_the_same_event(event: str) -> None:
    assert parse(event, SAMPLES[event], "guid-1") == parse(event, SAMPLES[event], "guid-2")


@pytest.mark.parametrize("event", ["workflow_dispatch", "repository_dispatch"])
def test_a_dispatch_may_be_repeated_and_its_redelivery_is_no_repetition(event: str) -> None:
    first, redelivered, second = (parse_event(event, SAMPLES[event], guid) for guid in ("guid-1", "guid-1", "guid-2"))

    assert first.identity == redelivered.identity != second.identity


def test_a_dispatch_without_a_delivery_id_is_told_by_its_body() -> None:
    assert parse_event("workflow_dispatch", WORKFLOW_DISPATCH, "").identity.endswith(":sha256:ab")


@pytest.mark.parametrize("header", SAMPLES)
@pytest.mark.parametrize("body", SAMPLES)
def test_a_body_under_the_name_of_another_event_is_poison(header: str, body: str) -> None:
    if header == body:
        assert parse(header, SAMPLES[body])
    else:
        with pytest.raises(PermanentError, match=f"guid-1 is not that of a {header}: "):
            parse(header, SAMPLES[body])


@pytest.mark.parametrize("event", ["create", "delete", "pull_request", "check_run", "ping"])
def test_other_events_start_nothing(event: str) -> None:
    assert parse(event, {"action": "opened"}) == IgnoredEvent(f"{event} events start nothing")


def test_a_message_without_a_payload_is_poison() -> None:
    with pytest.raises(PermanentError, match="payload: Field required"):
        parse_intake_message({"source": "github", "event": "push", "body_sha256": "ab"})


@pytest.mark.parametrize("given", [{}, {"body_sha256": ""}])
def test_a_message_without_the_hash_of_its_body_is_poison(given: dict[str, str]) -> None:
    with pytest.raises(PermanentError, match="body_sha256"):
        parse_intake_message({"source": "github", "event": "workflow_dispatch", "payload": WORKFLOW_DISPATCH, **given})


# --- push


def pushed(
    before: str, after: str, pushed_at: Any = None, delivery: str = "guid-1", ref: str = "refs/heads/main"
) -> str:
    repository = {"full_name": "acme/vision", "pushed_at": pushed_at}
    return parse_event(
        "push", {"ref": ref, "before": before, "after": after, "repository": repository}, delivery
    ).identity


@pytest.mark.parametrize(
    ("ref", "before"), [("refs/heads/main", BEFORE), ("refs/tags/v1", NO_COMMIT)], ids=["branch", "tag"]
)
def test_a_push_its_revert_and_the_same_push_again_are_three_events(ref: str, before: str) -> None:
    first = pushed(before, SHA, 1_793_709_041, "guid-1", ref)
    revert = pushed(SHA, before, 1_793_709_101, "guid-2", ref)
    again = pushed(before, SHA, 1_793_709_161, "guid-3", ref)

    assert len({first, revert, again}) == 3
    # A second webhook sends the same content under an id of its own, and a redelivery keeps both.
    assert pushed(before, SHA, 1_793_709_161, "guid-4", ref) == again


@pytest.mark.parametrize(
    ("seconds", "at"),
    [
        (1_793_709_041, datetime(2026, 11, 3, 12, 30, 41, tzinfo=UTC)),
        ("1793709041", datetime(2026, 11, 3, 12, 30, 41, tzinfo=UTC)),
        (None, None),
        ("2026-11-03T12:30:41Z", None),
        ("999999999999", None),
    ],
)
def test_a_push_is_known_by_when_github_got_it(seconds: Any, at: datetime | None) -> None:
    repository = {"full_name": "acme/vision", "pushed_at": seconds}
    event = parse_event("push", {**PUSH, "repository": repository})
    assert isinstance(event, Push)
    assert event.pushed_at == at


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("push", {**PUSH, "repository": {"full_name": "acme/vision"}}),
        ("release", {**SAMPLES["release"], "release": {**SAMPLES["release"]["release"], "published_at": None}}),
    ],
)
def test_an_event_without_a_time_is_told_by_the_hash_of_its_body(event: str, payload: Any) -> None:
    first, second = (parse_event(event, payload, guid) for guid in ("guid-1", "guid-2"))

    assert first.identity == second.identity
    assert first.identity.endswith(":sha256:ab")


def test_a_deleted_branch_is_seen() -> None:
    push = parse_event("push", {**PUSH, "deleted": True, "after": NO_COMMIT, "head_commit": None, "commits": []})

    assert (push.is_deleted, push.sha, push.has_commits) == (True, "", False)


def test_the_commit_of_an_annotated_tag_is_the_one_it_points_to() -> None:
    push = parse_event("push", {**PUSH, "ref": "refs/tags/v1", "after": "a" * 40})

    assert push.sha == SHA


def test_the_pushed_commit_is_taken_where_no_head_commit_is_told() -> None:
    assert parse_event("push", {key: PUSH[key] for key in ("ref", "before", "after", "repository")}).sha == SHA


def changing(*numbers: int) -> dict[str, Any]:
    names = ("added", "modified", "removed")
    return {name: [f"{name}/{index}" for index in range(number)] for name, number in zip(names, numbers, strict=True)}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"created": True, "before": NO_COMMIT}, id="new-branch"),
        pytest.param({"forced": True}, id="forced"),
        pytest.param({"commits": [PUSH["commits"][0]] * 2048}, id="too-many-commits"),
        pytest.param({"commits": [PUSH["commits"][0], changing(1000, 1999, 1)]}, id="too-many-files-of-a-commit"),
        pytest.param({"commits": [{"id": SHA}]}, id="commits-without-lists"),
    ],
)
def test_changed_paths_are_unknown_when_the_payload_cannot_tell_all(change: dict[str, Any]) -> None:
    assert parse_event("push", {**PUSH, **change}).paths is None
    assert parse_event("push", trim_payload({**PUSH, **change})).paths is None


@pytest.mark.parametrize(
    ("commits", "count"),
    [
        pytest.param([changing(1000, 1999, 0)], 2999, id="of-one-commit"),
        pytest.param([changing(2999, 0, 0), changing(0, 2998, 1), changing(1, 1, 1)], 5998, id="of-commits-together"),
        pytest.param([changing(0, 0, 0)], 0, id="of-an-empty-commit"),
    ],
)
def test_fewer_paths_than_github_lists_at_most_are_all(commits: list[Any], count: int) -> None:
    whole = {**PUSH, "commits": commits}
    reduced = trim_payload(whole)

    event = parse_event("push", whole)
    assert event == parse_event("push", reduced)
    assert (len(event.paths or ()), event.has_commits) == (count, True)
    assert all(len(commit["added"]) < 3000 for commit in reduced["commits"])


@pytest.mark.parametrize(
    ("sample", "filters", "starts"),
    [
        ("branch-cut", {}, True),
        ("branch-cut", {"branches": ("experiment/**",)}, True),
        ("branch-cut", {"branches": ("main",)}, False),
        ("branch-cut", {"paths": ("train/**",)}, False),
        ("forced-back", {}, True),
        ("forced-back", {"paths": ("train/**",)}, True),
    ],
)
def test_a_branch_that_is_cut_or_set_back_starts_what_watches_it(
    sample: str, filters: dict[str, tuple[str, ...]], *, starts: bool
) -> None:
    push = parse_event("push", load_event(f"github.push.{sample}"))

    obstacles = list(list_github_obstacles(GithubTrigger("acme/vision", "push", **filters), push))

    assert (obstacles == []) == starts
    assert push.sha == load_event(f"github.push.{sample}")["after"]


# --- dispatches


@pytest.mark.parametrize(
    ("client_payload", "inputs"),
    [
        pytest.param({"inputs": {"n": "1"}, "other": "x"}, {"n": "1"}, id="inputs"),
        pytest.param({"n": "1", "m": "x"}, {"n": "1", "m": "x"}, id="top-level"),
        pytest.param({"n": 5, "x": 0.5, "b": True, "z": None}, {"n": "5", "x": "0.5", "b": "true"}, id="no-text"),
        pytest.param({"n": {"deep": [1, 2]}}, {"n": '{"deep":[1,2]}'}, id="nested-is-judged-by-its-pattern"),
        pytest.param({"inputs": "text"}, {"inputs": "text"}, id="an-input-called-inputs"),
        pytest.param({}, {}, id="empty"),
        pytest.param(None, {}, id="null"),
    ],
)
def test_the_client_payload_gives_the_inputs(client_payload: Any, inputs: dict[str, str]) -> None:
    dispatch = parse_event("repository_dispatch", {**REPOSITORY_DISPATCH, "client_payload": client_payload})

    assert dispatch.inputs == inputs


def test_a_workflow_dispatch_may_have_no_inputs() -> None:
    assert parse_event("workflow_dispatch", {**WORKFLOW_DISPATCH, "inputs": None}).inputs == {}


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("repository_dispatch", {**REPOSITORY_DISPATCH, "client_payload": {"relaunch_job_id": "resnet-1"}}),
        ("workflow_dispatch", {**WORKFLOW_DISPATCH, "inputs": {"relaunch_job_id": "resnet-1"}}),
    ],
)
def test_a_dispatch_that_relaunch_sent_itself_starts_nothing(event: str, payload: Any) -> None:
    assert parse(event, payload) == IgnoredEvent("Relaunch sent this dispatch itself, for job resnet-1")


# --- releases


@pytest.mark.parametrize(("target", "sha"), [(SHA, SHA), ("main", ""), (None, ""), ("M" * 40, "")])
def test_a_release_names_a_commit_or_a_branch(target: str | None, sha: str) -> None:
    release = {"id": 9, "tag_name": "", "target_commitish": target}

    event = parse_event("release", {**SAMPLES["release"], "release": release})

    assert (event.sha, event.ref) == (sha, "")


def test_a_release_that_is_published_again_is_another_event() -> None:
    payload = SAMPLES["release"]
    again = {**payload, "release": {**payload["release"], "published_at": "2026-11-04T09:00:00Z"}}

    assert parse_event("release", again).identity != parse_event("release", payload).identity


def test_an_event_without_a_sender_is_read() -> None:
    for event, payload in SAMPLES.items():
        assert parse_event(event, {key: value for key, value in payload.items() if key != "sender"}).sender == ""
