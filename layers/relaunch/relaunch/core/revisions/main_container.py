"""Which container of a revision is the training."""

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.revisions.revision import Revision


def main_container(definition: JobDefinition, revision: Revision) -> str | None:
    """Return the container that gets the overrides: the definition's, or the only one; None when it is not clear."""
    if definition.container is not None:
        return definition.container
    return revision.containers[0].name if len(revision.containers) == 1 else None
