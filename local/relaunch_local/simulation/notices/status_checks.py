"""Checks of what commits at GitHub show in the end, against the events that EventBridge took."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from relaunch_local.ecs import Clock
from relaunch_local.internet.github_statuses import GithubStatuses
from relaunch_local.simulation.checks.record import Check
from relaunch_local.simulation.notice_plans import FOR_EVER, StatusPlan
from relaunch_local.simulation.notices.stories import Detail, is_end, time_of

_RAN = ("RUNNING", "STOPPING")
# Four functions set statuses at once: what was sent before GitHub asked for a pause is under way.
_UNDER_WAY = timedelta(seconds=15)
_CLOCK_SKEW = timedelta(seconds=8)
_SAID_AGAIN = timedelta(hours=24)
# Of one repository: four pauses of ten minutes between so many requests, one of which nobody may have noted.
_ASKED = 5
_ASKED_WITHIN = timedelta(minutes=25)
_LAST_TRY_AFTER = timedelta(hours=23)


class Place(NamedTuple):
    """A context of a commit."""

    repository: str
    sha: str
    context: str


@dataclass
class CommitStatusChecks:
    """Compares the statuses of a run with what its jobs deserve."""

    _clock: Clock
    _check: Check
    _github: GithubStatuses
    _plan: StatusPlan
    _said_at: dict[str, datetime] = field(default_factory=dict)
    """By repository: when the last alert said that it lacks the right."""
    _asked_at: dict[str, list[datetime]] = field(default_factory=dict)
    """By repository: the last requests that were refused for that."""

    def said(self, repository: str, failed_at: Iterable[datetime]) -> None:
        """Check an alert that a repository lacks the right; `failed_at`: when calls of DynamoDB failed for good."""
        now = self._clock.now()
        before = self._said_at.get(repository)
        self._said_at[repository] = now
        # Functions that are refused at once say it each; so does one that does not read that it was said.
        is_known = before is not None and now - before > _UNDER_WAY and not any(at >= before for at in failed_at)
        is_once = before is None or not is_known or now - before >= _SAID_AGAIN - _CLOCK_SKEW
        message = f"{repository}: at {before:%m-%d %H:%M:%S}, and again" if before is not None else repository
        self._check("that a repository lacks a right is said once a day", is_once, message)

    def refused(self, repository: str, failed_at: Iterable[datetime], changed_at: datetime) -> None:
        """Check a request that is refused because its repository lacks the right; `failed_at` as above.

        Before a change is given up it is tried once more, whenever others were.
        """
        now = self._clock.now()
        if now - changed_at >= _LAST_TRY_AFTER:
            return
        before = self._asked_at.get(repository, [])
        # Functions that ask at once do not know of one another, nor does anybody where one dies before it notes it.
        if before and now - before[-1] <= _UNDER_WAY:
            return
        asked = self._asked_at[repository] = [*before[1 - _ASKED :], now]
        if len(asked) == _ASKED and not any(at >= asked[0] for at in failed_at):
            message = f"{repository}: {_ASKED} requests from {asked[0]:%H:%M:%S} to {now:%H:%M:%S}"
            is_left_alone = now - asked[0] >= _ASKED_WITHIN
            self._check("a repository without the right is tried every ten minutes", is_left_alone, message)

    def check_request(self, closed_since: datetime | None, closed_until: datetime | None, *, is_known: bool) -> None:
        """Check a request that is about to be sent; `is_known`: functions could save that GitHub asked for a pause."""
        now = self._clock.now()
        if closed_since is None or closed_until is None or not is_known:
            return
        is_left_alone = now <= closed_since + _UNDER_WAY or now >= closed_until - _CLOCK_SKEW
        message = f"a request at {now:%H:%M:%S}, closed until {closed_until:%H:%M:%S}"
        self._check("GitHub is left alone for as long as it asks", is_left_alone, message)

    def check_end(self, stories: Mapping[str, Mapping[int, Detail]], lost: frozenset[str]) -> None:
        """Check that each commit shows the end of its newest job; `lost` are the events that functions died of."""
        newest: dict[Place, list[Detail]] = {}
        for story in stories.values():
            last = story[max(story)]
            place = place_of(last)
            if place is not None:
                newest.setdefault(place, []).append(last)
        for place, ends in newest.items():
            right = self._plan.without_right.get(place.repository)
            is_barred = right is not None and right.seconds >= FOR_EVER
            is_lost = any(each["id"] in lost for each in ends) or place in self._github.full
            if not is_barred and not is_lost and all(map(is_end, ends)):
                self._check_shown(place, ends)
        places = {Place(*each[:2], each[2]) for each in self._github.statuses}
        known = {Place(each.repository, each.sha, each.context.lower()) for each in newest}
        self._check("no other commit has a status", places <= known, f"{sorted(places - known)[:2]}")

    def _check_shown(self, place: Place, ends: list[Detail]) -> None:
        shown = self._github.latest(place.sha, place.context, place.repository)
        latest = max(map(time_of, ends))
        # Of two jobs that ended in the same moment either may be shown.
        deserved = [each for each in ends if time_of(each) == latest]
        is_right = shown is not None and any(
            shown.state == state_of(each) and shown.description.endswith(each["job_id"]) for each in deserved
        )
        about = f"{place.context} of {place.sha[:8]}: {shown}, not {[(each['id'], each['state']) for each in deserved]}"
        self._check("a commit shows how its newest job ended", is_right, about)


def place_of(detail: Detail) -> Place | None:
    """Return the commit that the trigger of a job names, and the context of its definition; None without one."""
    variables = detail["trigger"].get("variables", {})
    repository = variables.get("RELAUNCH_GIT_REPOSITORY", "")
    sha = variables.get("RELAUNCH_GIT_SHA", "")
    return Place(repository, sha, f"relaunch/{detail['definition']}") if repository and sha.strip("0") else None


def state_of(detail: Detail) -> str:
    """Return the state that an end deserves (docs/commit-statuses.md)."""
    if detail["state"] == "SUCCEEDED":
        return "success"
    if detail["state"] == "CANCELLED":
        return "error"
    has_run = detail["state"] == "TIMED_OUT" or detail.get("state_before") in _RAN
    return "failure" if has_run else "error"
