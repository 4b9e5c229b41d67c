"""Everybody who wants to know of changes of jobs: EventBridge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from relaunch.core.records import dataclass

if TYPE_CHECKING:
    from relaunch.core.jobs.budgets import BudgetReport
    from relaunch.core.lifecycle.change_events import JobStateChange


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of events, by their sequence; what is in neither may be sent later."""

    taken: frozenset[int] = frozenset()
    refused: Mapping[int, str] = field(default_factory=dict, hash=False)
    """Those that never can be sent, and why."""
    postponed: str = ""
    """Why the others were not taken; empty if there are none."""


class JobEvents(Protocol):
    """Takes the events of jobs."""

    def send(self, events: Sequence[JobStateChange]) -> Sent:
        """Send events of one job in their order, at least once, within seconds; errors are not raised."""

    def send_budget(self, report: BudgetReport) -> str:
        """Send how far a budget is used up, at least once; return why it was not sent, empty if it was."""


class NoJobEvents:
    """Implements JobEvents where nobody listens."""

    def send(self, events: Sequence[JobStateChange]) -> Sent:
        """Take all."""
        return Sent(frozenset(each.sequence for each in events))

    def send_budget(self, report: BudgetReport) -> str:
        """Take it."""
        del report
        return ""
