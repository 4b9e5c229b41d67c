"""submit: ids for scripts, progress for people, exit codes for both."""

import pytest

from fakes.builders import make_definition
from relaunch.core.definitions.definition import InputRule
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.submit_job import submit_request


@pytest.fixture(autouse=True)
def _definition(session):
    rules = {"learning_rate": InputRule("[0-9.]+", "0.1"), "epochs": InputRule("[0-9]+", "1")}
    session.deps.definitions.save_definition(make_definition(inputs=rules, max_failures=0))


def only_job(session):
    (summary,), _ = session.jobs.list_jobs(10)
    return session.jobs.job(summary.job_id)


def test_submit_prints_the_id_alone(relaunch, session):
    result = relaunch("submit", "resnet", "-i", "learning_rate=0.2", "--input", "epochs=3")

    assert result.exit_code == 0
    assert result.stdout == f"{only_job(session).job_id}\n"
    assert only_job(session).inputs == {"learning_rate": "0.2", "epochs": "3"}


def test_every_call_is_a_job_of_its_own_unless_a_key_says_otherwise(relaunch):
    first, second = relaunch("submit", "resnet").stdout, relaunch("submit", "resnet").stdout
    once, again = relaunch("submit", "resnet", "--key", "a"), relaunch("submit", "resnet", "--key", "a")

    assert first != second
    assert once.stdout == again.stdout
    assert "is there already" in again.stderr


def test_ctrl_c_after_the_job_was_made_says_that_it_may_have_been(relaunch, session, monkeypatch):
    def submit(*given):
        submit_request(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr("relaunch_cli.commands.submit.submit_request", submit)

    result = relaunch("submit", "resnet")

    assert (result.exit_code, result.stdout) == (130, "")
    assert "the job may have been submitted, `relaunch ps` lists it then" in result.stderr
    assert only_job(session).job_id


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("-i", "learning_rate"), "'learning_rate' is not KEY=VALUE"),
        (("-i", "=1"), "'=1' is not KEY=VALUE"),
        (("-i", "epochs=1", "-i", "epochs=2"), "input epochs is given twice"),
        (("-i", "learning_rat=1"), "did you mean learning_rate?"),
        (("-i", "zzz=1"), "declared: learning_rate, epochs"),
        (("-i", "epochs=many"), "does not match"),
        (("--image-tag", "v7"), "no trigger of resnet watches images"),
    ],
)
def test_bad_inputs_are_refused_before_a_job_is_made(relaunch, session, arguments, text):
    result = relaunch("submit", "resnet", *arguments)

    assert result.exit_code == 2
    assert text in result.stderr
    assert session.jobs.list_jobs(10)[0] == []


def test_a_value_may_contain_an_equals_sign(relaunch, session):
    session.deps.definitions.save_definition(make_definition(inputs={"extra": InputRule(".*")}))

    relaunch("submit", "resnet", "-i", "extra=a=b")

    assert only_job(session).inputs == {"extra": "a=b"}


def test_a_key_is_the_callers_own(relaunch, session):
    mine = relaunch("submit", "resnet", "--key", "a").stdout
    session.caller = "arn:aws:iam::111122223333:user/bob"
    theirs = relaunch("submit", "resnet", "--key", "a").stdout

    assert mine != theirs
    assert session.jobs.job(theirs.strip()).trigger.caller == session.caller


def test_beyond_the_limit_of_waiting_jobs_none_is_submitted(relaunch, session):
    session.deps.definitions.save_definition(make_definition(max_waiting_jobs=1))
    relaunch("submit", "resnet")

    refused = relaunch("submit", "resnet")

    assert refused.exit_code == 4
    assert "too many jobs wait: 1 of resnet (max_waiting_jobs is 1)" in refused.stderr
    assert "`relaunch cancel` makes room" in refused.stderr


def job_steps(session, exit_code: int = 0):
    """Let the job that is watched be launched, run and end, a step per look."""
    task = []
    return [
        lambda: task.append(session.launch(only_job(session).job_id)),
        lambda: session.run(task[0]),
        lambda: session.finish(task[0], exit_code),
    ]


def test_waiting_shows_every_step_and_ends_with_the_job(relaunch, session):
    session.on_pause = job_steps(session)

    result = relaunch("submit", "resnet", "--wait")

    assert result.exit_code == 0
    assert [line.split()[1] for line in result.stderr.splitlines() if line[:2].isdigit()] == [
        "WAITING",
        "LAUNCHING",
        "LAUNCHING",
        "RUNNING",
        "SUCCEEDED",
    ]


def test_a_job_that_failed_ends_with_1(relaunch, session):
    session.on_pause = job_steps(session, exit_code=1)

    result = relaunch("submit", "resnet", "--wait", "--json")

    assert result.exit_code == 1
    assert result.document["state"] == "FAILED"


def test_a_job_that_was_cancelled_ends_with_130(relaunch, session):
    session.on_pause = [lambda: cancel_job(only_job(session).job_id, "enough", session.deps)]

    assert relaunch("submit", "resnet", "--wait").exit_code == 130


def test_ctrl_c_leaves_the_job_running_and_says_so(relaunch, session):
    result = relaunch("submit", "resnet", "--wait")

    assert result.exit_code == 130
    assert "the job goes on: it is WAITING" in result.stderr
    assert not only_job(session).state.is_final


def test_a_family_without_a_revision_makes_a_job_that_failed(relaunch, session):
    session.deps.definitions.save_definition(make_definition(task_definition="missing"))

    failed = relaunch("submit", "resnet")

    assert failed.exit_code == 1
    assert f"relaunch: {failed.stdout.strip()} is FAILED: the family missing" in failed.stderr
    assert "correct what the reason names, then `relaunch retry`" in failed.stderr


def test_a_key_of_other_inputs_is_a_wrong_usage(relaunch, session):
    relaunch("submit", "resnet", "--key", "a", "-i", "epochs=1")

    other = relaunch("submit", "resnet", "--key", "a", "-i", "epochs=2")

    assert other.exit_code == 2
    assert "with other values of epochs; use another key" in other.stderr


@pytest.mark.parametrize("key", ["", "  "])
def test_an_empty_idempotency_key_is_a_variable_that_nobody_set(relaunch, session, key):
    submitted = relaunch("submit", "resnet", "--key", key)
    retried = relaunch("retry", "resnet-0", "--key", key)

    assert (submitted.exit_code, retried.exit_code) == (2, 2)
    assert "--key is empty" in submitted.stderr
    assert relaunch("ps", "--all", "--json").document["jobs"] == []
