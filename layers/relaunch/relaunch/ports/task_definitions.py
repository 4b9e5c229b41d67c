"""ECS task definitions: the newest revision of a family, and derived revisions."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from relaunch.core.launches.derived_revision import TaskDefinition
    from relaunch.core.revisions.revision import Revision


class RevisionSource(Protocol):
    """Revisions of task definitions."""

    def newest_active(self, family: str, since: datetime | None = None) -> Revision:
        """Return the newest ACTIVE revision of exactly this family.

        With `since` the result may be cached, if it was read at or after that time.

        Raises:
            NoActiveRevisionError: the family has none.
            TransientError: throttled or unreachable.
        """


class RevisionRegistry(Protocol):
    """Derived revisions of task definitions."""

    def load_definition(self, revision_arn: str) -> TaskDefinition:
        """Return the definition of an ACTIVE or INACTIVE revision, including tags.

        Raises:
            PermanentError: ECS does not know the revision.
        """

    def find_active(
        self, definition: TaskDefinition, max_age: timedelta = timedelta(0), known_arn: str = ""
    ) -> str | None:
        """Return the ARN of the newest ACTIVE revision of a derived family that has its content, None if it has not.

        An ARN may be cached for up to `max_age`. Revisions without the tag DERIVED_FROM are ignored, and those with
        another content, which somebody else has registered. `known_arn` is one that was registered or found before.
        """

    def is_active(self, revision_arn: str) -> bool:
        """Return whether a revision is ACTIVE.

        Raises:
            TransientError: throttled or unreachable.
        """

    def register(self, definition: TaskDefinition) -> str:
        """Register a derived revision and return its ARN.

        Raises:
            PermanentError: ECS rejects the definition.
            TransientError: throttled (20 at once, 1 per second), unreachable, or the family is being registered by
                another call; it may be registered now.
        """

    def list_families(self) -> list[str]:
        """Return the families of derived revisions with an ACTIVE revision."""

    def deregister_family(self, family: str) -> int:
        """Deregister the ACTIVE revisions of a derived family and return their number; running tasks continue.

        Revisions without the tag DERIVED_FROM are ignored.

        Raises:
            TransientError: throttled or unreachable; some revisions may be deregistered.
        """
