"""ps, show, explain, cancel and events."""

import json

import pytest

from fakes.builders import NOW, make_definition
from relaunch.core.definitions.definition import InputRule


def lived(stage) -> str:
    """Let a job be launched, interrupted, launched again and run; return its id."""
    job_id = stage.submit()
    first = stage.launch(job_id)
    stage.run(first)
    stage.interrupt(first)
    stage.run(stage.launch(job_id))
    return job_id


def test_ps_lists_open_jobs_newest_first_and_all_on_demand(relaunch, stage):
    running = lived(stage)
    stage.clock.advance(60)
    done = stage.submit("second")
    task = stage.launch(done)
    stage.run(task)
    stage.finish(task)

    usual = relaunch("ps").stdout.splitlines()
    everything = relaunch("ps", "--all").stdout.splitlines()

    assert [line.split()[0] for line in usual] == ["JOB", running]
    assert [line.split()[:2] for line in everything[1:]] == [[done, "SUCCEEDED"], [running, "RUNNING"]]


def test_ps_says_what_a_job_waits_for(relaunch, stage):
    stage.submit()

    assert "WAITING (launch)" in relaunch("ps").stdout


@pytest.mark.parametrize("command", [("ps", "--all"), ("plan", "resnet"), ("show",), ("explain",), ("definitions",)])
def test_tables_fit_80_columns(relaunch, stage, command):
    job_id = lived(stage)
    arguments = command if len(command) > 1 or command == ("definitions",) else (*command, job_id)

    assert max(len(line.rstrip()) for line in relaunch(*arguments).stdout.splitlines()) <= 80


def test_a_wide_ps_keeps_one_line_per_job(relaunch, stage):
    stage.submit("a")
    stage.clock.advance(1)
    stage.submit("b")

    lines = relaunch("ps", columns=120).stdout.splitlines()

    assert len(lines) == 3
    assert lines[0].split()[-1] == "REASON"


def test_ps_reads_no_more_than_its_limit_and_says_so(relaunch, stage):
    for key in "abc":
        stage.clock.advance(1)
        stage.submit(key)

    result = relaunch("ps", "--limit", "2")

    assert len(result.stdout.splitlines()) == 3
    assert "only the newest 2 jobs were looked at" in result.stderr
    shape = json.loads(relaunch("ps", "--limit", "2", "--json").stdout)
    assert shape["is_cut"] is True
    assert len(shape["jobs"]) == 2


def test_no_jobs_is_no_table(relaunch):
    assert relaunch("ps").stdout == ""
    assert "--all" in relaunch("ps").stderr


def test_watching_goes_on_until_ctrl_c(relaunch, stage):
    job_id = stage.submit()
    stage.scenes = [lambda: stage.launch(job_id)]

    result = relaunch("ps", "--watch")

    assert result.exit_code == 130
    assert "LAUNCHING" in result.stdout


def test_show_has_the_facts_and_a_line_per_attempt(relaunch, stage):
    job_id = lived(stage)
    stage.clock.advance(3600)

    lines = relaunch("show", job_id).stdout.splitlines()
    shape = json.loads(relaunch("show", job_id, "--json").stdout)

    assert lines[0].split() == ["Job", job_id]
    assert any(line.startswith("Ran         3h00m, 1 interruption, 0 failures, about $0.72") for line in lines)
    assert [attempt["purchase"] for attempt in shape["attempts"]] == ["spot", "spot"]
    assert shape["attempts"][0]["stop"]["kind"] == "interruption"
    assert shape["run_seconds"] == pytest.approx(3 * 3600 + 40)
    assert shape["state"] == "RUNNING"


def test_explain_has_the_next_step_the_timeline_and_every_selection(relaunch, stage):
    job_id = lived(stage)

    text = relaunch("explain", job_id).stdout
    shape = json.loads(relaunch("explain", job_id, "--json").stdout)

    assert "Waits for      the training to finish; it runs on g5.xlarge spot" in text
    assert "Selection of attempt 1" in text
    assert "Selection of attempt 2" in text
    assert "capacity-memory  5 → 4  g4dn.xlarge spot: the machine was taken away" in text
    assert [entry["state"] for entry in shape["timeline"]][-1] == "RUNNING"
    assert shape["timeline"][0]["at"] == NOW.isoformat()
    assert [each["attempt"] for each in shape["selections"]] == [1, 2]
    assert shape["explanation"]["advice"] == []


def test_explain_tells_a_waiting_job_what_could_be_changed(relaunch, stage):
    stage.deps.definitions.save_definition(make_definition(max_running_jobs=1))
    running = stage.submit("a")
    stage.launch(running)
    waiting = stage.submit("b")
    stage.launch_only(waiting)

    text = " ".join(relaunch("explain", waiting).stdout.split())

    assert "Waits for a free slot: definition resnet has no free slot of its 1" in text
    assert "You could cancel a job that is not needed" in text


@pytest.mark.parametrize("command", ["show", "explain", "logs", "cancel"])
def test_an_unknown_job_ends_with_3_and_names_the_nearest(relaunch, stage, command):
    job_id = stage.submit()

    result = relaunch(command, job_id[:-1])

    assert result.exit_code == 3
    assert f"there is no job '{job_id[:-1]}'" in result.stderr
    assert f"did you mean {job_id}?" in result.stderr


@pytest.mark.parametrize(
    ("prepare", "words", "state"),
    [
        (lambda _stage, _job: None, "was WAITING and is CANCELLED now", "CANCELLED"),
        (lambda stage, job: stage.run(stage.launch(job)), "was RUNNING: its task is being stopped", "STOPPING"),
    ],
)
def test_cancel_says_what_it_found_and_what_it_does(relaunch, stage, prepare, words, state):
    job_id = stage.submit()
    prepare(stage, job_id)

    result = relaunch("cancel", job_id, "--reason", "a typo")

    assert result.exit_code == 0
    assert words in result.stdout
    assert stage.jobs.job(job_id).state == state
    assert json.loads(relaunch("cancel", job_id, "--json").stdout)["state_before"] == state


def test_cancelling_a_job_that_is_over_changes_nothing(relaunch, stage):
    job_id = stage.submit()
    relaunch("cancel", job_id)

    assert relaunch("cancel", job_id).stdout == f"{job_id} is over already: CANCELLED\n"


def test_events_say_why_nothing_was_started(relaunch, stage):
    stage.deps.events.record_event("github:push:1", "github", "no job definition watches github acme/other", [], NOW)

    text = relaunch("events").stdout
    shape = json.loads(relaunch("events", "--json").stdout)["events"]

    assert "no job definition watches github acme/other" in " ".join(text.split())
    assert shape[0]["identity"] == "github:push:1"
    assert shape[0]["job_ids"] == []


def test_without_events_the_setup_is_asked_about(relaunch):
    assert "is the webhook set up" in relaunch("events").stderr


def test_inputs_of_a_job_are_shown(relaunch, stage):
    stage.deps.definitions.save_definition(make_definition(inputs={"rate": InputRule("[0-9.]+", "0.1")}))

    assert "rate=0.1" in relaunch("show", stage.submit()).stdout
