"""Machines that are launched and billed and never run a task: a pool, an image, or a definition that is refused.

These faults are drawn once for a seed. They last for minutes, for hours, or for ever, and do not end with the others:
what somebody has to mend is not mended because the rest is calm.
"""

from datetime import datetime, timedelta

from relaunch.core.jobs.job import Job
from relaunch_local.ecs import Purchase
from relaunch_local.ecs.engine.pools import HostFault
from relaunch_local.simulation.account import SimulatedAccount

_SHARE = 0.3
_FOR_EVER = timedelta(days=30)
_POOL = "pool-useless"
_IMAGE = "image-useless"
_PLACEMENT = "placement-refused"
_LAUNCH = "launches-refused"


class UselessMachineFaults:
    """Injects at most one such fault, in seeds with machines of our own and without close deadlines."""

    def __init__(self, account: SimulatedAccount) -> None:
        """Draw the fault, and schedule its beginning and its end."""
        self._account = account
        self._dice = account.chance.stream("useless-machines")
        self.lasts_until: datetime | None = None
        """When it ends; None: there is none, or it lasts for ever."""
        self.is_endless = self.has_begun = False
        self._began_at = account.clock.now()
        self._family = ""
        scenario = account.scenario
        if scenario.burst_family:
            account.clock.call_later(0.0, self._begin)
            return
        has_limits = any(each.estimated_duration is not None for each in scenario.definitions) or scenario.returning
        if not account.scenario.machines.types or has_limits or self._dice.random() >= _SHARE:
            return
        seconds = self._dice.uniform(0.0, 0.5) * account.scenario.chaos_seconds
        account.clock.call_later(seconds, self._begin)

    def everything_over_at(self, now: datetime) -> datetime:
        """Return when every job must be over: the last probe is a day after the first refusal, or fails the job."""
        if not self.has_begun:
            return now
        # One that has trained is held back for 14 days.
        return now + timedelta(days=16) if self.is_endless else max(now, self.lasts_until or now) + timedelta(days=2)

    def may_end(self, job: Job) -> bool:
        """Return whether a job may fail because no machine was of use for a day, or for two weeks once it trained."""
        # What a job waits for as capacity is waited for a day, whether it has trained or not.
        is_refused = "not running for " not in job.reason
        has_trained = job.totals.first_started_at is not None
        held_back = timedelta(days=14) if has_trained and is_refused else timedelta(days=1)
        is_about_it = self._family in ("", job.definition.task_definition)
        # A machine may have been of no use before, for another reason: the job waits since then.
        since = max(min(self._account.useless.first_at() or self._began_at, self._began_at), job.accepted_at)
        ended_at = job.ended_at or self._account.clock.now()
        by_chance = is_refused and self._account.useless.had_none_of_use(job, ended_at - held_back)
        return by_chance or (self.is_endless and is_about_it and ended_at - since >= held_back)

    def _begin(self) -> None:
        is_burst = bool(self._account.scenario.burst_family)
        kind = _LAUNCH if is_burst else self._dice.choice((_POOL, _POOL, _IMAGE, _PLACEMENT))
        if not self._account.chance.strikes(kind, 2.0):
            return
        # For as long as each job of a burst would buy several probes; then a seed takes longer, as all look again.
        hours = 8.0 if is_burst else self._dice.choice((0.3, 2.0, 6.0, None))
        least = 3.0 if is_burst else 0.1
        lasts = _FOR_EVER if hours is None else timedelta(hours=self._dice.uniform(least, hours))
        self._began_at = self._account.clock.now()
        self.has_begun = True
        self.is_endless = hours is None
        self.lasts_until = None if hours is None else self._account.clock.now() + lasts
        if kind == _LAUNCH:
            what = self._refuse_launches()
        else:
            what = self._refuse_placement() if kind == _PLACEMENT else self._spoil(is_everywhere=kind == _IMAGE)
        self._account.trace.line(f"FAULT {kind}: {what} for {lasts}")
        if hours is not None:
            self._account.clock.call_later(lasts.total_seconds(), self._end)

    def _spoil(self, *, is_everywhere: bool) -> str:
        machines = self._account.scenario.machines
        pools = [(name, purchase, zone) for name in machines.types for purchase in Purchase for zone in machines.zones]
        chosen = pools if is_everywhere else [self._dice.choice(pools)]
        fault = self._dice.choice(list(HostFault))
        self._account.simulator.fleets.pools.host_faults.update(dict.fromkeys(chosen, fault))
        return f"{fault.value} in {'every pool' if is_everywhere else chosen[0]}"

    def _refuse_placement(self) -> str:
        family = self._dice.choice(self._account.scenario.definitions).task_definition
        self._account.delayed_ecs.unplaceable.add(family)
        self._family = family
        return family

    def _refuse_launches(self) -> str:
        self._family = self._account.scenario.burst_family
        self._account.delayed_ecs.refused_families.add(self._family)
        return self._family

    def _end(self) -> None:
        self._account.simulator.fleets.pools.host_faults.clear()
        self._account.delayed_ecs.unplaceable.clear()
        if self._account.delayed_ecs.refused_families:
            self._account.delayed_ecs.refused_families.clear()
            self._account.refusals.granted()
