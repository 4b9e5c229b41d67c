"""Apply the announced end of a Capacity Block to the machines of our own in it, and to the jobs on them."""

from datetime import timedelta

from relaunch.core.launches.launch import InstanceEvent, InstanceEventKind, ReservationEnding
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.core.offerings.reservations import TAKEN_BEFORE_END
from relaunch.ports import JobDependencies, NotYetError, PermanentError, PortError
from relaunch.usecases.observe_capacity import observe_capacity

# The most instances of Capacity Blocks that an account may have, which no stack has machines beyond.
_MOST_MACHINES = 256
# Reconcile looks at jobs that are due once a minute.
_SPARE = timedelta(minutes=2)
_LAUNCHED = (MachineState.STARTING, MachineState.READY)
_WARNING = InstanceEventKind.INTERRUPTION_WARNING


def observe_reservation(event: ReservationEnding, deps: JobDependencies) -> list[str]:
    """Warn every machine in the reservation, as by an interruption warning; return the IDs of their instances.

    EC2 names no instances. Machines that were not warned yet come first, so that a repetition goes on where a function
    ended early. The event does not come back at the last moment of a task that trains on, as a spot warning does: a
    message that is held for minutes is one that waits to WarningsAgeAlarm. The other message for that moment, and
    reconcile, have the spare time.

    Raises:
        TransientError: the event could not be applied to all machines, but was to the others; retry.
    """
    failed: list[PortError] = []
    warned = []
    for machine in sorted(_machines_in(event.reservation_id, deps), key=lambda each: each.warned_at is not None):
        instance_id, ends_at = machine.instance_id or "", event.ends_at - TAKEN_BEFORE_END - _SPARE
        try:
            observe_capacity(InstanceEvent(_WARNING, instance_id, at=event.at, ends_at=ends_at), deps)
        except NotYetError:
            pass
        except PortError as error:
            failed.append(error)
        warned.append(instance_id)
    deps.log.decided("reservation-ends", reservation_id=event.reservation_id, instance_ids=warned)
    if failed:
        raise min(failed, key=lambda error: isinstance(error, PermanentError))
    return warned


def _machines_in(reservation_id: str, deps: JobDependencies) -> list[Machine]:
    """Return the machines in the reservation that EC2 launched and nobody ends."""
    machines = (deps.machines.load_machine(each) for each in deps.machines.load_living(_MOST_MACHINES))
    launched = [each for each in machines if each is not None and each.state in _LAUNCHED]
    return [each for each in launched if each.request.reservation_id == reservation_id]
