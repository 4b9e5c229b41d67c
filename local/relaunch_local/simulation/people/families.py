"""Plans of definitions that name a family of task definitions with a typing error, or one that is not granted."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.snapshot import OfferingsSnapshot
from relaunch.core.revisions.revision import Revision, TaskDefinitionGrants
from relaunch.ports import NoActiveRevisionError
from relaunch.usecases.plan_jobs import plan_jobs
from relaunch_local.in_memory.stores import InMemoryStores
from relaunch_local.simulation.checks.record import Check
from relaunch_local.simulation.people.plans import draw_offerings

_NAMES = ("resnet-trainer", "whisper-trainer", "bert-trainer")
_ANOTHER = "billing-report"


@dataclass(frozen=True)
class _Offerings:
    """What a region sells."""

    sold: Sequence[Offering]

    def offerings(self, _now: datetime, _options: object = None) -> tuple[Offering, ...]:
        """Return everything that is sold."""
        return tuple(self.sold)

    def snapshot(self, _now: datetime) -> OfferingsSnapshot:
        """Return that nothing was refreshed."""
        return OfferingsSnapshot("us-east-1")

    def catalogue(self) -> Mapping[str, InstanceType]:
        """Return the instance types."""
        return load_catalogue()

    def peaks(self) -> Mapping[str, Any]:
        """Return that no peaks are known."""
        return {}


@dataclass(frozen=True)
class _NoFamilies:
    """ECS where nobody has registered a task definition."""

    asked: list[str] = field(default_factory=list)

    def newest_active(self, family: str) -> Revision:
        """Raise NoActiveRevisionError."""
        self.asked.append(family)
        raise NoActiveRevisionError(f"the task definition family {family} has no ACTIVE revision")


def ask_for_families(check: Check, dice: random.Random, now: datetime) -> None:
    """Check that who plans a job of such a definition learns what is wrong, and what may be meant."""
    meant = dice.choice(_NAMES)
    place = dice.randrange(1, len(meant))
    mistyped = meant[:place] + meant[place + 1 :]
    _ask(check, dice, now, mistyped, None, (mistyped, meant))
    shortened = meant.partition("-")[0]
    _ask(check, dice, now, shortened, None, (shortened, meant))
    _ask(check, dice, now, _ANOTHER, (f"{meant}*",), (_ANOTHER, f"{meant}*", "TaskDefinitionFamilies"))


def _ask(
    check: Check,
    dice: random.Random,
    now: datetime,
    family: str,
    granted: tuple[str, ...] | None,
    words: tuple[str, ...],
) -> None:
    accelerator = AcceleratorRequirement(gpu=GpuRequirement(count=1))
    registered = [JobDefinition(name.partition("-")[0], name, accelerator) for name in _NAMES]
    stores = InMemoryStores()
    deps: Any = SimpleNamespace(
        clock=SimpleNamespace(now=lambda: now),
        limits=replace(StackLimits(), task_definitions=TaskDefinitionGrants(granted)),
        offerings=_Offerings(draw_offerings(dice, now)),
        revisions=_NoFamilies(),
        definitions=SimpleNamespace(list_definitions=lambda: registered),
        capacity=stores.capacity,
    )
    try:
        (plan,) = plan_jobs([JobDefinition("asked", family, accelerator)], deps)
        said = plan.problem
    except Exception as error:  # noqa: BLE001 - whatever it is, nobody gets a plan
        said = repr(error)
    is_learned = all(each in said for each in words)
    check("who names a family wrongly learns what is wrong", is_learned, f"{family}: {said}")
