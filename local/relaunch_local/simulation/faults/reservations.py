"""What becomes of capacity reservations: they begin and end, are cancelled, are taken by others, cannot be read."""

from datetime import datetime, timedelta
from functools import partial

from relaunch_local.ecs.engine.model import Instance, LastStatus
from relaunch_local.ecs.engine.reservations import CapacityReservation
from relaunch_local.ecs.rules.fleet import CAPACITY_BLOCK, ON_DEMAND_RESERVATION
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.checks.reservations import ReservationWaits, ReservedStock
from relaunch_local.simulation.machine_scenario import PlannedReservation

# EC2 begins to end a block ten minutes after it announced that: half of them for functions that fail meanwhile.
_TIME_TO_LEAVE = timedelta(minutes=5)
# A stop without an effect is repeated in those minutes once.
_LOST_STOPS = 2
_TAKEN_SECONDS = (300.0, 1_500.0)


class Reservations:
    """Adds the reservations of a seed, and lets things happen to them until the faults stop."""

    def __init__(self, account: SimulatedAccount) -> None:
        """Schedule all of it."""
        self._account = account
        self._dice = account.chance.stream("reservations")
        self._reservations = account.simulator.reservations
        machines = account.scenario.machines
        if not machines.reservations:
            return
        account.choices.reserved = self._stock = ReservedStock(account.clock, account.simulator, account.facts)
        ReservationWaits(account.clock, account.invariants, account.facts, account.choices.find_open)
        self._reservations.on_ending.append(self._check_end)
        account.faulty_ec2.are_reservations_unreadable = self._is_unreadable
        for planned in machines.reservations:
            self._add(planned)
        for begins_at, ends_at in machines.unreadable:
            account.clock.call_later(begins_at, partial(self._note_unreadable, ends_at - begins_at))

    def end(self) -> None:
        """Let others give back what they took."""
        for reservation in self._reservations.by_id.values():
            reservation.taken = 0
        if self._account.scenario.machines.reservations:
            self._stock.note()

    def _add(self, planned: PlannedReservation) -> None:
        account = self._account
        reservation = CapacityReservation(
            planned.reservation_id,
            planned.instance_type,
            planned.zone,
            planned.total,
            CAPACITY_BLOCK if planned.is_block else ON_DEMAND_RESERVATION,
            self._at(planned.starts_at),
            None if planned.ends_at is None else self._at(planned.ends_at),
            timedelta(seconds=planned.expires_late),
            timedelta(seconds=planned.shown_late),
        )
        self._reservations.add(reservation)
        self._stock.watch(reservation)
        if planned.cancelled_at is not None:
            account.clock.call_later(planned.cancelled_at, lambda: self._cancel(reservation))
        if planned.is_shared:
            account.clock.call_later(self._dice.uniform(*_TAKEN_SECONDS), lambda: self._take(reservation))

    def _at(self, seconds: float) -> datetime:
        return self._account.started_at + timedelta(seconds=seconds)

    def _strike(self, kind: str, note: str) -> bool:
        return self._account.chance.strikes(kind, 1e9, note=note)

    def _note_unreadable(self, seconds: float) -> None:
        self._strike("reservations-unreadable", f"for {seconds:.0f} s")

    def _is_unreadable(self) -> bool:
        if self._account.chance.is_calm:
            return False
        now = self._account.clock.now()
        return any(self._at(begin) <= now < self._at(end) for begin, end in self._account.scenario.machines.unreadable)

    def _cancel(self, reservation: CapacityReservation) -> None:
        if self._strike("reservation-cancelled", reservation.reservation_id):
            self._reservations.cancel(reservation.reservation_id)
            self._stock.note()

    def _take(self, reservation: CapacityReservation) -> None:
        """Let others launch into it, or end what they have there; EC2 gives them no more than is free."""
        if self._account.chance.is_calm:
            return
        self._account.clock.call_later(self._dice.uniform(*_TAKEN_SECONDS), lambda: self._take(reservation))
        free = self._reservations.available(reservation) + reservation.taken
        wanted = self._dice.randint(0, reservation.total)
        note = f"{reservation.reservation_id}: {min(wanted, free)}"
        if self._strike("reservation-taken-by-others", note):
            reservation.taken = min(wanted, free)
            self._stock.note()

    def _check_end(self, reservation: CapacityReservation, hosts: list[Instance]) -> None:
        """Check that nothing runs in a block when EC2 begins to end it, if a function knew that in time."""
        account = self._account
        now = account.clock.now()
        known_at = account.facts.block_end_known_at.get(reservation.reservation_id, now)
        is_known = now - known_at >= _TIME_TO_LEAVE + account.facts.outage_time(known_at, now)
        for host in hosts:
            # ECS refuses StopTask for a task while it hides it. One that was asked to stop again lost that too.
            running = [
                each.arn[-6:]
                for each in host.tasks.values()
                if each.last_status is LastStatus.RUNNING
                and not self._was_hidden(each.arn, known_at)
                and account.delayed_ecs.lost_stops[each.arn] < _LOST_STOPS
            ]
            # A host whose agent is away hears of no stop.
            is_away = account.facts.was_away(host.instance_id, known_at, now)
            message = f"{host.instance_id}, known at {known_at:%H:%M:%S}: {', '.join(running)}"
            is_left = not running or not is_known or is_away
            account.invariants.check("no task runs in a Capacity Block when EC2 begins to end it", is_left, message)

    def _was_hidden(self, task_arn: str, since: datetime) -> bool:
        span = self._account.facts.hidden_span(task_arn)
        return span is not None and span[1] > since
