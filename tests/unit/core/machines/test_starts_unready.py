"""What a machine teaches that did not become ready, and what it cost."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW
from fakes.machines import INSTANCE, claim, fleet_request, machine, offering, override
from relaunch.core.machines.ending import MISSING_GRACE
from relaunch.core.machines.events import InstanceObservation, InstanceSeen, InstanceState
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import (
    ForgetUnready,
    Machine,
    MachineState,
    MachineTimelineEntry,
    RememberFailures,
    Resources,
)
from relaunch.core.machines.refusals import POOL_AVOIDED
from relaunch.core.machines.settings import JOB_TAG
from relaunch.core.machines.starts import (
    CLAIMED,
    RELEASED,
    RELEASED_UNUSED,
    forget_unready,
    remember_unready,
    usd_for_nothing,
)
from relaunch.core.machines.table import decide
from relaunch.core.offerings.capacity_memory import image_scope
from relaunch.core.offerings.instance_types import AmiKind
from relaunch.core.offerings.offering import CapacityFailure

LAUNCH_ERROR = "Client.InternalError: Client error on launch"


def told(before: Machine, state: InstanceState, reason: str = "", after: timedelta = timedelta(0)) -> Machine:
    """Return the machine after EC2 said this of its instance: without a reason, by an event."""
    seen = InstanceSeen(InstanceObservation(INSTANCE, state, state_reason=reason), NOW + after)
    return decide(before, seen, NOW + after, MachineLimits()).machine


def learned(after: Machine) -> list[str]:
    """Return what all jobs avoid from now on."""
    return [str(each.offering) for effect in after.pending if isinstance(effect, RememberFailures)
            for each in effect.failures]  # fmt: skip


@pytest.mark.parametrize("state", [InstanceState.SHUTTING_DOWN, InstanceState.TERMINATED])
def test_an_instance_that_ec2_ends_at_launch_for_a_reason_of_the_account_shuts_its_pool(state: InstanceState):
    after = told(machine(MachineState.STARTING), state, LAUNCH_ERROR)

    assert learned(after) == [str(offering()), str(image_scope(AmiKind.GPU))]
    assert LAUNCH_ERROR in after.reason


@pytest.mark.parametrize("told_as", [InstanceState.SHUTTING_DOWN, InstanceState.TERMINATED])
def test_an_event_does_not_say_why_so_that_the_description_is_waited_for(told_as: InstanceState):
    ending = told(machine(MachineState.STARTING), told_as)
    again = told(ending, InstanceState.TERMINATED)
    described = told(again, InstanceState.TERMINATED, LAUNCH_ERROR)

    assert (ending.state, again.state) == (MachineState.ENDING, MachineState.ENDING)
    assert learned(ending) == learned(again) == []
    assert described.state is MachineState.GONE
    assert str(offering()) in learned(described)
    assert LAUNCH_ERROR in described.reason


def test_a_reason_that_is_described_while_it_ends_is_learned_from_once():
    ending = told(machine(MachineState.STARTING), InstanceState.SHUTTING_DOWN)
    described = told(ending, InstanceState.SHUTTING_DOWN, LAUNCH_ERROR)
    gone = told(replace(described, pending=()), InstanceState.TERMINATED, LAUNCH_ERROR)

    assert described.state is MachineState.ENDING
    assert LAUNCH_ERROR in described.reason
    assert learned(described)
    assert learned(gone) == []


def test_a_reason_that_never_comes_is_not_waited_for_for_long():
    ending = told(machine(MachineState.STARTING), InstanceState.SHUTTING_DOWN)

    assert told(ending, InstanceState.TERMINATED, after=MISSING_GRACE).state is MachineState.GONE


@pytest.mark.parametrize(
    "reason",
    [
        "Server.SpotInstanceTermination: Spot instance termination",
        "Client.UserInitiatedShutdown: User initiated shutdown",
    ],
)
def test_what_ec2_takes_back_or_somebody_ends_shuts_nothing(reason: str):
    assert learned(told(machine(MachineState.STARTING), InstanceState.TERMINATED, reason)) == []


@pytest.mark.parametrize("before", [machine(MachineState.READY), machine(MachineState.STARTING, warned_at=NOW)])
def test_one_that_was_ready_or_warned_shuts_nothing(before: Machine):
    after = told(before, InstanceState.TERMINATED, LAUNCH_ERROR)

    assert (after.state, learned(after)) == (MachineState.GONE, [])


def test_neuron_machines_have_an_image_of_their_own():
    request = fleet_request(override("trn1.32xlarge", capacity=Resources(131_072, 490_000, 0, 16)))

    assert remember_unready(machine(MachineState.STARTING, request=request), "late", NOW) == (
        RememberFailures(
            (
                CapacityFailure(offering("trn1.32xlarge"), "late", NOW, NOW + POOL_AVOIDED, is_unready=True),
                CapacityFailure(
                    image_scope(AmiKind.NEURON),
                    "machines of the stack do not become ready, lastly: late",
                    NOW,
                    NOW,
                    is_unready=True,
                    machine_id="m-1",
                ),
            )
        ),
    )


def test_one_whose_offering_is_not_known_teaches_nothing():
    unknown = machine(MachineState.STARTING, offering=None)

    assert remember_unready(unknown, "late", NOW) == ()
    assert forget_unready(unknown, NOW) == (ForgetUnready((image_scope(AmiKind.GPU),), NOW),)


OWN = fleet_request(tags={JOB_TAG: "resnet-1"})


def test_its_job_pays_from_its_launch_until_now():
    starting = machine(MachineState.STARTING, request=OWN, usd_per_hour=0.6)

    assert usd_for_nothing(starting, "resnet-1", NOW + timedelta(minutes=5)) == pytest.approx(0.05)


def test_it_pays_until_the_instance_began_to_end_and_never_less_than_nothing():
    ended = machine(MachineState.ENDING, request=OWN, usd_per_hour=0.6, ended_at=NOW + timedelta(minutes=1))

    assert usd_for_nothing(ended, "resnet-1", NOW + timedelta(minutes=5)) == pytest.approx(0.01)
    assert usd_for_nothing(ended, "resnet-1", NOW - timedelta(seconds=3)) == 0.0


def entry(minutes: float, event: str, job_id: str) -> MachineTimelineEntry:
    """Return an entry of a machine's timeline, so long after its launch."""
    return MachineTimelineEntry(
        NOW + timedelta(minutes=minutes), MachineState.READY, event, f"{job_id}; said so; twice"
    )


def test_what_it_pays_ends_with_its_release_and_is_the_same_whenever_it_is_asked_again():
    released = machine(
        MachineState.READY,
        request=OWN,
        usd_per_hour=0.6,
        timeline=(entry(2, RELEASED_UNUSED, "resnet-1"), entry(3, CLAIMED, "bert-2")),
    )

    for minutes in (2, 30):
        assert usd_for_nothing(released, "resnet-1", NOW + timedelta(minutes=minutes)) == pytest.approx(0.02)


def test_it_pays_from_its_newest_claim_where_it_came_back_to_the_machine():
    timeline = (entry(2, RELEASED_UNUSED, "resnet-1"), entry(12, CLAIMED, "resnet-1"))
    claimed = machine(MachineState.READY, request=OWN, usd_per_hour=0.6, timeline=timeline)
    released = replace(claimed, timeline=(*timeline, entry(15, RELEASED_UNUSED, "resnet-1")))

    assert usd_for_nothing(claimed, "resnet-1", NOW + timedelta(minutes=13)) == pytest.approx(0.01)
    assert usd_for_nothing(released, "resnet-1", NOW + timedelta(minutes=20)) == pytest.approx(0.03)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"claims": (claim(), claim("bert-2"))}, id="another job waits for one that is not ready"),
        pytest.param({"timeline": (entry(1, CLAIMED, "bert-2"),)}, id="another job waited for it"),
        pytest.param(
            {
                "registered_at": NOW,
                "timeline": (entry(1, CLAIMED, "bert-2"), entry(2, RELEASED_UNUSED, "bert-2"), entry(3, "warned", "")),
            },
            id="another job had no task there either",
        ),
    ],
)
def test_whoever_else_claimed_a_machine_without_a_task_there_changes_nothing(fields):
    found = machine(MachineState.STARTING, **{"request": OWN, "usd_per_hour": 0.6, **fields})

    assert usd_for_nothing(found, "resnet-1", NOW + timedelta(minutes=5)) == pytest.approx(0.05)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"launched_at": None}, id="never launched"),
        pytest.param({"request": fleet_request(tags={JOB_TAG: "bert-2"})}, id="requested for another job"),
        pytest.param({"claims": (claim(), claim("bert-2")), "registered_at": NOW}, id="another job uses it"),
        pytest.param({"timeline": (entry(1, RELEASED, "bert-2"),)}, id="it was used before"),
        pytest.param(
            {"claims": (claim("bert-2"),), "timeline": (entry(1, RELEASED_UNUSED, "resnet-1"),)},
            id="another job stays",
        ),
        pytest.param({"left_until": NOW + timedelta(minutes=3)}, id="EC2 is to interrupt it in its first hour"),
    ],
)
def test_nobody_pays_twice_or_for_another(fields):
    found = machine(MachineState.READY, **{"request": OWN, **fields})

    assert usd_for_nothing(found, "resnet-1", NOW + timedelta(hours=1)) == 0.0
