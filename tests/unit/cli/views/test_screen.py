"""The width of tables."""

import pytest


@pytest.mark.parametrize("command", [("ps", "--all"), ("plan", "resnet"), ("show",), ("explain",), ("definitions",)])
def test_tables_fit_80_columns(relaunch, session, command):
    job_id = session.run_interrupted_job()
    arguments = command if len(command) > 1 or command == ("definitions",) else (*command, job_id)

    assert max(len(line.rstrip()) for line in relaunch(*arguments).stdout.splitlines()) <= 80
