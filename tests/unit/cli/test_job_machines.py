"""explain, show and ps of jobs that wait for machines of our own, or run on one."""

from dataclasses import replace

import pytest

from fakes.cli_machines import MachineSession
from fakes.cli_session import flat, invoke
from fakes.stored_machines import change
from relaunch.core.machines.events import RefusalKind
from relaunch.core.machines.machine import MachineState, machine_id_of
from relaunch.usecases.launch_attempt import launch_attempt
from relaunch.usecases.observe_task import observe_task


@pytest.fixture
def session():
    return MachineSession()


def explain(session, job_id) -> str:
    return flat(invoke("explain", job_id, session=session).stdout)


def refuse_everything(session, kind, code):
    """Let EC2 launch nothing."""
    for offering in session.offerings.available:
        session.fleet.refused[offering.key] = (kind, code)


def test_a_job_says_what_ec2_is_about_to_be_asked_for(session):
    job_id = session.choose()
    session.clock.advance(3)

    assert (
        "Waits for its machine Machine EC2 is about to be asked for g6.xlarge, g5.xlarge on spot in 2 zones, "
        "chosen 3s ago Since"
    ) in explain(session, job_id)


def test_a_request_that_ec2_throttles_says_when_it_was_sent_and_why_it_is_sent_again(session):
    job_id = session.choose()
    session.fleet.lost = 1
    session.make_ec2_calls()
    session.clock.advance(12)

    assert (
        "asked EC2 for g6.xlarge, g5.xlarge on spot in 2 zones 12s ago; for 12s it has not been known whether an "
        "instance was launched: no answer to CreateFleet: time-out"
    ) in explain(session, job_id)


def test_a_machine_that_was_launched_says_until_when_it_may_take(session):
    job_id = session.choose()
    session.make_ec2_calls()
    session.clock.advance(40)

    instance_id = session.machine(job_id).instance_id
    deadline = session.machine(job_id).launched_at + session.deps.limits.machines.registration_deadline
    assert (
        f"Machine {instance_id} (g6.xlarge spot us-east-1a) launched 40s ago, not registered yet; another one is "
        f"requested if it is not ready by {deadline:%H:%M:%S} UTC"
    ) in explain(session, job_id)


def test_a_machine_without_its_gpu_says_so_and_since_when(session):
    job_id = session.choose()
    session.make_ec2_calls()
    session.clock.advance(30)
    session.register_node(job_id, gpus=0)
    session.clock.advance(15)

    assert "registered with 0 of its 1 GPUs 15s ago; another one is requested" in explain(session, job_id)


def test_a_machine_that_is_ready_says_what_its_task_does(session):
    job_id = session.choose()
    session.make_ec2_calls()
    session.register_node(job_id)
    session.clock.advance(5)
    assert "has been ready for 5s; its task is going to be placed" in explain(session, job_id)

    task_id = session.launch(job_id)
    session.clock.advance(9)
    assert "is ready; its task is starting, placed 9s ago" in explain(session, job_id)

    observe_task(session.tasks.change(task_id, last_status="PENDING"), session.deps)
    assert "its task is pulling its image (the cluster says PENDING), placed 9s ago" in explain(session, job_id)


def test_a_task_whose_program_has_ended_runs_no_longer(session):
    job_id = session.choose()
    session.run_on_machine(job_id)
    session.clock.advance(60)
    task_id = session.jobs.job(job_id).current_attempt.task_id
    ended = {"stopped_at": session.clock.now(), "execution_stopped_at": session.clock.now()}
    observe_task(session.tasks.end(task_id, **ended), session.deps)
    session.clock.advance(9)

    text = explain(session, job_id)

    assert "has ended its task, which ran for 1m00s" in text
    assert "Ran 1m00s, 0 interruptions" in text


def test_both_machines_of_a_handover_are_told(session):
    job_id = session.choose()
    session.run_on_machine(job_id)
    session.clock.advance(3600)
    old = session.machine(job_id).instance_id
    session.warn(job_id)
    session.clock.advance(20)

    text = explain(session, job_id)
    shown = flat(invoke("show", job_id, session=session).stdout)
    machines = invoke("explain", job_id, "--json", session=session).document["machines"]

    assert (
        f"Machine {old} (g6.xlarge spot us-east-1a) has run its task for 1h00m; "
        "EC2 will interrupt it (announced 20s ago) EC2 is about to be asked for "
    ) in text
    assert "on the machine that is requested for it already, and resumes from its newest checkpoint" in text
    assert "EC2 will interrupt it (announced 20s ago) EC2 is about to be asked for" in shown
    assert [each["state"] for each in machines] == ["READY", "REQUESTED"]

    session.make_ec2_calls()
    session.register_node(job_id)
    assert "has been ready for 0s, for the next attempt" in explain(session, job_id)


def test_refused_requests_are_told_with_their_reasons_newest_first(session):
    refuse_everything(session, RefusalKind.NO_CAPACITY, "InsufficientInstanceCapacity")
    job_id = session.choose()
    session.make_ec2_calls()
    assert "Machine EC2 refused" in explain(session, job_id)
    launch_attempt(job_id, session.deps)
    session.clock.advance(30)

    text = explain(session, job_id)
    document = invoke("explain", job_id, "--json", session=session).document

    assert (
        "Machine EC2 refused g6.xlarge, g5.xlarge on spot in 2 zones 30s ago: EC2 has no capacity for it "
        "(InsufficientInstanceCapacity): g6.xlarge spot us-east-1a, "
    ) in text
    assert document["machines"] == []
    (refused,) = document["failed_machines"]
    assert (refused["state"], refused["is_refused"], refused["instance_id"]) == ("GONE", True, None)
    assert [entry["event"] for entry in refused["timeline"]] == ["requested", "refused"]


def test_no_more_than_the_latest_requests_that_came_to_nothing_are_told(session):
    refuse_everything(session, RefusalKind.THROTTLED, "RequestLimitExceeded")
    job_id = session.choose()
    while session.jobs.job(job_id).machines.requested < 5:
        session.make_ec2_calls()
        session.clock.advance(120)
        launch_attempt(job_id, session.deps)

    document = invoke("show", job_id, "--json", session=session).document
    # The fifth is claimed, and the third and the fourth are the latest others.
    numbers = {machine_id_of(job_id, 1, number): number for number in range(1, 6)}
    assert [numbers[each["machine_id"]] for each in document["machines"]] == [5]
    assert [numbers[each["machine_id"]] for each in document["failed_machines"]] == [4, 3]


def test_a_machine_that_did_not_get_ready_and_one_that_is_ending_say_why(session):
    job_id = session.choose()
    session.make_ec2_calls()
    machine = session.machine(job_id)
    ending = replace(
        machine, state=MachineState.ENDING, state_since=session.clock.now(), reason="not ready within 0:05:00"
    )
    session.deps.machines.save_machine(change(ending, machine))
    session.clock.advance(70)

    assert f"{machine.instance_id} (g6.xlarge spot us-east-1a) has been ending for 1m10s: not ready" in explain(
        session, job_id
    )

    gone = replace(session.machine(job_id), state=MachineState.GONE)
    session.deps.machines.save_machine(change(gone, ending))
    assert "was gone 1m10s ago: not ready" in explain(session, job_id)


def test_json_of_a_job_has_its_machine(session):
    job_id = session.choose()
    session.run_on_machine(job_id)

    document = invoke("explain", job_id, "--json", session=session).document

    (machine,) = document["machines"]
    assert (machine["state"], machine["instance_type"], machine["zone"]) == ("READY", "g6.xlarge", "us-east-1a")
    assert machine["usd_per_hour"] == 0.4
    assert [entry["event"] for entry in machine["timeline"]] == ["requested", "launched", "ready"]
    assert None not in (machine["asked_at"], machine["launched_at"], machine["registered_at"])
    assert document["attempt"]["machine_id"] == machine["machine_id"]


def test_a_job_that_has_ended_has_no_machine(session):
    job_id = session.choose()
    session.finish(session.run_on_machine(job_id))

    document = invoke("explain", job_id, "--json", session=session).document

    assert (document["machines"], document["failed_machines"]) == ([], [])
    assert "Machine " not in invoke("explain", job_id, session=session).stdout


def test_ps_shows_what_a_job_waits_for_and_where_it_runs(session):
    running = session.choose("a")
    session.run_on_machine(running)
    session.clock.advance(1)
    asked = session.choose("b")

    narrow = invoke("ps", session=session, columns=80).stdout.splitlines()
    wide = invoke("ps", session=session, columns=140).stdout.splitlines()
    rows = invoke("ps", "--json", session=session).document["jobs"]

    assert [line.split()[0] for line in narrow[1:]] == [asked, running]
    assert "2 types spot" in narrow[1]
    assert "g6.xlarge spot" in narrow[2]
    assert "WAITING (machine)" in wide[1]
    assert "2 types spot    2 zones" in wide[1]
    assert "g6.xlarge spot  us-east-1a" in wide[2]
    assert [row["machine_id"] for row in rows] == [session.machine(asked).machine_id, None]

    session.make_ec2_calls()
    assert "g6.xlarge spot" in invoke("ps", session=session).stdout.splitlines()[1]


def test_ps_shows_nothing_of_a_machine_whose_item_expired_meanwhile(session, monkeypatch):
    job_id = session.choose()
    reads = []
    monkeypatch.setattr(session.jobs.machines, "load_machine", reads.append)

    line = invoke("ps", session=session, columns=80).stdout.splitlines()[1]

    assert reads == [session.jobs.job(job_id).machine_id]
    assert line.split()[-5:] == ["2s", "-", "-", "-", "-"]
