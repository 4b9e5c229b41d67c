"""Thousands of jobs whose statuses are set through send_notices, at a GitHub that fails, limits and refuses.

Nothing sleeps: the clock goes from one message to the next. The fake counts the limits by itself. More jobs:
`make commit-statuses`.
"""

import heapq
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from random import Random

from fakes.clock import FakeClock
from fakes.commit_changes import make_change, with_commit
from fakes.dependencies import make_dependencies
from fakes.github_api import Answer, GithubApi, InProcessApi
from fakes.notices import FakeReceivers
from fakes.sources import ListLog
from relaunch.adapters.github.commit_statuses import GithubCommitStatuses
from relaunch.core.jobs.changes import ChangedPart
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.lifecycle.change_events import EventMachine, JobStateChange
from relaunch.core.notices.commit_status import commit_status_of
from relaunch.core.notices.status_budget import MIDDLES_PER_HOUR, MIDDLES_PER_MINUTE, PER_HOUR, PER_MINUTE
from relaunch.ports import NotYetError, TransientError
from relaunch.usecases.send_notices import send_notices
from relaunch_local.in_memory.commit_statuses import InMemoryCommitStatuses
from relaunch_local.internet.github_refusals import REFUSALS
from relaunch_local.internet.github_statuses import GithubStatuses
from relaunch_local.simulation.github import GithubWebhooks

FAILING = 0.2
LONGEST_DELAY_SECONDS = 900  # of a message, by SQS
# What GitHub refuses for good is a matter of what is asked for, and not of luck: a repository for each.
FOR_GOOD = {name: each for name, each in REFUSALS.items() if not each.may_pass and name != "a-bad-token"}
PASSING = [*(name for name in REFUSALS if name not in FOR_GOOD), "timed-out", "timed-out-after-it-took-effect"]
ENDS = (JobState.SUCCEEDED, JobState.SUCCEEDED, JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


@dataclass
class World:
    """Messages of changes, the function that handles them, and GitHub."""

    random: Random
    jobs: int
    hours: float
    failing: float = FAILING
    clock: FakeClock = field(default_factory=FakeClock)
    log: ListLog = field(default_factory=ListLog)
    faults: Counter[str] = field(default_factory=Counter)
    handled: int = 0
    changes: int = 0
    last: dict[str, JobStateChange] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = frozenset({"acme/vision", *(f"acme/{name}" for name in FOR_GOOD)})
        self.github = GithubStatuses(self.clock.now, names, refuse=self._refuse, lose=self._lose)
        api = GithubApi(GithubWebhooks(self.clock.now, lambda _webhook, _guid: None), statuses=self.github)
        api.refuse = self._refuse_for_good
        self.receiver = GithubCommitStatuses(InProcessApi(api), InMemoryCommitStatuses(), self.clock)
        self.deps = make_dependencies(receivers=FakeReceivers([self.receiver]), clock=self.clock, log=self.log)

    def _refuse_for_good(self, _method: str, path: str) -> Answer | None:
        name = path.split("/")[2]
        return (self.github.count() or FOR_GOOD[name].answer) if name in FOR_GOOD else None

    def _refuse(self) -> Answer | None:
        self._fault = self.random.choice(PASSING) if self.random.random() < self.failing else ""
        if not self._fault:
            return None
        self.faults[self._fault] += 1
        if self._fault == "timed-out":
            return 0, {}, ""
        if self._fault == "timed-out-after-it-took-effect":
            return None
        status, headers, body = REFUSALS[self._fault].answer
        if "X-RateLimit-Reset" in headers:
            headers = {**headers, "X-RateLimit-Reset": str(int(self.clock.now().timestamp()) + 300)}
        return status, headers, body

    def _lose(self) -> Answer | None:
        return (0, {}, "") if self._fault == "timed-out-after-it-took-effect" else None

    def messages(self) -> list[tuple[datetime, JobStateChange]]:
        """Return the events of all jobs with when each is received: some twice, and not in their order."""
        found = []
        for number in range(self.jobs):
            for change in self._life(number):
                self.changes += 1
                copies = 2 if self.random.random() < 0.05 else 1
                found += [(change.time + self._transit(), change) for _ in range(copies)]
        return found

    def _transit(self) -> timedelta:
        return timedelta(seconds=self.random.expovariate(1 / 5))

    def _life(self, number: int) -> Iterator[JobStateChange]:
        name = self.random.choice(list(FOR_GOOD)) if number % 20 == 0 else "vision"
        commit = {"RELAUNCH_GIT_REPOSITORY": f"acme/{name}", "RELAUNCH_GIT_SHA": f"{number + 1:040x}"}
        at = self.clock.now() + timedelta(hours=self.random.uniform(0, self.hours))
        change = with_commit(make_change(job_id=f"resnet-{number:08x}", time=at), **commit)
        middles = [JobState.LAUNCHING, JobState.RUNNING] * self.random.choice((1, 1, 1, 2))
        for state in (JobState.WAITING, *middles, self.random.choice(ENDS)):
            yield change
            at += timedelta(seconds=self.random.choice((5, 60, 300, 3_000)) * self.random.uniform(0.5, 1.5))
            change = replace(
                make_change(job_id=change.job_id, sequence=change.sequence + 1, time=at),
                trigger=change.trigger,
                state_before=change.state,
                state=state,
                waiting_for=WaitReason.CAPACITY if state is JobState.WAITING else None,
                changed=(ChangedPart.WAITING_FOR if state is JobState.WAITING else ChangedPart.STATE,),
                machine=EventMachine(instance_type="g5.xlarge", purchase="spot"),
                attempt=1,
            )
        self.last[change.job_id] = change
        yield change

    def run(self) -> None:
        """Handle every message until none is left."""
        numbers = count()
        queue = [(at, next(numbers), change) for at, change in self.messages()]
        heapq.heapify(queue)
        while queue:
            at, _, change = heapq.heappop(queue)
            self.clock.set(max(at, self.clock.now()))
            self.handled += 1
            try:
                send_notices(change, self.deps)
            except NotYetError as error:
                delay = min(error.seconds, LONGEST_DELAY_SECONDS)
            except TransientError:
                delay = 30
            else:
                continue
            heapq.heappush(queue, (self.clock.now() + timedelta(seconds=delay), next(numbers), change))

    def is_wrong(self, end: JobStateChange) -> bool:
        """Return whether GitHub shows another end of a job than its own."""
        status = commit_status_of(end)
        shown = self.github.latest(status.sha, status.context) if status is not None else None
        return shown is not None and status is not None and shown.state != status.state

    def given_up(self) -> list[dict[str, object]]:
        return [facts for decision, facts in self.log.lines if decision == "notice given up"]


def check(world: World) -> None:
    world.run()

    assert not world.github.exceeded
    assert not world.github.too_soon
    for job_id, change in world.last.items():
        expected = commit_status_of(change)
        assert expected is not None
        shown = world.github.statuses.get((expected.repository, expected.sha, expected.context), [])
        if expected.repository != "acme/vision":
            assert not shown
            continue
        assert shown, job_id
        assert (shown[-1].state, shown[-1].description) == (expected.state, expected.description)
        states = [each.state for each in shown]
        ends = [index for index, state in enumerate(states) if state != "pending"]
        assert "pending" not in states[ends[0] :]


def summary(world: World) -> str:
    github = world.github
    taken = sum(len(each) for each in github.statuses.values())
    return (
        f"{world.changes} changes of {world.jobs} jobs: {github.requests} requests, {taken} statuses set, "
        f"{sum(world.faults.values())} failed; at most {github.most_in_a_minute} in a minute and "
        f"{github.most_in_an_hour} in an hour; {world.handled} messages handled in "
        f"{(world.clock.now() - FakeClock().now()) / timedelta(hours=1):.1f} hours"
    )


def lags(world: World) -> list[float]:
    """Return how many minutes after the end of each job its commit showed it, in their order."""
    found = []
    for change in world.last.values():
        status = commit_status_of(change)
        assert status is not None
        shown = world.github.statuses.get((status.repository, status.sha, status.context), [])
        found += [(each.at - change.time) / timedelta(minutes=1) for each in shown if each.state != "pending"][:1]
    return sorted(found)


def rows(world: World) -> Iterator[tuple[str, object]]:
    """Return what a run counted."""
    github = world.github
    late = lags(world)
    yield "jobs, and their changes", f"{world.jobs:,}, {world.changes:,}"
    yield "requests", f"{github.requests:,}"
    yield "statuses that GitHub took", f"{sum(len(each) for each in github.statuses.values()):,}"
    yield from ((f"failed: {kind}", f"{count:,}") for kind, count in sorted(world.faults.items()))
    yield "the most requests in a minute, in an hour", f"{github.most_in_a_minute}, {github.most_in_an_hour}"
    yield "beyond a limit; before GitHub may be asked again", f"{len(github.exceeded)}; {len(github.too_soon)}"
    yield "commits that show another end than that of their job", sum(map(world.is_wrong, world.last.values()))
    yield (
        "minutes from an end to its status: half, 95 %, all",
        ", ".join(f"{late[int(len(late) * share) - 1]:.0f}" for share in (0.5, 0.95, 1)),
    )


def main(jobs: int) -> None:
    """Print the table of a run of many jobs at a GitHub that fails, and how late ends are where too many end."""
    many = World(Random(1), jobs=jobs, hours=jobs / 80)  # noqa: S311 - not a secret
    check(many)
    sys.stdout.writelines(f"| {name} | {value} |\n" for name, value in rows(many))
    for per_hour in (200, 300, 400, 600):
        for hours in (1, 4):
            world = World(Random(1), jobs=per_hour * hours, hours=hours, failing=0)  # noqa: S311 - not a secret
            check(world)
            late = lags(world)
            half, most = (late[int(len(late) * share) - 1] for share in (0.5, 1))
            sys.stdout.write(f"| {per_hour} | {hours} | {half:.0f} | {most:.0f} |\n")


def test_each_job_ends_on_its_commit_as_it_ended_whatever_github_does(
    record_property: Callable[[str, object], None],
) -> None:
    world = World(Random(31), jobs=1_850, hours=24)  # noqa: S311 - not a secret

    check(world)

    record_property("summary", summary(world))
    assert world.changes >= 10_000
    assert world.faults.keys() == set(PASSING)
    mendable = [each for name, each in FOR_GOOD.items() if each.is_mendable]
    given_up = Counter(str(each["reason"]) for each in world.given_up() if each["is_alert"])
    # What GitHub refuses for good is said once a day for each repository, and nothing else was given up;
    assert given_up.keys() == {str(each["reason"]) for each in world.given_up()}
    assert len(given_up) == len(FOR_GOOD)
    assert sum(count <= 2 for count in given_up.values()) >= len(FOR_GOOD) - len(mendable)
    # what somebody could set right is said once a day while it is tried, and when it is given up after one.
    held = Counter(str(facts["reason"]) for decision, facts in world.log.lines if decision == "notice held")
    assert held.keys() <= given_up.keys()
    assert len(held) == len(mendable)
    assert max(held.values()) <= 3


def test_of_many_jobs_at_once_ends_go_first_and_the_limits_are_used_and_kept_to() -> None:
    world = World(Random(7), jobs=600, hours=0.4, failing=0)  # noqa: S311 - not a secret

    check(world)

    assert MIDDLES_PER_HOUR < world.github.most_in_an_hour <= PER_HOUR
    assert MIDDLES_PER_MINUTE < world.github.most_in_a_minute <= PER_MINUTE


if __name__ == "__main__":
    main(int(sys.argv[1]))
