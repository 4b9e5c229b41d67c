"""What keeps two stacks of an account apart beside their names: families of task definitions, and paths of roles.

Patterns of IAM end in `*`, and the name of a stack may begin with that of another. So what is made of a name ends it by
a character that no such name has: the name of a stack has letters, digits and hyphens ("CreateStack", AWS
CloudFormation API Reference).
"""

from collections.abc import Iterator, Mapping

from relaunch_cli.deployment.findings import Stack
from relaunch_cli.deployment.refusals import RefusedError

DEFAULT_STACK = "relaunch"
"""The name of an application that is deployed without another one; the templates' defaults are for it."""
FAMILIES = "TaskDefinitionFamilies"
TASK_ROLE_PATH = "TaskRolePath"
ROLE_PATH = "RolePath"
_DEFAULT_FAMILIES = "relaunch-*"
_DEFAULT_PATH = "relaunch/"
# A policy names a stack's resource by stack and logical ID: `a-JobsTable-*` is also what a stack `a-JobsTable-b` has.
_NAMED_IN_POLICIES = ("Queue", "Table", "Function")
# And so are the stacks that are deployed beside `a`: `a-training`, `a-machines`.
_BESIDE = ("training", "machines")


def family_prefix(stack: str) -> str:
    """Return what the families of a stack begin with: `a_b-` for `a-b`, so that `a-*` has none of them."""
    return f"{stack.replace('-', '_')}-"


def separate_names(stack: str, before: Mapping[str, Stack]) -> Mapping[str, str]:
    """Return the parameters that tell a new stack's task definitions and roles from those of others, by their names.

    An application that exists keeps what it has, and so does the default one, which has what the templates say.
    `before` are the stacks that exist.
    """
    if stack in before or stack == DEFAULT_STACK:
        return {}
    names = {FAMILIES: f"{family_prefix(stack)}*", TASK_ROLE_PATH: f"{stack}/tasks/", ROLE_PATH: f"{stack}/"}
    training = before.get(f"{stack}-training")
    if training is not None:
        # Of a deployment that failed, or of an application that was deleted: what is there is not replaced.
        names = {name: training.parameters[name] for name in names if name in training.parameters}
    if f"{stack}-machines" in before:
        names.pop(ROLE_PATH, None)
    return names


def check_name(stack: str) -> None:
    """Check that no other stack's roles are for a new stack of this name.

    Raises:
        RefusedError: they may be.
    """
    parts = stack.split("-")[1:]
    taken = next((each for each in parts if each in _BESIDE or each.endswith(_NAMED_IN_POLICIES)), None)
    if taken is not None:
        before = stack.partition(f"-{taken}")[0]
        raise RefusedError(f"roles of a stack {before} would reach the stack {stack}: choose a name without -{taken}")


def overlaps(stack: str, given: Mapping[str, str], before: Mapping[str, str]) -> Iterator[str]:
    """Yield what a stack of another name than the default one shares with that; `before` are its parameters."""
    if stack == DEFAULT_STACK:
        return
    families = given.get(FAMILIES) or before.get(FAMILIES) or _DEFAULT_FAMILIES
    path = given.get(TASK_ROLE_PATH) or before.get(TASK_ROLE_PATH) or _DEFAULT_PATH
    how = "docs/deploy.md#several-stacks says how to change that"
    if _DEFAULT_FAMILIES in families.split(",") or families == "any":
        yield f"jobs of {stack} may run task definitions of {families}, those of other stacks included: {how}"
    if path.startswith(_DEFAULT_PATH):
        yield f"jobs of {stack} get roles under /{path}, which the stack {DEFAULT_STACK} may pass too: {how}"
