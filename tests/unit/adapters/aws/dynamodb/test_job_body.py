"""The body of a job has the names that were stored before a job had records, whatever the records call them."""

from collections import Counter
from dataclasses import fields, replace
from datetime import timedelta

from fakes.builders import NOW, make_capacity_failure, make_job
from relaunch.adapters.aws.dynamodb.job_body import STORED_NAMES, read_job_body, write_job_body
from relaunch.core.jobs.changes import ChangedPart, ChangeMachine, JobChange, Outbox
from relaunch.core.jobs.charges import Charges
from relaunch.core.jobs.groups import GroupPlace
from relaunch.core.jobs.job import (
    FailedStart,
    Faults,
    Job,
    MachineUse,
    MarketHistory,
    MeasuredTimes,
    SavedProgress,
    Totals,
    WaitTimes,
)
from relaunch.core.jobs.state import CostBasis, JobState, NotedProgress, OpenCharge, Reserved, WaitReason
from relaunch.core.machines.charges import Charge

RECORDS = {
    "totals": Totals,
    "faults": Faults,
    "waits": WaitTimes,
    "machines": MachineUse,
    "progress": SavedProgress,
    "measured": MeasuredTimes,
    "market": MarketHistory,
    "charges": Charges,
    "reserved": Reserved,
    "group": GroupPlace,
    "outbox": Outbox,
}
# As it was stored, from `accepted_at` on: before that there are the definition, the trigger and the revision.
STORED = (
    ',"accepted_at":"2026-03-14T09:26:53Z","inputs":{},"state":"WAITING","state_since":"2026-03-14T09:26:53Z"'
    ',"reason":""'
    ',"waiting":{"reason":"launch","since":"2026-03-14T09:26:53Z","detail":"its launch was asked for"'
    ',"until":null,"slot":""},"image":null,"images":{},"wake_at":"2026-03-14T09:27:53Z","attempt":null'
    ',"has_slot":false,"failures":2,"interruptions":3,"first_started_at":"2026-03-14T09:27:53Z"'
    ',"run_seconds":5400.5,"cost_usd":1.25,"cost_basis":"limit","cancel_requested":"","pending":[]'
    ',"ended_at":null,"interrupted_at":"2026-03-14T09:28:53Z"'
    ',"failed_starts":[{"instance":"i-0123456789abcdef0","error":"CannotPullContainerError"'
    ',"is_unknown":true}]'
    ',"own_failures":[{"offering":{"instance_type":"g5.xlarge","zone":null,"purchase":"spot"}'
    ',"reason":"interrupted","at":"2026-03-14T09:26:53Z","until":"2026-03-14T09:56:53Z"'
    ',"consecutive_failures":1,"capacity_provider":"","gpu_count":0,"is_refuted":false,"vcpus":0'
    ',"is_shortage":false,"is_queue":false,"is_unready":false,"machine_id":""}],"held_back_seconds":1.0'
    ',"held_back_before_seconds":2.0,"queued_seconds":3.0,"queued_before_seconds":4.0,"machine_id":""'
    ',"machine_requests":5,"failed_machines":1,"refused_since":"2026-03-14T09:29:53Z","refusals":{}'
    ',"useless_machines_at":["2026-03-14T09:30:53Z"],"useless_machines_usd":0.75,"ran_on":"m-2"'
    ',"resume_from":[],"first_step":300,"kept_seconds":3600.0,"measured_starts":4,"start_seconds":480.0'
    ',"checkpoint_seconds":600.0,"asked_at":"2026-03-14T09:31:53Z","market_reason":"spot costs less"'
    ',"early_failures":6,"faulty_machines":["i-0fedcba9876543210"],"judged_attempt":7'
    ',"attempts_without_progress":8,"saving_seconds":90.0,"moved_at":["2026-03-14T09:32:53Z"]'
    ',"wait_told_at":"2026-03-14T09:33:53Z","version":9}'
)
MINUTE = timedelta(minutes=1)
JOB = replace(
    make_job(),
    totals=Totals(
        failures=2,
        interruptions=3,
        first_started_at=NOW + MINUTE,
        run_seconds=5400.5,
        cost_usd=1.25,
        cost_basis=CostBasis.LIMIT,
    ),
    interrupted_at=NOW + 2 * MINUTE,
    faults=Faults(
        failed_starts=(FailedStart("i-0123456789abcdef0", "CannotPullContainerError", is_unknown=True),),
        own_failures=(make_capacity_failure(),),
        early_failures=6,
        faulty_machines=("i-0fedcba9876543210",),
    ),
    waits=WaitTimes(
        held_back_seconds=1.0,
        held_back_before_seconds=2.0,
        queued_seconds=3.0,
        queued_before_seconds=4.0,
        told_at=NOW + 7 * MINUTE,
    ),
    machines=MachineUse(
        requested=5,
        failed=1,
        refused_since=NOW + 3 * MINUTE,
        useless_at=(NOW + 4 * MINUTE,),
        useless_usd=0.75,
        asked_at=NOW + 5 * MINUTE,
        ran_on="m-2",
    ),
    progress=SavedProgress(
        first_step=300,
        kept_seconds=3600.0,
        judged_attempt=7,
        attempts_without_progress=8,
        saving_seconds=90.0,
    ),
    measured=MeasuredTimes(starts=4, start_seconds=480.0, checkpoint_seconds=600.0),
    market=MarketHistory(reason="spot costs less", moved_at=(NOW + 6 * MINUTE,)),
    version=9,
)


def test_a_body_that_was_stored_before_a_job_had_records_is_read() -> None:
    before, _, _ = write_job_body(make_job()).partition(',"accepted_at"')

    assert read_job_body(before + STORED) == JOB


def test_a_body_is_written_as_it_was_before_a_job_had_records() -> None:
    _, name, rest = write_job_body(JOB).partition(',"accepted_at"')

    unsent = '"event_sequence":0,"unsent_events":[],"resend_events_at":null,'
    assert name + rest.replace(unsent, "") == STORED


def test_changes_that_were_not_sent_are_stored_with_the_job() -> None:
    machine = ChangeMachine("g5.xlarge", "spot", "us-east-1a", "i-0123456789abcdef0", "node", "g5-spot", "m-1")
    created = JobChange(1, NOW, JobState.WAITING, None, (ChangedPart.STATE,), "accepted", WaitReason.LAUNCH)
    changed = (ChangedPart.STATE, ChangedPart.ATTEMPT)
    started = JobChange(
        2, NOW, JobState.RUNNING, JobState.LAUNCHING, changed, "running", None, 1, machine, 300, 1.5, CostBasis.LIMIT
    )
    noted = NotedProgress(120, NOW, 2, 200, 0.5, NOW, 600.0, 3.5, NOW, (600.0, 601.5), 0.25)
    stalled = replace(started, sequence=3, changed=(ChangedPart.PROGRESS,), noted=noted)
    job = replace(JOB, noted=noted, outbox=Outbox(3, (created, started, stalled), NOW + MINUTE))

    assert read_job_body(write_job_body(job)) == job
    assert write_job_body(job).count('"noted"') == 1


def test_what_machines_charge_is_stored_with_the_job() -> None:
    opened = OpenCharge("m-2", NOW, 0.1, 0.2, 1.0, 2.0, 0.9, NOW + MINUTE)
    charges = Charges(1.0, 2.0, 0.5, 0.4, CostBasis.LIMIT, (Charge("m-1", 1.0, 2.0, is_limit=True),), (opened,))
    job = replace(JOB, charges=charges)

    assert read_job_body(write_job_body(job)) == job


def test_the_group_of_a_job_is_stored_with_it() -> None:
    job = replace(JOB, group=GroupPlace("main", NOW, "resnet-1", is_holder=True))
    assert read_job_body(write_job_body(job)) == job


def test_a_body_without_the_fields_of_records_is_read_with_their_defaults() -> None:
    before, name, _ = write_job_body(JOB).partition(',"accepted_at"')

    read = read_job_body(f'{before}{name}:"2026-03-14T09:26:53Z"}}')

    assert {record: getattr(read, record) for record in RECORDS} == {record: kind() for record, kind in RECORDS.items()}


def test_every_field_of_a_job_and_of_its_records_has_one_stored_name() -> None:
    own = [each.name for each in fields(Job) if each.name not in RECORDS]
    of_records = [f"{record}.{each.name}" for record, kind in RECORDS.items() for each in fields(kind)]

    assert {each.name: each.type for each in fields(Job) if each.name in RECORDS} == RECORDS
    assert Counter(STORED_NAMES.values()) == Counter([*own, *of_records])
