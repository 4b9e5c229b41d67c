"""What fits the terminal."""

import io
import re
import sys

import pytest

from fakes.builders import NOW
from relaunch_cli.views.screen import print_note, progress

ERASED = "\x1b[2K"
COMMANDS = [("ps", "--all"), ("plan", "resnet"), ("show",), ("explain",), ("definitions",), ("events",)]
NAMED = {"plan": "g4dn.xlarge", "definitions": "resnet", "events": "github"}


@pytest.fixture
def job_id(session):
    session.deps.events.record_event("github:push:acme/vision:refs/heads/main", "github", "resnet-1", [], NOW)
    return session.run_interrupted_job()


def of_job(command, job_id):
    return (*command, job_id) if command[0] in {"show", "explain"} else command


@pytest.mark.parametrize("columns", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("command", COMMANDS)
def test_tables_fit_the_terminal_and_names_are_whole(relaunch, job_id, command, columns):
    shown = relaunch(*of_job(command, job_id), columns=columns).stdout

    # What is never cut may be longer than 40 columns: an ARN, the identity of an event.
    words = [word for word in shown.split() if len(word) > 24]
    too_long = [line for line in shown.splitlines() if len(line.rstrip()) > columns]
    assert [line for line in too_long if not any(word in line for word in words)] == []
    assert NAMED.get(command[0], job_id) in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_in_a_pipe_a_record_is_a_line_however_long(relaunch, job_id, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")

    piped, wide = relaunch(*of_job(command, job_id)).stdout, relaunch(*of_job(command, job_id), columns=1000).stdout

    assert piped == wide


def test_a_note_is_not_written_behind_the_status_line(monkeypatch):
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm")

    with progress("reading the job") as status:
        status.update(spinner="line")  # which shows it at once
        print_note("the newest job: demo-1")
    print_note("over")

    shown, between, _ = re.split("the newest job: demo-1|over", written.getvalue())
    assert ERASED in shown.rpartition("reading the job")[2]
    assert ERASED in between.rpartition("reading the job")[2]
