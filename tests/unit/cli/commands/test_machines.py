"""machines."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_offering_key
from fakes.cli_machines import MachineSession
from fakes.cli_session import flat, invoke
from fakes.stored_machines import change, make_claim, make_gone, make_machine, make_override
from relaunch.core.machines.machine import DeregisterNode, Holding, MachineState, MachineTimelineEntry

ID = "m-0123456789abcdef01234567"


def save(session, machine):
    """Save a machine that was made at the time of the session."""
    now = session.clock.now()
    return session.deps.machines.save_machine(change(replace(machine, created_at=now, wake_at=now)))


def ready(**fields):
    return make_machine(
        ID,
        state=MachineState.READY,
        instance_id="i-0123456789abcdef0",
        offering=make_offering_key("g6e.48xlarge", zone="us-east-1a"),
        claims=(make_claim("resnet-1"), make_claim("resnet-2")),
        reason="two jobs",
        **fields,
    )


def test_machines_are_listed_newest_first_with_instance_age_price_and_jobs(relaunch, session):
    save(session, ready())
    session.clock.advance(timedelta(hours=2))
    save(session, make_machine("m-new"))
    session.clock.advance(timedelta(minutes=5))

    result = relaunch("machines")

    assert [line.split() for line in result.stdout.splitlines()] == [
        ["MACHINE", "STATE", "AGE", "OFFERING", "ZONE", "$/H", "COST", "INSTANCE", "JOBS", "REASON"],
        ["m-new", "REQUESTED", "5m00s", "g5.xlarge", "spot", "us-east-1a", "<=0.4000", "-", "-", "-"],
        [
            *(ID, "READY", "2h05m", "g6e.48xlarge", "spot", "us-east-1a", "0.4000", "-", "i-0123456789abcdef0"),
            *("resnet-1,", "resnet-2", "two", "jobs"),
        ],
    ]
    assert (
        "2 machines of at most 20, $0.8000/h, 2 of the 20 for replacements of interrupted machines alone"
        in result.stderr
    )


def test_a_request_for_several_types_says_how_many(relaunch, session):
    overrides = (
        make_override(),
        make_override("us-east-1b"),
        make_override(offering=make_offering_key("g6.xlarge", zone="us-east-1a")),
    )
    machine = make_machine()
    save(session, replace(machine, request=replace(machine.request, overrides=overrides)))

    text = flat(relaunch("machines").stdout)

    assert "2 types spot" in text
    assert "2 zones <=0.4000" in text


def test_a_wide_terminal_shows_reasons(relaunch, session):
    save(session, ready())

    assert "two jobs" not in relaunch("machines", columns=120).stdout
    assert "two jobs" in relaunch("machines", columns=160).stdout
    save(session, make_machine("m-2", reason="no capacity, " * 20))
    assert "no capacity, no capac…" in relaunch("machines").stdout


def test_it_says_why_a_machine_that_ec2_interrupts_is_not_terminated(relaunch, session):
    until = session.clock.now() + timedelta(minutes=3)
    save(session, replace(ready(), state=MachineState.ENDING, claims=(), left_until=until))

    assert "1 ENDING machine is left to EC2's interruption" in relaunch("machines").stderr
    session.clock.advance(timedelta(minutes=4))
    assert "EC2's interruption" not in relaunch("machines").stderr


def test_machines_that_are_gone_are_not_listed(relaunch, session):
    machine = save(session, make_machine())
    gone = make_gone(machine, pending=(DeregisterNode("node"),))
    session.deps.machines.save_machine(change(gone, machine))
    assert session.deps.machines.load_living(9) == ["m-1"]

    result = relaunch("machines")

    assert result.stdout == ""
    assert "no machines" in result.stderr


def test_a_machine_whose_item_expired_meanwhile_is_left_out(relaunch, session, monkeypatch):
    monkeypatch.setattr(session.jobs.machines, "load_living", lambda _limit: ["m-1"])

    assert relaunch("machines", "--json").document["machines"] == []


def test_no_more_machines_are_read_than_the_limit(relaunch, session):
    for number in range(3):
        save(session, make_machine(f"m-{number}"))

    result = relaunch("machines", "--limit", "2")

    assert "only 2 machines were read" in result.stderr
    assert "3 machines of at most 20, $1.2000/h" in result.stderr
    document = relaunch("machines", "--limit", "2", "--json").document
    assert document["is_cut"] is True
    assert len(document["machines"]) == 2
    assert relaunch("machines", "--limit", "3", "--json").document["is_cut"] is False


def test_json_has_claims_times_and_what_was_asked_for(relaunch, session):
    save(session, make_machine("m-new"))
    session.clock.advance(1)
    paid = {"holdings": (Holding(NOW, {"resnet-1": 1.0}),), "beside_usd_per_hour": 0.02}
    save(session, ready(launched_at=NOW, paid_since=NOW, warned_at=NOW, **paid))
    session.clock.advance(3_599)

    document = relaunch("machines", "--json").document

    assert [(each["paid_by"], each["beside_usd_per_hour"]) for each in document["machines"]] == [
        ({"resnet-1": 1.0}, 0.02),
        ({}, 0.0),
    ]
    assert [each["cost_usd"] for each in document["machines"]] == [pytest.approx(0.42), 0]
    assert "$0.42" in relaunch("machines").stdout
    assert document["totals"] == {"machines": 2, "usd_per_hour": 0.8}
    used, new = document["machines"]
    assert (used["instance_type"], used["zone"], used["is_price_limit"]) == ("g6e.48xlarge", "us-east-1a", False)
    assert used["launched_at"] == used["warned_at"] == NOW.isoformat()
    assert [claim["job_id"] for claim in used["claims"]] == ["resnet-1", "resnet-2"]
    assert used["claims"][0] == {
        "job_id": "resnet-1",
        "attempt": 1,
        "cpu_units": 2048,
        "memory_mib": 7500,
        "gpus": 0.5,
        "neuron_devices": 0,
        "since": NOW.isoformat(),
    }
    assert (new["instance_id"], new["instance_type"], new["is_price_limit"]) == (None, None, True)
    assert new["asked_for"] == ["g5.xlarge spot us-east-1a"]


def test_json_has_limits_and_the_timeline(relaunch, session):
    entry = MachineTimelineEntry(NOW, MachineState.READY, "ready", "node")
    save(session, ready(timeline=(entry,), asked_at=NOW, idle_since=NOW))

    document = relaunch("machines", "--json").document

    assert document["limits"] == {"machines": 20, "usd_per_hour": None}
    assert document["limits_without_handovers"] == {"machines": 18, "usd_per_hour": None}
    assert (document["is_on"], document["warm_seconds"]) == (False, 0)
    (machine,) = document["machines"]
    assert machine["timeline"] == [{"at": NOW.isoformat(), "state": "READY", "event": "ready", "detail": "node"}]
    assert (machine["asked_at"], machine["idle_since"]) == (NOW.isoformat(), NOW.isoformat())
    assert (machine["ended_at"], machine["is_refused"]) == (None, False)


def test_an_empty_list_says_why(relaunch, session):
    off = relaunch("machines")
    on = invoke("machines", session=MachineSession())

    assert off.stderr.strip() == "the stack requests no machines of its own: the parameter MachineSubnets turns that on"
    assert on.stderr.strip() == "no machines: no job runs on one, or waits for one"


def test_machines_that_are_left_while_they_are_off_are_listed_all_the_same(relaunch, session):
    save(session, ready())

    result = relaunch("machines")

    assert ID in result.stdout
    assert "the stack requests no machines of its own" in result.stderr


def test_what_is_kept_without_a_job_is_told_with_its_price():
    session = MachineSession(warm_time=timedelta(minutes=10), max_usd_per_hour=100.0, max_machines=0)
    session.finish(session.run_on_machine(session.choose()))
    session.clock.advance(90)

    result = invoke("machines", session=session)

    assert result.stdout.splitlines()[1].split()[-3:] == ["none", "for", "1m30s"]
    assert "1 machine, $0.4000/h of $100\n" in result.stderr
    assert "1 machine for $0.4000/h is kept for 10m00s without a job (MachineWarmMinutes)" in result.stderr
    assert invoke("machines", "--json", session=session).document["warm_seconds"] == 600


def test_control_characters_in_a_reason_do_not_reach_the_terminal(relaunch, session):
    save(session, make_machine(reason="\x1b[2Jclean\nm-fake READY"))

    lines = relaunch("machines", columns=120).stdout

    assert "\x1b" not in lines
    assert len(lines.splitlines()) == 2
