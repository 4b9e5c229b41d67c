"""ECS task definitions: the newest revision of a family, and derived revisions."""

from datetime import datetime, timedelta
from typing import Protocol

from relaunch.core.launches.derived_revision import TaskDefinition
from relaunch.core.revisions.revision import Revision


class RevisionSource(Protocol):
    """ECS task definitions."""

    def newest_active(self, family: str, since: datetime | None = None) -> Revision:
        """Return the newest ACTIVE revision of exactly this family.

        With `since` as it was at that moment or later: one question may answer for many events.

        Raises:
            NoActiveRevisionError: there is none.
            TransientError: throttled or unreachable.
        """
        ...


class RevisionRegistry(Protocol):
    """Where derived revisions are registered, found and deregistered: ECS."""

    def load_definition(self, revision_arn: str) -> TaskDefinition:
        """Return what a revision was registered with, tags included; INACTIVE revisions too.

        Raises:
            PermanentError: ECS does not know the revision.
            TransientError: throttled or unreachable.
        """
        ...

    def find_active(self, family: str, max_age: timedelta = timedelta(0)) -> str | None:
        """Return the ARN of the newest ACTIVE revision of a derived family, None when there is none.

        That there was one may be an answer up to `max_age` old.

        Revisions without the tag DERIVED_FROM are somebody else's, and are not found.
        """
        ...

    def register(self, definition: TaskDefinition) -> str:
        """Register a derived revision and return its ARN.

        Raises:
            PermanentError: ECS refuses the definition.
            TransientError: throttled (20 at once, 1 per second) or unreachable.
        """
        ...

    def list_families(self) -> list[str]:
        """Return the families of derived revisions that have an ACTIVE one."""
        ...

    def deregister_family(self, family: str) -> int:
        """Deregister every ACTIVE revision of a derived family and return their number; running tasks go on.

        Revisions without the tag DERIVED_FROM are left alone.

        Raises:
            TransientError: throttled or unreachable; what was deregistered stays so.
        """
        ...
