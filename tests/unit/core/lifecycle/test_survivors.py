"""Whether those machines of a job of several nodes that live are kept when others are lost, and for how long."""

import math
from dataclasses import replace
from datetime import timedelta
from statistics import NormalDist

import pytest

from fakes import machines as fake
from fakes.builders import INSTANCE_ID, NOW, make_selection
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.attempt import IntentKind, Stop, StopKind
from relaunch.core.jobs.effects import ReleaseMachine, RequestLaunch, RequestMachine
from relaunch.core.jobs.job import Job, claimed_machines
from relaunch.core.jobs.state import JobState, NotedProgress
from relaunch.core.lifecycle.events import (
    CancelAsked,
    HostEnded,
    HostWarned,
    MachineAwaited,
    MachineClaimed,
    MachineLost,
    SurvivorsLeft,
)
from relaunch.core.lifecycle.gangs import needs_replacements
from relaunch.core.lifecycle.stopping import follow_stop, task_lost
from relaunch.core.lifecycle.survivors import USUAL_BOOT_SECONDS, choose_survivors, expected_wait, usual_boot
from relaunch.core.machines.decision import MachineTotals
from relaunch.core.machines.groups import (
    KEPT_AT_MOST,
    NO_SURVIVORS,
    Survivors,
    kept_until,
    member_id,
    requests_of_members,
)
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import Claim, Consequence, Machine, MachineState, Resources
from relaunch.core.machines.requesting import request_machine
from relaunch.core.machines.settings import MACHINE_TAG
from unit.core.lifecycle.gang_ranks import EVERY, ended, gang, rank, stopped_tasks, tell, together
from unit.core.lifecycle.steps import SOON, after, decided
from unit.core.lifecycle.table_matrix import intent

INSTANCES = (INSTANCE_ID, "i-1", "i-2")
NAMES = ("m-0", "m-0-n1", "m-0-n2")
BOOT = timedelta(seconds=90)
LIMIT = timedelta(minutes=8)


def stopping(**fields: object) -> Job:
    """Return a job whose three tasks are stopped since EC2 warned of a machine."""
    return gang("so", **fields)


def ready(number: int, **fields: object) -> Machine:
    """Return the machine of a rank, which took as long as usual to boot."""
    claims = (Claim("resnet-1f2e3d4c", 1, Resources(), NOW),)
    usual = {"machine_id": NAMES[number], "instance_id": INSTANCES[number], "claims": claims}
    return replace(fake.machine(MachineState.READY), **{**usual, "registered_at": NOW + BOOT, **fields})


def three(**changed: dict[str, object]) -> list[Machine]:
    """Return the machines of the ranks; `one={…}` changes that of rank 1."""
    names = ("zero", "one", "two")
    return [ready(number, **changed.get(name, {})) for number, name in enumerate(names)]


def chosen(job: Job, machines: list[Machine], *warned: str, now=SOON) -> Survivors:
    found = choose_survivors(job, machines, warned, now)
    assert isinstance(found, Survivors)
    return found


def reason_to_leave(job: Job, machines: list[Machine | None], *warned: str, now=SOON) -> str:
    found = choose_survivors(job, machines, warned, now)
    assert isinstance(found, SurvivorsLeft)
    return found.reason


def claimed(size: int = 1, ranks: tuple[str, ...] = ("m-0", "m-9", "m-0-n2")) -> MachineClaimed:
    """Return the claim on `size` new machines beside those that are kept."""
    request = fake.fleet_request(machine_id="m-9", tags={MACHINE_TAG: "m-9"})
    first, *others = (
        request_machine(member_id("m-9", each.place), each, fake.claim("resnet-1f2e3d4c"), SOON, MachineTotals())
        for each in requests_of_members(request, size)
    )
    return MachineClaimed(first, "asked", make_selection(), is_new=True, others=tuple(others), ranks=ranks)


class TestWhetherMachinesMayBeReplaced:
    def test_those_of_a_gang_that_ec2_takes_a_machine_from_may(self):
        assert needs_replacements(stopping())
        assert needs_replacements(stopping(warned_at=None, host_ended_at=NOW))

    @pytest.mark.parametrize(
        "job",
        [
            pytest.param(replace(stopping(), attempt=None), id="nothing was launched"),
            pytest.param(gang("ro"), id="it runs"),
            pytest.param(stopping(warned_at=None), id="no machine is lost"),
            pytest.param(stopping(intent=None), id="it ends by itself"),
            pytest.param(stopping(intent=intent(IntentKind.RANK_ENDED)), id="a rank failed"),
            pytest.param(stopping(intent=intent(IntentKind.TIME_OUT)), id="its time is over"),
            pytest.param(stopping(intent=intent(IntentKind.BUDGET)), id="its budget is used up"),
            pytest.param(stopping(leaves_survivors=True), id="decided"),
            pytest.param(replace(stopping(), machine_id="m-9"), id="replaced"),
            pytest.param(replace(stopping(), cancel_requested="enough"), id="cancelled"),
        ],
    )
    def test_no_others_may(self, job):
        assert not needs_replacements(job)

    def test_a_job_of_one_node_is_replaced_as_ever(self):
        job = stopping()
        alone = replace(job.current_attempt.placement, followers=())

        assert not needs_replacements(replace(job, attempt=replace(job.current_attempt, placement=alone)))

    @pytest.mark.parametrize("event", [HostWarned("i-1", SOON), HostEnded("i-1", "shutting-down", SOON)])
    def test_the_launch_that_asks_for_them_follows_the_stops(self, event):
        job = after(gang("ro"), event)

        assert stopped_tasks(job) == EVERY
        assert job.pending[-1] == RequestLaunch()


class TestWhichAreKept:
    @pytest.mark.parametrize(
        ("job", "machines", "warned"),
        [
            (stopping(), three(), ["i-1"]),
            (stopping(), three(one={"warned_at": NOW}), []),
            (stopping(), three(one={"leave_by": NOW}), []),
            (stopping(), three(one={"state": MachineState.ENDING}), []),
            (stopping(), three(one={"claims": ()}), []),
            (stopping(lost_instances=("i-1",)), three(), []),
            (stopping(), [ready(0), None, ready(2)], []),
        ],
        ids=["warned", "noticed", "left", "ending", "released", "ended", "forgotten"],
    )
    def test_those_that_live_keep_their_ranks(self, job, machines, warned):
        assert chosen(job, machines, *warned).ranks == ("m-0", "", "m-0-n2")

    def test_nothing_is_decided_before_it_is_known_which_machine_is_lost(self):
        assert choose_survivors(stopping(), three(), (), SOON) is None
        assert choose_survivors(stopping(), three(one={"is_unusable": True}), (), SOON) is None

    @pytest.mark.parametrize("doubt", [{"is_unusable": True}, {"away_since": NOW}])
    def test_a_doubtful_machine_is_replaced_with_the_lost_one(self, doubt):
        assert reason_to_leave(stopping(), three(zero=doubt), "i-1") == "1 of 3 machines live"

    def test_fewer_than_half_are_not_kept(self):
        assert reason_to_leave(stopping(), three(), "i-1", "i-2") == "1 of 3 machines live"
        assert choose_survivors(stopping(), [None, None, None], (), SOON) == SurvivorsLeft("0 of 3 machines live")

    def test_a_job_that_is_out_of_time_keeps_none(self):
        job = stopping()
        late = replace(job, definition=replace(job.definition, deadline=timedelta(hours=1)))

        assert "deadline" in reason_to_leave(late, three(), "i-1", now=SOON + timedelta(days=1))

    def test_the_reason_has_both_costs(self):
        assert chosen(stopping(), three(), "i-1").reason == (
            "2 of 3 machines are kept: each would wait for 97 s, and another one in its place boots for 130 s, "
            "as expected"
        )

    def test_slow_boots_on_spot_are_a_reason_to_leave(self):
        slow = {"registered_at": NOW + timedelta(minutes=20)}
        slowly = three(zero=slow, one=slow, two=slow)
        assert reason_to_leave(stopping(), slowly, "i-1").startswith("each would wait for ")

        # On-demand machines are not lost together.
        job = stopping()
        key = replace(job.current_attempt.placement.offering, purchase=PurchaseOption.ON_DEMAND)
        placement = replace(job.current_attempt.placement, offering=key)
        assert chosen(replace(job, attempt=replace(job.current_attempt, placement=placement)), slowly, "i-1")

    def test_the_time_that_a_save_takes_is_not_waited(self):
        job = replace(stopping(), noted=NotedProgress(120, NOW, 1, save_seconds=60.0))

        assert "each would wait for 3" in chosen(job, three(), "i-1").reason


class TestWhatAWaitIsExpectedToCost:
    def test_the_slowest_of_several_takes_longer(self):
        booting = [expected_wait(nodes, 1, 90.0, 0.0, is_spot=True).booting_seconds for nodes in (2, 4, 8, 16)]

        assert booting == sorted(booting)
        assert booting == pytest.approx([115.4, 140.0, 164.6, 189.5], abs=0.2)

    def test_how_much_longer_is_what_is_expected_of_a_sample(self):
        slowest = [expected_wait(nodes, 1, 90.0, 0.0, is_spot=True).booting_seconds for nodes in range(2, 33)]
        quantiles = [NormalDist().inv_cdf((nodes - 0.375) / (nodes + 0.25)) for nodes in range(2, 33)]

        assert slowest == pytest.approx([90.0 * 2 ** (each / 1.645) for each in quantiles], rel=1e-3)

    def test_one_of_few_is_waited_for_and_several_of_many_are_not(self):
        kept = {
            (nodes, missing)
            for nodes in (2, 4, 8, 16, 32)
            for missing in range(1, nodes // 2 + 1)
            if expected_wait(nodes, missing, 90.0, 0.0, is_spot=True).is_worth_it
        }

        assert kept == {(2, 1), (4, 1), (4, 2), (8, 1), (8, 2), (16, 1)}

    def test_without_losses_in_common_those_that_live_always_wait_for_less(self):
        waits = [
            expected_wait(nodes, missing, 600.0, 0.0, is_spot=False)
            for nodes in (2, 4, 16, 32)
            for missing in range(1, nodes)
        ]

        assert all(each.is_worth_it for each in waits)

    def test_a_wait_that_hardly_ends_well_is_none(self):
        wait = expected_wait(32, 1, 1e6, 0.0, is_spot=True)

        assert math.isfinite(wait.keeping_seconds)
        assert not wait.is_worth_it

    def test_boots_are_those_of_the_job(self):
        fast = {"registered_at": NOW + timedelta(seconds=40)}
        slow = {"registered_at": NOW + timedelta(seconds=400)}
        paid = {"paid_since": NOW - timedelta(seconds=10)}

        assert usual_boot(three(zero=fast, two=slow)) == BOOT.total_seconds()
        assert usual_boot([ready(0, **paid)]) == 100.0
        assert usual_boot([ready(0, registered_at=NOW - BOOT)]) == 1.0
        assert usual_boot([None, ready(0, registered_at=None), ready(1, launched_at=None)]) == USUAL_BOOT_SECONDS


class TestHowLongTheyAreKept:
    LIMITS = MachineLimits(registration_deadline=LIMIT)

    def test_those_that_were_requested_together_wait_for_each_other_by_their_own_deadlines(self):
        assert kept_until(three(), self.LIMITS) is None

    def test_those_that_are_kept_wait_as_long_as_a_machine_has_to_register(self):
        new = fake.machine(machine_id="m-9", created_at=SOON)

        assert kept_until([ready(0), new, ready(2)], self.LIMITS) == SOON + LIMIT

    def test_none_waits_until_it_powers_itself_off(self):
        slow = fake.fleet_request(fake.override("p5.48xlarge"), machine_id="m-9")
        new = fake.machine(machine_id="m-9", created_at=SOON, request=slow)

        assert kept_until([ready(0), new], self.LIMITS) == SOON + KEPT_AT_MOST

    def test_a_job_that_waits_is_looked_at_then(self):
        job = follow_stop(after(stopping(), claimed()), Stop(StopKind.INTERRUPTION, SOON), SOON).job
        until = SOON + timedelta(seconds=30)

        assert after(job, MachineAwaited("m-9 is starting", until=until)).wake_at == until
        assert after(job, MachineAwaited("m-9 is starting")).wake_at == SOON + timedelta(minutes=2)


class TestTheNextMachines:
    def test_new_ones_have_the_places_of_those_that_are_lost(self):
        kept = Survivors(("", "b", ""), "")

        assert (kept.missing, kept.with_new(["x", "y"])) == (2, ("x", "b", "y"))
        assert (NO_SURVIVORS.missing, NO_SURVIVORS.with_new(["x"])) == (0, ())

    def test_all_are_claimed_while_the_tasks_stop(self):
        decision = decided(stopping(), claimed())
        job = decision.job

        assert (job.state, job.next_machines) == (JobState.STOPPING, ("m-0", "m-9", "m-0-n2"))
        assert job.pending == (RequestMachine("m-9"),)
        assert [each.machine.machine_id for each in decision.machines] == ["m-9"]
        assert claimed_machines(job) == {*NAMES, "m-9"}
        assert job.machines.requested == gang().machines.requested + 1

    def test_two_new_ones_are_one_request(self):
        decision = decided(stopping(), claimed(2, ("m-9", "m-9-n1", "m-0-n2")))

        assert decision.job.next_machines == ("m-9", "m-9-n1", "m-0-n2")
        assert [each.machine.request.size for each in decision.machines] == [2, 2]

    def test_after_the_interruption_only_those_that_are_lost_are_released(self):
        job = tell(after(stopping(), claimed()), ended(0, 0), ended(1, 1), ended(2, 0))

        assert job.state is JobState.WAITING
        assert job.next_machines == ("m-0", "m-9", "m-0-n2")
        assert released(job) == {"m-0-n1"}

    @pytest.mark.parametrize("kind", [StopKind.MACHINE_FAULT, StopKind.NO_CAPACITY])
    def test_after_any_other_stop_all_are(self, kind):
        job = after(stopping(), claimed())
        decision = follow_stop(job, Stop(kind, SOON), SOON)

        assert decision.job.next_machines == ()

    def test_none_is_kept_where_nobody_saw_a_rank_end(self):
        # It may run on while its instance shuts down.
        job = after(stopping(), claimed())
        seen = follow_stop(job, Stop(StopKind.INTERRUPTION, SOON), SOON)
        unseen = task_lost(job, SOON, "the cluster does not know the task any more", SOON)

        assert seen.job.next_machines == ("m-0", "m-9", "m-0-n2")
        assert (unseen.job.state, unseen.job.next_machines) == (JobState.WAITING, ())

    def test_an_early_failure_is_tried_again_on_the_machines_that_it_had(self):
        job = after(stopping(warned_at=None, host_ended_at=NOW), claimed())
        attempt = replace(job.current_attempt, host_ended_at=None)
        decision = follow_stop(replace(job, attempt=attempt), Stop(StopKind.USER_ERROR, SOON, exit_code=1), SOON)

        assert decision.job.next_machines == NAMES

    @pytest.mark.parametrize("refusal", [None, Consequence.NEXT, Consequence.PAUSE])
    def test_none_is_kept_once_one_of_them_is_lost(self, refusal):
        job = after(stopping(), claimed())
        lost = decided(job, MachineLost("m-0", refusal, "EC2 has none"))

        assert (lost.job.next_machines, lost.job.current_attempt.leaves_survivors) == ((), True)
        assert [(each.event, each.detail) for each in lost.timeline] == [("machines not kept", "EC2 has none")]
        # Those that live have their tasks still.
        assert released(lost.job) == {"m-9"}
        assert not any(isinstance(each, RequestLaunch) for each in lost.job.pending)
        assert not needs_replacements(lost.job)
        assert len(lost.job.machines.useless_at) == (refusal is None)
        job = tell(lost.job, ended(0, 0), ended(1, 1), ended(2, 0))
        assert released(job) == set(NAMES)

    def test_the_job_avoids_what_ec2_had_not_enough_of_also_after_the_stop(self):
        key = fake.offering()
        job = after(stopping(), claimed(), MachineLost("m-0", Consequence.NEXT, "2 of 3", offerings=(key,)))
        job = tell(job, ended(0, 0), ended(1, 1), ended(2, 0))

        assert [each.key for each in job.faults.own_failures] == [key]

    def test_a_decision_to_leave_is_made_once(self):
        left = decided(stopping(), SurvivorsLeft("1 of 3 machines live"))

        assert left.job.current_attempt.leaves_survivors
        assert decided(left.job, SurvivorsLeft("again")).is_ignored
        assert decided(left.job, claimed()).is_ignored

    def test_a_cancelled_job_releases_the_new_one_at_once(self):
        job = after(stopping(), claimed(), CancelAsked("enough"))

        assert released(job) == {"m-9"}
        assert not needs_replacements(job)

    def test_late_events_of_the_old_tasks_mean_nothing_to_a_job_that_waits(self):
        job = tell(after(stopping(), claimed()), ended(0, 0), ended(1, 1), ended(2, 0))
        late = together(stopping(), rank(0, version=50), rank(1, version=50), rank(2, version=50))

        assert job.next_machines
        assert decided(job, HostWarned("i-1", SOON)).is_ignored
        assert late.version > 0


def released(job: Job) -> set[str]:
    return {each.machine_id for each in job.pending if isinstance(each, ReleaseMachine)}
