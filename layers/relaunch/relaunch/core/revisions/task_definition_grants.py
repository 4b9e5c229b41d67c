"""Which task definitions a stack may run: those of some families, with roles under some path.

IAM holds the stack to it (LaunchAttemptRole in template.yaml). Here it is checked before RunTask is called, so that a
job fails with the reason instead of AccessDenied.
"""

from dataclasses import dataclass

from relaunch.core.revisions.revision import Revision

_CHANGE = "or change the parameter of the stack"


@dataclass(frozen=True, slots=True)
class TaskDefinitionGrants:
    """What the stack's role may run and pass to tasks.

    `families` are names, or beginnings of names followed by `*`; None stands for any. `role_path` is an IAM path
    without the slash in front and with one at the end; empty for any.
    """

    families: tuple[str, ...] | None = None
    role_path: str = ""

    def has_family(self, family: str) -> bool:
        """Return whether a family may be run."""
        return self.families is None or any(_matches(family, pattern) for pattern in self.families)


def family_problem(family: str, grants: TaskDefinitionGrants) -> str:
    """Return why task definitions of a family may not be run, empty if they may."""
    if grants.has_family(family):
        return ""
    allowed = ", ".join(grants.families or ())
    return (
        f"the stack may not run task definitions of the family {family}: its parameter TaskDefinitionFamilies has "
        f"{allowed}; register the task definition in such a family, {_CHANGE}"
    )


def revision_problem(revision: Revision, grants: TaskDefinitionGrants) -> str:
    """Return why a revision may not be run, because of its family or its roles; empty if it may.

    A job that was accepted before its revision had roles here has none: IAM decides on it.
    """
    roles = {"task role": revision.task_role_arn, "execution role": revision.execution_role_arn}
    problems = (_role_problem(name, arn, grants.role_path) for name, arn in roles.items() if arn)
    return family_problem(revision.family, grants) or next(filter(None, problems), "")


def _role_problem(name: str, arn: str, path: str) -> str:
    if arn.partition(":role/")[2].startswith(path):
        return ""
    return (
        f"the stack may not pass the {name} {arn}: its parameter TaskRolePath has {path}; create the role with "
        f"--path /{path}, {_CHANGE}"
    )


def _matches(family: str, pattern: str) -> bool:
    return family.startswith(pattern[:-1]) if pattern.endswith("*") else family == pattern
