"""Why a step fails."""

from __future__ import annotations


class ActionError(Exception):
    """The step fails; the message says what to do."""


class UnavailableError(ActionError):
    """A service did not answer, or not now, however often it was asked; asking again later may succeed."""
