"""Jobs without a limit on their time: on-demand for good after the first refusal, or back to spot when that pays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from policy.replay import Job, Knowledge, Run, start_ticks
from policy.series import Series
from relaunch.core.lifecycle.moves import MOST_IN_A_DAY, PAUSE
from relaunch.core.market.published import stay, take_spot
from relaunch.core.market.returning import return_to_spot
from relaunch.core.market.situation import Action, Choice, Place, Policy, Rule, Situation

# What a job shows whose checkpoints are ten minutes apart: the constant of half an hour counts half.
_UNSAVED = 1 / 12
_BETWEEN = 1 / 3
_PAUSE_HOURS = PAUSE.total_seconds() / 3600
_DAY_HOURS = 24.0


def first_refusal(situation: Situation) -> Choice:
    """Be on spot until it is refused, and on on-demand from then on, as a job without a limit was."""
    if situation.place is not Place.IDLE:
        return stay(situation)
    return take_spot(situation) or Choice(Action.ON_DEMAND, Rule.OUTAGE)


@dataclass(slots=True)
class Returning:
    """A policy of one run: as `first_refusal`, and back to spot as the application moves a job without a limit.

    `is_known`: its definition says how long it is.
    """

    is_known: bool
    _tried_at: float | None = None
    _moved_at: list[float] = field(default_factory=list)

    def __call__(self, situation: Situation) -> Choice:
        """Choose as the application does."""
        now = situation.elapsed
        if self._tried_at is not None and now > self._tried_at:
            # A try that is refused is followed by the next choice at the same tick.
            self._moved_at.append(self._tried_at)
        self._tried_at = None
        if situation.place is not Place.ON_DEMAND:
            return first_refusal(situation)
        if not self._may_move(now):
            return stay(situation)
        left = situation.work_left if self.is_known else situation.work_done
        unsaved = _UNSAVED
        between = _BETWEEN
        known = replace(situation, work_left=left, time_left=None, unsaved=unsaved, between_checkpoints=between)
        choice = return_to_spot(known)
        self._tried_at = now if choice.action is Action.TRY else None
        return choice

    def _may_move(self, now: float) -> bool:
        lately = [at for at in self._moved_at if now - at < _DAY_HOURS]
        return len(lately) < MOST_IN_A_DAY and not (lately and now - lately[-1] < _PAUSE_HOURS)


POLICIES: dict[str, Callable[[], Policy]] = {
    "first refusal": lambda: first_refusal,
    "back, length known": lambda: Returning(is_known=True),
    "back, length unknown": lambda: Returning(is_known=False),
}


def saved(series: Sequence[Series], job: Job, make: Callable[[], Policy], starts: int) -> tuple[float, float]:
    """Return which share of on-demand all the time is saved, and how often a job starts, over all series."""
    costs = 0.0
    count = 0
    runs = 0
    for each in series:
        for start in start_ticks(each, job, starts):
            outcome = Run([each], start, job, make(), Knowledge.TRIES).to_end()
            costs = costs + outcome.cost
            count = count + outcome.starts
            runs = runs + 1
    return 1 - costs / (runs * (job.work + job.overhead)), count / runs
