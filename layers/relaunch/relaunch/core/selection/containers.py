"""Checks of a job definition against a revision and its containers, for `apply` and before a job is accepted."""

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.revisions.revision import Revision
from relaunch.core.selection.gpu_share import find_conflict


def container_problem(definition: JobDefinition, revision: Revision) -> str | None:
    """Return what is wrong with a revision; None if Relaunch and ECS can launch it and the main container is known."""
    return _refusal(revision) or _naming_problem(definition, revision) or _conflict(definition, revision)


def _refusal(revision: Revision) -> str:
    return f"{revision.family}:{revision.revision}: {'; '.join(revision.refusals)}" if revision.refusals else ""


def _conflict(definition: JobDefinition, revision: Revision) -> str | None:
    main = definition.container or revision.containers[0].name
    conflict = find_conflict(definition.accelerator.gpu, (each for each in revision.containers if each.name != main))
    return f"{revision.family}:{revision.revision}: {conflict}" if conflict else None


def _naming_problem(definition: JobDefinition, revision: Revision) -> str | None:
    names = [container.name for container in revision.containers]
    shown = f"{revision.family}:{revision.revision}"
    if definition.container is None:
        if len(names) == 1:
            return None
        return f"{shown} has several containers: say which one counts with `container`: {', '.join(names)}"
    if definition.container in names:
        return None
    return f"{shown} has no container `{definition.container}`: it has {', '.join(names)}"
