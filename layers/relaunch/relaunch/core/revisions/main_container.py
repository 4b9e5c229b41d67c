"""The main container of a revision."""

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.revisions.revision import Revision


def main_container(definition: JobDefinition, revision: Revision) -> str | None:
    """Return the container that gets the overrides: the definition's, or the only one; None if it is ambiguous."""
    if definition.container is not None:
        return definition.container
    return revision.containers[0].name if len(revision.containers) == 1 else None
