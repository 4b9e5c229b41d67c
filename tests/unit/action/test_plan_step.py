"""The step in the mode plan: what a pull request gets to see, whoever wrote it and whatever GitHub refuses."""

import json
import re
from pathlib import Path

import pytest

from fakes.action_services import ROLE, lost
from fakes.pull_request import AFTER, BASE, BEFORE, FILE, HEAD, MARKER, MERGE, OLD_BASE, PullRequest
from relaunch_action.http_requests import Response
from relaunch_local.simulation.notices.github_refusals import REFUSALS


@pytest.fixture
def pull(tmp_path: Path) -> PullRequest:
    return PullRequest(tmp_path)


def test_what_is_changed_and_what_it_would_run_on_is_in_the_summary_and_in_a_comment(pull: PullRequest) -> None:
    assert pull.run() == 0

    (body,) = pull.bodies
    assert body.startswith(f"{MARKER}\n<h3>Relaunch: what <code>relaunch.yaml</code> would run</h3>\n")
    for text in (body, pull.summary):
        assert (
            "<td><code>accelerator.gpu.memory</code></td><td><code>16GiB</code></td><td><code>20GiB</code></td>" in text
        )
        assert re.search(r"A job would run on <code>[^<]+</code> for <code>[0-9.]+</code> USD per hour", text)
        assert f"At <code>{HEAD[:12]}</code>, compared with <code>{BASE[:12]}</code>" in text
    assert pull.services.stack.started == []
    assert [each["RoleArn"] for each in pull.services.assumed] == [ROLE]


def test_the_next_push_updates_the_comment(pull: PullRequest) -> None:
    pull.repository.comment("Looks good", "ada")
    pull.run()
    pull.repository.files[MERGE, FILE] = AFTER.replace("20GiB", "22GiB")
    pull.run()

    first, ours = pull.bodies
    assert first == "Looks good"
    assert "<code>22GiB</code>" in ours


def test_a_run_that_says_the_same_writes_nothing(pull: PullRequest) -> None:
    pull.run()
    pull.run()

    methods = [method for method, _, _ in pull.services.github.requests]
    assert (methods.count("POST"), methods.count("PATCH")) == (1, 0)


def test_our_comment_is_found_behind_hundreds_of_others(pull: PullRequest) -> None:
    for _ in range(250):
        pull.repository.comment("me too", "ada")
    pull.run()
    pull.repository.files[MERGE, FILE] = BEFORE.replace("16GiB", "8GiB")
    pull.run()

    assert sum(each.startswith(MARKER) for each in pull.bodies) == 1


def test_among_too_many_comments_no_other_one_is_made(pull: PullRequest) -> None:
    for _ in range(1_000):
        pull.repository.comment("me too", "ada")

    assert pull.run() == 0
    assert len(pull.bodies) == 1_000
    assert "1000 comments or more" in pull.warnings[0]


def test_a_comment_of_a_stranger_with_our_marker_is_left_alone(pull: PullRequest) -> None:
    pull.repository.comment(f"{MARKER}\nall is well", "mallory")
    pull.run()

    theirs, ours = pull.bodies
    assert theirs.endswith("all is well")
    assert ours.startswith(MARKER)


def test_of_two_comments_which_two_runs_made_one_is_kept(pull: PullRequest) -> None:
    pull.repository.comment(f"{MARKER}\nof one run")
    pull.repository.comment(f"{MARKER}\nof another one")
    pull.run()

    (body,) = pull.bodies
    assert "<code>20GiB</code>" in body


def test_a_comment_whose_answer_was_lost_is_not_made_twice(pull: PullRequest) -> None:
    left = [0, 0]
    pull.services.github.lose = lambda method, _: (left.pop(), {}, "") if method == "POST" and left else None

    assert pull.run() == 0
    assert len(pull.bodies) == 1


@pytest.mark.parametrize("name", REFUSALS)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_refused_comment_fails_nothing_and_the_summary_has_the_plan(
    pull: PullRequest, name: str, method: str
) -> None:
    pull.refuse(name, method)

    assert pull.run() == 0
    assert pull.bodies == []
    assert "<code>20GiB</code>" in pull.summary
    (warning,) = pull.warnings
    assert f"status {REFUSALS[name].status}" in warning
    assert pull.time.seconds < 300


@pytest.mark.parametrize(
    "name", [name for name, each in REFUSALS.items() if each.may_pass and name != "a-primary-limit"]
)
def test_what_may_pass_is_waited_for_once(pull: PullRequest, name: str) -> None:
    pull.refuse(name, "POST", times=1)

    assert pull.run() == 0
    assert len(pull.bodies) == 1
    assert pull.time.seconds >= float(REFUSALS[name].headers.get("Retry-After", "0"))


def test_a_limit_that_lasts_is_not_waited_for(pull: PullRequest) -> None:
    refusal = REFUSALS["a-secondary-limit"]
    status, headers, body = refusal.answer
    pull.services.github.refuse = lambda method, path: (
        (status, {**headers, "Retry-After": "3600"}, body) if method == "POST" else None
    )

    assert pull.run() == 0
    assert pull.time.seconds == 0
    assert "not in a comment" in pull.warnings[0]


def test_without_the_wish_for_one_there_is_no_comment(pull: PullRequest) -> None:
    assert pull.run(comment="false") == 0
    assert pull.bodies == []
    assert "<code>20GiB</code>" in pull.summary


def test_a_pull_request_that_changes_nothing_gets_no_comment(pull: PullRequest) -> None:
    pull.repository.files[MERGE, FILE] = f"# a remark\n{BEFORE}"

    assert pull.run() == 0
    assert pull.bodies == []
    assert "Unchanged: <code>resnet</code>" in pull.summary


def test_a_change_that_was_taken_back_updates_the_comment(pull: PullRequest) -> None:
    pull.run()
    pull.repository.files[MERGE, FILE] = BEFORE
    pull.run()

    (body,) = pull.bodies
    assert "Unchanged: <code>resnet</code>" in body


@pytest.mark.parametrize("head", ["mallory/vision", ""])
def test_a_fork_is_told_that_there_is_no_plan(pull: PullRequest, head: str) -> None:
    pull.head = head
    pull.variables = {"ACTIONS_ID_TOKEN_REQUEST_URL": "", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": ""}

    assert pull.run() == 0
    assert "The pull request comes from a fork." in pull.summary
    assert pull.services.github.requests == []
    assert pull.services.asked == []


def test_a_fork_that_its_owner_gives_tokens_is_planned(pull: PullRequest) -> None:
    pull.head = "partner/vision"

    assert pull.run() == 0
    assert "<code>20GiB</code>" in pull.summary


def test_a_job_without_the_permission_is_told_so(pull: PullRequest) -> None:
    pull.variables = {"ACTIONS_ID_TOKEN_REQUEST_URL": ""}

    assert pull.run() == 1
    assert "permissions: {id-token: write}" in pull.errors[0]


@pytest.mark.parametrize("event", ["push", "pull_request_target", "workflow_run", ""])
def test_another_event_is_refused(pull: PullRequest, event: str) -> None:
    pull.event = event

    assert pull.run() == 1
    assert "`on: pull_request`" in pull.errors[0]
    assert pull.services.asked == []


def test_an_invalid_file_fails_the_job_and_is_commented(pull: PullRequest) -> None:
    pull.repository.files[MERGE, FILE] = AFTER.replace("accelerator", "acelerator")

    assert pull.run() == 1
    assert "The file is invalid:" in pull.bodies[0]
    assert "did you mean `accelerator`" in pull.bodies[0]
    assert "the definition file is invalid" in pull.errors[0]


def test_a_job_that_could_never_run_fails_the_step(pull: PullRequest) -> None:
    pull.repository.files[MERGE, FILE] = AFTER.replace("20GiB", "9999GiB")

    assert pull.run() == 1
    assert "Its jobs can not run" in pull.bodies[0]


def test_a_file_that_is_deleted_removes_its_definitions(pull: PullRequest) -> None:
    del pull.repository.files[MERGE, FILE]

    assert pull.run() == 0
    assert "<h4><code>resnet</code>: removed</h4>" in pull.bodies[0]


def test_a_file_that_is_nowhere_fails_the_step(pull: PullRequest) -> None:
    assert pull.run(definition_file="train/relaunch.yaml") == 1
    assert "neither the pull request nor its base branch has train/relaunch.yaml" in pull.errors[0]


def test_a_path_is_no_way_out_of_the_repository(pull: PullRequest) -> None:
    assert pull.run(definition_file="../../other/relaunch.yaml") == 1
    assert "definition-file" in pull.errors[0]
    assert pull.services.github.requests == []


def test_a_file_that_is_too_long_is_not_sent(pull: PullRequest) -> None:
    pull.repository.files[MERGE, FILE] = "#" * 250_001

    assert pull.run() == 1
    assert "longer than 250,000 characters" in pull.errors[0]
    assert pull.services.asked == []


def test_without_the_merge_commit_it_is_compared_with_the_base_of_the_event(pull: PullRequest) -> None:
    pull.repository.parents = {}
    pull.repository.files[OLD_BASE, FILE] = BEFORE

    assert pull.run() == 0
    assert f"compared with <code>{OLD_BASE[:12]}</code>" in pull.summary


def test_a_plan_api_that_is_away_fails_the_step(pull: PullRequest) -> None:
    pull.services.answers = [*lost(6)]

    assert pull.run() == 1
    assert "plan_api did not answer" in pull.errors[0]


def test_a_stack_without_plan_api_says_which_output_is_meant(pull: PullRequest) -> None:
    pull.services.answers = [Response(200, b"<html>")]

    assert pull.run() == 1
    assert "PlanApiUrl" in pull.errors[0]


INJECTIONS = (
    "![x](https://evil.example/a.png)",
    "[click](https://evil.example)",
    "@acme/owners please approve",
    "<img src=x onerror=alert(1)>",
    "</code></td></table>\n\n# Approved\n\n<table>",
    "```\n::error::x\n##[error]y",
    "https://evil.example/#123 acme/vision#1",
    "<!-- -->\n<script>",
    "\u202eevil\u2028next",
    "&#64;everyone",
)


@pytest.mark.parametrize("text", INJECTIONS)
def test_no_text_of_the_file_is_markup(pull: PullRequest, text: str) -> None:
    job = {"resnet": {"task_definition": "trainer", "accelerator": {"gpu": {"count": 1}}, "command": [text]}}
    pull.repository.files[MERGE, FILE] = json.dumps({"jobs": job})

    assert pull.run() == 0
    for rendered in (pull.bodies[0], pull.summary.rstrip("\n") + "\n"):
        check_inert(rendered)
    assert not [line for line in pull.log.splitlines() if line.startswith("::error")]


@pytest.mark.parametrize("text", INJECTIONS)
def test_no_key_of_an_invalid_file_is_markup(pull: PullRequest, text: str) -> None:
    pull.repository.files[MERGE, FILE] = json.dumps({"jobs": {text: {text: 1}}, text: text})

    assert pull.run() == 1
    for rendered in (pull.bodies[0], pull.summary.rstrip("\n") + "\n"):
        check_inert(rendered)
    assert len(pull.errors) == 1


def check_inert(rendered: str) -> None:
    """Check that a text is one block of HTML of our own elements, and that all other text in it is in `<code>`."""
    body = rendered.removeprefix(f"{MARKER}\n")
    # An empty line would end the block, and begin Markdown.
    assert "\n\n" not in body
    assert all(line.startswith("<") for line in body.splitlines())
    tags = set(re.findall(r"<(/?[a-z0-9]+)[^>]*>", body))
    assert {tag.lstrip("/") for tag in tags} <= {"h3", "h4", "p", "ul", "li", "table", "tr", "th", "td", "code", "b"}
    assert not re.search(r"<[a-z0-9]+ ", body)
    outside = re.sub(r"<code>.*?</code>", "", body)
    assert not re.search(r"evil|@|http|::|##|Approved", outside)
    assert body.isascii() or all(each.isprintable() for each in body.replace("\n", ""))


def test_a_comment_is_no_longer_than_github_takes(pull: PullRequest) -> None:
    inputs = {f"input-{number}"[:8] + str(number): {"pattern": "x+", "default": "x" * 400} for number in range(20)}
    job = {"task_definition": "trainer", "accelerator": {"gpu": {"count": 1}}}
    names = {each.replace("-", "_"): rule for each, rule in inputs.items()}
    jobs = {f"job-{number}": {**job, "inputs": names} for number in range(20)}
    pull.repository.files[MERGE, FILE] = json.dumps({"jobs": jobs})

    pull.run()

    (body,) = pull.bodies
    assert len(body) < 65_536
    assert body.endswith("the workflow run</a>.</p>\n")
    assert len(pull.summary.encode()) < 1 << 20
    assert len(pull.summary) > len(body)
