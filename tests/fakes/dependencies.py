"""A whole world of fakes, for tests of use cases."""

from typing import Any

from fakes.clock import FakeClock
from fakes.jobs import InMemoryJobs
from fakes.registry import FakeRegistry
from fakes.sources import FakeCheckpoints, FakeImages, FakeLaunchQueue, FakeOfferings, FakeRevisions, ListLog
from fakes.tasks import FakeTasks
from relaunch.ports import Dependencies


def make_dependencies(**overrides: Any) -> Dependencies:
    """Build a World of fakes; a port is replaced by naming it.

    `jobs`, `definitions`, `capacity` and `maintenance` are one InMemoryJobs. A test that scripts a fake makes it first,
    which also gives it its own type: `tasks = FakeTasks(); world = make_dependencies(tasks=tasks)`.
    """
    jobs = overrides.get("jobs", InMemoryJobs())
    ports: dict[str, Any] = {
        "jobs": jobs,
        "definitions": jobs,
        "capacity": jobs,
        "tasks": FakeTasks(),
        "revisions": FakeRevisions(),
        "registry": FakeRegistry(),
        "maintenance": jobs,
        "offerings": FakeOfferings(),
        "images": FakeImages(),
        "checkpoints": FakeCheckpoints(),
        "launches": FakeLaunchQueue(),
        "clock": FakeClock(),
        "log": ListLog(),
    }
    return Dependencies(**{**ports, **overrides})
