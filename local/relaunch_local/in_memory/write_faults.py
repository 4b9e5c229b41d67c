"""Writes that fail before or after they take effect."""


class WriteFaults:
    """A store whose next writes fail as planned."""

    def __init__(self) -> None:
        self._faults: list[tuple[Exception, bool]] = []

    def fail_next(self, error: Exception, *, after_effect: bool = False) -> None:
        """Let the next write raise this; with `after_effect` once it has written."""
        self._faults.append((error, after_effect))

    def _fault(self) -> Exception | None:
        """Return the error to raise once the write has taken effect, None if there is none.

        Raises:
            Exception: the error of a write that fails before.
        """
        if not self._faults:
            return None
        error, is_after_effect = self._faults.pop(0)
        if not is_after_effect:
            raise error
        return error
