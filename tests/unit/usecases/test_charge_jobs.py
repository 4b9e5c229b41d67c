"""Machines are charged to their jobs once they are gone: all of their time, once, by the prices that EC2 has."""

from dataclasses import replace
from datetime import timedelta
from unittest.mock import Mock

import pytest

from fakes.machine_story import MachineStory
from fakes.story import MINUTE
from relaunch.core.jobs.cost import cost_so_far, machine_cost
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import CostBasis, JobState
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.ports import NotGrantedError, StaleWriteError, TransientError
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.charge_jobs import charge_jobs


def finish(machines: MachineStory) -> None:
    """Let what ends be gone, and be charged."""
    for _ in range(3):
        machines.settle_all()
        machines.look(after=MINUTE)


def fail_to_charge(machines: MachineStory) -> None:
    """Let what ends be gone, and EC2 not tell its prices."""
    machines.fleet.spot_prices = Mock(side_effect=TransientError("time-out"))
    machines.make_ec2_calls()
    machines.look(after=2 * MINUTE)
    with pytest.raises(TransientError):
        machines.settle_all()


def seconds_of(machine: Machine) -> float:
    """Return how long a machine was there for."""
    assert machine.paid_since is not None
    assert machine.state is MachineState.GONE
    return ((machine.ended_at or machine.state_since) - machine.paid_since).total_seconds()


@pytest.fixture
def cancelled(machines) -> str:
    """Return the ID of a job that was cancelled three minutes after the launch of its machine, before its task ran."""
    job_id = machines.start()
    machines.clock.advance(3 * MINUTE)
    cancel_job(job_id, "not today", machines.deps)
    return job_id


def test_a_job_pays_for_a_machine_that_never_came_up(machines, cancelled):
    finish(machines)

    job = machines.job(cancelled)
    (charge,) = job.charges.latest
    machine = machines.load(charge.machine_id)
    assert job.state is JobState.CANCELLED
    assert charge.usd == pytest.approx(seconds_of(machine) / 3600 * machine.usd_per_hour, rel=0.2)
    assert cost_so_far(job, machines.now)[0] == charge.usd > 3 / 60 * machine.usd_per_hour


def test_the_boot_and_the_end_of_a_machine_are_paid_beside_the_training(machines):
    job_id = machines.start()
    machines.clock.advance(5 * MINUTE)
    machines.register(machines.machine(job_id))
    machines.settle_all()
    machines.run(job_id)
    before = cost_so_far(machines.job(job_id), machines.now)[0]
    machines.clock.advance(60 * MINUTE)
    machines.end(job_id)
    finish(machines)

    job = machines.job(job_id)
    paid = machine_cost(job, machines.now)
    (charge,) = job.charges.latest
    assert before > 5 / 60 * 0.4
    assert paid.usd == charge.usd
    assert paid.usd - paid.idle_usd == pytest.approx(job.totals.run_seconds / 3600 * 0.4)
    assert paid.idle_usd > 5 / 60 * 0.4
    assert job.charges.open == ()


def test_the_price_of_each_hour_is_that_of_its_beginning(machines):
    job_id = machines.train()
    machine = machines.machine(job_id)
    machines.fleet.spot_history = [(machine.paid_since, 1.0), (machine.paid_since + 30 * MINUTE, 3.0)]
    machines.clock.advance(timedelta(hours=1.5))
    machines.end(job_id)
    finish(machines)

    beside = machine.beside_usd_per_hour
    usd = machines.job(job_id).charges.machines_usd
    assert usd == pytest.approx(1.0 + 0.5 * 3.0 + 1.5 * beside, rel=0.1)
    assert machines.job(job_id).charges.basis is CostBasis.PRICE


def test_the_first_price_counts_if_ec2_may_not_be_asked(machines, cancelled):
    machines.fleet.spot_prices = Mock(side_effect=NotGrantedError("ec2:DescribeSpotPriceHistory"))
    finish(machines)

    assert machines.job(cancelled).charges.machines_usd > 0
    assert machines.job(cancelled).charges.basis is CostBasis.LIMIT


def test_a_charge_is_made_again_while_ec2_does_not_answer_and_counts_once(machines, cancelled):
    spot_prices = machines.fleet.spot_prices
    for _ in range(2):
        fail_to_charge(machines)
    assert machines.job(cancelled).charges.latest == ()

    machines.fleet.spot_prices = spot_prices
    finish(machines)
    once = machines.job(cancelled)
    charge_jobs(machines.load(once.charges.latest[0].machine_id), machines.deps)
    assert machines.job(cancelled) == once


def test_a_charge_waits_for_others_who_save_the_job_and_not_for_ever(machines, cancelled):
    fail_to_charge(machines)
    gone = machines.load(next(iter(machines.deps.machines.load_living(9))))
    machines.fleet.spot_prices = Mock(return_value=[])
    save_job = machines.jobs.save_job
    machines.jobs.save_job = Mock(side_effect=StaleWriteError("others"))
    with pytest.raises(StaleWriteError, match="6 times"):
        charge_jobs(gone, machines.deps)
    saves = iter((Mock(side_effect=StaleWriteError("others")), save_job))

    def save(decision: Decision) -> Job:
        return next(saves)(decision)

    machines.jobs.save_job = save

    charge_jobs(gone, machines.deps)

    assert machines.job(cancelled).charges.latest != ()


def test_a_job_that_is_not_there_any_more_is_charged_nothing(machines, cancelled):
    finish(machines)
    (charge,) = machines.job(cancelled).charges.latest
    machine = machines.load(charge.machine_id)
    others = tuple(replace(each, shares={"nobody": 1.0}) for each in machine.holdings)

    charge_jobs(replace(machine, holdings=others), machines.deps)

    assert machines.deps.log.lines[-1][1]["reason"] == "no such job"


def test_ec2_says_who_ended_an_instance_in_its_first_hour(machines):
    job_id = machines.train()
    machine = machines.machine(job_id)
    machines.clock.advance(10 * MINUTE)
    machines.fleet.end(machine.instance_id, "Server.SpotInstanceTermination: Spot instance termination")
    machines.look(after=10 * MINUTE)
    finish(machines)

    (charge,) = machines.job(job_id).charges.latest
    assert charge.usd == pytest.approx(21 / 60 * machine.beside_usd_per_hour, rel=0.2)


def test_why_an_instance_ended_is_waited_for_and_not_for_ever(machines, cancelled):
    finish(machines)
    known = machines.load(machines.job(cancelled).charges.latest[0].machine_id)
    machine = replace(known, end_reason="")
    before = machines.job(cancelled)
    machines.fleet.instances.clear()
    charge_jobs(known, machines.deps)
    with pytest.raises(TransientError, match="why i-"):
        charge_jobs(machine, machines.deps)
    machines.clock.advance(10 * MINUTE)
    charge_jobs(machine, machines.deps)

    assert machines.job(cancelled) == before


def test_a_machine_is_charged_where_nobody_may_ask_why_it_ended(machines, cancelled):
    machines.fleet.describe = Mock(side_effect=NotGrantedError("ec2:DescribeInstances"))
    machine = machines.load(next(iter(machines.deps.machines.load_living(9))))
    gone = replace(machine, state=MachineState.GONE, state_since=machines.now, ended_at=machines.now)
    charge_jobs(gone, machines.deps)

    assert machines.job(cancelled).charges.latest != ()


def test_a_function_with_an_older_machine_does_not_replace_the_newer_charge(machines, cancelled):
    finish(machines)
    charged = machines.job(cancelled)
    newest = machines.load(charged.charges.latest[0].machine_id)
    older = replace(newest, state_since=newest.state_since + 10 * MINUTE, version=newest.version - 1)

    charge_jobs(older, machines.deps)

    assert machines.job(cancelled) == charged
    assert machines.deps.log.lines[-1][1]["reason"] == "the machine was saved since"
