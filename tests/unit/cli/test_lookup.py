"""Names that do not exist."""

import pytest


@pytest.mark.parametrize("command", ["show", "explain", "logs", "cancel"])
def test_an_unknown_job_ends_with_3_and_names_the_nearest(relaunch, session, command):
    job_id = session.submit()

    result = relaunch(command, job_id[:-1])

    assert result.exit_code == 3
    assert f"there is no job '{job_id[:-1]}'" in result.stderr
    assert f"did you mean {job_id}?" in result.stderr


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
