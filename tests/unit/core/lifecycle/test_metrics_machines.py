"""What decisions about machines add to the metrics."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fakes.builders import NOW
from fakes.machines import NODE, machine
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.lifecycle.events import MachineLost
from relaunch.core.lifecycle.metrics import Metric, MetricDatum, decision_metrics, leak_metrics, machine_metrics
from relaunch.core.machines.ending import termination_refused
from relaunch.core.machines.events import (
    ClaimReleased,
    FleetAnswered,
    FleetAsked,
    FleetDeferred,
    FleetRefused,
    FleetUncertain,
    InstanceLaunched,
    MachineAbandoned,
    MachineDue,
    MachineEvent,
    NodeSeen,
    Refusal,
    RefusalKind,
    RequestExpired,
)
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import Consequence, Machine, MachineState, Resources
from relaunch.core.machines.table import decide
from unit.core.lifecycle.steps import decided
from unit.core.lifecycle.table_matrix import EVENTS, SITUATIONS

LIMITS = MachineLimits()
MINUTE = timedelta(minutes=1)
GPU = Resources(4096, 15_000, 1.0)
ALERT = MetricDatum(Metric.MACHINE_ALERTS)


def measured(before: Machine, event: MachineEvent, now: datetime = NOW) -> list[MetricDatum]:
    return list(machine_metrics(before, decide(before, event, now, LIMITS), now))


def refused(kind: RefusalKind, code: str = "Code") -> FleetAnswered:
    return FleetAnswered(FleetRefused((Refusal(kind, code),)))


def refusal(consequence: Consequence) -> MetricDatum:
    return MetricDatum(Metric.MACHINES_REFUSED, label=consequence.value)


def test_a_request_of_a_machine_counts_with_the_decision_of_the_job() -> None:
    before = SITUATIONS["w0"]

    found = decision_metrics(before, decided(before, EVENTS["machine-claimed"]), NOW)

    assert found == (MetricDatum(Metric.MACHINES_REQUESTED),)


def test_a_job_that_joins_a_machine_or_loses_one_requests_none() -> None:
    waiting = SITUATIONS["wm"]
    requested = replace(waiting, machines=replace(waiting.machines, requested=2))

    assert decision_metrics(waiting, decided(waiting, MachineLost("m-1", None, "it is gone")), NOW) == ()
    assert decision_metrics(requested, Decision(requested), NOW) == ()


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (RefusalKind.NO_CAPACITY, [refusal(Consequence.NEXT)]),
        (RefusalKind.QUOTA, [refusal(Consequence.NEXT)]),
        (RefusalKind.THROTTLED, [refusal(Consequence.AGAIN)]),
        (RefusalKind.NOT_PERMITTED, [refusal(Consequence.PAUSE), ALERT]),
        (RefusalKind.CONFIGURATION, [refusal(Consequence.PAUSE), ALERT]),
        (RefusalKind.ACCOUNT_LIMIT, [refusal(Consequence.PAUSE), ALERT]),
        (RefusalKind.NO_SPOT_ROLE, [refusal(Consequence.NEXT), ALERT]),
        (RefusalKind.UNKNOWN, [refusal(Consequence.NEXT), ALERT]),
    ],
)
def test_a_refusal_counts_by_its_consequence_and_alerts_if_somebody_has_to_act(
    kind: RefusalKind, data: list[MetricDatum]
) -> None:
    assert measured(machine(), refused(kind)) == data


def test_a_refusal_counts_once() -> None:
    gone = decide(machine(), refused(RefusalKind.NOT_PERMITTED), NOW, LIMITS).machine

    assert measured(gone, refused(RefusalKind.NOT_PERMITTED)) == []
    assert measured(gone, FleetAnswered(InstanceLaunched("i-1", gone.request.overrides[0].offering))) == []


@pytest.mark.parametrize(
    "event",
    [
        FleetAsked(),
        FleetAnswered(FleetDeferred("RequestLimitExceeded")),
        FleetAnswered(FleetUncertain("time-out")),
        RequestExpired("its job fits on another one", Consequence.NEXT),
        ClaimReleased("resnet-1"),
    ],
    ids=["asked", "deferred", "uncertain", "expired", "withdrawn"],
)
def test_what_ec2_did_not_refuse_is_no_refusal(event: MachineEvent) -> None:
    assert measured(machine(), event) == []


def test_a_machine_is_timed_from_its_request_until_it_is_ready_once() -> None:
    starting, now = machine(MachineState.STARTING, created_at=NOW - 2 * MINUTE), NOW + MINUTE
    without_gpus = NodeSeen(NODE, Resources(4096, 15_000), is_active=True, at=NOW)
    complete = NodeSeen(NODE, GPU, is_active=True, at=NOW)
    ready = decide(starting, complete, now, LIMITS).machine

    assert measured(starting, without_gpus, now) == []
    assert measured(starting, complete, now) == [MetricDatum(Metric.MACHINE_TO_READY, 180)]
    assert measured(ready, complete, now) == []
    assert measured(ready, MachineDue(), now) == []


def test_a_machine_that_its_deadline_ends_was_not_ready() -> None:
    starting = machine(MachineState.STARTING)
    deadline = NOW + LIMITS.registration_deadline

    assert measured(starting, MachineDue(), deadline - MINUTE) == []
    assert measured(starting, MachineDue(), deadline) == [MetricDatum(Metric.MACHINES_NOT_READY)]
    assert measured(machine(MachineState.ENDING), MachineDue(), deadline) == []


def test_a_refused_termination_counts_and_alerts_once() -> None:
    ending = machine(MachineState.ENDING)
    noted = termination_refused(ending, NOW)
    again = termination_refused(noted.machine, NOW + MINUTE)

    assert machine_metrics(ending, noted, NOW) == (MetricDatum(Metric.TERMINATIONS_REFUSED), ALERT)
    assert machine_metrics(noted.machine, again, NOW + MINUTE) == ()


def test_an_instance_that_ec2_does_not_end_counts_and_alerts_every_hour() -> None:
    ending, due = machine(MachineState.ENDING, state_since=NOW), MachineDue()
    assert measured(ending, due, NOW + 29 * MINUTE) == []
    told = decide(ending, due, NOW + 30 * MINUTE, LIMITS).machine

    assert measured(ending, due, NOW + 30 * MINUTE) == [MetricDatum(Metric.TERMINATIONS_REFUSED), ALERT]
    assert measured(told, due, NOW + 31 * MINUTE) == []
    assert measured(told, due, NOW + 90 * MINUTE) == [MetricDatum(Metric.TERMINATIONS_REFUSED), ALERT]


def test_what_leaked_counts_and_alerts_and_nothing_is_sent_while_nothing_leaks() -> None:
    assert leak_metrics(2) == (MetricDatum(Metric.MACHINES_LEAKED, 2), MetricDatum(Metric.MACHINE_ALERTS, 2))
    assert leak_metrics(0) == ()


def test_a_machine_that_is_abandoned_counts_once():
    told = MachineAbandoned("resnet-1", "it does not confirm a stop")
    abandoned = decide(machine(MachineState.READY), told, NOW, LIMITS).machine

    assert MetricDatum(Metric.MACHINES_ABANDONED) in measured(machine(MachineState.READY), told)
    assert MetricDatum(Metric.MACHINES_ABANDONED) not in measured(abandoned, MachineDue(), NOW + MINUTE)
