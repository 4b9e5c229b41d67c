"""The logger of the functions: one structured line per decision."""

from aws_lambda_powertools import Logger

# Powertools' own keys cannot be given as extra fields.
_RESERVED = frozenset({"message", "level", "location", "timestamp", "service", "name", "args"})


class PowertoolsLog:
    """Implements DecisionLog over powertools' Logger; nothing secret and no environment ever gets in here."""

    def __init__(self) -> None:
        self._logger = Logger()

    def decided(self, decision: str, **facts: object) -> None:
        extra = {name: value for name, value in facts.items() if value is not None and name not in _RESERVED}
        self._logger.info(decision, extra=extra)


class SilentLog:
    """Implements DecisionLog for the command, whose own output says what was done."""

    def decided(self, decision: str, **facts: object) -> None:
        """Say nothing."""
