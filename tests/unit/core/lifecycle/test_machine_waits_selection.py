"""What the next machine was selected from is kept, also while the task saves on the old one."""

from dataclasses import replace

from fakes.builders import make_job, make_running_attempt, make_selection
from fakes.stored_machines import make_machine
from relaunch.core.jobs.attempt import IntentKind, StopIntent
from relaunch.core.jobs.job import selected_placement
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.events import MachineClaimed
from relaunch.core.machines.decision import MachineDecision
from unit.core.lifecycle.steps import decided
from unit.core.lifecycle.table_matrix import SOON


def test_the_selection_of_a_handover_belongs_to_the_next_attempt() -> None:
    attempt = make_running_attempt(intent=StopIntent(IntentKind.INTERRUPTION, SOON, "spot interruption warning"))
    attempt = replace(attempt, placement=replace(attempt.placement, machine_id="m-1"))
    job = make_job(state=JobState.STOPPING, attempt=attempt, has_slot=True)
    selection = make_selection()
    claimed = MachineClaimed(MachineDecision(make_machine("m-2")), "EC2 is asked for g5.xlarge", selection, is_new=True)

    decision = decided(job, claimed)

    assert decision.job.machine_id == "m-2"
    assert (decision.selection, decision.selected_at) == (selection, SOON)
    assert selected_placement(decision.job, is_placed=True) == (2, 1)
