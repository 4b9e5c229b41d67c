"""Names that do not exist."""

import pytest


@pytest.mark.parametrize("command", ["show", "explain", "logs", "cancel"])
def test_an_unknown_job_ends_with_3_and_names_the_nearest(relaunch, session, command):
    job_id = session.submit()

    result = relaunch(command, job_id[1:])

    assert result.exit_code == 3
    assert f"there is no job '{job_id[1:]}'" in result.stderr
    assert f"did you mean {job_id}?" in result.stderr


@pytest.mark.parametrize("command", ["show", "explain", "logs", "open", "wait", "cancel"])
def test_the_beginning_of_an_id_is_enough(relaunch, session, command):
    running, other = session.run_interrupted_job(), session.submit("other")
    beginning = next(running[:length] for length in range(1, 99) if not other.startswith(running[:length]))
    session.on_pause = [lambda: relaunch("cancel", running)]

    result = relaunch(command, beginning, "--json")

    assert result.exit_code in {0, 130}
    assert "there is no job" not in result.stderr


def test_a_beginning_that_several_jobs_have_names_them_and_cancels_none(relaunch, session):
    jobs = sorted(session.submit(key) for key in "ab")

    result = relaunch("cancel", "resnet-")

    assert result.exit_code == 2
    assert "2 jobs begin with 'resnet-'" in result.stderr
    assert all(job_id in result.stderr for job_id in jobs)
    assert relaunch("cancel", "").exit_code == 3
    assert {row["state"] for row in relaunch("ps", "--json").document["jobs"]} == {"WAITING"}


def test_of_many_jobs_only_some_are_named(relaunch, session):
    for key in "abcdef":
        session.submit(key)

    assert relaunch("show", "resnet-").stderr.rstrip().endswith(", …")


def test_an_unknown_definition_names_the_nearest(relaunch):
    result = relaunch("plan", "resnt")

    assert result.exit_code == 3
    assert "did you mean resnet?" in result.stderr


def test_a_mistyped_type_is_named_with_the_nearest(relaunch):
    result = relaunch("amis", "g5xlarge")

    assert result.exit_code == 2
    assert "there is no accelerated instance type 'g5xlarge'" in result.stderr
    assert "did you mean g5.xlarge" in result.stderr


def test_an_unknown_type_to_explain_names_the_nearest(relaunch):
    result = relaunch("plan", "--gpu", "1", "--explain", "g5xlarge")

    assert result.exit_code == 2
    assert "did you mean g5.xlarge" in result.stderr


@pytest.mark.parametrize("command", ["show", "explain", "logs", "wait"])
def test_a_dash_is_the_newest_job_which_is_named(relaunch, session, command):
    session.submit("older")
    session.clock.advance(1)
    newest = session.submit("newer")
    session.on_pause = [lambda: relaunch("cancel", newest)]

    result = relaunch(command, "-")

    assert result.exit_code in {0, 130}
    assert f"the newest job: {newest}" in result.stderr


def test_a_dash_without_a_job_is_not_found(relaunch):
    result = relaunch("show", "-")

    assert (result.exit_code, result.stdout) == (3, "")
    assert "there is no job yet" in result.stderr
