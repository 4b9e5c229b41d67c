from dataclasses import replace

from fakes.builders import make_definition, make_job
from relaunch.adapters.messages.job_change import write_detail
from relaunch.core.jobs.changes import MAX_REASON, ChangeMachine
from relaunch.core.lifecycle.change_events import event_of
from relaunch.core.lifecycle.job_changes import as_created


def test_an_event_is_named_by_job_and_number_and_says_where_its_results_are() -> None:
    job = make_job(definition=make_definition(checkpoint_uri="s3://acme-checkpoints/resnet/", total_steps=900))
    change = replace(as_created(job, "accepted").outbox.unsent[0], step=300)

    event = event_of(job, change)

    assert event.id == f"{job.job_id}:1"
    assert event.checkpoints == f"s3://acme-checkpoints/resnet/{job.job_id}/"
    assert event.progress is not None
    assert (event.progress.step, event.progress.total_steps) == (300, 900)
    assert event.machine is None


def test_what_is_not_known_of_a_machine_is_absent() -> None:
    job = make_job()
    change = replace(as_created(job, "").outbox.unsent[0], machine=ChangeMachine("g5.xlarge", "spot"))

    machine = event_of(job, change).machine

    assert machine is not None
    assert (machine.instance_type, machine.zone, machine.instance_id) == ("g5.xlarge", None, None)


def test_a_long_variable_is_left_out_and_not_cut() -> None:
    job = make_job()
    environment = {"RELAUNCH_OBJECT_URI": "u" * 9_000, "RELAUNCH_GIT_SHA": "5e07"}
    job = replace(job, trigger=replace(job.trigger, environment=environment))

    assert event_of(job, as_created(job, "").outbox.unsent[0]).trigger.variables == {"RELAUNCH_GIT_SHA": "5e07"}


def test_the_largest_event_is_one_that_eventbridge_takes() -> None:
    worst = "\x01" * 100_000
    trigger = replace(make_job().trigger, identity=worst, summary=worst, environment={"A": "\x01" * 7_990, "B": worst})
    job = make_job(definition=make_definition(checkpoint_uri=f"s3://acme/{'k' * 1_024}/"))
    job = replace(job, trigger=trigger)
    change = as_created(job, worst).outbox.unsent[0]

    assert len(change.reason) == MAX_REASON
    assert len(write_detail(event_of(job, change)).encode()) < 100 * 1024
