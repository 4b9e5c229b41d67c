"""Regular expressions of job definitions."""

from typing import Protocol


class InputPatterns(Protocol):
    """Matches the inputs of jobs with the patterns of their definitions, in time proportional to their length."""

    def matches(self, pattern: str, value: str) -> bool:
        """Return whether the whole value matches.

        Raises:
            UnsupportedPatternError: the pattern cannot be matched in such time, or is none.
        """
