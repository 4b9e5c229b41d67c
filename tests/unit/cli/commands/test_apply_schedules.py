"""Schedules come and go with the definitions that have them, also those that an `apply` left behind."""

import re

import pytest

from relaunch.ports import PermanentError, TransientError

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


def without_schedule(file):
    file.write_text(NIGHTLY.partition("    on:")[0], encoding="utf-8")
    return str(file)


def test_a_schedule_that_could_not_be_removed_is_removed_by_the_next_apply(relaunch, session, file):
    def be_away() -> None:
        raise TransientError("Scheduler does not answer")

    relaunch("apply", str(file))
    # The command is interrupted in the pause before the third try.
    session.schedules.on_change = [be_away] * 2
    failed = relaunch("apply", without_schedule(file))
    again = relaunch("apply", str(file))

    assert failed.exit_code != 0
    assert "not all schedules are up to date: apply again" in failed.stderr
    assert session.deps.definitions.load_definition("nightly").triggers == ()
    assert [line.rpartition(": ")[2] for line in lines_about_schedules(again)] == ["removed"], again.stderr
    assert session.schedules.found == {}


@pytest.mark.parametrize(
    ("error", "is_told"), [(TransientError("no answer"), True), (PermanentError("not authorized"), False)]
)
def test_who_has_no_schedule_is_held_up_by_nothing_of_scheduler(relaunch, session, file, error, is_told):
    def fail() -> None:
        raise error

    session.schedules.list_schedules = fail

    applied = relaunch("apply", without_schedule(file))

    assert applied.exit_code == 0
    assert ("no answer; what an `apply` that was cut short left there stays" in applied.stderr) == is_told
