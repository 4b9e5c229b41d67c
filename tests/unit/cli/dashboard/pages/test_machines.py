"""/machines."""

from dataclasses import replace
from datetime import timedelta
from unittest.mock import patch

import pytest

from fakes.builders import NOW, make_offering_key
from fakes.cli_machines import MachineSession
from fakes.dashboard_pages import HOSTILE, Pages
from fakes.stored_machines import change, make_claim, make_gone, make_machine
from relaunch.core.machines.machine import MachineState


def save(session, machine):
    now = session.clock.now()
    session.deps.machines.save_machine(change(replace(machine, created_at=now, wake_at=now)))


def ready(machine_id="m-ready", **fields):
    return make_machine(
        machine_id,
        state=MachineState.READY,
        state_since=NOW,
        instance_id="i-0123456789abcdef0",
        offering=make_offering_key("g6e.48xlarge", zone="us-east-1a"),
        **fields,
    )


def test_machines_with_what_they_do_and_cost_and_for_which_jobs(session):
    save(session, ready(claims=(make_claim("resnet-1"), make_claim("bert-2"))))
    session.clock.advance(timedelta(hours=1))
    save(session, make_machine("m-new", state_since=session.clock.now(), asked_at=session.clock.now()))
    session.clock.advance(timedelta(minutes=5))

    html = Pages(session).html("/machines")
    text = Pages(session).text("/machines")

    assert "2 machines of at most 20 2 of the 20 for replacements" in text
    assert "$0.80" in text
    assert text.index("m-new REQUESTED since") < text.index("i-0123456789abcdef0 m-ready READY")
    assert "asked EC2 for g5.xlarge on spot in us-east-1a 5m00s ago" in text
    assert "≤ $0.4000" in text
    assert "claimed by 2 jobs for 1h05m g6e.48xlarge spot us-east-1a resnet-1 bert-2 $0.4000" in text
    assert '<a class="job" href="/jobs/resnet-1">resnet-1</a>' in html


def test_a_machine_without_a_job_is_kept_for_some_time():
    session = MachineSession(warm_time=timedelta(minutes=10))
    save(session, ready(idle_since=NOW, usd_per_hour=0.5, registered_at=NOW - timedelta(hours=1)))
    session.clock.advance(timedelta(minutes=4))

    text = Pages(session).text("/machines")

    assert "1 machine for $0.5000/h is kept for 10m00s without a job (MachineWarmMinutes)" in text
    assert "kept for the next job g6e.48xlarge spot us-east-1a none since" in text
    assert f"ended if none takes it until {NOW + timedelta(minutes=10):%H:%M:%S}" in text
    assert "MachineSubnets" not in text


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"state": MachineState.STARTING, "launched_at": NOW},
            "launched 0s ago, not registered yet; another one is requested if it is not ready by",
        ),
        ({"state": MachineState.ENDING, "reason": "its job is over"}, "ending for 0s: its job is over"),
        (
            {"claims": (make_claim(),), "warned_at": NOW, "reason": "EC2 takes it away"},
            "claimed by 1 job for 0s; EC2 takes it away (announced 0s ago)",
        ),
    ],
)
def test_what_a_machine_does_is_said_in_words(session, fields, words):
    save(session, replace(ready(), **fields))

    assert words in Pages(session).text("/machines")


def test_a_stack_without_machines_says_so(session):
    assert "The stack requests no machines of its own" in Pages(session).text("/machines")
    assert "No job runs on a machine of its own" in Pages(MachineSession()).text("/machines")


def test_a_machine_that_is_gone_is_not_shown_though_the_index_has_it(session):
    save(session, ready())
    before = session.deps.machines.load_machine("m-ready")
    session.deps.machines.save_machine(change(make_gone(before), before))

    with patch.object(session.deps.machines, "load_living", return_value=["m-ready", "m-unknown"]):
        assert "m-ready" not in Pages(session).text("/machines")


def test_a_machine_is_read_once_in_ten_seconds(session):
    save(session, ready())
    pages = Pages(session)
    store = session.deps.machines
    with patch.object(store, "load_machine", wraps=store.load_machine) as load:
        pages.html("/machines")
        session.clock.advance(9)
        pages.html("/machines")
        assert load.call_count == 1
        session.clock.advance(2)
        pages.html("/machines")
        assert load.call_count == 2


def test_what_others_named_is_text(session):
    save(session, ready(claims=(make_claim(HOSTILE),), reason=HOSTILE, warned_at=NOW))

    html = Pages(session).html("/machines")

    assert "<script>alert" not in html
    assert "\x1b" not in html
    assert "&lt;script&gt;alert(1)" in html
