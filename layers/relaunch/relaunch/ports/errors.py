"""How a call of the outside world fails."""


class PortError(Exception):
    """A call of a port failed."""


class TransientError(PortError):
    """It failed for now: leave the message in its queue."""


class PermanentError(PortError):
    """Trying again cannot help: the message goes to the dead-letter queue with this reason."""


class StaleWriteError(TransientError):
    """The item has another version than the one that was read: load and decide again."""


class SlotsFullError(Exception):
    """A cap on running jobs is reached; `cap` says which (`definition` or `stack`), `limit` its size."""

    def __init__(self, cap: str, limit: int) -> None:
        super().__init__(f"{limit} jobs of the {cap} are running already")
        self.cap = cap
        self.limit = limit


class NoActiveRevisionError(PermanentError):
    """The task definition family has no ACTIVE revision."""
