"""What the simulated region has in capacity reservations, since when, and whether jobs wait for it too long."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch_local.ecs import Clock, EcsSimulator, Event
from relaunch_local.ecs.engine.model import Instance
from relaunch_local.ecs.engine.reservations import ENDED_BEFORE_END, CapacityReservation
from relaunch_local.simulation.checks.facts import AccountFacts
from relaunch_local.simulation.checks.invariants import Invariants

# What the design says, written down here once more: a start, and the time to a checkpoint, or to the end of the job.
_START = timedelta(minutes=8)
_LEAST_WORK = timedelta(minutes=30)
# A function decides on what it read up to a minute ago, of an answer that is used for half a minute.
_READ = timedelta(seconds=67 + 30 + 15)
_LOOK_SECONDS = 300.0
# Ten minutes while reservations cannot be read, and a launch that fails time and again with many faults.
_LONGEST_WAIT = timedelta(minutes=35)


class ReservedStock:
    """Notes since when each reservation has had one free instance, two, and so on, as EC2 describes it."""

    def __init__(self, clock: Clock, simulator: EcsSimulator, facts: AccountFacts) -> None:
        """Watch the reservations of a region."""
        self._clock = clock
        self._reservations = simulator.reservations
        self._facts = facts
        self._free_since: dict[tuple[str, int], datetime] = {}
        simulator.subscribe(self._observe)

    def watch(self, reservation: CapacityReservation) -> None:
        """Look at a reservation when it is first described as active."""
        shown_at = reservation.starts_at + reservation.shown_late
        seconds = (shown_at - self._clock.now()).total_seconds()
        self._clock.call_later(max(seconds, 0.0), self.note)

    def note(self) -> None:
        """Note which reservations have free instances now, and how many."""
        for each in self._reservations.by_id.values():
            is_shown = self._reservations.shown_state(each) == "active"
            free = self._reservations.available(each) if is_shown else 0
            for count in range(1, each.total + 1):
                if count <= free:
                    self._free_since.setdefault((each.reservation_id, count), self._clock.now())
                else:
                    self._free_since.pop((each.reservation_id, count), None)

    def every(self) -> Iterator[tuple[str, str]]:
        """Yield the type and the zone of each reservation, whatever its state."""
        for each in self._reservations.by_id.values():
            yield each.instance_type, each.zone

    def is_open(self, instance_type: str, zone: str | None, definition: JobDefinition, now: datetime) -> bool:
        """Return whether a reservation has had an instance for each node for long enough that every function knows.

        It is left out where it ends before a job has started and saved, or has finished.
        """
        least = _START + max(_LEAST_WORK, definition.estimated_duration or _LEAST_WORK)
        self.note()
        return any(
            (each.instance_type, each.zone) == (instance_type, zone)
            and self._free_since.get((each.reservation_id, definition.nodes), now) <= now - _READ
            and (each.ends_at is None or each.ends_at - ENDED_BEFORE_END - now > least)
            for each in self._reservations.by_id.values()
        )

    def _observe(self, event: Event) -> None:
        kind = event["detail-type"]
        if kind == "EC2 Instance State-change Notification":
            self.note()
        elif kind == "Capacity Block Reservation Expiration Warning":
            reservation = self._reservations.find(event["detail"]["capacity-reservation-id"])
            self._facts.block_announced(event, [each.instance_id for each in self._reservations.inside(reservation)])


class ReservationWaits:
    """Checks every few minutes that no job waits for what is reserved while something else is open to it."""

    def __init__(
        self, clock: Clock, invariants: Invariants, facts: AccountFacts, find_open: Callable[[Job], str]
    ) -> None:
        """Look at the jobs of an account from now on; `find_open` returns what a job may be launched on."""
        self._clock = clock
        self._invariants = invariants
        self._facts = facts
        self._find_open = find_open
        self._open_since: dict[str, datetime] = {}
        clock.call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        now = self._clock.now()
        self._clock.call_later(_LOOK_SECONDS, self._look)
        for job in self._invariants.jobs.values():
            found = self._find_open(job) if _waits_for_capacity(job) else ""
            if not found or self._invariants.live_tasks(job.job_id):
                self._open_since.pop(job.job_id, None)
                continue
            since = self._open_since.setdefault(job.job_id, now)
            is_short = now - since <= _LONGEST_WAIT + self._facts.outage_time(since, now)
            message = f"{job.job_id} since {since:%H:%M:%S}: {found}"
            self._invariants.check("no job waits for what is reserved beside what is open to it", is_short, message)


def _waits_for_capacity(job: Job) -> bool:
    """Return whether a job that takes more than what is reserved has nothing, and does not wait for anything else."""
    options = job.definition.purchase.options
    is_idle = job.state is JobState.WAITING and not job.machine_id
    is_for_capacity = job.waiting is not None and job.waiting.reason in (WaitReason.CAPACITY, WaitReason.LAUNCH)
    return PurchaseOption.RESERVED in options and len(options) > 1 and is_idle and is_for_capacity


def option_of(host: Instance) -> str:
    """Return how an instance was bought, as the application calls it: EC2 calls what is reserved on-demand."""
    return "reserved" if host.reservation_id else host.purchase.value
