"""Derived revisions, in memory."""

from datetime import timedelta

from fakes.builders import make_container
from relaunch.core.launches.derived_revision import DERIVED_FROM, TaskDefinition, has_content, is_derived_family
from relaunch.core.revisions.revision import parse_revision_arn
from relaunch.ports import PermanentError


class FakeRegistry:
    """Implements RevisionRegistry.

    Every revision of another family than a derived one has the container of `make_revision`, unless `sources` says
    otherwise; those in `deleted` are gone. `failures` are raised one by one by the next registrations.
    """

    def __init__(self) -> None:
        self.sources: dict[str, TaskDefinition] = {}
        self.deleted: set[str] = set()
        self.registered: dict[str, TaskDefinition] = {}
        self.active: set[str] = set()
        self.failures: list[Exception] = []
        self.register_count = 0

    def load_definition(self, revision_arn: str) -> TaskDefinition:
        found = self.registered.get(revision_arn) or self.sources.get(revision_arn)
        if found is not None:
            return found
        name = parse_revision_arn(revision_arn)
        if name is None or is_derived_family(name[0]) or revision_arn in self.deleted:
            raise PermanentError(f"the task definition {revision_arn} is gone: it was deleted since the job began")
        container = make_container()
        described = {"name": container.name, "image": container.image, "stopTimeout": container.stop_timeout_seconds}
        return TaskDefinition(name[0], {"containerDefinitions": [described]}, {"team": "vision"})

    def find_active(
        self, definition: TaskDefinition, max_age: timedelta = timedelta(0), known_arn: str = ""
    ) -> str | None:
        newest = self._newest(definition.family)
        if newest is None:
            return None
        return newest if newest == known_arn or has_content(self.registered[newest], definition) else None

    def _newest(self, family: str) -> str | None:
        active = [arn for arn in self.active if _family(arn) == family]
        newest = max(active, key=_revision, default=None)
        return newest if newest and DERIVED_FROM in self.registered[newest].tags else None

    def is_active(self, revision_arn: str) -> bool:
        return revision_arn in self.active

    def register(self, definition: TaskDefinition) -> str:
        self.register_count += 1
        if self.failures:
            raise self.failures.pop(0)
        number = 1 + sum(_family(arn) == definition.family for arn in self.registered)
        arn = f"arn:aws:ecs:us-east-1:111122223333:task-definition/{definition.family}:{number}"
        self.registered[arn] = definition
        self.active.add(arn)
        return arn

    def list_families(self) -> list[str]:
        return sorted({_family(arn) for arn in self.active if is_derived_family(_family(arn))})

    def deregister_family(self, family: str) -> int:
        if not is_derived_family(family) or self._newest(family) is None:
            return 0
        gone = {arn for arn in self.active if _family(arn) == family}
        self.active -= gone
        return len(gone)


def _family(arn: str) -> str:
    return arn.rpartition("/")[2].partition(":")[0]


def _revision(arn: str) -> int:
    return int(arn.rpartition(":")[2])
