"""Schedules come and go with the definitions that have them; without one Scheduler is not asked."""

import re

import pytest

from relaunch.ports import PermanentError

SCHEDULE = "cron(0 6 ? * MON-FRI *) Europe/Berlin"
NIGHTLY = """jobs:
  nightly:
    task_definition: trainer
    container: main
    accelerator: {gpu: {memory: 16GiB}}
    on: [schedule: {expression: "cron(0 6 ? * MON-FRI *)", time_zone: Europe/Berlin}]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "relaunch.yaml"
    path.write_text(NIGHTLY, encoding="utf-8")
    return path


def lines_about_schedules(outcome):
    return [line for line in outcome.stderr.splitlines() if line.startswith("schedule ")]


def test_a_schedule_comes_with_its_first_definition_and_goes_with_the_last(relaunch, session, file):
    added = relaunch("apply", str(file))
    again = relaunch("apply", str(file), "--dry-run")
    file.write_text(NIGHTLY.partition("    on:")[0], encoding="utf-8")
    removed = relaunch("apply", str(file), "--json").document

    (created,) = lines_about_schedules(added)
    name = created.split()[1]
    assert re.fullmatch(rf"schedule {name} \({re.escape(SCHEDULE)}\): created, next at \S+ 06:00 CES?T", created)
    assert lines_about_schedules(again) == []
    expression, zone = SCHEDULE.rsplit(" ", 1)
    assert removed["schedules"] == [{"name": name, "change": "removed", "expression": expression, "time_zone": zone}]
    assert session.schedules.log == [("put", SCHEDULE), ("remove", name)]


def test_a_schedule_goes_with_a_definition_that_is_deleted(relaunch, session, file):
    relaunch("apply", str(file))

    deleted = relaunch("definitions", "delete", "nightly", "--yes")

    assert deleted.stderr.endswith(f"({SCHEDULE}): removed\n")
    assert session.schedules.found == {}


def test_a_schedule_that_is_refused_keeps_the_definition_out(relaunch, session, file):
    def refuse() -> None:
        raise PermanentError("no such zone")

    session.schedules.on_change = [refuse]

    failed = relaunch("apply", str(file))

    assert failed.exit_code != 0
    assert "no such zone" in failed.stderr
    assert session.deps.definitions.load_definition("nightly") is None


def test_without_a_schedule_scheduler_is_not_asked(relaunch, session, file):
    file.write_text(NIGHTLY.partition("    on:")[0], encoding="utf-8")

    relaunch("apply", str(file))
    relaunch("definitions", "delete", "nightly", "--yes")

    assert session.schedules.reads == 0
