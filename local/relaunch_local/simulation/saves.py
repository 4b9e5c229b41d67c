"""What is checked of each job and machine that the application saves."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from relaunch.adapters.messages.budget_report import BUDGET_DETAIL_TYPE
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.job import Job, TimelineEntry
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.core.selection.selection import Selection
from relaunch_local.ecs import Clock, EcsSimulator
from relaunch_local.iam.permission import Permission
from relaunch_local.simulation.aws.eventbridge import EventBus
from relaunch_local.simulation.aws.group_faults import GroupLaunchFaults
from relaunch_local.simulation.aws.machine_table import MachineIndexes
from relaunch_local.simulation.aws.put_events import event_of_entry
from relaunch_local.simulation.aws.runtime import Runtime
from relaunch_local.simulation.aws.s3 import ObjectStore
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.checks.absent_agents import AbsentAgentChecks
from relaunch_local.simulation.checks.agents import AgentChecks
from relaunch_local.simulation.checks.budgets import BudgetChecks
from relaunch_local.simulation.checks.choices import Choices
from relaunch_local.simulation.checks.costs import Costs
from relaunch_local.simulation.checks.deadlines import Deadlines
from relaunch_local.simulation.checks.facts import AccountFacts
from relaunch_local.simulation.checks.free_hour import FreeHour
from relaunch_local.simulation.checks.functions import FunctionChecks
from relaunch_local.simulation.checks.invariants import Invariants
from relaunch_local.simulation.checks.job_events import JobEventChecks
from relaunch_local.simulation.checks.machines import MachineInvariants
from relaunch_local.simulation.checks.market import check_market_wait, check_move
from relaunch_local.simulation.checks.metrics import MetricChecks
from relaunch_local.simulation.checks.on_demand import OnDemand
from relaunch_local.simulation.checks.record import check_outcome, check_selection
from relaunch_local.simulation.checks.refusals import Refusals
from relaunch_local.simulation.checks.retries import newest_checkpoint
from relaunch_local.simulation.checks.stalls import StallChecks
from relaunch_local.simulation.checks.trace import Trace
from relaunch_local.simulation.checks.trigger_starts import TriggerStarts
from relaunch_local.simulation.checks.useless_machines import UselessMachines
from relaunch_local.simulation.checks.wait_reasons import WaitReasons
from relaunch_local.simulation.scenario import Scenario


class CheckedWrites:
    """Passes each write on to the checks, which the account makes."""

    clock: Clock
    chance: Chance
    runtime: Runtime
    scenario: Scenario
    trace: Trace
    simulator: EcsSimulator
    bus: EventBus
    objects: ObjectStore
    facts: AccountFacts
    invariants: Invariants
    metrics: MetricChecks
    choices: Choices
    wait_reasons: WaitReasons
    on_demand: OnDemand
    deadlines: Deadlines
    refusals: Refusals
    machines: MachineInvariants
    machine_indexes: MachineIndexes
    agents: AgentChecks
    absent_agents: AbsentAgentChecks
    free_hour: FreeHour
    budgets: BudgetChecks
    costs: Costs
    job_events: JobEventChecks
    starts: TriggerStarts
    functions: FunctionChecks
    useless: UselessMachines
    stalls: StallChecks

    def job_saved(self, job: Job, timeline: Sequence[TimelineEntry]) -> None:
        """Check a job that was created or saved."""
        self.trace.saved(job, timeline)
        before = self.invariants.jobs.get(job.job_id)
        self.invariants.job_saved(job, timeline, is_new=job.version == 1)
        self.metrics.job_saved(before, job, timeline)
        self.wait_reasons.job_saved(before, job)
        self.job_events.job_saved(job)
        self.stalls.job_saved(before, job)
        self.budgets.job_saved(before, job)
        if job.definition.target is not Target.ECS:
            return
        recipes = self.scenario.recipes
        now = self.clock.now()
        was_away = self.facts.outage_time(job.accepted_at, now) > timedelta(0)
        has_cap = job.definition.max_price_usd_per_hour is not None
        is_sold = not (has_cap or was_away) and self.on_demand.is_sold_to(job.definition)
        speed = self.on_demand.speed(job.definition)
        check_market_wait(
            self.invariants.check,
            before,
            job,
            recipes,
            newest_checkpoint(job, self.invariants.jobs, self.objects),
            now,
            is_sold=is_sold,
            speed=speed,
            known_speed=lambda: self.on_demand.known_speed(job, now),
        )
        check_move(self.invariants.check, before, job, recipes, self.objects, now, speed=speed)
        self.choices.job_saved(before, job)
        self.machines.claims.job_saved(before, job)
        self.agents.job_saved(before, job)
        self.deadlines.job_saved(job)
        self.refusals.job_saved(job)

    def selection_saved(self, job: Job, selection: Selection) -> None:
        """Check what is stored of what a job may be launched on."""
        check_selection(self.invariants.check, job, selection)

    def event_recorded(self, identity: str, outcome: str) -> None:
        """Check the outcome of an event that was handled."""
        check_outcome(self.invariants.check, identity, outcome)

    def machine_saved(self, machine: Machine) -> None:
        """Check a machine that was created or saved."""
        before = self.machines.machines.get(machine.machine_id)
        self.trace.machine_saved(before, machine)
        self.metrics.machine_saved(before, machine)
        if before is None:
            self.choices.machine_requested(machine, self.invariants.jobs)
        self.agents.machine_saved(before, machine)
        self.absent_agents.machine_saved(before, machine)
        self.free_hour.machine_saved(machine)
        self.costs.machine_saved(machine)
        self.budgets.machine_saved(before, machine)
        self.machine_indexes.note(machine)
        self.machines.machine_saved(machine)
        is_told = before is not None and before.state is MachineState.REQUESTED is not machine.state
        faults = GroupLaunchFaults(self.chance, self.scenario.machines.group_faults)
        if is_told and machine.request.size > 1 and faults.are_others_untold(machine.machine_id[-9:]):
            self.runtime.kill_at_next_step("not all machines of the group have the answer")

    def event_taken(self, entry: Mapping[str, Any]) -> None:
        """Check an event that EventBridge takes, and publish that of a job where definitions wait for events."""
        if entry["DetailType"] == BUDGET_DETAIL_TYPE:
            self.budgets.event_taken(json.loads(entry["Detail"]))
            return
        self.job_events.event_taken(entry)
        if self.scenario.other_triggers is not None:
            self.starts.publish(self.bus, event_of_entry(entry, self.simulator.region.ids.uuid(), self.clock.now()))

    def message_handled(self, function: str, body: str, began_at: datetime) -> None:
        """Note a message that a function handled without an error."""
        self.refusals.message_handled()
        self.starts.message_handled(function, body, began_at)
        self.functions.message_handled(function, body, began_at)

    def call_denied(self, permission: Permission) -> None:
        """Check a call that the role of its function does not allow."""
        self.functions.call_denied(permission)

    def launch_refused(self, parameters: Mapping[str, Any]) -> None:
        """Note a RunTask that is forbidden."""
        self.refusals.refused(parameters)
        self.useless.unplaced(parameters, "RunTask is forbidden")
