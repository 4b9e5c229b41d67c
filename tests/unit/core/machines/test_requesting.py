"""Machines that EC2 has not launched yet."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW
from fakes.machines import INSTANCE, claim, fleet_request, machine, offering, override
from relaunch.core.machines.decision import MachineTotals
from relaunch.core.machines.events import (
    ClaimReleased,
    FleetAnswered,
    FleetAsked,
    FleetDeferred,
    FleetRefused,
    FleetUncertain,
    InstanceLaunched,
    MachineDue,
    Refusal,
    RefusalKind,
)
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import (
    AdmitJobs,
    AskFleet,
    Consequence,
    Holding,
    Machine,
    MachineState,
    MachineTimelineEntry,
    RememberFailures,
    RememberLaunch,
    TellJobs,
    TerminateInstance,
    client_token_of,
    machine_id_of,
)
from relaunch.core.machines.requesting import (
    ASK_TIMEOUT,
    FIRST_LOOK,
    LOOKED_FOR,
    SENT_AGAIN_FOR,
    expiry_reason,
    is_surely_absent,
    launched_after_all,
    may_send,
    request_machine,
)
from relaunch.core.machines.table import decide

LIMITS = MachineLimits()
FULL = Refusal(RefusalKind.NO_CAPACITY, "InsufficientInstanceCapacity", offering=offering())
LAUNCHED = FleetAnswered(InstanceLaunched(INSTANCE, offering()))


def test_a_new_machine_takes_its_place_at_the_highest_price_that_it_may_cost():
    limits = MachineTotals(20, 10_000_000)

    decision = request_machine(
        *("m-1", fleet_request(), claim(), NOW, limits),
        family="trainer",
        beside_usd_per_hour=0.02,
        on_demand={"g5.xlarge": 1.006},
    )

    assert (decision.added, decision.limits) == (MachineTotals(1, 500_000), limits)
    assert [each.starting for each in decision.starts] == [{"m-1": NOW}] * 2
    assert decision.machine == Machine(
        *("m-1", fleet_request(), NOW, MachineState.REQUESTED, NOW, NOW + ASK_TIMEOUT, (claim(),)),
        usd_per_hour=0.5,
        family="trainer",
        beside_usd_per_hour=0.02,
        on_demand={"g5.xlarge": 1.006},
        holdings=(Holding(NOW, {"resnet-1": 1.0}),),
        pending=(AskFleet(),),
        timeline=(
            MachineTimelineEntry(
                NOW,
                MachineState.REQUESTED,
                "requested",
                "spot g5.xlarge, g6.xlarge in us-east-1a, us-east-1b",
            ),
        ),
    )


def test_the_identity_of_a_request_is_always_the_same():
    first = machine_id_of("resnet-1", 1, 1)

    assert first == machine_id_of("resnet-1", 1, 1)
    assert len({first, machine_id_of("resnet-1", 1, 2), machine_id_of("resnet-1", 2, 1), machine_id_of("b", 1, 1)}) == 4
    assert len(client_token_of(first)) <= 64
    assert client_token_of(first).isascii()


def test_what_ec2_chose_is_cheaper_than_what_was_reserved():
    decision = decide(machine(), LAUNCHED, NOW, LIMITS)

    after = decision.machine
    assert decision.added == MachineTotals(0, -100_000)
    assert decision.limits is None
    assert (after.instance_id, after.offering, after.usd_per_hour) == (INSTANCE, offering(), 0.4)
    assert after.wake_at == NOW + FIRST_LOOK


def test_an_instance_of_an_unknown_override_costs_what_was_reserved():
    answer = FleetAnswered(InstanceLaunched(INSTANCE, offering("g6e.xlarge")))

    assert decide(machine(), answer, NOW, LIMITS).machine.usd_per_hour == 0.5


def test_a_short_deadline_is_looked_at_in_time():
    limits = MachineLimits(registration_deadline=timedelta(seconds=60))

    assert decide(machine(), LAUNCHED, NOW, limits).machine.wake_at == NOW + timedelta(seconds=60)


def test_instances_win_over_errors_beside_them_which_are_remembered():
    answer = FleetAnswered(InstanceLaunched(INSTANCE, offering("g6.xlarge", "us-east-1b"), (FULL,)))

    after = decide(machine(), answer, NOW, LIMITS).machine

    assert after.state is MachineState.STARTING
    remembered, launched = after.pending
    assert isinstance(remembered, RememberFailures)
    assert [failure.offering for failure in remembered.failures] == [offering()]
    assert launched == RememberLaunch(offering("g6.xlarge", "us-east-1b"), NOW)


def test_an_instance_that_nobody_needs_any_more_is_terminated():
    decision = decide(machine(claims=()), LAUNCHED, NOW, LIMITS)

    assert decision.machine.state is MachineState.ENDING
    assert decision.machine.pending == (RememberLaunch(offering(), NOW), TerminateInstance(INSTANCE))
    assert decision.added == MachineTotals(0, -100_000)


def test_a_refused_machine_is_gone_and_tells_its_job_what_follows():
    after = decide(machine(), FleetAnswered(FleetRefused((FULL,))), NOW, LIMITS).machine

    assert (after.state, after.refusal) == (MachineState.GONE, Consequence.NEXT)
    assert "InsufficientInstanceCapacity" in after.reason
    assert isinstance(after.pending[0], RememberFailures)
    assert after.pending[1:] == (TellJobs(("resnet-1",)), AdmitJobs())


def test_a_refusal_that_says_nothing_of_capacity_remembers_none():
    refusal = Refusal(RefusalKind.NOT_PERMITTED, "UnauthorizedOperation")

    after = decide(machine(), FleetAnswered(FleetRefused((refusal,))), NOW, LIMITS).machine

    assert after.refusal is Consequence.PAUSE
    assert after.pending == (TellJobs(("resnet-1",)), AdmitJobs())


@pytest.mark.parametrize(("age_seconds", "least", "most"), [(0, 2, 8), (60, 15, 46), (3600, 60, 181)])
def test_a_throttled_request_is_sent_again_later_the_older_it_is(age_seconds: int, least: int, most: int):
    before = machine(created_at=NOW - timedelta(seconds=age_seconds))

    delays = []
    for version in range(50):
        after = decide(replace(before, version=version), FleetAnswered(FleetDeferred("Rate")), NOW, LIMITS).machine
        [ask] = after.pending
        assert isinstance(ask, AskFleet)
        assert after.wake_at == NOW + timedelta(seconds=ask.delay_seconds) + ASK_TIMEOUT
        delays.append(ask.delay_seconds)

    assert min(delays) >= least
    assert max(delays) <= most
    assert len(set(delays)) > 1


def test_a_request_of_unknown_outcome_is_sent_again_for_a_while_and_then_only_looked_for():
    asked = decide(machine(), FleetAsked(), NOW, LIMITS).machine
    uncertain = decide(asked, FleetAnswered(FleetUncertain("time-out")), NOW, LIMITS).machine
    still = decide(uncertain, FleetAnswered(FleetUncertain("500")), NOW + timedelta(minutes=1), LIMITS).machine

    assert still.uncertain_since == NOW
    assert may_send(still, NOW + SENT_AGAIN_FOR - timedelta(seconds=1))
    assert not may_send(still, NOW + SENT_AGAIN_FOR)
    assert not is_surely_absent(still, NOW + LOOKED_FOR - timedelta(seconds=1))
    assert is_surely_absent(still, NOW + LOOKED_FOR)


def test_who_asked_and_saved_no_answer_leaves_the_outcome_unknown():
    asked = decide(machine(), FleetAsked(), NOW, LIMITS).machine
    again = decide(asked, FleetAsked(), NOW + timedelta(minutes=1), LIMITS).machine

    assert (asked.asked_at, asked.uncertain_since) == (NOW, None)
    assert (again.asked_at, again.uncertain_since) == (NOW + timedelta(minutes=1), NOW)


def test_a_call_that_fails_as_a_whole_does_not_end_the_search_for_the_instance_of_an_earlier_one():
    refused = FleetAnswered(
        FleetRefused((Refusal(RefusalKind.NOT_PERMITTED, "UnauthorizedOperation"),), is_raised=True)
    )

    first = decide(machine(asked_at=NOW), refused, NOW, LIMITS).machine
    later = decide(machine(asked_at=NOW, uncertain_since=NOW), refused, NOW, LIMITS).machine

    assert first.state is MachineState.GONE
    assert (later.state, later.uncertain_since, later.claims) == (MachineState.REQUESTED, NOW, (claim(),))
    assert later.pending == (AskFleet(5),)
    assert "UnauthorizedOperation" in later.reason


def test_a_refusal_that_somebody_has_to_act_on_alerts_at_once_while_an_earlier_call_is_looked_for():
    refused = FleetAnswered(
        FleetRefused((Refusal(RefusalKind.NOT_PERMITTED, "UnauthorizedOperation"),), is_raised=True)
    )
    full = FleetAnswered(FleetRefused((FULL,), is_raised=True))
    uncertain = machine(asked_at=NOW, uncertain_since=NOW)

    alerted = decide(uncertain, refused, NOW, LIMITS).machine

    assert alerted.is_alert
    assert "a permission is missing" in alerted.timeline[-1].detail
    assert not decide(uncertain, full, NOW, LIMITS).machine.is_alert
    assert decide(alerted, full, NOW, LIMITS).machine.is_alert


def test_a_throttled_request_had_no_effect_but_an_earlier_one_may_have_had_one():
    throttled = FleetAnswered(FleetDeferred("RequestLimitExceeded"))

    first = decide(machine(asked_at=NOW), throttled, NOW, LIMITS).machine
    later = decide(machine(asked_at=NOW, uncertain_since=NOW), throttled, NOW, LIMITS).machine

    assert first.asked_at is None
    assert (later.asked_at, later.uncertain_since) == (NOW, NOW)


def test_a_request_that_was_never_sent_may_be_sent_and_has_no_instance():
    assert may_send(machine(), NOW)
    assert is_surely_absent(machine(), NOW)


def test_a_request_is_certain_again_once_its_instance_is_known():
    assert decide(machine(uncertain_since=NOW), LAUNCHED, NOW, LIMITS).machine.uncertain_since is None


def test_a_request_that_nobody_needs_is_given_up_only_if_ec2_was_never_asked():
    unasked = decide(machine(), ClaimReleased("resnet-1"), NOW, LIMITS)
    asked = decide(machine(asked_at=NOW), ClaimReleased("resnet-1"), NOW, LIMITS)

    assert (unasked.machine.state, unasked.machine.pending) == (MachineState.GONE, (AdmitJobs(),))
    assert unasked.added == MachineTotals(-1, -500_000)
    assert (asked.machine.state, asked.machine.claims) == (MachineState.REQUESTED, ())
    assert asked.added == MachineTotals()


def test_a_request_with_another_claim_goes_on():
    before = machine(claims=(claim(), claim("bert-1")), pending=(AskFleet(),))

    after = decide(before, ClaimReleased("resnet-1"), NOW, LIMITS).machine

    assert (after.state, [each.job_id for each in after.claims]) == (MachineState.REQUESTED, ["bert-1"])
    assert after.pending == (AskFleet(), AdmitJobs())


def test_a_lost_message_is_sent_again():
    after = decide(machine(), MachineDue(), NOW, LIMITS).machine

    assert after.pending == (AskFleet(),)
    assert after.wake_at == NOW + ASK_TIMEOUT


def test_an_instance_that_was_launched_for_a_machine_that_was_given_up_counts_until_it_has_ended():
    given_up = machine(MachineState.GONE, instance_id=None, offering=None)

    decision = decide(given_up, LAUNCHED, NOW, LIMITS)

    assert decision.machine.state is MachineState.ENDING
    assert decision.machine.pending == (TerminateInstance(INSTANCE),)
    assert decision.added == MachineTotals(1, 400_000)


def test_an_instance_that_is_seen_after_its_end_keeps_the_time_of_its_launch():
    ended = machine(MachineState.GONE, launched_at=NOW - timedelta(minutes=51))

    assert decide(ended, LAUNCHED, NOW, LIMITS).machine.launched_at == ended.launched_at
    other = replace(ended, instance_id="i-0f0f0f0f0f0f0f0f0")
    assert decide(other, LAUNCHED, NOW, LIMITS).machine.launched_at == NOW


def test_an_instance_that_is_found_after_its_machine_was_given_up_costs_what_its_type_does():
    dearest = fleet_request(override(usd_per_hour=0.2), override("g6.xlarge", usd_per_hour=0.7))
    given_up = machine(MachineState.GONE, instance_id=None, request=dearest, usd_per_hour=0.7)
    cheaper = FleetAnswered(InstanceLaunched(INSTANCE, dearest.overrides[0].offering))

    decision = decide(given_up, cheaper, NOW, LIMITS)

    assert decision.machine.usd_per_hour == 0.2
    assert decision.added == MachineTotals(1, 200_000)


def test_what_was_not_launched_cannot_be_counted():
    with pytest.raises(TypeError, match=r"no instance was launched: FleetDeferred\(reason='Rate'\)"):
        launched_after_all(machine(), FleetAnswered(FleetDeferred("Rate")), NOW, LIMITS)


def test_overrides_have_the_price_of_the_most_expensive():
    assert fleet_request(override(usd_per_hour=0.2), override("g6.xlarge", usd_per_hour=0.7)).usd_per_hour == 0.7


def test_a_request_that_nobody_needs_is_not_sent():
    assert not may_send(machine(claims=()), NOW)
    assert expiry_reason(machine(claims=())).startswith("nobody needs it any more")


def test_a_request_whose_answer_was_not_saved_is_sent_again_for_a_while_only():
    asked = machine(asked_at=NOW)

    assert may_send(asked, NOW)
    assert not may_send(asked, NOW + SENT_AGAIN_FOR)
    assert expiry_reason(asked).startswith("its outcome was unknown")
