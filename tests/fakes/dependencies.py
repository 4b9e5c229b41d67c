"""All ports as fakes, for tests of use cases."""

from dataclasses import fields
from typing import Any

from fakes.clock import FakeClock
from fakes.fleet import FakeMachineQueue, FakeMachineSource
from fakes.registry import FakeRegistry
from fakes.sources import (
    FakeCheckpoints,
    FakeHosts,
    FakeImages,
    FakeJobEvents,
    FakeLaunchQueue,
    FakeOfferings,
    FakeRevisions,
    ListLog,
)
from fakes.tasks import FakeTasks
from relaunch.adapters.input_patterns import Re2Patterns
from relaunch.adapters.market_thresholds import load_thresholds
from relaunch.core.definitions.targets import Target
from relaunch.core.machines.settings import MachineSettings
from relaunch.ports import Dependencies, Targets
from relaunch_local.in_memory.jobs import InMemoryJobs
from relaunch_local.in_memory.stores import InMemoryStores


def make_dependencies(**overrides: Any) -> Dependencies:
    """Build Dependencies of fakes; a port is replaced by naming it, and `tasks` is the only target, `target`.

    A test that scripts a fake makes it first, which also gives it its own type:
    `tasks = FakeTasks(); deps = make_dependencies(tasks=tasks)`.
    """
    jobs, tasks = overrides.get("jobs"), overrides.pop("tasks", None) or FakeTasks()
    stores = InMemoryStores(jobs) if isinstance(jobs, InMemoryJobs) else InMemoryStores()
    target: Target = overrides.pop("target", Target.ECS)
    ports: dict[str, Any] = {
        **{each.name: getattr(stores, each.name) for each in fields(stores)},
        "targets": Targets({target: lambda: tasks}),
        "revisions": FakeRevisions(),
        "registry": FakeRegistry(),
        "offerings": FakeOfferings(),
        "images": FakeImages(),
        "patterns": Re2Patterns(),
        "checkpoints": FakeCheckpoints(),
        "load_thresholds": load_thresholds,
        "launches": FakeLaunchQueue(),
        "job_events": FakeJobEvents(),
        "machine_queue": FakeMachineQueue(),
        "fleet": FakeMachineSource(),
        "hosts": FakeHosts(),
        "machine_settings": MachineSettings("relaunch"),
        "clock": FakeClock(),
        "log": ListLog(),
    }
    return Dependencies(**{**ports, **overrides})
