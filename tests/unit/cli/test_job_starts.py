"""explain --machine: how the machine and the task of an attempt started, stage by stage."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.cli_machines import MachineSession
from fakes.cli_session import CliSession, flat, invoke
from fakes.stored_machines import change, make_gone
from relaunch.core.lifecycle.decision import Decision
from relaunch.usecases.launch_attempt import launch_attempt
from relaunch_cli.views.start_stages import share_cells


@pytest.fixture
def session():
    return MachineSession()


def explain(session, job_id, *options):
    return invoke("explain", job_id, "--machine", *options, session=session)


def test_a_job_without_a_machine_says_so(session):
    job_id = session.submit()

    assert explain(session, job_id).stdout.strip() == (
        f"{job_id} has asked for no machine yet: `relaunch explain` says what it waits for"
    )
    assert explain(session, job_id, "--json").document == {"job_id": job_id, "starts": []}


def test_the_bar_is_to_scale_and_its_legend_has_the_seconds(session):
    job_id = session.choose()
    asked_at = session.clock.now()
    session.clock.advance(8)
    session.boot = f"{(asked_at + timedelta(seconds=18)).timestamp():.0f}:10:11:16"
    session.run_on_machine(job_id)

    title, outcome, _, bar, _, *legend = explain(session, job_id).stdout.splitlines()

    assert title == f"Attempt 1: {session.machine(job_id).instance_id} (g6.xlarge spot us-east-1a)"
    assert outcome.endswith("; its program ran 1m20s later")
    # 80 s in 80 cells.
    assert bar == "A" * 8 + "B" * 10 + "C" * 10 + "D" + "E" * 5 + "F" * 14 + "H" * 2 + "I" * 30
    rows = [re.split(r" {2,}", line) for line in legend[1:]]
    assert [row[:3] for row in rows] == [
        ["A", "request", "8.0"],
        ["B", "launch", "10.0"],
        ["C", "boot", "10.0"],
        ["D", "user data", "1.0"],
        ["E", "driver", "5.0"],
        ["F", "agent", "14.0"],
        ["G", "ready", "0.0"],
        ["H", "placement", "2.0"],
        ["I", "hand-over, pull, start", "30.0"],
    ]
    assert rows[5][4] == "it registers, by the cluster"


def test_the_newest_of_several_starts_is_shown_and_all_are_in_the_document(session):
    job_id = session.choose()
    session.run_on_machine(job_id)
    session.warn(job_id)
    session.make_ec2_calls()
    session.clock.advance(7)

    shown = flat(explain(session, job_id).stdout)
    starts = explain(session, job_id, "--json").document["starts"]

    assert "; 7s so far" in shown
    assert "b launch, boot, user data, driver, agent 7.0" in shown
    assert "it goes on, since" in shown
    assert shown.endswith("the newest start: --full has all")
    assert re.findall("Attempt .", explain(session, job_id, "--full").stdout) == ["Attempt 1", "Attempt 2"]
    assert [(each["attempt"], each["state"]) for each in starts] == [(1, "started"), (2, "starting")]
    assert starts[0]["seconds"] == sum(each["seconds"] for each in starts[0]["stages"])
    assert starts[1]["stages"][-1]["ended_at"] is None


def give_up(session, job_id):
    """Let the machine of a job never register."""
    session.make_ec2_calls()
    session.clock.advance(300)
    machine = session.machine(job_id)
    gone = replace(make_gone(machine, reason="it never registered"), state_since=session.clock.now(), claims=())
    session.deps.machines.save_machine(change(gone, machine))
    session.clock.advance(60)


def test_a_machine_that_never_registered_is_shown_where_it_stopped_and_since_when(session):
    job_id = session.choose()
    give_up(session, job_id)

    shown = flat(explain(session, job_id).stdout)

    assert "(1m00s ago), after 5m00s: it never registered" in shown
    assert re.search(r"b launch, boot, user data, driver, agent 300\.0 .* it stopped here, since", shown)


def test_machines_that_came_to_nothing_are_shown_beside_the_attempts_that_followed(session):
    job_id = session.choose()
    give_up(session, job_id)
    # It gives up its claim, then asks for another machine.
    launch_attempt(job_id, session.deps)
    session.clock.advance(30)
    launch_attempt(job_id, session.deps)
    session.run_on_machine(job_id)
    session.warn(job_id)

    starts = explain(session, job_id, "--json").document["starts"]

    assert [(each["attempt"], each["state"]) for each in starts] == [(1, "stopped"), (1, "started"), (2, "starting")]
    assert starts[2]["machine_id"] == session.machine(job_id).machine_id
    assert explain(session, job_id).stdout.startswith("Attempt 2: ")


def test_a_machine_of_another_job_that_a_job_waits_for_is_shown(session):
    job_id = session.choose()
    other = session.machine(session.choose("second"))
    job = session.jobs.job(job_id)
    session.jobs.save_job(Decision(replace(job, machine_id=other.machine_id)))

    starts = explain(session, job_id, "--json").document["starts"]

    assert other.machine_id in [each["machine_id"] for each in starts]


def test_a_job_says_what_ec2_is_asked_for(session):
    session.fleet.lost = 1
    job_id = session.choose()
    session.make_ec2_calls()

    assert explain(session, job_id).stdout.splitlines() == [
        "Attempt 1: g6.xlarge, g5.xlarge on spot in 2 zones",
        f"asked for at {session.clock.now():%H:%M:%S} UTC; 0s so far",
        "",
        "   STAGE    SECONDS  UNTIL (UTC)  ENDED BY",
        f"a  request      0.0  {session.clock.now():%H:%M:%S}     it goes on, since {session.clock.now():%H:%M:%S}",
    ]


def test_a_task_by_a_capacity_provider_has_the_stages_that_are_known_and_a_sentence():
    session = CliSession()
    job_id = session.run_interrupted_job()
    launch_attempt(job_id, session.deps)

    shown = flat(explain(session, job_id).stdout)

    assert shown.startswith("Attempt 2: g4dn.xlarge spot by g4dn-xlarge-spot")
    assert "how a machine of a capacity provider boots is not known" in shown


def test_cells_are_shared_so_that_none_is_lost():
    assert share_cells([1, 1, 1], 80) == [27, 26, 27]
    assert share_cells([0.001, 0, 1], 10) == [0, 0, 10]
    assert share_cells([], 80) == []
