"""A stack is updated and rolled back while jobs run: no job is lost, and nothing that the next release stored."""

from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

from relaunch.adapters.aws.dynamodb import table
from relaunch.adapters.aws.dynamodb.formats import check_format
from relaunch.ports import TransientError
from relaunch_local.simulation import Options
from relaunch_local.simulation.aws import emulated_table
from relaunch_local.simulation.aws.calls import Calls
from relaunch_local.simulation.aws.next_release import NextReleaseClient
from relaunch_local.simulation.run import SeedRun

# It has machines of every release.
SEED = 24
# Functions change one after the other, each at a moment of its own within so long.
UPDATE = timedelta(minutes=5)
# Since the beginning: updates, and their rollbacks, ten minutes apart; the last one is an update.
CHANGES = tuple(timedelta(minutes=minutes) for minutes in range(15, 100, 10))


def is_next(function: str, after: timedelta) -> bool:
    """Return whether a function is the next release's, so long after the beginning."""
    lag = UPDATE * (sum(function.encode()) % 97 / 97)
    return sum(after >= change + lag for change in CHANGES) % 2 == 1


class Releases:
    """Which release the running function is of; who looks at the table from outside is the next one's."""

    def __init__(self) -> None:
        self.calls: Calls | None = None
        self.began_at: datetime | None = None
        self.seen: set[tuple[str, bool]] = set()
        self.refused = 0

    def __call__(self) -> bool:
        runtime = self.calls.runtime if self.calls is not None else None
        if runtime is None or self.began_at is None or runtime.current is None:
            return True
        function = runtime.current.function
        found = is_next(function, runtime.clock.now() - self.began_at)
        self.seen.add((function, found))
        return found

    def check(self, item: Any) -> None:
        """Check the format of an item, and count those that are refused."""
        try:
            check_format(item)
        except TransientError:
            self.refused += 1
            raise


def run(seed: int, raised: tuple[str, ...]) -> tuple[SeedRun, Releases, NextReleaseClient]:
    """Run a seed in which the next release has raised some formats."""
    releases = Releases()
    clients: list[NextReleaseClient] = []
    make = emulated_table.boto3.client

    def client(*arguments: Any, **named: Any) -> Any:
        clients.append(NextReleaseClient(make(*arguments, **named), releases, raised))
        return clients[-1]

    with (
        patch.object(emulated_table.boto3, "client", client),
        patch.object(table, "check_format", releases.check),
    ):
        simulated = SeedRun(seed, Options(dynamodb=True, without_faults=True))
        releases.calls = simulated.account.calls
        releases.began_at = simulated.account.started_at
        simulated.run()
    return simulated, releases, clients[0]


def test_no_job_and_no_field_is_lost() -> None:
    simulated, releases, client = run(SEED, ("MACHINE", "SLOTS"))

    assert len({function for function, _ in releases.seen}) < len(releases.seen), "each release has run"
    # Items of a newer format were met before the functions that know it were there again.
    assert releases.refused
    account = simulated.account
    assert all(job.state.is_final and not job.pending for job in account.invariants.jobs.values())
    assert len(account.invariants.jobs) == len(simulated.workload.accepted) == len(simulated.workload.planned)
    assert not [each for each in account.invariants.violations if "unhandled" in each or "dead-lettered" in each]
    assert client.lost == []
    assert {sk.partition("#")[0] for _, sk in client.kept} == {"JOB", "ATTEMPT"}
