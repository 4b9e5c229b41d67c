"""Errors of ports."""


class PortError(Exception):
    """Base class of the errors of ports."""


class TransientError(PortError):
    """The error is temporary: the message stays in its queue."""


class ReservationsUnreadableError(TransientError):
    """Capacity reservations could not be read: what else is offered is known."""


class NotYetError(PortError):
    """The message came early: it stays in its queue, and is received again after `seconds`; `reason` says why."""

    def __init__(self, seconds: int, reason: str = "") -> None:
        super().__init__(f"{reason}; to be handled in {seconds} s" if reason else f"to be handled in {seconds} s")
        self.seconds = seconds


class PermanentError(PortError):
    """A retry would fail too: the message is sent to the dead-letter queue with this reason."""


class NotGrantedError(PermanentError):
    """A retry would fail until somebody grants or mends something outside the request.

    That is a permission, a credential, a key, a role, or a cluster that is not there. A job waits for it
    (core.lifecycle.refusal_waits).
    """


class StaleWriteError(TransientError):
    """The item was changed since it was read: load it and decide again."""


class SlotsFullError(Exception):
    """A limit on running jobs is reached; `cap` is `definition`, `stack` or `group`, `limit` its value.

    Of a concurrency group one job runs: another one holds it, or a newer one was accepted.
    """

    def __init__(self, cap: str, limit: int) -> None:
        super().__init__(f"{limit} jobs of the {cap} are running already")
        self.cap = cap
        self.limit = limit


class BudgetExceededError(Exception):
    """The budget of a `scope` has no room for what a job is to reserve (core.jobs.budgets)."""

    def __init__(self, scope: str) -> None:
        super().__init__(f"the budget of {scope} has no room for it")
        self.scope = scope


class MachineLimitError(Exception):
    """A limit on machines of our own is reached; `limit` is `machines` or `usd_per_hour`."""

    def __init__(self, limit: str) -> None:
        super().__init__(f"the limit of the stack on {limit} of its own machines is reached")
        self.limit = limit


class StartsChangedError(Exception):
    """The machines that start for a cause were changed since they were loaded: load them again."""


class MachineTakenError(Exception):
    """A machine that a job's decision changes was changed since it was loaded, or exists already: choose again."""

    def __init__(self, machine_id: str) -> None:
        super().__init__(f"machine {machine_id} was changed since it was loaded")
        self.machine_id = machine_id


class UnsupportedPatternError(PermanentError):
    """A pattern of a job definition is not supported; the message says why."""


class NoActiveRevisionError(PermanentError):
    """The task definition family has no ACTIVE revision."""
