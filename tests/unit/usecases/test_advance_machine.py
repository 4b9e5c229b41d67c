"""An event is applied to a machine once, its effects are done at least once, and all of it is logged."""

from dataclasses import replace
from unittest.mock import Mock

import pytest

from fakes.machine_story import G5, MachineStory
from relaunch.core.machines.events import MachineDue, MachineWarned, RefusalKind
from relaunch.core.machines.machine import AskFleet, MachineState, TellJobs
from relaunch.ports import StaleWriteError, TransientError
from relaunch.usecases.advance_machine import advance_machine, finish_effects


def warn(machines: MachineStory, machine_id: str):
    event = MachineWarned(machines.now)
    return advance_machine(machine_id, lambda _machine: event, machines.deps)


def test_a_machine_that_does_not_exist_is_logged(machines):
    assert warn(machines, "m-nobody") is None
    assert machines.log.lines == [("ignored", {"machine_id": "m-nobody", "reason": "no such machine"})]


def test_an_event_that_means_nothing_is_logged_and_changes_nothing(machines):
    job_id = machines.submit_and_deliver()
    before = machines.machine(job_id)

    assert warn(machines, before.machine_id) == before
    (facts,) = [facts for name, facts in machines.log.lines if name == "ignored"]
    assert facts["reason"] == "MachineWarned means nothing to a machine that is REQUESTED"


def test_without_an_event_only_what_is_pending_is_done(machines):
    job_id = machines.submit_and_deliver()
    machine_id = machines.job(job_id).machine_id
    machines.queue.requested.clear()

    advance_machine(machine_id, lambda _machine: None, machines.deps)

    assert machines.queue.requested == [(machine_id, 0)]
    assert machines.load(machine_id).pending == (AskFleet(),), "only who calls EC2 may say that it is done"


def test_who_loses_a_race_decides_again_on_what_the_other_saved(machines):
    job_id = machines.start()
    machine_id = machines.job(job_id).machine_id
    save = machines.deps.machines.save_machine

    def save_after_another(decision):
        machines.deps.machines.save_machine = save
        machines.register(machines.load(machine_id))
        return save(decision)

    machines.deps.machines.save_machine = save_after_another
    due = MachineDue()
    advanced = advance_machine(machine_id, lambda _machine: due, machines.deps)

    assert advanced.state is MachineState.READY


def test_who_loses_again_and_again_gives_up(machines):
    machine_id = machines.job(machines.start()).machine_id
    machines.deps.machines.save_machine = Mock(side_effect=StaleWriteError("another was faster"))

    with pytest.raises(StaleWriteError, match="6 times"):
        warn(machines, machine_id)


def test_jobs_that_could_not_be_told_are_told_with_the_next_event(machines):
    job_id = machines.start()
    machine = machines.machine(job_id)
    tell = machines.launches.request_launch
    machines.launches.request_launch = Mock(side_effect=TransientError("sending: time-out"))
    with pytest.raises(TransientError):
        machines.register(machine)
    assert machines.load(machine.machine_id).pending[0] == TellJobs((job_id,))

    machines.launches.request_launch = tell
    advance_machine(machine.machine_id, lambda _machine: None, machines.deps)

    assert machines.launches.requested == [(job_id, 0)]
    assert machines.load(machine.machine_id).pending == ()


def test_what_another_writer_has_saved_as_done_is_left_so(machines):
    machine = machines.machine(machines.start())
    stale = replace(machine, pending=(TellJobs(("resnet-1",)),), version=machine.version - 1)

    assert finish_effects(stale, machines.deps) is stale
    assert machines.load(machine.machine_id) == machine


def test_a_refusal_about_which_somebody_must_do_something_is_logged_as_an_alert(machines):
    machines.fleet.refused = dict.fromkeys(
        (each.key for each in machines.offerings.available), (RefusalKind.NOT_PERMITTED, "UnauthorizedOperation")
    )
    machines.start()

    alerts = [facts for _, facts in machines.log.lines if facts.get("is_alert")]
    assert len(alerts) == 1
    assert "a permission is missing" in str(alerts[0]["reason"])


def test_a_plain_lack_of_capacity_is_no_alert(machines):
    machines.fleet.refused[G5] = (RefusalKind.NO_CAPACITY, "InsufficientInstanceCapacity")
    machines.start()

    assert not [facts for _, facts in machines.log.lines if facts.get("is_alert")]
