"""What an event changes of a machine, to the last field: what its timeline says, when it is looked at next, and why."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fakes.builders import NOW
from fakes.machines import CAPACITY, INSTANCE, NODE, claim, fleet_request, machine, offering, override
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.events import (
    AgentSeen,
    AgentState,
    ClaimAsked,
    ClaimReleased,
    FleetAnswered,
    FleetAsked,
    FleetDeferred,
    FleetRefused,
    FleetUncertain,
    InstanceLaunched,
    InstanceMissing,
    InstanceObservation,
    InstanceSeen,
    InstanceState,
    MachineAbandoned,
    MachineDue,
    MachineEvent,
    MachineWarned,
    NodeSeen,
    Refusal,
    RefusalKind,
    RequestExpired,
)
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import (
    AdmitJobs,
    AskFleet,
    Consequence,
    DeregisterNode,
    ForgetUnready,
    MachineState,
    MachineTimelineEntry,
    RememberLaunch,
    Resources,
    TellJobs,
    TerminateInstance,
)
from relaunch.core.machines.table import decide
from relaunch.core.offerings.capacity_memory import image_scope
from relaunch.core.offerings.instance_types import AmiKind

Q, S, R, E, G = MachineState
AT = NOW + timedelta(seconds=100)
SOON = NOW + timedelta(seconds=160)
WARM = MachineLimits(warm_time=timedelta(minutes=3))
LAUNCHED = FleetAnswered(InstanceLaunched(INSTANCE, offering(), at=NOW))
LAUNCH = {"instance_id": INSTANCE, "offering": offering(), "launched_at": AT, "paid_since": NOW, "usd_per_hour": 0.4}
ON_DEMAND = fleet_request(override(purchase=PurchaseOption.ON_DEMAND))
ENDS = {"state": E, "state_since": AT, "claims": (), "wake_at": SOON}
TERMINATE = TerminateInstance(INSTANCE)
TELL = TellJobs(("resnet-1",))
ENDED = {"pending": (TERMINATE, TELL), **ENDS}
GONE = {"state": G, "state_since": AT, "claims": (), "wake_at": SOON}
BERT = claim("bert-1", Resources(1024, 1_000))
BOOTED = NodeSeen(NODE, CAPACITY, is_active=True, at=NOW, boot="1:2:3:4")
DRAINED = replace(BOOTED, is_active=False, is_draining=True)
BOOT = {"node": NODE, "boot": "1:2:3:4", "unseen_since": None}
IMAGE = image_scope(AmiKind.GPU)


@pytest.mark.parametrize(
    ("state", "fields", "event", "changes", "said"),
    [
        pytest.param(
            *(Q, {}, LAUNCHED),
            {"state": S, "state_since": AT, "wake_at": AT + timedelta(minutes=2), **LAUNCH}
            | {"pending": (RememberLaunch(offering(), AT),)},
            f"launched: {INSTANCE}: g5.xlarge spot us-east-1a",
            id="launched",
        ),
        pytest.param(
            *(Q, {"request": ON_DEMAND, "claims": ()}, LAUNCHED),
            {**LAUNCH, **ENDS, "offering": offering(purchase=PurchaseOption.ON_DEMAND), "pending": (TERMINATE,)},
            f"launched: {INSTANCE}: g5.xlarge on-demand us-east-1a; nobody needs it",
            id="launched for nobody",
        ),
        pytest.param(
            *(Q, {"asked_at": NOW}, FleetAsked()),
            {"asked_at": AT, "uncertain_since": NOW, "wake_at": AT + timedelta(seconds=90)},
            "",
            id="asked once more",
        ),
        pytest.param(
            *(Q, {"asked_at": NOW}, FleetAnswered(FleetUncertain("time-out"))),
            {"uncertain_since": AT, "reason": "time-out", "wake_at": AT + timedelta(seconds=95)}
            | {"pending": (AskFleet(5),)},
            "asked again: time-out",
            id="uncertain",
        ),
        pytest.param(
            *(Q, {"created_at": NOW - timedelta(seconds=3)}, FleetAnswered(FleetDeferred("Rate exceeded"))),
            {"reason": "Rate exceeded", "wake_at": AT + timedelta(seconds=75 + 90), "pending": (AskFleet(75),)},
            "asked again: Rate exceeded",
            id="deferred",
        ),
        pytest.param(
            *(Q, {}, FleetAnswered(FleetRefused((Refusal(RefusalKind.NOT_PERMITTED, "UnauthorizedOperation"),)))),
            {**GONE, "refusal": Consequence.PAUSE, "is_alert": True, "pending": (TELL, AdmitJobs())},
            "refused: a permission is missing: grant it to the role of the function request_machine, as template.yaml "
            "does (UnauthorizedOperation)",
            id="refused",
        ),
        pytest.param(
            *(Q, {}, RequestExpired("its outcome was unknown", Consequence.AGAIN)),
            {**GONE, "refusal": Consequence.AGAIN, "pending": (TELL, AdmitJobs())},
            "expired: its outcome was unknown",
            id="expired",
        ),
        pytest.param(
            *(Q, {}, ClaimReleased("resnet-1")),
            {**GONE, "pending": (AdmitJobs(),)},
            "withdrawn: nobody needs it any more; EC2 was not asked",
            id="withdrawn",
        ),
        pytest.param(
            *(G, {"instance_id": None, "offering": None}, LAUNCHED),
            {**ENDS, **LAUNCH, "pending": (TERMINATE,)},
            f"launched late: {INSTANCE}",
            id="launched late",
        ),
        pytest.param(
            *(G, {"paid_since": NOW - timedelta(hours=1)}, LAUNCHED),
            {**ENDS, "usd_per_hour": 0.4, "pending": (TERMINATE,)},
            f"launched late: {INSTANCE}",
            id="seen late",
        ),
        pytest.param(
            *(S, {"unseen_since": NOW}, BOOTED),
            {"state": R, "state_since": AT, "registered_at": NOW, "wake_at": AT + timedelta(minutes=10), **BOOT}
            | {"pending": (TELL, ForgetUnready((offering(), IMAGE), AT), AdmitJobs())},
            f"ready: {NODE}",
            id="ready",
        ),
        pytest.param(
            *(S, {"unseen_since": NOW, "boot": "1:2:3:4"}, replace(BOOTED, is_connected=False, boot="")),
            {**BOOT, "wake_at": SOON, "reason": "registered, and its agent is not connected"},
            "registered: registered, and its agent is not connected",
            id="not connected",
        ),
        pytest.param(
            *(S, {"node": NODE, "reason": "registered with 0.5 of its 1 GPUs"}),
            replace(BOOTED, registered=replace(CAPACITY, gpus=0)),
            {**BOOT, "wake_at": SOON, "reason": "registered with 0 of its 1 GPUs"},
            "registered: registered with 0 of its 1 GPUs",
            id="other GPUs",
        ),
        pytest.param(
            *(S, {"node": NODE, "reason": "registered with 0 of its 1 GPUs"}),
            replace(BOOTED, registered=replace(CAPACITY, gpus=0)),
            {**BOOT, "wake_at": SOON},
            "",
            id="the same GPUs",
        ),
        pytest.param(
            *(S, {"unseen_since": NOW, "wake_at": SOON}, DRAINED),
            {**BOOT, "reason": "registered, and is drained"},
            "registered: registered, and is drained",
            id="drained",
        ),
        pytest.param(
            *(S, {"node": NODE, "boot": "1:2:3:4", "reason": "registered"}, replace(DRAINED, boot="")),
            {"reason": "registered, and is drained"},
            "registered: registered, and is drained",
            id="drained now",
        ),
        pytest.param(
            *(S, {"launched_at": NOW - timedelta(minutes=4), "reason": "registered, and is drained"}, MachineDue()),
            {**ENDED, "is_unusable": True},
            "start deadline: not ready within 0:05:00: registered, and is drained",
            id="drained for too long",
        ),
        pytest.param(
            *(R, {"unseen_since": NOW}, InstanceSeen(InstanceObservation(INSTANCE, InstanceState.RUNNING), NOW)),
            {"unseen_since": None},
            "",
            id="known again",
        ),
        pytest.param(
            *(R, {"leave_by": NOW, "reason": "it does not confirm a stop"}, MachineDue()),
            ENDED,
            "abandoned: it does not confirm a stop",
            id="left",
        ),
        pytest.param(*(R, {"claims": ()}, MachineDue()), {"wake_at": AT + timedelta(minutes=10)}, "", id="new"),
        pytest.param(
            *(R, {"claims": (), "idle_since": NOW - timedelta(minutes=2)}, MachineDue()),
            {**ENDS, "pending": (TERMINATE,)},
            "idle: without a job for 0:03:00",
            id="idle",
        ),
        pytest.param(
            *(R, {"request": ON_DEMAND}, MachineWarned(NOW)),
            {"warned_at": NOW, "reason": "EC2 will interrupt it", "wake_at": SOON, "pending": (TELL,)},
            "warned: EC2 will interrupt it",
            id="warned",
        ),
        pytest.param(
            *(R, {"claims": ()}, MachineWarned(NOW, is_rebalance=True)),
            {**ENDS, "warned_at": NOW, "pending": (TERMINATE,)},
            "warned: EC2 recommends to rebalance",
            id="warned for nobody",
        ),
        pytest.param(
            *(S, {}, MachineWarned(NOW, cause="retirement by AWS")),
            {**ENDED, "warned_at": NOW},
            "warned: retirement by AWS",
            id="warned while it starts",
        ),
        pytest.param(
            *(R, {}, MachineAbandoned("resnet-1", "it does not confirm a stop")),
            {**ENDS, "is_unusable": True, "leave_by": AT + timedelta(minutes=10), "pending": (TERMINATE,)},
            "abandoned: it does not confirm a stop",
            id="abandoned",
        ),
        pytest.param(
            *(R, {"claims": (claim(), BERT), "leave_by": SOON}, MachineAbandoned("bert-1", "it confirms no stop")),
            {"is_unusable": True, "claims": (claim(),), "reason": "it confirms no stop", "wake_at": AT}
            | {"pending": (TELL,)},
            f"abandoned: it confirms no stop; its other jobs leave it by {SOON:%H:%M:%S} UTC",
            id="abandoned with others",
        ),
        pytest.param(
            *(R, {"idle_since": NOW}, ClaimAsked(BERT)),
            {"claims": (claim(), BERT), "idle_since": None},
            "claimed: bert-1",
            id="claimed",
        ),
        pytest.param(
            *(R, {"claims": (claim(), BERT)}, ClaimReleased("resnet-1", "its task has ended")),
            {"claims": (BERT,), "pending": (AdmitJobs(),)},
            "released: resnet-1; its task has ended",
            id="released with others",
        ),
        pytest.param(
            *(R, {"claims": (claim(), BERT), "warned_at": NOW}, ClaimReleased("bert-1")),
            {"claims": (claim(),)},
            "released: bert-1",
            id="released with others after a warning",
        ),
        pytest.param(
            *(Q, {"asked_at": NOW}, ClaimReleased("resnet-1", is_unused=True)),
            {"claims": ()},
            "released unused: resnet-1",
            id="released before its launch",
        ),
        pytest.param(
            *(S, {}, ClaimReleased("resnet-1", is_unusable=True)),
            {**ENDS, "is_unusable": True, "pending": (TERMINATE,)},
            "released: resnet-1",
            id="released while it starts",
        ),
        pytest.param(
            *(R, {}, ClaimReleased("resnet-1")),
            {"claims": (), "idle_since": AT, "wake_at": AT + WARM.warm_time, "pending": (AdmitJobs(),)},
            f"released: resnet-1; kept until {AT + WARM.warm_time:%H:%M:%S} UTC",
            id="kept warm",
        ),
        pytest.param(
            *(R, {"away_since": NOW - timedelta(minutes=5)}, AgentSeen(AgentState.AWAY, is_impaired=True)),
            {**ENDED, "is_unusable": True, "leave_by": AT},
            "abandoned: its agent is away since 09:21:53 UTC, no checkpoint came since, "
            "and EC2's status checks of it fail",
            id="agent away",
        ),
        pytest.param(
            *(R, {"away_since": NOW - timedelta(hours=2), "is_away_with_most": True}),
            AgentSeen(AgentState.AWAY_WITH_MOST),
            {**ENDED, "is_unusable": True, "leave_by": AT},
            "abandoned: its agent is away since 07:26:53 UTC, no checkpoint came since, "
            "and so are most agents of the cluster",
            id="two agents away",
        ),
        pytest.param(
            *(R, {"away_since": NOW}, AgentSeen(AgentState.AWAY_WITH_MOST)),
            {"is_away_with_most": True},
            "",
            id="another agent away",
        ),
        pytest.param(
            *(R, {"wake_at": AT + timedelta(hours=1)}, AgentSeen(AgentState.AWAY_WITH_MOST)),
            {"away_since": AT, "is_away_with_most": True, "wake_at": SOON},
            "",
            id="first away",
        ),
        pytest.param(
            *(R, {"away_since": NOW, "is_away_with_most": True, "with_most_until": NOW}),
            AgentSeen(AgentState.CONNECTED),
            {"away_since": None, "is_away_with_most": False, "with_most_until": None},
            "",
            id="connected",
        ),
        pytest.param(*(S, {}, InstanceMissing()), {"unseen_since": AT, "wake_at": SOON}, "", id="not known to EC2"),
        pytest.param(
            *(R, {"unseen_since": NOW - timedelta(minutes=5)}, InstanceMissing()),
            {**GONE, "pending": (TELL, DeregisterNode(NODE), AdmitJobs())},
            "terminated: EC2 does not know the instance any more",
            id="not known for long",
        ),
        pytest.param(
            *(R, {"warned_at": NOW, "wake_at": AT + timedelta(hours=1)}, MachineWarned(NOW)),
            {"left_until": NOW + timedelta(minutes=3)},
            "",
            id="warned again",
        ),
        pytest.param(
            *(E, {"left_until": NOW}),
            InstanceSeen(InstanceObservation(INSTANCE, InstanceState.RUNNING), NOW),
            {"left_until": None, "wake_at": SOON, "pending": (TERMINATE,)},
            "",
            id="not interrupted",
        ),
        pytest.param(*(E, {"left_until": AT + timedelta(seconds=1)}, MachineDue()), {"wake_at": SOON}, "", id="ending"),
    ],
)
def test_an_event_changes_this_of_a_machine_and_nothing_else(
    state: MachineState, fields: dict[str, Any], event: MachineEvent, changes: dict[str, Any], said: str
) -> None:
    before = machine(state, **fields)
    entry, _, detail = said.partition(": ")
    after = {"state": state, "pending": (), **changes}
    timeline = (MachineTimelineEntry(AT, after["state"], entry, detail),) if said else ()
    if after["state"] in (E, G) and said:
        after["reason"] = detail

    assert decide(before, event, AT, WARM).machine == replace(before, **after, timeline=timeline)
